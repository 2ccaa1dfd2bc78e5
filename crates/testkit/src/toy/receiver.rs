//! A receiver: gives payloads to the application in order, as far as that has room, and asks the agent for what is missing.

use weir_core::registry::Stream;
use weir_core::{Action, Endpoint, Event, Origin, Packet};
use weir_units::Time;

use super::arrivals::{Arrivals, WINDOW};
use super::header::Message;
use super::{ABOVE, CHANNEL, Outbox, REPORT_EVERY, TO_ABOVE};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Receiver {
    arrivals: Arrivals,
    /// The number of the next payload that is delivered.
    next: u64,
    /// How many the application takes from here on; without end until it says otherwise.
    room: u64,
    /// What the agent was told last: the sender may send lower numbers.
    limit: u64,
    end: Option<u64>,
    is_complete: bool,
    /// Whether something has come since the last regular report.
    has_heard: bool,
    /// When the next regular report is due, while the session runs.
    report: Option<Time>,
    out: Outbox,
}

impl Receiver {
    pub(super) fn new(stream: &Stream) -> Receiver {
        Receiver {
            arrivals: Arrivals::new(),
            next: 0,
            room: u64::MAX,
            limit: 0,
            end: None,
            is_complete: false,
            has_heard: false,
            report: None,
            out: Outbox::new(stream),
        }
    }

    fn on_packet(&mut self, packet: &Packet) {
        match Message::of(&packet.header) {
            Some(Message::Payload { number }) if self.arrivals.note(number) => {
                match number == self.next && self.room > 0 {
                    true => self.deliver(|number| Action::Deliver { number: Some(number) }),
                    false => self.out.push(Action::Keep { number }),
                }
            }
            Some(Message::End { number }) if self.arrivals.note(number) => self.end = Some(number),
            Some(Message::Gone { below }) if below > self.arrivals.next() => {
                self.arrivals.skip_to(below);
                self.next = below;
            }
            _ => return,
        }
        self.has_heard = true;
        self.go_on();
    }

    fn deliver(&mut self, action: impl Fn(u64) -> Action) {
        self.out.push(action(self.next));
        self.next += 1;
        self.room = self.room.saturating_sub(u64::from(self.room != u64::MAX));
    }

    /// Delivers what is kept and in order, says how it stands, and asks for what has turned out to be missing.
    fn go_on(&mut self) {
        while self.next < self.arrivals.next() && self.end != Some(self.next) && self.room > 0 {
            self.deliver(|number| Action::DeliverKept { number });
        }
        self.out.push(Action::Release { below: self.next });
        if self.end == Some(self.next) && !std::mem::replace(&mut self.is_complete, true) {
            self.out.push(Action::Complete);
        }
        self.tell();
        self.out.ask(self.arrivals.new_hole());
    }

    fn tell(&mut self) {
        self.limit = self.limit.max(self.next.saturating_add(self.room.min(WINDOW)));
        self.out.say(TO_ABOVE, Message::Report { next: self.arrivals.next(), limit: self.limit });
    }

    /// Reports may be lost, and what was lost last shows no hole: it is asked for when nothing comes any more.
    fn report(&mut self, now: Time) {
        self.report = Some(now + REPORT_EVERY);
        self.tell();
        let next = self.arrivals.next();
        let silent = (!std::mem::take(&mut self.has_heard) && self.end.is_none()).then_some(next..next + 1);
        self.out.ask(self.arrivals.hole().or(silent));
    }
}

impl Endpoint for Receiver {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start => {
                self.out.push(Action::Join(CHANNEL));
                self.report(now);
            }
            Event::Packet { from: Origin::Channel(CHANNEL) | Origin::Peer(ABOVE), packet } if self.report.is_some() => {
                self.on_packet(packet);
            }
            Event::Room { payloads } => {
                self.room = payloads;
                if self.report.is_some() {
                    self.go_on();
                }
            }
            Event::Deadline if self.report.is_some_and(|at| at <= now) => self.report(now),
            Event::PeerDown(ABOVE) | Event::Finish if self.report.take().is_some() => {
                self.out.push(Action::Leave(CHANNEL));
            }
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
