//! What a set-up must fulfil beyond its types: names that refer to each other, schemes and settings that exist.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::manager;
use weir_core::registry::{self, OfferedRates, Scheme, Setting};
use weir_units::{Bytes, Rate};
use weir_wire::{CciForm, alc, mtcp};

use super::defaults::{Settings, UDP_OVER_IPV4};
use super::did_you_mean;
use super::setup::{Flow, LadderKeys, Manager, Receivers, Session, Setup, TreeStream};
use super::topology::{ALL_ON_ONE_NODE, Topology, one_node};
use super::traffic::Traffic;
use super::values::Text;
use crate::metric::{Kind, Measure, NameList};

impl Setup {
    /// The first thing that is wrong, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.duration.0.is_zero() {
            return Err("duration must be above 0s".to_owned());
        }
        self.topology.check().map_err(|error| format!("topology: {error}"))?;
        for (name, session) in &self.session {
            let checked = session.check().and_then(|()| session.has_place(&self.topology));
            checked.map_err(|error| format!("session.{name}: {error}"))?;
        }
        let mut managed: Vec<&String> = self.manager.values().flat_map(|manager| &manager.sessions).collect();
        managed.sort_unstable();
        if let Some(pair) = managed.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("manager: session {:?} is listed twice, and a session has one manager", pair[0]));
        }
        for (name, manager) in &self.manager {
            manager.check(&self.session).map_err(|error| format!("manager.{name}: {error}"))?;
        }
        for (name, tree) in &self.tree {
            let checked = tree.check().and_then(|()| tree.has_place(&self.topology));
            checked.map_err(|error| format!("tree.{name}: {error}"))?;
        }
        for (name, flow) in &self.flow {
            let checked = flow.traffic.check().and_then(|()| flow.has_place(&self.topology));
            checked.map_err(|error| format!("flow.{name}: {error}"))?;
        }
        for change in &self.change {
            let mut ends = change.between.iter().flatten();
            ends.try_for_each(|name| self.topology.has_router(name))
                .map_err(|error| format!("change: between: {error}"))?;
            if change.link.is_some() == change.trace.is_some() {
                return Err("change: needs either link or trace".to_owned());
            }
            if change.every.is_some_and(|every| every.0.is_zero()) {
                return Err("change: every must be above 0s".to_owned());
            }
        }
        for name in self.router.keys() {
            self.topology.has_router(name).map_err(|error| format!("router: {error}"))?;
        }
        for (name, measure) in &self.metrics {
            let checked = measure.check().and_then(|()| self.can_measure(measure));
            checked.map_err(|error| format!("metrics.{name}: {error}"))?;
        }
        for (name, trace) in &self.series {
            let checked = trace.check().and_then(|()| self.refers(&trace.session, &trace.tree, &trace.flow));
            let checked = checked.and_then(|()| self.has_link(trace.link.as_ref()));
            checked.map_err(|error| format!("series.{name}: {error}"))?;
        }
        Ok(())
    }

    fn can_measure(&self, measure: &Measure) -> Result<(), String> {
        self.refers(&measure.session, &measure.tree, &measure.flow)?;
        self.refers(&NameList::default(), &NameList::default(), &measure.per)?;
        let ends = |name: &&String| matches!(&self.flow[*name].traffic, Traffic::Ftp(tcp) if tcp.size.is_some());
        match measure.flow.iter().find(|name| !ends(name)) {
            Some(name) if measure.measure == Kind::CompletionTime && measure.size.is_none() => {
                Err(format!("flow {name:?} has no end: say with size how much of it is meant"))
            }
            _ => self.has_link(measure.link.as_ref()),
        }
    }

    fn refers<'a, N>(&self, session: &'a N, tree: &'a N, flow: &'a N) -> Result<(), String>
    where
        &'a N: IntoIterator<Item = &'a String>,
    {
        session.into_iter().try_for_each(|name| is_there("session", name, &self.session))?;
        tree.into_iter().try_for_each(|name| is_there("tree", name, &self.tree))?;
        flow.into_iter().try_for_each(|name| is_there("flow", name, &self.flow))
    }

    fn has_link(&self, link: Option<&[String; 2]>) -> Result<(), String> {
        let mut ends = link.into_iter().flatten();
        ends.try_for_each(|name| self.topology.has_router(name)).map_err(|error| format!("link: {error}"))
    }
}

/// Whether what is asked for by name is one of those that there are.
fn is_there<T>(what: &str, name: &str, known: &BTreeMap<String, T>) -> Result<(), String> {
    if known.contains_key(name) {
        return Ok(());
    }
    let suggestion = did_you_mean(name, known.keys().map(String::as_str));
    Err(format!("there is no {what} {name:?}{suggestion}"))
}

