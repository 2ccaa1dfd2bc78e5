//! Arithmetic in scenario files: `1.5 * sessions`, `round(37.5 * share)`. Numbers and parameters only; no units, no conditions.

use std::collections::BTreeMap;

use super::error::did_you_mean;
use crate::results::Value;

/// The value of `text` with these parameters. A parameter alone may be a word; in arithmetic all must be numbers.
pub(super) fn evaluate(text: &str, parameters: &BTreeMap<String, Value>) -> Result<Value, String> {
    if let Some(word @ Value::Word(_)) = parameters.get(text.trim()) {
        return Ok(word.clone());
    }
    let mut parser = Parser { rest: text.trim(), parameters };
    let value = parser.sum()?;
    if !parser.rest.is_empty() {
        return Err(format!("cannot read {:?} in {text:?}", parser.rest));
    }
    if !value.is_finite() {
        return Err(format!("{text:?} is not a finite number"));
    }
    Ok(Value::Number(value))
}

struct Parser<'a> {
    rest: &'a str,
    parameters: &'a BTreeMap<String, Value>,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.takes('+') {
                value += self.product()?;
            } else if self.takes('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.factor()?;
        loop {
            if self.takes('*') {
                value *= self.factor()?;
            } else if self.takes('/') {
                value /= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        if self.takes('-') {
            return Ok(-self.factor()?);
        }
        if self.takes('(') {
            let value = self.sum()?;
            return self.expects(')').map(|()| value);
        }
        let word = self.word();
        if word.is_empty() {
            return Err(match self.rest {
                "" => "an expression ends too early".to_owned(),
                rest => format!("expected a number or a parameter before {rest:?}"),
            });
        }
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return word.parse().map_err(|_| format!("{word:?} is not a number"));
        }
        if self.takes('(') {
            return self.function(word);
        }
        match self.parameters.get(word) {
            Some(Value::Number(number)) => Ok(*number),
            Some(Value::Word(value)) => Err(format!("{word} is the word {value:?}, not a number")),
            None => {
                let names = self.parameters.keys().map(String::as_str);
                Err(format!("there is no parameter {word:?}{}", did_you_mean(word, names)))
            }
        }
    }

    fn function(&mut self, name: &str) -> Result<f64, String> {
        let first = self.sum()?;
        let second = if self.takes(',') { Some(self.sum()?) } else { None };
        self.expects(')')?;
        match (name, second) {
            ("round", None) => Ok(weir_units::math::round(first)),
            ("floor", None) => Ok(first.floor()),
            ("ceil", None) => Ok(first.ceil()),
            ("min", Some(second)) => Ok(first.min(second)),
            ("max", Some(second)) => Ok(first.max(second)),
            _ => Err(format!("{name} is none of round(a), floor(a), ceil(a), min(a, b), max(a, b)")),
        }
    }

    /// The longest run of letters, digits, `_` and `.` at the front.
    fn word(&mut self) -> &'a str {
        let belongs = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn takes(&mut self, symbol: char) -> bool {
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expects(&mut self, symbol: char) -> Result<(), String> {
        if self.takes(symbol) { Ok(()) } else { Err(format!("expected {symbol:?} before {:?}", self.rest)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameters() -> BTreeMap<String, Value> {
        let word = Value::Word("avmrc".to_owned());
        BTreeMap::from([("sessions".to_owned(), Value::Number(4.0)), ("scheme".to_owned(), word)])
    }

    fn number(text: &str) -> f64 {
        match evaluate(text, &parameters()) {
            Ok(Value::Number(number)) => number,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn arithmetic_has_its_usual_precedence() {
        assert_eq!(number("1.5 * sessions"), 6.0);
        assert_eq!(number("1 + 2 * sessions - 6 / 3"), 7.0);
        assert_eq!(number("-(1 + sessions) * 2"), -10.0);
        assert_eq!(number("10 - 4 - 3"), 3.0);
        assert_eq!(number("max(round(2.6), min(1, sessions))"), 3.0);
    }

    #[test]
    fn a_parameter_alone_may_be_a_word() {
        assert_eq!(evaluate(" scheme ", &parameters()), Ok(Value::Word("avmrc".to_owned())));
        assert!(evaluate("scheme * 2", &parameters()).expect_err("words do not multiply").contains("\"avmrc\""));
    }

    #[test]
    fn errors_name_the_part_and_the_likely_parameter() {
        let error = |text: &str| evaluate(text, &parameters()).expect_err("must be refused");
        assert_eq!(error("2 * sesions"), "there is no parameter \"sesions\"; did you mean \"sessions\"?");
        assert_eq!(error("1 +"), "an expression ends too early");
        assert!(error("(1 + 2").contains("')'") && error("1 2").contains("\"2\"") && error("1 / 0").contains("finite"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = evaluate(&text, &parameters());
        }
    }
}
