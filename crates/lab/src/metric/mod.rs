//! What is measured in a run: each measure is a small function over recorded events ([`Record`]), defined as in AVMRC §4.4
//! where that section has it. Losses are in per cent of packets, rates in kbit/s, spans in seconds. Not here: recording.

mod client;
mod flow;
mod kind;
mod levels;
mod measure;
mod names;
mod passage;
mod queue;
mod record;
mod trace;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use weir_units::Bytes;

pub use kind::{Kind, Over};
pub use names::NameList;
pub use record::{
    Capacity, ClientRecord, Delivery, Fate, FlowRecord, LinkRecord, Packets, Passage, Record, SessionRecord,
    TreeRecord, Wait, Windows,
};
pub use trace::{Quantity, Trace};

use crate::scenario::Text;

/// A number that a run gives. Which other keys a measure takes stands with its name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What is measured.
    pub measure: Kind,
    /// Of which session, or of which of them.
    #[serde(default)]
    pub session: NameList,
    /// Of which tree, or of which of them.
    #[serde(default)]
    pub tree: NameList,
    /// Of which flow, or of which of them.
    #[serde(default)]
    pub flow: NameList,
    /// On which link, from which node to which; the routers of a dumbbell are `left` and `right`. Default: the bottleneck.
    pub link: Option<[String; 2]>,
    /// Divides by the same of this flow, or of these: the mean of the one group over that of the other, if `over` is mean.
    #[serde(default)]
    pub per: NameList,
    /// Of which client of the session, or member of the tree, from 0. Default: all.
    pub client: Option<Text<usize>>,
    /// With `client`: that one and each one this many places further on.
    pub every: Option<Text<usize>>,
    /// What is taken of several clients of a session, or members of a tree. Default mean.
    #[serde(default)]
    pub over_clients: Over,
    /// The level that is asked about.
    pub level: Option<Text<usize>>,
    /// Which percentile, 0 to 100. Default: the mean.
    pub percentile: Option<Text<f64>>,
    /// How much payload.
    pub size: Option<Text<Bytes>>,
    /// How long something must hold, or what counts as together. Default 10s for convergence_time, else 1s.
    pub window: Option<Text<Duration>>,
    /// From when. Default: when all clients of all sessions have left their start-up phase.
    pub from: Option<Text<Duration>>,
    /// Until when. Default: the end of the run.
    pub to: Option<Text<Duration>>,
    /// What is taken of several sessions, trees or flows of one name. Default mean.
    #[serde(default)]
    pub over: Over,
}

/// By nearest rank; `None` without any value.
fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((share * sorted.len() as f64).ceil() as usize).saturating_sub(1)).copied()
}
