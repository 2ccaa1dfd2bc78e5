//! Which events are wanted: by flow, link, kind and time.

use std::time::Duration;

use weir_units::Time;

use super::{Event, Kind, Place};
use crate::run::Names;
use crate::scenario::did_you_mean;

/// What is wanted of a run, in words. An empty list wants everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Flows: `flow.tcp.0`, or what its name begins with, with or without the kind: `flow`, `tcp`, `tcp.0`.
    pub flows: Vec<String>,
    /// Links: `a-b` from node a to node b, or `bottleneck`. What happens at agents is on no link.
    pub links: Vec<String>,
    /// Kinds.
    pub kinds: Vec<Kind>,
    /// From when.
    pub from: Option<Duration>,
    /// Until when, that instant left out.
    pub to: Option<Duration>,
}

/// A word that means nothing in this run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} {word:?}; there are {known}{suggestion}")]
pub struct FilterError {
    /// What was looked for.
    pub what: &'static str,
    /// The word.
    pub word: String,
    /// What there is.
    pub known: String,
    suggestion: String,
}

/// A filter for one run.
#[derive(Debug)]
pub(super) struct Wanted {
    /// By flow; `None`: all.
    flows: Option<Vec<bool>>,
    links: Option<Vec<bool>>,
    kinds: Vec<Kind>,
    from: Time,
    to: Option<Time>,
}

impl Filter {
    pub(super) fn resolve(&self, names: &Names) -> Result<Wanted, FilterError> {
        let is_flow = |word: &str, name: &str| {
            let bare = name.split_once('.').map_or(name, |(_, bare)| bare);
            [name, bare].iter().any(|name| begins(name, word))
        };
        let is_link = |word: &str, name: &str| name == word || name == "bottleneck" && names.bottleneck_ends == word;
        let kinds = if self.kinds.is_empty() { Kind::ALL.to_vec() } else { self.kinds.clone() };
        Ok(Wanted {
            flows: chosen("flow", &self.flows, &names.flows, is_flow)?,
            links: chosen("link", &self.links, &names.links, is_link)?,
            kinds,
            from: Time::ZERO + self.from.unwrap_or_default(),
            to: self.to.map(|to| Time::ZERO + to),
        })
    }
}

/// Which of the names the words mean; each must mean one.
fn chosen(
    what: &'static str,
    words: &[String],
    names: &[String],
    is_meant: impl Fn(&str, &str) -> bool,
) -> Result<Option<Vec<bool>>, FilterError> {
    if words.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = words.iter().map(|word| word.trim().replace(' ', ".")).collect();
    if let Some(word) = words.iter().find(|word| !names.iter().any(|name| is_meant(word, name))) {
        let listed: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
        let more = names.len() - listed.len();
        let known = match more {
            0 => listed.join(", "),
            more => format!("{} and {more} more", listed.join(", ")),
        };
        let suggestion = did_you_mean(word, names.iter().map(String::as_str));
        return Err(FilterError { what, word: word.clone(), known, suggestion });
    }
    Ok(Some(names.iter().map(|name| words.iter().any(|word| is_meant(word, name))).collect()))
}

/// Whether a name of parts joined by dots begins with these.
fn begins(name: &str, word: &str) -> bool {
    name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Wanted {
    pub(super) fn takes(&self, event: &Event<'_>) -> bool {
        let is_in = |list: &Option<Vec<bool>>, index: Option<usize>| {
            list.as_ref().is_none_or(|list| index.is_some_and(|index| list.get(index) == Some(&true)))
        };
        let link = match event.place {
            Place::Link(link) => Some(link.index()),
            Place::Agent(_) => None,
        };
        event.at >= self.from
            && self.to.is_none_or(|to| event.at < to)
            && self.kinds.contains(&event.kind)
            && is_in(&self.links, link)
            && is_in(&self.flows, Some(event.flow.index()))
    }
}

/// Names that an error lists.
const LISTED: usize = 20;
