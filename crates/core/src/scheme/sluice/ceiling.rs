//! The sender's side of networks that flood: how much of the ladder is sent.

use alloc::collections::BTreeMap;
use core::time::Duration;

use weir_units::{Rate, Time};
use weir_wire::probe::Verdict;

use super::announce::MOST_TOLD;
use super::flood::TEST_OF_SHARE;
use super::pause::{self, Pause};
use super::reporters::Reporters;
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
    /// In which no report of a share leads to a test.
    shares: Pause,
    test: Option<Test>,
    /// What tests have shown.
    reporters: Reporters,
    cut: Option<Cut>,
    /// When more is tried, and how long the next wait is if it turns out to be too much.
    try_at: Option<Time>,
    wait: Duration,
    /// What was sent before more was tried, and since when more is.
    trial: Option<(usize, Time)>,
    /// In which reports count for nothing.
    ignores: Pause,
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
            shares: Pause::new(),
            test: None,
            reporters: Reporters::default(),
            cut: None,
            try_at: None,
            wait: FIRST_WAIT,
            trial: None,
            ignores: Pause::new(),
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
        if !self.ignores.is_over(now) || !is_possible || !self.reporters.counts(now, receiver) {
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

    /// A receiver that wants the level `wanted` reports that each of its channels gets the share of one flow, while `sent` levels are sent. If the sender
    /// sends far more than that, the other flows may be its own channels. A test finds out: the sender sends twice what the receiver has, so that the
    /// receiver can see its share grow. If a trial is under way and the receiver has less than before it, the trial was too much.
    pub(super) fn on_share(
        &mut self,
        now: Time,
        receiver: u32,
        wanted: usize,
        sent: usize,
        interval: Duration,
    ) -> Change {
        if !self.ignores.is_over(now) || !self.reporters.counts(now, receiver) || self.test.is_some() {
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
        if !self.shares.is_over(now) || sent < had.scale(FAR_MORE) {
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
        self.wait = (self.wait * 2).min(pause::LONGEST_PAUSE);
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
                    self.shares = Pause::first(now);
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
                    self.shares.begin(now);
                }
                // One that the ceiling is for would not be heard if more were too much.
                self.try_at = Some(now + if was_flooded { pause::FIRST_PAUSE } else { self.wait });
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
        self.ignores.begin(now);
        self.try_at = Some(self.ignores.until());
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
pub(super) const TESTED: f64 = 0.5;
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
mod tests;
