//! Which start of a sender this is: a number that grows with each, whatever the clock does, as receivers never go back to an
//! earlier one.
//!
//! It is the wall clock's milliseconds, or one more than the last number, which is kept next to the key.

use std::path::{Path, PathBuf};

use weir_net::clock::Clock;

/// The number of this start. What keeps it from being remembered is said in words: then the clock alone decides about the next.
pub(crate) fn next(key: Option<&Path>) -> (u64, Option<String>) {
    let clock = Clock::new();
    let now = clock.unix_nanos(clock.now()) / 1_000_000;
    key.map_or((now, None), |key| after(&beside(key), now))
}

/// The number after that in the file, and not before `now`.
fn after(path: &Path, now: u64) -> (u64, Option<String>) {
    let last = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let epoch = last.map_or(now, |last| now.max(last.saturating_add(1)));
    let new = beside(path);
    let written = std::fs::write(&new, format!("{epoch}\n")).and_then(|()| std::fs::rename(&new, path));
    let trouble = written.err().map(|error| {
        let path = path.display();
        format!("cannot write {path}: {error}; if the clock is ever set back, receivers will take the next start for an old one")
    });
    (epoch, trouble)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".epoch");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_has_a_higher_number_even_if_the_clock_is_set_back() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("key.epoch");
        assert_eq!(after(&path, 1_000), (1_000, None));
        assert_eq!(after(&path, 1_000), (1_001, None));
        assert_eq!(after(&path, 5_000), (5_000, None));
        assert_eq!(after(&path, 10), (5_001, None));
        let (epoch, trouble) = after(&folder.path().join("missing/key.epoch"), 7);
        assert_eq!(epoch, 7);
        assert!(trouble.is_some_and(|trouble| trouble.contains("missing/key.epoch")));
    }
}
