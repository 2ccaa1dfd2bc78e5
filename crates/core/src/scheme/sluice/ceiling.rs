//! The sender's side of networks that flood: how much of the ladder is sent.

use alloc::collections::BTreeMap;
use core::time::Duration;

use weir_units::{Rate, Time};
use weir_wire::probe::Verdict;

use super::announce::MOST_TOLD;
use super::flood::TEST_OF_SHARE;
use super::reporters::{self, Reporters};
use crate::layers::Ladder;
use crate::observation::CeilingCause;

/// How many levels are sent: all, unless receivers report that their paths are full whatever they leave, and that they are empty when less is sent.
///
/// Anybody can make up a report, so the sender waits for a second one. Other traffic fills paths as well, so it tests first: it sends half of what
/// arrived at the receiver that reported, and those that did judge whether their paths are empty then. If none is, or nobody judges, all is sent as
/// before. Reports of a receiver whose path was not empty count for nothing for a while, and nobody's do if nobody judged.
///
/// Where a switch floods, the slowest port decides, so the sender withholds the channels above what the least report says is carried, and again
/// if that is still too much. Where reports stay away, twice the rate is tried, less and less often if it is too much.
#[derive(Debug)]
pub(super) struct Ceiling {
    ladder: Ladder,
    /// Levels that are sent.
    levels: usize,
    /// A report that no other has confirmed, and when it came.
    unconfirmed: Option<(Time, Report)>,
    /// Until when no report of a share leads to a test, and for how long the next time.
    tests_shares_from: Time,
    shares_pause: Duration,
    test: Option<Test>,
    /// What tests have shown.
    reporters: Reporters,
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

/// Little is sent, to see whether the paths of receivers that reported are empty then.
#[derive(Debug)]
struct Test {
    since: Time,
    until: Time,
    /// What was sent before, and what is sent for the test.
    before: usize,
    tested: usize,
    /// By receiver that has not judged yet: the part of what was sent that its path carries.
    reports: BTreeMap<u32, f64>,
    /// When the first receiver found its path empty. Others judge at about that time.
    shown: Option<Time>,
    /// It is of a receiver that gets a flow's share in each channel, and wants this level.
    share_of: Option<usize>,
}

/// A receiver's path is full, and carries this part of what is sent.
#[derive(Debug, Clone, Copy)]
struct Report {
    receiver: u32,
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

impl Test {
    fn least(&self) -> f64 {
        self.reports.values().copied().fold(1.0, f64::min)
    }
}

impl Ceiling {
    pub(super) fn new(ladder: &Ladder) -> Ceiling {
        Ceiling {
            ladder: ladder.clone(),
            levels: ladder.levels(),
            unconfirmed: None,
            tests_shares_from: Time::ZERO,
            shares_pause: reporters::FIRST_PAUSE,
            test: None,
            reporters: Reporters::default(),
            cut: None,
            try_at: None,
            wait: FIRST_WAIT,
            trial: None,
            ignores_until: Time::ZERO,
            ignores_for: reporters::FIRST_PAUSE,
        }
    }

    /// The levels that are sent.
    pub(super) const fn levels(&self) -> usize {
        self.levels
    }

    /// The level of a receiver that is to see whether one flow gets what is sent, and the levels that are.
    pub(super) fn tests_share_of(&self) -> Option<(usize, usize)> {
        let test = self.test.as_ref().filter(|test| test.shown.is_none())?;
        test.share_of.map(|level| (level, test.tested))
    }

    /// The levels that are not.
    #[cfg(test)]
    fn withheld(&self) -> usize {
        self.ladder.levels() - self.levels
    }

