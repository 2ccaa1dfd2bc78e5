//! How schemes read the values of their settings: each reader checks a range and says what it would have accepted.

use alloc::string::ToString;
use core::time::Duration;

use weir_units::{Rate, parse_span};

use crate::registry::{ConfigError, Setting, SettingHelp};

/// A line of help.
pub(crate) const fn help(key: &'static str, help: &'static str) -> SettingHelp {
    SettingHelp { key, help }
}

/// `scheme` does not have the setting.
pub(crate) fn unknown(scheme: &'static str, setting: &Setting) -> ConfigError {
    ConfigError::UnknownSetting { scheme, key: setting.key.clone() }
}

fn bad(setting: &Setting, expected: &'static str) -> ConfigError {
    ConfigError::BadValue { key: setting.key.to_string(), value: setting.value.to_string(), expected }
}

pub(crate) fn span(
    setting: &Setting,
    low: Duration,
    high: Duration,
    expected: &'static str,
) -> Result<Duration, ConfigError> {
    parse_span(&setting.value).ok().filter(|span| (low..=high).contains(span)).ok_or_else(|| bad(setting, expected))
}

pub(crate) fn rate(setting: &Setting, low: Rate, high: Rate, expected: &'static str) -> Result<Rate, ConfigError> {
    setting.value.parse().ok().filter(|rate| (low..=high).contains(rate)).ok_or_else(|| bad(setting, expected))
}

pub(crate) fn whole(setting: &Setting, low: u64, high: u64, expected: &'static str) -> Result<u64, ConfigError> {
    setting.value.parse().ok().filter(|value| (low..=high).contains(value)).ok_or_else(|| bad(setting, expected))
}

pub(crate) fn number(setting: &Setting, low: f64, high: f64, expected: &'static str) -> Result<f64, ConfigError> {
    setting.value.parse().ok().filter(|value| (low..=high).contains(value)).ok_or_else(|| bad(setting, expected))
}

pub(crate) fn one_of<T: Copy>(
    setting: &Setting,
    expected: &'static str,
    choices: &[(&str, T)],
) -> Result<T, ConfigError> {
    let choice = choices.iter().find(|(name, _)| *name == setting.value);
    choice.map(|(_, value)| *value).ok_or_else(|| bad(setting, expected))
}

pub(crate) fn yes_or_no(setting: &Setting) -> Result<bool, ConfigError> {
    one_of(setting, "yes or no", &[("yes", true), ("no", false)])
}

pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
