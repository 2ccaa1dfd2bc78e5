//! The agent: stores what the sender sends until all receivers have it, sends it to those who ask, and tells the sender how far
//! it may go.

use std::collections::BTreeMap;

use weir_core::registry::Stream;
use weir_core::{Action, Endpoint, Event, Origin, Packet, Payload, PeerId};
use weir_units::Time;

use super::arrivals::{Arrivals, WINDOW};
use super::header::Message;
use super::{ABOVE, CHANNEL, Outbox, REPORT_EVERY, TO_ABOVE, to};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Agent {
    arrivals: Arrivals,
    end: Option<u64>,
    receivers: BTreeMap<PeerId, Receiver>,
    /// The lowest number that a receiver lacks. Lower ones are not stored any more.
    floor: u64,
    /// What the sender was told: it may send lower numbers.
    limit: u64,
    /// A first receiver has come. The stream waits for it.
    has_begun: bool,
    is_done: bool,
    /// When the next regular report is due, while the session runs.
    report: Option<Time>,
    out: Outbox,
}

/// What a receiver has reported.
#[derive(Debug)]
struct Receiver {
    next: u64,
    limit: u64,
}

impl Agent {
    pub(super) fn new(stream: &Stream) -> Agent {
        Agent {
            arrivals: Arrivals::new(),
            end: None,
            receivers: BTreeMap::new(),
            floor: 0,
            limit: 0,
            has_begun: false,
            is_done: false,
            report: None,
            out: Outbox::new(stream),
        }
    }

    /// A packet of the stream, from the channel or sent again.
    fn on_stream(&mut self, packet: &Packet) {
        match Message::of(&packet.header) {
            Some(Message::Payload { number }) if self.arrivals.note(number) => self.out.push(Action::Keep { number }),
            Some(Message::End { number }) if self.arrivals.note(number) => self.end = Some(number),
            _ => return,
        }
        self.settle();
        self.tell();
        self.out.ask(self.arrivals.new_hole());
    }

    fn on_receiver(&mut self, peer: PeerId, packet: &Packet) {
        let Some(receiver) = self.receivers.get_mut(&peer) else { return };
        match Message::of(&packet.header) {
            Some(Message::Report { next, limit }) => {
                (receiver.next, receiver.limit) = (receiver.next.max(next), receiver.limit.max(limit));
                if self.settle() {
                    self.tell();
                }
            }
            Some(Message::Request { first, .. }) if first < self.floor => {
                self.out.say(to(peer), Message::Gone { below: self.floor });
            }
            Some(Message::Request { first, below }) => self.answer(peer, first, below),
            _ => {}
        }
    }

    /// Sends what of these numbers is stored, but not very many at once: the receiver will ask for the rest again.
    fn answer(&mut self, peer: PeerId, first: u64, below: u64) {
        for number in (first..below).take(AT_ONCE).filter(|number| self.arrivals.has(*number)) {
            match self.end == Some(number) {
                true => self.out.say(to(peer), Message::End { number }),
                false => self.out.send(to(peer), Message::Payload { number }, Payload::Kept(number)),
            }
        }
    }

    /// Finds out what nobody needs any more and how far the sender may go. Whether the sender should know.
    fn settle(&mut self) -> bool {
        let stored = self.arrivals.next();
        let everywhere = self.receivers.values().map(|receiver| receiver.next).min();
        let floor = everywhere.unwrap_or(if self.has_begun { stored } else { 0 }).min(stored);
        if floor > self.floor {
            self.floor = floor;
            self.out.push(Action::Release { below: floor });
        }
        if self.end.is_some_and(|end| end < self.floor) && !std::mem::replace(&mut self.is_done, true) {
            self.out.push(Action::Complete);
            return true;
        }
        let least = self.receivers.values().map(|receiver| receiver.limit).min();
        let least = least.unwrap_or(if self.has_begun { u64::MAX } else { 0 });
        let limit = least.min(self.floor + WINDOW);
        let is_higher = limit > self.limit;
        self.limit = self.limit.max(limit);
        is_higher
    }

    fn tell(&mut self) {
        let report = Message::Report { next: self.arrivals.next(), limit: self.limit };
        self.out.say(TO_ABOVE, if self.is_done { Message::Done } else { report });
    }

    /// Reports and requests may be lost.
    fn report(&mut self, now: Time) {
        self.report = Some(now + REPORT_EVERY);
        self.tell();
        self.out.ask(self.arrivals.hole());
    }

    /// The receivers below are others than before.
    fn change(&mut self, change: impl FnOnce(&mut Agent)) {
        change(self);
        if self.settle() {
            self.tell();
        }
    }
}

impl Endpoint for Agent {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start => {
                self.out.push(Action::Join(CHANNEL));
                self.report(now);
            }
            Event::PeerDown(ABOVE) | Event::Finish if self.report.take().is_some() => {
                self.out.push(Action::Leave(CHANNEL));
            }
            _ if self.report.is_none() => {}
            Event::PeerUp(peer) => self.change(|agent| {
                agent.has_begun = true;
                agent.receivers.insert(peer, Receiver { next: agent.floor, limit: 0 });
            }),
            Event::PeerDown(peer) => self.change(|agent| _ = agent.receivers.remove(&peer)),
            Event::Packet { from: Origin::Channel(CHANNEL) | Origin::Peer(ABOVE), packet } => self.on_stream(packet),
            Event::Packet { from: Origin::Peer(peer), packet } => self.on_receiver(peer, packet),
            Event::Deadline if self.report.is_some_and(|at| at <= now) => self.report(now),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Time> {
        self.report
    }
}

/// Payloads for one request.
const AT_ONCE: usize = 32;