    /// A receiver's path is full whatever it leaves, and carries only a part of what is sent. Receivers report once in an `interval`,
    /// give or take half.
    pub(super) fn on_report(&mut self, now: Time, receiver: u32, carried: f64, interval: Duration) -> Change {
        let report = Report { receiver, carried };
        let is_possible = (0.0..=1.0).contains(&carried);
        if now < self.ignores_until || !is_possible || !self.reporters.counts(now, receiver) {
            return None;
        }
        if self.test.as_ref().is_some_and(|test| test.shown.is_none()) {
            return self.on_report_in_test(now, report);
        }
        let flooded = self.reporters.flooded(receiver);
        if let Some(cut) = self.cut {
            let age = now.since(cut.at);
            if age < ROUND && flooded.is_some() && carried < cut.carried {
                return self.cut(cut.at, cut.from, carried);
            }
            if age < ROUND * 2 {
                return None;
            }
        }
        if let Some(shown) = flooded {
            if let Some((before, _)) = self.trial.take_if(|(_, since)| now.since(*since) < TRIAL) {
                return self.go_back(now, before, carried);
            }
            if now.since(shown) < PROVEN_FOR {
                // A receiver that has not found its rate yet reports less than is carried.
                return self.cut(now, self.rate(), carried.max(LEAST_KEPT / SHARE));
            }
        }
        let reports = self.confirmed(now, report, interval)?;
        let (until, before) = (now + LONGEST_TEST + interval, self.levels);
        self.test = Some(Test { since: now, until, before, tested: before, reports, shown: None, share_of: None });
        self.go_on_testing()
    }

    /// A receiver that wants this level gets one flow's share in each channel, where so many levels are sent. If that is far more than it has, a test shows
    /// whether their flows are those that it shares with: with twice what it has, as it would not see the end of a flood otherwise. One that has fallen since
    /// more is tried tells that this was too much.
    pub(super) fn on_share(
        &mut self,
        now: Time,
        receiver: u32,
        wanted: usize,
        sent: usize,
        interval: Duration,
    ) -> Change {
        if now < self.ignores_until || !self.reporters.counts(now, receiver) || self.test.is_some() {
            return None;
        }
        if self.reporters.flooded(receiver).is_some()
            && let Some((before, since)) = self.trial
            && now.since(since) < TRIAL * 2
            && self.ladder.level_rate(wanted.max(1)) < self.ladder.level_rate(before).scale(FALLEN)
        {
            return self.go_back(now, before, 0.0);
        }
        let [had, sent] = [wanted, sent].map(|levels| self.ladder.level_rate(levels.max(1)));
        if now < self.tests_shares_from || sent < had.scale(FAR_MORE) {
            return None;
        }
        let tested = self.highest_within(had.scale(TESTED_SHARE));
        let carried = self.ladder.level_rate(tested).bps() as f64 / self.rate().bps() as f64 / SHARE;
        let reports = self.confirmed(now, Report { receiver, carried }, interval)?;
        let until = now + TEST_OF_SHARE + ROUND * 2 + interval;
        let before = self.levels;
        self.test = Some(Test { since: now, until, before, tested, reports, shown: None, share_of: Some(wanted) });
        (self.try_at, self.trial) = (None, None);
        self.set(tested, CeilingCause::Test)
    }

    /// More turned out to be too much.
    fn go_back(&mut self, now: Time, before: usize, carried: f64) -> Change {
        self.cut = Some(Cut { at: now, from: self.rate(), carried });
        self.trial = None;
        self.wait = (self.wait * 2).min(reporters::LONGEST_PAUSE);
        self.try_at = Some(now + self.wait);
        self.set(before, CeilingCause::Flooded)
    }

    /// Others measured in the same time.
    fn on_report_in_test(&mut self, now: Time, Report { receiver, carried }: Report) -> Change {
        let test = self.test.as_mut().filter(|test| now.since(test.since) < ROUND && test.share_of.is_none())?;
        let least = test.least();
        if test.reports.len() < MOST_IN_TEST || test.reports.contains_key(&receiver) {
            let own = test.reports.entry(receiver).or_insert(carried);
            *own = own.min(carried);
        }
        if test.least() < least { self.go_on_testing() } else { None }
    }

