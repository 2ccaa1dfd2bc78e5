//! The gap between packets and how it changes (§III, Eq. 1–3).

use core::time::Duration;

use weir_units::{Bytes, Rate};

use super::config::{Config, Growth};

/// The inter-packet gap IPG, seconds.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    packet_size: Bytes,
    decrease: f64,
    gap: f64,
    shortest: f64,
    longest: f64,
    /// How it grows; after [`Growth::Doubling`] comes [`Growth::Additive`].
    growth: Growth,
    /// Doubling ends at this gap.
    doubles_to: f64,
}

impl Pace {
    pub(super) fn new(packet_size: Bytes, config: &Config) -> Pace {
        let gap = |rate: Rate| 1.0 / rate.packets_per_sec(packet_size);
        let (shortest, longest) = (gap(config.max_rate), gap(config.floor(packet_size)));
        Pace {
            packet_size,
            decrease: config.decrease,
            gap: config.timing.initial.as_secs_f64().clamp(shortest, longest),
            shortest,
            longest,
            growth: config.start_up,
            doubles_to: shortest,
        }
    }

    /// The gap, seconds.
    pub(super) fn gap(&self) -> f64 {
        self.gap
    }

    /// What the transmission timer waits: the gap times `feedback` (Eq. 7), not below the ceiling's gap.
    pub(super) fn interval(&self, feedback: f64) -> Duration {
        Duration::from_secs_f64((self.gap * feedback).clamp(self.shortest, self.longest))
    }

    /// The rate S (Eq. 1).
    pub(super) fn rate(&self) -> Rate {
        self.packet_size.per(Duration::from_secs_f64(self.gap))
    }

    /// How the next step will be.
    pub(super) fn growth(&self) -> Growth {
        self.growth
    }

    /// So many packets in `round_trip` seconds.
    pub(super) fn begin(&mut self, round_trip: f64, packets: u64) {
        self.set(round_trip / packets as f64);
    }

    /// A step of `round_trip` seconds without congestion is over: one packet more in each round trip (Eq. 1 with C = SRTT,
    /// Eq. 5), or twice as many.
    pub(super) fn increase(&mut self, round_trip: f64) {
        self.set(self.increased(round_trip));
        if self.growth == Growth::Doubling && self.gap <= self.doubles_to {
            self.growth = Growth::Additive;
        }
    }

    /// What the gap would be after that, seconds.
    pub(super) fn increased(&self, round_trip: f64) -> f64 {
        match self.growth {
            Growth::Additive => self.gap * round_trip / (self.gap + round_trip),
            Growth::Doubling => (self.gap / 2.0).max(self.doubles_to),
        }
    }

    /// Congestion (Eq. 3), of a rate of which at most `used` packets a second can have been used, where that is known.
    pub(super) fn back_off(&mut self, used: Option<f64>) {
        self.growth = Growth::Additive;
        let gap = used.map_or(self.gap, |used| self.gap.max(1.0 / used));
        self.set(gap / self.decrease);
    }

    /// Begins again with this gap, and doubles from step to step until the gap is `doubles_to`; both in seconds.
    pub(super) fn restart(&mut self, gap: f64, doubles_to: f64) {
        self.doubles_to = doubles_to.max(self.shortest);
        self.growth = Growth::Doubling;
        self.set(gap.max(doubles_to));
    }

    /// The lowest rate.
    pub(super) fn rest(&mut self) {
        self.set(self.longest);
    }

    fn set(&mut self, gap: f64) {
        self.gap = gap.clamp(self.shortest, self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::definition::Habitat;

    fn pace() -> Pace {
        let size = Bytes::new(100);
        let config = Config { start_up: Growth::Additive, ..Config::new(Habitat::Lab) };
        Pace::new(size, &config)
    }

    #[test]
    fn a_step_adds_one_packet_a_round_trip() {
        let mut pace = pace();
        pace.begin(0.1, 1);
        for packets in 2..50 {
            pace.increase(0.1);
            assert!((0.1 / pace.gap() - f64::from(packets)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_back_off_halves_the_rate_and_ends_doubling() {
        let size = Bytes::new(100);
        let mut pace = Pace::new(size, &Config::new(Habitat::Lab));
        pace.begin(0.1, 1);
        pace.increase(0.1);
        pace.increase(0.1);
        assert_eq!(pace.rate(), Rate::from_bps(32_000));
        pace.back_off(None);
        assert_eq!(pace.rate(), Rate::from_bps(16_000));
        pace.increase(0.1);
        assert_eq!(pace.rate(), Rate::from_bps(24_000));
    }

    #[test]
    fn a_restart_doubles_up_to_where_it_may_and_then_adds() {
        let mut pace = pace();
        pace.restart(0.16, 0.02);
        let packets = core::array::from_fn::<_, 6, _>(|_| {
            pace.increase(0.16);
            0.16 / pace.gap()
        });
        for (got, wanted) in packets.into_iter().zip([2.0, 4.0, 8.0, 9.0, 10.0, 11.0]) {
            assert!((got - wanted).abs() < 1e-9, "{packets:?}");
        }
    }

    proptest! {
        /// Slope = packet size / (C · SRTT), and with C = SRTT over SRTT² (Eq. 4, 5): steps of height packet size / SRTT.
        #[test]
        fn the_step_height_is_a_packet_in_a_round_trip(gap in 1e-4f64..1.0, round_trip in 1e-3f64..1.0) {
            let mut pace = pace();
            pace.begin(gap, 1);
            let before = 1.0 / pace.gap();
            pace.increase(round_trip);
            prop_assert!((1.0 / pace.gap() - before - 1.0 / round_trip).abs() < 1e-6 / round_trip);
        }

        #[test]
        fn the_rate_stays_between_floor_and_ceiling(moves in proptest::collection::vec(0u8..5, 0..200)) {
            let size = Bytes::new(1000);
            let (low, high) = (Rate::from_kbps(16), Rate::from_mbps(2));
            let config = Config { min_rate: Some(low), max_rate: high, ..Config::new(Habitat::Sockets) };
            let mut pace = Pace::new(size, &config);
            for one in moves {
                match one {
                    0 => pace.back_off(None),
                    4 => pace.back_off(Some(10.0)),
                    1 => pace.restart(0.3, 1e-6),
                    2 => pace.rest(),
                    _ => pace.increase(0.02),
                }
                prop_assert!((low.bps() - 1..=high.bps() + 1).contains(&pace.rate().bps()), "{:?}", pace);
            }
        }
    }
}
