//! BBR's congestion window (draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.3).

use super::bbr::{Bbr, MIN_WINDOW, State, View};
use super::rate::Sample;

impl Bbr {
    /// The window after an acknowledgement.
    pub(super) fn window(&mut self, view: &View, sample: &Sample, mut cwnd: u64) -> u64 {
        if sample.acked > 0 && !self.recover(view, sample, &mut cwnd) {
            let target = self.bandwidth_delay(self.bandwidth_in_use(), self.window_gain);
            let compressed = self.aggregation.allowance(self.bandwidth_in_use(), self.filled);
            let target = self.with_batches(view, target + compressed);
            if self.filled {
                cwnd = (cwnd + sample.acked).min(target);
            } else if cwnd < target || view.delivered < INITIAL_WINDOW {
                cwnd += sample.acked;
            }
            cwnd = cwnd.max(MIN_WINDOW);
        }
        if self.state == State::ProbeRtt { cwnd.min(MIN_WINDOW) } else { cwnd }
    }

    /// What is lost leaves the window; for a round of fast recovery no more is sent than is delivered; after it the window is
    /// what it was (§4.2.3.4). Whether that decides the window.
    fn recover(&mut self, view: &View, sample: &Sample, cwnd: &mut u64) -> bool {
        if sample.losses > 0 {
            *cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        if view.is_fast_recovery && !self.was_recovering {
            self.conserving = true;
            self.round_ends = view.delivered;
            *cwnd = view.in_flight + sample.acked;
        } else if self.was_recovering && !view.recovering {
            *cwnd = (*cwnd).max(self.prior_window);
            self.conserving = false;
        }
        self.was_recovering = view.recovering;
        if self.conserving {
            *cwnd = (*cwnd).max(view.in_flight + sample.acked);
        }
        self.conserving
    }

    /// Remembers the window for after a recovery or a probe of the round trip.
    pub(super) fn save_window(&mut self, cwnd: u64) {
        let is_held = self.was_recovering || self.state == State::ProbeRtt;
        self.prior_window = if is_held { self.prior_window.max(cwnd) } else { cwnd };
    }

    /// Segments on the way at `gain` times the bandwidth–delay product, with room for batches.
    pub(super) fn in_flight(&self, view: &View, bandwidth: f64, gain: f64) -> u64 {
        self.with_batches(view, self.bandwidth_delay(bandwidth, gain))
    }

    fn bandwidth_delay(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_WINDOW };
        let exact = gain * bandwidth * (min_rtt.as_nanos() as f64 / 1e9);
        exact as u64 + u64::from(exact > exact.trunc())
    }

    /// Three batches: one at the sender, one at the receiver, one on the way; an even number, since acknowledgements are for
    /// two; and two more while bandwidth is probed, so that small pipes see a difference.
    fn with_batches(&self, view: &View, window: u64) -> u64 {
        let even = (window + 3 * self.batch(view.segment_bytes) + 1) & !1;
        let probes = self.state == State::ProbeBandwidth && self.cycle == 0;
        even + if probes { 2 } else { 0 }
    }
}

/// Before anything is known (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
