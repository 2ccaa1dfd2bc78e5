//! How fast the network delivers (draft-cheng-iccrg-delivery-rate-estimation-00), as Linux samples it.
//!
//! Each segment remembers how much had been delivered when it was sent. When it is acknowledged, what was delivered since, over the
//! time that it took, is a sample of the path's rate; not of the sender's, nor of compressed acknowledgements'.

use std::time::Duration;

use weir_units::Time;

use super::board::Record;

/// What one acknowledgement says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// The transmission that was sent last among those acknowledged, and its number.
    pub(super) latest: Option<(Record, u64)>,
    /// Segments delivered from when that was sent until now, and in how long; `None` where it tells nothing.
    pub(super) delivered: Option<(u64, Duration)>,
    /// What had been delivered when it was sent.
    pub(super) prior_delivered: u64,
    pub(super) app_limited: bool,
    pub(super) rtt: Option<Duration>,
    /// Found lost by this acknowledgement.
    pub(super) losses: u64,
    /// Newly acknowledged, cumulatively or selectively.
    pub(super) acked: u64,
    /// On the way before it.
    pub(super) prior_in_flight: u64,
}

/// The sampler.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    first_sent: Time,
    /// Samples are limited by the application until this much is delivered; 0 if they are not.
    pub(super) app_limited: u64,
}

impl Rate {
    /// A segment is sent, and `outstanding` were not acknowledged before it.
    #[inline]
    pub(super) fn record(&mut self, now: Time, outstanding: u64) -> Record {
        if outstanding == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Record {
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            ..Record::default()
        }
    }

    /// A segment is delivered.
    #[inline]
    pub(super) fn delivered(&mut self, sample: &mut Sample, seq: u64, record: &Record) {
        self.delivered += 1;
        sample.acked += 1;
        if sample.latest.is_none_or(|(latest, number)| (record.sent, seq) > (latest.sent, number)) {
            sample.latest = Some((*record, seq));
        }
    }

    /// All that an acknowledgement delivers has been told.
    pub(super) fn finish(&mut self, now: Time, sample: &mut Sample, min_rtt: Duration) {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if sample.acked > 0 {
            self.delivered_at = now;
        }
        let Some((latest, _)) = sample.latest else { return };
        self.first_sent = latest.sent;
        sample.prior_delivered = latest.delivered;
        sample.app_limited = latest.is_app_limited();
        let interval = latest.sent.since(latest.first_sent).max(now.since(latest.delivered_at));
        // An interval below the least round trip cannot be right.
        if interval > Duration::ZERO && interval >= min_rtt {
            sample.delivered = Some((self.delivered - latest.delivered, interval));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_acknowledgements_do_not_raise_it() {
        // Ten segments sent 10 ms apart, all acknowledged in the same instant.
        let (mut rate, mut sample) = (Rate::default(), Sample::default());
        let records: Vec<Record> = (0..10).map(|seq| rate.record(Time::from_millis(10 * seq), seq)).collect();
        let now = Time::from_millis(100);
        for (seq, record) in records.iter().enumerate() {
            rate.delivered(&mut sample, seq as u64, record);
        }
        rate.finish(now, &mut sample, Duration::from_millis(10));
        assert_eq!(sample.delivered, Some((10, Duration::from_millis(100))));
        assert_eq!((sample.acked, sample.prior_delivered, rate.delivered), (10, 0, 10));
    }
}
