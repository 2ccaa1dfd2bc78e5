//! What a TCP would have in the receiver's place.

use core::time::Duration;

use weir_units::{Bytes, Rate, Time, math};

use super::queue::LEAST_QUEUE;
use crate::estimate::{Ewma, LossIntervals};
use crate::membership::LONGEST_LEAVE;
use crate::model::{cubic, reno};

/// Loss events, the round trip, and the rate of a TCP that had both.
#[derive(Debug)]
pub(super) struct Share {
    intervals: LossIntervals,
    /// When the latest loss event began.
    latest: Option<Time>,
    /// The queue in which it began.
    overflow: Overflow,
    /// When the latest congestions began, the newest first: loss events that follow each other within a leave's time are of one.
    congestions: [Option<Time>; REMEMBERED],
    /// Of the path when it is empty.
    round_trip: Duration,
    /// Mean queuing delay, seconds.
    queue: Ewma,
}

/// The queue in which a loss event began.
#[derive(Debug, Clone, Copy)]
enum Overflow {
    /// It has changed since, or there was none.
    Over,
    /// Packets waited so long, and no slot has ended since.
    Begun(Duration),
    /// They have waited about as long ever since.
    Stands(Duration),
}

impl Overflow {
    /// In the next slot they waited so long at least.
    fn after(self, least: Duration) -> Overflow {
        match self {
            Overflow::Begun(waited) | Overflow::Stands(waited) if least.abs_diff(waited) <= waited / 8 => {
                Overflow::Stands(waited)
            }
            _ => Overflow::Over,
        }
    }
}

impl Share {
    pub(super) const fn new(round_trip: Duration) -> Share {
        Share {
            intervals: LossIntervals::new(),
            latest: None,
            overflow: Overflow::Over,
            congestions: [None; REMEMBERED],
            round_trip,
            queue: Ewma::new(QUEUE_GAIN),
        }
    }

    /// R0: the round trip of the empty path is this.
    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    pub(super) fn on_received(&mut self) {
        self.intervals.on_received();
    }

    /// Over a slot, packets waited so long at least, and on average.
    pub(super) fn on_queue(&mut self, least: Duration, mean: Duration) {
        self.overflow = self.overflow.after(least);
        self.queue.update(mean.as_secs_f64());
    }

    /// A packet was lost to congestion, where packets `waited` so long. Returns whether a loss event begins with it: losses within 1.5 round
    /// trips of an event's first one belong to it, as a TCP's overflow lasts for up to two. So do those of three while the queue stays
    /// as it was: a TCP would have answered the first, and the queue would have fallen.
    pub(super) fn on_loss(&mut self, now: Time, waited: Duration) -> bool {
        let stands = matches!(self.overflow, Overflow::Stands(_));
        let round_trips = if stands { STANDING_ROUND_TRIPS } else { EVENT_ROUND_TRIPS };
        let span = self.round_trip_now().mul_f64(round_trips);
        if self.latest.is_some_and(|first| now.since(first) < span) {
            self.intervals.on_loss_within_event();
            return false;
        }
        self.intervals.on_loss_event();
        if self.latest.is_none_or(|latest| now.since(latest) > LONGEST_LEAVE) {
            self.congestions.rotate_right(1);
            self.congestions[0] = Some(now);
        }
        self.latest = Some(now);
        self.overflow = if waited < LEAST_QUEUE { Overflow::Over } else { Overflow::Begun(waited) };
        true
    }

    /// A packet was lost to congestion that has been answered, but the answer has not acted.
    pub(super) fn on_answered_loss(&mut self) {
        self.intervals.on_loss_within_event();
    }

    /// The receiver's rate has changed by this factor. Flows that share a queue lose packets in the same events, whatever their rates, so
    /// the history is rescaled to what it would be at the new rate.
    pub(super) fn on_rate_change(&mut self, factor: f64) {
        self.intervals.scale(factor);
    }

    /// The first loss event says when, not how often: the history begins with what a TCP would have that gets `rate`.
    pub(super) fn seed(&mut self, rate: Rate, packet_size: Bytes) {
        let p = self.loss_event_rate_of(rate.packets_per_sec(packet_size));
        self.intervals.seed(1.0 / p);
    }

    pub(super) const fn has_lost(&self) -> bool {
        self.latest.is_some()
    }

    /// When the latest loss event began.
    pub(super) const fn latest(&self) -> Option<Time> {
        self.latest
    }

    pub(super) const fn intervals(&self) -> &LossIntervals {
        &self.intervals
    }

    /// The rate of a TCP with these losses and this round trip. Before the first loss event that is one that loses the next packet.
    pub(super) fn rate(&self, packet_size: Bytes) -> Rate {
        Rate::from_packets_per_sec(self.packets_per_sec(self.loss_event_rate()), packet_size)
    }

    fn loss_event_rate(&self) -> f64 {
        let packets = self.intervals.discounted_average().unwrap_or(self.intervals.current());
        1.0 / packets.max(1.0)
    }

    /// The rate at which a TCP would be with loss events as often in time as here, whatever its own rate: f(p) at a rate of which
    /// they are p. Within a factor of [`FARTHEST`] of the receiver's `rate`.
    pub(super) fn settled_rate(&self, rate: Rate, packet_size: Bytes) -> Rate {
        let own = rate.packets_per_sec(packet_size);
        let p = self.loss_event_rate();
        let (mut low, mut high) = (own / FARTHEST, own * FARTHEST);
        for _ in 0..BISECTIONS {
            let middle = math::sqrt(low * high);
            if self.packets_per_sec(p * own / middle) > middle { low = middle } else { high = middle }
        }
        Rate::from_packets_per_sec(low, packet_size)
    }

