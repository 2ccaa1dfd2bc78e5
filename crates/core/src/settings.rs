//! The settings of schemes. A scheme declares each of its settings once, as an [`Entry`] of a table: the name, what it does,
//! what is accepted, and which field of the configuration it is. Parsing, error messages and help are computed from that.
//! The defaults in the help are what the configurations of the two habitats hold.

mod accepted;
mod value;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

pub use accepted::{Accepted, Range, Word};
pub(crate) use value::{OneOf, Preset, RatesOr, Value, Within, WithinOr, YES_OR_NO};

use crate::error::ConfigError;

/// One setting of a scheme, as the user gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name.
    pub key: String,
    /// Value, in the units that the name tells.
    pub value: String,
}

/// Help about a setting. Its text says what the setting does, what is accepted, and the default.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingHelp {
    /// Name.
    pub key: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What is accepted.
    pub accepted: Accepted,
    /// The default in the laboratory.
    pub lab: String,
    /// The default on real sockets.
    pub sockets: String,
}

impl fmt::Display for SettingHelp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SettingHelp { help, accepted, lab, sockets, .. } = self;
        write!(f, "{help}: {} ", accepted.explained())?;
        if lab == sockets { write!(f, "({lab})") } else { write!(f, "(lab {lab}, sockets {sockets})") }
    }
}

/// The declaration of a setting of the schemes whose configuration is a `C`.
pub(crate) struct Entry<C: 'static> {
    pub(crate) key: &'static str,
    /// What it does.
    pub(crate) help: &'static str,
    pub(crate) value: &'static dyn Value<C>,
}

/// The settings of a scheme, in groups that several schemes can share.
pub(crate) type Table<C> = &'static [&'static [Entry<C>]];

fn entries<C>(table: Table<C>) -> impl Iterator<Item = &'static Entry<C>> {
    table.iter().copied().flatten()
}

/// The configuration `defaults` of `scheme`, changed by these settings: by presets first, whatever their order, and of two
/// with one name the later counts.
pub(crate) fn read<C>(
    scheme: &'static str,
    table: Table<C>,
    defaults: C,
    settings: &[Setting],
) -> Result<C, ConfigError> {
    let mut config = defaults;
    let find = |setting: &'_ Setting| {
        let entry = entries(table).find(|entry| entry.key == setting.key);
        entry.ok_or_else(|| ConfigError::UnknownSetting { scheme, key: setting.key.clone() })
    };
    let mut chosen = settings.iter().map(|setting| Ok((find(setting)?, setting))).collect::<Result<Vec<_>, _>>()?;
    chosen.sort_by_key(|(entry, _)| !entry.value.is_preset());
    for (entry, Setting { key, value }) in chosen {
        if !entry.value.set(&mut config, value) {
            let expected = format!("{}", entry.value.accepted());
            return Err(ConfigError::BadValue { key: key.clone(), value: value.clone(), expected });
        }
    }
    Ok(config)
}

/// Help about the settings of `table`, whose defaults are those of the configurations `lab` and `sockets`.
pub(crate) fn help<C>(table: Table<C>, mut lab: C, mut sockets: C) -> Vec<SettingHelp> {
    entries(table)
        .map(|Entry { key, help, value }| SettingHelp {
            key,
            help,
            accepted: value.accepted(),
            lab: value.show(&mut lab),
            sockets: value.show(&mut sockets),
        })
        .collect()
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[cfg(test)]
pub(crate) mod tests;
