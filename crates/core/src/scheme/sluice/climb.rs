//! What a start-up burst tells a receiver: what its path carries.
//!
//! Which channels have such a burst depends on who asks for it, so the receiver goes by what arrives within the burst's length from its first packet on. That is the
//! burst, if nothing waited ever longer; else the path carries no more than that. Then the receiver waits for the rest of the burst, too: in a fair queue, which it shares
//! with others, the flows of a session do not wait for each other, and what comes first is more than its share.

use core::time::Duration;

use weir_units::{Bytes, Rate, Time};

use super::burst::Line;
use super::cycle::START_UP_BURST;

/// A start-up burst under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Climb {
    /// When its first packet came.
    first: Time,
    /// What came within its length after that, and all that counts.
    in_time: Arrived,
    all: Arrived,
    line: Line,
    /// The longest that a packet of its beginning waited, and that any did, seconds.
    waited_first: f64,
    waited: f64,
    /// The shortest that one sent later did.
    waited_least: f64,
}

/// Packets that arrived, and when the latest did.
#[derive(Debug, Clone, Copy)]
struct Arrived {
    packets: u64,
    latest: Time,
}

/// What it told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Carried {
    /// What the path carries, as far as the burst shows.
    pub(super) rate: Rate,
    /// The queue grew: the path carries no more than that.
    pub(super) is_full: bool,
}

impl Climb {
    /// Its first packet came.
    pub(super) fn new(now: Time) -> Climb {
        let nothing = Arrived { packets: 0, latest: now };
        Climb {
            first: now,
            in_time: nothing,
            all: nothing,
            line: Line::EMPTY,
            waited_first: 0.0,
            waited: 0.0,
            waited_least: f64::INFINITY,
        }
    }

    /// A packet of the burst arrived that was sent so long `since` its first one. Its delay exceeds that of the empty path, as known when the burst began, by `waited`
    /// seconds.
    pub(super) fn on_packet(&mut self, now: Time, since: Duration, waited: f64) {
        if self.is_over(now) {
            return;
        }
        self.all = Arrived { packets: self.all.packets + 1, latest: now };
        if now <= self.first + START_UP_BURST {
            self.in_time = self.all;
        }
        self.line.add(since.as_secs_f64(), waited);
        self.waited = self.waited.max(waited);
        if since < BEGINNING {
            self.waited_first = self.waited_first.max(waited);
        } else {
            self.waited_least = self.waited_least.min(waited);
        }
    }

    /// Whether what arrives now comes too late to count.
    pub(super) fn is_over(&self, now: Time) -> bool {
        now > self.until()
    }

    /// When it is over, and a host has read what has arrived by then.
    pub(super) fn deadline(&self) -> Time {
        self.until() + UNREAD
    }

    fn until(&self) -> Time {
        let is_long = self.in_time.packets < FEWEST_PACKETS || self.grows();
        self.first + if is_long { LONGEST } else { START_UP_BURST }
    }

    /// Whether some packets wait ever longer.
    fn grows(&self) -> bool {
        self.waited - self.waited_first > FULL_SLOPE * START_UP_BURST.as_secs_f64()
    }

    /// Whether some packets hardly wait while others do. In one queue that is so where the burst is at most twice what the path carries, and all of it is waited for.
    fn is_apart(&self) -> bool {
        self.grows() && self.waited_least < self.waited / 4.0
    }

    /// What the path carries. `None` if the burst had too few packets to tell.
    pub(super) fn carried(&self, packet_size: Bytes) -> Option<Carried> {
        if self.all.packets < FEWEST_PACKETS {
            return None;
        }
        let rate = |packets: u64, span: Duration| Bytes::new(packets * packet_size.count()).per(span);
        let counted = if self.in_time.packets < FEWEST_PACKETS { self.all } else { self.in_time };
        let span = counted.latest.since(self.first);
        // Of packets that follow each other at the path's rate, one is at the beginning of the time and one at its end. Those of a burst that is less come in a few heaps.
        let of_path = rate(counted.packets - 1, span.max(SHORTEST));
        let of_burst = rate(counted.packets, span.max(START_UP_BURST));
        let slope = self.line.slope().unwrap_or_default();
        let of_queue = rate(self.all.packets, START_UP_BURST).scale(1.0 / (1.0 + slope.max(0.0)));
        let together = of_path.min(of_burst);
        Some(Carried {
            rate: if self.is_apart() { together.min(of_queue) } else { together },
            is_full: slope > FULL_SLOPE,
        })
    }
}

