//! A table as CSV (RFC 4180): commas, a line of names, quotes where needed. What is not there is empty.

use super::{Table, Values};

impl Table {
    /// The table as CSV. Numbers read back to the last bit.
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        push_line(&mut text, self.columns.iter().map(|column| quoted(&column.name)));
        for row in 0..self.len() {
            push_line(&mut text, self.columns.iter().map(|column| cell(&column.values, row)));
        }
        text
    }
}

fn push_line(text: &mut String, cells: impl Iterator<Item = String>) {
    text.push_str(&cells.collect::<Vec<_>>().join(","));
    text.push_str("\r\n");
}

fn cell(values: &Values, row: usize) -> String {
    match values {
        Values::Integers(values) => values[row].map_or(String::new(), |value| value.to_string()),
        Values::Numbers(values) => values[row].map_or(String::new(), |value| value.to_string()),
        Values::Words(values) => values[row].as_deref().map_or(String::new(), quoted),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
