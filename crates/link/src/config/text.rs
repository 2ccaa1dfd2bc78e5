//! How descriptions are read: `key=value` pairs between commas, where a value may be a name with a list of its own in
//! parentheses. Not what the keys mean.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::parse_span;

/// A description that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkConfigError {
    /// A part is not `key=value`.
    #[error("{part:?} is not key=value; {of} is described as in {example}")]
    NotAPair {
        /// The part.
        part: String,
        /// What is described.
        of: &'static str,
        /// How it could be.
        example: &'static str,
    },
    /// There is no such key.
    #[error("{of} has no {key:?}; it has {known}")]
    UnknownKey {
        /// What is described.
        of: &'static str,
        /// The key.
        key: String,
        /// The keys that there are.
        known: String,
    },
    /// A key comes twice.
    #[error("{key} is given twice")]
    Repeated {
        /// The key.
        key: &'static str,
    },
    /// The value of a key cannot be used.
    #[error("{key}={value}: expected {expected}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What would have been accepted.
        expected: &'static str,
    },
    /// Values that cannot be used together.
    #[error("{of}: {what}")]
    Inconsistent {
        /// What is described.
        of: &'static str,
        /// What is wrong, and what would be right.
        what: &'static str,
    },
    /// A parenthesis has no partner.
    #[error("the parentheses in {text:?} do not match")]
    Parentheses {
        /// The description.
        text: String,
    },
}

/// Why a value was not taken: it is not what the key expects, or something inside it is wrong.
pub(super) type Refused = Option<LinkConfigError>;

/// A key of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// How it is written.
    pub name: &'static str,
    /// What its value must be.
    pub expected: &'static str,
    /// What it decides.
    pub means: &'static str,
}

impl Key {
    pub(super) const fn new(name: &'static str, expected: &'static str, means: &'static str) -> Key {
        Key { name, expected, means }
    }
}

/// Something that is described by `key=value` pairs.
pub(super) trait Described {
    /// What it is called in messages.
    const OF: &'static str;
    /// A description.
    const EXAMPLE: &'static str;
    /// Its keys.
    const KEYS: &'static [Key];

    /// Takes a value; `key` is one of `KEYS`.
    fn set(&mut self, key: &str, value: &str) -> Result<(), Refused>;

    /// Reads pairs into what is here already.
    fn read(&mut self, text: &str) -> Result<(), LinkConfigError> {
        let mut given = 0u32;
        for part in split(text)?.into_iter().filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| LinkConfigError::NotAPair {
                part: part.to_string(),
                of: Self::OF,
                example: Self::EXAMPLE,
            })?;
            let (key, value) = (key.trim(), value.trim());
            let index = Self::KEYS.iter().position(|known| known.name == key).ok_or_else(|| {
                let known = listed(Self::KEYS.iter().map(|known| known.name));
                LinkConfigError::UnknownKey { of: Self::OF, key: key.to_string(), known }
            })?;
            let Key { name: key, expected, .. } = Self::KEYS[index];
            if given & 1 << index != 0 {
                return Err(LinkConfigError::Repeated { key });
            }
            given |= 1 << index;
            self.set(key, value).map_err(|refused| {
                refused.unwrap_or_else(|| LinkConfigError::BadValue { key, value: value.to_string(), expected })
            })?;
        }
        Ok(())
    }
}

/// The parts between the commas that are in no parentheses.
pub(super) fn split(text: &str) -> Result<Vec<&str>, LinkConfigError> {
    let mut depth = 0u32;
    let mut start = 0;
    let mut parts = Vec::new();
    let unmatched = || LinkConfigError::Parentheses { text: text.to_string() };
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or_else(unmatched)?,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    if depth == 0 { Ok(parts) } else { Err(unmatched()) }
}

/// `name(inside)` or `name`, the inside of which is empty.
pub(super) fn name_and_inside(text: &str) -> Option<(&str, &str)> {
    match text.split_once('(') {
        None => Some((text, "")),
        Some((name, rest)) => Some((name.trim_end(), rest.strip_suffix(')')?.trim())),
    }
}

/// `2%` or `0.02`.
pub(super) fn probability(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    number.trim_end().parse::<f64>().ok().map(|p| p / scale).filter(|p| (0.0..=1.0).contains(p))
}

/// `yes` or `no`.
pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" | "on" | "true" => Some(true),
        "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// A span above zero.
pub(super) fn span_above_zero(text: &str) -> Option<Duration> {
    parse_span(text).ok().filter(|span| *span > Duration::ZERO)
}

/// `a, b and c`.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let last = names.len().saturating_sub(1);
    let mut text = String::new();
    for (i, name) in names.enumerate() {
        text.push_str(if i == 0 {
            ""
        } else if i == last {
            " and "
        } else {
            ", "
        });
        text.push_str(name);
    }
    text
}
