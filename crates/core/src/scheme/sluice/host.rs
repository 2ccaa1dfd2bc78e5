//! The receiver's side of a host that cannot keep up: how much of the ladder it takes.

use core::time::Duration;

use weir_units::{Rate, Time};

use super::retry::{Retry, TRIAL};
use crate::layers::Ladder;

/// The most levels that the host takes.
///
/// A host for whose application more and more waits is a bottleneck of which bursts tell nothing, as the path carries them. So the receiver
/// goes down to what the application works off, and looks from there for the most that it takes: each trial goes half of the way to what was
/// too much.
#[derive(Debug)]
pub(super) struct HostLimit {
    levels: usize,
    /// The highest level that the receiver has held for the length of a trial without a backlog; 0 if there is none.
    enough: usize,
    /// The level that was too much last; 0 if none was.
    too_much: usize,
    /// When the latest cut has acted.
    acts_at: Time,
    /// Since when the receiver has all that it may have.
    had: Option<Time>,
    retry: Retry,
}

impl HostLimit {
    pub(super) const fn new() -> HostLimit {
        HostLimit { levels: usize::MAX, enough: 0, too_much: 0, acts_at: Time::ZERO, had: None, retry: Retry::new() }
    }

    /// The most levels that it takes.
    pub(super) const fn levels(&self) -> usize {
        self.levels
    }

    /// What came in the slot that is over, at this level, is too much for the application, which works off this much. Gives the level to go
    /// to, which is no lower than what was enough before.
    pub(super) fn on_too_much(&mut self, now: Time, ladder: &Ladder, level: usize, worked_off: Rate) -> Option<usize> {
        if now < self.acts_at || level <= 1 {
            return None;
        }
        let highest_within = |rate: Rate| ladder.rates().partition_point(|of| *of <= rate).max(1);
        let half = highest_within(ladder.level_rate(level).scale(0.5)).min(level - 1);
        self.enough = if self.enough < level { self.enough } else { 0 };
        self.levels = highest_within(worked_off.scale(SHARE)).clamp(half, level - 1).max(self.enough);
        self.too_much = level;
        self.acts_at = now + ACTS_WITHIN;
        self.had = None;
        self.retry.on_cut(now);
        Some(self.levels)
    }

    /// The host takes what comes at this level, and nothing waits. More is tried if the receiver has had the most for as long as a trial takes,
    /// and it is time to.
    pub(super) fn on_enough(&mut self, now: Time, ladder: &Ladder, level: usize) {
        self.had = (level >= self.levels).then(|| self.had.unwrap_or(now));
        let is_proven = self.had.is_some_and(|since| now.since(since) >= TRIAL);
        if is_proven && self.retry.is_due(now) {
            self.enough = level;
            self.levels = level + (self.too_much.saturating_sub(level) / 2).max(1);
            self.had = None;
        }
        if self.levels >= ladder.levels() {
            self.levels = usize::MAX;
            self.retry.stop();
        }
    }
}

/// What the application manages, less what lets it work off what waits.
const SHARE: f64 = 0.95;
/// What waits still grows for a moment after a leave, if that acts at once; where it does not, there is room for what comes meanwhile.
const ACTS_WITHIN: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn ladder() -> Ladder {
        Ladder::geometric(Rate::from_mbps(1), Rate::from_mbps(100), 1.15).expect("valid")
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn the_receiver_goes_down_to_what_its_application_works_off_but_to_no_less_than_half_at_once() {
        let (ladder, mut limit) = (ladder(), HostLimit::new());
        let top = ladder.levels();
        let kept = limit.on_too_much(at(0), &ladder, top, Rate::from_mbps(80)).expect("less");
        assert!((76 / 2..=76).contains(&(ladder.level_rate(kept).bps() / 1_000_000)) && limit.levels() == kept);
        assert!(ladder.level_rate(kept + 1) > Rate::from_mbps(76));
        assert_eq!(limit.on_too_much(at(200), &ladder, kept, Rate::from_mbps(10)), None, "that was of before");
        let half = limit.on_too_much(at(300), &ladder, kept, Rate::from_mbps(10)).expect("less");
        assert!(ladder.level_rate(half + 1) > ladder.level_rate(kept).scale(0.5));
    }

    #[test]
    fn one_level_more_is_tried_at_a_time_and_only_by_who_has_the_most_that_the_host_took() {
        let (ladder, mut limit) = (ladder(), HostLimit::new());
        let kept = limit.on_too_much(at(0), &ladder, 10, ladder.level_rate(9)).expect("less");
        (0..100).for_each(|slot| limit.on_enough(at(slot * 100), &ladder, kept - 1));
        assert_eq!(limit.levels(), kept);
        limit.on_enough(at(10_000), &ladder, kept);
        limit.on_enough(at(11_900), &ladder, kept);
        assert_eq!(limit.levels(), kept, "it has it for less than two seconds");
        limit.on_enough(at(12_000), &ladder, kept);
        limit.on_enough(at(12_100), &ladder, kept + 1);
        assert_eq!(limit.levels(), kept + 1);
        (13..200).for_each(|second| limit.on_enough(at(second * 1_000), &ladder, ladder.levels().min(limit.levels())));
        assert_eq!(limit.levels(), usize::MAX, "all of them");
    }

    #[test]
    fn each_trial_goes_half_of_the_way_to_what_was_too_much_and_back_to_what_was_enough() {
        let (ladder, mut limit) = (ladder(), HostLimit::new());
        let nothing = Rate::from_kbps(1);
        assert_eq!(limit.on_too_much(at(0), &ladder, 20, nothing), Some(15), "half of the rate");
        // The receiver has each level as soon as it is allowed.
        let allowed: Vec<usize> = (1..=63)
            .map(|slot| {
                limit.on_enough(at(100 * slot), &ladder, limit.levels());
                limit.levels()
            })
            .collect();
        assert_eq!([20, 21, 42, 63].map(|slot: usize| allowed[slot - 1]), [15, 17, 18, 19]);
        assert_eq!(limit.on_too_much(at(6_700), &ladder, 19, nothing), Some(18), "that was enough");
        assert_eq!(limit.on_too_much(at(7_100), &ladder, 18, nothing), Some(13), "it is no longer");
    }
}
