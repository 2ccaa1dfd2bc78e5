//! What a burst in the channels that a receiver has tells it: whether so much fits, and what the path carries.

use core::time::Duration;

use weir_units::{Bytes, Rate};

use super::cycle::Burst;

/// A burst under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measuring {
    kind: Burst,
    /// The highest level that sees the next one in it, if there is one.
    limit: Option<usize>,
    /// The rate at which the receiver's channels are sent in it, and for how long.
    rate: Rate,
    length: Duration,
    /// The sender's clock when it began, in microseconds modulo 2^32.
    begun: u32,
    packets: u64,
    line: Line,
    /// The least delay of what came after it on other channels, seconds.
    after: Option<f64>,
}

/// What a burst told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Verdict {
    pub(super) kind: Burst,
    /// The highest level that saw the next one, if there was one.
    pub(super) limit: Option<usize>,
    /// The rate of the burst, and its length.
    pub(super) rate: Rate,
    pub(super) length: Duration,
    /// Seconds by which the queuing delay grew in a second.
    pub(super) slope: f64,
    /// Packets that came, and that must have been sent.
    pub(super) packets: f64,
    pub(super) expected: f64,
    /// Which part of these the path may lose by itself.
    pub(super) own_loss: f64,
    /// The least delay of what came right after it, seconds; `None` if nothing did.
    pub(super) after: Option<f64>,
}

impl Measuring {
    pub(super) const fn new(kind: Burst, limit: Option<usize>, rate: Rate, length: Duration, begun: u32) -> Measuring {
        Measuring { kind, limit, rate, length, begun, packets: 0, line: Line::EMPTY, after: None }
    }

    /// Whether what was sent at `clock` was sent after the burst. What is late is waited for a little,
    /// as a fair queue lets other channels' packets pass.
    pub(super) fn is_over(&self, clock: u32) -> bool {
        let since = clock.wrapping_sub(self.begun) as i32;
        let grace = if self.kind == Burst::Folded { FOLDED_GRACE } else { GRACE };
        since > 0 && Duration::from_micros(since as u64) >= self.length + grace
    }

    /// A packet of the burst arrived. It was sent at `clock`, and its delay exceeds that of the empty path, as known when the burst began, by
    /// `waited` seconds. A packet that is notably faster than the empty path was forged, and is ignored.
    pub(super) fn on_packet(&mut self, clock: u32, waited: f64) {
        let since = clock.wrapping_sub(self.begun) as i32;
        if since < 0 || Duration::from_micros(since as u64) >= self.length || waited < -LEAST_GROWTH.as_secs_f64() {
            return;
        }
        self.packets += 1;
        self.line.add(f64::from(since) * 1e-6, waited);
    }

    /// A packet of no burst arrived, which was sent at `clock` and waited as above.
    pub(super) fn on_other(&mut self, clock: u32, waited: f64) {
        let since = clock.wrapping_sub(self.begun) as i32;
        if since >= 0 && (self.length..self.length + GRACE).contains(&Duration::from_micros(since as u64)) {
            self.after = Some(self.after.map_or(waited, |after| after.min(waited)));
        }
    }

    /// The burst is over; the path may lose the part `own_loss` by itself. `None` if it had too few packets to tell. One that stands for the
    /// next level and cannot have more tells by what is missing alone: a receiver of a few packets a second has to try what it cannot be
    /// shown.
    pub(super) fn verdict(&self, packet_size: Bytes, own_loss: f64) -> Option<Verdict> {
        let Measuring { kind, limit, rate, length, packets, after, .. } = *self;
        let expected = rate.packets_per_sec(packet_size) * length.as_secs_f64();
        let is_slow = kind == Burst::NextLevel && expected < FEWEST_PACKETS as f64 + 1.0;
        let slope = match self.line.slope() {
            Some(slope) if packets >= FEWEST_PACKETS => slope,
            _ if is_slow => 0.0,
            _ => return None,
        };
        Some(Verdict { kind, limit, rate, length, slope, packets: packets as f64, expected, own_loss, after })
    }
}

