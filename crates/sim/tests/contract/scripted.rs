//! Endpoints that do what a test says, and write down what happens to them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Origin, Packet, PeerId};
use weir_link::LinkConfig;
use weir_sim::{AgentId, Membership, Monitor, SessionConfig};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::{CciForm, Experimental, Layered};

type Reaction = Box<dyn FnMut(&Event<'_>) -> Vec<Action> + Send>;

/// An endpoint that acts at given times and when something happens.
#[derive(Default)]
pub(crate) struct Scripted {
    plan: VecDeque<(Time, Action)>,
    reaction: Option<Reaction>,
    out: VecDeque<Action>,
    log: Log,
}

/// What happened to an endpoint, and when.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log(Arc<Mutex<Vec<(Time, Seen)>>>);

/// An event. Starts and deadlines are not written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Packet(Origin, Packet),
    PeerUp(PeerId),
    PeerDown(PeerId),
    Offer(u64),
    End,
    Room(u64),
    Finish,
}

impl Scripted {
    /// Wants this at a time. Times come in order.
    pub(crate) fn at(mut self, millis: u64, action: Action) -> Scripted {
        self.plan.push_back((Time::from_millis(millis), action));
        self
    }

    /// Wants this when something happens.
    pub(crate) fn on(mut self, reaction: impl FnMut(&Event<'_>) -> Vec<Action> + Send + 'static) -> Scripted {
        self.reaction = Some(Box::new(reaction));
        self
    }

    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    pub(crate) fn boxed(self) -> Box<Scripted> {
        Box::new(self)
    }
}

impl Log {
    pub(crate) fn all(&self) -> Vec<(Time, Seen)> {
        self.0.lock().expect("no endpoint has panicked").clone()
    }

    /// What happened, without the times.
    pub(crate) fn events(&self) -> Vec<Seen> {
        self.all().into_iter().map(|(_, seen)| seen).collect()
    }

    /// When packets came, in milliseconds, and their tags.
    pub(crate) fn packets(&self) -> Vec<(u64, u8)> {
        let packets = self.all().into_iter().filter_map(|(at, seen)| match seen {
            Seen::Packet(_, packet) => Some((at.as_micros() / 1000, tag_of(&packet))),
            _ => None,
        });
        packets.collect()
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

impl Endpoint for Scripted {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        let seen = match event {
            Event::Packet { from, packet } => Some(Seen::Packet(from, *packet)),
            Event::PeerUp(peer) => Some(Seen::PeerUp(peer)),
            Event::PeerDown(peer) => Some(Seen::PeerDown(peer)),
            Event::Offer { packets } => Some(Seen::Offer(packets)),
            Event::End => Some(Seen::End),
            Event::Room { payloads } => Some(Seen::Room(payloads)),
            Event::Finish => Some(Seen::Finish),
            Event::Start
            | Event::Deadline
            | Event::HostDropped { .. }
            | Event::Backlog(_)
            | Event::Allot(_)
            | Event::Priority { .. }
            | Event::FinishSession(_)
            | Event::Reachable { .. }
            | Event::Reached { .. } => None,
        };
        self.log.0.lock().expect("no endpoint has panicked").extend(seen.map(|seen| (now, seen)));
        let due = self.plan.partition_point(|(at, _)| *at <= now);
        self.out.extend(self.plan.drain(..due).map(|(_, action)| action));
        self.out.extend(self.reaction.iter_mut().flat_map(|reaction| reaction(&event)));
    }

    fn poll(&mut self, _: Time) -> Option<Action> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        self.plan.front().map(|(at, _)| *at)
    }
}

/// A packet of 100 bytes with a tag.
pub(crate) fn packet(tag: u8) -> Packet {
    Packet { header: Header::Experimental(Experimental([tag; 16])), size: Bytes::new(100), ecn: Ecn::NotEct }
}

pub(crate) fn tag_of(packet: &Packet) -> u8 {
    match packet.header {
        Header::Experimental(Experimental(bytes)) => bytes[0],
        Header::Layered(Layered { sequence, .. }) => sequence as u8,
        _ => panic!("nobody sends such packets here: {packet:?}"),
    }
}

pub(crate) fn to_peer(peer: u32, tag: u8) -> Action {
    Action::send(Destination::Peer(PeerId(peer)), packet(tag))
}

pub(crate) fn to_channel(channel: u16, tag: u8) -> Action {
    Action::send(Destination::Channel(ChannelId(channel)), packet(tag))
}

pub(crate) fn link(text: &str) -> LinkConfig {
    text.parse().expect("a valid link")
}

pub(crate) fn session(channels: usize, membership: Membership) -> SessionConfig {
    SessionConfig { channels, form: CciForm::Short, membership }
}

/// What applications were given: when, in milliseconds, who, and the payload's number.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) payloads: Vec<(u64, AgentId, Option<u64>)>,
    pub(crate) complete: Vec<(u64, AgentId)>,
}

impl Monitor for Given {
    fn deliver(&mut self, now: Time, agent: AgentId, _bytes: u64, number: Option<u64>) {
        self.payloads.push((now.as_micros() / 1000, agent, number));
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        self.complete.push((now.as_micros() / 1000, agent));
    }
}
