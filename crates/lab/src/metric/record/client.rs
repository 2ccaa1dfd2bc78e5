//! A client of a session, or a member of a tree.

use std::time::Duration;

use weir_units::Time;

use super::Delivery;

/// A client of a session, or a member of a tree.
#[derive(Debug, Clone, Default)]
pub struct ClientRecord {
    /// When it joined.
    pub joined: Time,
    /// When it received its first packet.
    pub first_packet: Option<Time>,
    /// Its levels, each with the time from which it was there.
    pub levels: Vec<(Time, usize)>,
    /// When it joined or left a channel, once for each.
    pub memberships: Vec<Time>,
    /// Bytes that it received in each [`ClientRecord::BIN`] of the run.
    pub received: Vec<u64>,
    /// Payload that its application was given.
    pub delivered: Delivery,
}

impl ClientRecord {
    /// How long a bin of `received` is.
    pub const BIN: Duration = Duration::from_millis(100);

    /// Takes down what came.
    pub(crate) fn receive(&mut self, now: Time, bytes: u64) {
        let bin = (now.as_nanos() / ClientRecord::BIN.as_nanos() as u64) as usize;
        if self.received.len() <= bin {
            self.received.resize(bin + 1, 0);
        }
        self.received[bin] += bytes;
    }

    /// When its start-up phase of `startup` ends. One that never received anything counts from its join.
    pub(in crate::metric) fn startup_end(&self, startup: Duration) -> Time {
        self.first_packet.unwrap_or(self.joined) + startup
    }

    /// Mean rate of what it received between two times, in whole bins.
    pub(in crate::metric) fn received_kbps(&self, from: Time, to: Time) -> Option<f64> {
        let bin = ClientRecord::BIN.as_nanos() as u64;
        let (from, to) = (from.as_nanos().div_ceil(bin), to.as_nanos() / bin);
        let bins = self.received.iter().skip(from as usize).take(to.saturating_sub(from) as usize);
        let secs = ClientRecord::BIN.as_secs_f64() * to.saturating_sub(from) as f64;
        (secs > 0.0).then(|| bins.sum::<u64>() as f64 * 8.0 / 1e3 / secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_s_rate_is_that_of_the_bins_within() {
        let client = ClientRecord { received: vec![9_000, 1_000, 2_000, 3_000, 9_000], ..ClientRecord::default() };
        let rate = client.received_kbps(Time::from_millis(50), Time::from_millis(400));
        assert_eq!(rate.map(f64::round), Some(160.0), "6000 bytes in 0.3 s");
        assert_eq!(client.received_kbps(Time::from_secs(1), Time::from_secs(1)), None);
    }
}