impl Session {
    fn check(&self) -> Result<(), String> {
        let scheme = find(&self.scheme)?;
        let session = self.agreed()?;
        holds("packet_size", session.packet_size, self.header(session.form) + 1)?;
        scheme.check_session(&session, &self.settings()).map_err(|error| error.to_string())
    }

    fn has_place(&self, topology: &Topology) -> Result<(), String> {
        topology.has_place("at", &self.at, None)?;
        self.receivers.has_place(topology).map_err(|error| format!("receivers: {error}"))
    }

    /// What its parties agree on.
    pub fn agreed(&self) -> Result<registry::Session, String> {
        let mut agreed = registry::Session {
            ladder: self.ladder()?,
            packet_size: self.packet_size(),
            form: CciForm::Short,
            habitat: self.defaults.habitat(),
        };
        if self.defaults == Settings::Deployed {
            let channels =
                find(&self.scheme)?.channels(&agreed, &self.settings()).map_err(|error| error.to_string())?;
            let fastest = channels.into_iter().max().unwrap_or(Rate::ZERO);
            agreed.form = CciForm::for_packets_per_sec(fastest.packets_per_sec(agreed.packet_size));
        }
        Ok(agreed)
    }

    fn ladder(&self) -> Result<Ladder, String> {
        let offered = || find(&self.scheme)?.layered().map(|parties| parties.rates).map_err(|error| error.to_string());
        match (&self.ladder, self.defaults) {
            (Some(keys), Settings::Paper) => keys.ladder(),
            (Some(keys), Settings::Deployed) => keys.or_as_offered(offered()?).ladder(),
            (None, Settings::Paper) => Err("missing key \"ladder\"".to_owned()),
            (None, Settings::Deployed) => {
                let OfferedRates { low, high, ratio } = offered()?;
                Ladder::geometric(low, high, ratio).map_err(|error| error.to_string())
            }
        }
    }

    /// Bytes of a full packet on the network.
    pub fn packet_size(&self) -> Bytes {
        self.packet_size.map_or_else(|| self.defaults.packet_size(), |size| size.0)
    }

    /// Bytes of a packet that are not payload: ALC over UDP and IPv4.
    pub fn header(&self, form: CciForm) -> u64 {
        UDP_OVER_IPV4 + alc::Profile { tsi: 0, form }.overhead(false) as u64
    }

    /// How long a leave takes to act, where the router says nothing else.
    pub fn leave_latency(&self) -> Duration {
        self.leave_latency.map_or_else(|| self.defaults.leave_latency(), |latency| latency.0)
    }

    /// The scheme's settings, as its registry entry takes them.
    pub fn settings(&self) -> Vec<Setting> {
        settings(&self.settings)
    }
}

impl Manager {
    fn check(&self, known: &BTreeMap<String, Session>) -> Result<(), String> {
        manager::read(&self.settings()).map_err(|error| error.to_string())?;
        let mut counts = Vec::new();
        for name in &self.sessions {
            is_there("session", name, known)?;
            let session = &known[name];
            if session.count.0 != 1 {
                return Err(format!("session {name:?} has a count of {}, and a manager takes one", session.count.0));
            }
            counts.push(session.receivers.count.0);
        }
        if counts.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("its sessions have {counts:?} receivers, and need the same number"));
        }
        Ok(())
    }

    /// Its settings, as the manager takes them.
    pub fn settings(&self) -> Vec<Setting> {
        settings(&self.settings)
    }
}

impl Receivers {
    fn has_place(&self, topology: &Topology) -> Result<(), String> {
        topology.has_place("at", &self.at, Some(self.rtt.is_some()))?;
        match self.rtt_setting {
            Some(_) if self.rtt.is_none() => Err("rtt_setting tells receivers their rtt, and there is none".to_owned()),
            _ => Ok(()),
        }
    }
}

impl TreeStream {
    fn check(&self) -> Result<(), String> {
        if self.degree.is_none() && self.defaults == Settings::Paper {
            return Err("missing key \"degree\"".to_owned());
        }
        if self.degree.is_some_and(|degree| degree.0 == 0) || self.members.count.0 == 0 {
            return Err("a tree needs a degree of 1 or more, and a member".to_owned());
        }
        holds("packet_size", self.packet_size(), UDP_OVER_IPV4 + mtcp::DATA_LEN as u64 + 1)?;
        holds("feedback_size", self.feedback_size.0, UDP_OVER_IPV4 + mtcp::ACK_LEN as u64)?;
        if self.header_size.0 >= self.packet_size() {
            return Err("header_size must be below packet_size".to_owned());
        }
        if self.settings.contains_key(CHILDREN) {
            return Err(format!("settings: {CHILDREN} follows from degree: leave it out"));
        }
        let widest = self.settings(0);
        find(&self.scheme)?.check_tree(&self.agreed(), &widest).map_err(|error| error.to_string())
    }

