//! What turned out to be too much, and is left alone for a while.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::Time;

/// How often something was too much, and until when it is not tried again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BackOff {
    times: u32,
    until: Time,
}

impl BackOff {
    /// It was too much: it is left alone for `back_off`, after the second time for three times as long, then for seven, and so on.
    pub(super) fn extend(&mut self, now: Time, back_off: Duration) {
        self.times = (self.times + 1).min(MOST_TIMES);
        self.until = now + back_off * ((1 << self.times) - 1);
    }

    /// Whether it is left alone.
    pub(super) fn holds(&self, now: Time) -> bool {
        now < self.until
    }
}

/// Levels that were too much.
#[derive(Debug)]
pub(super) struct Bars {
    back_off: Duration,
    levels: Vec<Bar>,
}

/// A level's.
#[derive(Debug, Clone, Copy, Default)]
struct Bar {
    back_off: BackOff,
    /// Other flows kept a queue shortly before the level was joined.
    contended: bool,
}

impl Bars {
    /// None of these levels is barred.
    pub(super) fn new(levels: usize, back_off: Duration) -> Bars {
        Bars { back_off, levels: vec![Bar::default(); levels + 1] }
    }

    /// This level was too much. `contended`: other flows kept a queue shortly before it was joined.
    pub(super) fn bar(&mut self, now: Time, level: usize, contended: bool) {
        let bar = &mut self.levels[level];
        bar.back_off.extend(now, self.back_off);
        bar.contended = contended;
    }

    /// Whether the level is left alone, or there is none.
    pub(super) fn hold(&self, now: Time, level: usize) -> bool {
        self.levels.get(level).is_none_or(|bar| bar.back_off.holds(now))
    }

    /// Whether the level is left alone, and was too much although no other flow kept a queue.
    pub(super) fn hold_uncontended(&self, now: Time, level: usize) -> bool {
        self.hold(now, level) && self.levels.get(level).is_none_or(|bar| !bar.contended)
    }

    /// The other flows have gone: levels that were too much next to them may be tried again.
    pub(super) fn lift_contended(&mut self) {
        for bar in self.levels.iter_mut().filter(|bar| bar.contended) {
            *bar = Bar::default();
        }
    }
}

/// The longest back-off is that of the sixth time, 63 times the first.
const MOST_TIMES: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const BACK_OFF: Duration = Duration::from_secs(10);

    #[test]
    fn what_was_too_much_is_left_alone_for_longer_each_time() {
        let at = Time::from_secs;
        let mut back_off = BackOff::default();
        let holds_for = |back_off: &mut BackOff| {
            back_off.extend(at(1_000), BACK_OFF);
            (0..2_000).take_while(|secs| back_off.holds(at(1_000 + secs))).count()
        };
        assert_eq!([(); 7].map(|()| holds_for(&mut back_off)), [10, 30, 70, 150, 310, 630, 630]);
    }

    #[test]
    fn bars_of_levels_that_were_too_much_next_to_others_are_lifted_when_these_have_gone() {
        let now = Time::from_secs(5);
        let mut bars = Bars::new(20, BACK_OFF);
        assert!(!bars.hold(now, 20) && bars.hold(now, 21), "there is no such level");
        bars.bar(now, 18, true);
        bars.bar(now, 19, false);
        assert_eq!([18, 19].map(|level| bars.hold(now, level)), [true, true]);
        assert_eq!([18, 19].map(|level| bars.hold_uncontended(now, level)), [false, true]);
        bars.lift_contended();
        assert_eq!([18, 19].map(|level| bars.hold(now, level)), [false, true]);
    }
}
