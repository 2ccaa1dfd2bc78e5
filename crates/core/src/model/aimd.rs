//! Additive increase, multiplicative decrease: AIMD(a, b) of Floyd, Handley and Padhye (2000), as STAIR §4.3 gives it.

use weir_units::math::sqrt;

/// Throughput in packets per second of a window that grows by `increase` packets a round-trip time and loses the share
/// `decrease` of itself at a loss (STAIR Eq. 4): `√((2 − b) a) / (√(2b) · rtt · √p)`.
///
/// `p` is the loss event rate, the round-trip time in seconds. `p` = 0 gives infinity.
///
/// Example: AIMD(1, 1/2) with an RTT of 0.1 s at p = 0.01 gives 122.47.
pub fn packets_per_sec(increase: f64, decrease: f64, rtt_secs: f64, loss_event_rate: f64) -> f64 {
    sqrt((2.0 - decrease) * increase) / (sqrt(2.0 * decrease) * rtt_secs * sqrt(loss_event_rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_documentation_holds() {
        assert!((packets_per_sec(1.0, 0.5, 0.1, 0.01) - 122.47).abs() < 0.01);
    }

    #[test]
    fn throughput_grows_with_the_root_of_the_increase_and_falls_with_the_round_trip_time() {
        let base = packets_per_sec(1.0, 0.5, 0.1, 0.01);
        assert!((packets_per_sec(4.0, 0.5, 0.2, 0.01) / base - 1.0).abs() < 1e-12);
        assert!((packets_per_sec(1.0, 0.5, 0.1, 0.04) / base - 0.5).abs() < 1e-12);
    }
}
