//! Two parties of a scheme, and what is between them.

use std::collections::VecDeque;
use std::time::Duration;

use weir_core::{Destination, Event, Origin, Packet, PeerId};
use weir_units::Time;

use crate::draw::{Draw, Operation};
use crate::extra::{self, Check};
use crate::party::{Party, Role};
use crate::setup::Setup;

/// Two parties, and for each what the other one sent and has not arrived yet.
pub(crate) struct Pair {
    now: Time,
    parties: [Party; 2],
    to: [VecDeque<(Origin, Packet)>; 2],
    extra: Check,
}

impl Pair {
    /// Two parties that have started.
    pub(crate) fn new(setup: &Setup) -> Pair {
        let channels = setup.channels();
        let parties = setup.build().expect("the settings are accepted");
        let parties = parties.map(|(role, endpoint)| Party::new(role, endpoint, channels));
        let to = [VecDeque::new(), VecDeque::new()];
        let mut pair = Pair { now: Time::ZERO, parties, to, extra: extra::check(setup) };
        pair.handle(0, Event::Start);
        pair.handle(1, Event::Start);
        pair
    }

    /// The level of the party that has levels.
    pub(crate) fn level(&self) -> usize {
        self.parties[1].level
    }

    /// How many payloads both gave to their applications.
    pub(crate) fn delivered(&self) -> u64 {
        self.parties.iter().map(|party| party.delivered).sum()
    }

    /// What the bytes say.
    pub(crate) fn operate(&mut self, draw: &mut Draw<'_>) {
        let operation = Operation::of(draw.u8());
        let until = self.now + draw.span();
        let index = usize::from(draw.u8() & 1);
        if operation == Operation::Run {
            return self.run(until);
        }
        self.now = until;
        match operation {
            Operation::Deliver => self.deliver(index, draw.u8()),
            Operation::Lose => _ = self.to[index].drain(..usize::from(draw.u8() % 8).min(self.to[index].len())),
            Operation::Packet => {
                let (from, packet) = draw.packet(self.now);
                self.handle(index, Event::Packet { from, packet: &packet });
            }
            _ => draw.event(operation).into_iter().for_each(|event| self.handle(index, event)),
        }
    }

    /// Both are told to finish.
    pub(crate) fn finish(&mut self) {
        for index in [0, 1] {
            self.handle(index, Event::Finish);
        }
        self.catch_up();
    }

    /// Calls the party with the earliest deadline, until no deadline is left or the limit of calls is reached.
    fn run(&mut self, until: Time) {
        for _ in 0..MOST_CALLS {
            let dues = [0, 1].map(|index| self.parties[index].deadline().filter(|at| *at <= until));
            let Some((at, index)) = dues.into_iter().zip([0, 1]).filter_map(|(at, index)| Some((at?, index))).min()
            else {
                break;
            };
            self.now = self.now.max(at);
            self.handle(index, Event::Deadline);
        }
        self.now = until;
        self.catch_up();
    }

    fn catch_up(&mut self) {
        for index in [0, 1] {
            let mut sent = Vec::new();
            self.parties[index].catch_up(self.now, |party| {
                (self.extra)(party);
                sent.extend_from_slice(&party.last.sent);
            });
            self.carry(index, &sent);
        }
    }

    /// What the other one sent arrives, packet after packet; what becomes due meanwhile is done.
    fn deliver(&mut self, index: usize, packets: u8) {
        for _ in 0..packets {
            let Some((from, packet)) = self.to[index].pop_front() else { return };
            self.now += BETWEEN_PACKETS;
            self.handle(index, Event::Packet { from, packet: &packet });
            if self.parties[index].deadline().is_some_and(|at| at <= self.now) {
                self.handle(index, Event::Deadline);
            }
        }
    }

    fn handle(&mut self, index: usize, event: Event<'_>) {
        self.parties[index].handle(self.now, event);
        (self.extra)(&self.parties[index]);
        let sent = std::mem::take(&mut self.parties[index].last.sent);
        self.carry(index, &sent);
    }

    /// What a party sent is on its way to the other one, if that is to get it.
    fn carry(&mut self, from: usize, sent: &[(Destination, Packet)]) {
        let (to, other) = (&mut self.to[1 - from], &self.parties[1 - from]);
        to.extend(sent.iter().filter_map(|(destination, packet)| match destination {
            Destination::Channel(channel) if other.members.contains(&channel.0) => {
                Some((Origin::Channel(*channel), *packet))
            }
            Destination::Channel(_) => None,
            // Nobody has told the sender of a session who its receivers are.
            Destination::Peer(_) if other.role == Role::Sender => Some((Origin::Unverified, *packet)),
            Destination::Peer(_) | Destination::Reply => Some((Origin::Peer(PeerId(0)), *packet)),
        }));
        to.drain(..to.len().saturating_sub(MOST_ON_THE_WAY));
    }
}

/// On the way to some time.
const MOST_CALLS: usize = 50;

const BETWEEN_PACKETS: Duration = Duration::from_micros(100);

/// More is lost, oldest first.
const MOST_ON_THE_WAY: usize = 300;