    /// A receiver that reported has judged whether its path is empty now that less is sent, `most` levels at most. It may be of an earlier cut.
    pub(super) fn on_verdict(&mut self, now: Time, verdict: Verdict, most: usize) -> Change {
        let test = self.test.as_mut()?;
        if usize::from(verdict.withheld) != self.ladder.levels() - test.tested.min(most) {
            return None;
        }
        let carried = test.reports.remove(&verdict.receiver)?;
        let was_flooded = self.reporters.flooded(verdict.receiver).is_some();
        self.reporters.on_verdict(now, verdict.receiver, verdict.is_empty);
        let from = self.ladder.level_rate(test.before);
        match test.shown {
            None if verdict.is_empty => {
                test.shown = Some(now);
                if test.share_of.is_some() {
                    // It goes on with what was tested.
                    self.cut = Some(Cut { at: now, from, carried });
                    self.try_at = Some(now + self.wait);
                    self.shares_pause = reporters::FIRST_PAUSE;
                    self.tests_shares_from = now + self.shares_pause;
                    return Some((self.rate(), CeilingCause::Flooded));
                }
                self.cut(now, from, carried)
            }
            Some(_) if verdict.is_empty => {
                let cut = self.cut.filter(|cut| carried < cut.carried)?;
                self.cut(cut.at, from, carried)
            }
            None if test.reports.is_empty() => {
                let (before, share_of) = (test.before, test.share_of);
                self.test = None;
                if share_of.is_some() {
                    self.tests_shares_from = now + self.shares_pause;
                    self.shares_pause = (self.shares_pause * 2).min(reporters::LONGEST_PAUSE);
                }
                // One that the ceiling is for would not be heard if more were too much.
                self.try_at = Some(now + if was_flooded { reporters::FIRST_PAUSE } else { self.wait });
                self.set(before, CeilingCause::Futile)
            }
            _ => None,
        }
    }

    /// This report and the one before it, with what the milder of them says, if their distance is what receivers' probe intervals allow: not a
    /// burst of reports, and not one long after another.
    fn confirmed(&mut self, now: Time, report: Report, interval: Duration) -> Option<BTreeMap<u32, f64>> {
        let since_first = self.unconfirmed.map(|(at, _)| now.since(at));
        if since_first.is_some_and(|since| since < APART) {
            return None;
        }
        let confirms = since_first.is_some_and(|since| since <= interval * 2);
        let (_, before) = self.unconfirmed.replace((now, report)).filter(|_| confirms)?;
        let carried = before.carried.max(report.carried);
        Some([before.receiver, report.receiver].map(|receiver| (receiver, carried)).into())
    }

