//! TCP Vegas (Samios and Vernon 2003), as AVMRC §2.1 and §3.1 give it, with both thresholds equal (α = β).
//!
//! Logarithms are to base 2: they count the rounds in which slow start doubles the window.

use weir_units::math::{exp_m1, ln_1p, log2, sqrt};

/// TCP Vegas throughput without loss, in packets per second (AVMRC §2.1, Eq. 2).
///
/// `beta / queuing_delay`: the threshold in packets over the mean queuing delay in seconds. Without delay it is infinite;
/// the caller caps it.
///
/// Example: beta = 41, queuing delay 0.05 s gives 820.
pub fn packets_per_sec_without_loss(beta_packets: f64, queuing_delay_secs: f64) -> f64 {
    beta_packets / queuing_delay_secs
}

/// The window in packets of a Vegas that holds `beta` packets in the queue: `rtt·beta / queuing_delay` (AVMRC §2.1, W of
/// Eq. 3 with α = β). Infinite without delay.
///
/// Example: beta = 41, rtt = 0.15, queuing delay 0.05 gives 123.
pub fn window_packets(beta_packets: f64, rtt_secs: f64, queuing_delay_secs: f64) -> f64 {
    rtt_secs * beta_packets / queuing_delay_secs
}

/// TCP Vegas throughput with loss, in packets per second (AVMRC §2.1, Eq. 3).
///
/// `(n+1)·((1−p)/p + W) / (N·rtt + to)` with `n = (1−p_to)/p_to`,
/// `p_to = min(1, (p + p·(1−p)·(1−(1−p)^(W−1))) / (1−(1−p)^W))` and
/// `N = 2·log W + (n+1)·(1−p)/(p·W) + (1+n/4)·W/8 + 9n/8 − 11/4 + (4−2·log W)/W`: `rtt` and the retransmission timeout
/// `to` in seconds, `p` the loss event rate, `W` the window in packets, both cut to where the equation means something
/// (1e-18 ≤ p ≤ 1, 1 ≤ W ≤ 1e9). As p goes to zero it becomes `W / rtt`, which is Eq. 2. The powers are taken through
/// `ln(1−p)`, so that a tiny p loses no digits.
///
/// Beyond the window of [`stable_window_packets`] the equation rises further and then, for small p, *falls* again,
/// towards 32 / rtt: it counts rounds of linear growth that a Vegas does not live to see.
///
/// Example: p = 0.01, W = 20, rtt = 0.1, to = 0.4 gives 161.46.
pub fn packets_per_sec_with_loss(loss_event_rate: f64, window_packets: f64, rtt_secs: f64, to_secs: f64) -> f64 {
    let p = loss_event_rate.clamp(1e-18, 1.0);
    let w = window_packets.clamp(1.0, 1e9);
    let p_to = if p == 1.0 {
        1.0
    } else {
        let some_of = |packets: f64| -exp_m1(packets * ln_1p(-p));
        ((p + p * (1.0 - p) * some_of(w - 1.0)) / some_of(w)).min(1.0)
    };
    let n = (1.0 - p_to) / p_to;
    let log_w = log2(w);
    let rounds = 2.0 * log_w + (n + 1.0) * (1.0 - p) / (p * w) + (1.0 + n / 4.0) * w / 8.0 + 9.0 * n / 8.0 - 11.0 / 4.0
        + (4.0 - 2.0 * log_w) / w;
    (n + 1.0) * ((1.0 - p) / p + w) / (rounds * rtt_secs + to_secs)
}

/// The largest window in packets at which a Vegas still reaches a stable backlog between loss events (AVMRC §3.1,
/// relation 6 as an equation, solved for W).
///
/// `p = 32 / (7W² − 36W + 32)` gives `W = (36 + √(400 + 896/p)) / 14`, the larger root. Infinite without loss.
///
/// Example: p = 0.01 gives 24; p = 1 gives 36/7.
pub fn stable_window_packets(loss_event_rate: f64) -> f64 {
    (36.0 + sqrt(400.0 + 896.0 / loss_event_rate)) / 14.0
}

/// The threshold in packets that gives [`stable_window_packets`]: `W·queuing_delay / rtt` (AVMRC §3.1).
///
/// Example: p = 0.01, rtt = 0.15, queuing delay 0.05 gives 8.
pub fn stable_beta_packets(loss_event_rate: f64, rtt_secs: f64, queuing_delay_secs: f64) -> f64 {
    stable_window_packets(loss_event_rate) * queuing_delay_secs / rtt_secs
}

