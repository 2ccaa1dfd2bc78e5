//! The file of figures, and how spreads are written.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// `summary.json`: one entry a table.
#[derive(Debug)]
pub(crate) struct Summary {
    path: PathBuf,
    tables: Map<String, Value>,
}

impl Summary {
    /// The figures that are there already, or none.
    pub(crate) fn open(path: &Path) -> Result<Summary, String> {
        let tables = match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| format!("{} is not a summary ({error}): move it away", path.display()))?,
            Err(_) => Map::new(),
        };
        Ok(Summary { path: path.to_owned(), tables })
    }

    /// Puts a table in place of the one that was there.
    pub(crate) fn set(&mut self, table: &str, figures: Value) {
        self.tables.insert(table.to_owned(), figures);
    }

    /// Writes the file.
    pub(crate) fn save(&self) -> Result<(), String> {
        let text = serde_json::to_string_pretty(&self.tables).expect("figures are plain data") + "\n";
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&self.path, text));
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// The least, the middle and the greatest of several figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of at least one figure; of an even number, the middle is the mean of the middle two.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Spread { min: sorted[0], median: f64::midpoint(low, high), max: sorted[sorted.len() - 1] }
    }

    /// For the file.
    pub(crate) fn json(self) -> Value {
        json!({ "min": self.min, "median": self.median, "max": self.max })
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decimals = if self.median < 10.0 { 2 } else { usize::from(self.median < 100.0) };
        write!(f, "{:.decimals$} [{:.decimals$}–{:.decimals$}]", self.median, self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_the_mean_of_two() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0, 10.0]).to_string(), "2.50 [1.00–10.00]");
        assert_eq!(Spread::of([643.4]).to_string(), "643 [643–643]");
    }
}
