//! Results as columns.

use std::collections::BTreeSet;

use crate::results::{Results, Row, Value};

/// Columns of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub values: Values,
}

/// The values of a column; `None` where a run has none.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<Option<i64>>),
    /// Numbers.
    Numbers(Vec<Option<f64>>),
    /// Words.
    Words(Vec<Option<String>>),
}

impl Values {
    /// How many, those that are none included.
    pub fn len(&self) -> usize {
        match self {
            Values::Integers(values) => values.len(),
            Values::Numbers(values) => values.len(),
            Values::Words(values) => values.len(),
        }
    }

    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// Rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One row a run: scenario, swept parameters, seed, metrics.
pub fn runs(results: &Results) -> Table {
    let rows: Vec<&Row> = results.rows.iter().collect();
    let mut columns = coordinates(&results.scenario, &rows);
    let metrics: BTreeSet<&String> = rows.iter().flat_map(|row| row.metrics.keys()).collect();
    for name in metrics {
        let values = rows.iter().map(|row| row.metrics.get(name).copied()).collect();
        columns.push(Column { name: name.clone(), values: Values::Numbers(values) });
    }
    Table { columns }
}

/// One row a value over time: scenario, swept parameters, seed, the series' name, seconds, value.
pub fn series(results: &Results) -> Table {
    let mut rows = Vec::new();
    let (mut names, mut times, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for row in &results.rows {
        for (name, points) in &row.series {
            for (time, value) in points {
                rows.push(row);
                names.push(Some(name.clone()));
                times.push(Some(*time));
                values.push(Some(*value));
            }
        }
    }
    let mut columns = coordinates(&results.scenario, &rows);
    columns.push(Column { name: "series".to_owned(), values: Values::Words(names) });
    columns.push(Column { name: "time_s".to_owned(), values: Values::Numbers(times) });
    columns.push(Column { name: "value".to_owned(), values: Values::Numbers(values) });
    Table { columns }
}

/// What tells the rows apart.
fn coordinates(scenario: &str, rows: &[&Row]) -> Vec<Column> {
    let id = rows.iter().map(|_| Some(scenario.to_owned())).collect();
    let mut columns = vec![Column { name: "scenario".to_owned(), values: Values::Words(id) }];
    let parameters: BTreeSet<&String> = rows.iter().flat_map(|row| row.point.keys()).collect();
    for name in parameters {
        let values: Vec<Option<&Value>> = rows.iter().map(|row| row.point.get(name)).collect();
        columns.push(Column { name: name.clone(), values: parameter(&values) });
    }
    let seeds = rows.iter().map(|row| i64::try_from(row.seed).ok()).collect();
    columns.push(Column { name: "seed".to_owned(), values: Values::Integers(seeds) });
    columns
}

/// Numbers if all are, or else words.
fn parameter(values: &[Option<&Value>]) -> Values {
    if values.iter().flatten().all(|value| matches!(value, Value::Number(_))) {
        let number = |value: &Option<&Value>| match value {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        };
        return Values::Numbers(values.iter().map(number).collect());
    }
    let word = |value: &Option<&Value>| match value {
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Word(word)) => Some(word.clone()),
        None => None,
    };
    Values::Words(values.iter().map(word).collect())
}
