//! How fast the network delivers (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! Each segment remembers how much had been delivered when it was sent. When it is acknowledged, what was delivered since,
//! over the time that it took, is a sample of the path's rate; not of the sender's, nor of compressed acknowledgements'.

use weir_units::Time;

use super::ring::Ring;

/// What is remembered of a segment when it is sent.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    sent: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    app_limited: bool,
    /// Sent again: which copy is acknowledged, nobody knows.
    again: bool,
}

/// A sample of the delivery rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateSample {
    /// Segments per second; `None` if the interval is too short to tell.
    pub(super) rate: Option<f64>,
    /// Round trip of the segment that was sent last among those acknowledged, seconds; `None` if it was sent twice.
    pub(super) rtt: Option<f64>,
    /// What had been delivered when it was sent.
    pub(super) prior_delivered: u64,
    /// The sender had nothing to send when it was sent.
    pub(super) app_limited: bool,
}

/// The sampler.
#[derive(Debug, Clone, Default)]
pub(super) struct DeliveryRate {
    records: Ring<Record>,
    /// Segments delivered so far.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Samples are limited by the application until this number of segments is delivered.
    app_limited_until: u64,
    /// The latest sent of the segments that this acknowledgement delivers.
    latest: Option<Record>,
}

impl DeliveryRate {
    /// Segment `seq` is sent, for the first time or `again`; `pipe` segments were on the way before it.
    pub(super) fn sent(&mut self, now: Time, una: u64, seq: u64, pipe: u64, again: bool) {
        if pipe == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        *self.records.entry(una, seq) = Record {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > 0,
            again,
        };
    }

    /// The segments of `bits`, counted from `first`, are delivered.
    pub(super) fn delivered(&mut self, now: Time, first: u64, mut bits: u64) {
        while bits != 0 {
            let record = self.records.get(first + u64::from(bits.trailing_zeros()));
            bits &= bits - 1;
            self.delivered += 1;
            self.delivered_at = now;
            if self.latest.is_none_or(|latest| (record.delivered, record.sent) >= (latest.delivered, latest.sent)) {
                self.latest = Some(record);
            }
        }
    }

    /// The sample of the acknowledgement whose segments have been told; `min_rtt` in seconds.
    pub(super) fn sample(&mut self, now: Time, min_rtt: f64) -> Option<RateSample> {
        let latest = self.latest.take()?;
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.first_sent = latest.sent;
        let send_elapsed = secs(latest.sent, latest.first_sent);
        let ack_elapsed = secs(self.delivered_at, latest.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = (self.delivered - latest.delivered) as f64;
        Some(RateSample {
            rate: (interval > 0.0 && (interval >= min_rtt || min_rtt == f64::INFINITY)).then(|| delivered / interval),
            rtt: (!latest.again).then(|| secs(now, latest.sent)),
            prior_delivered: latest.delivered,
            app_limited: latest.app_limited,
        })
    }

    /// The sender has no more to send, with `pipe` segments on the way.
    pub(super) fn limit(&mut self, pipe: u64) {
        self.app_limited_until = (self.delivered + pipe).max(1);
    }

    /// Segments delivered so far.
    pub(super) fn total(&self) -> u64 {
        self.delivered
    }

    /// Whether the sender lacked data lately.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }
}

/// Seconds from `earlier` to `later`.
fn secs(later: Time, earlier: Time) -> f64 {
    later.since(earlier).as_nanos() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_flow_is_measured_at_its_rate() {
        // A segment every 10 ms, each acknowledged after 50 ms.
        let mut rate = DeliveryRate::default();
        let mut last = None;
        for slot in 0..100u64 {
            let now = Time::from_millis(10 * slot);
            if let Some(seq) = slot.checked_sub(5) {
                rate.delivered(now, seq, 1);
                last = rate.sample(now, 0.05);
            }
            rate.sent(now, slot.saturating_sub(4), slot, slot.min(4), false);
        }
        let last = last.expect("segments were acknowledged");
        assert!((last.rate.expect("the interval is a round trip") - 100.0).abs() < 1e-6);
        assert!((last.rtt.expect("nothing was sent twice") - 0.05).abs() < 1e-9);
    }

    #[test]
    fn compressed_acknowledgements_do_not_raise_it() {
        // Ten segments sent 10 ms apart, all acknowledged in the same instant.
        let mut rate = DeliveryRate::default();
        (0..10).for_each(|seq| rate.sent(Time::from_millis(10 * seq), 0, seq, seq, false));
        let now = Time::from_millis(100);
        rate.delivered(now, 0, 0x3ff);
        let sample = rate.sample(now, 0.01).expect("segments were acknowledged");
        assert!(sample.rate.is_some_and(|rate| rate <= 112.0), "{sample:?}");
    }
}
