//! Settings by name, as the command line and scenarios give them.

use alloc::vec::Vec;
use core::time::Duration;

use super::config::{Config, Offer, StartUp};
use crate::error::ConfigError;
use crate::settings::{self, Entry, Setting, SettingHelp, Table, YES_OR_NO, ms, secs};

type Span = settings::Within<Config, Duration>;
type Number = settings::Within<Config, f64>;
type Count = settings::Within<Config, u64>;
type OneOf<T> = settings::OneOf<Config, T>;

/// The configuration with these settings.
pub(super) fn read(settings: &[Setting]) -> Result<Config, ConfigError> {
    settings::read("sluice", TABLE, Config::default(), settings)
}

/// Help about the settings.
pub(super) fn help() -> Vec<SettingHelp> {
    settings::help(TABLE, Config::default(), Config::default())
}

const TABLE: Table<Config> = &[&[
    Entry {
        key: "margin",
        help: "m: the rate of the burst that stands for the next level, over that level's rate",
        value: &Number { range: 1.0..=1.5, field: |c| &mut c.margin },
    },
    Entry {
        key: "start_up",
        help: "when the sender sends bursts of two to four times a level's rate",
        value: &OneOf {
            words: &[
                ("asked", "while a receiver says that it starts", StartUp::Asked),
                ("always", "all the time", StartUp::Always),
                ("never", "receivers climb a level at a time", StartUp::Never),
            ],
            field: |c| &mut c.start_up,
        },
    },
    Entry {
        key: "offer",
        help: "how much of the ladder the sender sends",
        value: &OneOf {
            words: &[("wanted", "what receivers tell that they want", Offer::Wanted), ("all", "all of it", Offer::All)],
            field: |c| &mut c.offer,
        },
    },
    Entry {
        key: "period",
        help: "how often the sender schedules packets",
        value: &Span { range: ms(1)..=ms(20), field: |c| &mut c.period },
    },
    Entry {
        key: "round_trip",
        help: "the round-trip time of an empty path until a probe has told it",
        value: &Span { range: Duration::from_micros(100)..=secs(5), field: |c| &mut c.round_trip },
    },
    Entry {
        key: "probes",
        help: "whether receivers measure their round trip, and tell what they want",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.probes },
    },
    Entry {
        key: "probe_rate",
        help: "probes that the sender wants to answer in a second",
        value: &Count { range: 1..=10_000, field: |c| &mut c.probes_per_sec },
    },
    Entry {
        key: "hold",
        help: "H: how long a level is held before a queue that others share lets the receiver change it",
        value: &Span { range: ms(100)..=secs(600), field: |c| &mut c.hold },
    },
    Entry {
        key: "back_off",
        help: "how long a level that turned out to be too high is not tried again, the first time",
        value: &Span { range: ms(100)..=secs(600), field: |c| &mut c.back_off },
    },
    Entry {
        key: "trial",
        help: "for how long after a join the receiver may find that it was too much",
        value: &Span { range: secs(1)..=secs(60), field: |c| &mut c.trial },
    },
    Entry {
        key: "own_loss",
        help: "the part of its packets that the path may lose by itself, as Wi-Fi loses multicast: so much without a queue is no congestion",
        value: &Number { range: 0.01..=0.5, field: |c| &mut c.own_loss },
    },
    Entry {
        key: "reorder",
        help: "later packets of a channel that give a missing one up, at least; more in fast channels and on paths that reorder",
        value: &Count { range: 1..=64, field: |c| &mut c.reorder_packets },
    },
]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_a_field_of_its_own() {
        settings::tests::assert_own_fields(TABLE, Config::default(), &[]);
    }
}
