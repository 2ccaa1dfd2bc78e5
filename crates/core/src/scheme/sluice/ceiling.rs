//! The sender's side of networks that flood: how much of the ladder is sent.

use core::time::Duration;

use weir_units::{Rate, Time};

use super::announce::MOST_TOLD;
use crate::layers::Ladder;
use crate::observation::CeilingCause;

/// How many levels are sent: all, unless receivers report that their paths are full whatever they leave.
///
/// Anybody can make up a report, so the sender waits for a second one before it cuts.
///
/// Where a switch floods, the slowest port decides, so the sender withholds the channels above what the least report says is carried, and again
/// if that is still too much. If a path is still full when it gets nothing but what it was to carry, the network did not flood, and other
/// traffic fills the path: all levels are sent again, and reports count for nothing for a while. Where reports stay away, twice the rate is
/// tried, less and less often if it is too much.
#[derive(Debug)]
pub(super) struct Ceiling {
    ladder: Ladder,
    /// Levels that are sent.
    levels: usize,
    /// A report that no other has confirmed: when it came, and what it said is carried.
    unconfirmed: Option<(Time, f64)>,
    cut: Option<Cut>,
    /// When more is tried, and how long the next wait is if it turns out to be too much.
    try_at: Option<Time>,
    wait: Duration,
    /// A cut helped, and more has been tried since.
    is_found: bool,
    /// What was sent before more was tried, and since when more is.
    trial: Option<(usize, Time)>,
    /// Until when reports count for nothing, and for how long the next time.
    ignores_until: Time,
    ignores_for: Duration,
}

/// The latest cut.
#[derive(Debug, Clone, Copy)]
struct Cut {
    at: Time,
    /// The rate before it.
    from: Rate,
    /// The least part that is carried, as receivers reported.
    carried: f64,
}

/// A new ceiling.
pub(super) type Change = Option<(Rate, CeilingCause)>;

impl Ceiling {
    pub(super) fn new(ladder: &Ladder) -> Ceiling {
        Ceiling {
            ladder: ladder.clone(),
            levels: ladder.levels(),
            unconfirmed: None,
            cut: None,
            try_at: None,
            wait: FIRST_WAIT,
            is_found: false,
            trial: None,
            ignores_until: Time::ZERO,
            ignores_for: FIRST_IGNORING,
        }
    }

    /// The levels that are sent.
    pub(super) const fn levels(&self) -> usize {
        self.levels
    }

    /// The levels that are not.
    #[cfg(test)]
    fn withheld(&self) -> usize {
        self.ladder.levels() - self.levels
    }

    /// A receiver's path is full whatever it leaves, and carries only this part of what is sent. Receivers report once in an `interval`,
    /// give or take half.
    pub(super) fn on_report(&mut self, now: Time, carried: f64, interval: Duration) -> Change {
        if now < self.ignores_until || !(0.0..=1.0).contains(&carried) {
            return None;
        }
        let Some(cut) = self.cut else {
            let carried = self.confirmed(now, carried, interval)?;
            return self.cut(now, self.rate(), carried);
        };
        let age = now.since(cut.at);
        if age < ROUND {
            // Others measured in the same time.
            return if carried < cut.carried { self.cut(cut.at, cut.from, carried) } else { None };
        }
        if age < ROUND * 2 {
            return None;
        }
        if let Some((before, _)) = self.trial.take_if(|(_, since)| now.since(*since) < TRIAL) {
            self.cut = Some(Cut { at: now, from: self.rate(), carried });
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
            self.try_at = Some(now + self.wait);
            return self.set(before, CeilingCause::Flooded);
        }
        if age < JUDGEMENT && (carried >= ALL || self.levels == self.least()) {
            return self.give_up(now);
        }
        // Half of this was not too much, so a report of less is that of a receiver that has not found its rate yet.
        self.cut(now, self.rate(), if self.is_found { carried.max(0.5 / SHARE) } else { carried })
    }