    /// Called as time passes, with the number of levels that are sent. While receivers take less than the ceiling allows, a trial shows nothing, and its time
    /// starts over.
    pub(super) fn on_time(&mut self, now: Time, sent: usize) -> Change {
        self.test.take_if(|test| test.shown.is_some_and(|at| now.since(at) >= ROUND));
        if let Some(test) = self.test.take_if(|test| test.shown.is_none() && test.until <= now) {
            return self.ignore_all(now, test.before);
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
        let test = self.test.as_ref()?;
        let arrived = self.ladder.level_rate(test.before).scale(test.least() * test.least());
        let tested = self.highest_within(arrived.scale(TESTED)).max(self.least());
        (self.try_at, self.trial) = (None, None);
        if let Some(test) = &mut self.test {
            test.tested = tested;
        }
        self.set(tested, CeilingCause::Test)
    }

    fn cut(&mut self, now: Time, from: Rate, carried: f64) -> Change {
        self.cut = Some(Cut { at: now, from, carried });
        self.trial = None;
        self.try_at = Some(now + self.wait);
        self.set(self.highest_within(from.scale(carried * SHARE)).max(self.least()), CeilingCause::Flooded)
    }

    /// Nobody judged, so the reports may be made up: what was sent before the test is sent again.
    fn ignore_all(&mut self, now: Time, before: usize) -> Change {
        self.ignores_until = now + self.ignores_for;
        self.ignores_for = (self.ignores_for * 2).min(reporters::LONGEST_PAUSE);
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
/// More was too much for who has less than this part of what was sent before.
pub(super) const FALLEN: f64 = 0.8;
/// A share is tested where this many times as much is sent as the receiver has, with this many times as much as it has.
const FAR_MORE: f64 = 4.0;
const TESTED_SHARE: f64 = 2.0;
/// The least report of so long counts; for as long again, reports may be of before the cut.
const ROUND: Duration = Duration::from_secs(1);
/// For so long after a test a report is of the flood that the test has shown. A later one may be of other traffic, and is tested again.
const PROVEN_FOR: Duration = Duration::from_secs(8);
/// After a cut, and as long as more turns out to be too much, more is tried after this time, twice that and so on.
const FIRST_WAIT: Duration = Duration::from_secs(7);
/// More that was not reported for so long is not too much: receivers hear of it within a second, and need two to tell.
const TRIAL: Duration = Duration::from_secs(5);
/// More receivers are not asked in one test. Those that are left out report again.
const MOST_IN_TEST: usize = 2_000;

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
        assert_eq!(report(&mut ceiling, 4_000, carried), None, "one report says nothing");
        assert_eq!(cause(report(&mut ceiling, 5_000, carried)), Some(CeilingCause::Test));
        ceiling
    }

    /// A ceiling that has been cut to what carries this part, at 7 s.
    fn cut(carried: f64) -> Ceiling {
        let mut ceiling = tested(carried);
        assert_eq!(cause(judge(&mut ceiling, 7_000, true)), Some(CeilingCause::Flooded));
        ceiling
    }

    /// The first receiver reports that its path carries this part.
    fn report(ceiling: &mut Ceiling, millis: u64, carried: f64) -> Change {
        ceiling.on_report(at(millis), 1, carried, INTERVAL)
    }

    /// And judges the present ceiling.
    fn judge(ceiling: &mut Ceiling, millis: u64, is_empty: bool) -> Change {
        judge_as(ceiling, millis, 1, is_empty)
    }

    fn judge_as(ceiling: &mut Ceiling, millis: u64, receiver: u32, is_empty: bool) -> Change {
        let withheld = ceiling.withheld() as u16;
        ceiling.on_verdict(at(millis), Verdict { receiver, withheld, is_empty }, usize::MAX)
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
        assert_eq!(cause(report(&mut ceiling, 5_900, 0.2)), Some(CeilingCause::Test));
        assert_sent(&ceiling, 0.2 * 0.2 / 2.0);
        assert_eq!(report(&mut ceiling, 5_950, 0.5), None);
        assert_eq!(report(&mut ceiling, 6_500, 0.1), None, "it may be of before");
        assert_eq!(cause(judge(&mut ceiling, 7_000, true)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2);
        assert_eq!(ceiling.withheld(), ladder().levels() - ceiling.levels());
    }

    #[test]
    fn where_the_path_is_full_in_the_test_too_all_is_sent_again_and_its_receiver_not_heard_for_five_minutes() {
        let mut ceiling = tested(0.1);
        assert_eq!(cause(judge(&mut ceiling, 8_000, false)), Some(CeilingCause::Futile));
        assert_eq!(ceiling.withheld(), 0);
        for millis in [307_000, 308_000] {
            assert_eq!(report(&mut ceiling, millis, 0.1), None, "at {millis} ms");
        }
        assert_eq!(cause(report(&mut ceiling, 309_000, 0.1)), Some(CeilingCause::Test));
    }

    #[test]
    fn a_flood_is_found_next_to_a_receiver_whose_path_others_fill_whoever_judges_first() {
        let both = || {
            let mut ceiling = tested(0.2);
            ceiling.on_report(at(5_500), 2, 0.1, INTERVAL);
            assert_sent(&ceiling, 0.1 * 0.1 / 2.0);
            ceiling
        };
        let mut ceiling = both();
        assert_eq!(judge_as(&mut ceiling, 7_000, 2, false), None, "the other one has not judged");
        assert_eq!(cause(judge_as(&mut ceiling, 8_000, 1, true)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2);
        for millis in [10_000, 11_000, 12_000] {
            assert_eq!(ceiling.on_report(at(millis), 2, 0.5, INTERVAL), None);
        }
        assert_eq!(cause(report(&mut ceiling, 13_000, 0.5)), Some(CeilingCause::Flooded), "the first one is heard");
        let mut ceiling = both();
        assert_eq!(cause(judge_as(&mut ceiling, 7_000, 1, true)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2);
        for millis in [10_000, 11_000] {
            ceiling.on_report(at(millis), 2, 0.5, INTERVAL);
        }
        assert_sent(&ceiling, 0.9 * 0.2 * 0.5 * 0.5 / 2.0);
        assert_eq!(cause(judge_as(&mut ceiling, 13_000, 2, false)), Some(CeilingCause::Futile));
        assert_sent(&ceiling, 0.9 * 0.2);
    }

    #[test]
    fn of_two_floods_the_one_that_carries_less_decides() {
        let mut ceiling = tested(0.2);
        let withheld = {
            ceiling.on_report(at(5_500), 2, 0.1, INTERVAL);
            ceiling.withheld() as u16
        };
        judge_as(&mut ceiling, 7_000, 1, true);
        let verdict = Verdict { receiver: 2, withheld, is_empty: true };
        assert_eq!(ceiling.on_verdict(at(7_100), Verdict { withheld: withheld - 1, ..verdict }, usize::MAX), None);
        assert_eq!(cause(ceiling.on_verdict(at(7_200), verdict, usize::MAX)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.1);
    }

    #[test]
    fn a_verdict_of_a_receiver_that_has_not_reported_changes_nothing() {
        let mut ceiling = tested(0.2);
        assert_eq!([true, false].map(|is_empty| judge_as(&mut ceiling, 7_000, 2, is_empty)), [None, None]);
        assert_eq!(cause(judge_as(&mut ceiling, 7_100, 1, true)), Some(CeilingCause::Flooded));
    }

    #[test]
    fn where_nobody_judges_for_six_seconds_all_is_sent_again() {
        let mut ceiling = tested(0.1);
        assert_eq!(pass(&mut ceiling, at(10_900)), None);
        assert_eq!(pass(&mut ceiling, at(11_000)), Some(CeilingCause::Futile));
        assert_eq!(ceiling.withheld(), 0);
        assert_eq!(judge(&mut ceiling, 11_100, true), None, "it is too late");
        let mut others = |millis, receiver| ceiling.on_report(at(millis), receiver, 0.1, INTERVAL).is_some();
        assert_eq!([others(309_900, 2), others(310_900, 2), others(311_900, 2)], [false; 3], "nobody is heard");
        assert!(others(312_900, 3));
    }

    #[test]
    fn a_cut_that_did_not_suffice_is_followed_by_another_of_half_at_most_and_after_eight_seconds_by_a_test() {
        let mut ceiling = cut(0.2);
        assert_eq!(report(&mut ceiling, 8_900, 0.7), None, "it may be of before");
        assert_eq!(cause(report(&mut ceiling, 9_000, 0.7)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2 / 1.15 * 0.9 * 0.7);
        let mut ceiling = cut(0.2);
        assert_eq!(cause(report(&mut ceiling, 9_000, 0.1)), Some(CeilingCause::Flooded));
        assert_sent(&ceiling, 0.9 * 0.2 / 1.15 * 0.5);
        assert_eq!(report(&mut ceiling, 15_000, 0.7), None);
        assert_eq!(cause(report(&mut ceiling, 16_000, 0.7)), Some(CeilingCause::Test));
    }

    #[test]
    fn a_test_in_vain_under_a_ceiling_leaves_that_as_it_was_for_five_minutes() {
        let mut ceiling = cut(0.2);
        let carried = ceiling.levels();
        report(&mut ceiling, 15_000, 0.7);
        report(&mut ceiling, 16_000, 0.7);
        assert_eq!(cause(judge(&mut ceiling, 18_000, false)), Some(CeilingCause::Futile));
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
        assert_eq!(cause(report(&mut ceiling, 16_000, 0.6)), Some(CeilingCause::Flooded));
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
            assert_eq!(report(&mut ceiling, millis, 0.1), None, "at {millis} ms");
            assert_eq!(judge(&mut ceiling, millis, true), None, "at {millis} ms");
        }
        assert!(report(&mut ceiling, 11_501, 0.3).is_some());
        assert_sent(&ceiling, 0.3 * 0.3 / 2.0);
    }

    /// The first receiver, which wants this level, gets a flow's share in each channel; all levels are sent that the ceiling allows.
    fn share(ceiling: &mut Ceiling, millis: u64, wanted: usize) -> Change {
        let sent = ceiling.levels();
        ceiling.on_share(at(millis), 1, wanted, sent, INTERVAL)
    }

    /// A ceiling that tests since 5 s whether flows that it sends are what the share is of.
    fn tested_share(wanted: usize) -> Ceiling {
        let mut ceiling = Ceiling::new(&ladder());
        assert_eq!(share(&mut ceiling, 4_000, wanted), None, "one report says nothing");
        assert_eq!(cause(share(&mut ceiling, 5_000, wanted)), Some(CeilingCause::Test));
        ceiling
    }

    #[test]
    fn a_share_is_tested_with_twice_of_what_the_receiver_has_if_four_times_as_much_is_sent() {
        let ceiling = tested_share(20);
        let [had, sent] = [20, ceiling.levels()].map(|level| ladder().level_rate(level).bps() as f64);
        assert!((1.7..=2.0).contains(&(sent / had)), "{}", sent / had);
        assert_eq!(ceiling.tests_share_of(), Some((20, ceiling.levels())));
        let mut ceiling = Ceiling::new(&ladder());
        let below = ladder().levels() - 9;
        assert_eq!(
            [4_000, 5_000].map(|millis| share(&mut ceiling, millis, below)),
            [None; 2],
            "the top is 3.5 times that"
        );
    }

    #[test]
    fn where_the_share_grows_in_the_test_what_was_tested_stays_and_twice_that_is_tried() {
        let mut ceiling = tested_share(20);
        let tested = ceiling.levels();
        assert_eq!(cause(judge(&mut ceiling, 8_000, true)), Some(CeilingCause::Flooded));
        assert_eq!((ceiling.levels(), ceiling.tests_share_of()), (tested, None));
        assert_eq!(cause(ceiling.on_time(at(15_000), usize::MAX)), Some(CeilingCause::Trial));
        assert!(share(&mut ceiling, 16_000, tested).is_none(), "it has what it had");
        assert_eq!(cause(share(&mut ceiling, 17_000, tested - 4)), Some(CeilingCause::Flooded), "it has fallen");
        assert_eq!(ceiling.levels(), tested);
    }

    #[test]
    fn where_it_does_not_no_share_of_anybody_is_tested_for_five_minutes_and_then_for_ten() {
        let mut ceiling = tested_share(20);
        assert_eq!(cause(judge(&mut ceiling, 10_000, false)), Some(CeilingCause::Futile));
        assert_eq!(ceiling.withheld(), 0);
        let sent = ceiling.levels();
        let mut test = |from: u64| {
            let reports = [from, from + 1_000].map(|millis| ceiling.on_share(at(millis), 2, 20, sent, INTERVAL));
            let is_tested = reports[1].is_some();
            if is_tested {
                assert_eq!(cause(judge_as(&mut ceiling, from + 5_000, 2, false)), Some(CeilingCause::Futile));
            }
            is_tested
        };
        assert_eq!([test(200_000), test(310_000), test(800_000), test(920_000)], [false, true, false, true]);
    }

    #[test]
    fn reports_that_cannot_be_change_nothing() {
        let mut ceiling = Ceiling::new(&ladder());
        for part in [f64::NAN, -0.1, 7.0] {
            for millis in [5_000, 6_000] {
                assert_eq!(report(&mut ceiling, millis, part), None);
            }
        }
        assert_eq!(tested(0.0).levels(), 1, "nothing is carried");
    }
}
