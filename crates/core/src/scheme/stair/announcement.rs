//! How the sender keeps receivers' probes few: it tells how far apart they are to be (decision 5).

use core::time::Duration;

use weir_units::{Time, math};

/// The mean time between a receiver's probes, as it goes on the wire: 125 ms · 2^(c/8) for c from 0 to 127.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval(u16);

impl Interval {
    /// A second: what a small group is told.
    pub(super) const LEAST: Interval = Interval(24);
    const MOST: u16 = 127;

    pub(super) fn from_wire(slot: u16) -> Interval {
        Interval(slot.min(Interval::MOST))
    }

    pub(super) const fn to_wire(self) -> u16 {
        self.0
    }

    pub(super) fn span(self) -> Duration {
        Duration::from_secs_f64(0.125 * math::pow(2.0, f64::from(self.0) / 8.0))
    }

    /// So many times as long, at least a step more.
    fn stretched(self, times: f64) -> Interval {
        let steps = math::ceil(8.0 * math::log2(times.max(1.0))).clamp(1.0, f64::from(Interval::MOST));
        Interval::from_wire(self.0 + steps as u16)
    }

    fn shortened(self) -> Interval {
        Interval(self.0.saturating_sub(1)).max(Interval::LEAST)
    }
}

/// Counts probes, announces the interval, and says which probes are answered.
///
/// As soon as a window's worth of probes has come too early the interval is stretched by as much; after a second with less
/// than half of the wanted rate it is shortened by a step, some 9 %. At most twice the wanted rate is answered.
#[derive(Debug, Clone)]
pub(super) struct Announcement {
    interval: Interval,
    per_sec: f64,
    window_begun: Time,
    count: u64,
    /// How many probes may be answered now, as of the time.
    answers: (f64, Time),
}

impl Announcement {
    pub(super) fn new(per_sec: u64) -> Announcement {
        Announcement {
            interval: Interval::LEAST,
            per_sec: per_sec as f64,
            window_begun: Time::ZERO,
            count: 0,
            answers: (per_sec as f64, Time::ZERO),
        }
    }

    pub(super) const fn interval(&self) -> Interval {
        self.interval
    }

    /// A probe came. Says whether it is to be answered.
    pub(super) fn on_probe(&mut self, now: Time) -> bool {
        self.on_time(now);
        self.count += 1;
        let elapsed = now.since(self.window_begun).max(SHORTEST).as_secs_f64();
        let enough = math::ceil(self.per_sec * WINDOW.as_secs_f64()).max(2.0);
        if self.count as f64 >= enough && elapsed < WINDOW.as_secs_f64() {
            self.interval = self.interval.stretched((self.count as f64 / elapsed / self.per_sec).min(MOST_AT_ONCE));
            self.begin(now);
        }
        self.take_answer(now)
    }

    /// Time passes, with or without probes.
    pub(super) fn on_time(&mut self, now: Time) {
        let elapsed = now.since(self.window_begun);
        if elapsed < Duration::from_secs(1) {
            return;
        }
        let ratio = self.count as f64 / elapsed.as_secs_f64() / self.per_sec;
        if ratio > 1.25 {
            self.interval = self.interval.stretched(ratio);
        } else if ratio < 0.5 {
            self.interval = self.interval.shortened();
        }
        self.begin(now);
    }

    fn begin(&mut self, now: Time) {
        self.window_begun = now;
        self.count = 0;
    }

    fn take_answer(&mut self, now: Time) -> bool {
        let (saved, at) = self.answers;
        let earned = 2.0 * self.per_sec * now.since(at).as_secs_f64();
        let saved = (saved + earned).min(self.per_sec.max(1.0));
        let answered = saved >= 1.0;
        self.answers = (saved - f64::from(u8::from(answered)), now);
        answered
    }
}

/// Probes that come closer together than the wanted rate over this span show that there are too many.
const WINDOW: Duration = Duration::from_millis(250);
const SHORTEST: Duration = Duration::from_millis(1);
/// What a burst within a fraction of a window says of the group is not believed beyond this.
const MOST_AT_ONCE: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_a_second_and_more_on_the_wire_in_steps_of_nine_per_cent() {
        assert_eq!(Interval::LEAST.span(), Duration::from_secs(1));
        assert_eq!(Interval::from_wire(32).span(), Duration::from_secs(2));
        assert_eq!(Interval::from_wire(9999), Interval(127));
        assert_eq!((Interval(24).stretched(2.0), Interval(24).stretched(1.0)), (Interval(32), Interval(25)));
    }

    #[test]
    fn many_probes_stretch_the_interval_and_few_are_answered() {
        let mut announcement = Announcement::new(50);
        let answered = (0..2_000).filter(|i| announcement.on_probe(Time::from_micros(10_000_000 + i * 500))).count();
        assert!(answered <= 50 + 100, "{answered} in a second");
        assert!(announcement.interval().span() >= Duration::from_secs(40), "{:?}", announcement.interval().span());
    }

    #[test]
    fn a_group_that_has_gone_is_forgotten() {
        let mut announcement = Announcement::new(50);
        (0..500).for_each(|i| _ = announcement.on_probe(Time::from_micros(10_000_000 + i * 500)));
        (11..200).for_each(|sec| announcement.on_time(Time::from_secs(sec)));
        assert_eq!(announcement.interval(), Interval::LEAST);
    }
}
