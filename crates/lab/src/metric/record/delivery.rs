//! What a receiving application was given over time.

use std::time::Duration;

use weir_units::{Bytes, Time};

/// Payload that was delivered, in bins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes in each [`Delivery::BIN`] of the run.
    bins: Vec<u64>,
}

impl Delivery {
    /// How long a bin is.
    pub const BIN: Duration = Duration::from_millis(10);

    /// Takes down what was delivered.
    pub(crate) fn add(&mut self, now: Time, bytes: u64) {
        let bin = (now.as_nanos() / BIN_NANOS) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes;
    }

    /// Mean rate between two times, in whole bins.
    pub(in crate::metric) fn kbps(&self, from: Time, to: Time) -> Option<f64> {
        let (from, to) = (from.as_nanos().div_ceil(BIN_NANOS), to.as_nanos() / BIN_NANOS);
        let count = to.saturating_sub(from);
        let bytes: u64 = self.bins.iter().skip(from as usize).take(count as usize).sum();
        let secs = Delivery::BIN.as_secs_f64() * count as f64;
        (secs > 0.0).then(|| bytes as f64 * 8.0 / 1e3 / secs)
    }

    /// Seconds from `start` until `size` was there, to within a bin; `None` if it never was.
    pub(in crate::metric) fn secs_until(&self, size: Bytes, start: Time) -> Option<f64> {
        let mut sum = 0;
        let full = self.bins.iter().position(|bytes| {
            sum += bytes;
            sum >= size.count()
        });
        full.map(|bin| Time::from_nanos((bin as u64 + 1) * BIN_NANOS).since(start).as_secs_f64())
    }
}

const BIN_NANOS: u64 = Delivery::BIN.as_nanos() as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_whole_bins_and_an_object_is_there_with_its_last_byte() {
        let mut delivery = Delivery::default();
        for (at, bytes) in [(5, 100), (12, 100), (38, 300), (39, 1)] {
            delivery.add(Time::from_millis(at), bytes);
        }
        assert_eq!(delivery.kbps(Time::from_millis(10), Time::from_millis(40)).map(f64::round), Some(107.0));
        assert_eq!(delivery.kbps(Time::from_millis(12), Time::from_millis(18)), None, "there is no whole bin");
        let until = |bytes| delivery.secs_until(Bytes::new(bytes), Time::from_millis(10));
        assert_eq!((until(200), until(201), until(502)), (Some(0.01), Some(0.03), None));
    }
}
