//! Exponentially weighted moving averages.

/// An average in which the weight of a sample decays exponentially with its age (AVMRC §2.2, Eq. 4).
///
/// `average = gain·sample + (1 − gain)·average`; the first sample is the first average.
///
/// Example: gain 0.25, samples 10 and 20 give 12.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ewma {
    gain: f64,
    average: Option<f64>,
}

impl Ewma {
    /// An average without samples. `gain` is the weight of the newest sample, 0 to 1.
    pub const fn new(gain: f64) -> Ewma {
        Ewma { gain, average: None }
    }

    /// An average that starts at `average`, as if that had been the first sample.
    pub const fn starting_at(gain: f64, average: f64) -> Ewma {
        Ewma { gain, average: Some(average) }
    }

    /// Takes a sample.
    pub fn update(&mut self, sample: f64) {
        self.average = Some(match self.average {
            None => sample,
            Some(average) => average + self.gain * (sample - average),
        });
    }

    /// The weight of the newest sample.
    pub const fn gain(&self) -> f64 {
        self.gain
    }

    /// The average; `None` before the first sample.
    pub const fn average(&self) -> Option<f64> {
        self.average
    }

    /// Forgets all samples: the next one is the first.
    pub fn forget(&mut self) {
        self.average = None;
    }

    /// Puts the average into [`low`, `high`].
    pub fn clamp(&mut self, low: f64, high: f64) {
        self.average = self.average.map(|average| average.clamp(low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn the_first_sample_is_the_first_average() {
        let mut ewma = Ewma::new(0.25);
        assert_eq!(ewma.average(), None);
        ewma.update(10.0);
        assert_eq!(ewma.average(), Some(10.0));
        ewma.update(20.0);
        assert_eq!(ewma.average(), Some(12.5));
    }

    proptest! {
        #[test]
        fn the_average_is_the_weighted_sum_of_all_samples(
            samples in proptest::collection::vec(-1e6f64..1e6, 1..50), gain in 0.01f64..1.0,
        ) {
            let mut ewma = Ewma::new(gain);
            samples.iter().for_each(|sample| ewma.update(*sample));
            let n = samples.len();
            let weights: Vec<f64> = (0..n)
                .map(|i| weir_units::math::pow(1.0 - gain, (n - 1 - i) as f64) * if i == 0 { 1.0 } else { gain })
                .collect();
            let direct: f64 = samples.iter().zip(&weights).map(|(sample, weight)| sample * weight).sum();
            prop_assert!((ewma.average().expect("there were samples") - direct).abs() < 1e-6 * (1.0 + direct.abs()));
        }
    }
}
