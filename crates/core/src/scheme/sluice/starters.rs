//! The sender's side of starts: which receivers look for their rate, and when they are due a burst that shows what their path carries.
//!
//! A receiver tells the level that it has once what it joined has come. The next burst begins at once then, in the channels that may have one
//! ([`super::cycle::StartUpBurst`]), so that on a short path a step of the start takes as long as a burst and a round trip. Where nobody can tell,
//! bursts come at fixed times.
//!
//! Not here: what a receiver makes of a burst ([`super::climb`], [`super::rules`]).

use alloc::collections::BTreeMap;
use core::time::Duration;

use weir_units::Time;
use weir_wire::probe::Starting;

use super::config::StartUp;

/// The receivers that start.
#[derive(Debug)]
pub(super) struct Starters {
    config: StartUp,
    /// When the session began.
    begun: Time,
    /// The level that each has, and when it told.
    receivers: BTreeMap<u32, (usize, Time)>,
    /// Somebody has told: receivers can.
    are_heard: bool,
    /// The highest of them has had no burst at its level.
    is_asked: bool,
}

impl Starters {
    pub(super) const fn new(config: StartUp) -> Starters {
        Starters { config, begun: Time::ZERO, receivers: BTreeMap::new(), are_heard: false, is_asked: false }
    }

    pub(super) fn on_start(&mut self, now: Time) {
        self.begun = now;
    }

    /// A receiver has told that it starts and what it has, or that its start is over. `levels` are sent.
    pub(super) fn on_report(&mut self, now: Time, starting: Starting, levels: usize) {
        self.are_heard = true;
        let level = usize::from(starting.level).min(levels);
        if level == 0 {
            self.receivers.remove(&starting.receiver);
        } else if self.receivers.len() < MOST_STARTERS || self.receivers.contains_key(&starting.receiver) {
            self.is_asked |= self.highest() < Some(level);
            self.receivers.insert(starting.receiver, (level, now));
        }
    }

    /// Time passes.
    pub(super) fn on_time(&mut self, now: Time) {
        self.receivers.retain(|_, (_, told)| now.since(*told) < REMEMBERED);
    }

    /// Whether somebody may be starting.
    pub(super) fn are_there(&self, now: Time) -> bool {
        match self.config {
            StartUp::Asked if self.are_heard => !self.receivers.is_empty(),
            StartUp::Asked => now.since(self.begun) < FIRST_STARTS,
            StartUp::Always => true,
            StartUp::Never => false,
        }
    }

    /// The receivers, as far as they are known, and the level that each has told.
    pub(super) fn levels(&self) -> impl Iterator<Item = (u32, usize)> {
        self.receivers.iter().map(|(receiver, (level, _))| (*receiver, *level))
    }

    /// The highest level that one of them has.
    fn highest(&self) -> Option<usize> {
        self.levels().map(|(_, level)| level).max()
    }

    /// The highest level that one of them has, if that one waits for a burst there.
    pub(super) fn asked(&self) -> Option<usize> {
        self.highest().filter(|_| self.is_asked)
    }

    /// A burst begins that tells the highest of them something.
    pub(super) fn on_burst(&mut self) {
        self.is_asked = false;
    }
}

/// For so long after the session's start somebody may be starting who cannot tell, as receivers often wait for their sender.
const FIRST_STARTS: Duration = Duration::from_millis(1_500);
/// And for so long after a receiver has told that it starts. It tells every second.
const REMEMBERED: Duration = Duration::from_millis(1_500);
/// More are not known one by one. Somebody who makes up receivers fills no more memory than that.
const MOST_STARTERS: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn starters() -> Starters {
        let mut starters = Starters::new(StartUp::Asked);
        starters.on_start(Time::ZERO);
        starters
    }

    #[test]
    fn who_cannot_tell_may_be_starting_in_the_first_seconds() {
        let starters = starters();
        assert!(starters.are_there(at(1_499)) && !starters.are_there(at(1_500)));
        assert!(Starters::new(StartUp::Always).are_there(at(9_000)) && !Starters::new(StartUp::Never).are_there(at(0)));
        assert_eq!(starters.highest(), None);
    }

    #[test]
    fn a_start_is_over_when_its_receiver_tells_or_falls_silent() {
        let mut starters = starters();
        starters.on_report(at(100), Starting { receiver: 1, level: 11 }, 40);
        starters.on_report(at(100), Starting { receiver: 2, level: 20 }, 40);
        assert_eq!(starters.highest(), Some(20));
        starters.on_report(at(200), Starting { receiver: 2, level: 0 }, 40);
        assert_eq!(starters.highest(), Some(11));
        starters.on_time(at(1_599));
        assert!(starters.are_there(at(1_599)));
        starters.on_time(at(1_600));
        assert!(!starters.are_there(at(1_600)));
    }

    #[test]
    fn the_highest_asks_with_each_level_that_it_reaches_and_others_do_not() {
        let mut starters = starters();
        let mut asks = |receiver, level| {
            starters.on_report(at(100), Starting { receiver, level }, 40);
            let asked = starters.asked().is_some();
            starters.on_burst();
            asked
        };
        assert_eq!(
            [asks(1, 11), asks(1, 11), asks(2, 11), asks(1, 20), asks(2, 19)],
            [true, false, false, true, false]
        );
        assert!(asks(3, 4_000), "no more than what is sent");
        assert_eq!(starters.highest(), Some(40));
    }

    #[test]
    fn receivers_that_somebody_makes_up_are_bounded() {
        let mut starters = starters();
        (0..3_000).for_each(|receiver| starters.on_report(at(100), Starting { receiver, level: 5 }, 40));
        assert_eq!(starters.receivers.len(), MOST_STARTERS);
    }
}
