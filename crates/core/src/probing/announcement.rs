//! How the sender keeps receivers' probes few: it tells how far apart they are to be (decision 5 of `docs/papers/stair.md`).

use core::time::Duration;

use weir_units::{Time, math};

/// The mean time between a receiver's probes, as it goes on the wire: 125 ms · 2^(c/8) for c from 0 to 127.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval(u16);

impl Interval {
    /// A second: what a small group is told.
    pub(crate) const LEAST: Interval = Interval(24);
    const MOST: u16 = 127;

    pub(crate) fn from_wire(slot: u16) -> Interval {
        Interval(slot.min(Interval::MOST))
    }

    pub(crate) const fn to_wire(self) -> u16 {
        self.0
    }

    /// In powers of two from a second on, rounded up, for headers that have four bits for it.
    pub(crate) fn to_octaves(self) -> u16 {
        self.0.saturating_sub(Interval::LEAST.0).div_ceil(8)
    }

    pub(crate) const fn from_octaves(octaves: u16) -> Interval {
        let octaves = if octaves < 15 { octaves } else { 15 };
        let code = octaves * 8 + Interval::LEAST.0;
        Interval(if code < Interval::MOST { code } else { Interval::MOST })
    }

    pub(crate) fn span(self) -> Duration {
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
/// A burst, more than [`BURST`] times the wanted rate within [`WINDOW`], stretches the interval at once, by twice as much as
/// it is too fast: it is mostly the beginning of a larger one. Otherwise the interval follows the rate of each second, up by as
/// much as it is above the wanted one, down by a step, some 9 %, where it is below half of it. At most twice the wanted
/// rate is answered.
#[derive(Debug, Clone)]
pub(crate) struct Announcement {
    interval: Interval,
    per_sec: f64,
    burst: Count,
    second: Count,
    /// How many probes may be answered now, as of the time.
    answers: (f64, Time),
}

/// Probes since a time, which may still be to come.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    from: Time,
    probes: u64,
}

impl Count {
    fn rate(self, now: Time) -> f64 {
        self.probes as f64 / now.since(self.from).max(SHORTEST).as_secs_f64()
    }
}

impl Announcement {
    pub(crate) fn new(per_sec: u64) -> Announcement {
        Announcement {
            interval: Interval::LEAST,
            per_sec: per_sec as f64,
            burst: Count::default(),
            second: Count::default(),
            answers: (per_sec as f64, Time::ZERO),
        }
    }

    pub(crate) const fn interval(&self) -> Interval {
        self.interval
    }

    /// A probe came. Says whether it is to be answered.
    pub(crate) fn on_probe(&mut self, now: Time) -> bool {
        self.on_time(now);
        self.second.probes += u64::from(now >= self.second.from);
        self.burst.probes += u64::from(now >= self.burst.from);
        if self.burst.probes as f64 >= (BURST * self.per_sec * WINDOW.as_secs_f64()).max(8.0) {
            self.stretch(now, (2.0 * self.burst.rate(now) / self.per_sec).min(MOST_AT_ONCE));
        }
        self.take_answer(now)
    }

    /// Time passes, with or without probes.
    pub(crate) fn on_time(&mut self, now: Time) {
        if now.since(self.burst.from) >= WINDOW {
            self.burst = Count { from: now, probes: 0 };
        }
        if now.since(self.second.from) < Duration::from_secs(1) {
            return;
        }
        let ratio = self.second.rate(now) / self.per_sec;
        if ratio > 1.25 {
            return self.stretch(now, ratio);
        }
        if ratio < 0.5 {
            self.interval = self.interval.shortened();
        }
        self.second = Count { from: now, probes: 0 };
    }

    /// The interval becomes longer. Until receivers know it, probes say nothing new.
    fn stretch(&mut self, now: Time, times: f64) {
        self.interval = self.interval.stretched(times);
        let settled = Count { from: now + WINDOW, probes: 0 };
        (self.burst, self.second) = (settled, settled);
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

/// Over how long a burst is looked for; as long, receivers are given to hear of a longer interval.
const WINDOW: Duration = Duration::from_millis(250);
/// How many times the wanted rate is a burst: a steady stream of probes at random times reaches it once in an hour.
const BURST: f64 = 2.5;
const SHORTEST: Duration = Duration::from_millis(1);
/// What a burst says of the group is not believed beyond this.
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
    fn four_bits_hold_every_interval_in_powers_of_two() {
        for code in Interval::LEAST.0..=Interval::MOST {
            let octaves = Interval(code).to_octaves();
            assert!(octaves < 16);
            let told = Interval::from_octaves(octaves);
            assert!((code..code + 8).contains(&told.0) || told.0 == Interval::MOST, "{code} becomes {told:?}");
        }
    }

    #[test]
    fn many_probes_stretch_the_interval_and_few_are_answered() {
        let mut announcement = Announcement::new(50);
        let answered = (0..2_000).filter(|i| announcement.on_probe(Time::from_micros(10_000_000 + i * 500))).count();
        assert!(answered <= 50 + 100, "{answered} in a second");
        assert!(announcement.interval().span() >= Duration::from_secs(40), "{:?}", announcement.interval().span());
    }

    #[test]
    fn the_wanted_rate_leaves_the_interval_as_it_is() {
        let mut announcement = Announcement::new(50);
        (0..2_000).for_each(|i| _ = announcement.on_probe(Time::from_millis(10_000 + i * 20)));
        assert_eq!(announcement.interval(), Interval::LEAST);
    }

    #[test]
    fn a_group_that_has_gone_is_forgotten() {
        let mut announcement = Announcement::new(50);
        (0..500).for_each(|i| _ = announcement.on_probe(Time::from_micros(10_000_000 + i * 500)));
        (11..200).for_each(|sec| announcement.on_time(Time::from_secs(sec)));
        assert_eq!(announcement.interval(), Interval::LEAST);
    }
}
