//! Cumulative layers below, non-cumulative ones on top: STAIR's static layers (§3.1).

use alloc::vec::Vec;

use weir_units::math;

use super::cumulative::Ladder;
use super::fibonacci::Fibonacci;
use super::set::LayerSet;

/// Rates K = α^j + r in units of the lowest layer: cumulative layers up to α^j, and FGLM's non-cumulative layers for r.
///
/// Where α^j is no whole number the cumulative layers make ⌊α^j⌋. Layers are numbered cumulative ones first, then
/// non-cumulative ones, each from the lowest.
///
/// Example: with α = 2, 13 = 2^3 + 5 units are the cumulative layers 0 to 3 and the non-cumulative ones of 1 and 4 units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hybrid {
    /// By cumulative layer: the rate of it and all below. Strictly rising, from 1.
    totals: Vec<u64>,
    fine: Fibonacci,
    top: u64,
}

impl Hybrid {
    /// Layers of rates from 1 to `top`, with cumulative ones at ⌊α^j⌋. `alpha` is above 1.
    pub fn new(alpha: f64, top: u64) -> Hybrid {
        let powers = (0u32..).map(|j| math::pow(alpha, f64::from(j)) as u64);
        let totals = powers.take_while(|power| *power < top).chain([top]);
        Hybrid::from_totals(totals)
    }

    /// The cumulative layers of a ladder, as multiples of its lowest rate, whole numbers rounded down.
    pub fn from_ladder(ladder: &Ladder) -> Hybrid {
        let unit = ladder.level_rate(1).bps().max(1);
        Hybrid::from_totals(ladder.rates().iter().map(|rate| rate.bps() / unit))
    }

    /// Non-cumulative layers alone, up to a ladder's highest rate in units of its lowest: FGLM.
    pub fn non_cumulative(ladder: &Ladder) -> Hybrid {
        let unit = ladder.level_rate(1).bps().max(1);
        let top = ladder.level_rate(ladder.levels()).bps() / unit;
        Hybrid { totals: Vec::new(), fine: Fibonacci::up_to(top), top }
    }

    fn from_totals(totals: impl Iterator<Item = u64>) -> Hybrid {
        let mut totals: Vec<u64> = totals.collect();
        totals.dedup();
        let widest = totals.windows(2).map(|pair| pair[1] - pair[0] - 1).max().unwrap_or(0);
        let top = totals.last().copied().unwrap_or(0);
        Hybrid { totals, fine: Fibonacci::up_to(widest), top }
    }

    /// The highest rate. The non-cumulative layers together may have a higher one.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The layers' rates, in units.
    pub fn rates(&self) -> Vec<u64> {
        let below = [0].into_iter().chain(self.totals.iter().copied());
        let cumulative = self.totals.iter().zip(below).map(|(total, below)| total - below);
        cumulative.chain(self.fine.rates().iter().copied()).collect()
    }

    /// The layers that a receiver at rate `units` has, as far as there are layers.
    pub fn set(&self, units: u64) -> LayerSet {
        let (cumulative, rest) = self.split(units);
        let fine = self.fine.set(rest);
        (0..cumulative).chain(fine.iter().map(|layer| self.totals.len() + layer)).collect()
    }

    /// The rate after a multiplicative decrease: without the highest non-cumulative layer, and without the number of
    /// cumulative ones, at least one, that brings the whole nearest to half (§4.1 drops one, which for α = 2 is the same). The
    /// lowest rate there is stays.
    pub fn halve(&self, units: u64) -> u64 {
        let (cumulative, rest) = self.split(units);
        let fine = self.fine.halve(rest);
        let below = &self.totals[..cumulative.saturating_sub(1)];
        let lower = below.iter().copied().min_by_key(|total| (2 * (total + fine)).abs_diff(units));
        let lowest = self.totals[..cumulative].first().copied().unwrap_or(0);
        (lower.unwrap_or(lowest) + fine).max(1)
    }

