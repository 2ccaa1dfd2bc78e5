//! The receiving end: acknowledges every segment, says what arrived out of order, echoes congestion marks.

use std::time::Duration;

use weir_units::Time;

use super::bit_ring::BitRing;
use super::{Config, Kind, Segment};

/// Blocks that are remembered. More than an acknowledgement holds, since blocks grow together.
const REMEMBERED: usize = 6;

/// The receiving end of a connection. It takes everything in: the receiver's window is the sender's to keep.
#[derive(Debug, Clone)]
pub struct Sink {
    selective: bool,
    ecn: bool,
    delay: Option<Duration>,
    /// Acknowledgements that are still not delayed.
    quick: u32,
    /// The lowest segment that has not arrived.
    next: u64,
    beyond: BitRing,
    /// A segment of each block that was reported lately, the latest first.
    recent: [u64; REMEMBERED],
    recent_count: usize,
    /// The timestamp to echo (`TS.Recent`, RFC 7323 §4.3).
    echo: Time,
    /// In-order segments that are not acknowledged yet.
    unacknowledged: u32,
    ack_at: Option<Time>,
    congested: bool,
    received: u64,
}

impl Sink {
    /// A sink for a sender of this configuration.
    pub fn new(config: &Config) -> Sink {
        Sink {
            selective: config.is_selective(),
            ecn: config.ecn,
            delay: config.delayed_ack,
            quick: config.quick_acks,
            next: 0,
            beyond: BitRing::default(),
            recent: [0; REMEMBERED],
            recent_count: 0,
            echo: Time::ZERO,
            unacknowledged: 0,
            ack_at: None,
            congested: false,
            received: 0,
        }
    }

    /// A data segment has come, `ce` if with a congestion mark.
    #[inline]
    pub fn receive(&mut self, now: Time, segment: &Segment, ce: bool, out: &mut impl FnMut(Segment)) {
        if segment.kind != Kind::Data {
            return;
        }
        self.received += 1;
        if self.ecn {
            // A mark on the segment that announces the reduction is a new one (RFC 3168 §6.1.3).
            self.congested = ce || (self.congested && !segment.window_reduced);
        }
        if self.unacknowledged == 0 && segment.seq <= self.next {
            self.echo = segment.sent;
        }
        if segment.seq == self.next && self.beyond.top() <= self.next {
            self.next += 1;
            match self.delay {
                None => self.acknowledge(out),
                Some(delay) => self.acknowledge_later(now, delay, out),
            }
        } else {
            self.receive_out_of_order(segment.seq);
            self.acknowledge(out);
        }
    }