    /// The milder of this report and the one before it, if their distance is what receivers' probe intervals allow: not a burst of reports, and
    /// not one long after another.
    fn confirmed(&mut self, now: Time, carried: f64, interval: Duration) -> Option<f64> {
        let since_first = self.unconfirmed.map(|(at, _)| now.since(at));
        if since_first.is_some_and(|since| since < APART) {
            return None;
        }
        let confirms = since_first.is_some_and(|since| since <= interval * 2);
        let before = self.unconfirmed.replace((now, carried)).filter(|_| confirms);
        before.map(|(_, before)| before.max(carried))
    }

    /// Time passes.
    pub(super) fn on_time(&mut self, now: Time) -> Change {
        self.try_at.take_if(|at| *at <= now)?;
        if self.levels == self.ladder.levels() {
            return None;
        }
        self.trial = Some((self.levels, now));
        self.is_found = true;
        self.try_at = Some(now + TRIAL);
        self.set(self.highest_within(self.rate().scale(2.0)).max(self.levels + 1), CeilingCause::Trial)
    }

    fn cut(&mut self, now: Time, from: Rate, carried: f64) -> Change {
        self.cut = Some(Cut { at: now, from, carried });
        self.trial = None;
        self.try_at = Some(now + self.wait);
        self.set(self.highest_within(from.scale(carried * SHARE)).max(self.least()), CeilingCause::Flooded)
    }

    /// It was of no use.
    fn give_up(&mut self, now: Time) -> Change {
        (self.cut, self.try_at, self.trial, self.is_found) = (None, None, None, false);
        self.ignores_until = now + self.ignores_for;
        self.ignores_for = (self.ignores_for * 2).min(LONGEST_WAIT);
        self.set(self.ladder.levels(), CeilingCause::Futile)
    }

    fn set(&mut self, levels: usize, cause: CeilingCause) -> Change {
        let levels = levels.min(self.ladder.levels());
        (levels != core::mem::replace(&mut self.levels, levels)).then(|| (self.rate(), cause))
    }

    fn rate(&self) -> Rate {
        self.ladder.level_rate(self.levels)
    }

    /// What the wire can say.
    fn least(&self) -> usize {
        self.ladder.levels().saturating_sub(MOST_TOLD).max(1)
    }

    fn highest_within(&self, rate: Rate) -> usize {
        self.ladder.rates().partition_point(|of| *of <= rate).max(1)
    }
}

