//! What a setting accepts, as a value: its text is what error messages and help say.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use weir_units::{Rate, show_span};

/// What a setting accepts. Its text is how an error message goes on after "expected".
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The values of a range, if it is a quantity.
    pub range: Option<Range>,
    /// These words.
    pub words: Vec<Word>,
}

/// A word that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: &'static str,
    /// What it means; empty for a word that says it.
    pub means: &'static str,
}

/// The values that a quantity may have.
#[derive(Debug, Clone, PartialEq)]
pub enum Range {
    /// Spans of time.
    Span(RangeInclusive<Duration>),
    /// Rates.
    Rate(RangeInclusive<Rate>),
    /// Lists of rates.
    Rates {
        /// How many there can be.
        most: usize,
        /// Each of them.
        each: RangeInclusive<Rate>,
    },
    /// Whole numbers.
    Whole(RangeInclusive<u64>),
    /// Numbers.
    Number(RangeInclusive<f64>),
}

impl Accepted {
    /// The same text, with what each word means.
    pub(super) fn explained(&self) -> String {
        if self.words.iter().all(|word| word.means.is_empty()) {
            return self.to_string();
        }
        let words: Vec<String> = self.words.iter().map(|word| format!("{}, {}", word.word, word.means)).collect();
        self.with_words(&words.join("; "))
    }

    fn with_words(&self, words: &str) -> String {
        match &self.range {
            Some(range) if self.words.is_empty() => range.to_string(),
            Some(range) => format!("{range}, or {words}"),
            None => String::from(words),
        }
    }
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.words.iter().map(|word| word.word).collect();
        let list = match words.as_slice() {
            [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            words => words.concat(),
        };
        f.write_str(&self.with_words(&list))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Span(span) => {
                f.write_str("a span ")?;
                bounds(f, (!span.start().is_zero()).then(|| show_span(*span.start())), show_span(*span.end()))
            }
            Range::Rate(rate) => {
                f.write_str("a rate such as 500k or 20M, ")?;
                bounds(f, Some(rate.start().exact()), rate.end().exact())
            }
            Range::Rates { most, each } => {
                write!(f, "up to {most} rates such as 150k,300k, each ")?;
                bounds(f, Some(each.start().exact()), each.end().exact())
            }
            Range::Whole(whole) => {
                f.write_str("a whole number ")?;
                bounds(f, (*whole.start() > 0).then_some(whole.start()), whole.end())
            }
            Range::Number(number) => {
                f.write_str("a number ")?;
                bounds(f, Some(number.start()), number.end())
            }
        }
    }
}

/// A lower bound of zero that follows from the kind of quantity is left out.
fn bounds<T: fmt::Display>(f: &mut fmt::Formatter<'_>, low: Option<T>, high: T) -> fmt::Result {
    match low {
        Some(low) => write!(f, "from {low} to {high}"),
        None => write!(f, "up to {high}"),
    }
}
