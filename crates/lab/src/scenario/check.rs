//! What a set-up must fulfil beyond its types: names that refer to each other, schemes and settings that exist.

use std::collections::BTreeMap;
use std::ops::Range;

use weir_core::layers::Ladder;
use weir_core::manager;
use weir_core::registry::{self, Habitat, Scheme, Setting};
use weir_sim::tcp::{self, Flavour};
use weir_units::Bytes;
use weir_wire::rtp::Rtp;
use weir_wire::{CciForm, alc, mtcp};

use super::did_you_mean;
use super::setup::{
    Flow, LadderKeys, Manager, Receivers, Session, Setup, Stream, Tcp, Traffic, TreeStream, UDP_OVER_IPV4,
};
use super::topology::{ALL_ON_ONE_NODE, Topology, one_node};
use super::values::Text;

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
            let checked = flow.check().and_then(|()| flow.has_place(&self.topology));
            checked.map_err(|error| format!("flow.{name}: {error}"))?;
        }
        for change in &self.change {
            let ends = change.between.as_ref().map_or(&[][..], |pair| pair);
            let checked = if ends.is_empty() { Ok(()) } else { self.topology.has_place("between", ends, None) };
            checked.map_err(|error| format!("change: {error}"))?;
            if change.every.is_some_and(|every| every.0.is_zero()) {
                return Err("change: every must be above 0s".to_owned());
            }
        }
        for (name, measure) in &self.metrics {
            let checked = measure.check().and_then(|()| self.refers(&measure.session, &measure.tree, &measure.flow));
            let checked = checked.and_then(|()| self.refers(&None, &None, &measure.per));
            checked.map_err(|error| format!("metrics.{name}: {error}"))?;
        }
        for (name, trace) in &self.series {
            let checked = trace.check().and_then(|()| self.refers(&trace.session, &trace.tree, &trace.flow));
            checked.map_err(|error| format!("series.{name}: {error}"))?;
        }
        Ok(())
    }

    fn refers(&self, session: &Option<String>, tree: &Option<String>, flow: &Option<String>) -> Result<(), String> {
        is_there("session", session, &self.session)?;
        is_there("tree", tree, &self.tree)?;
        is_there("flow", flow, &self.flow)
    }
}

/// Whether what is asked for by name, if anything is, is one of those that there are.
fn is_there<T>(what: &str, name: &Option<String>, known: &BTreeMap<String, T>) -> Result<(), String> {
    let Some(name) = name.as_ref().filter(|name| !known.contains_key(*name)) else { return Ok(()) };
    let suggestion = did_you_mean(name, known.keys().map(String::as_str));
    Err(format!("there is no {what} {name:?}{suggestion}"))
}

impl Session {
    fn check(&self) -> Result<(), String> {
        let scheme = find(&self.scheme)?;
        let session = self.agreed()?;
        let alc = alc::Profile { tsi: 0, form: session.form }.overhead(false);
        holds("packet_size", self.packet_size.0, UDP_OVER_IPV4 + alc as u64 + 1)?;
        scheme.check_session(&session, &self.settings()).map_err(|error| error.to_string())
    }

    fn has_place(&self, topology: &Topology) -> Result<(), String> {
        topology.has_place("at", &self.at, None)?;
        self.receivers.has_place(topology).map_err(|error| format!("receivers: {error}"))
    }

    /// What its parties agree on.
    pub fn agreed(&self) -> Result<registry::Session, String> {
        Ok(registry::Session {
            ladder: self.ladder.ladder()?,
            packet_size: self.packet_size.0,
            form: CciForm::Short,
            habitat: Habitat::Lab,
        })
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
            is_there("session", &Some(name.clone()), known)?;
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
        if self.degree.0 == 0 || self.members.count.0 == 0 {
            return Err("a tree needs a degree of 1 or more, and a member".to_owned());
        }
        holds("packet_size", self.packet_size.0, UDP_OVER_IPV4 + mtcp::DATA_LEN as u64 + 1)?;
        holds("feedback_size", self.feedback_size.0, UDP_OVER_IPV4 + mtcp::ACK_LEN as u64)?;
        if self.header_size.0 >= self.packet_size.0 {
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
        registry::Stream { packet_size: self.packet_size.0, feedback_size: self.feedback_size.0, habitat: Habitat::Lab }
    }

    /// The settings of a node, as its scheme's registry entry takes them. The sender is node 0, member i is node i + 1.
    pub fn settings(&self, node: usize) -> Vec<Setting> {
        let mut settings = settings(&self.settings);
        settings.push(Setting { key: CHILDREN.to_owned(), value: self.children(node).len().to_string() });
        settings
    }

    /// How much of a full packet is payload.
    pub fn payload_share(&self) -> f64 {
        1.0 - self.header_size.0.count() as f64 / self.packet_size.0.count() as f64
    }

    /// The node that member i is below.
    pub fn above(&self, member: usize) -> usize {
        member / self.degree.0
    }

    /// The members below a node.
    fn children(&self, node: usize) -> Range<usize> {
        let place = |node: usize| node.saturating_mul(self.degree.0).min(self.members.count.0);
        place(node)..place(node + 1)
    }
}

fn find(name: &str) -> Result<&'static Scheme, String> {
    registry::find(name).map_err(|error| {
        let names = registry::SCHEMES.iter().map(|scheme| scheme.name);
        format!("{error}{}", did_you_mean(name, names))
    })
}

