//! Whether the path is fair-queued, without which pairs and trains tell what the link carries and not what the flow's share of it is;
//! and what a receiver does where it is not (decision 7).

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::Time;

/// What came in a period, and what its estimates said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period {
    /// The level in all of it.
    pub(super) level: usize,
    /// The highest level that the period's estimates leave room for; `None` if there was no estimate.
    pub(super) estimated: Option<usize>,
    /// The highest level that what came fits in.
    pub(super) arrived: usize,
    pub(super) received: u64,
    pub(super) lost: u64,
    /// The least queuing delay: what stood in a queue all the time.
    pub(super) standing: Duration,
}

/// What a receiver should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// What the estimates say.
    Estimates,
    /// Nothing.
    Stay,
    /// Take one more layer.
    Up,
    /// Go down to this level.
    Down(usize),
}

/// Behind a fair queue, a session that takes no more than its share loses nothing, and its queue is empty now and then. If packets
/// are lost or a queue grows though the estimates leave room for more, the path is not fair-queued. Then estimates do not count
/// for a while, and the receiver tries one layer at a time, a level that failed later and later.
#[derive(Debug)]
pub(super) struct Premise {
    /// Estimates do not count before; `None` is at no time yet.
    off_until: Option<Time>,
    /// How long they do not count the next time.
    off_for: Duration,
    /// Periods in a row that contradicted the estimates.
    contradictions: u32,
    /// Periods in a row without an estimate.
    without_estimate: u32,
    /// What stood in the queue in the period before.
    standing: Duration,
    /// By level: when it may be tried again, and how often it failed.
    trials: Vec<(Time, u32)>,
    /// The level that was added last, and when.
    added: Option<(usize, Time)>,
    /// Without an estimate for this many periods, the receiver tries layers one at a time.
    silent_periods: u32,
}

impl Premise {
    /// Bursts of the base layer come once in `burst_periods` periods.
    pub(super) fn new(levels: usize, burst_periods: u32) -> Premise {
        Premise {
            off_until: None,
            off_for: FIRST_OFF,
            contradictions: 0,
            without_estimate: 0,
            standing: Duration::ZERO,
            trials: vec![(Time::ZERO, 0); levels + 1],
            added: None,
            silent_periods: (burst_periods * 3).max(SILENT_PERIODS),
        }
    }

    /// Whether estimates count.
    pub(super) fn is_trusted(&self, now: Time) -> bool {
        self.off_until.is_none_or(|until| until <= now)
    }

    /// A period without a change of the level is over.
    pub(super) fn on_period(&mut self, now: Time, period: Period) -> Advice {
        let was = core::mem::replace(&mut self.standing, period.standing);
        let part = period.lost as f64 / (period.lost + period.received).max(1) as f64;
        let is_lossy = period.lost >= FEWEST_LOST && part > LOSSY;
        let is_late = period.standing > LATE && period.standing > was + GROWTH || period.standing > TOO_LATE;
        let is_distress = is_lossy || is_late;
        self.without_estimate = if period.estimated.is_some() { 0 } else { self.without_estimate + 1 };
        if self.is_trusted(now) {
            let is_contradicted = is_distress && period.estimated.is_none_or(|level| level >= period.level);
            self.contradictions = if is_contradicted { self.contradictions + 1 } else { 0 };
            if self.contradictions > 1 || is_contradicted && part > VERY_LOSSY {
                self.contradictions = 0;
                self.off_until = Some(now + self.off_for);
                self.off_for = (self.off_for * 2).min(LONGEST_OFF);
                return self.down(now, &period, part);
            }
            if self.without_estimate < self.silent_periods {
                return Advice::Estimates;
            }
        }
        if is_distress {
            return self.down(now, &period, part);
        }
        if let Some((level, at)) = self.added
            && level == period.level
            && now.since(at) >= PROVEN
        {
            self.trials[level].1 = 0;
        }
        self.up(now, &period)
    }

    fn down(&mut self, now: Time, period: &Period, part: f64) -> Advice {
        let (at, failures) = &mut self.trials[period.level];
        *failures = (*failures + 1).min(MOST_FAILURES);
        *at = now + FIRST_HOLD * 2_u32.pow(*failures - 1);
        let below = period.level.saturating_sub(1);
        let to = if part > VERY_LOSSY { below.min(period.arrived) } else { below };
        Advice::Down(to.max(1))
    }

