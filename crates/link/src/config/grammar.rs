//! All that descriptions of links may say, for reference pages.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::queue::{DISCIPLINES, read_queue};
use super::text::{Described, Key};
use super::way::NO_BURSTS;
use crate::{GilbertElliott, LinkConfig, Loss};

/// A part of the grammar: what is described, and by which keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// How it begins: `red`, or nothing for the link itself.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// What it is without any key.
    pub default: String,
}

/// The link itself, bursts of loss, and each queueing discipline: the tables by which descriptions are read.
pub fn grammar() -> Vec<Grammar> {
    let link = Grammar {
        name: "",
        about: "Comma-separated `key=value`, each key at most once and none of them needed.",
        keys: LinkConfig::KEYS,
        default: LinkConfig::default().to_string(),
    };
    let bursts = Grammar {
        name: GilbertElliott::OF,
        about: "Bursts of loss by two states (Gilbert 1960, Elliott 1963), as the value of `loss`.",
        keys: GilbertElliott::KEYS,
        default: Loss::GilbertElliott(NO_BURSTS).to_string(),
    };
    let queues = DISCIPLINES.iter().map(|discipline| Grammar {
        name: discipline.name,
        about: discipline.about,
        keys: discipline.keys,
        default: read_queue(discipline.name).map(|queue| queue.to_string()).unwrap_or_default(),
    });
    [link, bursts].into_iter().chain(queues).collect()
}
