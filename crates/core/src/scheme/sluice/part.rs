//! How much of the next step a receiver takes where the path does not carry all of it.
//!
//! A path carries a fourteenth more than the best level of a ladder with steps of 15 %, on the mean. Bursts that do not fit tell how much more.
//! The sender adds to the topmost channel what all receivers of the highest level want (`demand.rs`), so nobody has to join anything.

use core::time::Duration;

use weir_units::{Rate, Time};

/// A step is taken in parts of this size.
pub(super) const EIGHTHS: u8 = 8;

/// The part that is taken, and what is known of the path.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// What the path carries by the last two bursts that did not fit at this level, the older one first.
    carried: [Option<Rate>; 2],
    eighths: u8,
    /// When the part grew last, as long as that may turn out to be too much.
    trying: Option<Time>,
    /// How often it was too much, and until when it stays as it is.
    too_much: (u32, Time),
}

impl Part {
    /// The part of the next step that is wanted, in eighths.
    pub(super) const fn eighths(&self) -> u8 {
        self.eighths
    }

    /// A burst did not fit, and told what the path carries. `levels` are the rates of the receiver's level and of the next one; `may_grow` says how
    /// many bursts have to agree before the part grows, if it may.
    pub(super) fn on_burst(&mut self, now: Time, carried: Rate, levels: [Rate; 2], may_grow: Option<u32>) {
        self.carried = [self.carried[1], Some(carried)];
        let told = self.carried.iter().flatten();
        let within = |rate: &Rate| eighths_within(rate.scale(1.0 / ROOM), levels);
        let (Some(least), Some(most)) = (told.clone().map(within).min(), told.clone().map(within).max()) else {
            return;
        };
        if may_grow.is_some_and(|needed| told.count() >= needed as usize)
            && least > self.eighths
            && now >= self.too_much.1
        {
            (self.eighths, self.trying) = (least, Some(now));
        } else if most + SLACK < self.eighths {
            self.eighths = most;
        }
    }

    /// Whether it has grown lately, for at least this long, and a queue or a loss is its fault.
    pub(super) fn is_trying_for(&self, now: Time, at_least: Duration) -> bool {
        self.trying.is_some_and(|since| now.since(since) >= at_least)
    }

    /// Time passes: what has been taken for that long is not on trial any more.
    pub(super) fn on_time(&mut self, now: Time, trial: Duration) {
        self.trying.take_if(|since| now.since(*since) >= trial);
    }

    /// It was too much: nothing of the step is taken for a while, and for longer each time.
    pub(super) fn take_back(&mut self, now: Time, back_off: Duration) {
        let times = (self.too_much.0 + 1).min(super::rules::MOST_BACK_OFFS);
        self.too_much = (times, now + back_off * ((1 << times) - 1));
        self.forget();
    }

    /// The level is another one, or others have come: what is known does not hold any more.
    pub(super) fn forget(&mut self) {
        (self.carried, self.eighths, self.trying) = ([None; 2], 0, None);
    }
}

/// The eighths of the step between these rates up to this one.
fn eighths_within(rate: Rate, [from, to]: [Rate; 2]) -> u8 {
    let part = rate.saturating_sub(from).bps() as f64 / to.saturating_sub(from).bps().max(1) as f64;
    ((part * f64::from(EIGHTHS)) as u8).min(EIGHTHS - 1)
}

/// What is taken leaves that much of the path free, as the next level does when it is joined.
const ROOM: f64 = 1.03;
/// The part shrinks if two bursts say that it is too large by more than this many eighths; one is chance.
const SLACK: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [Rate; 2] = [Rate::from_kbps(10_000), Rate::from_kbps(11_500)];
    const BACK_OFF: Duration = Duration::from_secs(10);

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
        let after = |kbps| told(&mut Part::default(), 1, kbps, 1);
        // 10.6 Mbit/s are 3.2 eighths of the step.
        assert_eq!([9_000, 10_000, 10_300, 10_918, 11_800, 20_000].map(after), [0, 0, 0, 3, 7, 7]);
    }

    #[test]
    fn it_grows_by_the_lower_of_two_bursts_and_shrinks_by_the_higher() {
        let mut part = Part::default();
        assert_eq!([(1, 10_918), (2, 11_500)].map(|(secs, kbps)| told(&mut part, secs, kbps, 2)), [0, 3]);
        assert_eq!(told(&mut part, 3, 11_500, 2), 6);
        assert_eq!(told(&mut part, 4, 10_500, 2), 6, "one burst is chance");
        assert_eq!(told(&mut part, 5, 10_500, 2), 1);
        part.on_burst(at(6), Rate::from_kbps(11_500), LEVELS, None);
        part.on_burst(at(7), Rate::from_kbps(11_500), LEVELS, None);
        assert_eq!(part.eighths(), 1, "it may not grow");
    }

    #[test]
    fn what_was_too_much_is_left_alone_for_ten_seconds_and_then_for_thirty() {
        let mut part = Part::default();
        assert_eq!(told(&mut part, 1, 10_918, 1), 3);
        assert!(part.is_trying_for(at(2), Duration::from_secs(1)));
        part.take_back(at(2), BACK_OFF);
        assert!(!part.is_trying_for(at(3), Duration::ZERO));
        assert_eq!([11, 12].map(|secs| told(&mut part, secs, 10_918, 1)), [0, 3]);
        part.take_back(at(13), BACK_OFF);
        assert_eq!([42, 43].map(|secs| told(&mut part, secs, 10_918, 1)), [0, 3]);
        part.on_time(at(51), Duration::from_secs(8));
        assert!(!part.is_trying_for(at(51), Duration::ZERO));
    }
}
