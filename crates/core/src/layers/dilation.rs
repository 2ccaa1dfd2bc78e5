//! What a link carries more than its fastest receiver takes (STAIR Definition 2).

use super::set::LayerSet;

/// Dilation of a link: what it carries for a session, as a multiple of what the fastest of the receivers behind it takes.
/// `None` if none takes anything.
///
/// Example: one receiver takes layers of rate 1 and 2, another one of rate 4; the link carries 7, the dilation is 1.75.
pub fn of(carried: f64, taken: impl IntoIterator<Item = f64>) -> Option<f64> {
    let most = taken.into_iter().fold(0.0, f64::max);
    (most > 0.0).then(|| carried / most)
}

/// Dilation of a link behind which receivers have these sets of layers. `rates` are the layers' rates, in any unit.
pub fn of_sets(rates: &[u64], sets: &[LayerSet]) -> Option<f64> {
    let rate = |set: LayerSet| set.iter().filter_map(|layer| rates.get(layer)).sum::<u64>() as f64;
    let carried = sets.iter().copied().fold(LayerSet::default(), LayerSet::union);
    of(rate(carried), sets.iter().map(|set| rate(*set)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn table1_non_cumulative_doubling_dilates_by_less_than_two_and_comes_close() {
        let rates: Vec<u64> = (0..10).map(|layer| 1 << layer).collect();
        let binary = |units: u64| (0..10).filter(|layer| units >> layer & 1 == 1).collect::<LayerSet>();
        let mut worst: f64 = 0.0;
        for most in 1..1024 {
            let sets: Vec<LayerSet> = (1..=most).map(binary).collect();
            let dilation = of_sets(&rates, &sets).expect("somebody receives");
            assert!(dilation < 2.0);
            worst = worst.max(dilation);
        }
        assert!(worst >= 0.9 * 2.0, "{worst}");
    }

    proptest! {
        #[test]
        fn table1_cumulative_layers_never_dilate(levels in proptest::collection::vec(1usize..20, 1..30)) {
            let rates: Vec<u64> = (0..20).map(|layer: u32| 1 << layer.saturating_sub(1)).collect();
            let sets: Vec<LayerSet> = levels.iter().map(|level| (0..*level).collect()).collect();
            prop_assert_eq!(of_sets(&rates, &sets), Some(1.0));
        }

        #[test]
        fn a_link_carries_at_least_what_its_fastest_receiver_takes_and_at_most_the_sum(
            sets in proptest::collection::vec(proptest::collection::vec(0usize..12, 0..8), 1..10)
        ) {
            let rates: Vec<u64> = (1..=12).collect();
            let sets: Vec<LayerSet> = sets.into_iter().map(LayerSet::from_iter).collect();
            match of_sets(&rates, &sets) {
                Some(dilation) => prop_assert!((1.0..=sets.len() as f64).contains(&dilation)),
                None => prop_assert!(sets.iter().all(LayerSet::is_empty)),
            }
        }
    }
}