    fn up(&mut self, now: Time, period: &Period) -> Advice {
        let next = period.level + 1;
        let may = self.trials.get(next).is_some_and(|(at, _)| *at <= now);
        // Where there are estimates, what they leave no room for is not tried.
        if !may || period.estimated.is_some_and(|level| level < next) {
            return Advice::Stay;
        }
        self.added = Some((next, now));
        Advice::Up
    }
}

/// Fewer losses tell nothing.
const FEWEST_LOST: u64 = 3;

/// More loss than this comes of a queue that is full.
const LOSSY: f64 = 0.02;

/// After more than this, what came tells better than one layer less.
const VERY_LOSSY: f64 = 0.1;

/// A standing queue of so much contradicts the estimates if it grows,
const LATE: Duration = Duration::from_millis(50);

/// by more than this in a period,
const GROWTH: Duration = Duration::from_millis(10);

/// and one of this much in any case.
const TOO_LATE: Duration = Duration::from_millis(300);

/// The least number of periods without an estimate before the receiver tries layers.
const SILENT_PERIODS: u32 = 2;

/// How long estimates do not count the first time, and at most.
const FIRST_OFF: Duration = Duration::from_secs(120);
const LONGEST_OFF: Duration = Duration::from_secs(3600);

/// The wait before a level that failed is tried again. It doubles with each failure, up to the given number of failures.
const FIRST_HOLD: Duration = Duration::from_secs(5);
const MOST_FAILURES: u32 = 6;

/// A level that was held for this long counts as one that never failed.
const PROVEN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Period =
        Period { level: 4, estimated: Some(6), arrived: 4, received: 100, lost: 0, standing: Duration::ZERO };

    fn at(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn estimates_count_as_long_as_nothing_contradicts_them() {
        let mut premise = Premise::new(10, 0);
        assert_eq!(premise.on_period(at(1), GOOD), Advice::Estimates);
        let too_much = Period { estimated: Some(3), lost: 50, ..GOOD };
        assert_eq!(premise.on_period(at(2), too_much), Advice::Estimates, "the estimates say so themselves");
        assert!(premise.is_trusted(at(3)));
    }

    #[test]
    fn loss_where_there_should_be_room_turns_estimates_off() {
        let mut premise = Premise::new(10, 0);
        assert_eq!(premise.on_period(at(1), Period { lost: 60, arrived: 2, ..GOOD }), Advice::Down(2));
        assert!(!premise.is_trusted(at(2)));
        let after = Period { level: 2, ..GOOD };
        assert_eq!(premise.on_period(at(2), after), Advice::Up);
        assert_eq!(premise.on_period(at(3), Period { level: 3, ..GOOD }), Advice::Stay, "level 4 has just failed");
        assert_eq!(premise.on_period(at(7), Period { level: 3, ..GOOD }), Advice::Up);
        assert!(premise.is_trusted(at(200)), "it is tried again later");
    }

    #[test]
    fn a_little_loss_or_a_queue_that_grows_does_so_the_second_time() {
        let mut premise = Premise::new(10, 0);
        let little = Period { lost: 4, ..GOOD };
        assert_eq!(premise.on_period(at(1), little), Advice::Estimates);
        assert_eq!(premise.on_period(at(2), little), Advice::Down(3));
        let mut premise = Premise::new(10, 0);
        let queue = |millis| Period { standing: Duration::from_millis(millis), ..GOOD };
        assert_eq!(premise.on_period(at(1), queue(80)), Advice::Estimates);
        assert_eq!(premise.on_period(at(2), queue(120)), Advice::Down(3));
    }

    #[test]
    fn a_level_that_fails_is_tried_later_and_later() {
        let mut premise = Premise::new(10, 0);
        let mut holds = Vec::new();
        let mut now = 0;
        for _ in 0..3 {
            now += 1;
            premise.on_period(at(now), Period { lost: 60, ..GOOD });
            let failed = now;
            while premise.on_period(at(now), Period { level: 3, ..GOOD }) != Advice::Up {
                now += 1;
            }
            holds.push(now - failed);
        }
        assert_eq!(holds, [5, 10, 20]);
    }

    #[test]
    fn without_estimates_layers_are_tried_one_at_a_time() {
        let mut premise = Premise::new(10, 0);
        let silent = Period { estimated: None, ..GOOD };
        assert_eq!(premise.on_period(at(1), silent), Advice::Estimates);
        assert_eq!(premise.on_period(at(2), silent), Advice::Up);
        assert_eq!(premise.on_period(at(3), Period { level: 10, ..silent }), Advice::Stay, "there is nothing above");
    }
}
