//! What a scenario file says about itself: its name, its source, its parameters, and over what it goes.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use toml::de::DeTable;

use super::did_you_mean;
use super::values::Text;
use crate::results::Value;

/// The keys of a scenario that are the same for all of its runs. Strings in them are not templates.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The scenario's name, such as `avmrc/fig02`: its path below `scenarios/`.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// The paper, by the name of its page below `docs/papers`; empty for a scenario of the user's own.
    #[serde(default)]
    pub paper: String,
    /// What of the paper it reproduces: `Figure 2`, `Table 1`, `Section 5.1`.
    #[serde(default)]
    pub reproduces: String,
    /// What is set up, what the paper says, and what was chosen where the paper is silent.
    #[serde(default)]
    pub text: String,
    /// How many runs each point gets; they have the seeds 1, 2, 3 … Default 10.
    #[serde(default = "ten")]
    pub seeds: Text<usize>,
    /// Names for numbers and words, to be used as `{name}` in the keys of the set-up.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// Parameters that take several values: a list, or `{ from, to, step }`, or `{ from, to, factor }`. With several, all
    /// combinations are run, the last one changing fastest.
    #[serde(default)]
    pub sweep: BTreeMap<String, Axis>,
    /// Named alternatives, each run at every point of the sweep.
    #[serde(default)]
    pub variant: Vec<Variant>,
    /// What follows from the value of a parameter, by parameter and value: `[case.queue.CoDel]` with lines as in a variant's `set`.
    /// A parameter that has cases takes no other values.
    #[serde(default)]
    pub case: BTreeMap<String, Cases>,
}

/// What is set for each value of a parameter.
pub type Cases = BTreeMap<String, Assignments>;

/// Parameters by name, or any key of the set-up by its path, and what they are set to.
pub type Assignments = BTreeMap<String, Value>;

/// A named alternative.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name that tables, claims and figures know it by.
    pub name: String,
    /// What it sets: parameters by name, or any key of the set-up by its path, such as `session.main.settings.tau`.
    #[serde(default)]
    pub set: Assignments,
    /// How many runs its points get. Default: the scenario's `seeds`.
    pub seeds: Option<Text<usize>>,
}

/// The values of a swept parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis(pub Vec<Value>);

/// An axis by its ends.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: f64,
    to: f64,
    step: Option<f64>,
    factor: Option<f64>,
}

impl Range {
    fn values(&self) -> Result<Vec<Value>, &'static str> {
        const MOST: usize = 10_000;
        let at: Box<dyn Fn(usize) -> f64> = match (self.step, self.factor) {
            (Some(step), None) if step > 0.0 => Box::new(move |i| self.from + step * i as f64),
            (None, Some(factor)) if factor > 1.0 && self.from > 0.0 => {
                Box::new(move |i| self.from * weir_units::math::pow(factor, i as f64))
            }
            _ => return Err("a range has from, to, and either step above 0 or factor above 1"),
        };
        // The last value may be missed by rounding: half a millionth of it is allowed.
        let last = self.to + 5e-7 * self.to.abs();
        let values: Vec<Value> = (0..=MOST).map(at).take_while(|value| *value <= last).map(tidy).collect();
        if values.is_empty() || values.len() > MOST { Err("a range has 1 to 10000 values") } else { Ok(values) }
    }
}

/// Without the dust of binary fractions: 0.30000000000000004 is 0.3.
fn tidy(value: f64) -> Value {
    Value::Number(format!("{value:.12}").parse().unwrap_or(value))
}

impl<'de> Deserialize<'de> for Axis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Axis, D::Error> {
        deserializer.deserialize_any(AxisVisitor)
    }
}

struct AxisVisitor;

impl<'de> Visitor<'de> for AxisVisitor {
    type Value = Axis;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values, or { from, to, step }, or { from, to, factor }")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Axis, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        if list.is_empty() { Err(serde::de::Error::custom("a sweep needs a value")) } else { Ok(Axis(list)) }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Axis, A::Error> {
        let range = Range::deserialize(MapAccessDeserializer::new(map))?;
        range.values().map(Axis).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Axis {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "values".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "a list such as [1, 2, 4] or [\"a\", \"b\"], or { from = 3, to = 10, step = 1 }, or { from = 1, to = 64, factor = 2 }"
        })
    }
}

