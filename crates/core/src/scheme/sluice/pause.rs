//! For how long the sender makes no test after one in vain.

use core::time::Duration;

use weir_units::Time;

/// Five minutes, and twice as long each time, up to an hour. A test in vain takes 3 s from everybody, so that is a hundredth of the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    until: Time,
    /// How long the next one is.
    length: Duration,
}

impl Pause {
    /// None so far.
    pub(super) const fn new() -> Pause {
        Pause { until: Time::ZERO, length: FIRST_PAUSE }
    }

    /// The first one begins.
    pub(super) fn first(now: Time) -> Pause {
        Pause { until: now + FIRST_PAUSE, length: FIRST_PAUSE * 2 }
    }

    /// Another one begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.until = now + self.length;
        self.length = (self.length * 2).min(LONGEST_PAUSE);
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }

    /// When it is over.
    pub(super) const fn until(&self) -> Time {
        self.until
    }
}

pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(300);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_twice_as_long_as_the_one_before_up_to_an_hour() {
        let mut pause = Pause::new();
        assert!(pause.is_over(Time::ZERO));
        let lengths = [300, 600, 1_200, 2_400, 3_600, 3_600].map(Duration::from_secs);
        for length in lengths {
            let now = Time::from_secs(10_000);
            pause.begin(now);
            assert_eq!(pause.until(), now + length);
            assert!(!pause.is_over(now) && pause.is_over(now + length));
        }
    }
}
