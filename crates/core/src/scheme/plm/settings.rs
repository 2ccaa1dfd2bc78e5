//! Settings by name, as the command line and scenarios give them.

use alloc::vec::Vec;
use core::time::Duration;

use super::config::{Config, Estimator};
use crate::definition::{Habitat, Session};
use crate::error::ConfigError;
use crate::settings::{self, Entry, Setting, SettingHelp, Table, YES_OR_NO, ms, secs};

type Span = settings::Within<Config, Duration>;
type SpanOr = settings::WithinOr<Config, Duration, Option<Duration>>;
type Number = settings::Within<Config, f64>;
type Count<T> = settings::Within<Config, T>;
type OneOf<T> = settings::OneOf<Config, T>;
type Preset = settings::Preset<Config>;

/// The configuration with these settings.
pub(super) fn read(session: &Session, settings: &[Setting]) -> Result<Config, ConfigError> {
    settings::read("plm", TABLE, Config::new(session.habitat), settings)
}

/// Help about the settings.
pub(super) fn help() -> Vec<SettingHelp> {
    settings::help(TABLE, Config::new(Habitat::Lab), Config::new(Habitat::Sockets))
}

const TABLE: Table<Config> = &[&[
    Entry {
        key: "quirks",
        help: "whose PLM; other settings go on top",
        value: &Preset {
            words: &[
                ("none", "that of docs/papers/pslm.md", |_| {}),
                ("ns2", "ns-2's, which cuts packets and does not mind silence", |c| *c = c.as_ns2()),
            ],
        },
    },
    Entry {
        key: "check",
        help: "C: layers are joined after so long, up to the least estimate of that time",
        value: &Span { range: ms(100)..=secs(600), field: |c| &mut c.check },
    },
    Entry {
        key: "estimates",
        help: "as many estimates are waited for, at least",
        value: &Count { range: 1..=1000, field: |c| &mut c.least_estimates },
    },
    Entry {
        key: "estimator",
        help: "what the share of the path is read from",
        value: &OneOf {
            words: &[
                ("pairs", "the first two packets of each burst", Estimator::Pairs),
                ("trains", "the tail of each burst of 8 packets or more", Estimator::Trains),
            ],
            field: |c| &mut c.estimator,
        },
    },
    Entry {
        key: "resolution",
        help: "packets that come faster than one in this time come too fast for the time stamps",
        value: &Span { range: ms(0)..=ms(100), field: |c| &mut c.resolution },
    },
    Entry {
        key: "burst",
        help: "packets that the sender sends back to back",
        value: &Count { range: 2..=512, field: |c| &mut c.burst_packets },
    },
    Entry {
        key: "burst_every",
        help: "time between a channel's bursts, at least; packets in between go one by one",
        value: &Span { range: ms(0)..=secs(60), field: |c| &mut c.burst_every },
    },
    Entry {
        key: "jitter",
        help: "by which part of the time until then a channel's next packets are early or late, at most",
        value: &Number { range: 0.0..=0.9, field: |c| &mut c.jitter },
    },
    Entry {
        key: "cut",
        help: "whether the sender cuts packets into 1000 bytes and the rest, as ns-2 does",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.cut },
    },
    Entry {
        key: "loss",
        help: "which part of the packets may be lost before a layer is given up",
        value: &Number { range: 0.001..=1.0, field: |c| &mut c.loss },
    },
    Entry {
        key: "blind",
        help: "how long after a layer was given up for loss or silence none is",
        value: &Span { range: ms(0)..=secs(60), field: |c| &mut c.blind },
    },
    Entry {
        key: "silence",
        help: "how long nothing may come before a layer is given up",
        value: &SpanOr {
            word: "never",
            means: "silence costs nothing",
            range: ms(10)..=secs(60),
            field: |c| &mut c.silence,
        },
    },
    Entry {
        key: "rejoin",
        help: "after what time a session that was left is joined again",
        value: &Span { range: ms(100)..=secs(3600), field: |c| &mut c.rejoin },
    },
    Entry {
        key: "protect_base",
        help: "whether the base layer is kept whatever the estimates say",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.protect_base },
    },
    Entry {
        key: "premise",
        help: "whether the path is fair-queued",
        value: &OneOf {
            words: &[
                ("trusted", "estimates count whatever happens", false),
                ("tested", "if loss or delay contradict the estimates, these count instead", true),
            ],
            field: |c| &mut c.test_premise,
        },
    },
    Entry {
        key: "leave_wait",
        help: "how long a leave may take while the premise is not tested",
        value: &Span { range: Duration::ZERO..=secs(60), field: |c| &mut c.leave_wait },
    },
    Entry {
        key: "reorder",
        help: "later packets of a channel that give a missing one up",
        value: &Count { range: 1..=64, field: |c| &mut c.reorder_packets },
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
