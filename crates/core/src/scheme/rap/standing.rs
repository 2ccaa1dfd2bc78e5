//! Whether packets stand in a queue: what tells a loss to a full queue from one of the path's own (decision 23).

use core::time::Duration;

use weir_units::Time;

use crate::estimate::Extreme;

/// Round trips above the path's own, and packets that were lost, of late.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    /// The path's own round trip.
    own: Extreme<Duration>,
    /// The least round trip of late: what stands for that long is no burst.
    lately: Extreme<Duration>,
    longest: Extreme<Duration>,
    newest: Duration,
    counts: Counts,
}

impl Standing {
    pub(super) fn new() -> Standing {
        Standing {
            own: Extreme::new(Duration::min),
            lately: Extreme::new(Duration::min),
            longest: Extreme::new(Duration::max),
            newest: Duration::ZERO,
            counts: Counts::default(),
        }
    }

    /// A round trip was measured; the smoothed one is given in seconds.
    pub(super) fn sample(&mut self, now: Time, round_trip: Duration, smoothed: f64) {
        self.newest = round_trip;
        self.own.take(now, OWN_FOR, round_trip);
        self.lately.take(now, LATELY.max(Duration::from_secs_f64(smoothed / 2.0)), round_trip);
        self.longest.take(now, LONGEST_OF, round_trip);
    }

    /// A packet came.
    pub(super) fn acknowledged(&mut self, now: Time) {
        self.counts.turn(now);
        self.counts.now.0 += 1;
    }

    /// So many packets were lost; tells whether that is a sign of congestion.
    pub(super) fn is_congestion(&mut self, now: Time, lost: u64) -> bool {
        self.counts.turn(now);
        self.counts.now.1 += lost;
        let own = self.own.value().unwrap_or_default();
        let queue = |round_trip: Option<Duration>| round_trip.unwrap_or_default().saturating_sub(own);
        let longest = queue(self.longest.value());
        queue(self.lately.value()) >= LEAST_QUEUE
            || longest >= LEAST_QUEUE && queue(Some(self.newest)) >= longest.mul_f64(FULL)
            || self.counts.are_many()
    }

    /// The path may be another.
    pub(super) fn forget(&mut self) {
        *self = Standing::new();
    }
}

/// Packets that came and packets that were lost, in this second and the one before.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    began: Time,
    before: (u64, u64),
    now: (u64, u64),
}

impl Counts {
    fn turn(&mut self, now: Time) {
        let passed = now.since(self.began);
        if passed >= COUNTED {
            self.before = if passed < COUNTED * 2 { self.now } else { (0, 0) };
            (self.began, self.now) = (now, (0, 0));
        }
    }

    /// Whether more than [`MOST_OWN`] of all is lost, and no chance explains it: two standard deviations more.
    fn are_many(&self) -> bool {
        let lost = (self.before.1 + self.now.1) as f64;
        let all = (self.before.0 + self.now.0) as f64 + lost;
        let (expected, variance) = (all * MOST_OWN, all * MOST_OWN * (1.0 - MOST_OWN));
        let beyond = lost - expected;
        beyond > 0.0 && beyond * beyond > 4.0 * variance
    }
}

/// For how long at least the least round trip is the path's own: it is forgotten when it has not been seen for that long.
const OWN_FOR: Duration = Duration::from_secs(300);
const LATELY: Duration = Duration::from_millis(50);
const LONGEST_OF: Duration = Duration::from_secs(10);
const COUNTED: Duration = Duration::from_secs(1);
/// A queue counts from here on: less than half of what CoDel lets stand (RFC 8289 §4.4), and more than a host's own delays.
const LEAST_QUEUE: Duration = Duration::from_millis(2);
/// A packet that waited for this part of the longest queue met a full one.
const FULL: f64 = 0.7;
/// The path's own losses are at most this part; more is congestion whether a queue stands or not.
const MOST_OWN: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of packets 5 ms apart with this round trip in milliseconds; each `every`th is lost. Gives how many losses are congestion.
    fn congestions(round_trip: impl Fn(u64) -> u64, every: u64) -> (u64, u64) {
        let mut standing = Standing::new();
        let (mut congestions, mut losses) = (0, 0);
        for packet in 0..2_000 {
            let now = Time::ZERO + Duration::from_millis(5 * packet);
            if packet % every == every - 1 {
                losses += 1;
                congestions += u64::from(standing.is_congestion(now, 1));
            } else {
                standing.acknowledged(now);
                standing.sample(now, Duration::from_millis(round_trip(packet)), 0.04);
            }
        }
        (congestions, losses)
    }

    #[test]
    fn losses_without_a_queue_are_the_paths_own() {
        assert_eq!(congestions(|_| 40, 50), (0, 40));
        // Three packets of four see some other's short burst.
        assert_eq!(congestions(|packet| if packet % 4 == 0 { 40 } else { 41 }, 50), (0, 40));
    }

    #[test]
    fn losses_behind_a_standing_queue_are_congestion() {
        let (congestions, losses) = congestions(|packet| if packet < 100 { 40 } else { 43 + packet % 10 }, 50);
        assert!(congestions >= losses - 3, "{congestions} of {losses}");
    }

    #[test]
    fn losses_at_the_peaks_of_a_short_buffer_are_congestion() {
        // A sawtooth up to 5 ms, empty again each 100 ms; the last packet before it empties is lost.
        let (congestions, losses) = congestions(|packet| 40 + packet % 20 / 4, 20);
        assert!(congestions >= losses - 2, "{congestions} of {losses}");
    }

    #[test]
    fn more_losses_than_a_path_has_of_its_own_are_congestion() {
        let (congestions, losses) = congestions(|_| 40, 9);
        assert!(congestions >= losses - 20, "{congestions} of {losses}");
    }

    #[test]
    fn a_route_that_has_become_longer_is_believed_after_ten_minutes_at_most() {
        let mut standing = Standing::new();
        for second in 0..700 {
            let now = Time::ZERO + Duration::from_secs(second);
            for _ in 0..100 {
                standing.acknowledged(now);
            }
            standing.sample(now, Duration::from_millis(if second < 10 { 40 } else { 60 }), 0.04);
            let wanted = (11..300).contains(&second);
            if wanted || !(10..612).contains(&second) {
                assert_eq!(standing.is_congestion(now, 1), wanted, "after {second} s");
            }
        }
    }
}
