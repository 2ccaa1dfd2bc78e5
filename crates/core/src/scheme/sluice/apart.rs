//! A receiver that is held at one flow's share where each channel has a queue of its own: what it tells of that, and when.
//!
//! Behind a fair queue the channels of a flood take their shares, and the receiver sees neither a queue nor losses. As many TCPs would look alike: the
//! sender finds out with a test ([`super::ceiling`]), and the receiver judges it ([`super::flood`]).

use core::time::Duration;

use weir_units::{Rate, Time};

use super::ceiling::FALLEN;
use super::flood::PATIENCE;

/// Since when it is held, and whether it has less since the sender has tried more.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Since when the receiver has been held at a flow's share.
    since: Option<Time>,
    /// Since when the sender sends more after a cut that had shown a flood, and what the receiver had before.
    trial: Option<(Time, Rate)>,
    /// When it was found to have less since.
    fallen: Option<Time>,
    /// It is to be told.
    tells: bool,
}

impl Apart {
    /// A slot has ended. Whether there is something to tell from now on.
    pub(super) fn on_slot(&mut self, now: Time, is_held: bool, got: Rate) -> bool {
        self.since = if is_held { self.since.or(Some(now)) } else { None };
        if self.trial.take_if(|(_, before)| got < before.scale(FALLEN)).is_some() {
            self.fallen = Some(now);
        }
        self.trial.take_if(|(at, _)| now.since(*at) > TRIAL);
        let tells = self.since.is_some_and(|since| is_turn(now.since(since)))
            || self.fallen.is_some_and(|at| now.since(at) <= TRIAL);
        !core::mem::replace(&mut self.tells, tells) && tells
    }

    /// The sender sends more, or less: where it tries more after a flood, since when and what the receiver gets.
    pub(super) fn on_ceiling(&mut self, trial: Option<(Time, Rate)>) {
        *self = Apart { trial, ..Apart::default() };
    }

    /// Whether there is something to tell.
    pub(super) const fn tells(&self) -> bool {
        self.tells
    }
}

/// Whether a receiver that has been held for so long tells it: for some seconds a minute, so that it costs few probes.
fn is_turn(held: Duration) -> bool {
    held >= PATIENCE && (held - PATIENCE).as_millis() % TELLS_EVERY.as_millis() < TELLS_FOR.as_millis()
}

/// A trial was too much there if the receiver has less than [`FALLEN`] of what it had before, within this time.
const TRIAL: Duration = Duration::from_secs(5);
/// A share is told for so long, and again after so long.
const TELLS_FOR: Duration = Duration::from_secs(10);
const TELLS_EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const HAS: Rate = Rate::from_mbps(10);

    /// The seconds in which there is something to tell, of a receiver that is held, or not, and gets so much from the first second on.
    fn told(apart: &mut Apart, is_held: bool, got: Rate, until: u64) -> Vec<u64> {
        let mut tells = |tenth| {
            apart.on_slot(Time::from_millis(tenth * 100), is_held, got);
            (apart.tells() && tenth % 10 == 0).then_some(tenth / 10)
        };
        (10..=until * 10).filter_map(&mut tells).collect()
    }

    #[test]
    fn who_is_held_for_five_seconds_tells_it_for_ten_seconds_of_each_minute() {
        let expected: Vec<u64> = (6..=15).chain(66..=75).collect();
        assert_eq!(told(&mut Apart::default(), true, HAS, 100), expected);
        assert_eq!(told(&mut Apart::default(), false, HAS, 100), []);
    }

    #[test]
    fn who_has_less_within_five_seconds_of_a_trial_tells_it_at_once_for_five_seconds() {
        for (got, expected) in [(7, Vec::from_iter(1..=6)), (9, Vec::new())] {
            let mut apart = Apart::default();
            apart.on_ceiling(Some((Time::from_secs(1), HAS)));
            assert_eq!(told(&mut apart, false, Rate::from_mbps(got), 20), expected, "{got} of 10 Mbit/s");
        }
        let mut apart = Apart::default();
        apart.on_ceiling(Some((Time::from_secs(1), HAS)));
        assert_eq!(told(&mut apart, false, HAS, 7), []);
        assert!(!apart.on_slot(Time::from_secs(8), false, Rate::ZERO), "that is too late to be the trial's");
    }
}
