//! The clock of a host: how it differs from the network's.

use std::time::Duration;

use weir_units::Time;

/// What a host's clock shows, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clock {
    ahead: Duration,
    /// Most clocks are as fast and as fine as the network's.
    skew: Option<Skew>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Skew {
    /// What it shows of a second of the network's, in millionths.
    millionths: u64,
    /// In nanoseconds, 1 or more.
    grain: u64,
}

impl Clock {
    pub(crate) fn new(ahead: Duration, drift_ppm: i32, grain: Duration) -> Clock {
        let speed = MILLION.saturating_add_signed(i64::from(drift_ppm)).max(1);
        let grain = u64::try_from(grain.as_nanos()).unwrap_or(u64::MAX).max(1);
        let skew = (drift_ppm != 0 || grain > 1).then_some(Skew { millionths: speed, grain });
        Clock { ahead, skew }
    }

    /// What it shows at a time of the network's.
    #[inline]
    pub(crate) fn local(self, now: Time) -> Time {
        match self.skew {
            None => now + self.ahead,
            Some(skew) => skew.local(now, self.ahead),
        }
    }

    /// The first time of the network's at which it shows this or more.
    #[inline]
    pub(crate) fn until(self, local: Time) -> Time {
        match self.skew {
            None => local - self.ahead,
            Some(skew) => skew.until(local, self.ahead),
        }
    }
}

impl Skew {
    #[cold]
    fn local(self, now: Time, ahead: Duration) -> Time {
        let shown = u128::from(now.as_nanos()) * u128::from(self.millionths) / u128::from(MILLION);
        let shown = (nanos(shown) + ahead).as_nanos();
        Time::from_nanos(shown / self.grain * self.grain)
    }

    #[cold]
    fn until(self, local: Time, ahead: Duration) -> Time {
        let shown = local.as_nanos().div_ceil(self.grain).saturating_mul(self.grain);
        let fine = (Time::from_nanos(shown) - ahead).as_nanos();
        nanos((u128::from(fine) * u128::from(MILLION)).div_ceil(u128::from(self.millionths)))
    }
}

fn nanos(count: u128) -> Time {
    Time::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_clock_gains_by_its_drift_and_stands_between_its_ticks() {
        let clock = Clock::new(Duration::from_secs(5), 100, Duration::from_millis(1));
        // 100 s and 10 ms more, and 5 s ahead.
        assert_eq!(clock.local(Time::from_secs(100)), Time::from_millis(105_010));
        assert_eq!(clock.local(Time::from_nanos(100_000_999_000)), Time::from_millis(105_010));
        let slow = Clock::new(Duration::ZERO, -500_000, Duration::ZERO);
        assert_eq!(
            (slow.local(Time::from_secs(2)), slow.until(Time::from_secs(1))),
            (Time::from_secs(1), Time::from_secs(2))
        );
        assert_eq!(Clock::new(Duration::ZERO, 0, Duration::ZERO), Clock::default());
    }

    proptest! {
        #[test]
        fn a_host_that_wakes_for_a_time_finds_that_its_clock_shows_it(
            local in 0u64..1 << 50, ahead in 0u64..1 << 40, drift in -1000i32..1000, grain in 0u64..2_000_000,
        ) {
            let clock = Clock::new(Duration::from_nanos(ahead), drift, Duration::from_nanos(grain));
            let local = Time::from_nanos(local);
            let wake = clock.until(local);
            prop_assert!(clock.local(wake) >= local);
            if wake > Time::ZERO {
                prop_assert!(clock.local(wake - Duration::from_nanos(1)) < local);
            }
        }
    }
}
