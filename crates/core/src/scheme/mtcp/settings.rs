//! MTCP's settings by name.

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::Rate;

use super::config::{Config, Control, NackRule, Shape};
use crate::definition::Habitat;
use crate::error::ConfigError;
use crate::settings::{self, Entry, Setting, SettingHelp, Table, YES_OR_NO, ms, secs};

type Span = settings::Within<Config, Duration>;
type SpanOr = settings::WithinOr<Config, Duration, Option<Duration>>;
type Number = settings::Within<Config, f64>;
type Whole = settings::Within<Config, u64>;
type WholeOr = settings::WithinOr<Config, u64, Option<u64>>;
type RateOr = settings::WithinOr<Config, Rate, Option<Rate>>;
type OneOf<T> = settings::OneOf<Config, T>;
type Preset = settings::Preset<Config>;

pub(super) fn read(habitat: Habitat, settings: &[Setting]) -> Result<Config, ConfigError> {
    let config = settings::read("mtcp", TABLE, Config::defaults(habitat), settings)?;
    if config.alpha > config.beta {
        return Err(ConfigError::BadValue {
            key: "alpha".into(),
            value: alloc::format!("{}", config.alpha),
            expected: "a number that is not above beta".into(),
        });
    }
    Ok(config)
}

/// Help about the settings.
pub(super) fn help() -> Vec<SettingHelp> {
    settings::help(TABLE, Config::defaults(Habitat::Lab), Config::defaults(Habitat::Sockets))
}

