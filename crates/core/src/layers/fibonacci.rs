//! Non-cumulative layers whose rates grow almost as the Fibonacci numbers do: Fib1 of fine-grained layered multicast.

use alloc::vec::Vec;

use super::set::LayerSet;

/// The layers 1, 2, 4, 7, 12, 20, 33 …: each the sum of the two before and one (STAIR §2). Rates are in units of the lowest.
///
/// A receiver at a rate has one set of layers for it. To add a unit it joins the lowest layer that it does not have and
/// leaves the two below: one join, at most two leaves. To approximately halve its rate it leaves its highest layer.
///
/// Example: 7 units are layers 0, 1 and 2; 8 are layers 0 and 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fibonacci {
    rates: Vec<u64>,
    /// By layer: the rate of it and all below.
    sums: Vec<u64>,
}

impl Fibonacci {
    /// The fewest layers of which any rate up to `units` can be had.
    pub fn up_to(units: u64) -> Fibonacci {
        let (mut rates, mut sums) = (Vec::new(), Vec::new());
        let mut sum = 0;
        while sum < units {
            let rate = match rates[..] {
                [] => 1,
                [one] => one + 1,
                [.., a, b] => a + b + 1,
            };
            sum += rate;
            rates.push(rate);
            sums.push(sum);
        }
        Fibonacci { rates, sums }
    }

    /// The layers' rates, lowest first.
    pub fn rates(&self) -> &[u64] {
        &self.rates
    }

    /// The layers that a receiver at this rate has; all of them for more than they give.
    pub fn set(&self, mut units: u64) -> LayerSet {
        let mut set = LayerSet::default();
        while let Some(top) = self.top(units) {
            set.insert(top);
            units = units.saturating_sub(self.rates[top]).min(self.below(top));
        }
        set
    }

    /// What a receiver is left with that leaves its highest layer: of large rates 38 to 62 %; of small ones as little as an
    /// eighth, just after a new layer came in.
    pub fn halve(&self, units: u64) -> u64 {
        self.top(units).map_or(0, |top| units.saturating_sub(self.rates[top]).min(self.below(top)))
    }

    /// The highest layer at this rate: the first that the layers below it cannot make up for.
    fn top(&self, units: u64) -> Option<usize> {
        if units == 0 {
            return None;
        }
        let enough = self.sums.partition_point(|sum| *sum < units);
        Some(enough.min(self.sums.len().checked_sub(1)?))
    }

    /// The rate of all layers below one.
    fn below(&self, layer: usize) -> u64 {
        self.sums[layer] - self.rates[layer]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::dilation;

    const UNITS: u64 = 5_000;

    fn rate(layers: &Fibonacci, set: LayerSet) -> u64 {
        set.iter().map(|layer| layers.rates()[layer]).sum()
    }

    /// STAIR §2's steps: the layers of each rate from 0 on, one unit added after the other.
    fn added_one_by_one(units: u64) -> Vec<LayerSet> {
        let mut set = LayerSet::default();
        (0..=units)
            .map(|_| {
                let before = set;
                let lowest = (0..LayerSet::CAPACITY).find(|layer| !set.contains(*layer)).expect("a layer is free");
                set.insert(lowest);
                (lowest.saturating_sub(2)..lowest).for_each(|layer| set.remove(layer));
                before
            })
            .collect()
    }

    #[test]
    fn table1_fglm_s_rates_are_the_paper_s_and_every_rate_has_one_set() {
        let layers = Fibonacci::up_to(UNITS);
        assert_eq!(layers.rates()[..9], [1, 2, 4, 7, 12, 20, 33, 54, 88]);
        for (units, set) in (0..=UNITS).zip(added_one_by_one(UNITS)) {
            assert_eq!((layers.set(units), rate(&layers, set)), (set, units));
        }
    }

    #[test]
    fn table1_fglm_adds_with_one_join_and_at_most_two_leaves() {
        let layers = Fibonacci::up_to(UNITS);
        let mut leaves = [0; 3];
        for units in 0..UNITS {
            let (before, after) = (layers.set(units), layers.set(units + 1));
            assert_eq!(after.without(before).len(), 1, "at {units}");
            leaves[before.without(after).len()] += 1;
        }
        assert!(leaves.iter().all(|count| *count > 0), "none, one and two leaves all occur: {leaves:?}");
    }

    #[test]
    fn table1_fglm_halves_with_one_leave_and_keeps_38_to_62_per_cent_of_a_large_rate() {
        let layers = Fibonacci::up_to(UNITS);
        for units in 1..=UNITS {
            let (before, after) = (layers.set(units), layers.set(layers.halve(units)));
            assert_eq!((before.without(after).len(), after.without(before).len()), (1, 0));
        }
        let kept = |units: u64| layers.halve(units) as f64 / units as f64;
        assert!((1_000..=UNITS).all(|units| (0.375..=0.619).contains(&kept(units))));
        assert_eq!((2..200).map(kept).fold(1.0, f64::min), 0.0, "2 units are one layer");
        assert_eq!((8..200).map(kept).fold(1.0, f64::min), 0.125, "8 units are layers of 1 and 7");
    }

    /// The largest dilation that any receivers can cause whose rates reach up to `units`.
    fn worst_dilation(layers: &Fibonacci, units: u64) -> f64 {
        let sets: Vec<LayerSet> = (1..=units).map(|units| layers.set(units)).collect();
        dilation::of_sets(layers.rates(), &sets).expect("somebody receives")
    }

    #[test]
    fn table1_fglm_s_dilation_is_at_most_1_75_and_below_1_623_for_large_rates() {
        let layers = Fibonacci::up_to(UNITS);
        let mut worst: f64 = 0.0;
        for units in 1..1_000 {
            let dilation = worst_dilation(&layers, units);
            assert!(dilation <= 1.75, "{dilation} at {units}");
            worst = worst.max(dilation);
        }
        assert_eq!((worst_dilation(&layers, 4), worst_dilation(&layers, 8), worst), (1.75, 1.75, 1.75));
        let (mut worst_of_large, mut from): (f64, u64) = (0.0, 1);
        for units in (1..=UNITS).step_by(1) {
            let top = layers.top(units).expect("above zero");
            let dilation = layers.sums[top] as f64 / units as f64;
            if units < 200 {
                assert_eq!(dilation, worst_dilation(&layers, units), "all layers up to the highest are somebody's");
            }
            if dilation > 1.623 {
                from = units + 1;
            }
            if units >= 1_000 {
                worst_of_large = worst_of_large.max(dilation);
            }
        }
        assert!((0.9 * 1.623..=1.623).contains(&worst_of_large), "{worst_of_large}");
        assert!((600..=1_000).contains(&from), "above 1.623 up to {from}");
    }

    #[test]
    fn fig02_fglm_s_dilation_has_spikes_where_a_new_layer_comes_in() {
        let layers = Fibonacci::up_to(UNITS);
        let at: Vec<f64> = (1..=140).map(|units| worst_dilation(&layers, units)).collect();
        let spikes: Vec<usize> = (1..at.len()).filter(|i| at[*i] > at[i - 1]).map(|i| i + 1).collect();
        assert_eq!(spikes, [2, 4, 8, 15, 27, 47, 80, 134]);
        let mean = at[9..100].iter().sum::<f64>() / 91.0;
        assert!((mean - 1.33).abs() < 0.01, "{mean}");
    }
}
