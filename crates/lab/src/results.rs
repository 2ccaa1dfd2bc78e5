//! What a scenario's runs gave: one row a run, made of plain numbers. Runs produce it; claims, figures and tables read it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that was measured for one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The scenario's id, such as `avmrc/fig02`.
    pub scenario: String,
    /// One row a run, in the order of the sweep and then of the seeds.
    pub rows: Vec<Row>,
}

/// One run: a point of the sweep, with one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The swept parameters' values, by name.
    pub point: BTreeMap<String, Value>,
    /// The seed.
    pub seed: u64,
    /// What was measured, by the metric's name. A metric that has no value in this run (nobody converged) is absent.
    pub metrics: BTreeMap<String, f64>,
    /// What was measured over time, by name; seconds since the start of the run, and the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
}

/// The value of a swept parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A number: clients, sessions, megabits a second.
    Number(f64),
    /// A word: the name of a scheme, of a variant.
    Word(String),
}

/// As people write it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Word(word) => f.write_str(word),
        }
    }
}
