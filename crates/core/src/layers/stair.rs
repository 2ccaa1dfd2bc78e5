//! Stair layers: their rate climbs a packet each emulated round-trip time, and starts again from one (STAIR §3.2).

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Rate};

/// A stair layer: in its k-th step, one emulated round-trip time long, it sends k packets evenly spaced; after the last
/// step, whose rate is that of the lowest static layer, it *recycles* to the first.
///
/// The stair of height h and top rate R has the round-trip time t = 8 S h / R and the period p = h t = (R t / 8 S) t
/// (Eq. 2). All times are kept as fractions, so that a schedule never drifts.
///
/// Example: R = 1 Mbit/s, packets of 1000 bytes and a height of 16 make t = 128 ms and p = 2.048 s (Fig. 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stair {
    height: u64,
    top: Rate,
    packet_size: Bytes,
}

/// A packet of a stair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StairPacket {
    /// Number of the period, from 0.
    pub period: u64,
    /// Step in the period, from 1.
    pub step: u64,
    /// Number of the packet in its step, from 0.
    pub packet: u64,
}

impl StairPacket {
    /// The first packet of a period: it tells that the stair has recycled.
    pub const fn first_of(period: u64) -> StairPacket {
        StairPacket { period, step: 1, packet: 0 }
    }

    /// Whether it is the first packet of its period.
    pub const fn is_recycle(self) -> bool {
        self.step == 1
    }
}

impl Stair {
    /// The shortest round-trip time that stairs of a top rate can emulate in `height` steps: t ≥ 8 S h / R (§3.2).
    ///
    /// Example: 8 steps of packets of 512 bytes up to 1 Mbit/s need 32.768 ms.
    pub fn least_rtt(top: Rate, packet_size: Bytes, height: u64) -> Duration {
        (packet_size / top).saturating_mul(height.min(u64::from(u32::MAX)) as u32)
    }

    /// `count` stairs of at least `least_height` steps, each with twice the round-trip time of the one before: 2^i, 2^(i+1)
    /// … ms (§4.2).
    ///
    /// Where a packet's time does not divide 2^i ms, t is what is nearest to it with a whole number of steps: the step from
    /// a stair's top to the next static layer stays exact, and so do the instants at which several stairs recycle together.
    pub fn family(top: Rate, packet_size: Bytes, least_height: u64, count: usize) -> Vec<Stair> {
        let packet_nanos = (packet_size / top).as_nanos().max(1);
        // A microsecond is forgiven, or rounded packet times would keep 32 ms from holding four packets of 8 ms.
        let least = (packet_nanos * u128::from(least_height.max(1))).saturating_sub(1_000);
        let base = (0..=MOST_MILLIS_LOG2).map(|i| 1_000_000u128 << i).find(|rtt| *rtt >= least);
        let base = base.unwrap_or(1_000_000 << MOST_MILLIS_LOG2);
        let height = ((base + packet_nanos / 2) / packet_nanos).clamp(1, u128::from(MOST_STEPS)) as u64;
        let heights = (0..count.min(MOST_STAIRS)).map(|i| height << i).take_while(|height| *height <= MOST_STEPS);
        heights.map(|height| Stair { height, top, packet_size }).collect()
    }

    /// Steps of a period.
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// The round-trip time that it emulates, t.
    pub fn rtt(&self) -> Duration {
        self.packet_times(u128::from(self.height), 1)
    }

    /// The stair period, p.
    pub fn period(&self) -> Duration {
        self.packet_times(u128::from(self.height).pow(2), 1)
    }

    /// The rate of its last step, at which the lowest static layer takes over.
    pub const fn top(&self) -> Rate {
        self.top
    }

    /// When a packet is due, since the first one of all.
    pub fn due(&self, packet: StairPacket) -> Duration {
        let height = u128::from(self.height);
        let steps = u128::from(packet.period) * height + u128::from(packet.step.saturating_sub(1));
        let step = u128::from(packet.step.max(1));
        self.packet_times(steps * height * step + u128::from(packet.packet) * height, step)
    }

    /// The packet after this one.
    pub const fn after(&self, StairPacket { period, step, packet }: StairPacket) -> StairPacket {
        if packet + 1 < step {
            StairPacket { period, step, packet: packet + 1 }
        } else if step < self.height {
            StairPacket { period, step: step + 1, packet: 0 }
        } else {
            StairPacket::first_of(period + 1)
        }
    }

