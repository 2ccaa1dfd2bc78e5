//! The sender's side of networks that flood: how much of the ladder is sent.

use core::time::Duration;

use weir_units::{Rate, Time};

use super::announce::MOST_TOLD;
use crate::layers::Ladder;
use crate::observation::CeilingCause;

/// How many levels are sent: all, unless receivers report that their paths are full whatever they leave, and that they are empty when less is sent.
///
/// Anybody can make up a report, so the sender waits for a second one. Other traffic fills paths as well, so it tests first: it sends half of what
/// arrived at the receiver that reported, and that one judges whether its path is empty then. If it is not, or nobody judges, all is sent as before, and
/// reports count for nothing for a while.
///
/// Where a switch floods, the slowest port decides, so the sender withholds the channels above what the least report says is carried, and again
/// if that is still too much. Where reports stay away, twice the rate is tried, less and less often if it is too much.
#[derive(Debug)]
pub(super) struct Ceiling {
    ladder: Ladder,
    /// Levels that are sent.
    levels: usize,
    /// A report that no other has confirmed: when it came, and what it said is carried.
    unconfirmed: Option<(Time, f64)>,
    test: Option<Test>,
    /// When a test showed that the network floods.
    proven: Option<Time>,
    cut: Option<Cut>,
    /// When more is tried, and how long the next wait is if it turns out to be too much.
    try_at: Option<Time>,
    wait: Duration,
    /// What was sent before more was tried, and since when more is.
    trial: Option<(usize, Time)>,
    /// Until when reports count for nothing, and for how long the next time.
    ignores_until: Time,
    ignores_for: Duration,
}