    fn has_place(&self, topology: &Topology) -> Result<(), String> {
        topology.has_place("at", &self.at, None)?;
        self.members.has_place(topology).map_err(|error| format!("members: {error}"))?;
        if topology.has_two_ends(&self.at, &self.members.at) { Ok(()) } else { Err(ALL_ON_ONE_NODE.to_owned()) }
    }

    /// What its parties agree on.
    pub fn agreed(&self) -> registry::Stream {
        let (packet_size, feedback_size) = (self.packet_size(), self.feedback_size.0);
        registry::Stream { packet_size, feedback_size, habitat: self.defaults.habitat() }
    }

    /// Bytes of a full packet on the network.
    pub fn packet_size(&self) -> Bytes {
        self.packet_size.map_or_else(|| self.defaults.packet_size(), |size| size.0)
    }

    /// The settings of a node, as its scheme's registry entry takes them. The sender is node 0, member i is node i + 1.
    pub fn settings(&self, node: usize) -> Vec<Setting> {
        let mut settings = settings(&self.settings);
        let mut unless_set = |key: &str, value: String| {
            if !self.settings.contains_key(key) {
                settings.push(Setting { key: key.to_owned(), value });
            }
        };
        match self.degree {
            Some(_) => {
                unless_set(TREE, "given".to_owned());
                unless_set(CHILDREN, self.children(node).len().to_string());
            }
            // A member that comes later than the first packet is late, and late members are not part of the scenario.
            None => unless_set(RECEIVERS, self.members.count.0.to_string()),
        }
        settings
    }

    /// How much of a full packet is payload.
    pub fn payload_share(&self) -> f64 {
        1.0 - self.header_size.0.count() as f64 / self.packet_size().count() as f64
    }

    /// The node that member i is below, or where it begins to look.
    pub fn above(&self, member: usize) -> usize {
        self.degree.map_or(0, |degree| member / degree.0)
    }

    /// The members below a node.
    fn children(&self, node: usize) -> Range<usize> {
        let degree = self.degree.map_or(0, |degree| degree.0);
        let place = |node: usize| node.saturating_mul(degree).min(self.members.count.0);
        place(node)..place(node + 1)
    }
}

pub(super) fn find(name: &str) -> Result<&'static Scheme, String> {
    registry::find(name).map_err(|error| {
        let names = registry::SCHEMES.iter().map(|scheme| scheme.name);
        format!("{error}{}", did_you_mean(name, names))
    })
}

pub(super) fn settings(written: &BTreeMap<String, Text<String>>) -> Vec<Setting> {
    written.iter().map(|(key, value)| Setting { key: key.clone(), value: value.0.clone() }).collect()
}

impl LadderKeys {
    /// The same, with what `weir send file` offers in place of what it does not say.
    fn or_as_offered(&self, offered: OfferedRates) -> LadderKeys {
        if self.rates.is_some() {
            return self.clone();
        }
        LadderKeys {
            low: self.low.or(Some(Text(offered.low))),
            high: self.high.or(Some(Text(offered.high))),
            ratio: self.ratio.or(Some(Text(offered.ratio))),
            ..self.clone()
        }
    }

    /// The ladder.
    pub fn ladder(&self) -> Result<Ladder, String> {
        match (&self.rates, self.low, self.high, self.ratio) {
            (Some(rates), None, None, None) => Ladder::from_rates(rates.iter().map(|rate| rate.0).collect())
                .ok_or_else(|| "ladder.rates must rise strictly from above zero, 256 of them at most".to_owned()),
            (None, Some(low), Some(high), Some(ratio)) => {
                Ladder::geometric(low.0, high.0, ratio.0).map_err(|error| error.to_string())
            }
            _ => Err("ladder needs either rates, or low, high and ratio".to_owned()),
        }
    }
}

impl Flow {
    fn has_place(&self, topology: &Topology) -> Result<(), String> {
        topology.has_place("from", &self.from, None)?;
        topology.has_place("to", &self.to, Some(self.rtt.is_some()))?;
        if topology.has_two_ends(&self.from, &self.to) { Ok(()) } else { Err(one_node(&self.from, &self.to)) }
    }
}

/// Whether packets of this size hold their headers, and a byte of payload if there is any.
pub(super) fn holds(key: &str, size: Bytes, least: u64) -> Result<(), String> {
    match size.count() {
        size if size < least => Err(format!("{key} is {size} bytes, and such a packet has at least {least}")),
        _ => Ok(()),
    }
}

/// The setting that says how many are below a node.
const CHILDREN: &str = "children";
/// The setting that says where a tree comes from.
const TREE: &str = "tree";
/// The setting that says for how many receivers the sender waits.
const RECEIVERS: &str = "receivers";