impl Verdict {
    /// Whether the path carries that: the queue did not grow by more than half a packet at this rate, or what hosts vary by, and
    /// hardly anything is missing.
    pub(super) fn fits(&self, packet_time: Duration) -> bool {
        self.growth() <= allowed_growth(packet_time) && self.has_come_whole()
    }

    /// Whether it is clearly more than the path carries. What is not and does not fit either is too close to tell.
    pub(super) fn is_too_much(&self, packet_time: Duration) -> bool {
        self.growth() > CLEARLY * allowed_growth(packet_time)
    }

    /// Whether what came after it did not wait in its queue: the path takes channels for flows of their own, and gives each its share.
    pub(super) fn waited_alone(&self) -> bool {
        self.after.is_some_and(|after| after < self.growth() / 2.0)
    }

    /// Seconds by which the queuing delay grew in the burst.
    fn growth(&self) -> f64 {
        self.slope * self.length.as_secs_f64()
    }

    /// What the path carries, at least: what came at a rate B and made the queue grow by b seconds a second has met B / (1 + b).
    /// Of n packets one more or less is chance.
    pub(super) fn carried(&self) -> Rate {
        let came = (self.packets.min(self.expected) - 1.0) / self.expected;
        self.rate.scale(came.max(0.0) / (1.0 + self.slope.max(0.0)))
    }

    /// The same, by the slope alone if hardly a packet is missing: one more or less would be 6 % of a slow receiver's burst.
    pub(super) fn carried_by_slope(&self) -> Rate {
        if self.has_come_whole() { self.met() } else { self.carried() }
    }

    /// The rate that the burst's packets met, if their queue began to grow at its beginning.
    pub(super) fn met(&self) -> Rate {
        self.rate.scale(1.0 / (1.0 + self.slope.max(0.0)))
    }

    /// Whether hardly anything of it is missing.
    fn has_come_whole(&self) -> bool {
        (self.expected - self.packets).max(0.0) <= MISSING * self.own_loss * self.expected + 1.0
    }
}

/// Of the queuing delay, in seconds, in a burst that fits.
fn allowed_growth(packet_time: Duration) -> f64 {
    (packet_time / 2).max(LEAST_GROWTH).as_secs_f64()
}

/// A straight line through points, by least squares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    pub(super) const EMPTY: Line = Line { n: 0.0, x: 0.0, y: 0.0, xx: 0.0, xy: 0.0 };

    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    pub(super) fn slope(&self) -> Option<f64> {
        let spread = self.n * self.xx - self.x * self.x;
        (spread > 1e-12).then(|| (self.n * self.xy - self.x * self.y) / spread)
    }
}

