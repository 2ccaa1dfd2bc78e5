//! When a host that could not keep up tries more.

use core::time::Duration;

use weir_units::Time;

/// The host tries more some time after a cut, and then every two seconds as long as it keeps up. If a trial fails, the next wait is twice as
/// long. Cuts that follow each other without a trial between them count as one.
#[derive(Debug)]
pub(super) struct Retry {
    at: Option<Time>,
    wait: Duration,
    /// When more was tried last, if that is not known to have been too much.
    tried: Option<Time>,
}

impl Retry {
    pub(super) const fn new() -> Retry {
        Retry { at: None, wait: FIRST_WAIT, tried: None }
    }

    /// The host does not keep up, and does less from here on.
    pub(super) fn on_cut(&mut self, now: Time) {
        match self.tried.take() {
            Some(tried) if now.since(tried) <= TRIAL => self.wait = (self.wait * 2).min(LONGEST_WAIT),
            Some(_) => self.wait = FIRST_WAIT,
            None => {}
        }
        self.at = Some(now + self.wait);
    }

    /// Whether it is time to try more. The caller does.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.at.is_some_and(|at| at <= now);
        if is_due {
            self.tried = Some(now);
            self.at = Some(now + TRIAL);
        }
        is_due
    }

    /// There is nothing more to try.
    pub(super) fn stop(&mut self) {
        self.at = None;
    }
}

/// No shorter than a trial: until then the cut itself may not have shown what it does.
const FIRST_WAIT: Duration = TRIAL;
const LONGEST_WAIT: Duration = Duration::from_secs(320);
/// What is too much turns out to be so within this time: a sender judges two windows of a tenth of a second, a receiver what has piled up.
pub(super) const TRIAL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn more_is_tried_every_other_second_as_long_as_it_is_not_too_much() {
        let mut retry = Retry::new();
        assert!(!retry.is_due(at(100_000)), "nothing was too much");
        for cut in [0, 300, 600] {
            retry.on_cut(at(cut));
        }
        assert!(!retry.is_due(at(2_500)), "several cuts are one");
        let tried = [2_600, 2_700, 4_600, 6_500, 6_600].map(|millis| retry.is_due(at(millis)));
        assert_eq!(tried, [true, false, true, false, true]);
        retry.stop();
        assert!(!retry.is_due(at(100_000)));
    }

    #[test]
    fn a_trial_that_is_too_much_doubles_the_wait_and_one_that_lasts_makes_it_short_again() {
        let mut retry = Retry::new();
        let waits =
            |retry: &mut Retry, from: u64| (from..from + 400_000).step_by(100).find(|at_| retry.is_due(at(*at_)));
        retry.on_cut(at(0));
        assert_eq!(waits(&mut retry, 0), Some(2_000));
        retry.on_cut(at(2_500));
        assert_eq!(waits(&mut retry, 2_500), Some(6_500));
        retry.on_cut(at(6_600));
        assert_eq!(waits(&mut retry, 6_600), Some(14_600));
        retry.on_cut(at(19_000));
        assert_eq!(waits(&mut retry, 19_000), Some(21_000));
    }
}