    /// A deadline may have passed.
    pub fn expire(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.acknowledge(out);
        }
    }

    /// When [`Sink::expire`] is wanted, if nothing else happens.
    pub fn deadline(&self) -> Option<Time> {
        self.ack_at
    }

    /// Segments that have arrived, all of them from the first on.
    pub fn in_order(&self) -> u64 {
        self.next
    }

    /// Segments that have come, duplicates included.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn receive_out_of_order(&mut self, seq: u64) {
        if seq > self.next {
            self.beyond.insert(seq, seq + 1, |_, _| {});
            self.remember(seq);
        } else if seq == self.next {
            self.next = self.beyond.first_absent(seq + 1);
            self.beyond.advance(self.next);
        }
    }

    /// Puts the block of `seq` first and forgets what has become part of it.
    fn remember(&mut self, seq: u64) {
        let (start, end) = (self.beyond.run_start(seq), self.beyond.first_absent(seq));
        let others = self.recent;
        let mut count = 1;
        for other in &others[..self.recent_count] {
            if !(start..end).contains(other) && count < REMEMBERED {
                self.recent[count] = *other;
                count += 1;
            }
        }
        self.recent[0] = seq;
        self.recent_count = count;
    }

    /// Every second in-order segment, or when the delay is over (RFC 5681 §4.2).
    fn acknowledge_later(&mut self, now: Time, delay: Duration, out: &mut impl FnMut(Segment)) {
        self.unacknowledged += 1;
        if self.unacknowledged >= 2 || self.congested || self.quick > 0 {
            self.acknowledge(out);
        } else {
            self.ack_at = Some(now + delay);
        }
    }

    #[inline]
    fn acknowledge(&mut self, out: &mut impl FnMut(Segment)) {
        self.unacknowledged = 0;
        self.quick = self.quick.saturating_sub(1);
        self.ack_at = None;
        let mut ack = Segment::ack(self.next, self.echo);
        ack.ecn_echo = self.congested;
        if self.selective && self.beyond.top() > self.next {
            self.report_blocks(&mut ack);
        }
        out(ack);
    }

    /// The block of the latest segment first, then those reported before it (RFC 2018 §4).
    fn report_blocks(&self, ack: &mut Segment) {
        let known = self.recent[..self.recent_count].iter().filter(|seq| **seq >= self.next);
        for (place, seq) in known.take(3).enumerate() {
            ack.set_sack(place, self.beyond.run_start(*seq), self.beyond.first_absent(*seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Flavour;

    /// The cumulative acknowledgement and the blocks.
    type Answer = (u64, Vec<(u64, u64)>);

    fn sink(config: Config) -> impl FnMut(u64) -> Option<Answer> {
        let mut sink = Sink::new(&config);
        move |seq| {
            let mut answer = None;
            let at = Time::from_millis(seq);
            sink.receive(at, &Segment::data(seq, at), false, &mut |ack| {
                answer = Some((ack.seq, ack.sack_blocks().collect()));
            });
            answer
        }
    }

    #[test]
    fn blocks_are_reported_the_latest_first_and_grow_together() {
        let mut receive = sink(Config::ns2(Flavour::Sack));
        assert_eq!(receive(0), Some((1, vec![])));
        assert_eq!(receive(2), Some((1, vec![(2, 3)])));
        assert_eq!(receive(4), Some((1, vec![(4, 5), (2, 3)])));
        assert_eq!(receive(6), Some((1, vec![(6, 7), (4, 5), (2, 3)])));
        assert_eq!(receive(8), Some((1, vec![(8, 9), (6, 7), (4, 5)])));
        assert_eq!(receive(5), Some((1, vec![(4, 7), (8, 9), (2, 3)])), "the oldest comes up again");
        assert_eq!(receive(1), Some((3, vec![(4, 7), (8, 9)])));
        assert_eq!(receive(3), Some((7, vec![(8, 9)])));
        assert_eq!(receive(7), Some((9, vec![])));
        assert_eq!(receive(7), Some((9, vec![])), "what is there already is acknowledged again");
    }

    #[test]
    fn without_sack_only_the_number_is_told() {
        let mut receive = sink(Config::ns2(Flavour::NewReno));
        assert_eq!(receive(1), Some((0, vec![])));
        assert_eq!(receive(0), Some((2, vec![])));
    }

    #[test]
    fn a_delayed_acknowledgement_waits_for_a_second_segment_but_not_out_of_order() {
        let config = Config { delayed_ack: Some(Duration::from_millis(100)), ..Config::ns2(Flavour::NewReno) };
        let mut receive = sink(config);
        assert_eq!(receive(0), None);
        assert_eq!(receive(1), Some((2, vec![])));
        assert_eq!(receive(3), Some((2, vec![])));
        assert_eq!(receive(2), Some((4, vec![])), "a hole that is filled is told at once");
    }

    #[test]
    fn a_delayed_acknowledgement_goes_when_its_time_has_come() {
        let config = Config { delayed_ack: Some(Duration::from_millis(100)), ..Config::ns2(Flavour::NewReno) };
        let mut sink = Sink::new(&config);
        sink.receive(Time::ZERO, &Segment::data(0, Time::ZERO), false, &mut |_| panic!("too early"));
        assert_eq!(sink.deadline(), Some(Time::from_millis(100)));
        sink.expire(Time::from_millis(99), &mut |_| panic!("too early"));
        let mut acks = Vec::new();
        sink.expire(Time::from_millis(100), &mut |ack| acks.push(ack.seq));
        assert_eq!((acks, sink.deadline()), (vec![1], None));
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_says_that_it_has_reduced() {
        let mut sink = Sink::new(&Config { ecn: true, ..Config::ns2(Flavour::NewReno) });
        let mut echo = |seq, ce, window_reduced| {
            let mut seen = false;
            let mut segment = Segment::data(seq, Time::ZERO);
            segment.window_reduced = window_reduced;
            sink.receive(Time::ZERO, &segment, ce, &mut |ack| seen = ack.ecn_echo);
            seen
        };
        assert!(!echo(0, false, false));
        assert!(echo(1, true, false));
        assert!(echo(2, false, false));
        assert!(!echo(3, false, true));
        assert!(echo(4, true, true), "marked again on the way");
    }
}
