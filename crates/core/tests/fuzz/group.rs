//! The parties of a scheme, and what is between them.

use std::collections::VecDeque;
use std::time::Duration;

use weir_core::{Destination, Event, Origin, Packet};
use weir_units::Time;

use crate::draw::{Draw, Operation};
use crate::extra::{self, Check};
use crate::party::{Party, Role};
use crate::relations::Relations;
use crate::setup::Setup;

/// Parties, and for each what others sent to it and has not arrived yet.
pub(crate) struct Group {
    now: Time,
    parties: Vec<Party>,
    to: Vec<VecDeque<(Origin, Packet)>>,
    relations: Relations,
    /// Nobody sends what no party has sent, and the first children stay.
    is_honest: bool,
    extra: Check,
}

impl Group {
    /// Parties that have started.
    pub(crate) fn new(setup: &Setup) -> Group {
        let parties: Vec<Party> = setup.parties().expect("the settings are accepted");
        let count = parties.len();
        let mut group = Group {
            now: Time::ZERO,
            relations: Relations::new(&parties),
            to: vec![VecDeque::new(); count],
            parties,
            is_honest: setup.is_honest,
            extra: extra::check(setup),
        };
        for index in 0..count {
            if let Some(payloads) = setup.room.filter(|_| group.parties[index].role == Role::Leaf) {
                group.handle(index, Event::Room { payloads });
            }
            group.handle(index, Event::Start);
        }
        group
    }

    /// The level of the party that has levels.
    pub(crate) fn level(&self) -> usize {
        self.parties[1].level
    }

    /// How many payloads all gave to their applications.
    pub(crate) fn delivered(&self) -> u64 {
        self.parties.iter().map(|party| party.delivered).sum()
    }

    /// What the bytes say.
    pub(crate) fn operate(&mut self, draw: &mut Draw<'_>) {
        let operation = Operation::of(draw.u8());
        let until = self.now + draw.span();
        let index = usize::from(draw.u8()) % self.parties.len();
        if operation == Operation::Run {
            let rounds = if self.relations.is_tree() { draw.u8() % 12 } else { 0 };
            for _ in 0..rounds {
                let (lost, disorder) = (draw.u8(), draw.u8());
                let waiting = &mut self.to[usize::from(lost) % self.parties.len()];
                waiting.remove(usize::from(lost) / 8);
                self.round(if disorder < 32 { disorder * 8 + 1 } else { 0 });
            }
            return self.run(self.now.max(until));
        }
        self.now = until;
        match operation {
            Operation::Deliver => self.deliver(index, draw.u8(), draw.u8()),
            Operation::Lose => {
                let waiting = &mut self.to[index];
                waiting.drain(..usize::from(draw.u8() % 8).min(waiting.len()));
            }
            Operation::Packet if self.is_honest => {}
            Operation::Packet => {
                let Some((from, packet)) = self.foreign_packet(index, draw) else { return };
                for event in self.relations.arrival(&self.parties[index], from, &packet) {
                    self.handle(index, event);
                }
            }
            _ => {
                let Some(event) = draw.event(operation) else { return };
                let event = if self.is_honest { honest(event) } else { Some(event) };
                let (party, is_final) = (&self.parties[index], !self.is_honest && draw.u8() < 8);
                let event = event.and_then(|event| self.relations.adapted(index, party, event, is_final));
                event.into_iter().for_each(|event| self.handle(index, event));
            }
        }
    }

    /// All are told to finish. The parties of an honest tree get the time to do what they are for before that; whether they
    /// did.
    pub(crate) fn finish(&mut self) -> bool {
        let concludes = self.is_honest && self.relations.is_tree() && !self.parties.iter().any(Party::is_finished);
        if concludes {
            self.conclude();
        }
        for index in 0..self.parties.len() {
            self.handle(index, Event::Finish);
        }
        self.catch_up();
        concludes
    }

    /// Nothing is lost any more, strangers go, the application has room for everything, and the stream ends: it must come to
    /// its end everywhere.
    fn conclude(&mut self) {
        for index in 0..self.parties.len() {
            for peer in self.relations.strangers(index, &self.parties[index]) {
                self.handle(index, Event::PeerDown(peer));
            }
            let event = match self.parties[index].role {
                Role::Root => Event::End,
                _ => Event::Room { payloads: u64::MAX },
            };
            self.handle(index, event);
        }
        for _ in 0..MOST_ROUNDS {
            if self.to.iter().all(VecDeque::is_empty) && self.is_complete() {
                break;
            }
            self.round(0);
        }
        let taken = self.parties[0].taken;
        for party in self.parties.iter().filter(|party| party.role != Role::Agent) {
            assert!(party.is_complete, "{}: {:?} does not come to the end: {party:?}", self.now, party.role);
            assert!(party.role == Role::Root || party.delivered == taken, "{} of {taken} payloads", party.delivered);
        }
    }

