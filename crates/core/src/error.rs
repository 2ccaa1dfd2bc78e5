//! Why something cannot be configured.

use alloc::string::String;

use weir_units::Rate;

/// A configuration that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No scheme has this name.
    #[error("there is no scheme {name:?}; there are {known}")]
    UnknownScheme {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The scheme is for something else.
    #[error("{scheme} is not a scheme for {what}")]
    NotFor {
        /// The scheme.
        scheme: &'static str,
        /// What it was wanted for.
        what: &'static str,
    },
    /// The scheme has no such setting.
    #[error("{scheme} has no setting {key:?}")]
    UnknownSetting {
        /// The scheme.
        scheme: &'static str,
        /// The setting asked for.
        key: String,
    },
    /// The value of a setting cannot be used.
    #[error("setting {key}={value}: expected {expected}")]
    BadValue {
        /// The setting.
        key: String,
        /// The value given.
        value: String,
        /// What would have been accepted.
        expected: String,
    },
    /// The scheme makes another number of channels than the session has.
    #[error(
        "{scheme} makes {made} channels of the session's rates and settings, and the session has {given}: \
         let the sender describe it again, with the version of weir that receives it"
    )]
    WrongChannels {
        /// The scheme.
        scheme: &'static str,
        /// How many it makes.
        made: usize,
        /// How many there are.
        given: usize,
    },
    /// The ladder of rates cannot be made.
    #[error("rates {low} to {high} at ratio {ratio}: {reason}")]
    BadLadder {
        /// Lowest rate.
        low: Rate,
        /// Highest rate.
        high: Rate,
        /// Ratio asked for.
        ratio: String,
        /// What is wrong.
        reason: &'static str,
    },
}
