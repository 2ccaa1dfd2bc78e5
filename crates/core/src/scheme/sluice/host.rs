//! The receiver's side of a host that cannot keep up: how much of the ladder it takes.

use core::time::Duration;

use weir_units::{Rate, Time};

use super::retry::{Retry, TRIAL};
use crate::layers::Ladder;

/// The most levels that the host takes.
///
/// A host for whose application more and more waits is a bottleneck of which bursts tell nothing, as the path carries them. So the receiver
/// goes down to what the application works off, and stays there, but for a level more that it tries now and then.
#[derive(Debug)]
pub(super) struct HostLimit {
    levels: usize,
    /// When the latest cut has acted.
    acts_at: Time,
    /// Since when the receiver has all that it may have.
    had: Option<Time>,
    retry: Retry,
}

impl HostLimit {
    pub(super) const fn new() -> HostLimit {
        HostLimit { levels: usize::MAX, acts_at: Time::ZERO, had: None, retry: Retry::new() }
    }

    /// The most levels that it takes.
    pub(super) const fn levels(&self) -> usize {
        self.levels
    }

    /// What came in the slot that is over, at this level, is too much for the application, which works off this much. Gives the level to go
    /// to.
    pub(super) fn on_too_much(&mut self, now: Time, ladder: &Ladder, level: usize, worked_off: Rate) -> Option<usize> {
        if now < self.acts_at || level <= 1 {
            return None;
        }
        let highest_within = |rate: Rate| ladder.rates().partition_point(|of| *of <= rate).max(1);
        let half = highest_within(ladder.level_rate(level).scale(0.5)).min(level - 1);
        self.levels = highest_within(worked_off.scale(SHARE)).clamp(half, level - 1);
        self.acts_at = now + ACTS_WITHIN;
        self.had = None;
        self.retry.on_cut(now);
        Some(self.levels)
    }

    /// The host takes what comes at this level, and nothing waits. One level more is tried if the receiver has had the most for as long as a
    /// trial takes, and it is time to.
    pub(super) fn on_enough(&mut self, now: Time, ladder: &Ladder, level: usize) {
        self.had = (level >= self.levels).then(|| self.had.unwrap_or(now));
        let is_proven = self.had.is_some_and(|since| now.since(since) >= TRIAL);
        if is_proven && self.retry.is_due(now) {
            self.levels += 1;
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
}