    /// Mean time between the latest congestions; `None` before the second one. Loss events repeat while somebody's leave is on its way, and more
    /// of them hit who has more, which says nothing of how often the path is full.
    pub(super) fn mean_interval(&self) -> Option<Duration> {
        let known = self.congestions.iter().flatten().count();
        let (newest, oldest) = (self.congestions[0]?, self.congestions[..known].last().copied().flatten()?);
        (known > 1).then(|| newest.since(oldest) / (known - 1) as u32)
    }

    /// The better of Reno's and CUBIC's.
    fn packets_per_sec(&self, p: f64) -> f64 {
        let rtt = self.round_trip_now().as_secs_f64();
        let reno = reno::packets_per_sec(p, rtt, 4.0 * rtt);
        if p < CUBIC_BELOW { reno.max(cubic::packets_per_sec(p, rtt)) } else { reno }
    }

    /// The inverse, by bisection on a logarithmic scale.
    fn loss_event_rate_of(&self, packets_per_sec: f64) -> f64 {
        reno::invert(|p| self.packets_per_sec(p), packets_per_sec).max(LEAST_LOSS)
    }

    /// Average queuing delay of about a second.
    pub(super) fn queuing_delay(&self) -> Duration {
        Duration::from_secs_f64(self.queue.average().unwrap_or(0.0).clamp(0.0, 10.0))
    }

    /// R0, and what packets wait on the way.
    fn round_trip_now(&self) -> Duration {
        self.round_trip + self.queuing_delay()
    }
}

/// Of a slot's mean in the average: about a second counts.
const QUEUE_GAIN: f64 = 0.1;
/// Farther away nothing is said of what would be.
const FARTHEST: f64 = 4.0;
const BISECTIONS: u32 = 12;
/// Congestions whose times are remembered.
const REMEMBERED: usize = 4;
/// How long a loss event lasts, in round trips.
const EVENT_ROUND_TRIPS: f64 = 1.5;
/// The same at most, while the queue stays as it was.
const STANDING_ROUND_TRIPS: f64 = 3.0;
/// RFC 9438 §5.1 holds for rare losses.
const CUBIC_BELOW: f64 = 0.05;
const LEAST_LOSS: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1456);

    fn share(millis: u64) -> Share {
        Share::new(Duration::from_millis(millis))
    }

    #[test]
    fn a_seed_gives_the_rate_back() {
        for mbps in [1, 10, 100] {
            let mut share = share(40);
            share.on_loss(Time::from_secs(1), Duration::ZERO);
            share.seed(Rate::from_mbps(mbps), SIZE);
            let rate = share.rate(SIZE).bps() as f64 / 1e6;
            assert!((rate / mbps as f64 - 1.0).abs() < 0.01, "{rate}");
        }
    }

    #[test]
    fn losses_of_one_and_a_half_round_trips_are_one_event() {
        let mut share = share(100);
        let lose = |millis: u64| share.on_loss(Time::from_millis(1_000 + millis), Duration::ZERO);
        let events = [0, 100, 149, 150, 299, 300].map(lose);
        assert_eq!(events, [true, false, false, true, false, true]);
    }

    #[test]
    fn losses_of_three_round_trips_are_one_event_while_the_queue_stays_as_it_was() {
        let begins = |least, millis: u64| {
            let mut share = share(100);
            let waited = Duration::from_millis(80);
            assert!(share.on_loss(Time::from_millis(1_000), waited));
            share.on_queue(Duration::from_millis(least), Duration::ZERO);
            share.on_loss(Time::from_millis(1_000 + millis), waited)
        };
        assert_eq!([299, 300].map(|millis| begins(80, millis)), [false, true]);
        assert_eq!([149, 150].map(|millis| begins(60, millis)), [false, true], "it has fallen by a quarter");
        assert_eq!(
            [149, 150].map(|millis| begins(100, millis)),
            [false, true],
            "it has grown, as one that CoDel keeps short may"
        );
    }

    #[test]
    fn loss_events_that_follow_each_other_within_a_leave_s_time_are_one_congestion() {
        let mut share = share(10);
        let mut lose = |millis: u64| {
            share.on_loss(Time::from_millis(millis), Duration::ZERO);
            share.mean_interval().map(|mean| mean.as_millis())
        };
        assert_eq!([1_000, 2_000, 5_000, 8_500].map(&mut lose), [None; 4]);
        assert_eq!([21_000, 21_100, 41_000].map(lose), [Some(20_000); 3]);
    }

    #[test]
    fn a_queue_is_part_of_the_round_trip() {
        let mut share = share(40);
        let waited = Duration::from_millis(60);
        (0..100).for_each(|_| share.on_queue(waited, waited));
        assert!(share.round_trip_now().abs_diff(Duration::from_millis(100)) < Duration::from_micros(10));
    }

    #[test]
    fn rare_losses_are_cubic_s_and_frequent_ones_reno_s() {
        let share = share(100);
        assert!((share.packets_per_sec(1e-6) - cubic::packets_per_sec(1e-6, 0.1)).abs() < 1e-9);
        assert!((share.packets_per_sec(0.1) - reno::packets_per_sec(0.1, 0.1, 0.4)).abs() < 1e-9);
    }
}
