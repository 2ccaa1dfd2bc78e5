//! Seeded random streams, one for each component of a run.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A random stream: ChaCha8, so the same seed and name give the same numbers in every version and on every machine.
///
/// Each component takes a stream of its own, named after itself, so that adding a component changes no one else's luck.
#[derive(Debug, Clone)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream called `name` in the run of `seed`.
    pub fn new(seed: u64, name: &str) -> Random {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&fnv1a(name.as_bytes()).to_le_bytes());
        Random(ChaCha8Rng::from_seed(key))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [`low`, `high`).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in `0..bound`. Zero if `bound` is zero.
    ///
    /// The product of the random bits and the bound is taken in 128 bits; its bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * crate::math::ln(1.0 - self.unit())
    }
}

/// FNV-1a of `bytes`: names to stream numbers.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_function_of_seed_and_name() {
        let draw = |seed, name| Random::new(seed, name).bits();
        assert_eq!(draw(1, "link 3"), draw(1, "link 3"));
        assert_ne!(draw(1, "link 3"), draw(1, "link 4"));
        assert_ne!(draw(1, "link 3"), draw(2, "link 3"));
    }

    #[test]
    fn the_algorithm_is_pinned() {
        let mut random = Random::new(7, "golden");
        assert_eq!([random.bits(), random.bits()], GOLDEN);
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut random = Random::new(1, "mean");
        let sum: f64 = (0..100_000).map(|_| random.exponential(0.5)).sum();
        assert!((sum / 100_000.0 - 0.5).abs() < 0.01, "mean {}", sum / 100_000.0);
    }

    const GOLDEN: [u64; 2] = [122_047_032_995_946_418, 13_750_826_320_112_403_612];
}
