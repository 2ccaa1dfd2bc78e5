//! Bandwidth from the gap between packets that were sent back to back.
//!
//! Behind a link that serves its flows in turn, two packets of one flow that reach it together leave as far apart as the flow's
//! share of the link says (Keshav 1991). Which packets were sent together stands in their headers, as
//! PLM's sender marks them. Not here: what a receiver does with an estimate.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Rate, Time};

/// What a packet tells of the burst that it was sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InBurst {
    /// Whether it is the first packet of a burst.
    pub is_first: bool,
    /// Packets of the burst that follow it; what the header has no room for is left out.
    pub following: u16,
    /// Its number on its channel.
    pub sequence: u32,
}

/// The first two packets of each burst of a channel: a packet pair.
#[derive(Debug, Clone, Default)]
pub struct PacketPair {
    /// Number and arrival of a burst's first packet.
    first: Option<(u32, Time)>,
}

impl PacketPair {
    /// A packet of `size` came. Returns what the flow's share of the path is, if it is the second of a pair: its size over the
    /// gap. Packets that came at one instant tell nothing.
    ///
    /// Example: 1024 bytes 36.409 ms after the first give 225 kbit/s.
    pub fn on_packet(&mut self, now: Time, packet: InBurst, size: Bytes) -> Option<Rate> {
        if packet.is_first {
            self.first = Some((packet.sequence, now));
            return None;
        }
        let (first, at) = self.first.take()?;
        (packet.sequence == first.wrapping_add(1)).then(|| over(size.count(), now.since(at)))?
    }
}

/// A train of packets on a channel, judged by its tail.
///
/// A token bucket lets the first packets of a train through at the speed of its own link: only those that come after it is empty
/// are spaced by its rate. So the second half counts, and only if its two quarters agree. All packets of the session that
/// come meanwhile count as well, on whichever channel: they took part of the flow's share.
#[derive(Debug, Clone)]
pub struct PacketTrain {
    /// Arrival of each packet of the train, and what the session had received by then.
    arrivals: Vec<(Time, u64)>,
    /// Packets of the train that are to follow; `None` while none is under way.
    following: Option<u16>,
    /// Packets that come faster than one in this time come too fast for the host's time stamps.
    resolution: Duration,
}

impl PacketTrain {
    /// Before the first train.
    pub fn new(resolution: Duration) -> PacketTrain {
        PacketTrain { arrivals: Vec::new(), following: None, resolution }
    }

    /// A packet came, with which the session has received `received_bytes` in all. Returns what the flow's share of the path is,
    /// if a train is over and says so.
    pub fn on_packet(&mut self, now: Time, packet: InBurst, received_bytes: u64) -> Option<Rate> {
        if packet.is_first {
            self.arrivals.clear();
            self.following = (packet.following + 1 >= SHORTEST_TRAIN).then_some(packet.following);
        } else {
            // What the header has no room for stays the same for a while.
            let goes_on = self.following.is_some_and(|left| packet.following <= left);
            self.following = goes_on.then_some(packet.following);
        }
        self.following?;
        if self.arrivals.len() < LONGEST_TRAIN {
            self.arrivals.push((now, received_bytes));
        }
        if packet.following > 0 {
            return None;
        }
        self.following = None;
        self.tail_rate()
    }

    /// The rate of the train's second half. `None` if there is too little of it, its quarters differ, or it is too fast to tell.
    fn tail_rate(&self) -> Option<Rate> {
        let last = self.arrivals.len().checked_sub(1).filter(|last| *last + 1 >= usize::from(SHORTEST_TRAIN))?;
        let rate = |from: usize, to: usize| {
            let ((begun, before), (ended, after)) = (self.arrivals[from], self.arrivals[to]);
            over(after - before, ended.since(begun))
        };
        let (half, three_quarters) = (last / 2, last * 3 / 4);
        let (third, fourth) = (rate(half, three_quarters)?, rate(three_quarters, last)?);
        let differ = third.bps().abs_diff(fourth.bps()) as f64 > UNEVEN * third.max(fourth).bps() as f64;
        let span = self.arrivals[last].0.since(self.arrivals[half].0);
        let is_too_fast = span < self.resolution * (last - half) as u32;
        if differ || is_too_fast { None } else { rate(half, last) }
    }
}

/// The estimates of one period, of which the least counts.
#[derive(Debug, Clone, Default)]
pub struct Estimates {
    least: Option<Rate>,
    count: u64,
    /// Sum of the reciprocals, seconds per bit.
    reciprocals: f64,
}

impl Estimates {
    /// One more.
    pub fn add(&mut self, estimate: Rate) {
        self.least = Some(self.least.map_or(estimate, |least| least.min(estimate)));
        self.count += 1;
        self.reciprocals += 1.0 / estimate.bps().max(1) as f64;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least of them.
    pub fn least(&self) -> Option<Rate> {
        self.least
    }

    /// What came through on average: the mean gap is that of the share which the flow would have if it always had something to
    /// send, as other flows of the host leave part of theirs unused only part of the time. Example: 450 and 225 kbit/s in
    /// turn give 300.
    pub fn mean(&self) -> Option<Rate> {
        (self.count > 0).then(|| Rate::from_bps((self.count as f64 / self.reciprocals) as u64))
    }
}

/// The estimators of a session's channels.
#[derive(Debug, Clone)]
pub enum Bursts {
    /// By the first two packets of each burst.
    Pairs(Box<[PacketPair]>),
    /// By the tails of trains.
    Trains(Box<[PacketTrain]>),
}

impl Bursts {
    /// An estimator by pairs, for a session of this number of channels.
    pub fn pairs(channels: usize) -> Bursts {
        Bursts::Pairs((0..channels).map(|_| PacketPair::default()).collect())
    }

