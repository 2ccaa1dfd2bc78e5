//! Settings by name, as the command line and scenarios give them.

use core::time::Duration;

use weir_units::{Bytes, Rate};

use super::config::{Config, Growth};
use crate::registry::{ConfigError, Habitat, Setting, SettingHelp};
use crate::settings::{MILLI, SECOND, help, number, one_of, rate, span, unknown, yes_or_no};

/// One line a setting.
pub(super) const HELP: &[SettingHelp] = &[
    help(
        "quirks",
        "ns2, where ns-2's RAP does otherwise do as it does; none. Give it first: what follows it goes on top (none)",
    ),
    help("beta", "what a back-off leaves of the rate, 0.1 to 0.95 (0.5)"),
    help("fine_grain", "yes, the gap follows the ratio of short-term to long-term round-trip time; no (yes)"),
    help("start_up", "how the rate grows until the first congestion: doubling or additive (doubling)"),
    help("ecn", "yes, packets can be marked, and a mark is a loss; no (lab no, sockets yes)"),
    help("initial_rtt", "round-trip time until one is measured, 1ms to 10s (1s)"),
    help("granularity", "what a time-out has at least beside the smoothed round-trip time, up to 10s (100ms)"),
    help("min_rate", "the rate's floor, such as 8k (a packet every two seconds)"),
    help("max_rate", "the rate's ceiling, such as 20M (10G)"),
];

/// The configuration with these settings.
pub(super) fn read(packet_size: Bytes, habitat: Habitat, settings: &[Setting]) -> Result<Config, ConfigError> {
    let mut config = Config::new(packet_size, habitat);
    for setting in settings {
        apply(&mut config, setting)?;
    }
    if config.min_rate > config.max_rate {
        return Err(ConfigError::BadValue {
            key: "min_rate".into(),
            value: alloc::format!("{}", config.min_rate),
            expected: "a rate that is not above max_rate",
        });
    }
    Ok(config)
}

fn apply(config: &mut Config, setting: &Setting) -> Result<(), ConfigError> {
    const SPAN: &str = "a span up to 10s, such as 200ms";
    const RATE: &str = "a rate from 1bit/s to 10G, such as 500k or 20M";
    let (low, high) = (Rate::from_bps(1), Rate::from_mbps(10_000));
    match setting.key.as_str() {
        "quirks" => {
            if one_of(setting, "none or ns2", &[("none", false), ("ns2", true)])? {
                *config = config.as_ns2();
            }
        }
        "beta" => config.decrease = number(setting, 0.1, 0.95, "a number from 0.1 to 0.95")?,
        "fine_grain" => {
            let gains = config.fine_grain.or(Config::new(Bytes::new(1), Habitat::Lab).fine_grain);
            config.fine_grain = if yes_or_no(setting)? { gains } else { None };
        }
        "start_up" => {
            let ways = [("doubling", Growth::Doubling), ("additive", Growth::Additive)];
            config.start_up = one_of(setting, "doubling or additive", &ways)?;
        }
        "ecn" => config.ecn = yes_or_no(setting)?,
        "initial_rtt" => config.timing.initial = span(setting, MILLI, 10 * SECOND, "a span from 1ms to 10s")?,
        "granularity" => config.timing.granularity = span(setting, Duration::ZERO, 10 * SECOND, SPAN)?,
        "min_rate" => config.min_rate = rate(setting, low, high, RATE)?,
        "max_rate" => config.max_rate = rate(setting, low, high, RATE)?,
        _ => return Err(unknown("rap", setting)),
    }
    Ok(())
}
