//! The channels of a session: which static layers and which stairs there are, their numbers and rates.

use alloc::string::ToString;
use alloc::vec::Vec;

use weir_units::{Bytes, Rate};

use super::config::Config;
use crate::definition::Session;
use crate::error::ConfigError;
use crate::layers::{Hybrid, LayerSet, Stair};
use crate::membership::Rejoin;

/// Which of the two schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Stair,
    Fglm,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::Stair => "stair",
            Kind::Fglm => "fglm",
        }
    }
}

/// The channels: static layers first, then stairs, fastest first.
///
/// Of the session's ladder the lowest rate is c0 = n0 = B0, which is also the stairs' top rate; the highest is the highest
/// rate of the static layers together; STAIR's ratio is α (decision 2).
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// Rate of the lowest static layer.
    pub(super) unit: Rate,
    pub(super) hybrid: Hybrid,
    pub(super) stairs: Vec<Stair>,
    /// How many static layers there are.
    pub(super) fixed: usize,
}

impl Layout {
    pub(super) fn new(kind: Kind, session: &Session, config: &Config) -> Result<Layout, ConfigError> {
        let ladder = &session.ladder;
        let unit = ladder.level_rate(1);
        let (hybrid, stairs) = match kind {
            Kind::Stair => {
                let stairs = Stair::family(unit, session.packet_size, config.stair_height, config.stairs as usize);
                (Hybrid::from_ladder(ladder), stairs)
            }
            Kind::Fglm => (Hybrid::non_cumulative(ladder), Vec::new()),
        };
        let layout = Layout { unit, fixed: hybrid.rates().len(), hybrid, stairs };
        let high = ladder.level_rate(ladder.levels());
        let refuse = |reason| Err(ConfigError::BadLadder { low: unit, high, ratio: "given".to_string(), reason });
        if layout.channels() > session.form.channels().min(LayerSet::CAPACITY) {
            return refuse("layers and stairs make more than 256 channels; raise the ratio or the lowest rate");
        }
        if layout.hybrid.top() > MOST_UNITS {
            return refuse("the highest is more than a million times the lowest; raise the lowest rate");
        }
        Ok(layout)
    }

    pub(super) fn channels(&self) -> usize {
        self.fixed + self.stairs.len()
    }

    /// The channels' rates; of a stair the highest.
    pub(super) fn rates(&self) -> Vec<Rate> {
        let fixed = self.hybrid.rates().into_iter().map(|units| self.of_units(units));
        fixed.chain(self.stairs.iter().map(Stair::top)).collect()
    }

    /// The lowest rates at which the channels bring packets of this size: a stair begins with one in its round-trip time.
    pub(super) fn lowest_rates(&self, packet_size: Bytes) -> Vec<Rate> {
        let mut rates = self.rates();
        for (rate, stair) in rates[self.fixed..].iter_mut().zip(&self.stairs) {
            *rate = Rate::from_packets_per_sec(1.0 / stair.rtt().as_secs_f64().max(1e-9), packet_size);
        }
        rates
    }

    /// Which silent channels a receiver joins again. STAIR's receivers always have channel 0, the lowest cumulative layer;
    /// FGLM, which has no stairs, has no layer that all receivers have (decision 9).
    pub(super) fn rejoin(&self) -> Rejoin {
        if self.stairs.is_empty() { Rejoin::Each } else { Rejoin::BaseFirst }
    }

    /// What a receiver can have of the static layers: every whole number of units.
    pub(super) fn levels(&self) -> Vec<Rate> {
        (1..=self.hybrid.top()).map(|units| self.of_units(units)).collect()
    }

    /// The rate of this number of units.
    pub(super) fn of_units(&self, units: u64) -> Rate {
        Rate::from_bps(self.unit.bps().saturating_mul(units))
    }

    /// Which stair a channel is, if it is one.
    pub(super) fn stair(&self, channel: usize) -> Option<usize> {
        channel.checked_sub(self.fixed).filter(|stair| *stair < self.stairs.len())
    }
}

/// Each whole number of units is a level of its own, eight bytes where they are listed.
const MOST_UNITS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Habitat;
    use crate::layers::Ladder;
    use weir_wire::CciForm;

    #[test]
    fn rates_with_more_than_a_million_levels_are_refused() {
        for kind in [Kind::Stair, Kind::Fglm] {
            let result = |high| {
                let ladder =
                    Ladder::from_rates([1_000, 2_000, high].map(Rate::from_bps).to_vec()).expect("rising rates");
                let (form, packet_size) = (CciForm::Long, Bytes::new(1_456));
                let session = Session { ladder, packet_size, form, habitat: Habitat::Sockets };
                let config = super::super::settings::read(kind, &session, &[]).expect("the defaults");
                Layout::new(kind, &session, &config).map(|layout| layout.levels().len())
            };
            assert_eq!(result(1_000_000_000), Ok(1_000_000));
            assert!(matches!(result(1_000_001_000), Err(ConfigError::BadLadder { .. })));
        }
    }
}
