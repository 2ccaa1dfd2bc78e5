//! Which points of a sweep are meant.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::Band;
use crate::results::Value;

/// What each named parameter must be; all must agree. Empty, it takes every point.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub struct Selection(pub BTreeMap<String, Wanted>);

/// What a parameter must be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// This value.
    Is(Value),
    /// One of these.
    Among(Vec<Value>),
    /// A number in this band.
    Within(Band),
}

impl Selection {
    /// Whether the point is one of those meant. A point without a parameter that is asked for is not.
    pub fn takes(&self, point: &BTreeMap<String, Value>) -> bool {
        self.0.iter().all(|(name, wanted)| point.get(name).is_some_and(|value| wanted.takes(value)))
    }
}

impl Wanted {
    fn takes(&self, value: &Value) -> bool {
        match self {
            Wanted::Is(wanted) => same(wanted, value),
            Wanted::Among(list) => list.iter().any(|wanted| same(wanted, value)),
            Wanted::Within(band) => number(value).is_some_and(|number| band.contains(number)),
        }
    }
}

/// Whether two values are meant to be the same: words letter by letter, numbers but for the dust of decimal fractions.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        (Value::Word(a), Value::Word(b)) => a == b,
        _ => false,
    }
}

/// The value, if it is a number.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Word(_) => None,
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, wanted)| format!("{name} {wanted}")).collect();
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Is(value) => write!(f, "= {value}"),
            Wanted::Among(list) => {
                write!(f, "in {}", list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            Wanted::Within(band) => write!(f, "{band}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(json: &str) -> Selection {
        serde_json::from_str(json).expect("a selection")
    }

    fn point(variant: &str, clients: f64) -> BTreeMap<String, Value> {
        let variant = ("variant".to_owned(), Value::Word(variant.to_owned()));
        BTreeMap::from([variant, ("clients".to_owned(), Value::Number(clients))])
    }

    #[test]
    fn all_conditions_must_agree() {
        let selection = selection(r#"{"variant":["avmrc","rmrc"],"clients":{"min":2,"below":64}}"#);
        assert!(selection.takes(&point("avmrc", 2.0)) && selection.takes(&point("rmrc", 32.0)));
        assert!(!selection.takes(&point("vmrc", 2.0)) && !selection.takes(&point("avmrc", 64.0)));
        assert_eq!(selection.to_string(), "clients ≥ 2, < 64, variant in avmrc, rmrc");
    }

    #[test]
    fn a_point_without_the_parameter_is_not_meant() {
        assert!(!selection(r#"{"shares":0.3}"#).takes(&point("avmrc", 1.0)));
        assert!(selection("{}").takes(&point("avmrc", 1.0)));
    }

    #[test]
    fn decimal_fractions_are_found_in_spite_of_their_dust() {
        let share = BTreeMap::from([("share".to_owned(), Value::Number(0.1 + 0.2))]);
        assert!(selection(r#"{"share":0.3}"#).takes(&share) && !selection(r#"{"share":0.3001}"#).takes(&share));
    }

    #[test]
    fn a_word_is_never_in_a_band() {
        assert!(!selection(r#"{"variant":{"min":0}}"#).takes(&point("avmrc", 1.0)));
    }
}