fn settings(written: &BTreeMap<String, Text<String>>) -> Vec<Setting> {
    written.iter().map(|(key, value)| Setting { key: key.clone(), value: value.0.clone() }).collect()
}

impl LadderKeys {
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

    fn check(&self) -> Result<(), String> {
        match &self.traffic {
            Traffic::Ftp(tcp) => tcp.check(),
            Traffic::Http(http) => http.tcp.check(),
            Traffic::Udp(udp) => holds("packet_size", udp.packet_size.0, UDP_OVER_IPV4)
                .and_then(|()| both_or_neither("udp", udp.on.is_some(), udp.off.is_some())),
            Traffic::Stream(stream) => stream.check(),
        }
    }
}

/// Whether packets of this size hold their headers, and a byte of payload if there is any.
fn holds(key: &str, size: Bytes, least: u64) -> Result<(), String> {
    match size.count() {
        size if size < least => Err(format!("{key} is {size} bytes, and such a packet has at least {least}")),
        _ => Ok(()),
    }
}

fn both_or_neither(of: &str, on: bool, off: bool) -> Result<(), String> {
    if on == off { Ok(()) } else { Err(format!("{of} needs both on and off, or neither")) }
}

impl Stream {
    fn check(&self) -> Result<(), String> {
        holds("packet_size", self.packet_size.0, UDP_OVER_IPV4 + Rtp::LEN as u64 + 1)?;
        holds("feedback_size", self.feedback_size.0, UDP_OVER_IPV4)?;
        if let Some(supply) = &self.supply {
            both_or_neither("supply", supply.on.is_some(), supply.off.is_some())?;
        }
        find(&self.scheme)?.check_stream(&self.agreed(), &self.settings()).map_err(|error| error.to_string())
    }

    /// What its ends agree on.
    pub fn agreed(&self) -> registry::Stream {
        registry::Stream { packet_size: self.packet_size.0, feedback_size: self.feedback_size.0, habitat: Habitat::Lab }
    }

    /// The scheme's settings, as its registry entry takes them.
    pub fn settings(&self) -> Vec<Setting> {
        settings(&self.settings)
    }
}

impl Tcp {
    fn check(&self) -> Result<(), String> {
        if self.tick.as_ref().is_some_and(|tick| tick.0.is_zero()) {
            return Err("tick must be above 0s".to_owned());
        }
        // An acknowledgement is headers and nothing else.
        holds("packet_size", self.packet_size.0, self.host()?.ack_size.count() + 1)
    }

    /// A sender on such a host, as the simulator knows it.
    pub fn host(&self) -> Result<tcp::Config, String> {
        match self.host.as_str() {
            "ns2" => Ok(tcp::Config::ns2(self.flavour()?)),
            "today" => Ok(tcp::Config::today(self.flavour()?)),
            other => Err(format!("there is no host {other:?}; there are ns2 and today")),
        }
    }

    /// Its congestion control.
    pub fn flavour(&self) -> Result<Flavour, String> {
        Flavour::ALL.into_iter().find(|flavour| flavour.name() == self.flavour).ok_or_else(|| {
            let names = Flavour::ALL.map(Flavour::name);
            format!(
                "there is no TCP {:?}; there are {}{}",
                self.flavour,
                names.join(", "),
                did_you_mean(&self.flavour, names)
            )
        })
    }
}

/// The setting that says how many are below a node.
const CHILDREN: &str = "children";