/// Of what the path may lose by itself, so much is missing in a burst that has come whole: 3 % by default.
const MISSING: f64 = 0.6;
/// Fewer tell of nothing but chance.
const FEWEST_PACKETS: u64 = 5;
const GRACE: Duration = Duration::from_millis(40);
/// All of a folded burst that one flow gets half of has come by then.
const FOLDED_GRACE: Duration = Duration::from_millis(150);
/// Three times what one that fits may grow by is beyond what two bursts of the same rate differ by.
const CLEARLY: f64 = 3.0;
/// Clocks and hosts vary by this much.
const LEAST_GROWTH: Duration = Duration::from_micros(500);

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1250);

    /// A burst of 20 Mbit/s for 100 ms into a path that carries `mbps`, which `lost` packets do not pass.
    fn burst(mbps: f64, lost: usize) -> Verdict {
        let mut measuring =
            Measuring::new(Burst::NextLevel, None, Rate::from_mbps(20), Duration::from_millis(100), u32::MAX - 9);
        for i in lost as u32..200 {
            let sent = i * 500;
            let waited = f64::from(sent) * 1e-6 * (20.0 / mbps - 1.0).max(0.0);
            measuring.on_packet((u32::MAX - 9).wrapping_add(sent), waited);
        }
        measuring.verdict(SIZE, 0.05).expect("enough packets")
    }

    #[test]
    fn what_fits_leaves_the_queue_as_it_was() {
        assert!(burst(20.0, 0).fits(Duration::from_millis(1)));
        assert!(burst(19.95, 0).fits(Duration::from_millis(1)), "a quarter of a millisecond");
        assert!(!burst(19.8, 0).fits(Duration::from_millis(1)), "a millisecond");
        assert!(!burst(20.0, 10).fits(Duration::from_millis(1)), "five per cent are missing");
        let is_too_much = |mbps| burst(mbps, 0).is_too_much(Duration::from_millis(1));
        assert!(!is_too_much(19.8) && is_too_much(19.6), "a millisecond may be chance, and two are not");
    }

    #[test]
    fn what_does_not_fit_tells_what_would() {
        for mbps in [10.0, 15.0, 19.0] {
            let carried = burst(mbps, 0).carried().bps() as f64 / 1e6;
            assert!((carried / mbps - 1.0).abs() < 0.015, "{carried} and not {mbps}");
        }
    }

    #[test]
    fn of_a_burst_of_a_few_packets_what_is_missing_tells() {
        let slow = |packets: u32, kind| {
            let mut measuring = Measuring::new(kind, None, Rate::from_kbps(300), Duration::from_millis(100), 0);
            (0..packets).for_each(|i| measuring.on_packet(i * 33_000, f64::from(i)));
            measuring.verdict(SIZE, 0.05).map(|verdict| verdict.fits(Duration::from_millis(33)))
        };
        assert_eq!([3, 2, 1].map(|packets| slow(packets, Burst::NextLevel)), [Some(true), Some(true), Some(false)]);
        assert_eq!(slow(3, Burst::Folded), None, "it is not to be taken for the path's rate");
    }

    #[test]
    fn packets_after_its_length_or_before_it_do_not_count() {
        let mut measuring = Measuring::new(Burst::Folded, None, Rate::from_mbps(20), Duration::from_millis(20), 1_000);
        (0..10).for_each(|i| measuring.on_packet(21_000 + i, 9.0));
        measuring.on_packet(999, 9.0);
        assert_eq!(measuring.verdict(SIZE, 0.05), None);
    }

    #[test]
    fn what_comes_after_a_burst_tells_whether_its_queue_is_its_own() {
        let after = |millis: f64| {
            let mut measuring =
                Measuring::new(Burst::Folded, None, Rate::from_mbps(20), Duration::from_millis(40), u32::MAX - 9);
            let clock = |micros: u32| (u32::MAX - 9).wrapping_add(micros);
            (0..80).for_each(|i| measuring.on_packet(clock(i * 500), f64::from(i) * 0.25e-3));
            measuring.on_other(clock(39_000), 0.0);
            measuring.on_other(clock(41_000), 30e-3);
            measuring.on_other(clock(50_000), millis * 1e-3);
            measuring.verdict(SIZE, 0.05).expect("enough packets").waited_alone()
        };
        assert!(after(1.0) && !after(19.0), "the burst made a queue of 20 ms");
    }

    #[test]
    fn packets_that_are_earlier_than_the_path_lets_them_do_not_count() {
        let mut measuring = Measuring::new(Burst::NextLevel, None, Rate::from_mbps(20), Duration::from_millis(100), 0);
        for i in 0..200 {
            measuring.on_packet(i * 500, f64::from(i) * 5e-6);
            measuring.on_packet(i * 500, -45e-3);
        }
        let verdict = measuring.verdict(SIZE, 0.05).expect("enough packets");
        assert!((verdict.slope - 0.01).abs() < 1e-9 && verdict.packets == 200.0, "{verdict:?}");
    }
}