/// The loss event rate at which a Vegas with the largest stable window would send `packets_per_sec`:
/// [`packets_per_sec_with_loss`] at [`stable_window_packets`], solved for p by bisection.
///
/// Example: 185.3 packets per second, rtt = 0.1, to = 0.4 gives 0.0100.
pub fn stable_loss_event_rate(packets_per_sec: f64, rtt_secs: f64, to_secs: f64) -> f64 {
    super::reno::invert(|p| packets_per_sec_with_loss(p, stable_window_packets(p), rtt_secs, to_secs), packets_per_sec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_units::math::exp;

    #[test]
    fn equation_3_gives_the_numbers_worked_independently() {
        assert!((packets_per_sec_with_loss(0.01, 20.0, 0.1, 0.4) - 161.461_546_401_578_03).abs() < 1e-9);
        assert!((packets_per_sec_with_loss(1.0, 5.14, 0.1, 0.4) - 7.937_891_931_778_897).abs() < 1e-9);
    }

    #[test]
    fn the_logarithm_of_equation_3_is_to_base_2() {
        // W = 16, p = 1: p_to = 1, n = 0, N = 8 + 2 − 2.75 + (4 − 8)/16 = 7; 16 packets in 7·0.1 + 0.4 s.
        assert!((packets_per_sec_with_loss(1.0, 16.0, 0.1, 0.4) - 16.0 / 1.1).abs() < 1e-12);
    }

    #[test]
    fn equation_3_becomes_equation_2_as_loss_vanishes() {
        let (beta, rtt, delay) = (41.0, 0.15, 0.05);
        let without = packets_per_sec_without_loss(beta, delay);
        let with = packets_per_sec_with_loss(1e-15, window_packets(beta, rtt, delay), rtt, 4.0 * rtt);
        assert!((with / without - 1.0).abs() < 1e-9, "{with} against {without}");
    }

    #[test]
    fn relation_6_gives_the_numbers_worked_independently() {
        assert_eq!(stable_window_packets(0.01), 24.0);
        assert!((stable_window_packets(1.0) - 36.0 / 7.0).abs() < 1e-12);
        assert!((stable_beta_packets(0.01, 0.15, 0.05) - 8.0).abs() < 1e-12);
        assert_eq!(stable_window_packets(0.0), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn relation_6_holds_with_equality(ln_p in -25.0f64..0.0) {
            let p = exp(ln_p);
            let w = stable_window_packets(p);
            prop_assert!((32.0 / (7.0 * w * w - 36.0 * w + 32.0) / p - 1.0).abs() < 1e-6);
        }

        #[test]
        fn throughput_falls_with_loss_and_stays_finite(ln_p in -25.0f64..-0.01, w in 1.0f64..1000.0, rtt in 0.01f64..1.0) {
            let p = exp(ln_p);
            let w = w.min(stable_window_packets(p));
            let rate = packets_per_sec_with_loss(p, w, rtt, 4.0 * rtt);
            prop_assert!(rate.is_finite() && rate > 0.0);
            prop_assert!(packets_per_sec_with_loss((p * 1.01).min(1.0), w, rtt, 4.0 * rtt) <= rate * (1.0 + 1e-9));
        }

        #[test]
        fn throughput_rises_with_the_window_up_to_the_stable_one(ln_p in -25.0f64..-1.0, share in 0.1f64..0.99) {
            let p = exp(ln_p);
            let stable = stable_window_packets(p);
            let rate = |w: f64| packets_per_sec_with_loss(p, w, 0.1, 0.4);
            prop_assert!(rate((stable * share).max(2.0)) <= rate(stable));
        }

        #[test]
        fn the_stable_inverse_finds_its_way_back(ln_p in -25.0f64..-1.0, rtt in 0.01f64..1.0) {
            let p = exp(ln_p);
            let rate = packets_per_sec_with_loss(p, stable_window_packets(p), rtt, 4.0 * rtt);
            prop_assert!((stable_loss_event_rate(rate, rtt, 4.0 * rtt) / p - 1.0).abs() < 1e-6);
        }
    }
}
