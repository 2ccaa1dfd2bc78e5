//! Which stairs a receiver follows at its round-trip time (§4.3).

use core::time::Duration;

use weir_units::math::{pow, sqrt};

use crate::layers::{LayerSet, Stair};

/// The two options of §4.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StairRule {
    /// Option 1: the stair within a factor of 1 ± ε of the round-trip time, ε = 1/3.
    One,
    /// Option 2: one stair within a fourth root of two of the round-trip time; near the geometric mean of two neighbours the
    /// slower of them and the next slower one.
    Two,
}

/// The stairs for a round-trip time, by number, fastest first; there is at least one if there are any. A round-trip time
/// beyond the fastest or slowest stair takes that one.
///
/// Example: of stairs for 32, 64, 128 and 256 ms, 45 ms takes that of 64 ms under option 1 (42.7 < 45), and those of 64 and
/// 128 ms under option 2 (38.1 < 45 ≤ 53.8).
pub fn stairs_for(rtt: Duration, stairs: &[Stair], rule: StairRule) -> LayerSet {
    let factor = |stair: &Stair| rtt.as_secs_f64() / stair.rtt().as_secs_f64();
    let Some(slowest) = stairs.len().checked_sub(1) else { return LayerSet::default() };
    let own = match rule {
        StairRule::One => 4.0 / 3.0,
        StairRule::Two => sqrt(sqrt(2.0)),
    };
    let shared = match rule {
        StairRule::One => own,
        StairRule::Two => pow(2.0, 0.75),
    };
    for (number, stair) in stairs.iter().enumerate() {
        if factor(stair) <= own {
            return LayerSet::from_iter([number]);
        }
        if factor(stair) <= shared {
            return [number + 1, number + 2].into_iter().map(|number| number.min(slowest)).collect();
        }
    }
    LayerSet::from_iter([slowest])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::aimd;
    use alloc::vec::Vec;
    use weir_units::{Bytes, Rate};

    fn stairs() -> Vec<Stair> {
        Stair::family(Rate::from_kbps(512), Bytes::new(512), 4, 6)
    }

    fn chosen(millis: f64, rule: StairRule) -> Vec<u128> {
        let stairs = stairs();
        let rtt = Duration::from_secs_f64(millis / 1e3);
        stairs_for(rtt, &stairs, rule).iter().map(|number| stairs[number].rtt().as_millis()).collect()
    }

    /// The throughput of a receiver on its stairs as a multiple of that of TCP at this round-trip time: Eq. 4 twice. Each
    /// stair adds a packet a round-trip time of its own, and so, to the window of the fastest, the square of their ratio.
    fn discrepancy(millis: f64, rule: StairRule) -> f64 {
        let rtts: Vec<f64> = chosen(millis, rule).into_iter().map(|rtt| rtt as f64 / 1e3).collect();
        let increase = rtts.iter().map(|rtt| (rtts[0] / rtt) * (rtts[0] / rtt)).sum();
        aimd::packets_per_sec(increase, 0.5, rtts[0], 0.01) / aimd::packets_per_sec(1.0, 0.5, millis / 1e3, 0.01)
    }

    fn range(rule: StairRule) -> (f64, f64) {
        // Between the geometric means below the second stair and above the fourth all choices occur.
        let sweep = (46..360).map(|tenth| discrepancy(f64::from(tenth), rule));
        sweep.fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
    }

    fn two_digits(value: f64) -> f64 {
        weir_units::math::round(value * 100.0) / 100.0
    }

    #[test]
    fn option_1_takes_the_stair_within_a_third() {
        let cases =
            [(10.0, 32), (42.0, 32), (43.0, 64), (60.0, 64), (85.0, 64), (86.0, 128), (120.0, 128), (9e3, 1024)];
        for (rtt, stair) in cases {
            assert_eq!(chosen(rtt, StairRule::One), [stair], "at {rtt} ms");
        }
    }

    #[test]
    fn option_2_takes_two_stairs_around_the_geometric_mean() {
        for (rtt, stairs) in [
            (64.0, &[64][..]),
            (76.0, &[64]),
            (77.0, &[128, 256]),
            (90.5, &[128, 256]),
            (107.0, &[128, 256]),
            (108.0, &[128]),
            (700.0, &[1024]),
            (9e3, &[1024]),
        ] {
            assert_eq!(chosen(rtt, StairRule::Two), stairs, "at {rtt} ms");
        }
    }

    #[test]
    fn fig07_option_1_lies_between_0_66_and_1_33() {
        let (low, high) = range(StairRule::One);
        assert!((0.66..0.69).contains(&low) && (1.31..=1.334).contains(&high), "{low} to {high}");
    }

    #[test]
    fn fig07_option_1_at_the_geometric_mean_and_at_the_fourth_root() {
        assert_eq!(two_digits(discrepancy(90.509, StairRule::One)), 0.71);
        // The paper compares the faster stair there, 1.18; two digits of the exact fourth root of two are 1.19.
        assert_eq!(two_digits(discrepancy(76.109, StairRule::One)), 1.19);
    }

    /// The paper's Eq. after (4), with its own a = 3/2.
    #[test]
    fn fig07_option_2_with_the_paper_s_increase_gives_the_paper_s_figures() {
        let with = |increase: f64, rtt: f64| {
            aimd::packets_per_sec(increase, 0.5, 2.0, 0.01) / aimd::packets_per_sec(1.0, 0.5, rtt, 0.01)
        };
        assert_eq!(two_digits(with(1.5, sqrt(2.0))), 0.87);
        assert_eq!(two_digits(with(1.5, sqrt(sqrt(2.0)))), 0.73);
        assert_eq!(two_digits(with(1.25, sqrt(2.0))), 0.79);
    }

    /// The slower of two stairs adds a packet in twice the time at half the rate: a quarter of a packet, not a half.
    #[test]
    fn fig07_option_2_with_two_real_stairs_lies_between_0_665_and_1_19() {
        let (low, high) = range(StairRule::Two);
        assert!((0.664..0.68).contains(&low) && (1.17..=1.19).contains(&high), "{low} to {high}");
        assert_eq!(two_digits(discrepancy(90.509, StairRule::Two)), 0.79);
    }
}
