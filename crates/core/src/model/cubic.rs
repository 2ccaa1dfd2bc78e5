//! CUBIC's window between reductions (RFC 9438). Not here: slow start, and what is a loss.

use weir_units::Time;
use weir_units::math::pow;

/// What CUBIC remembers. Windows are in packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cubic {
    /// The window before the last reduction, lowered by fast convergence: the plateau of the curve.
    w_max: f64,
    /// The window before the last reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// Congestion avoidance from one reduction, or the end of slow start, to the next reduction.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Time,
    /// When the curve is at its plateau, seconds after the start.
    k: f64,
    plateau: f64,
    /// Where Reno's window would be.
    w_est: f64,
}

impl Cubic {
    /// The window after `packets` are acknowledged in congestion avoidance (§4.2 to §4.5), where it was `cwnd` packets.
    #[inline]
    pub fn grown(&mut self, now: Time, cwnd: f64, round_trip_seconds: f64, packets: f64) -> f64 {
        let plateau = self.w_max.max(cwnd);
        let start = Epoch { start: now, k: pow((plateau - cwnd) / C, 1.0 / 3.0), plateau, w_est: cwnd };
        let epoch = self.epoch.get_or_insert(start);
        let elapsed = now.since(epoch.start).as_nanos() as f64 / 1e9;
        // In the Reno-friendly region (§4.3, Eq. 4) the average is Reno's; then the growth is Reno's own.
        let alpha = if epoch.w_est < self.cwnd_prior { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        epoch.w_est += alpha * packets / cwnd;
        if epoch.curve(elapsed) < epoch.w_est {
            return cwnd.max(epoch.w_est);
        }
        let target = epoch.curve(elapsed + round_trip_seconds).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) / cwnd * packets
    }

    /// The threshold after congestion at a window of `cwnd` packets (§4.6, with the fast convergence of §4.7).
    pub fn reduced(&mut self, cwnd: f64) -> f64 {
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        BETA * cwnd
    }
}

impl Epoch {
    /// `W_cubic(t) = C·(t − K)³ + W_max`, `t` seconds after the start (§4.2, Eq. 1).
    fn curve(&self, t: f64) -> f64 {
        let t = t - self.k;
        C * t * t * t + self.plateau
    }
}

/// C, packets per cubed second (RFC 9438 §5.1).
/// Mean rate under a loss event rate `p` with this round-trip time (RFC 9438 §5.1, Eq. 5, over the round trip). It holds where
/// losses are rare, and for flows that alone make the losses that they see.
pub fn packets_per_sec(p: f64, rtt_secs: f64) -> f64 {
    // (C·(3 + β) / (4·(1 − β)))^(1/4)
    pow(C * (3.0 + BETA) / (4.0 * (1.0 - BETA)), 0.25) * pow(rtt_secs, -0.25) * pow(p, -0.75)
}

const C: f64 = 0.4;
/// The window after congestion as a share of that before (§4.6).
const BETA: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    /// The window `secs` after congestion at a window of `before`.
    #[test]
    fn the_mean_window_is_that_of_the_rfc_s_table() {
        // RFC 9438 §5.1, Table 1: at 0.1 s and p = 10^-4 the window is 187 packets, at 10^-6 it is 5930.
        for (p, window) in [(1e-4, 187.0), (1e-6, 5930.0)] {
            let mean = packets_per_sec(p, 0.1) * 0.1;
            assert!((mean / window - 1.0).abs() < 0.01, "{mean} and not {window}");
        }
    }

    fn grown(before: f64, round_trip: f64, secs: f64) -> f64 {
        let mut cubic = Cubic::default();
        let (mut cwnd, mut at) = (cubic.reduced(before), 0.0);
        while at < secs {
            cwnd = cubic.grown(Time::from_nanos((at * 1e9) as u64), cwnd, round_trip, 1.0);
            at += round_trip / cwnd;
        }
        cwnd
    }

    #[test]
    fn the_window_follows_the_curve_of_equation_1() {
        // W_max = 1000: K = (300 / 0.4)^(1/3) = 9.086 s.
        for (secs, expected) in [(3.0, 910.0), (6.0, 988.2), (9.086, 1000.0), (12.0, 1009.9), (15.0, 1082.7)] {
            let cwnd = grown(1000.0, 0.1, secs);
            assert!((cwnd - expected).abs() < 0.01 * expected, "{cwnd} after {secs} s, and not {expected}");
        }
    }

    #[test]
    fn a_small_window_grows_as_reno_does_on_average() {
        // W_max = 20 at 20 ms: 14 packets and 9/17 a round trip, until it is at 20; the curve would take 2.47 s.
        let cwnd = grown(20.0, 0.02, 0.1);
        assert!((cwnd - (14.0 + 5.0 * 9.0 / 17.0)).abs() < 0.2, "{cwnd}");
    }

    #[test]
    fn a_second_reduction_below_the_plateau_lowers_it() {
        let mut cubic = Cubic::default();
        assert_eq!((cubic.reduced(100.0), cubic.w_max), (70.0, 100.0));
        assert_eq!((cubic.reduced(70.0), cubic.w_max), (49.0, 59.5));
    }
}