    /// How many cumulative layers a rate takes, and what is left for the non-cumulative ones.
    fn split(&self, units: u64) -> (usize, u64) {
        let cumulative = self.totals.partition_point(|total| *total <= units);
        let full = self.totals.get(cumulative.wrapping_sub(1)).copied().unwrap_or(0);
        (cumulative, units - full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::dilation;
    use proptest::prelude::*;
    use weir_units::Rate;

    const ALPHAS: [f64; 6] = [1.2, 1.5, 2.0, 2.5, 3.0, 4.0];

    fn rate(layers: &Hybrid, set: LayerSet) -> u64 {
        let rates = layers.rates();
        set.iter().map(|layer| rates[layer]).sum()
    }

    #[test]
    fn thirteen_units_are_the_paper_s_figure_1() {
        let layers = Hybrid::new(2.0, 64);
        assert_eq!(layers.rates(), [1, 1, 2, 4, 8, 16, 32, 1, 2, 4, 7, 12, 20]);
        assert_eq!(layers.set(13).iter().collect::<Vec<_>>(), [0, 1, 2, 3, 7, 9]);
    }

    #[test]
    fn every_rate_is_made_exactly_for_any_alpha() {
        for alpha in ALPHAS {
            let layers = Hybrid::new(alpha, 700);
            assert_eq!(layers.top(), 700);
            for units in 0..=700 {
                assert_eq!(rate(&layers, layers.set(units)), units, "alpha {alpha}");
            }
        }
    }

    #[test]
    fn a_ladder_gives_the_layers_of_its_ratio() {
        for alpha in [1.2, 2.0, 3.0] {
            let unit = Rate::from_kbps(512);
            let ladder = Ladder::geometric(unit, Rate::from_bps(512_000 * 243), alpha).expect("valid");
            assert_eq!(Hybrid::from_ladder(&ladder), Hybrid::new(alpha, 243), "alpha {alpha}");
        }
    }

    #[test]
    fn non_cumulative_layers_alone_make_every_rate_up_to_the_ladder_s_highest() {
        let ladder = Ladder::geometric(Rate::from_kbps(500), Rate::from_mbps(40), 1.5).expect("valid");
        let layers = Hybrid::non_cumulative(&ladder);
        assert_eq!(layers.top(), 80);
        assert!(layers.rates().iter().sum::<u64>() > 80);
        assert!((1..=80).all(|units| rate(&layers, layers.set(units)) == units));
    }

    #[test]
    fn at_alpha_2_a_decrease_drops_the_top_layer_of_each_kind() {
        let layers = Hybrid::new(2.0, 1 << 12);
        let mut regrouped = 0;
        for units in 2..1u64 << 12 {
            let (power, fine) = (1 << units.ilog2(), units - (1 << units.ilog2()));
            assert_eq!(layers.halve(units), power / 2 + layers.fine.halve(fine));
            let (before, after) = (layers.set(units), layers.set(layers.halve(units)));
            // Where the non-cumulative layers would keep more than the power of two that was left, it takes their place.
            let simply = after.without(before).is_empty() && before.without(after).len() <= 2;
            regrouped += usize::from(!simply);
            let left = layers.halve(units) as f64 / units as f64;
            assert!((1.0 / 3.0..=0.56).contains(&left), "{units} keeps {left}");
        }
        assert!(regrouped < 205, "{regrouped} of 4094 rates");
        assert_eq!((layers.halve(1), layers.halve(13)), (1, 5));
    }

    #[test]
    fn at_any_alpha_a_decrease_halves_as_nearly_as_the_layers_allow() {
        for (alpha, low, high) in [(1.2, 0.44, 0.56), (1.5, 0.39, 0.61), (3.0, 0.2, 0.61), (4.0, 0.15, 0.61)] {
            let layers = Hybrid::new(alpha, 2_000);
            for units in 20..=1_999 {
                let left = layers.halve(units) as f64 / units as f64;
                assert!((low..=high).contains(&left), "alpha {alpha}: {units} keeps {left}");
            }
        }
    }

    /// The largest dilation that receivers of rates 1 to `units` can cause, all of them being there.
    fn worst_dilation(layers: &Hybrid, units: u64) -> f64 {
        let sets: Vec<LayerSet> = (1..=units).map(|units| layers.set(units)).collect();
        dilation::of_sets(&layers.rates(), &sets).expect("somebody receives")
    }

    #[test]
    fn table1_the_hybrid_s_dilation_is_at_most_1_and_1_75_times_alpha_less_1_over_alpha() {
        for alpha in ALPHAS {
            let layers = Hybrid::new(alpha, 700);
            let bound = |fine: f64| 1.0 + fine * (alpha - 1.0) / alpha;
            let mut worst: f64 = 0.0;
            for units in (1..=160).chain((161..=700).step_by(7)) {
                let dilation = worst_dilation(&layers, units);
                assert!(dilation <= bound(1.75), "alpha {alpha}: {dilation} at {units}");
                worst = worst.max(dilation);
            }
            assert!(worst >= 0.9 * bound(1.62), "alpha {alpha}: only {worst}");
        }
    }

    #[test]
    fn fig02_a_smaller_alpha_dilates_far_less() {
        let mean = |alpha| {
            let layers = Hybrid::new(alpha, 128);
            (10..=100).map(|units| worst_dilation(&layers, units)).sum::<f64>() / 91.0
        };
        let (at_2, at_1_2) = (mean(2.0), mean(1.2));
        assert!((at_2 - 1.30).abs() < 0.01 && (at_1_2 - 1.11).abs() < 0.01, "{at_2} {at_1_2}");
    }

    proptest! {
        #[test]
        fn table1_no_receivers_at_all_dilate_a_link_beyond_the_bound(
            alpha in 1.1f64..5.0,
            rates in proptest::collection::vec(1u64..2_000, 1..40),
        ) {
            let layers = Hybrid::new(alpha, 2_000);
            let sets: Vec<LayerSet> = rates.iter().map(|units| layers.set(*units)).collect();
            let dilation = dilation::of_sets(&layers.rates(), &sets).expect("somebody receives");
            prop_assert!(dilation <= 1.0 + 1.75 * (alpha - 1.0) / alpha);
        }

        #[test]
        fn a_decrease_never_raises_the_rate_and_its_layers_exist(alpha in 1.1f64..5.0, units in 1u64..2_000) {
            let layers = Hybrid::new(alpha, 2_000);
            let less = layers.halve(units);
            prop_assert!(less >= 1 && less <= units);
            prop_assert_eq!(rate(&layers, layers.set(less)), less);
        }
    }
}
