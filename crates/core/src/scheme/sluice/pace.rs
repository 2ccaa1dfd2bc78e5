//! The sender's side of a host that cannot keep up: how much of the ladder it sends in time.

use core::cmp::Ordering;
use core::time::Duration;

use weir_units::{Rate, Time};

use super::announce::MOST_TOLD;
use super::retry::Retry;
use crate::layers::Ladder;
use crate::observation::CeilingCause;

/// How many levels the sender's host sends in time.
///
/// A host whose processor, or whose supply of symbols, is too slow sends all channels at less than their rates, and receivers take
/// bursts that were cut short for what their paths carry. So the sender withholds the channels above what it manages. It tries twice
/// the rate after a while, and less and less often if that is too much again.
#[derive(Debug)]
pub(super) struct Pace {
    /// Levels that are sent.
    levels: usize,
    /// Those that it never goes below.
    floor: usize,
    /// Periods of this window that were due, and those that were sent.
    due: u64,
    sent: u64,
    /// The window before was too much.
    was_late: bool,
    /// Until when a cut has not shown what it does.
    settles: Time,
    retry: Retry,
}

impl Pace {
    pub(super) fn new(ladder: &Ladder) -> Pace {
        let floor = highest_within(ladder, FLOOR).max(ladder.levels().saturating_sub(MOST_TOLD));
        Pace {
            levels: ladder.levels(),
            floor,
            due: 0,
            sent: 0,
            was_late: false,
            settles: Time::ZERO,
            retry: Retry::new(),
        }
    }

    /// The levels that are sent.
    pub(super) const fn levels(&self) -> usize {
        self.levels
    }

    /// Counts the periods that were due and those that are sent. Returns why the number of levels changed, if it did.
    pub(super) fn on_periods(&mut self, now: Time, ladder: &Ladder, due: u64, sent: u64) -> Option<CeilingCause> {
        let before = self.levels;
        if self.retry.is_due(now) {
            let more = highest_within(ladder, ladder.level_rate(self.levels).scale(2.0)).max(self.levels + 1);
            self.levels = more.min(ladder.levels());
            if self.levels == ladder.levels() {
                self.retry.stop();
            }
        }
        (self.due, self.sent) = (self.due + due, self.sent + sent);
        if now < self.settles {
            (self.due, self.sent) = (0, 0);
        }
        if self.due >= WINDOW {
            let part = self.sent as f64 / self.due as f64;
            let is_late = part < IN_TIME;
            // One window may be late for another reason: hosts stall now and then.
            let is_too_much = is_late && self.was_late && self.levels > self.floor;
            if is_too_much {
                let kept = highest_within(ladder, ladder.level_rate(self.levels).scale(part.max(LEAST) * SHARE));
                self.levels = kept.max(self.floor);
                self.retry.on_cut(now);
                self.settles = now + SETTLING;
            }
            (self.due, self.sent, self.was_late) = (0, 0, is_late && !is_too_much);
        }
        match self.levels.cmp(&before) {
            Ordering::Less => Some(CeilingCause::Busy),
            Ordering::Equal => None,
            Ordering::Greater => Some(CeilingCause::Retry),
        }
    }
}

fn highest_within(ladder: &Ladder, rate: Rate) -> usize {
    ladder.rates().partition_point(|of| *of <= rate).max(1)
}

/// Periods that are judged together: a slot of 100 ms at periods of 5 ms, as that is what receivers measure.
const WINDOW: u64 = 20;
/// A receiver takes 0.93 of what a burst says, and a host is late by a period or two now and then. A tenth is more than either.
const IN_TIME: f64 = 0.9;
/// As below the ceiling of a network that floods: what was managed, less the part that bursts need above it.
const SHARE: f64 = 0.9;
/// After a cut the host still works off what has piled up, and receivers take that long to leave.
const SETTLING: Duration = Duration::from_millis(300);
/// A host that stood still for two windows says nothing of its rate: as a TCP would, the sender halves it and looks again.
const LEAST: f64 = 0.5;
/// A rate at which every host keeps up, if it is not busy with something else: then withholding levels would not help.
const FLOOR: Rate = Rate::from_mbps(200);

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(mbps: u64) -> Ladder {
        Ladder::geometric(Rate::from_mbps(1), Rate::from_mbps(mbps), 1.15).expect("valid")
    }

    /// The rate that is sent after so many deadlines from `first` on, each of which four of five periods met.
    fn after_late(pace: &mut Pace, ladder: &Ladder, first: u64, deadlines: u64) -> Rate {
        for number in first..first + deadlines {
            pace.on_periods(Time::from_millis(number * 25), ladder, 5, 4);
        }
        ladder.level_rate(pace.levels())
    }

    #[test]
    fn a_host_that_is_late_in_two_windows_sends_what_it_manages_and_tries_twice_that_later() {
        let (ladder, mut pace) = (ladder(5_000), Pace::new(&ladder(5_000)));
        assert_eq!(after_late(&mut pace, &ladder, 0, 4), Rate::from_mbps(5_000), "one window may be late");
        assert_eq!(pace.on_periods(Time::from_millis(100), &ladder, 20, 20), None);
        assert_eq!(after_late(&mut pace, &ladder, 4, 4), Rate::from_mbps(5_000), "and another, later");
        let cut = after_late(&mut pace, &ladder, 8, 4);
        assert!((3_000..=3_600).contains(&(cut.bps() / 1_000_000)), "{cut}: 0.8 · 0.9 of 5 Gbit/s, by a step at most");
        assert_eq!(pace.on_periods(Time::from_millis(2_200), &ladder, 20, 20), None);
        assert_eq!(pace.on_periods(Time::from_millis(2_300), &ladder, 20, 20), Some(CeilingCause::Retry));
        assert_eq!(pace.levels(), ladder.levels(), "more is tried");
    }

    #[test]
    fn a_cut_has_three_tenths_of_a_second_to_show_what_it_does() {
        let (ladder, mut pace) = (ladder(5_000), Pace::new(&ladder(5_000)));
        let cut = after_late(&mut pace, &ladder, 0, 8);
        assert!(cut < Rate::from_mbps(5_000));
        assert_eq!(
            after_late(&mut pace, &ladder, 8, 18),
            cut,
            "until 300 ms after it nothing counts, and then two windows do"
        );
        assert!(after_late(&mut pace, &ladder, 26, 1) < cut);
    }

    #[test]
    fn a_host_that_is_late_whatever_it_sends_sends_200_megabits_at_least() {
        for (mbps, least) in [(100, 100), (5_000, 174)] {
            let (ladder, mut pace) = (ladder(mbps), Pace::new(&ladder(mbps)));
            let rate = after_late(&mut pace, &ladder, 0, 190);
            assert!(rate.bps() >= least * 1_000_000 && rate.bps() <= 200_000_000, "{rate}");
        }
    }
}
