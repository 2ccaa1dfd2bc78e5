//! Settings by name, as the command line, scenarios and session descriptions give them.

use core::time::Duration;

use super::config::{BetaRule, Config, FirstInterval, Model, RttMethod, Startup, Synchronisation};
use crate::estimate::DelayWindow;
use crate::registry::{ConfigError, Session, Setting, SettingHelp};
use crate::settings::{MILLI, SECOND, help, number, one_of, span, unknown, whole, yes_or_no};

/// One line a setting.
pub(super) const HELP: &[SettingHelp] = &[
    help("tau", "length of a time slot, 10ms to 10s (100ms)"),
    help("n_add", "slots between those in which a channel may be added (20)"),
    help("n_drop", "slots after an add in which the quick drop applies (20)"),
    help("n_startup", "slots of the start-up phase, in which a channel may be added in every slot (50)"),
    help("gamma_add", "add hysteresis in steps of the ladder, 0 to 10 (0.5)"),
    help("gamma_drop", "drop hysteresis in steps of the ladder, 0 to 1 (0.5)"),
    help("r", "aggressiveness constant, 1ms to 10s (100ms)"),
    help("beta", "vmrc: both Vegas thresholds in packets, above 0 (6)"),
    help(
        "beta_max",
        "avmrc: literal, from the highest level; sustained, from the highest level held (lab literal, sockets sustained)",
    ),
    help(
        "beta_span",
        "avmrc: over how long a level's packets are counted that bound β: a span from 10ms to 10s, or tau (tau)",
    ),
    help("sync", "weak, adds in the slots that the sender signals; none, in slots of the receiver's own (weak)"),
    help(
        "rtt",
        "fixed+queuing, r plus the queuing delay; fixed, r; measured, initial_rtt plus the queuing delay (fixed+queuing)",
    ),
    help("initial_rtt", "for rtt=measured: round-trip time without queue (100ms)"),
    help("period", "how often the sender schedules packets, 1ms to 1s (lab 100ms, sockets 5ms)"),
    help(
        "small_packets",
        "yes, a channel's last packet in a period may be smaller than full; no, it waits (lab yes, sockets no)",
    ),
    help("delay_window", "over what the smallest delay is taken, 1s or more, or all (lab all, sockets 10m)"),
    help("reorder", "later packets of a channel that make a missing one lost, 0 to 100 (lab 0, sockets 3)"),
    help("leave_wait", "how long a leave may take while further drops are held back (lab 0, sockets 2.5s)"),
    help(
        "first_interval",
        "before the first loss event: counted, as received; seeded, at least what the rate implies (lab counted, sockets seeded)",
    ),
    help("startup_from", "when the start-up phase begins: join or slow_start_end (lab join, sockets slow_start_end)"),
    help("confirm_startup", "yes, an add of the start-up phase needs slow start's test to pass (lab no, sockets yes)"),
    help("stable_window", "yes cuts the window of Eq. 3 to where it holds (lab no, sockets yes)"),
    help(
        "initial_packets",
        "packets in R that slow start begins with, 0 to 1000; at least level 1 (lab 0, sockets 10)",
    ),
    help(
        "slow_start_growth",
        "by what slow start multiplies the rate in a slot, 1 to 16; at least one channel (lab 1, sockets 2)",
    ),
    help(
        "confirm_steps",
        "yes, every step of slow start is judged by a whole slot of all its channels (lab no, sockets yes)",
    ),
    help(
        "jitter_packets",
        "packet times by which delay may grow in a slot of slow start beside its 5 % (lab 0, sockets 2)",
    ),
];

/// The configuration of `scheme` with these settings.
pub(super) fn read(
    scheme: &'static str,
    model: Model,
    session: &Session,
    settings: &[Setting],
) -> Result<Config, ConfigError> {
    let mut config = Config::new(model, session.habitat);
    let mut initial = Duration::from_millis(100);
    for setting in settings {
        if setting.key == "initial_rtt" {
            initial = span(setting, MILLI, 10 * SECOND, "a span from 1ms to 10s")?;
        } else {
            apply(scheme, &mut config, setting)?;
        }
    }
    if let RttMethod::Measured { initial: measured } = &mut config.rtt_method {
        *measured = initial;
    }
    Ok(config)
}

