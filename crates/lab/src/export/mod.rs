//! Results as files that other programs read: JSON, CSV (RFC 4180) and Parquet.
//!
//! JSON is [`Results`] as it is. CSV and Parquet hold a [`Table`]: [`runs`] has one row a run, [`series`] one row a value
//! over time.

mod csv;
mod parquet;
mod table;
mod thrift;

pub use parquet::Parquet;
pub use table::{Column, Table, Values, runs, series};

use crate::results::Results;

/// `results` as JSON, one line.
pub fn json(results: &Results) -> String {
    serde_json::to_string(results).expect("results are numbers and words, with words for keys")
}
