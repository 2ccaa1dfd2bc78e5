//! When which channel's packets are due, and how many make a slot.

use core::time::Duration;

use weir_units::{Bytes, Rate};

use super::config::Config;
use crate::definition::Session;

/// What a channel has earned and not yet sent, exactly: in bits times nanoseconds per second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Credit(u128);

/// Packets due at one scheduling instant: `full` ones, and one of `tail` bytes unless that is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Due {
    pub(super) full: u64,
    pub(super) tail: Bytes,
}

impl Credit {
    /// What channel number `channel` starts with where only full packets are sent: a part of one, different for each, so
    /// that the channels' packets do not all fall due together (decision 5). Multiples of the golden ratio, less their
    /// whole part, lie as far apart as any.
    pub(super) fn staggered(channel: usize, size: Bytes) -> Credit {
        let thousandths = (channel as u128 * 618) % 1000;
        Credit(per_bytes(size.count()) * thousandths / 1000)
    }

    /// `rate` runs on for `span`.
    pub(super) fn earn(&mut self, rate: Rate, span: Duration) {
        self.0 += u128::from(rate.bps()) * span.as_nanos();
    }

    /// Spends what packets of `size` can be paid with; `tail` says whether a smaller one may take the rest.
    pub(super) fn spend(&mut self, size: Bytes, tail: bool) -> Due {
        let full = self.0 / per_bytes(size.count().max(1));
        self.0 -= full * per_bytes(size.count());
        let rest = self.0 / per_bytes(1);
        let rest = if tail && rest >= SMALLEST_TAIL_BYTES { rest } else { 0 };
        self.0 -= rest * per_bytes(1);
        Due { full: full as u64, tail: Bytes::new(rest as u64) }
    }
}

/// The packets of a slot at `level`, on average (the bounds of β, AVMRC §3.1).
///
/// With small packets a period's last packet counts as one: the paper's nine channels, 100 ms and 1000-byte packets give
/// 4 at level 1, 41 at level 7 and 88 at level 9.
pub(super) fn packets_per_slot(session: &Session, config: &Config, level: usize) -> f64 {
    let periods = config.tau.as_secs_f64() / config.period.as_secs_f64();
    let in_period = |channel: usize| {
        let bytes = session.ladder.channel_rate(channel).bps() as f64 * config.period.as_secs_f64() / 8.0;
        let packets = bytes / session.packet_size.count() as f64;
        if config.small_packets { weir_units::math::ceil(packets) } else { packets }
    };
    (0..level).map(in_period).sum::<f64>() * periods
}

const fn per_bytes(bytes: u64) -> u128 {
    bytes as u128 * 8_000_000_000
}

/// A packet of this many bytes holds all headers and some payload; less waits for the next period.
const SMALLEST_TAIL_BYTES: u128 = 96;

#[cfg(test)]
mod tests {
    use super::super::config::Model;
    use super::*;
    use crate::definition::Habitat;
    use crate::layers::Ladder;
    use weir_wire::CciForm;

    fn session(habitat: Habitat, size: u64) -> Session {
        Session {
            ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("valid"),
            packet_size: Bytes::new(size),
            form: CciForm::Short,
            habitat,
        }
    }

    #[test]
    fn the_paper_s_channels_make_4_41_and_88_packets_a_slot() {
        let session = session(Habitat::Lab, 1000);
        let packets = |level| packets_per_slot(&session, &Config::default(), level);
        assert_eq!([packets(1), packets(7), packets(9)], [4.0, 41.0, 88.0]);
    }

    #[test]
    fn full_packets_alone_make_fractions_of_a_packet() {
        let session = session(Habitat::Sockets, 1600);
        let config = Config::new(Model::AdaptiveVegas, Habitat::Sockets);
        assert!((packets_per_slot(&session, &config, 1) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn credit_is_spent_to_the_last_bit_over_time() {
        let mut credit = Credit::default();
        let (mut full, mut tail) = (0, 0);
        for _ in 0..3000 {
            credit.earn(Rate::from_bps(27_337_501), Duration::from_micros(1_001));
            let due = credit.spend(Bytes::new(1000), true);
            full += due.full;
            tail += due.tail.count();
        }
        let earned = 27_337_501u64 * 3_003 / 8_000;
        assert!((earned - SMALLEST_TAIL_BYTES as u64..=earned).contains(&(full * 1000 + tail)));
    }

    #[test]
    fn a_rest_too_small_for_a_packet_waits() {
        let mut credit = Credit::default();
        credit.earn(Rate::from_bps(8 * 1050), Duration::from_secs(1));
        assert_eq!(credit.spend(Bytes::new(1000), true), Due { full: 1, tail: Bytes::ZERO });
        credit.earn(Rate::from_bps(8 * 50), Duration::from_secs(1));
        assert_eq!(credit.spend(Bytes::new(1000), true), Due { full: 0, tail: Bytes::new(100) });
    }
}
