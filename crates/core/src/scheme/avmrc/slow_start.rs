//! Slow start's question: did what was subscribed arrive at the rate at which it was sent?

use core::time::Duration;

use weir_units::{Bytes, Rate, Time};

use crate::estimate::TimestampDifference;

/// Compares the rate of arrival in a slot with the rate of sending (AVMRC §3.4, B_recp against B_curr).
///
/// Packets are whole, so what falls into a slot says little at low rates. What was sent in the slot is known from sequence
/// numbers, and how much longer than the slot it took to arrive is how much the one-way delay grew in it, so
/// `B_recp / B_curr = received / (received + lost) · τ / (τ + growth)`. The delay at a boundary is the smallest TSD among
/// the packets of the last quarter slot before it and the first packet after it: what waits behind others of its own
/// batch does not count. With the laboratory's bursts the first packet of a burst has the smallest TSD of all around it,
/// and the growth is exactly by how much the burst's arrival is late. Decision 4.
#[derive(Debug)]
pub(super) struct ArrivalTest {
    share: f64,
    tau: Duration,
    /// Smallest TSD of each sixteenth of a slot, by its number since the epoch.
    recent: [(u64, i64); PARTS],
    /// How many sixteenths before a boundary count.
    window: u64,
    /// The delay at the last boundary.
    boundary: Option<i64>,
}

impl ArrivalTest {
    /// `share` of the rate must arrive. `window` of a slot before a boundary tells the delay there, in sixteenths.
    pub(super) fn new(share: f64, tau: Duration, window: u64) -> ArrivalTest {
        ArrivalTest { share, tau, recent: [(0, i64::MAX); PARTS], window, boundary: None }
    }

    /// A packet arrived.
    pub(super) fn on_packet(&mut self, now: Time, tsd: TimestampDifference) {
        let part = self.part(now);
        let entry = &mut self.recent[(part % PARTS as u64) as usize];
        *entry = (part, if entry.0 == part { entry.1.min(tsd.0) } else { tsd.0 });
    }

    /// The TSDs have a new origin: what was measured means nothing.
    pub(super) fn forget(&mut self) {
        self.recent = [(0, i64::MAX); PARTS];
        self.boundary = None;
    }

    /// `slots` ended at `now`, with `next` as the first packet of the next one, in which `counts` (received, lost) packets
    /// were counted. Returns whether the share arrived, growth up to `jitter` forgiven; `None` if that cannot be told.
    pub(super) fn on_slots_end(
        &mut self,
        now: Time,
        slots: u64,
        next: Option<TimestampDifference>,
        counts: [u64; 2],
        jitter: Duration,
    ) -> Option<bool> {
        let part = self.part(now);
        let oldest = part.saturating_sub(self.window);
        let recent = self.recent.iter().filter(|(number, _)| (oldest..=part).contains(number)).map(|(_, tsd)| *tsd);
        let end = recent.chain(next.map(|tsd| tsd.0)).min().filter(|tsd| *tsd < i64::MAX);
        let begin = core::mem::replace(&mut self.boundary, end);
        let growth_micros = end?.saturating_sub(begin?).saturating_sub(jitter.as_micros() as i64).max(0);
        let [received, lost] = counts;
        if received == 0 {
            return None;
        }
        let span = self.tau.as_secs_f64() * slots as f64;
        let arrived = received as f64 / (received + lost) as f64;
        Some(arrived * span / (span + growth_micros as f64 / 1e6) >= self.share)
    }

    fn part(&self, now: Time) -> u64 {
        // Numbers start at 1: 0 is that of an entry never used.
        1 + now.as_nanos() / (self.tau.as_nanos() as u64 / 16).max(1)
    }
}

/// How much delay may grow in a slot on top of the share's: `packets` packet times at `rate` (decision 4).
pub(super) fn jitter(packets: f64, size: Bytes, rate: Rate) -> Duration {
    if packets == 0.0 || rate == Rate::ZERO { Duration::ZERO } else { (size / rate).mul_f64(packets) }
}

/// A slot's sixteenths and one more, since a slot seldom begins with one.
const PARTS: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    const TAU: Duration = Duration::from_millis(100);

    /// Feeds packets of (arrival, TSD) in ms to a test whose last boundary had a TSD of zero, then ends the slot at 200 ms.
    fn verdict(packets: &[(u64, i64)], next: i64, counts: [u64; 2], jitter_ms: u64) -> Option<bool> {
        let mut test = ArrivalTest::new(0.95, TAU, 4);
        test.on_slots_end(Time::from_millis(100), 1, Some(TimestampDifference(0)), [1, 0], Duration::ZERO);
        for (at, tsd) in packets {
            test.on_packet(Time::from_millis(*at), TimestampDifference(tsd * 1000));
        }
        let next = Some(TimestampDifference(next * 1000));
        test.on_slots_end(Time::from_millis(200), 1, next, counts, Duration::from_millis(jitter_ms))
    }

    #[test]
    fn a_delay_that_grows_by_more_than_a_twentieth_of_the_slot_fails() {
        // 100 / 105 = 0.952, 100 / 106 = 0.943.
        assert_eq!(verdict(&[], 5, [10, 0], 0), Some(true));
        assert_eq!(verdict(&[], 6, [10, 0], 0), Some(false));
        assert_eq!(verdict(&[], 6, [10, 0], 1), Some(true), "a packet time of jitter is forgiven");
    }

    #[test]
    fn losses_count_against_the_share() {
        assert_eq!(verdict(&[], 0, [95, 5], 0), Some(true));
        assert_eq!(verdict(&[], 0, [94, 6], 0), Some(false));
    }

    #[test]
    fn a_packet_behind_others_of_its_batch_does_not_spoil_the_boundary() {
        assert_eq!(verdict(&[(180, 1), (181, 30)], 40, [10, 0], 0), Some(true));
        assert_eq!(
            verdict(&[(120, 1), (181, 30)], 40, [10, 0], 0),
            Some(false),
            "too early in the slot to tell of its end"
        );
    }

    #[test]
    fn without_packets_nothing_is_said() {
        assert_eq!(verdict(&[], 0, [0, 0], 0), None);
        let mut test = ArrivalTest::new(0.95, TAU, 4);
        assert_eq!(test.on_slots_end(Time::from_millis(100), 1, None, [5, 0], Duration::ZERO), None);
    }
}
