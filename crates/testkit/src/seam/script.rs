//! An endpoint that does what a scenario says, and writes down what happens to it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_core::{Action, Backlog, Destination, Endpoint, Event, Header, Locator, Origin, Packet, Payload, PeerId};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::{Experimental, experimental};

/// An endpoint that acts at given times after its start, and when something happens. When it is told to finish, it stops.
#[derive(Default)]
pub struct Script {
    start: Option<Time>,
    plan: VecDeque<(Duration, Action)>,
    reaction: Option<Reaction>,
    out: VecDeque<Action>,
    log: Log,
    finished: bool,
}

type Reaction = Box<dyn FnMut(&Event<'_>, &mut VecDeque<Action>) + Send>;

/// What has happened to an endpoint, for whoever drives it.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(Duration, Seen)>>>);

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// [`Event::Reachable`].
    Reachable(Locator),
    /// [`Event::Start`].
    Start,
    /// [`Event::Packet`].
    Packet(Origin, Packet),
    /// [`Event::PeerUp`].
    PeerUp(PeerId),
    /// [`Event::Reached`].
    Reached(Locator, PeerId),
    /// [`Event::PeerDown`].
    PeerDown(PeerId),
    /// [`Event::HostDropped`].
    HostDropped(u64),
    /// [`Event::Backlog`].
    Backlog(Backlog),
    /// [`Event::Offer`].
    Offer(u64),
    /// [`Event::End`].
    End,
    /// [`Event::Room`].
    Room(u64),
    /// [`Event::Finish`].
    Finish,
}

/// Bytes of a packet without a payload: IPv4, UDP and an experimental header.
pub const HEADER_SIZE: u64 = 28 + experimental::LEN as u64;

impl Script {
    /// Wants this at a time after its start. Times come in order.
    #[must_use]
    pub(super) fn at(mut self, after: Duration, action: Action) -> Script {
        self.plan.push_back((after, action));
        self
    }

    /// Wants what `reaction` puts out when something happens.
    #[must_use]
    pub(super) fn on(mut self, reaction: impl FnMut(&Event<'_>, &mut VecDeque<Action>) + Send + 'static) -> Script {
        self.reaction = Some(Box::new(reaction));
        self
    }

    /// What has happened to it so far, also while somebody else drives it.
    pub fn log(&self) -> Log {
        self.log.clone()
    }
}

impl Log {
    /// What happened, and when, from the start of the endpoint.
    pub fn seen(&self) -> Vec<(Duration, Seen)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Endpoint for Script {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        let elapsed = now.since(*self.start.get_or_insert(now));
        if let Some(seen) = Seen::of(&event) {
            self.log.0.lock().unwrap_or_else(PoisonError::into_inner).push((elapsed, seen));
        }
        if event == Event::Finish {
            self.finished = true;
            self.plan.clear();
        }
        if self.finished {
            return;
        }
        let due = self.plan.partition_point(|(after, _)| *after <= elapsed);
        self.out.extend(self.plan.drain(..due).map(|(_, action)| action));
        if let Some(reaction) = &mut self.reaction {
            reaction(&event, &mut self.out);
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.start? + self.plan.front()?.0)
    }
}

impl Seen {
    /// The event; `None` for a deadline, of which drivers may bring as many as they like, and for what is between managers and
    /// receivers.
    fn of(event: &Event<'_>) -> Option<Seen> {
        Some(match *event {
            Event::Reachable { at } => Seen::Reachable(at),
            Event::Start => Seen::Start,
            Event::Packet { from, packet } => Seen::Packet(from, *packet),
            Event::Deadline | Event::Allot(_) | Event::Priority { .. } | Event::FinishSession(_) => return None,
            Event::PeerUp(peer) => Seen::PeerUp(peer),
            Event::Reached { at, peer } => Seen::Reached(at, peer),
            Event::PeerDown(peer) => Seen::PeerDown(peer),
            Event::HostDropped { packets } => Seen::HostDropped(packets),
            Event::Backlog(backlog) => Seen::Backlog(backlog),
            Event::Offer { packets } => Seen::Offer(packets),
            Event::End => Seen::End,
            Event::Room { payloads } => Seen::Room(payloads),
            Event::Finish => Seen::Finish,
        })
    }

    /// Where the packet came from, and the tag and the number in it, if this is one.
    pub(super) fn tagged(&self) -> Option<(Origin, u8, u64)> {
        match self {
            Seen::Packet(from, packet) => tag(packet).map(|(tag, number)| (*from, tag, number)),
            _ => None,
        }
    }
}

/// A packet with a tag, a number, and room for a payload of the given length.
pub(super) fn packet(tag: u8, number: u64, payload: u64) -> Packet {
    let mut fields = [0; 16];
    fields[0] = tag;
    fields[8..].copy_from_slice(&number.to_be_bytes());
    let header = Header::Experimental(Experimental(fields));
    Packet { header, size: Bytes::new(HEADER_SIZE + payload), ecn: Ecn::NotEct }
}

/// The tag and the number of a packet.
pub(super) fn tag(packet: &Packet) -> Option<(u8, u64)> {
    let Header::Experimental(Experimental([tag, _, _, _, _, _, _, _, number @ ..])) = packet.header else {
        return None;
    };
    Some((tag, u64::from_be_bytes(number)))
}

/// Sends a header with a tag and a number.
pub(super) fn say(to: Destination, tag: u8, number: u64) -> Action {
    Action::send(to, packet(tag, number, 0))
}

/// Sends a packet with the payload that is kept under a number, which is in its header, too.
pub(super) fn send_kept(to: Destination, tag: u8, number: u64) -> Action {
    let packet = packet(tag, number, PAYLOAD_SIZE);
    Action::Send { to, packet, payload: Payload::Kept(number), with_next: false }
}

/// The first peer.
pub(super) const FIRST: Destination = Destination::Peer(PeerId(0));
/// Bytes of every payload that an application supplies.
pub(super) const PAYLOAD_SIZE: u64 = 200;
