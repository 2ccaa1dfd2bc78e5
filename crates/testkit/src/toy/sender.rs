//! The sender: numbers what the application offers, sends it to all, and again to the agent until that has it.

use std::ops::Range;
use std::time::Duration;

use weir_core::registry::Stream;
use weir_core::{Action, Destination, Endpoint, Event, Origin, Packet, Payload, PeerId};
use weir_units::Time;

use super::header::Message;
use super::{Outbox, TO_ALL, to};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Sender {
    /// The first correspondent that has come.
    agent: Option<PeerId>,
    /// Payloads that the application has and that were not taken.
    offered: u64,
    has_ended: bool,
    /// The number that the next payload gets.
    next: u64,
    /// The number of the end, once it has been sent.
    end: Option<u64>,
    /// The agent has all lower numbers.
    acknowledged: u64,
    /// Lower numbers may be sent.
    limit: u64,
    /// What the agent asks for.
    again: Range<u64>,
    /// When the next packet may go.
    free: Time,
    /// When the oldest number that is not acknowledged goes again.
    timeout: Time,
    is_over: bool,
    out: Outbox,
}

impl Sender {
    pub(super) fn new(stream: &Stream) -> Sender {
        Sender {
            agent: None,
            offered: 0,
            has_ended: false,
            next: 0,
            end: None,
            acknowledged: 0,
            limit: 0,
            again: 0..0,
            free: Time::ZERO,
            timeout: Time::ZERO,
            is_over: false,
            out: Outbox::new(stream),
        }
    }

    fn on_packet(&mut self, now: Time, packet: &Packet) {
        match Message::of(&packet.header) {
            Some(Message::Report { next, limit }) => {
                let next = next.min(self.next);
                if next > self.acknowledged {
                    (self.acknowledged, self.timeout) = (next, now + TIMEOUT);
                    self.out.push(Action::Release { below: next });
                }
                self.limit = self.limit.max(limit);
            }
            Some(Message::Request { first, below }) => self.again = first..below.min(self.next),
            Some(Message::Done) if self.end.is_some() && !self.is_over => {
                self.is_over = true;
                self.out.push(Action::Complete);
            }
            _ => {}
        }
    }

    /// Sends a packet, if it is time for one.
    fn send(&mut self, now: Time) {
        let Some(agent) = self.agent.filter(|_| !self.is_over && now >= self.free) else { return };
        self.again.start = self.again.start.max(self.acknowledged);
        if let Some(number) = self.again.next() {
            self.send_number(number, to(agent));
        } else if self.acknowledged < self.next && now >= self.timeout {
            self.timeout = now + TIMEOUT;
            self.send_number(self.acknowledged, to(agent));
        } else if self.has_new() {
            if self.acknowledged == self.next {
                self.timeout = now + TIMEOUT;
            }
            if self.offered > 0 {
                self.offered -= 1;
                self.out.push(Action::Take { number: self.next });
            } else {
                self.end = Some(self.next);
            }
            self.next += 1;
            self.send_number(self.next - 1, TO_ALL);
        } else {
            return;
        }
        self.free = now + GAP;
    }

    fn send_number(&mut self, number: u64, to: Destination) {
        match self.end == Some(number) {
            true => self.out.say(to, Message::End { number }),
            false => self.out.send(to, Message::Payload { number }, Payload::Kept(number)),
        }
    }

    /// Whether there is a payload that may be sent, or the end. The end takes no room.
    fn has_new(&self) -> bool {
        let is_allowed = self.offered > 0 && self.next < self.limit;
        is_allowed || (self.has_ended && self.offered == 0 && self.end.is_none())
    }
}

impl Endpoint for Sender {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::PeerUp(peer) => _ = self.agent.get_or_insert(peer),
            Event::Packet { from: Origin::Peer(peer), packet } if self.agent == Some(peer) => {
                self.on_packet(now, packet);
            }
            Event::Offer { packets } => self.offered = self.offered.saturating_add(packets),
            Event::End => self.has_ended = true,
            Event::PeerDown(peer) if self.agent == Some(peer) => self.is_over = true,
            Event::Finish => self.is_over = true,
            _ => {}
        }
        self.send(now);
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Time> {
        self.agent.filter(|_| !self.is_over)?;
        if self.has_new() || !self.again.is_empty() {
            return Some(self.free);
        }
        (self.acknowledged < self.next).then_some(self.timeout.max(self.free))
    }
}

/// Between two packets.
const GAP: Duration = Duration::from_millis(1);
/// The agent has said nothing new for so long.
const TIMEOUT: Duration = Duration::from_millis(200);