impl Head {
    /// What the types alone do not say.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(twice) = self.sweep.keys().find(|name| self.parameters.contains_key(*name)) {
            return Err(format!("{twice:?} is both a parameter and swept"));
        }
        for (i, variant) in self.variant.iter().enumerate() {
            if self.variant[..i].iter().any(|other| other.name == variant.name) {
                return Err(format!("two variants are called {:?}", variant.name));
            }
        }
        if let Some(unknown) = self.case.keys().find(|name| !self.knows(name)) {
            let names = self.parameters.keys().chain(self.sweep.keys()).map(String::as_str);
            return Err(format!("case.{unknown}: there is no such parameter{}", did_you_mean(unknown, names)));
        }
        let each = self.variant.iter().filter_map(|variant| variant.seeds);
        if each.chain([self.seeds]).any(|seeds| seeds.0 == 0) {
            Err("seeds must be 1 or more".to_owned())
        } else {
            Ok(())
        }
    }
}

impl Head {
    /// What follows from these parameters, and from which of them.
    pub(super) fn cases_of(&self, parameters: &BTreeMap<String, Value>) -> Result<Vec<(String, &Assignments)>, String> {
        let of = |(name, cases): (&String, &'_ Cases)| {
            let value = parameters.get(name).map(ToString::to_string).unwrap_or_default();
            match cases.get_key_value(&value) {
                Some((value, _)) => Ok((format!("case.{name}.{value:?}"), &self.case[name][value])),
                None => {
                    let suggestion = did_you_mean(&value, cases.keys().map(String::as_str));
                    let list: Vec<&str> = cases.keys().map(String::as_str).collect();
                    Err(format!("{name} is {value:?}, and has the cases {}{suggestion}", list.join(", ")))
                }
            }
        };
        self.case.iter().map(of).collect()
    }

    fn knows(&self, parameter: &str) -> bool {
        self.parameters.contains_key(parameter) || self.sweep.contains_key(parameter)
    }
}

/// Swept parameters as they follow each other in the file.
pub(super) fn axes_in_order(head: &DeTable<'_>) -> Vec<String> {
    let sweep = head.get("sweep").and_then(|value| value.get_ref().as_table());
    let mut axes: Vec<(usize, String)> =
        sweep.into_iter().flatten().map(|(key, _)| (key.span().start, key.get_ref().to_string())).collect();
    axes.sort();
    axes.into_iter().map(|(_, name)| name).collect()
}

/// The keys of [`Head`].
pub(super) const HEAD_KEYS: [&str; 10] =
    ["id", "title", "paper", "reproduces", "text", "seeds", "parameters", "sweep", "variant", "case"];

fn ten() -> Text<usize> {
    Text(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Result<Vec<f64>, String> {
        let axis = Axis::deserialize(toml::de::ValueDeserializer::parse(text).expect("TOML"));
        let values = axis.map_err(|error| error.message().to_owned())?.0;
        Ok(values.iter().filter_map(|value| if let Value::Number(n) = value { Some(*n) } else { None }).collect())
    }

    #[test]
    fn ranges_go_by_steps_or_by_factors_and_reach_their_end() {
        assert_eq!(axis("{ from = 0, to = 0.9, step = 0.1 }").map(|values| values.len()), Ok(10));
        assert_eq!(axis("{ from = 0, to = 0.3, step = 0.1 }"), Ok(vec![0.0, 0.1, 0.2, 0.3]));
        assert_eq!(axis("{ from = 1, to = 64, factor = 2 }"), Ok(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]));
        assert_eq!(axis("[3, 4.5]"), Ok(vec![3.0, 4.5]));
    }

    #[test]
    fn endless_and_empty_ranges_are_refused() {
        for text in ["{ from = 1, to = 2 }", "{ from = 1, to = 2, step = 0 }", "{ from = 2, to = 1, step = 1 }", "[]"] {
            assert!(axis(text).is_err(), "{text}");
        }
        assert!(axis("{ from = 0, to = 1e9, step = 1 }").is_err());
    }
}
