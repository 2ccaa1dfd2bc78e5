//! CUBIC's window (RFC 9438) in a TCP: slow start, limits, time-outs. Its growth between reductions is the core's.

use std::time::Duration;

use weir_core::model::cubic;

use super::control::{AckEvent, Window};

/// State of CUBIC.
#[derive(Debug, Clone, Default)]
pub(super) struct Cubic(cubic::Cubic);

impl Cubic {
    /// New data is acknowledged, outside of fast recovery.
    #[inline]
    pub(super) fn acknowledged(&mut self, event: &AckEvent, window: &mut Window, srtt: Duration) {
        // What the sender does not use does not grow (§5.8).
        if (event.pipe_before as f64) < window.cwnd - 2.0 {
            return;
        }
        if window.cwnd < window.ssthresh {
            window.cwnd += event.delivered.clamp(1, 2) as f64;
        } else {
            let round_trip = srtt.as_nanos() as f64 / 1e9;
            window.cwnd = self.0.grown(event.now, window.cwnd, round_trip, event.delivered as f64);
        }
        window.cwnd = window.cwnd.min(window.limit);
    }

    /// The multiplicative decrease (§4.6), with fast convergence (§4.7).
    pub(super) fn reduce(&mut self, window: &mut Window) {
        window.ssthresh = self.0.reduced(window.cwnd).max(2.0);
        window.cwnd = window.ssthresh;
    }

    /// The timer ran out (§4.8).
    pub(super) fn collapse(&mut self, window: &mut Window) {
        window.ssthresh = self.0.reduced(window.cwnd).max(2.0);
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use weir_units::Time;

    fn window(cwnd: f64) -> Window {
        Window { cwnd, ssthresh: 1e6, limit: 1e6 }
    }

    /// The window `secs` after a loss at a window of `before`, with a round trip of `rtt`.
    fn grown(before: f64, rtt: f64, secs: f64) -> f64 {
        let (mut cubic, mut window) = (Cubic::default(), window(before));
        cubic.reduce(&mut window);
        let mut at = 0.0;
        while at < secs {
            let pipe = window.cwnd as u64;
            let now = Time::from_nanos((at * 1e9) as u64);
            let event = AckEvent { now, delivered: 1, pipe_before: pipe, pipe: pipe - 1, lost: 0 };
            cubic.acknowledged(&event, &mut window, Duration::from_nanos((rtt * 1e9) as u64));
            at += rtt / window.cwnd;
        }
        window.cwnd
    }

    #[test]
    fn a_loss_leaves_seven_tenths() {
        let (mut cubic, mut window) = (Cubic::default(), window(100.0));
        cubic.reduce(&mut window);
        assert_eq!((window.cwnd, window.ssthresh), (70.0, 70.0));
        cubic.reduce(&mut window);
        assert_eq!(window.cwnd, 49.0);
    }

    #[test]
    fn the_window_follows_the_curve_of_equation_1() {
        // W_max = 1000, K = (300 / 0.4)^(1/3) = 9.086 s, far from the Reno-friendly region at a round trip of 0.1 s.
        for (secs, expected) in [(3.0, 910.0), (6.0, 988.2), (9.086, 1000.0), (12.0, 1009.9), (15.0, 1082.7)] {
            let cwnd = grown(1000.0, 0.1, secs);
            assert!((cwnd - expected).abs() < 0.01 * expected, "{cwnd} after {secs} s, and not {expected}");
        }
    }

    #[test]
    fn with_a_small_window_and_round_trip_it_grows_as_fast_as_reno_would() {
        // α = 0.529 segments a round trip from 14 on: 20 after 11.3 round trips, where α becomes 1.
        let cwnd = grown(20.0, 0.01, 0.2);
        let expected = 20.0 + (20.0 - 6.0 / 0.529);
        assert!((cwnd - expected).abs() < 0.05 * expected, "{cwnd}, and not {expected}");
    }
}
