//! How much the receiver's buffers must hold to get over back-offs (SIGCOMM 1999 §2.1, §3, §4), in bits.

use weir_units::math;

/// The layers that play, and the rate that is to carry them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand<'a> {
    /// What each layer plays, the base first, bit/s.
    pub(super) rates: &'a [f64],
    /// RAP's rate before the back-offs, bit/s.
    pub(super) rate: f64,
    /// S: how fast RAP's rate grows, bit/s².
    pub(super) slope: f64,
    /// β: what a back-off leaves of the rate.
    pub(super) decrease: f64,
}

impl Demand<'_> {
    /// What all layers play together, bit/s.
    pub(super) fn total(&self) -> f64 {
        self.rates.iter().sum()
    }

    /// What `layer` must have buffered to survive `back_offs`, whether they come at once or one after the other.
    ///
    /// At once, the rate falls to R·βᵏ, and the deficit is a triangle of height n_a·C − R·βᵏ. One after the other, the first k₁ take
    /// the rate below n_a·C, and each later one comes when it is there again: k − k₁ triangles of height n_a·C·(1 − β) follow. The
    /// larger of the two counts. Example: four layers of 150 kbit/s at 600 kbit/s with S = 100 kbit/s², two back-offs: at once the height
    /// is 450, and the base needs (450² − 300²)/200 = 562.5 kbit; in turn there are two triangles of height 300, and it needs
    /// 2·(300² − 150²)/200 = 675 kbit.
    pub(super) fn of_layer(&self, layer: usize, back_offs: u32) -> f64 {
        let total = self.total();
        let after = |count: u32| self.rate * math::pow(self.decrease, f64::from(count));
        let at_once = self.strip(layer, total - after(back_offs));
        let first = (1..=back_offs).find(|count| after(*count) < total);
        let in_turn = first.map_or(0.0, |first| {
            let again = self.strip(layer, total * (1.0 - self.decrease));
            self.strip(layer, total - after(first)) + f64::from(back_offs - first) * again
        });
        at_once.max(in_turn)
    }

    /// The part of a triangular deficit that `layer` covers, where the base covers what lasts longest (§3, Fig. 5).
    ///
    /// ((H − B)² − (H − B − C)²) / 2S with B what the layers below play, each square of a negative number being 0. Example: H = 300 kbit/s,
    /// C = 150, S = 100 kbit/s²: the base 337.5 kbit, the next layer 112.5, and no other layer anything.
    fn strip(&self, layer: usize, height: f64) -> f64 {
        let below: f64 = self.rates[..layer].iter().sum();
        (square(height - below) - square(height - below - self.rates[layer])) / (2.0 * self.slope)
    }

    /// Whether `buffered` bits cover the deficit while the rate grows back from where it is to what the layers play (§2.1).
    ///
    /// They do if n_a·C ≤ R + √(2·S·buffered). Example: four layers of 150 kbit/s, R = 200 kbit/s, S = 100 kbit/s², 600 kbit buffered:
    /// 200 + 346 kbit/s do not carry 600 kbit/s, but 450 kbit/s, so one layer is dropped.
    pub(super) fn is_covered_by(&self, buffered: f64) -> bool {
        self.total() <= self.rate + math::sqrt(2.0 * self.slope * buffered)
    }
}

/// Of a number below 0, 0.
fn square(height: f64) -> f64 {
    let height = height.max(0.0);
    height * height
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATES: [f64; 4] = [150e3; 4];

    fn demand(rates: &[f64], rate: f64) -> Demand<'_> {
        Demand { rates, rate, slope: 100e3, decrease: 0.5 }
    }

    #[test]
    fn one_back_off_is_covered_by_the_lowest_layers() {
        let demand = demand(&RATES, 600e3);
        let needs = [0, 1, 2, 3].map(|layer| demand.of_layer(layer, 1));
        assert_eq!(needs, [337.5e3, 112.5e3, 0.0, 0.0]);
    }

    #[test]
    fn of_two_back_offs_at_once_and_in_turn_the_worse_counts() {
        let demand = demand(&RATES, 600e3);
        // At once: height 450, 562.5, 337.5, 112.5, 0. In turn: twice 337.5, 112.5.
        assert_eq!([0, 1, 2, 3].map(|layer| demand.of_layer(layer, 2)), [675e3, 337.5e3, 112.5e3, 0.0]);
    }

    #[test]
    fn back_offs_that_leave_enough_need_nothing() {
        assert_eq!(demand(&RATES, 1300e3).of_layer(0, 1), 0.0);
        // The second goes to 325, 275 below what is played.
        assert_eq!(demand(&RATES, 1300e3).of_layer(0, 2), (275e3 * 275e3 - 125e3 * 125e3) / 200e3);
    }

    #[test]
    fn six_hundred_kilobits_carry_three_layers_over_a_back_off_to_200_and_not_four() {
        assert!(!demand(&RATES, 200e3).is_covered_by(600e3));
        assert!(demand(&RATES[..3], 200e3).is_covered_by(600e3));
    }

    proptest! {
        #[test]
        fn the_layers_together_cover_the_triangle(
            rates in proptest::collection::vec(1e3f64..1e6, 1..16), part in 0.0f64..1.0, slope in 1e3f64..1e7,
        ) {
            let total: f64 = rates.iter().sum();
            let demand = Demand { rates: &rates, rate: part * total, slope, decrease: 0.5 };
            let needed: f64 = (0..rates.len()).map(|layer| demand.of_layer(layer, 1)).sum();
            let height = total - part * total / 2.0;
            prop_assert!((needed - height * height / (2.0 * slope)).abs() <= 1e-9 * needed);
        }
    }
}
