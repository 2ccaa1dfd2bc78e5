//! The congestion window of a Linux sender, in whole segments, and the controls that move it.

use std::time::Duration;

use super::bbr::Bbr;
use super::cubic::Cubic;

/// The congestion window and what bounds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
    /// The receiver's window.
    pub(super) limit: u64,
    /// Segments acknowledged that the window has not grown for yet.
    credit: u64,
    /// Segments per second that a pacer lets out of this window; it sizes batches without one, too. Zero before the first round trip.
    pub(super) rate: f64,
    pub(super) segment_bytes: f64,
}

impl Window {
    pub(super) fn new(cwnd: u64, limit: u64) -> Window {
        Window { cwnd: cwnd.clamp(1, limit), ssthresh: u64::MAX, limit, credit: 0, rate: 0.0, segment_bytes: 1500.0 }
    }

    pub(super) fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd.clamp(1, self.limit);
    }

    /// Forgets what has been acknowledged towards the next segment.
    pub(super) fn restart_count(&mut self) {
        self.credit = 0;
    }

    /// Grows by what is acknowledged, up to the threshold (RFC 3465 without its limit). Gives back what is left of `acked`.
    pub(super) fn slow_start(&mut self, acked: u64) -> u64 {
        if self.cwnd >= self.ssthresh {
            return acked;
        }
        let grown = (self.cwnd + acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.set(grown);
        left
    }

    /// Grows by one for each `per` segments acknowledged.
    pub(super) fn grow_by(&mut self, per: u64, acked: u64) {
        let per = per.max(1);
        if self.credit >= per {
            self.credit = 0;
            self.set(self.cwnd + 1);
        }
        self.credit += acked;
        if self.credit >= per {
            let steps = self.credit / per;
            self.credit -= steps * per;
            self.set(self.cwnd + steps);
        }
    }

    /// How much longer than half a round trip a train of acknowledgements may be, since batches stretch it: the time of
    /// four of the largest batches at the pacing rate, and at most 1 ms.
    pub(super) fn train_allowance(&self) -> Duration {
        if self.rate <= 0.0 {
            return Duration::ZERO;
        }
        let secs = 4.0 * 65_536.0 / (self.rate * self.segment_bytes);
        Duration::from_nanos((secs.min(1e-3) * 1e9) as u64) / 2
    }
}

/// The control of a flavour, with its state.
#[derive(Debug, Clone)]
pub(super) enum Control {
    Reno,
    Cubic(Box<Cubic>),
    Bbr(Box<Bbr>),
}

impl Control {
    /// The threshold after a loss or a mark.
    pub(super) fn threshold(&mut self, window: &Window) -> u64 {
        match self {
            Control::Reno => (window.cwnd / 2).max(2),
            Control::Cubic(cubic) => cubic.threshold(window.cwnd),
            Control::Bbr(bbr) => {
                bbr.save_window(window.cwnd);
                window.ssthresh
            }
        }
    }

    pub(super) fn is_bbr(&self) -> bool {
        matches!(self, Control::Bbr(_))
    }
}