/// Little is sent, to see whether the path of a receiver that reported is empty then.
#[derive(Debug, Clone, Copy)]
struct Test {
    since: Time,
    until: Time,
    /// What was sent before.
    levels: usize,
    /// The least part of it that is carried, as receivers reported.
    carried: f64,
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
            test: None,
            proven: None,
            cut: None,
            try_at: None,
            wait: FIRST_WAIT,
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
        if let Some(test) = &mut self.test {
            // Others measured in the same time.
            if now.since(test.since) < ROUND && carried < test.carried {
                test.carried = carried;
                return self.go_on_testing();
            }
            return None;
        }
        if let Some(cut) = self.cut {
            let age = now.since(cut.at);
            if age < ROUND {
                return if carried < cut.carried { self.cut(cut.at, cut.from, carried) } else { None };
            }
            if age < ROUND * 2 {
                return None;
            }
        }
        if let Some((before, _)) = self.trial.take_if(|(_, since)| now.since(*since) < TRIAL) {
            self.cut = Some(Cut { at: now, from: self.rate(), carried });
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
            self.try_at = Some(now + self.wait);
            return self.set(before, CeilingCause::Flooded);
        }
        if self.proven.is_some_and(|at| now.since(at) < PROVEN_FOR) {
            // A receiver that has not found its rate yet reports less than is carried.
            return self.cut(now, self.rate(), carried.max(LEAST_KEPT / SHARE));
        }
        let carried = self.confirmed(now, carried, interval)?;
        self.test = Some(Test { since: now, until: now + LONGEST_TEST + interval, levels: self.levels, carried });
        self.go_on_testing()
    }

    /// A receiver that reported has judged whether its path is empty now that less is sent.
    pub(super) fn on_verdict(&mut self, now: Time, is_empty: bool) -> Change {
        let test = self.test.take()?;
        if !is_empty {
            return self.give_up(now, test.levels);
        }
        self.proven = Some(now);
        self.cut(now, self.ladder.level_rate(test.levels), test.carried)
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

    /// Called as time passes, with the number of levels that are sent. While receivers take less than the ceiling allows, a trial shows nothing, and its time
    /// starts over.
    pub(super) fn on_time(&mut self, now: Time, sent: usize) -> Change {
        if let Some(test) = self.test.take_if(|test| test.until <= now) {
            return self.give_up(now, test.levels);
        }
        if let Some((_, since)) = self.trial.as_mut().filter(|_| sent < self.levels) {
            (*since, self.try_at) = (now, Some(now + TRIAL));
        }
        self.try_at.take_if(|at| *at <= now)?;
        if self.levels == self.ladder.levels() {
            return None;
        }
        self.trial = Some((self.levels, now));
        self.try_at = Some(now + TRIAL);
        self.set(self.highest_within(self.rate().scale(2.0)).max(self.levels + 1), CeilingCause::Trial)
    }

    /// Sends half of what arrived at the receiver whose report says the least. The report is the geometric mean of what arrived and of something that is
    /// at most all, so its square is no more than what arrived.
    fn go_on_testing(&mut self) -> Change {
        let test = self.test?;
        (self.try_at, self.trial) = (None, None);
        let arrived = self.ladder.level_rate(test.levels).scale(test.carried * test.carried);
        self.set(self.highest_within(arrived.scale(TESTED)).max(self.least()), CeilingCause::Test)
    }

    fn cut(&mut self, now: Time, from: Rate, carried: f64) -> Change {
        self.cut = Some(Cut { at: now, from, carried });
        self.trial = None;
        self.try_at = Some(now + self.wait);
        self.set(self.highest_within(from.scale(carried * SHARE)).max(self.least()), CeilingCause::Flooded)
    }

    /// Other traffic fills the path: what was sent before the test is sent again.
    fn give_up(&mut self, now: Time, before: usize) -> Change {
        self.ignores_until = now + self.ignores_for;
        self.ignores_for = (self.ignores_for * 2).min(LONGEST_WAIT);
        self.try_at = Some(self.ignores_until);
        self.set(before, CeilingCause::Futile)
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

/// The receivers' loss, at one packet in ten and more, is measured to within some per cent, and the queue must become empty.
const SHARE: f64 = 0.9;
/// A cut after the first one leaves at least this part of what was sent.
const LEAST_KEPT: f64 = 0.5;
/// A test sends this part of what arrived. That leaves at least half of the path free, so a flood's queue is gone after twice its length.
const TESTED: f64 = 0.5;
/// A receiver hears of a test within a second, and judges 1.5 s and twice the length of its queue later. It says so at once, and with each probe.
const LONGEST_TEST: Duration = Duration::from_secs(5);
/// A receiver sends its reports at least half of the shortest probe interval apart.
const APART: Duration = Duration::from_millis(500);
/// The least report of so long counts; for as long again, reports may be of before the cut.
const ROUND: Duration = Duration::from_secs(1);
/// For so long after a test a report is of the flood that the test has shown. A later one may be of other traffic, and is tested again.
const PROVEN_FOR: Duration = Duration::from_secs(8);
/// After a cut, and as long as more turns out to be too much, more is tried after this time, twice that and so on.
const FIRST_WAIT: Duration = Duration::from_secs(7);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// More that was not reported for so long is not too much: receivers hear of it within a second, and need two to tell.
const TRIAL: Duration = Duration::from_secs(5);
/// A test in vain takes 3 s from everybody, so a hundredth of the time at most.
const FIRST_IGNORING: Duration = Duration::from_secs(300);

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

    /// A ceiling that tests since 5 s whether a path that carries this part is empty when less is sent.
    fn tested(carried: f64) -> Ceiling {
        let mut ceiling = Ceiling::new(&ladder());
        assert_eq!(ceiling.on_report(at(4_000), carried, INTERVAL), None, "one report says nothing");
        assert_eq!(cause(ceiling.on_report(at(5_000), carried, INTERVAL)), Some(CeilingCause::Test));
        ceiling
    }

    /// A ceiling that has been cut to what carries this part, at 7 s.
    fn cut(carried: f64) -> Ceiling {
        let mut ceiling = tested(carried);
        assert_eq!(cause(ceiling.on_verdict(at(7_000), true)), Some(CeilingCause::Flooded));
        ceiling
    }

    fn cause(change: Change) -> Option<CeilingCause> {
        change.map(|(_, cause)| cause)
    }

    /// Time passes while all that the ceiling lets through is sent.
    fn pass(ceiling: &mut Ceiling, now: Time) -> Option<CeilingCause> {
        cause(ceiling.on_time(now, ceiling.levels()))
    }

    #[test]
    fn a_test_sends_half_of_what_arrived_at_the_receiver_that_has_least() {
        let mut ceiling = tested(0.5);
        assert_sent(&ceiling, 0.5 * 0.5 / 2.0);
        assert_eq!(cause(ceiling.on_report(at(5_900), 0.2, INTERVAL)), Some(CeilingCause::Test));
        assert_sent(&ceiling, 0.2 * 0.2 / 2.0);
        assert_eq!(ceiling.on_report(at(5_950), 0.5, INTERVAL), None);
        assert_eq!(ceiling.on_report(at(6_500), 0.1, INTERVAL), None, "it may be of before");
        assert_eq!(cause(ceiling.on_verdict(at(7_000), true)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2);
        assert_eq!(ceiling.withheld(), ladder().levels() - ceiling.levels());
    }

    #[test]
    fn where_the_path_is_full_in_the_test_too_all_is_sent_again_and_nobody_heard_for_five_minutes() {
        let mut ceiling = tested(0.1);
        assert_eq!(cause(ceiling.on_verdict(at(8_000), false)), Some(CeilingCause::Futile));
        assert_eq!(ceiling.withheld(), 0);
        for millis in [307_000, 308_000] {
            assert_eq!(ceiling.on_report(at(millis), 0.1, INTERVAL), None, "at {millis} ms");
        }
        assert_eq!(cause(ceiling.on_report(at(309_000), 0.1, INTERVAL)), Some(CeilingCause::Test));
    }

    #[test]
    fn where_nobody_judges_for_six_seconds_all_is_sent_again() {
        let mut ceiling = tested(0.1);
        assert_eq!(pass(&mut ceiling, at(10_900)), None);
        assert_eq!(pass(&mut ceiling, at(11_000)), Some(CeilingCause::Futile));
        assert_eq!(ceiling.withheld(), 0);
        assert_eq!(ceiling.on_verdict(at(11_100), true), None, "it is too late");
    }

    #[test]
    fn a_cut_that_did_not_suffice_is_followed_by_another_of_half_at_most_and_after_eight_seconds_by_a_test() {
        let mut ceiling = cut(0.2);
        assert_eq!(ceiling.on_report(at(8_900), 0.7, INTERVAL), None, "it may be of before");
        assert_eq!(cause(ceiling.on_report(at(9_000), 0.7, INTERVAL)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2 / 1.15 * 0.9 * 0.7);
        let mut ceiling = cut(0.2);
        assert_eq!(cause(ceiling.on_report(at(9_000), 0.1, INTERVAL)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2 / 1.15 * 0.5);
        assert_eq!(ceiling.on_report(at(15_000), 0.7, INTERVAL), None);
        assert_eq!(cause(ceiling.on_report(at(16_000), 0.7, INTERVAL)), Some(CeilingCause::Test));
    }

    #[test]
    fn a_test_in_vain_under_a_ceiling_leaves_that_as_it_was_for_five_minutes() {
        let mut ceiling = cut(0.2);
        let carried = ceiling.levels();
        ceiling.on_report(at(15_000), 0.7, INTERVAL);
        ceiling.on_report(at(16_000), 0.7, INTERVAL);
        assert_eq!(cause(ceiling.on_verdict(at(18_000), false)), Some(CeilingCause::Futile));
        assert_eq!(ceiling.levels(), carried);
        assert_eq!(pass(&mut ceiling, at(317_900)), None);
        assert_eq!(pass(&mut ceiling, at(318_000)), Some(CeilingCause::Trial));
    }

    #[test]
    fn more_is_tried_after_seven_seconds_and_if_it_is_too_much_after_twice_that() {
        let mut ceiling = cut(0.1);
        let carried = ceiling.levels();
        assert_eq!(pass(&mut ceiling, at(13_900)), None);
        assert_eq!(pass(&mut ceiling, at(14_000)), Some(CeilingCause::Trial));
        assert_sent(&ceiling, 2.0 * 0.9 * 0.1 / 1.15);
        assert_eq!(cause(ceiling.on_report(at(16_000), 0.6, INTERVAL)), Some(CeilingCause::Flooded));
        assert_eq!(ceiling.levels(), carried);
        assert_eq!(pass(&mut ceiling, at(29_900)), None);
        assert_eq!(pass(&mut ceiling, at(30_000)), Some(CeilingCause::Trial));
    }

    #[test]
    fn a_trial_lasts_five_seconds_from_when_receivers_take_what_it_lets_through() {
        let mut ceiling = cut(0.1);
        assert_eq!(pass(&mut ceiling, at(14_000)), Some(CeilingCause::Trial));
        for tenth in 141..200 {
            assert_eq!(ceiling.on_time(at(tenth * 100), ceiling.levels() - 1), None);
        }
        assert_eq!(pass(&mut ceiling, at(24_800)), None);
        assert_eq!(pass(&mut ceiling, at(24_900)), Some(CeilingCause::Trial));
    }

    #[test]
    fn where_nobody_reports_any_more_all_is_sent_again() {
        let mut ceiling = cut(0.1);
        (0..1_000).for_each(|tenth| _ = pass(&mut ceiling, at(7_000 + tenth * 100)));
        assert_eq!(ceiling.withheld(), 0);
    }

    #[test]
    fn one_report_changes_nothing_nor_do_several_at_once_or_long_after_each_other_or_a_verdict_without_a_test() {
        let mut ceiling = Ceiling::new(&ladder());
        for millis in [5_000, 5_000, 5_490, 7_500, 9_501] {
            assert_eq!(ceiling.on_report(at(millis), 0.1, INTERVAL), None, "at {millis} ms");
            assert_eq!(ceiling.on_verdict(at(millis), true), None, "at {millis} ms");
        }
        assert!(ceiling.on_report(at(11_501), 0.3, INTERVAL).is_some());
        assert_sent(&ceiling, 0.3 * 0.3 / 2.0);
    }

    #[test]
    fn reports_that_cannot_be_change_nothing() {
        let mut ceiling = Ceiling::new(&ladder());
        for part in [f64::NAN, -0.1, 7.0] {
            for millis in [5_000, 6_000] {
                assert_eq!(ceiling.on_report(at(millis), part, INTERVAL), None);
            }
        }
        assert_eq!(tested(0.0).levels(), 1, "nothing is carried");
    }
}
