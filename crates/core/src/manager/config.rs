//! The settings of a manager.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Sharing, Stability};
use crate::error::ConfigError;
use crate::settings::{self, Entry, Setting, SettingHelp, Table, YES_OR_NO, ms, secs};

/// Everything that can be set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How what the sessions get is divided among them.
    pub sharing: Sharing,
    /// Whether a session is given no more than it could get through by itself (decision 10).
    pub capped: bool,
    /// How many sessions count as announced; `None` is what their senders say.
    pub sessions: Option<u64>,
    /// When a layer is added again.
    pub stability: Stability,
    /// What is added to the time until the next check, after an unstable change.
    pub postpone: Duration,
    /// How many checks in a row must wish for more before a layer is added.
    pub cycles: u64,
    /// What is added to the time until the next check then.
    pub rest: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            sharing: Sharing::Pool,
            capped: true,
            sessions: None,
            stability: Stability::ByLevel,
            postpone: Duration::from_secs(10),
            cycles: 5,
            rest: Duration::from_secs(60),
        }
    }
}

/// The configuration with these settings.
pub fn read(settings: &[Setting]) -> Result<Config, ConfigError> {
    settings::read("manager", TABLE, Config::default(), settings)
}

/// Help about the settings.
pub fn help() -> Vec<SettingHelp> {
    settings::help(TABLE, Config::default(), Config::default())
}

type OneOf<T> = settings::OneOf<Config, T>;
type Span = settings::Within<Config, Duration>;
type Count = settings::Within<Config, u64>;
type CountOr = settings::WithinOr<Config, u64, Option<u64>>;

const TABLE: Table<Config> = &[&[
    Entry {
        key: "sharing",
        help: "how sessions share what the host gets",
        value: &OneOf {
            words: &[
                ("none", "each takes its own share", Sharing::None),
                (
                    "static",
                    "a session gets at most its priority over the highest one's, whether or not that session is there",
                    Sharing::Static,
                ),
                ("active", "the same, of the sessions that are there", Sharing::Active),
                ("weight", "all shares together are divided by priority", Sharing::Weight),
                (
                    "pool",
                    "of all shares together a higher priority takes first, but for the base layers",
                    Sharing::Pool,
                ),
            ],
            field: |c| &mut c.sharing,
        },
    },
    Entry {
        key: "capped",
        help: "whether a session is given no more than it could get through by itself",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.capped },
    },
    Entry {
        key: "sessions",
        help: "how many sessions, with priorities from 1, static sharing takes to be there",
        value: &CountOr {
            word: "announced",
            means: "what their senders say",
            range: 1..=1000,
            field: |c| &mut c.sessions,
        },
    },
    Entry {
        key: "stability",
        help: "when layers are added that had been dropped",
        value: &OneOf {
            words: &[
                ("none", "at once", Stability::None),
                ("counted", "after five wishes for more, ten seconds apart", Stability::Counted),
                ("by_level", "the more layers are wished for, the fewer wishes it takes", Stability::ByLevel),
            ],
            field: |c| &mut c.stability,
        },
    },
    Entry {
        key: "postpone",
        help: "time between wishes that count",
        value: &Span { range: ms(100)..=secs(600), field: |c| &mut c.postpone },
    },
    Entry {
        key: "cycles",
        help: "wishes after which layers are added",
        value: &Count { range: 1..=100, field: |c| &mut c.cycles },
    },
    Entry {
        key: "rest",
        help: "time after layers were added in which no more are",
        value: &Span { range: ms(0)..=secs(3600), field: |c| &mut c.rest },
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
