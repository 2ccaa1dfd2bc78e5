//! CUBIC's window (RFC 9438).

use std::time::Duration;

use weir_units::Time;
use weir_units::math::pow;

use super::control::{AckEvent, Window};

/// C of RFC 9438 §5.1, in segments per cubed second.
const C: f64 = 0.4;
/// β of §4.6: the window after a loss, as a share of that before.
const BETA: f64 = 0.7;

/// State of CUBIC. Windows are in segments, times in seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Cubic {
    /// The window just before the last reduction, lowered by fast convergence; the plateau of the curve.
    w_max: f64,
    /// The window just before the last reduction.
    cwnd_prior: f64,
    /// The stage of congestion avoidance that is under way.
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance: from a reduction, or the end of slow start, to the next reduction.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Time,
    /// When the curve reaches the plateau, after the start.
    k: f64,
    /// Where its plateau is.
    origin: f64,
    /// What Reno's window would be, at the same average.
    w_est: f64,
}

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
            self.avoid(event, window, srtt.as_nanos() as f64 / 1e9);
        }
        window.cwnd = window.cwnd.min(window.limit);
    }

    /// Congestion avoidance (§4.2 to §4.5).
    fn avoid(&mut self, event: &AckEvent, window: &mut Window, rtt: f64) {
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| {
            let origin = w_max.max(window.cwnd);
            Epoch { start: event.now, k: cbrt((origin - window.cwnd) / C), origin, w_est: window.cwnd }
        });
        let elapsed = event.now.since(epoch.start).as_nanos() as f64 / 1e9;
        // Reno-friendly region (§4.3, Eq. 4): α so that the average is Reno's, then Reno's own.
        let alpha = if epoch.w_est < self.cwnd_prior { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        epoch.w_est += alpha * event.delivered as f64 / window.cwnd;
        if epoch.curve(elapsed) < epoch.w_est {
            window.cwnd = window.cwnd.max(epoch.w_est);
        } else {
            let target = epoch.curve(elapsed + rtt).clamp(window.cwnd, 1.5 * window.cwnd);
            window.cwnd += (target - window.cwnd) / window.cwnd * event.delivered as f64;
        }
    }

    /// The multiplicative decrease (§4.6), with fast convergence (§4.7).
    pub(super) fn reduce(&mut self, window: &mut Window) {
        self.remember(window.cwnd);
        window.ssthresh = (window.cwnd * BETA).max(2.0);
        window.cwnd = window.ssthresh;
    }

    /// The timer ran out (§4.8).
    pub(super) fn collapse(&mut self, window: &mut Window) {
        self.remember(window.cwnd);
        window.ssthresh = (window.cwnd * BETA).max(2.0);
        window.cwnd = 1.0;
    }

    fn remember(&mut self, cwnd: f64) {
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
    }
}

impl Epoch {
    /// `W_cubic(t) = C (t − K)³ + W_max` (§4.2, Eq. 1), `t` seconds after the start.
    fn curve(&self, t: f64) -> f64 {
        let t = t - self.k;
        C * t * t * t + self.origin
    }
}

/// The cube root of what is not negative.
fn cbrt(x: f64) -> f64 {
    pow(x, 1.0 / 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((window.cwnd, window.ssthresh, cubic.w_max), (70.0, 70.0, 100.0));
        cubic.reduce(&mut window);
        // Below the last maximum: fast convergence gives up room, 70 · 1.7 / 2.
        assert_eq!(window.cwnd, 49.0);
        assert!((cubic.w_max - 59.5).abs() < 1e-9);
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
