//! How fast two clocks drift apart, from the smallest differences of a minute and more.

use core::time::Duration;

use weir_units::Time;

/// Follows the smallest timestamp difference of each ten seconds. Eight of them in a row on a line that rises by no more than crystals are off tell
/// of clocks, and not of a queue, which neither begins at nothing nor grows as evenly. What falls needs no correction, as the
/// newest packets are the smallest then.
///
/// Example: eight that rise by 1 ms each tell of a drift of 100 millionths.
#[derive(Debug, Clone, Default)]
pub(super) struct Drift {
    /// By how much differences grow, billionths, and since when they are corrected for that.
    rate: i64,
    since: Time,
    /// The correction at that time, microseconds.
    corrected: i64,
    /// The stretch that is being filled, and the smallest of it so far.
    stretch: u64,
    least: Option<Point>,
    /// Of the stretches before, the oldest first.
    line: [Point; POINTS],
    points: usize,
}

/// A difference in microseconds, without correction, and when it came.
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    at: Time,
    value: i64,
}

impl Drift {
    /// What a difference at `now` has grown by because of the clocks, microseconds.
    #[inline]
    pub(super) const fn correction(&self, now: Time) -> i64 {
        if self.rate == 0 { self.corrected } else { self.corrected + grown(self.rate, self.since, now) }
    }

    /// A corrected difference. If it tells how fast the clocks drift: by how many billionths more than was thought.
    #[inline]
    pub(super) fn note(&mut self, now: Time, value: i64) -> Option<i64> {
        let value = value + self.correction(now);
        if now.as_micros() / STRETCH_MICROS == self.stretch && self.least.is_some_and(|least| least.value <= value) {
            return None;
        }
        self.note_least(now, value)
    }

    #[cold]
    fn note_least(&mut self, now: Time, value: i64) -> Option<i64> {
        let stretch = now.as_micros() / STRETCH_MICROS;
        let ended = if stretch == self.stretch { None } else { self.least.take() };
        if stretch > self.stretch + 1 {
            self.points = 0;
        }
        self.stretch = stretch;
        self.least = Some(Point { at: now, value });
        self.add(ended?);
        let rate = self.measured()?;
        let more = rate - self.rate;
        if more.abs() < LEAST_CHANGE {
            return None;
        }
        (self.corrected, self.since, self.rate) = (self.correction(now), now, rate);
        Some(more)
    }

    fn add(&mut self, point: Point) {
        if self.points == POINTS {
            self.line.rotate_left(1);
            self.points -= 1;
        }
        self.line[self.points] = point;
        self.points += 1;
    }

    /// How fast the clocks drift apart, if the points lie on a line.
    fn measured(&self) -> Option<i64> {
        let [first, .., last] = self.line;
        if self.points < POINTS {
            return None;
        }
        let span = (last.at.as_micros() - first.at.as_micros()) as i64;
        let growth = last.value - first.value;
        let off = |point: &Point| {
            let passed = (point.at.as_micros() - first.at.as_micros()) as i64;
            (point.value - first.value - growth * passed / span.max(1)).abs()
        };
        let is_line = self.line.iter().all(|point| off(point) <= (growth.abs() / 10).max(FINEST_MICROS));
        let rate = growth * BILLION / span.max(1);
        let rises = growth >= LEAST_GROWTH_MICROS;
        (is_line && rate <= MOST).then_some(if rises { rate } else { 0 })
    }
}

/// By how much differences that grow at this rate have grown from one time to another, microseconds.
pub(super) const fn grown(rate: i64, from: Time, to: Time) -> i64 {
    (to.as_micros() as i64 - from.as_micros() as i64) * rate / BILLION
}

const BILLION: i64 = 1_000_000_000;
const STRETCH_MICROS: u64 = Duration::from_secs(10).as_micros() as u64;
/// Fewer may lie on a line by chance.
const POINTS: usize = 8;
/// Two crystals are off by a hundred millionths together.
const MOST: i64 = 120_000;
/// Below this, growth is not told from what minima vary by; it is 7 millionths.
const LEAST_GROWTH_MICROS: i64 = 500;
const FINEST_MICROS: i64 = 50;
/// Rates that differ by less are the same: 60 ms are 0.1 ms then, over ten minutes 0.6 ms.
const LEAST_CHANGE: i64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet a tenth of a second, for so many seconds; what is told of the drift.
    fn told(seconds: u64, difference: impl Fn(u64) -> i64) -> Option<i64> {
        let mut drift = Drift::default();
        (0..seconds * 10)
            .filter_map(|tenth| {
                let now = Time::from_millis(tenth * 100);
                drift.note(now, difference(tenth * 100) - drift.correction(now))
            })
            .last()
            .map(|_| drift.rate)
    }

    #[test]
    fn differences_that_rise_evenly_tell_of_the_clocks() {
        let with_queues =
            |ppm: i64| told(100, move |millis| millis as i64 * ppm / 1_000 + (millis as i64 / 100 % 7) * 3_000);
        for ppm in [20, 50, 100] {
            let rate = with_queues(ppm).expect("it is a line");
            assert!((rate - ppm * 1_000).abs() < ppm * 100, "{ppm}: {rate}");
        }
        assert_eq!([with_queues(-100), with_queues(0), with_queues(300)], [None; 3]);
    }

    #[test]
    fn a_queue_that_comes_and_stays_is_no_drift() {
        assert_eq!(told(600, |millis| if millis > 60_000 { 6_000 } else { 0 }), None);
        assert_eq!(told(600, |millis| (millis as i64 / 10_000 * 7_919) % 5_000), None);
    }

    #[test]
    fn a_drift_that_ends_is_not_corrected_any_more() {
        assert_eq!(told(400, |millis| millis.min(200_000) as i64 / 10), Some(0));
    }
}
