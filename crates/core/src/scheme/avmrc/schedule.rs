//! How many packets make a slot.

use super::config::Config;
use crate::definition::Session;

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

#[cfg(test)]
mod tests {
    use super::super::config::Model;
    use super::*;
    use crate::definition::Habitat;
    use crate::layers::Ladder;
    use weir_units::{Bytes, Rate};
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
}