    /// All that is on its way arrives. Where nothing is, the next deadline
    /// comes.
    fn round(&mut self, disorder: u8) {
        for index in 0..self.parties.len() {
            self.deliver(index, u8::MAX, disorder);
        }
        if self.to.iter().all(VecDeque::is_empty) {
            let next = self.parties.iter().filter_map(Party::deadline).min();
            self.now = self.now.max(next.unwrap_or(self.now));
        }
        self.catch_up();
    }

    fn is_complete(&self) -> bool {
        self.parties.iter().filter(|party| party.role != Role::Agent).all(|party| party.is_complete)
    }

    /// Calls the party with the earliest deadline, until no deadline is left or the limit of calls is reached.
    fn run(&mut self, until: Time) {
        for _ in 0..MOST_CALLS {
            let dues = self.parties.iter().map(|party| party.deadline().filter(|at| *at <= until));
            let Some((at, index)) = dues.zip(0..).filter_map(|(at, index)| Some((at?, index))).min() else {
                break;
            };
            self.now = self.now.max(at);
            self.handle(index, Event::Deadline);
        }
        self.now = until;
        self.catch_up();
    }

    fn catch_up(&mut self) {
        for index in 0..self.parties.len() {
            let mut sent = Vec::new();
            self.parties[index].catch_up(self.now, |party| {
                (self.extra)(party);
                sent.extend_from_slice(&party.last.sent);
            });
            self.carry(index, &sent);
        }
    }

    /// What others sent arrives, packet after packet; what becomes due meanwhile is done. In a tree it may come out of order,
    /// and twice.
    fn deliver(&mut self, index: usize, packets: u8, disorder: u8) {
        for number in 0..packets {
            let is_odd = self.relations.is_tree() && number < disorder / 16;
            let place = if is_odd { usize::from(disorder) % self.to[index].len().max(1) } else { 0 };
            let Some((from, packet)) = self.to[index].remove(place) else { return };
            if is_odd && disorder & 1 == 1 {
                self.to[index].push_back((from, packet));
            }
            self.now += BETWEEN_PACKETS;
            for event in self.relations.arrival(&self.parties[index], from, &packet) {
                self.handle(index, event);
            }
            if self.parties[index].deadline().is_some_and(|at| at <= self.now) {
                self.handle(index, Event::Deadline);
            }
        }
    }

    /// A packet that nobody has sent: any, or in a tree one of those on their way with something else in it. To a tree nothing else comes from
    /// who is not there.
    fn foreign_packet(&self, index: usize, draw: &mut Draw<'_>) -> Option<(Origin, Packet)> {
        let waiting = &self.to[index];
        if self.relations.is_tree() && !waiting.is_empty() && draw.u8() & 1 == 1 {
            let (from, packet) = waiting[usize::from(draw.u8()) % waiting.len()];
            return Some((from, draw.corrupted(packet)));
        }
        let (from, packet) = draw.packet(self.now);
        let is_possible =
            !self.relations.is_tree() || self.parties[index].may_come(&Event::Packet { from, packet: &packet });
        is_possible.then_some((from, packet))
    }

    fn handle(&mut self, index: usize, event: Event<'_>) {
        self.parties[index].handle(self.now, event);
        (self.extra)(&self.parties[index]);
        let sent = std::mem::take(&mut self.parties[index].last.sent);
        self.carry(index, &sent);
    }

    /// What a party sent is on its way to the others, if these are to get it.
    fn carry(&mut self, from: usize, sent: &[(Destination, Packet)]) {
        for (other, to) in self.to.iter_mut().enumerate().filter(|(other, _)| *other != from) {
            let party = &self.parties[other];
            to.extend(sent.iter().filter_map(|(destination, packet)| match destination {
                Destination::Channel(channel) => {
                    party.members.contains(&channel.0).then_some((Origin::Channel(*channel), *packet))
                }
                _ => Some((self.relations.origin(from, other, party, *destination)?, *packet)),
            }));
            to.drain(..to.len().saturating_sub(MOST_ON_THE_WAY));
        }
    }
}

/// What may happen where nobody is hostile and the stream can come to its end.
fn honest(event: Event<'static>) -> Option<Event<'static>> {
    match event {
        Event::End => None,
        Event::Offer { packets } => Some(Event::Offer { packets: packets % 256 }),
        event => Some(event),
    }
}

/// On the way to some time.
const MOST_CALLS: usize = 50;

const BETWEEN_PACKETS: Duration = Duration::from_micros(100);

/// More is lost, oldest first.
const MOST_ON_THE_WAY: usize = 300;

/// Until a stream is at its end: a window a round is enough for all that is offered.
const MOST_ROUNDS: u32 = 100_000;