const TABLE: Table<Config> = &[&[
    Entry {
        key: "rules",
        help: "whose rules; other settings go on top",
        value: &Preset {
            words: &[
                ("usual", "refined in the laboratory, today's on sockets", |_| {}),
                ("refined", "the paper's with the additions of docs/papers/mtcp.md", |c| *c = c.as_refined()),
                ("literal", "the paper's text", |c| *c = c.as_literal()),
                ("today", "refined, but windows answer to losses as TCP's do today", |c| *c = c.as_today()),
            ],
        },
    },
    Entry {
        key: "ack_delay",
        help: "how long an acknowledgement waits for more packets",
        value: &Span { range: ms(1)..=ms(500), field: |c| &mut c.ack_delay },
    },
    Entry {
        key: "ack_every",
        help: "new packets with which an acknowledgement goes at once",
        value: &WholeOr { word: "no", means: "it always waits", range: 1..=1000, field: |c| &mut c.ack_every },
    },
    Entry {
        key: "ack_spacing",
        help: "how long after the last one an acknowledgement may go at once",
        value: &Span { range: Duration::ZERO..=ms(100), field: |c| &mut c.ack_spacing },
    },
    Entry {
        key: "ack_jitter",
        help: "how much longer an acknowledgement waits at most, at random",
        value: &Span { range: Duration::ZERO..=ms(500), field: |c| &mut c.ack_jitter },
    },
    Entry {
        key: "report_within",
        help: "how soon a change of the windows below is reported",
        value: &SpanOr {
            word: "no",
            means: "with the next acknowledgement",
            range: Duration::ZERO..=secs(1),
            field: |c| &mut c.report_within,
        },
    },
    Entry {
        key: "subtracts_held",
        help: "whether the queuing delay is measured without the time that acknowledgements wait",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.subtracts_held },
    },
    Entry {
        key: "paces",
        help: "whether the sender spreads packets by the rate of their delivery",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.paces },
    },
    Entry {
        key: "floor",
        help: "how far a time-out is above the average delay at least",
        value: &Span { range: ms(1)..=secs(10), field: |c| &mut c.floor },
    },
    Entry {
        key: "least_window",
        help: "the least congestion window in packets",
        value: &Number { range: 1.0..=64.0, field: |c| &mut c.least_window },
    },
    Entry {
        key: "validates",
        help: "whether congestion finds a window no higher than twice the most in transit of late",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.validates },
    },
    Entry {
        key: "slack",
        help: "queuing delay below which nothing is taken for a queue",
        value: &Span { range: Duration::ZERO..=ms(100), field: |c| &mut c.slack },
    },
    Entry {
        key: "queue_of",
        help: "over how long the least queuing delay is taken",
        value: &SpanOr {
            word: "no",
            means: "each is taken as it is",
            range: ms(1)..=secs(10),
            field: |c| &mut c.queue_of,
        },
    },
    Entry {
        key: "base_of",
        help: "over how long the least delay is taken",
        value: &SpanOr {
            word: "all",
            means: "the whole session",
            range: secs(1)..=secs(3600),
            field: |c| &mut c.base_of,
        },
    },
    Entry {
        key: "control",
        help: "how windows grow, and what they answer to",
        value: &OneOf {
            words: &[
                ("vegas", "to queues, as TCP Vegas: the paper's", Control::Vegas),
                ("reno", "to losses, as TCP Reno", Control::Reno),
                ("cubic", "to losses, as TCP CUBIC", Control::Cubic),
            ],
            field: |c| &mut c.control,
        },
    },
    Entry {
        key: "predicts",
        help: "whether the sender counts what is on its way to the nodes below",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.predicts },
    },
    Entry {
        key: "nacks",
        help: "when missing packets are congestion",
        value: &OneOf {
            words: &[
                ("run", "three in a row are missing", NackRule::ThreeInARow),
                ("each", "one is missing, and three later ones are there", NackRule::Each),
                ("repeated", "three acknowledgements in a row miss the same one", NackRule::SamePacket),
            ],
            field: |c| &mut c.nacks,
        },
    },
    Entry {
        key: "alpha",
        help: "backlog in packets below which a window grows",
        value: &Number { range: 0.1..=1000.0, field: |c| &mut c.alpha },
    },
    Entry {
        key: "beta",
        help: "backlog in packets above which a window shrinks",
        value: &Number { range: 0.1..=1000.0, field: |c| &mut c.beta },
    },
    Entry {
        key: "gamma",
        help: "backlog in packets that ends slow start",
        value: &Number { range: 0.1..=1000.0, field: |c| &mut c.gamma },
    },
    Entry {
        key: "threshold",
        help: "the slow start threshold before the first congestion in bytes",
        value: &Whole { range: 1..=1 << 30, field: |c| &mut c.threshold },
    },
    Entry {
        key: "low_mark",
        help: "whether a packet is kept until everyone below has it, and not only the children",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.low_mark },
    },
    Entry {
        key: "buffer",
        help: "packets that a member has room for",
        value: &Whole { range: 2..=1 << 20, field: |c| &mut c.buffer },
    },
    Entry {
        key: "history",
        help: "packets that a node keeps for members that come late, though everyone below has them",
        value: &Whole { range: 0..=1 << 24, field: |c| &mut c.history },
    },
    Entry {
        key: "children",
        help: "children for which a node waits",
        value: &Whole { range: 0..=16_384, field: |c| &mut c.children },
    },
    Entry {
        key: "receivers",
        help: "receivers for which the sender waits",
        value: &Whole { range: 1..=65_535, field: |c| &mut c.receivers },
    },
    Entry {
        key: "tree",
        help: "where a member finds the node above it",
        value: &OneOf {
            words: &[
                ("given", "the configuration names the parent of each member", Shape::Given),
                ("found", "it asks the sender and the nodes that it learns of, and takes the nearest", Shape::Found),
            ],
            field: |c| &mut c.tree,
        },
    },
    Entry {
        key: "fan_out",
        help: "children that a node takes at most when it is found",
        value: &Whole { range: 1..=1024, field: |c| &mut c.fan_out },
    },
    Entry {
        key: "from_now",
        help: "whether a member that comes late takes the stream from there, and not from its start",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.from_now },
    },
    Entry {
        key: "min_rate",
        help: "the stream waits for no member that takes less while it could have more",
        value: &RateOr {
            word: "no",
            means: "it waits for all",
            range: Rate::from_bps(1)..=Rate::from_mbps(100_000),
            field: |c| &mut c.min_rate,
        },
    },
    Entry {
        key: "evict_after",
        help: "how long the stream waits for a member that is slower than min_rate, or silent",
        value: &Span { range: secs(2)..=secs(86_400), field: |c| &mut c.evict_after },
    },
    Entry {
        key: "forwards",
        help: "whether an agent to which no multicast leads sends on to its own network what the node above sends it",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.forwards },
    },
    Entry {
        key: "uplinks",
        help: "nodes above that a member knows, the nearest first",
        value: &Whole { range: 1..=64, field: |c| &mut c.uplinks },
    },
]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_a_field_of_its_own() {
        settings::tests::assert_own_fields(TABLE, Config::refined(Habitat::Lab), &["rules"]);
    }
}
