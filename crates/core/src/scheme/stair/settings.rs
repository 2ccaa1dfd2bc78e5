//! Settings by name, as the command line, scenarios and session descriptions give them.

use core::time::Duration;

use super::choice::StairRule;
use super::config::{Config, Decrease, Latency, RttMethod, StartUp};
use super::layout::Kind;
use crate::registry::{ConfigError, Session, Setting, SettingHelp};
use crate::settings::{MILLI, SECOND, help, one_of, span, unknown, whole};

/// One line a setting; those that are about stairs come first.
pub(super) const HELP: &[SettingHelp] = &[
    help("option", "the stair nearest to the round-trip time, 1, or up to two that come nearer, 2 (1)"),
    help("stairs", "how many stairs there are, each of twice the round-trip time of the one before, 1 to 8 (4)"),
    help("stair_height", "steps of the fastest stair at least, 1 to 64 (4)"),
    help(
        "decrease",
        "when a loss lowers the rate: period-end, at the end of its stair period; at-once, once a period; at-once-each-rtt (period-end)",
    ),
    help("rtt", "measured, by probes to the sender; fixed, initial_rtt (measured)"),
    help("initial_rtt", "round-trip time until one is measured, 1ms to 10s (100ms)"),
    help(
        "start_up",
        "until the first loss: slow_start, double every round-trip time; additive (lab additive, sockets slow_start)",
    ),
    help("join_latency", "by how much joins are made ahead of need: a span up to 10s, or measured (measured)"),
    help("leave_latency", "by how much leaves are made ahead of need: a span up to 10s, or measured (measured)"),
    help("reorder", "later packets of a channel that make a missing one lost, 0 to 100 (lab 0, sockets 3)"),
    help("probe_rate", "round-trip probes a second of all receivers together, 1 to 10000 (50)"),
    help("period", "how often the sender sends what is due, up to 100ms; 0s at its exact time (lab 0s, sockets 5ms)"),
];

/// Those that FGLM takes, which has no stairs.
pub(super) const HELP_WITHOUT_STAIRS: &[SettingHelp] = HELP.split_at(3).1;

/// The configuration with these settings.
pub(super) fn read(kind: Kind, session: &Session, settings: &[Setting]) -> Result<Config, ConfigError> {
    let mut config = Config::new(session.habitat);
    for setting in settings {
        apply(kind, &mut config, setting)?;
    }
    Ok(config)
}

fn apply(kind: Kind, config: &mut Config, setting: &Setting) -> Result<(), ConfigError> {
    match setting.key.as_str() {
        "decrease" => {
            let readings = [
                ("period-end", Decrease::PeriodEnd),
                ("at-once", Decrease::AtOnce),
                ("at-once-each-rtt", Decrease::AtOnceEachRtt),
            ];
            config.decrease = one_of(setting, "period-end, at-once or at-once-each-rtt", &readings)?;
        }
        "option" if kind == Kind::Stair => {
            config.stair_rule = one_of(setting, "1 or 2", &[("1", StairRule::One), ("2", StairRule::Two)])?;
        }
        "stairs" if kind == Kind::Stair => {
            config.stairs = whole(setting, 1, 8, "a whole number from 1 to 8")? as usize;
        }
        "stair_height" if kind == Kind::Stair => {
            config.stair_height = whole(setting, 1, 64, "a whole number from 1 to 64")?;
        }
        "rtt" => {
            let methods = [("measured", RttMethod::Measured), ("fixed", RttMethod::Fixed)];
            config.rtt_method = one_of(setting, "measured or fixed", &methods)?;
        }
        "initial_rtt" => config.initial_rtt = span(setting, MILLI, 10 * SECOND, "a span from 1ms to 10s")?,
        "start_up" => {
            let ways = [("slow_start", StartUp::SlowStart), ("additive", StartUp::Additive)];
            config.start_up = one_of(setting, "slow_start or additive", &ways)?;
        }
        "join_latency" => config.join_latency = latency(setting)?,
        "leave_latency" => config.leave_latency = latency(setting)?,
        "reorder" => config.reorder_packets = whole(setting, 0, 100, "a whole number up to 100")?,
        "probe_rate" => config.probes_per_sec = whole(setting, 1, 10_000, "a whole number from 1 to 10000")?,
        "period" => config.period = span(setting, Duration::ZERO, 100 * MILLI, "a span up to 100ms")?,
        _ => return Err(unknown(kind.name(), setting)),
    }
    Ok(())
}

fn latency(setting: &Setting) -> Result<Latency, ConfigError> {
    match setting.value.as_str() {
        "measured" => Ok(Latency::Measured),
        _ => span(setting, Duration::ZERO, 10 * SECOND, "a span up to 10s, or measured").map(Latency::Fixed),
    }
}