    /// `times` / `divisor` times as long as a packet takes at the top rate.
    fn packet_times(&self, times: u128, divisor: u128) -> Duration {
        let bits = u128::from(self.packet_size.count()) * 8 * NANOS_PER_SEC;
        let nanos = times.saturating_mul(bits) / (u128::from(self.top.bps().max(1)) * divisor);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

const NANOS_PER_SEC: u128 = 1_000_000_000;
/// The base stair emulates 2^13 ms at most: a longer round trip is no terrestrial path.
const MOST_MILLIS_LOG2: u32 = 13;
/// Stairs of a session at most: more than double the longest round trip every time.
const MOST_STAIRS: usize = 16;
/// Steps of a stair at most.
const MOST_STEPS: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packets(stair: &Stair) -> impl Iterator<Item = (StairPacket, Duration)> {
        core::iter::successors(Some(StairPacket::first_of(0)), |packet| Some(stair.after(*packet)))
            .map(|packet| (packet, stair.due(packet)))
    }

    fn paper() -> Stair {
        let family = Stair::family(Rate::from_mbps(1), Bytes::new(1000), 4, 4);
        *family.iter().find(|stair| stair.rtt() == Duration::from_millis(128)).expect("it is one of 32 ms … 256 ms")
    }

    #[test]
    fn fig03_sl_128_climbs_from_1_to_16_packets_per_128_ms_and_recycles_after_2048_ms() {
        let stair = paper();
        assert_eq!((stair.height(), stair.period()), (16, Duration::from_millis(2048)));
        let mut counts = [0; 33];
        for (_, due) in packets(&stair).take_while(|(_, due)| *due < Duration::from_millis(128 * 33)) {
            counts[(due.as_millis() / 128) as usize] += 1;
        }
        let expected: Vec<u64> = (0..33).map(|step| step % 16 + 1).collect();
        assert_eq!(counts[..], expected[..]);
    }

    #[test]
    fn fig03_the_period_is_that_of_equation_2() {
        for (rate, size, height) in [(1_000_000, 1000, 16), (512_000, 512, 4), (10_000_000, 1250, 7)] {
            let stair = Stair { height, top: Rate::from_bps(rate), packet_size: Bytes::new(size) };
            let t = stair.rtt().as_secs_f64();
            let p = rate as f64 * t / (8.0 * size as f64) * t;
            assert!((stair.period().as_secs_f64() - p).abs() < 1e-8);
        }
    }

    #[test]
    fn the_shortest_round_trip_time_is_the_paper_s_example() {
        let least = Stair::least_rtt(Rate::from_mbps(1), Bytes::new(512), 8);
        assert_eq!(least, Duration::from_micros(32_768));
        let family = Stair::family(Rate::from_mbps(1), Bytes::new(512), 8, 3);
        assert!(family[0].rtt() >= least && family[0].height() >= 8);
    }

    #[test]
    fn the_paper_s_experiments_have_stairs_of_32_to_256_ms() {
        let family = Stair::family(Rate::from_kbps(512), Bytes::new(512), 4, 4);
        let rtts: Vec<u128> = family.iter().map(|stair| stair.rtt().as_millis()).collect();
        assert_eq!(rtts, [32, 64, 128, 256]);
        assert_eq!(family.iter().map(Stair::height).collect::<Vec<_>>(), [4, 8, 16, 32]);
    }

    #[test]
    fn a_schedule_does_not_drift_in_a_year() {
        for stair in Stair::family(Rate::from_bps(511_993), Bytes::new(1428), 3, 4) {
            let height = stair.height();
            let period = 4_000_000_000 / height.pow(2);
            let exact = u128::from(period * height.pow(2)) * 1428 * 8 * 1_000_000_000 / 511_993;
            assert_eq!(stair.due(StairPacket::first_of(period)).as_nanos(), exact);
        }
    }

    proptest! {
        #[test]
        fn slower_stairs_recycle_whenever_it_is_a_fourth_period_of_the_faster_one(
            kbps in 64u64..20_000, size in 100u64..1500, height in 1u64..20, fourth in 0u64..1_000_000,
        ) {
            let family = Stair::family(Rate::from_kbps(kbps), Bytes::new(size), height, 4);
            for pair in family.windows(2) {
                let together = pair[0].due(StairPacket::first_of(4 * fourth));
                prop_assert_eq!(together, pair[1].due(StairPacket::first_of(fourth)));
                prop_assert_eq!(pair[1].height(), 2 * pair[0].height());
            }
            prop_assert!(family[0].height() >= height);
        }

        #[test]
        fn packets_are_due_in_order_and_a_step_has_one_more_than_the_step_before(
            kbps in 64u64..20_000, size in 100u64..1500, height in 1u64..12,
        ) {
            let stair = Stair { height, top: Rate::from_kbps(kbps), packet_size: Bytes::new(size) };
            let all: Vec<_> = packets(&stair).take(3 * (height * (height + 1) / 2) as usize).collect();
            prop_assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].1));
            for step in 1..=height {
                let count = all.iter().filter(|(packet, _)| packet.step == step).count() as u64;
                prop_assert_eq!(count, 3 * step);
            }
            prop_assert_eq!(all.iter().filter(|(packet, _)| packet.is_recycle()).count(), 3);
        }
    }
}
