//! The least constant rates that carry a stream's layers within a delay.

use std::time::Duration;

use weir_units::Rate;

/// A picture as its sender has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it may be sent, since any instant. Times do not go back from one sample to the next; one that does counts as of the
    /// time before it.
    pub at: Duration,
    /// Its layer.
    pub layer: u8,
    /// Its bytes.
    pub bytes: usize,
}

/// How pictures fill packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// Bytes of a picture in one packet, at least 1.
    pub payload_bytes: usize,
    /// Bytes of a packet besides these, on the path: all headers. Packets are padded to full size.
    pub overhead_bytes: usize,
}

impl Packing {
    /// The bits on the path of the packets of a picture.
    fn bits(self, bytes: usize) -> u128 {
        let packets = bytes.div_ceil(self.payload_bytes.max(1)) as u128;
        packets * (self.payload_bytes.max(1) as u128 + self.overhead_bytes as u128) * 8
    }
}

/// The least constant rate of each of `layers` layers such that a leaky bucket at the sum of layers 0 to k delays no picture of
/// these layers by more than `delay`, for every k. The delay is from [`Sample::at`] to the end of its last packet.
///
/// Whole bits a second, rounded up. A delay of zero has no such rate and counts as one nanosecond; rates are saturated at what
/// [`Rate`] holds.
///
/// Example: one layer, pictures of one packet of 1250 bytes in all every 100 ms, a delay of 100 ms: 100 kb/s.
pub fn least_rates(samples: &[Sample], layers: u8, packing: Packing, delay: Duration) -> Vec<Rate> {
    let mut below = 0;
    let rates = (0..layers).map(|level| {
        let load: Vec<_> = load(samples, level, packing).collect();
        let sum = least_rate(&load, delay.as_nanos().max(1)).max(below);
        Rate::from_bps(sum - std::mem::replace(&mut below, sum))
    });
    rates.collect()
}

/// The least constant rate of each of `layers` layers that goes over a channel of its own, so that no picture is delayed by more than
/// `delay`: what the channels below leave is of no use to it. As [`least_rates`] otherwise.
///
/// Example: the key pictures of a base layer need 1 Mb/s for a moment, and the layer above it 100 kb/s all the time. Here these are the two
/// rates; [`least_rates`] gives 1 Mb/s and 0.
pub fn least_channel_rates(samples: &[Sample], layers: u8, packing: Packing, delay: Duration) -> Vec<Rate> {
    let alone = |layer| {
        let own: Vec<Sample> = samples.iter().filter(|sample| sample.layer == layer).copied().collect();
        let load: Vec<_> = load(&own, layer, packing).collect();
        Rate::from_bps(least_rate(&load, delay.as_nanos().max(1)))
    };
    (0..layers).map(alone).collect()
}

/// The times, in nanoseconds, and bits of the pictures of layers up to `level`.
fn load(samples: &[Sample], level: u8, packing: Packing) -> impl Iterator<Item = (u128, u128)> {
    let mut latest = 0;
    samples.iter().filter(move |sample| sample.layer <= level).map(move |sample| {
        latest = sample.at.as_nanos().max(latest);
        (latest, packing.bits(sample.bytes))
    })
}

/// By bisection: whether a rate is enough is one pass.
fn least_rate(load: &[(u128, u128)], delay: u128) -> u64 {
    let (mut too_low, mut enough) = (0, u64::MAX);
    if is_enough(load, delay, 0) {
        return 0;
    }
    while enough - too_low > 1 {
        let middle = too_low + (enough - too_low) / 2;
        if is_enough(load, delay, middle) {
            enough = middle;
        } else {
            too_low = middle;
        }
    }
    enough
}

/// Whether the bucket never holds more than it empties within the delay. What it holds is in bits times 10^9.
fn is_enough(load: &[(u128, u128)], delay: u128, bps: u64) -> bool {
    let (mut held, mut last) = (0_u128, 0);
    load.iter().all(|(at, bits)| {
        let drained = u128::from(bps).saturating_mul(at - last);
        held = held.saturating_sub(drained).saturating_add(bits.saturating_mul(1_000_000_000));
        last = *at;
        held <= u128::from(bps).saturating_mul(delay)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKING: Packing = Packing { payload_bytes: 1200, overhead_bytes: 50 };

    fn every_100_ms(bytes: &[(u8, usize)]) -> Vec<Sample> {
        let times = (0..).map(|n| Duration::from_millis(100 * n));
        times.zip(bytes).map(|(at, (layer, bytes))| Sample { at, layer: *layer, bytes: *bytes }).collect()
    }

    fn rates(samples: &[Sample], layers: u8, delay_ms: u64) -> Vec<u64> {
        least_rates(samples, layers, PACKING, Duration::from_millis(delay_ms)).into_iter().map(Rate::bps).collect()
    }

    #[test]
    fn even_pictures_want_their_mean_rate() {
        assert_eq!(rates(&every_100_ms(&[(0, 1200); 20]), 1, 100), [100_000]);
    }

    #[test]
    fn last_packet_of_a_picture_counts_in_full() {
        assert_eq!(rates(&every_100_ms(&[(0, 1201); 20]), 1, 100), [200_000]);
    }

    #[test]
    fn large_picture_spreads_over_the_delay() {
        let samples = every_100_ms(&[(0, 12_000), (0, 1200), (0, 1200), (0, 1200), (0, 1200)]);
        // Ten packets within 500 ms; then one more each in further 100 ms, of which the last is done 500 ms after it came.
        assert_eq!(rates(&samples, 1, 500), [200_000]);
        // Ten packets within 100 ms.
        assert_eq!(rates(&samples, 1, 100), [1_000_000]);
    }

    #[test]
    fn layers_share_what_the_lower_ones_leave() {
        let samples = every_100_ms(&[(0, 2400), (1, 1200), (0, 2400), (1, 1200), (0, 2400), (1, 1200)]);
        // Alone the base layer wants two packets in 100 ms; the sum never wants more.
        assert_eq!(rates(&samples, 2, 100), [200_000, 0]);
        // With 200 ms, the base layer's mean rate is enough, and both take eight packets from 0 to 600 ms.
        assert_eq!(rates(&samples, 2, 200), [100_000, 33_334]);
    }

    #[test]
    fn channels_share_nothing() {
        let samples = every_100_ms(&[(0, 12_000), (1, 1200), (0, 1200), (1, 1200), (0, 1200), (1, 1200)]);
        assert_eq!(rates(&samples, 2, 100), [1_000_000, 0]);
        let own = least_channel_rates(&samples, 2, PACKING, Duration::from_millis(100));
        assert_eq!(own.into_iter().map(Rate::bps).collect::<Vec<_>>(), [1_000_000, 100_000]);
    }

    #[test]
    fn nothing_to_send_wants_no_rate() {
        assert_eq!(rates(&[], 2, 100), [0, 0]);
    }
}
