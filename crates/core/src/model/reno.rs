//! TCP Reno (Padhye, Firoiu, Towsley, Kurose 1998), as AVMRC §2.1 gives it.

use weir_units::math::{exp, ln, sqrt};

/// TCP Reno throughput in packets per second (AVMRC §2.1, Eq. 1).
///
/// `1 / (rtt·√(2p/3) + to·min(1, 3·√(3p/8))·p·(1 + 32p²))`: `rtt` and the retransmission timeout `to` in seconds, `p` the
/// loss *event* rate in 0..=1. `p` = 0 gives infinity; the caller caps it.
///
/// Example: p = 0.01, rtt = 0.1, to = 0.4 gives 112.33.
pub fn packets_per_sec(loss_event_rate: f64, rtt_secs: f64, to_secs: f64) -> f64 {
    let p = loss_event_rate;
    let timeouts = (3.0 * sqrt(3.0 * p / 8.0)).min(1.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (rtt_secs * sqrt(2.0 * p / 3.0) + to_secs * timeouts)
}

/// The loss event rate at which a TCP Reno would send `packets_per_sec`: [`packets_per_sec`] solved for p, as RMRC needs
/// it to seed its loss history (AVMRC §4.1).
///
/// By bisection of ln p, since the throughput falls strictly with p; the answer lies in [1e-18, 1], at the end of that
/// range if the rate is beyond what it can give.
///
/// Example: 112.33 packets per second, rtt = 0.1, to = 0.4 gives 0.0100.
pub fn loss_event_rate(packets_per_sec: f64, rtt_secs: f64, to_secs: f64) -> f64 {
    super::reno::invert(|p| self::packets_per_sec(p, rtt_secs, to_secs), packets_per_sec)
}

/// The p in [1e-18, 1] at which `throughput`, which falls with p, is `wanted`.
pub(crate) fn invert(throughput: impl Fn(f64) -> f64, wanted: f64) -> f64 {
    let (mut low, mut high) = (ln(LOWEST), 0.0);
    if throughput(1.0) >= wanted {
        return 1.0;
    }
    if throughput(LOWEST) <= wanted {
        return LOWEST;
    }
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if throughput(exp(middle)) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    exp((low + high) / 2.0)
}

/// Below this no session lives long enough to see a loss.
const LOWEST: f64 = 1e-18;
/// 41.4 / 2^60 is below the last digit of any ln p in the range.
const BISECTIONS: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equation_1_gives_the_numbers_worked_independently() {
        assert!((packets_per_sec(0.01, 0.1, 0.4) - 112.332_234_362_992_98).abs() < 1e-9);
        assert!((packets_per_sec(0.0003, 0.19, 0.76) - 371.159_330_703_359_4).abs() < 1e-9);
    }

    #[test]
    fn certain_loss_gives_a_small_finite_rate_and_no_loss_an_infinite_one() {
        // 0.1·√(2/3) + 0.4·1·1·33 = 13.28165 s a packet.
        assert!((packets_per_sec(1.0, 0.1, 0.4) - 1.0 / 13.281_649_658_092_773).abs() < 1e-12);
        assert_eq!(packets_per_sec(0.0, 0.1, 0.4), f64::INFINITY);
    }

    #[test]
    fn rates_beyond_the_equation_give_the_ends_of_the_range() {
        assert_eq!(loss_event_rate(1e30, 0.1, 0.4), LOWEST);
        assert_eq!(loss_event_rate(0.0, 0.1, 0.4), 1.0);
    }

    proptest! {
        #[test]
        fn throughput_falls_with_loss_and_the_inverse_finds_its_way_back(
            ln_p in -25.0f64..-0.01, rtt in 0.01f64..1.0,
        ) {
            let p = exp(ln_p);
            let rate = packets_per_sec(p, rtt, 4.0 * rtt);
            prop_assert!(packets_per_sec(p * 1.01, rtt, 4.0 * rtt) < rate);
            prop_assert!((loss_event_rate(rate, rtt, 4.0 * rtt) / p - 1.0).abs() < 1e-9);
        }
    }
}
