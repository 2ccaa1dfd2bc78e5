//! How long, or how much: the distributions of on and off times, think times and sizes.

use std::time::Duration;

use weir_units::Random;
use weir_units::math::pow;

/// A distribution over what is not negative, by its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Always this.
    Fixed(f64),
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Pareto: heavy tails. Below a shape of 2 its variance is infinite.
    Pareto {
        /// Its mean.
        mean: f64,
        /// Its shape, above 1, or the mean would be infinite.
        shape: f64,
    },
}

impl Distribution {
    /// Draws one.
    pub fn draw(&self, random: &mut Random) -> f64 {
        match *self {
            Distribution::Fixed(value) => value,
            Distribution::Exponential { mean } => random.exponential(mean),
            // Scale = mean · (shape − 1) / shape; the unit draw is below 1, so the power is finite.
            Distribution::Pareto { mean, shape } => {
                mean * (shape - 1.0) / shape / pow(1.0 - random.unit(), 1.0 / shape)
            }
        }
    }

    /// Draws a span from a distribution over seconds.
    pub(super) fn draw_span(&self, random: &mut Random) -> Duration {
        Duration::from_nanos((self.draw(random) * 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pareto_of_web_objects_has_its_least_size_and_its_tail() {
        let (sizes, mut random) = (Distribution::Pareto { mean: 48_000.0, shape: 1.2 }, Random::new(1, "sizes"));
        let drawn: Vec<f64> = (0..100_000).map(|_| sizes.draw(&mut random)).collect();
        assert!(drawn.iter().all(|size| *size >= 8_000.0 - 1e-6));
        // P(B > b) = (8000 / b)^1.2: 0.0631 at ten times the least size.
        let tail = drawn.iter().filter(|size| **size > 80_000.0).count() as f64 / drawn.len() as f64;
        assert!((tail - 0.0631).abs() < 0.003, "{tail}");
    }

    #[test]
    fn an_exponential_has_its_mean() {
        let (spans, mut random) = (Distribution::Exponential { mean: 0.5 }, Random::new(1, "spans"));
        let mean = (0..100_000).map(|_| spans.draw(&mut random)).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
