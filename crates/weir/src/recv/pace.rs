//! How fast a receiver gains content, and when it will have all of it.

use std::time::Duration;

use weir_units::{Bytes, Rate, Time};

/// What had come when it was looked at last.
#[derive(Debug)]
pub(super) struct Pace {
    at: Time,
    received_bytes: u64,
    useful_bytes: u64,
    /// Useful bytes per second, smoothed.
    smoothed: Option<f64>,
}

impl Pace {
    pub(super) fn new(now: Time) -> Pace {
        Pace { at: now, received_bytes: 0, useful_bytes: 0, smoothed: None }
    }

    /// The time since the last look.
    pub(super) fn since(&self, now: Time) -> Duration {
        now.since(self.at)
    }

    /// So much has come by `now`: the rate of the packets since the last look. `None` at the same time again.
    pub(super) fn look(&mut self, now: Time, received_bytes: u64, useful_bytes: u64) -> Option<Rate> {
        let span = self.since(now);
        if span.is_zero() {
            return None;
        }
        let rate = Bytes::new(received_bytes - self.received_bytes).per(span);
        let latest = useful_bytes.saturating_sub(self.useful_bytes) as f64 / span.as_secs_f64();
        let smoothed = self.smoothed.map_or(latest, |before| before + GAIN * (latest - before));
        *self = Pace { at: now, received_bytes, useful_bytes, smoothed: Some(smoothed) };
        Some(rate)
    }

    /// Seconds until `missing` bytes have arrived. `None` if that is not known, or too far off to forecast.
    pub(super) fn to_go(&self, missing: u64) -> Option<f64> {
        self.smoothed.and_then(|pace| to_go(missing, pace))
    }
}

fn to_go(missing: u64, pace: f64) -> Option<f64> {
    Some(missing as f64 / pace).filter(|seconds| *seconds <= LONGEST_TO_GO.as_secs_f64())
}

/// How much the last quarter second counts in the pace.
const GAIN: f64 = 0.1;

/// A time to go that is longer is not told.
const LONGEST_TO_GO: Duration = Duration::from_secs(30 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_go_is_not_told_where_hardly_anything_comes() {
        assert_eq!(to_go(1_000_000, 1e5), Some(10.0));
        assert_eq!([0.0, 1e-10, 0.3].map(|pace| to_go(1_000_000, pace)), [None; 3]);
        assert_eq!(to_go(0, 0.0), None);
    }

    #[test]
    fn a_tenth_of_each_later_look_counts() {
        let mut pace = Pace::new(Time::ZERO);
        assert_eq!(pace.to_go(1_000), None, "nothing is known yet");
        assert_eq!(pace.look(Time::from_secs(1), 2_000, 1_000), Some(Rate::from_bps(16_000)));
        assert_eq!(pace.look(Time::from_secs(1), 2_000, 1_000), None);
        assert_eq!(pace.to_go(1_000), Some(1.0));
        pace.look(Time::from_secs(2), 2_000, 1_000);
        assert_eq!(pace.to_go(900), Some(1.0));
    }
}