/// Who gets that much and reports nevertheless has a path that is full of something else.
const ALL: f64 = 0.85;
/// The receivers' loss, at one packet in ten and more, is measured to within some per cent, and the queue must become empty.
const SHARE: f64 = 0.9;
/// A receiver sends its reports at least half of the shortest probe interval apart.
const APART: Duration = Duration::from_millis(500);
/// The least report of so long counts; for as long again, reports may be of before the cut.
const ROUND: Duration = Duration::from_secs(1);
/// A receiver whose path stayed full after a cut says so within this time. Later it was empty meanwhile, so the cut helped.
pub(super) const JUDGEMENT: Duration = Duration::from_secs(8);
/// After a cut that nobody reports to have been futile, and as long as more turns out to be too much, more is tried after this
/// time, twice that and so on.
const FIRST_WAIT: Duration = Duration::from_secs(7);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// More that was not reported for so long is not too much: receivers hear of it within a second, and need two to tell.
const TRIAL: Duration = Duration::from_secs(5);
const FIRST_IGNORING: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    fn ladder() -> Ladder {
        Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.15).expect("valid")
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Asserts that this part of the ladder's top is sent, to within a step.
    fn assert_sent(ceiling: &Ceiling, part: f64) {
        let [sent, top] = [ceiling.rate(), ladder().level_rate(ladder().levels())].map(|rate| rate.bps() as f64);
        assert!((part / 1.16..=part * 1.15).contains(&(sent / top)), "{} and not {part}", sent / top);
    }

    /// A ceiling that has been cut to what carries this part, at five seconds.
    fn cut(carried: f64) -> Ceiling {
        let mut ceiling = Ceiling::new(&ladder());
        assert_eq!(ceiling.on_report(at(4_000), carried, INTERVAL), None, "one report says nothing");
        assert_eq!(cause(ceiling.on_report(at(5_000), carried, INTERVAL)), Some(CeilingCause::Flooded));
        ceiling
    }

    fn cause(change: Change) -> Option<CeilingCause> {
        change.map(|(_, cause)| cause)
    }

    #[test]
    fn the_slowest_port_decides_however_late_in_the_second_it_reports() {
        let mut ceiling = cut(0.5);
        assert_sent(&ceiling, 0.9 * 0.5);
        assert_eq!(cause(ceiling.on_report(at(5_900), 0.1, INTERVAL)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.1);
        assert_eq!(ceiling.on_report(at(5_950), 0.5, INTERVAL), None);
        assert_eq!(ceiling.on_report(at(6_500), 0.1, INTERVAL), None, "it may be of before");
        assert_eq!(ceiling.withheld(), ladder().levels() - ceiling.levels());
    }

    #[test]
    fn a_cut_that_did_not_suffice_is_followed_by_another() {
        let mut ceiling = cut(0.2);
        assert_eq!(cause(ceiling.on_report(at(14_000), 0.6, INTERVAL)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2 / 1.15 * 0.9 * 0.6);
    }

    #[test]
    fn who_gets_all_that_is_sent_and_still_reports_has_a_path_full_of_something_else_and_is_not_heard_for_a_minute() {
        let mut ceiling = cut(0.1);
        assert_eq!(cause(ceiling.on_report(at(10_000), 0.97, INTERVAL)), Some(CeilingCause::Futile));
        assert_eq!(ceiling.withheld(), 0);
        assert_eq!(ceiling.on_report(at(69_000), 0.1, INTERVAL), None);
        assert_eq!(ceiling.on_report(at(70_000), 0.1, INTERVAL), None);
        assert!(ceiling.on_report(at(71_000), 0.1, INTERVAL).is_some());
    }

    #[test]
    fn who_loses_most_of_the_lowest_level_alone_has_such_a_path_too() {
        let mut ceiling = cut(0.0);
        assert_eq!(ceiling.levels(), 1);
        assert_eq!(cause(ceiling.on_report(at(10_000), 0.1, INTERVAL)), Some(CeilingCause::Futile));
    }

    #[test]
    fn more_is_tried_after_seven_seconds_and_if_it_is_too_much_after_twice_that() {
        let mut ceiling = cut(0.1);
        let carried = ceiling.levels();
        assert_eq!(ceiling.on_time(at(11_900)), None);
        assert_eq!(cause(ceiling.on_time(at(12_000))), Some(CeilingCause::Trial));
        assert_sent(&ceiling, 2.0 * 0.9 * 0.1 / 1.15);
        assert_eq!(cause(ceiling.on_report(at(14_000), 0.6, INTERVAL)), Some(CeilingCause::Flooded));
        assert_eq!(ceiling.levels(), carried);
        assert_eq!(ceiling.on_time(at(27_900)), None);
        assert_eq!(cause(ceiling.on_time(at(28_000))), Some(CeilingCause::Trial));
    }

    #[test]
    fn where_nobody_reports_any_more_all_is_sent_again() {
        let mut ceiling = cut(0.1);
        (0..1_000).for_each(|tenth| _ = ceiling.on_time(at(5_000 + tenth * 100)));
        assert_eq!(ceiling.withheld(), 0);
    }

    #[test]
    fn one_report_changes_nothing_nor_do_several_at_once_or_long_after_each_other() {
        let mut ceiling = Ceiling::new(&ladder());
        for millis in [5_000, 5_000, 5_490, 7_500, 9_501] {
            assert_eq!(ceiling.on_report(at(millis), 0.1, INTERVAL), None, "at {millis} ms");
        }
        assert!(ceiling.on_report(at(11_501), 0.3, INTERVAL).is_some());
        assert_sent(&ceiling, 0.9 * 0.3);
    }

    #[test]
    fn reports_that_cannot_be_change_nothing() {
        let mut ceiling = Ceiling::new(&ladder());
        for part in [f64::NAN, -0.1, 7.0] {
            for millis in [5_000, 6_000] {
                assert_eq!(ceiling.on_report(at(millis), part, INTERVAL), None);
            }
        }
        assert_eq!(cut(0.0).levels(), 1, "nothing is carried");
    }
}
