//! The sender: the root of the tree. It sends what the current window and the advertised window allow.

use core::time::Duration;

use weir_units::{Seq, Time};

use crate::definition::Stream;
use weir_wire::mtcp::join::Join;

use crate::endpoint::{Action, Destination, Endpoint, Event, Header, Origin};
use crate::outbox::Outbox;

use super::child::Summary;
use super::config::Config;
use super::downlink::{Downlink, data};
use super::member::{CHANNEL, on_child};
use super::newcomers::Stock;
use super::path::Path;
use super::position::Position;

/// See the module's documentation.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    stream: Stream,
    downlink: Downlink,
    /// Payloads that the application offers; `u64::MAX` is a supply without end.
    offered: u64,
    has_ended: bool,
    end: Option<Seq>,
    next: Seq,
    released: Seq,
    /// When the next packet may go.
    free: Time,
    /// To the slowest node below, if the setting `predicts` wants that.
    path: Option<Path>,
    /// When it is to send, or to look again.
    due: Option<Time>,
    state: State,
    out: Outbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    /// Everyone has everything.
    Complete,
    Over,
}

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(stream: &Stream, config: Config) -> Sender {
        Sender {
            config,
            stream: *stream,
            downlink: Downlink::new(stream, config, true),
            offered: 0,
            has_ended: false,
            end: None,
            next: Seq::new(0),
            released: Seq::new(0),
            free: Time::ZERO,
            path: config.predicts.then(Path::default),
            due: None,
            state: State::Waiting,
            out: Outbox::default(),
        }
    }

    fn summary(&self) -> Summary {
        self.downlink.summary(Summary {
            min_cwnd: 0.0,
            max_twnd: 0.0,
            limit: Seq::new(self.released.value() + self.config.buffer),
            low_mark: self.next,
            receivers: 0,
            is_complete: false,
        })
    }

    /// Whether a packet may go: there is one, and neither the current window (§3.9) nor the advertised one is used up.
    fn may_send(&self, now: Time) -> bool {
        let has_payload = self.offered > 0 || (self.has_ended && self.end.is_none());
        if self.state != State::Running || !has_payload || !self.has_children() {
            return false;
        }
        let summary = self.summary();
        let is_current = summary.min_cwnd - summary.max_twnd >= 1.0;
        let has_room = self.path.as_ref().map_or(is_current, |path| {
            self.downlink.has_room() && summary.min_cwnd - summary.max_twnd - path.change(now) >= 1.0
        });
        has_room && self.next < summary.limit
    }

    fn send(&mut self, now: Time) {
        while self.may_send(now) && self.free <= now {
            let number = self.next;
            self.next = number.next();
            let Summary { min_cwnd, max_twnd, .. } = self.summary();
            if let Some(path) = &mut self.path {
                path.on_sent(now, max_twnd, min_cwnd);
            }
            if self.offered == 0 {
                (self.end, self.downlink.end) = (Some(number), Some(number));
            } else {
                self.offered -= u64::from(self.offered != u64::MAX);
                self.out.push(Action::Take { number: number.value() });
            }
            let stamp = now.as_micros() as u32;
            self.out.push(data(&self.stream, Destination::Channel(CHANNEL), number, stamp, false, self.end));
            self.downlink.on_data(now, number, stamp, true, &mut self.out);
            self.free = self.free.max(now - BURST) + self.gap();
        }
        let again = || self.path.as_ref()?.next_change(now);
        self.due = if self.may_send(now) { Some(self.free) } else { again() };
    }

    /// Between two packets: a little less than between two that are acknowledged, or than the window spreads over a round trip.
    /// The second lets a sender that was held up come back.
    fn gap(&self) -> Duration {
        let Some(delivered) = self.downlink.rate().filter(|_| self.config.paces) else { return Duration::ZERO };
        let ack_delay = self.config.ack_delay;
        // A window that is used is acknowledged as it comes, and not after the delay.
        let clocked = self.downlink.round_trip().map_or(ack_delay, |round_trip| round_trip + ack_delay.min(round_trip));
        let spread = |seconds: f64| self.summary().min_cwnd / seconds.max(1e-3);
        let rate = match self.path.as_ref().and_then(Path::round_trip) {
            Some(seconds) => spread(seconds),
            None => delivered.max(spread(clocked.as_secs_f64())),
        };
        let gain = if self.downlink.is_in_slow_start() { 2.0 } else { 1.25 };
        Duration::from_secs_f64((1.0 / (gain * rate)).min(MOST_GAP))
    }

    /// Whether the stream has begun, and somebody takes it.
    fn has_children(&self) -> bool {
        self.downlink.has_begun() && !self.downlink.children.is_empty()
    }

    fn settle(&mut self, now: Time) {
        let low = self.summary().low_mark;
        if low > self.released && self.has_children() {
            if let (Some(path), Some(sent)) = (&mut self.path, self.downlink.came(Seq::new(low.value() - 1))) {
                path.on_complete(now, sent);
            }
            self.released = low;
            self.downlink.forget(low, &mut self.out);
        }
        // Members that have left are served no more: perhaps nobody is left.
        let has_all = self.end.is_some() && self.downlink.is_complete();
        if has_all && self.state == State::Running {
            self.state = State::Complete;
            self.downlink.observe(&mut self.out);
            self.out.push(Action::Complete);
        }
    }
}

impl Endpoint for Sender {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start if self.state == State::Waiting => self.state = State::Running,
            Event::Finish => self.state = State::Over,
            Event::Reachable { at } => self.downlink.position = Position::of_sender(at),
            Event::PeerUp(child) => self.downlink.add(now, child, &mut self.out),
            Event::PeerDown(child) => self.downlink.remove(now, child),
            Event::Packet { from: Origin::Peer(child), packet } => {
                let stock = Stock { first: self.downlink.first, next: self.next };
                match &packet.header {
                    Header::TreeJoin(Join::Ask(ask)) => self.downlink.on_ask(now, child, ask, stock, &mut self.out),
                    header => on_child(&mut self.downlink, now, child, header, &mut self.out),
                }
            }
            Event::Offer { packets } => self.offered = self.offered.saturating_add(packets),
            Event::End => self.has_ended = true,
            Event::Deadline if self.state == State::Running => self.downlink.on_deadline(now, &mut self.out),
            _ => {}
        }
        self.settle(now);
        self.send(now);
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Time> {
        if self.state != State::Running {
            return None;
        }
        [self.due, self.downlink.deadline()].into_iter().flatten().min()
    }
}

/// Packets that were due up to this long ago may still go at once.
const BURST: Duration = Duration::from_millis(2);
/// Seconds.
const MOST_GAP: f64 = 1.0;
