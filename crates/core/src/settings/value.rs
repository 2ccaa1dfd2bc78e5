//! The kinds of settings: how the value of each is read, checked, shown, and stored in a field of the configuration.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use weir_units::{Rate, parse_span, show_span};

use super::accepted::{Accepted, Range, Word};

/// The value of a setting of the configuration `C`.
pub(crate) trait Value<C> {
    /// Stores what `text` says; false, and nothing is stored, if that is not accepted.
    #[must_use]
    fn set(&self, config: &mut C, text: &str) -> bool;

    /// What is stored, as a text that [`Value::set`] takes.
    fn show(&self, config: &mut C) -> String;

    /// What is accepted.
    fn accepted(&self) -> Accepted;

    /// Whether it changes other settings, which then go on top.
    fn is_preset(&self) -> bool {
        false
    }
}

/// The field of a configuration that a setting is.
type Field<C, T> = fn(&mut C) -> &mut T;

/// A quantity within a range.
pub(crate) struct Within<C, T> {
    pub(crate) range: RangeInclusive<T>,
    pub(crate) field: Field<C, T>,
}

impl<C, T: Quantity> Value<C> for Within<C, T> {
    fn set(&self, config: &mut C, text: &str) -> bool {
        store((self.field)(config), read(&self.range, text))
    }

    fn show(&self, config: &mut C) -> String {
        (self.field)(config).show()
    }

    fn accepted(&self) -> Accepted {
        Accepted { range: Some(T::range(self.range.clone())), words: Vec::new() }
    }
}

/// A quantity within a range, or a word for something else, which the field has as `None`.
pub(crate) struct WithinOr<C, T, F> {
    pub(crate) word: &'static str,
    /// What the word means.
    pub(crate) means: &'static str,
    pub(crate) range: RangeInclusive<T>,
    pub(crate) field: Field<C, F>,
}

impl<C, T: Quantity, F: Copy + From<Option<T>> + Into<Option<T>>> Value<C> for WithinOr<C, T, F> {
    fn set(&self, config: &mut C, text: &str) -> bool {
        let value = if text == self.word { Some(None) } else { read(&self.range, text).map(Some) };
        store((self.field)(config), value.map(F::from))
    }

    fn show(&self, config: &mut C) -> String {
        let value: Option<T> = (*(self.field)(config)).into();
        value.map_or_else(|| self.word.to_string(), |value| value.show())
    }

    fn accepted(&self) -> Accepted {
        let words = [Word { word: self.word, means: self.means }].into();
        Accepted { range: Some(T::range(self.range.clone())), words }
    }
}

/// Rates, separated by commas and each within a range, or a word for none.
pub(crate) struct RatesOr<C, L> {
    pub(crate) word: &'static str,
    /// What the word means.
    pub(crate) means: &'static str,
    pub(crate) range: RangeInclusive<Rate>,
    /// How many there can be.
    pub(crate) most: usize,
    pub(crate) list: fn(&[Rate]) -> Option<L>,
    pub(crate) rates: fn(&L) -> &[Rate],
    pub(crate) field: Field<C, Option<L>>,
}

impl<C, L> Value<C> for RatesOr<C, L> {
    fn set(&self, config: &mut C, text: &str) -> bool {
        if text == self.word {
            return store((self.field)(config), Some(None));
        }
        // One more than there can be is enough to refuse them.
        let rates: Option<Vec<Rate>> =
            text.split(',').take(self.most + 1).map(|rate| read(&self.range, rate)).collect();
        let list = rates.filter(|rates| rates.len() <= self.most).and_then(|rates| (self.list)(&rates));
        store((self.field)(config), list.map(Some))
    }

    fn show(&self, config: &mut C) -> String {
        let Some(list) = (self.field)(config) else { return self.word.to_string() };
        let rates: Vec<String> = (self.rates)(list).iter().map(Quantity::show).collect();
        rates.join(",")
    }

    fn accepted(&self) -> Accepted {
        let words = [Word { word: self.word, means: self.means }].into();
        Accepted { range: Some(Range::Rates { most: self.most, each: self.range.clone() }), words }
    }
}

/// A word, what it means, and the value that it stands for.
pub(crate) type Choice<T> = (&'static str, &'static str, T);

/// One of some words.
pub(crate) struct OneOf<C, T: 'static> {
    pub(crate) words: &'static [Choice<T>],
    pub(crate) field: Field<C, T>,
}

/// The words of a setting whose help begins with "whether".
pub(crate) const YES_OR_NO: &[Choice<bool>] = &[("yes", "", true), ("no", "", false)];

impl<C, T: Copy + PartialEq> Value<C> for OneOf<C, T> {
    fn set(&self, config: &mut C, text: &str) -> bool {
        let chosen = self.words.iter().find(|(word, ..)| *word == text);
        store((self.field)(config), chosen.map(|(.., value)| *value))
    }

    fn show(&self, config: &mut C) -> String {
        let stored = *(self.field)(config);
        let chosen = self.words.iter().find(|(.., value)| *value == stored);
        chosen.expect("every value of a choice has a word").0.to_string()
    }

    fn accepted(&self) -> Accepted {
        Accepted { range: None, words: words(self.words) }
    }
}

/// One of some words that each change any number of fields. The first changes none, and is the default.
pub(crate) struct Preset<C: 'static> {
    pub(crate) words: &'static [Choice<fn(&mut C)>],
}

impl<C> Value<C> for Preset<C> {
    fn set(&self, config: &mut C, text: &str) -> bool {
        let chosen = self.words.iter().find(|(word, ..)| *word == text);
        chosen.map(|(.., change)| change(config)).is_some()
    }

    fn show(&self, _config: &mut C) -> String {
        self.words[0].0.to_string()
    }

    fn accepted(&self) -> Accepted {
        Accepted { range: None, words: words(self.words) }
    }

    fn is_preset(&self) -> bool {
        true
    }
}

fn read<T: Quantity>(range: &RangeInclusive<T>, text: &str) -> Option<T> {
    T::read(text).filter(|value| range.contains(value))
}

fn store<T>(field: &mut T, value: Option<T>) -> bool {
    value.map(|value| *field = value).is_some()
}

fn words<T>(choices: &[Choice<T>]) -> Vec<Word> {
    choices.iter().map(|(word, means, _)| Word { word, means }).collect()
}

/// What a value can be a quantity of.
pub(crate) trait Quantity: Copy + PartialOrd {
    fn read(text: &str) -> Option<Self>;

    /// The text that [`Quantity::read`] takes for it.
    fn show(&self) -> String;

    fn range(range: RangeInclusive<Self>) -> Range;
}

impl Quantity for Duration {
    fn read(text: &str) -> Option<Duration> {
        parse_span(text).ok()
    }

    fn show(&self) -> String {
        show_span(*self).to_string()
    }

    fn range(range: RangeInclusive<Duration>) -> Range {
        Range::Span(range)
    }
}

impl Quantity for Rate {
    fn read(text: &str) -> Option<Rate> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.exact().to_string()
    }

    fn range(range: RangeInclusive<Rate>) -> Range {
        Range::Rate(range)
    }
}

impl Quantity for u64 {
    fn read(text: &str) -> Option<u64> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn range(range: RangeInclusive<u64>) -> Range {
        Range::Whole(range)
    }
}

impl Quantity for f64 {
    fn read(text: &str) -> Option<f64> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn range(range: RangeInclusive<f64>) -> Range {
        Range::Number(range)
    }
}