    /// An estimator by trains, for a session of this number of channels and time stamps of this resolution.
    pub fn trains(channels: usize, resolution: Duration) -> Bursts {
        Bursts::Trains((0..channels).map(|_| PacketTrain::new(resolution)).collect())
    }

    /// A packet of `size` came on a channel, with which the session has received `received_bytes` in all. Returns what the flow's share
    /// of the path is, if the packet ends a burst that tells.
    pub fn on_packet(
        &mut self,
        now: Time,
        channel: usize,
        packet: InBurst,
        size: Bytes,
        received_bytes: u64,
    ) -> Option<Rate> {
        match self {
            Bursts::Pairs(pairs) => pairs.get_mut(channel)?.on_packet(now, packet, size),
            Bursts::Trains(trains) => trains.get_mut(channel)?.on_packet(now, packet, received_bytes),
        }
    }
}

/// `bytes` over `span`, to the nearest bit a second; `None` for no time at all.
fn over(bytes: u64, span: Duration) -> Option<Rate> {
    let nanos = span.as_nanos();
    let scaled = u128::from(bytes) * 8_000_000_000;
    (nanos > 0).then(|| Rate::from_bps(u64::try_from((scaled + nanos / 2) / nanos).unwrap_or(u64::MAX)))
}

/// With fewer packets, a quarter of a train is less than two gaps.
const SHORTEST_TRAIN: u16 = 8;

/// Longer trains are judged by their first packets.
const LONGEST_TRAIN: usize = 512;

/// By how much the last quarters of a train may differ.
const UNEVEN: f64 = 0.15;

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(at: u64) -> Time {
        Time::from_micros(at)
    }

    fn packet(is_first: bool, following: u16, sequence: u32) -> InBurst {
        InBurst { is_first, following, sequence }
    }

    #[test]
    fn a_pair_tells_the_share_of_a_fair_queue() {
        let mut pair = PacketPair::default();
        let size = Bytes::new(1024);
        assert_eq!(pair.on_packet(micros(0), packet(true, 1, 7), size), None);
        assert_eq!(pair.on_packet(micros(36_409), packet(false, 0, 8), size), Some(Rate::from_bps(224_999)));
        assert_eq!(pair.on_packet(micros(40_000), packet(false, 0, 9), size), None, "the pair is over");
    }

    #[test]
    fn a_pair_that_misses_its_second_packet_tells_nothing() {
        let mut pair = PacketPair::default();
        let size = Bytes::new(1024);
        pair.on_packet(micros(0), packet(true, 1, 7), size);
        assert_eq!(pair.on_packet(micros(10), packet(false, 0, 9), size), None);
        assert_eq!(pair.on_packet(micros(10), packet(false, 0, 8), size), None);
        pair.on_packet(micros(20), packet(true, 1, u32::MAX), size);
        assert_eq!(pair.on_packet(micros(20), packet(false, 0, 0), size), None, "no time has passed");
    }

    /// What a train of `packets` of 1000 bytes tells that come these microseconds apart; the gap before packet n is `gap(n)`.
    fn train(packets: u16, resolution: u64, gap: impl Fn(u16) -> u64) -> Option<Rate> {
        let mut train = PacketTrain::new(Duration::from_micros(resolution));
        let (mut now, mut told) = (0, None);
        for n in 0..packets {
            now += gap(n);
            let burst = packet(n == 0, packets - 1 - n, u32::from(n));
            told = train.on_packet(micros(now), burst, u64::from(n + 1) * 1000);
        }
        told
    }

    #[test]
    fn of_a_train_through_a_token_bucket_the_tail_counts() {
        // 10 packets of a bucket at 1 Gbit/s, then 10 Mbit/s.
        let shaped = |n| if n < 10 { 8 } else { 800 };
        assert_eq!(train(32, 20, shaped), Some(Rate::from_mbps(10)));
        assert_eq!(train(16, 20, shaped), None, "the bucket was not empty at the half");
        assert_eq!(train(10, 20, shaped), None, "too fast for the time stamps");
        assert_eq!(train(10, 0, shaped), Some(Rate::from_mbps(1000)));
        assert_eq!(train(7, 0, shaped), None, "too short");
    }

    #[test]
    fn a_train_counts_what_came_between_its_packets() {
        let mut train = PacketTrain::new(Duration::ZERO);
        let told = (0..16_u16).map(|n| {
            let burst = packet(n == 0, 15 - n, u32::from(n));
            // Another channel's packet after each.
            train.on_packet(micros(u64::from(n) * 1600), burst, u64::from(n) * 2000)
        });
        assert_eq!(told.last().flatten(), Some(Rate::from_mbps(10)));
    }

    #[test]
    fn a_train_that_another_one_cuts_off_begins_again() {
        let mut train = PacketTrain::new(Duration::ZERO);
        for n in 0..5_u16 {
            train.on_packet(micros(u64::from(n) * 10), packet(n == 0, 15 - n, u32::from(n)), 0);
        }
        assert_eq!(
            train.on_packet(micros(100), packet(false, 12, 5), 0),
            None,
            "more follow than before: another train"
        );
        assert_eq!(train.on_packet(micros(110), packet(false, 0, 6), 0), None);
    }

    #[test]
    fn of_a_period_s_estimates_the_least_and_the_mean_gap_count() {
        let mut estimates = Estimates::default();
        assert_eq!((estimates.least(), estimates.mean(), estimates.count()), (None, None, 0));
        [450, 225].into_iter().for_each(|kbps| estimates.add(Rate::from_kbps(kbps)));
        assert_eq!((estimates.least(), estimates.count()), (Some(Rate::from_kbps(225)), 2));
        assert!(estimates.mean().expect("two").bps().abs_diff(300_000) <= 1);
    }
}
