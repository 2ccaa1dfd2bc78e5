//! What is wrong with a scenario file, and where: file, line, and the key that was probably meant.

use std::fmt;
use std::ops::Range;

/// A scenario that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1; `None` if the fault is not in the file.
    pub line: Option<usize>,
    /// What is wrong, and what was probably meant.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// A scenario's text with its name, to say where a fault is.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) file: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn error(&self, span: Option<Range<usize>>, message: impl Into<String>) -> ScenarioError {
        let line = span.filter(|span| *span != ELSEWHERE && span.start <= self.text.len());
        let line =
            line.map(|span| 1 + self.text.as_bytes()[..span.start].iter().filter(|byte| **byte == b'\n').count());
        ScenarioError { file: self.file.clone(), line, message: message.into() }
    }

    /// An error of the TOML reader, with a suggestion if it is about a key or a choice that does not exist.
    pub(super) fn toml(&self, error: &toml::de::Error) -> ScenarioError {
        let message = error.message().trim_end();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let message = match (message.starts_with("unknown field"), message.starts_with("unknown variant"), &quoted[..])
        {
            (true, _, [key, known @ ..]) => {
                format!("unknown key {key:?}{}", did_you_mean(key, known.iter().copied()))
            }
            (_, true, [choice, known @ ..]) => {
                let list = known.join(", ");
                format!("{choice:?} is none of {list}{}", did_you_mean(choice, known.iter().copied()))
            }
            _ => message.replace('`', "\"").replace("missing field", "missing key"),
        };
        self.error(error.span(), message)
    }
}

/// The span of what did not come from the file (`--set`, a variant's assignments).
pub(super) const ELSEWHERE: Range<usize> = usize::MAX..usize::MAX;

/// `; did you mean "receivers"?`, or nothing if no candidate is near.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let near = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate)).min();
    match near {
        Some((distance, candidate)) if distance <= 1 + word.chars().count() / 3 => {
            format!("; did you mean {candidate:?}?")
        }
        _ => String::new(),
    }
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        assert_eq!(did_you_mean("recievers", ["receivers", "rtt"]), "; did you mean \"receivers\"?");
        assert_eq!(did_you_mean("rt", ["receivers", "rtt"]), "; did you mean \"rtt\"?");
        assert_eq!(did_you_mean("colour", ["receivers", "rtt"]), "");
        assert_eq!(did_you_mean("x", []), "");
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(distance("recieve", "receive"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_line_is_counted_from_one() {
        let source = Source { file: "a.toml".to_owned(), text: "x = 1\ny = 2\n".to_owned() };
        assert_eq!(source.error(Some(6..7), "no").to_string(), "a.toml:2: no");
        assert_eq!(source.error(Some(ELSEWHERE), "no").to_string(), "a.toml: no");
    }
}
