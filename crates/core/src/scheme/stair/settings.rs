//! Settings by name, as the command line, scenarios and session descriptions give them.

use alloc::vec::Vec;
use core::time::Duration;

use super::choice::StairRule;
use super::config::{Config, Decrease, RttMethod, StartUp};
use super::layout::Kind;
use crate::definition::{Habitat, Session};
use crate::error::ConfigError;
use crate::settings::{self, Entry, Setting, SettingHelp, Table, ms, secs};

type Span = settings::Within<Config, Duration>;
type SpanOr<F> = settings::WithinOr<Config, Duration, F>;
type Whole = settings::Within<Config, u64>;
type OneOf<T> = settings::OneOf<Config, T>;

/// The configuration with these settings.
pub(super) fn read(kind: Kind, session: &Session, settings: &[Setting]) -> Result<Config, ConfigError> {
    settings::read(kind.name(), table(kind), Config::new(session.habitat), settings)
}

/// Help about the settings of a scheme.
pub(super) fn help(kind: Kind) -> Vec<SettingHelp> {
    settings::help(table(kind), Config::new(Habitat::Lab), Config::new(Habitat::Sockets))
}

/// FGLM has no stairs.
const fn table(kind: Kind) -> Table<Config> {
    match kind {
        Kind::Stair => &[STAIRS, BOTH],
        Kind::Fglm => &[BOTH],
    }
}

/// About stairs.
const STAIRS: &[Entry<Config>] = &[
    Entry {
        key: "option",
        help: "how many stairs a receiver follows",
        value: &OneOf {
            words: &[
                ("1", "the one nearest to its round-trip time", StairRule::One),
                ("2", "up to two that come nearer to it together", StairRule::Two),
            ],
            field: |c| &mut c.stair_rule,
        },
    },
    Entry {
        key: "stairs",
        help: "how many stairs there are, each for twice the round-trip time of the one before",
        value: &Whole { range: 1..=8, field: |c| &mut c.stairs },
    },
    Entry {
        key: "stair_height",
        help: "steps of the fastest stair at least",
        value: &Whole { range: 1..=64, field: |c| &mut c.stair_height },
    },
];

/// What both schemes take.
const BOTH: &[Entry<Config>] = &[
    Entry {
        key: "decrease",
        help: "when a loss lowers the rate",
        value: &OneOf {
            words: &[
                ("period-end", "at the end of its stair period", Decrease::PeriodEnd),
                ("at-once", "at once, the first time in a stair period", Decrease::AtOnce),
                ("at-once-each-rtt", "at once, the first time in a round-trip time", Decrease::AtOnceEachRtt),
            ],
            field: |c| &mut c.decrease,
        },
    },
    Entry {
        key: "rtt",
        help: "where the round-trip time is from",
        value: &OneOf {
            words: &[
                ("measured", "probes to the sender", RttMethod::Measured),
                ("least", "the same, and the shortest one for the choice of the stair", RttMethod::Least),
                ("fixed", "initial_rtt", RttMethod::Fixed),
            ],
            field: |c| &mut c.rtt_method,
        },
    },
    Entry {
        key: "initial_rtt",
        help: "round-trip time until one is measured",
        value: &Span { range: ms(1)..=secs(10), field: |c| &mut c.initial_rtt },
    },
    Entry {
        key: "start_up",
        help: "how the rate grows until the first loss",
        value: &OneOf {
            words: &[
                ("slow_start", "it doubles every round-trip time", StartUp::SlowStart),
                ("additive", "as later", StartUp::Additive),
            ],
            field: |c| &mut c.start_up,
        },
    },
    Entry {
        key: "join_latency",
        help: "by how much joins are made ahead of need",
        value: &SpanOr {
            word: "measured",
            means: "as the receiver finds",
            range: Duration::ZERO..=secs(10),
            field: |c| &mut c.join_latency,
        },
    },
    Entry {
        key: "leave_latency",
        help: "by how much leaves are made ahead of need",
        value: &SpanOr {
            word: "measured",
            means: "as the receiver finds",
            range: Duration::ZERO..=secs(10),
            field: |c| &mut c.leave_latency,
        },
    },
    Entry {
        key: "leave_wait",
        help: "how long a leave may take while losses belong to what it was made for",
        value: &Span { range: Duration::ZERO..=secs(60), field: |c| &mut c.leave_wait },
    },
    Entry {
        key: "reorder",
        help: "later packets of a channel that make a missing one lost",
        value: &Whole { range: 0..=100, field: |c| &mut c.reorder_packets },
    },
    Entry {
        key: "probe_rate",
        help: "round-trip probes a second of all receivers together",
        value: &Whole { range: 1..=10_000, field: |c| &mut c.probes_per_sec },
    },
    Entry {
        key: "period",
        help: "how often the sender sends what is due, 0s for at its exact time",
        value: &Span { range: Duration::ZERO..=ms(100), field: |c| &mut c.period },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_a_field_of_its_own() {
        settings::tests::assert_own_fields(table(Kind::Stair), Config::new(Habitat::Lab), &[]);
    }
}
