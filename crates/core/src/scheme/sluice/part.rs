//! How much of the next step a receiver takes where the path does not carry all of it.
//!
//! A path carries a fourteenth more than the best level of a ladder with steps of 15 %, on the mean. Bursts that do not fit tell how much more.
//! The sender adds to the topmost channel what all receivers of the highest level want (`demand.rs`), so nobody has to join anything.

use core::time::Duration;

use weir_units::{Rate, Time};
use weir_wire::probe::Wanted;

use super::bars::BackOff;
use super::config::Config;

/// The parts of a step.
pub(super) const EIGHTHS: u8 = Wanted::MOST_EIGHTHS + 1;

/// The part that is taken, and what is known of the path.
#[derive(Debug)]
pub(super) struct Part {
    /// What is taken leaves the path this factor wider than the rate, as the next level does when it is joined.
    margin: f64,
    trial: Duration,
    first_back_off: Duration,
    /// What the path carries by the last bursts that did not fit at this level, the newest first.
    carried: [Option<Rate>; BURSTS],
    eighths: u8,
    /// When the part grew last, as long as that may turn out to be too much.
    trying: Option<Time>,
    /// It was too much, and stays as it is.
    back_off: BackOff,
}

impl Part {
    pub(super) fn new(config: &Config) -> Part {
        Part {
            margin: config.margin,
            trial: config.trial,
            first_back_off: config.back_off,
            carried: [None; BURSTS],
            eighths: 0,
            trying: None,
            back_off: BackOff::default(),
        }
    }

    /// The part of the next step that is wanted, in eighths.
    pub(super) const fn eighths(&self) -> u8 {
        self.eighths
    }

    /// A burst did not fit, and told what the path carries. `levels` are the rates of the receiver's level and of the next one; `may_grow` says how
    /// many bursts have to agree before the part grows, if it may.
    pub(super) fn on_burst(&mut self, now: Time, carried: Rate, levels: [Rate; 2], may_grow: Option<u32>) {
        self.carried.rotate_right(1);
        self.carried[0] = Some(carried);
        let told = || self.carried.iter().flatten();
        let within = |rate: Rate| eighths_within(rate.scale(1.0 / self.margin), levels);
        let least = within(told().copied().fold(carried, Rate::min));
        let mean = within(Rate::from_bps(told().map(|rate| rate.bps()).sum::<u64>() / told().count() as u64));
        let do_agree = may_grow.is_some_and(|needed| told().count() >= needed as usize);
        if do_agree && least > self.eighths && !self.back_off.holds(now) {
            (self.eighths, self.trying) = (least, Some(now));
        } else if mean + SLACK < self.eighths {
            self.eighths = mean;
        }
    }

    /// Whether it has grown lately, so that a queue is its fault.
    pub(super) fn is_on_trial(&self) -> bool {
        self.trying.is_some()
    }

    /// Whether it has been on trial for at least this long.
    pub(super) fn has_been_on_trial_for(&self, now: Time, at_least: Duration) -> bool {
        self.trying.is_some_and(|since| now.since(since) >= at_least)
    }

    /// Time passes: what has been taken for that long is not on trial any more.
    pub(super) fn on_time(&mut self, now: Time) {
        self.trying.take_if(|since| now.since(*since) >= self.trial);
    }

    /// It was too much: nothing of the step is taken for a while, and for longer each time.
    pub(super) fn take_back(&mut self, now: Time) {
        self.back_off.extend(now, self.first_back_off);
        self.forget();
    }

    /// The level is another one, or others have come: what is known does not hold any more.
    pub(super) fn forget(&mut self) {
        (self.carried, self.eighths, self.trying) = ([None; BURSTS], 0, None);
    }
}

/// The eighths of the step between these rates up to this one.
fn eighths_within(rate: Rate, [from, to]: [Rate; 2]) -> u8 {
    let part = rate.saturating_sub(from).bps() as f64 / to.saturating_sub(from).bps().max(1) as f64;
    ((part * f64::from(EIGHTHS)) as u8).min(EIGHTHS - 1)
}

/// The part shrinks if the mean of the bursts says that it is too large by more than this many eighths.
const SLACK: u8 = 1;
/// The part grows to what the lowest of this many bursts allows. If the sender is up to 5 ms late, two bursts in a row are too high within a minute.
const BURSTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [Rate; 2] = [Rate::from_kbps(10_000), Rate::from_kbps(11_500)];

    fn new() -> Part {
        Part::new(&Config::default())
    }

    fn at(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    /// The eighths after a burst that told of this much.
    fn told(part: &mut Part, secs: u64, kbps: u64, needed: u32) -> u8 {
        part.on_burst(at(secs), Rate::from_kbps(kbps), LEVELS, Some(needed));
        part.eighths()
    }

    #[test]
    fn it_is_the_eighths_of_the_step_that_leave_three_hundredths_of_the_path_free() {
        let after = |kbps| told(&mut new(), 1, kbps, 1);
        // 10.6 Mbit/s are 3.2 eighths of the step.
        assert_eq!([9_000, 10_000, 10_300, 10_918, 11_800, 20_000].map(after), [0, 0, 0, 3, 7, 7]);
    }

    #[test]
    fn it_grows_by_the_lowest_of_four_bursts_and_shrinks_by_their_mean() {
        let mut part = new();
        let grown = [10_918, 11_500, 11_500, 11_500, 11_500].map(|kbps| told(&mut part, 1, kbps, 2));
        assert_eq!(grown, [0, 3, 3, 3, 6]);
        // Their means are 11.25, 11, 10.75 and 10.5 Mbit/s, which are 4.9, 3.6, 2.3 and 1.04 eighths.
        let shrunk = [10_500; 4].map(|kbps| told(&mut part, 2, kbps, 2));
        assert_eq!(shrunk, [4, 4, 2, 2]);
        for _ in 0..BURSTS {
            part.on_burst(at(4), Rate::from_kbps(11_500), LEVELS, None);
        }
        assert_eq!(part.eighths(), 2, "it may not grow");
    }

    #[test]
    fn what_was_too_much_is_left_alone_for_ten_seconds_and_then_for_thirty() {
        let mut part = new();
        assert_eq!(told(&mut part, 1, 10_918, 1), 3);
        assert!(part.has_been_on_trial_for(at(2), Duration::from_secs(1)));
        part.take_back(at(2));
        assert!(!part.is_on_trial());
        assert_eq!([11, 12].map(|secs| told(&mut part, secs, 10_918, 1)), [0, 3]);
        part.take_back(at(13));
        assert_eq!([42, 43].map(|secs| told(&mut part, secs, 10_918, 1)), [0, 3]);
        part.on_time(at(51));
        assert!(!part.is_on_trial());
    }
}
