//! How the delay varies from packet to packet. Not the time that packets wait in the queue.

use core::time::Duration;

use weir_units::{Random, math};

/// A variation of the propagation delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variation {
    /// How much is added to the delay or taken from it; the delay never falls below zero.
    pub shape: Shape,
    /// Whether a packet may overtake another. If not, one that would overtake arrives together with the one before it.
    pub reorder: bool,
}

/// A distribution about zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Uniform between minus and plus this.
    Uniform(Duration),
    /// Normal with this standard deviation, cut off at three of them.
    Normal(Duration),
}

impl Variation {
    /// A delay about `delay`, in nanoseconds.
    pub(crate) fn draw(&self, delay: u64, random: &mut Random) -> u64 {
        let deviation = match self.shape {
            Shape::Uniform(half) => half.as_nanos() as f64 * random.uniform(-1.0, 1.0),
            Shape::Normal(sd) => sd.as_nanos() as f64 * normal(random),
        };
        // Whole nanoseconds; below zero the conversion gives zero.
        (delay as f64 + math::round(deviation)) as u64
    }

    /// The shortest delay that `draw` gives.
    pub(crate) fn least(&self, delay: u64) -> u64 {
        let reach = match self.shape {
            Shape::Uniform(half) => half.as_nanos(),
            Shape::Normal(sd) => 3 * sd.as_nanos(),
        };
        delay.saturating_sub(u64::try_from(reach).unwrap_or(u64::MAX))
    }
}

/// A number with the standard normal distribution, cut off at ±3 (Marsaglia's polar method).
fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            let value = x * math::sqrt(-2.0 * math::ln(square) / square);
            if value.abs() <= 3.0 {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_the_spread_that_was_asked_for_and_stay_within_their_reach() {
        // The standard deviation of a uniform distribution is half its width by √3; of a normal one cut off at three, 0.9866.
        for (shape, sd) in [
            (Shape::Uniform(Duration::from_millis(3)), 3e6 / 3f64.sqrt()),
            (Shape::Normal(Duration::from_millis(2)), 2e6 * 0.9866),
        ] {
            let variation = Variation { shape, reorder: true };
            let mut random = Random::new(1, "variation");
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..100_000 {
                let delay = variation.draw(20_000_000, &mut random);
                assert!(delay >= variation.least(20_000_000));
                sum += delay as f64 - 20e6;
                squares += (delay as f64 - 20e6).powi(2);
            }
            assert!((sum / 1e5).abs() < 0.02 * sd, "{shape:?}");
            assert!(((squares / 1e5).sqrt() / sd - 1.0).abs() < 0.01, "{shape:?}");
        }
    }

    #[test]
    fn a_delay_never_falls_below_zero() {
        let variation = Variation { shape: Shape::Uniform(Duration::from_millis(10)), reorder: true };
        let mut random = Random::new(1, "variation");
        assert!((0..100).any(|_| variation.draw(1_000, &mut random) == 0));
    }
}