/// Fewer tell of nothing but chance.
const FEWEST_PACKETS: u64 = 5;
/// 20 ms of a burst that is 8 % too much.
const FULL_SLOPE: f64 = 0.08;
/// They are waited for so long, and so is the rest of a burst that is too much. The next one may begin after 50 ms.
const LONGEST: Duration = Duration::from_millis(45);
/// The sender's first period, give or take half of one.
const BEGINNING: Duration = Duration::from_micros(2_500);
const SHORTEST: Duration = Duration::from_micros(1);
/// A packet is read so long after it arrived, at most.
const UNREAD: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const SIZE: Bytes = Bytes::new(1250);

    /// A burst of `sent` Mbit/s into a path that carries `mbps`, in periods of 5 ms.
    fn burst(sent: u64, mbps: u64) -> Option<Carried> {
        let mut climb = Climb::new(Time::from_millis(500));
        let mut free = Time::from_millis(500);
        for period in 0..4 {
            let due = Time::from_millis(500 + 5 * period);
            for _ in 0..sent / 2 {
                free = free.max(due) + SIZE / Rate::from_mbps(mbps);
                let arrives = free - SIZE / Rate::from_mbps(mbps);
                climb.on_packet(arrives, Duration::from_millis(5 * period), arrives.since(due).as_secs_f64());
            }
        }
        climb.carried(SIZE)
    }

    #[test]
    fn a_burst_that_the_path_carries_tells_its_rate_and_one_that_is_too_much_the_paths() {
        for (sent, mbps, expected) in
            [(20, 100, 20.0), (20, 21, 20.0), (40, 20, 20.0), (80, 20, 20.0), (200, 100, 100.0), (8, 2, 2.0)]
        {
            let carried = burst(sent, mbps).expect("enough packets");
            let rate = carried.rate.bps() as f64 / 1e6;
            assert!((rate / expected - 1.0).abs() < 0.03, "{sent} on {mbps}: {rate}");
            assert_eq!(carried.is_full, sent > mbps, "{sent} on {mbps}");
        }
        assert_eq!(burst(2, 100), None, "four packets");
    }

    #[test]
    fn of_flows_that_do_not_wait_for_each_other_it_waits_for_those_that_do() {
        let mut climb = Climb::new(Time::from_millis(500));
        let sent = |millis| Duration::from_millis(millis);
        let mut all: Vec<_> =
            (0..20).map(|at| (sent(at), sent(at))).chain((0..20).map(|at| (sent(at * 3), sent(at)))).collect();
        all.sort();
        for (arrives, sent) in all {
            // One flow's packets pass, and the other's wait ever longer.
            climb.on_packet(Time::from_millis(500) + arrives, sent, (arrives - sent).as_secs_f64());
        }
        assert_eq!(climb.deadline(), Time::from_millis(547));
        let carried = climb.carried(SIZE).expect("enough packets");
        // Ten Mbit/s of the one, and a third of the other's.
        assert!(carried.is_full && (12_000_000..13_400_000).contains(&carried.rate.bps()), "{carried:?}");
    }

    #[test]
    fn it_is_over_once_a_host_has_read_what_came_in_time_and_later_where_little_came() {
        let mut climb = Climb::new(Time::from_millis(500));
        assert_eq!(climb.deadline(), Time::from_millis(547));
        (0..5).for_each(|_| climb.on_packet(Time::from_millis(500), Duration::ZERO, 0.0));
        assert!(!climb.is_over(Time::from_millis(520)) && climb.is_over(Time::from_millis(521)));
        assert_eq!(climb.deadline(), Time::from_millis(522));
    }
}
