//! Settings by name, as the command line, scenarios and session descriptions give them.

use alloc::vec::Vec;
use core::time::Duration;

use super::config::{BetaRule, Config, FirstInterval, Model, RttMethod, Startup, StepTest, Synchronisation};
use crate::definition::{Habitat, Session};
use crate::error::ConfigError;
use crate::settings::{self, Entry, Setting, SettingHelp, Table, YES_OR_NO, ms, secs};

type Span = settings::Within<Config, Duration>;
type SpanOr<F> = settings::WithinOr<Config, Duration, F>;
type Whole = settings::Within<Config, u64>;
type Number = settings::Within<Config, f64>;
type OneOf<T> = settings::OneOf<Config, T>;

/// The configuration of `scheme` with these settings.
pub(super) fn read(
    scheme: &'static str,
    model: Model,
    session: &Session,
    settings: &[Setting],
) -> Result<Config, ConfigError> {
    settings::read(scheme, TABLE, Config::new(model, session.habitat), settings)
}

/// Help about the settings of a scheme with this model.
pub(super) fn help(model: Model) -> Vec<SettingHelp> {
    settings::help(TABLE, Config::new(model, Habitat::Lab), Config::new(model, Habitat::Sockets))
}

const TABLE: Table<Config> = &[RULES, READINGS];

/// The constants of Table 1, and what the paper varies.
const RULES: &[Entry<Config>] = &[
    Entry {
        key: "tau",
        help: "length of a time slot",
        value: &Span { range: ms(10)..=secs(10), field: |c| &mut c.tau },
    },
    Entry {
        key: "n_add",
        help: "slots between those in which a channel may be added",
        value: &Whole { range: 1..=1_000_000, field: |c| &mut c.n_add },
    },
    Entry {
        key: "n_drop",
        help: "slots after an add in which the quick drop applies",
        value: &Whole { range: 0..=1_000_000, field: |c| &mut c.n_drop },
    },
    Entry {
        key: "n_startup",
        help: "slots of the start-up phase, in which a channel may be added in every slot",
        value: &Whole { range: 0..=1_000_000, field: |c| &mut c.n_startup },
    },
    Entry {
        key: "gamma_add",
        help: "add hysteresis in steps of the ladder",
        value: &Number { range: 0.0..=10.0, field: |c| &mut c.gamma_add },
    },
    Entry {
        key: "gamma_drop",
        help: "drop hysteresis in steps of the ladder",
        value: &Number { range: 0.0..=1.0, field: |c| &mut c.gamma_drop },
    },
    Entry {
        key: "r",
        help: "aggressiveness constant",
        value: &Span { range: ms(1)..=secs(10), field: |c| &mut c.aggressiveness },
    },
    Entry {
        key: "beta",
        help: "vmrc: both Vegas thresholds in packets",
        value: &Number { range: 1e-3..=1e9, field: |c| &mut c.fixed_beta_packets },
    },
    Entry {
        key: "beta_max",
        help: "avmrc: the level whose packets bound β",
        value: &OneOf {
            words: &[
                ("literal", "the highest there is", BetaRule::Literal),
                ("sustained", "the highest that was held", BetaRule::Sustained),
            ],
            field: |c| &mut c.beta_rule,
        },
    },
    Entry {
        key: "beta_span",
        help: "avmrc: over how long the packets of that level are counted",
        value: &SpanOr { word: "tau", means: "a time slot", range: ms(10)..=secs(10), field: |c| &mut c.beta_span },
    },
    Entry {
        key: "sync",
        help: "when channels are added",
        value: &OneOf {
            words: &[
                ("weak", "in the slots that the sender signals", Synchronisation::Weak),
                ("none", "in slots of the receiver's own", Synchronisation::None),
            ],
            field: |c| &mut c.synchronisation,
        },
    },
    Entry {
        key: "rtt",
        help: "what stands for the round-trip time",
        value: &OneOf {
            words: &[
                ("fixed+queuing", "r plus the queuing delay", RttMethod::FixedPlusQueuing),
                ("fixed", "r", RttMethod::Fixed),
                ("measured", "initial_rtt plus the queuing delay", RttMethod::Measured),
            ],
            field: |c| &mut c.rtt_method,
        },
    },
    Entry {
        key: "initial_rtt",
        help: "for rtt=measured: round-trip time without queue",
        value: &Span { range: ms(1)..=secs(10), field: |c| &mut c.initial_rtt },
    },
    Entry {
        key: "period",
        help: "how often the sender schedules packets",
        value: &Span { range: ms(1)..=secs(1), field: |c| &mut c.period },
    },
    Entry {
        key: "small_packets",
        help: "whether a channel's last packet in a period may be smaller than full instead of waiting",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.small_packets },
    },
];

/// What the paper leaves open, and what real networks need besides.
const READINGS: &[Entry<Config>] = &[
    Entry {
        key: "delay_window",
        help: "over what the smallest delay is taken",
        value: &SpanOr {
            word: "all",
            means: "the whole session",
            range: secs(1)..=secs(1_000_000),
            field: |c| &mut c.delay_window,
        },
    },
    Entry {
        key: "reorder",
        help: "later packets of a channel that make a missing one lost",
        value: &Whole { range: 0..=100, field: |c| &mut c.reorder_packets },
    },
    Entry {
        key: "leave_wait",
        help: "how long a leave may take while further drops are held back",
        value: &Span { range: Duration::ZERO..=secs(60), field: |c| &mut c.leave_wait },
    },
    Entry {
        key: "first_interval",
        help: "packets before the first loss event",
        value: &OneOf {
            words: &[
                ("counted", "as received", FirstInterval::Counted),
                ("seeded", "at least what the rate implies", FirstInterval::Seeded),
            ],
            field: |c| &mut c.first_interval,
        },
    },
    Entry {
        key: "startup_from",
        help: "when the start-up phase begins",
        value: &OneOf {
            words: &[
                ("join", "with the first packet", Startup::Join),
                ("slow_start_end", "after slow start", Startup::SlowStartEnd),
            ],
            field: |c| &mut c.startup,
        },
    },
    Entry {
        key: "confirm_startup",
        help: "whether an add of the start-up phase needs slow start's test to pass",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.confirm_startup },
    },
    Entry {
        key: "stable_window",
        help: "whether the window of Eq. 3 is cut to where it holds",
        value: &OneOf { words: YES_OR_NO, field: |c| &mut c.stable_window_only },
    },
    Entry {
        key: "initial_packets",
        help: "packets in r with which slow start begins, at level 1 or above",
        value: &Number { range: 0.0..=1000.0, field: |c| &mut c.initial_packets },
    },
    Entry {
        key: "slow_start_growth",
        help: "by what slow start multiplies the rate in a slot, by one channel or more",
        value: &Number { range: 1.0..=16.0, field: |c| &mut c.slow_start_growth },
    },
    Entry {
        key: "confirm_steps",
        help: "what a step of slow start waits for besides the last slot's test",
        value: &OneOf {
            words: &[
                ("no", "nothing", StepTest::Last),
                ("half", "its newest channel in effect for half of that slot", StepTest::Half),
                ("yes", "all of its channels in effect for all of that slot", StepTest::Whole),
            ],
            field: |c| &mut c.step_test,
        },
    },
    Entry {
        key: "jitter_packets",
        help: "packet times by which delay may grow in a slot of slow start besides its 5 %",
        value: &Number { range: 0.0..=1000.0, field: |c| &mut c.jitter_packets },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_a_field_of_its_own() {
        settings::tests::assert_own_fields(TABLE, Config::new(Model::AdaptiveVegas, Habitat::Lab), &[]);
    }
}
