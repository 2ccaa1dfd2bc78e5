//! A link that is watched: what came, what it did with it, and how long things waited.

use std::time::Duration;

use weir_units::{Bytes, Rate, Time};

/// What a link did.
#[derive(Debug, Clone, Default)]
pub struct LinkRecord {
    /// Its rate and propagation delay, each with the time from which it had them; rising.
    pub capacity: Vec<(Time, Capacity)>,
    /// What it did in each [`LinkRecord::BIN`] of the run.
    pub bins: Vec<Counts>,
    /// Packets that came and waited, in the order in which they left the queue; empty unless somebody asks.
    pub waits: Vec<Wait>,
}

/// How fast and how long a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// `None` is without limit.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
}

/// What a link did in some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets that came.
    pub offered: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Bytes that left it.
    pub sent: Bytes,
}

/// A packet in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When it came.
    pub came: Time,
    /// When the link began to send it or dropped it, or when the run ended.
    pub left: Time,
    /// Whether it came out at the other end.
    pub through: bool,
    /// Of which of those that are recorded it was: see [`Wait::OTHERS`].
    pub source: u32,
}

impl Wait {
    /// The packet was of somebody of whom nothing is recorded.
    pub const OTHERS: u32 = u32::MAX;
}

impl LinkRecord {
    /// How long a bin is.
    pub const BIN: Duration = Duration::from_millis(100);

    /// What it does at `now` is counted there.
    pub(crate) fn counts(&mut self, now: Time) -> &mut Counts {
        let bin = (now.as_nanos() / LinkRecord::BIN.as_nanos() as u64) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, Counts::default());
        }
        &mut self.bins[bin]
    }

    /// Rate and delay at a time.
    pub(crate) fn capacity_at(&self, at: Time) -> Capacity {
        let past = self.capacity.partition_point(|(from, _)| *from <= at);
        past.checked_sub(1).map_or(Capacity::default(), |last| self.capacity[last].1)
    }

    /// Its mean rate between two times; `None` if it is without limit in any of it.
    pub(in crate::metric) fn kbps(&self, from: Time, to: Time) -> Option<f64> {
        let kbps = |rate: Rate| rate.bps() as f64 / 1e3;
        if let [(_, Capacity { rate, .. })] = self.capacity[..] {
            return rate.map(kbps);
        }
        let ends = self.capacity.iter().skip(1).map(|(at, _)| *at).chain([to]);
        let steps = self.capacity.iter().zip(ends).map(|((at, capacity), end)| {
            let span = end.min(to).max(from).since((*at).max(from));
            (capacity.rate, span.as_secs_f64())
        });
        let mut bits = 0.0;
        for (rate, secs) in steps.filter(|(_, secs)| *secs > 0.0) {
            bits += kbps(rate?) * secs;
        }
        (to > from).then(|| bits / to.since(from).as_secs_f64())
    }

    /// Per cent of the packets that came between two times, in whole bins, and were dropped; `None` if none came.
    pub(in crate::metric) fn loss_percent(&self, from: Time, to: Time) -> Option<f64> {
        let (mut offered, mut dropped) = (0, 0);
        for counts in self.between(from, to) {
            offered += counts.offered;
            dropped += counts.dropped;
        }
        (offered > 0).then(|| dropped as f64 / offered as f64 * 100.0)
    }

    /// Per cent of what it could have carried between two times, in whole bins, that it did.
    pub(in crate::metric) fn use_percent(&self, from: Time, to: Time) -> Option<f64> {
        let could = self.kbps(from, to)? * to.since(from).as_secs_f64();
        let sent: u64 = self.between(from, to).map(|counts| counts.sent.count()).sum();
        (could > 0.0).then(|| sent as f64 * 8.0 / 1e3 / could * 100.0)
    }

    fn between(&self, from: Time, to: Time) -> impl Iterator<Item = &Counts> {
        let bin = LinkRecord::BIN.as_nanos() as u64;
        let (from, to) = (from.as_nanos().div_ceil(bin), to.as_nanos() / bin);
        self.bins.iter().skip(from as usize).take(to.saturating_sub(from) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rates: &[(u64, u64)], bins: &[(usize, Counts)]) -> LinkRecord {
        let capacity = |(at, kbps): &(u64, u64)| {
            (Time::from_millis(*at), Capacity { rate: Some(Rate::from_kbps(*kbps)), delay: Duration::ZERO })
        };
        let mut record = LinkRecord { capacity: rates.iter().map(capacity).collect(), ..LinkRecord::default() };
        for (bin, counts) in bins {
            *record.counts(Time::ZERO + LinkRecord::BIN * *bin as u32) = *counts;
        }
        record
    }

    #[test]
    fn a_link_s_loss_and_use_are_those_of_the_bins_within() {
        let counts = |offered, dropped, sent| Counts { offered, dropped, sent: Bytes::new(sent) };
        let record = link(&[(0, 80)], &[(0, counts(10, 0, 1_000)), (3, counts(40, 10, 4_000))]);
        assert_eq!(record.loss_percent(Time::ZERO, Time::from_secs(1)), Some(20.0));
        assert_eq!(record.loss_percent(Time::from_millis(200), Time::from_secs(1)), Some(25.0));
        assert_eq!(record.use_percent(Time::ZERO, Time::from_secs(1)), Some(50.0));
        assert_eq!(record.use_percent(Time::ZERO, Time::from_millis(200)), Some(50.0));
        assert_eq!(LinkRecord::default().loss_percent(Time::ZERO, Time::from_secs(1)), None);
    }

    #[test]
    fn a_rate_that_changes_is_averaged_over_the_time() {
        let record = link(&[(0, 100), (500, 300)], &[]);
        assert_eq!(record.kbps(Time::ZERO, Time::from_secs(1)), Some(200.0));
        assert_eq!(record.kbps(Time::from_millis(500), Time::from_secs(1)), Some(300.0));
        assert_eq!(record.capacity_at(Time::from_millis(500)).rate, Some(Rate::from_kbps(300)));
    }
}