fn apply(scheme: &'static str, config: &mut Config, setting: &Setting) -> Result<(), ConfigError> {
    match setting.key.as_str() {
        "tau" => config.tau = span(setting, 10 * MILLI, 10 * SECOND, "a span from 10ms to 10s")?,
        "n_add" => config.n_add = whole(setting, 1, 1_000_000, "a whole number from 1 to 1000000")?,
        "n_drop" => config.n_drop = whole(setting, 0, 1_000_000, "a whole number up to 1000000")?,
        "n_startup" => config.n_startup = whole(setting, 0, 1_000_000, "a whole number up to 1000000")?,
        "gamma_add" => config.gamma_add = number(setting, 0.0, 10.0, "a number from 0 to 10")?,
        "gamma_drop" => config.gamma_drop = number(setting, 0.0, 1.0, "a number from 0 to 1")?,
        "r" => config.aggressiveness = span(setting, MILLI, 10 * SECOND, "a span from 1ms to 10s")?,
        "beta" => config.fixed_beta_packets = number(setting, 1e-3, 1e9, "a number of packets above 0")?,
        "beta_max" => {
            config.beta_rule = one_of(
                setting,
                "literal or sustained",
                &[("literal", BetaRule::Literal), ("sustained", BetaRule::Sustained)],
            )?;
        }
        "beta_span" if setting.value == "tau" => config.beta_span = None,
        "beta_span" => {
            config.beta_span = Some(span(setting, 10 * MILLI, 10 * SECOND, "a span from 10ms to 10s, or tau")?);
        }
        "sync" => {
            config.synchronisation =
                one_of(setting, "weak or none", &[("weak", Synchronisation::Weak), ("none", Synchronisation::None)])?;
        }
        "rtt" => {
            let methods = [
                ("fixed+queuing", RttMethod::FixedPlusQueuing),
                ("fixed", RttMethod::Fixed),
                ("measured", RttMethod::Measured { initial: Duration::ZERO }),
            ];
            config.rtt_method = one_of(setting, "fixed+queuing, fixed or measured", &methods)?;
        }
        "period" => config.period = span(setting, MILLI, SECOND, "a span from 1ms to 1s")?,
        "small_packets" => config.small_packets = yes_or_no(setting)?,
        "delay_window" if setting.value == "all" => config.delay_window = DelayWindow::Everything,
        "delay_window" => {
            let window = span(setting, SECOND, 1_000_000 * SECOND, "a span of 1s or more, or all")?;
            config.delay_window = DelayWindow::Moving(window);
        }
        "reorder" => config.reorder_packets = whole(setting, 0, 100, "a whole number up to 100")?,
        "leave_wait" => config.leave_wait = span(setting, Duration::ZERO, 60 * SECOND, "a span up to 60s")?,
        "first_interval" => {
            let rules = [("counted", FirstInterval::Counted), ("seeded", FirstInterval::Seeded)];
            config.first_interval = one_of(setting, "counted or seeded", &rules)?;
        }
        "startup_from" => {
            let rules = [("join", Startup::Join), ("slow_start_end", Startup::SlowStartEnd)];
            config.startup = one_of(setting, "join or slow_start_end", &rules)?;
        }
        "confirm_startup" => config.confirm_startup = yes_or_no(setting)?,
        "stable_window" => config.stable_window_only = yes_or_no(setting)?,
        "initial_packets" => config.initial_packets = number(setting, 0.0, 1000.0, "a number from 0 to 1000")?,
        "slow_start_growth" => config.slow_start_growth = number(setting, 1.0, 16.0, "a number from 1 to 16")?,
        "confirm_steps" => config.confirm_steps = yes_or_no(setting)?,
        "jitter_packets" => config.jitter_packets = number(setting, 0.0, 1000.0, "a number from 0 to 1000")?,
        _ => return Err(unknown(scheme, setting)),
    }
    Ok(())
}
