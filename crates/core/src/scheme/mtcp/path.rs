//! What is in transit at the node whose windows are reported, as it will be when the next packet comes there (decision 17).
//!
//! The node counts packets when they arrive (§3.9), so that its report is old when it reaches the sender. A sender that follows the
//! report alone stops until the node has run empty, and then sends too much. Not here: pacing.

use alloc::collections::VecDeque;
use core::time::Duration;

use weir_units::Time;

/// Averages, over the same eight windows, of what is sent and of what is said to be in transit.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    /// When the newest packets were sent, the oldest first.
    sent: VecDeque<Time>,
    /// Packets, the time in which they were sent, and packets in transit times that.
    packets: f64,
    secs: f64,
    transit_secs: f64,
    /// From a packet's sending until everybody is known to have it, seconds.
    whole: Option<f64>,
}

impl Path {
    /// A packet is sent, with `transit` packets in transit before it and a window of `window` packets.
    pub(super) fn on_sent(&mut self, now: Time, transit: f64, window: f64) {
        if let Some(last) = self.sent.back() {
            let kept = 1.0 - GAIN / window.max(1.0);
            let span = now.since(*last).as_secs_f64();
            self.packets = kept * (self.packets + 1.0);
            self.secs = kept * (self.secs + span);
            self.transit_secs = kept * (self.transit_secs + transit * span);
        }
        self.sent.push_back(now);
        let lead = self.lead();
        while self.sent.len() > 1 && self.sent.front().is_some_and(|sent| now.since(*sent) > lead) {
            self.sent.pop_front();
        }
    }

    /// Everybody has a packet that was sent then.
    pub(super) fn on_complete(&mut self, now: Time, sent: Time) {
        let sample = now.since(sent).as_secs_f64();
        self.whole = Some(self.whole.map_or(sample, |whole| whole + GAIN * (sample - whole)));
    }

    /// How long a packet is in transit at that node, by Little's law: packets in transit over packets a second. Seconds; `None` before
    /// much is known.
    pub(super) fn round_trip(&self) -> Option<f64> {
        (self.packets >= LEAST_PACKETS).then(|| self.transit_secs / self.packets)
    }

    /// From the sender to that node, and back to the sender.
    fn lead(&self) -> Duration {
        match (self.whole, self.round_trip()) {
            (Some(whole), Some(round_trip)) => Duration::from_secs_f64((whole - round_trip).max(0.0)),
            _ => Duration::ZERO,
        }
    }

    /// By how much what is in transit there will change until a packet that is sent now comes there: what has been sent since that
    /// node's word was true, less what leaves in that time. Packets.
    pub(super) fn change(&self, now: Time) -> f64 {
        let lead = self.lead();
        let old = self.sent.partition_point(|sent| now.since(*sent) >= lead);
        let leaving = if self.secs > 0.0 { lead.as_secs_f64() * self.packets / self.secs } else { 0.0 };
        (self.sent.len() - old) as f64 - leaving
    }

    /// When [`change`](Path::change) is less than now.
    pub(super) fn next_change(&self, now: Time) -> Option<Time> {
        let lead = self.lead();
        let old = self.sent.partition_point(|sent| now.since(*sent) >= lead);
        self.sent.get(old).map(|sent| *sent + lead)
    }
}

/// Of a window, and of a sample (RFC 6298 §2: α).
const GAIN: f64 = 1.0 / 8.0;
const LEAST_PACKETS: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A packet each 10 ms until 1 s, of which 4 are in transit, and that everybody has after 100 ms.
    fn steady() -> Path {
        let mut path = Path::default();
        for packet in 0..=100 {
            path.on_sent(at(10 * packet), 4.0, 4.0);
            path.on_complete(at(10 * packet), at(10 * packet) - Duration::from_millis(100));
        }
        path
    }

    #[test]
    fn four_packets_in_transit_at_100_a_second_are_40_ms() {
        assert!((steady().round_trip().unwrap() - 0.04).abs() < 1e-9);
        assert_eq!(Path::default().round_trip(), None);
    }

    #[test]
    fn what_is_on_its_way_replaces_what_leaves_while_the_rate_stays() {
        // The lead is 100 − 40 ms: six packets are sent in that time, and six leave.
        let path = steady();
        assert!(path.change(at(1000)).abs() <= 1.0);
        assert!(path.change(at(1030)) < -2.0);
        assert!((path.change(at(2000)) + 6.0).abs() < 0.1);
    }

    #[test]
    fn a_burst_counts_before_that_node_says_so() {
        let mut path = steady();
        (0..5).for_each(|_| path.on_sent(at(1001), 4.0, 4.0));
        assert!(path.change(at(1001)) > 3.0);
        let next = path.next_change(at(1001)).expect("packets are on their way");
        assert!(next > at(1001) && next < at(1061));
    }

    #[test]
    fn nothing_is_counted_when_the_sender_itself_hears_first() {
        let mut path = Path::default();
        for packet in 0..=100 {
            path.on_sent(at(10 * packet), 4.0, 4.0);
            path.on_complete(at(10 * packet), at(10 * packet) - Duration::from_millis(40));
        }
        assert!(path.change(at(1000)).abs() <= 1.0 && path.next_change(at(1100)).is_none());
    }
}
