//! Settings by name, as the command line and scenarios give them.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use weir_units::Rate;

use super::config::{Config, FineGrain, Growth, Losses};
use super::quality::LayerRates;
use crate::definition::{Habitat, Stream};
use crate::error::ConfigError;
use crate::settings::{self, Entry, Setting, SettingHelp, Table, YES_OR_NO, ms, secs};

type Span = settings::Within<Config, Duration>;
type RateWithin = settings::Within<Config, Rate>;
type SpanOr = settings::WithinOr<Config, Duration, Option<Duration>>;
type RateOr = settings::WithinOr<Config, Rate, Option<Rate>>;
type LayersOr = settings::RatesOr<Config, LayerRates>;
type Count = settings::Within<Config, u64>;
type Number = settings::Within<Config, f64>;
type OneOf<T> = settings::OneOf<Config, T>;
type Preset = settings::Preset<Config>;

/// The configuration with these settings.
pub(super) fn read(stream: &Stream, settings: &[Setting]) -> Result<Config, ConfigError> {
    let config = settings::read("rap", TABLE, Config::new(stream.habitat), settings)?;
    let floor = config.floor(stream.packet_size);
    if floor > config.max_rate {
        return Err(ConfigError::BadValue {
            key: "min_rate".into(),
            value: floor.to_string(),
            expected: "a rate that is not above max_rate".into(),
        });
    }
    Ok(config)
}

/// Help about the settings.
pub(super) fn help() -> Vec<SettingHelp> {
    settings::help(TABLE, Config::new(Habitat::Lab), Config::new(Habitat::Sockets))
}

const RATES: RangeInclusive<Rate> = Rate::from_bps(1)..=Rate::from_mbps(10_000);

const TABLE: Table<Config> = &[&[
    Entry {
        key: "quirks",
        help: "whose RAP; other settings go on top",
        value: &Preset {
            words: &[
                ("none", "that of the paper and docs/papers/rap.md", |_| {}),
                ("ns2", "ns-2's, where its Agent/RAP does otherwise", |c| *c = c.as_ns2()),
            ],
        },
    },
    Entry {
        key: "beta",
        help: "what a back-off leaves of the rate",
        value: &Number { range: 0.1..=0.95, field: |c| &mut c.decrease },
    },
    Entry {
        key: "fine_grain",
        help: "whether the gap follows the ratio of short-term to long-term round-trip time",
        value: &OneOf { words: &[("yes", "", Some(FineGrain::NS2)), ("no", "", None)], field: |c| &mut c.fine_grain },
    },
    Entry {
        key: "start_up",
        help: "how the rate grows until the first congestion",
        value: &OneOf {
            words: &[
                ("doubling", "to twice the rate each round-trip time", Growth::Doubling),
                ("additive", "by a packet each round-trip time", Growth::Additive),
            ],
            field: |c| &mut c.start_up,
        },
    },
    Entry {
        key: "start_packets",
        help: "packets in the first round trip of which the time is known",
        value: &Count { range: 1..=100, field: |c| &mut c.start_packets },
    },
    Entry {
        key: "ecn",
        help: "whether packets can be marked, and a mark is a loss",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.ecn },
    },
    Entry {
        key: "losses",
        help: "which losses are congestion",
        value: &OneOf {
            words: &[
                ("all", "each", Losses::All),
                ("queued", "those behind a queue, and more than 5 % in any case", Losses::Queued),
            ],
            field: |c| &mut c.losses,
        },
    },
    Entry {
        key: "validate",
        help: "whether an application that has less to send is allowed at most twice what was acknowledged lately",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.validates },
    },
    Entry {
        key: "repair",
        help: "for how long a lost packet's content goes again, if it can arrive by then",
        value: &SpanOr { word: "no", means: "nothing goes again", range: ms(1)..=secs(30), field: |c| &mut c.repair },
    },
    Entry {
        key: "tell_payloads",
        help: "whether the application is told of each payload that it has come, or is lost",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.tells },
    },
    Entry {
        key: "layers",
        help: "what each layer of a stored stream plays, the base first",
        value: &LayersOr {
            word: "none",
            means: "a stream without layers",
            range: RATES,
            most: LayerRates::MOST,
            list: LayerRates::new,
            rates: LayerRates::as_slice,
            field: |c| &mut c.layers,
        },
    },
    Entry {
        key: "start_up_delay",
        help: "from the first packet that comes until the receiver of layers plays",
        value: &Span { range: ms(1)..=secs(60), field: |c| &mut c.start_up_delay },
    },
    Entry {
        key: "k_max",
        help: "how many back-offs the receiver's buffers are to survive with a layer more before it is added",
        value: &Count { range: 1..=10, field: |c| &mut c.k_max },
    },
    Entry {
        key: "max_buffer",
        help: "a layer of which the receiver has this much gets no more",
        value: &Span { range: secs(1)..=secs(120), field: |c| &mut c.max_buffer },
    },
    Entry {
        key: "average_over",
        help: "over what time the rate is averaged that is to carry a layer more",
        value: &Span { range: ms(1)..=secs(300), field: |c| &mut c.average_over },
    },
    Entry {
        key: "initial_rtt",
        help: "round-trip time until one is measured",
        value: &Span { range: ms(1)..=secs(10), field: |c| &mut c.timing.initial },
    },
    Entry {
        key: "granularity",
        help: "what a time-out has at least besides the smoothed round-trip time",
        value: &Span { range: Duration::ZERO..=secs(10), field: |c| &mut c.timing.granularity },
    },
    Entry {
        key: "min_rate",
        help: "the rate's floor",
        value: &RateOr { word: "auto", means: "a packet every two seconds", range: RATES, field: |c| &mut c.min_rate },
    },
    Entry {
        key: "max_rate",
        help: "the rate's ceiling",
        value: &RateWithin { range: RATES, field: |c| &mut c.max_rate },
    },
]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_a_field_of_its_own() {
        settings::tests::assert_own_fields(TABLE, Config::new(Habitat::Lab), &["quirks"]);
    }
}
