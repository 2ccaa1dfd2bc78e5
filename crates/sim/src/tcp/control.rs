//! How the congestion window moves: one enum of the flavours' controls.

use weir_units::Time;
use weir_units::math::floor;

use super::vegas::Vegas;
use super::{Config, Flavour};

/// The congestion window and what bounds it, in segments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// May be a fraction; whole segments are sent.
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// The receiver's window.
    pub(super) limit: f64,
}

impl Window {
    pub(super) fn new(config: &Config) -> Window {
        let limit = f64::from(config.max_window.max(1));
        Window { cwnd: f64::from(config.initial_window.max(1)).min(limit), ssthresh: limit, limit }
    }

    /// Grows as Reno's does with each acknowledgement of new data (RFC 5681 §3.1): by one in slow start, then by
    /// 1 / cwnd. ns-2 and most hosts do not look at how much is acknowledged.
    #[inline]
    pub(super) fn grow(&mut self) {
        self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        self.cwnd = self.cwnd.min(self.limit);
    }

    /// Sets the threshold to half the window, at least 2, and gives back the half.
    ///
    /// RFC 5681 (4) halves what is outstanding. ns-2 halves the window, which differs when the sender had less to send.
    pub(super) fn halve_threshold(&mut self) -> f64 {
        let half = self.cwnd.min(self.limit) / 2.0;
        self.ssthresh = floor(half).max(2.0);
        half
    }
}

/// The control of a flavour, with its state.
#[derive(Debug, Clone)]
pub(super) enum Control {
    /// Tahoe, Reno, NewReno, Sack, Sack1: all that they know is in the [`Window`].
    Reno,
    Vegas(Box<Vegas>),
}

impl Control {
    pub(super) fn new(config: &Config) -> Control {
        match config.flavour {
            Flavour::Vegas => Control::Vegas(Box::new(Vegas::new(config))),
            _ => Control::Reno,
        }
    }

    /// A loss that fast recovery will mend, or a congestion mark: the multiplicative decrease.
    pub(super) fn reduce(&mut self, window: &mut Window) {
        window.cwnd = window.halve_threshold();
    }

    /// The retransmission timer ran out.
    pub(super) fn collapse(&mut self, now: Time, window: &mut Window) {
        match self {
            Control::Reno => {
                window.halve_threshold();
                window.cwnd = 1.0;
            }
            Control::Vegas(vegas) => vegas.collapse(now, window),
        }
    }
}
