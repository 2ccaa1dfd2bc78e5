//! Which start of a sender this is: a number that grows with each, whatever the clock does, as receivers never go back to an
//! earlier one.
//!
//! It is the wall clock's milliseconds, or one more than the last number of the session, which is kept in the folder `KEY.epochs`
//! next to the key, in a file with the TSI as its name.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use weir_net::clock::Clock;

/// The number of this start of session `tsi`. What keeps it from being remembered is said in words: then the clock alone decides
/// about the next.
pub(crate) fn next(key: Option<&Path>, tsi: u16) -> (u64, Option<String>) {
    let clock = Clock::new();
    let now = clock.unix_nanos(clock.now()) / 1_000_000;
    key.map_or((now, None), |key| after(&folder_of(key), tsi, now))
}

/// The number of the last start of session `tsi`, if there was one with this key.
pub(crate) fn last(key: Option<&Path>, tsi: u16) -> Option<u64> {
    read(&folder_of(key?).join(tsi.to_string()))
}

/// The number after that in the folder, and not before `now`.
fn after(folder: &Path, tsi: u16, now: u64) -> (u64, Option<String>) {
    let mut epoch = now;
    let written = raise(folder, tsi, &mut epoch);
    let trouble = written.err().map(|error| {
        let path = folder.display();
        format!("cannot write to {path}: {error}; if the clock is ever set back, receivers will take the next start for an old one")
    });
    (epoch, trouble)
}

/// Raises `epoch` above the number in the folder and writes it there. Senders that start at the same time do so in turn.
fn raise(folder: &Path, tsi: u16, epoch: &mut u64) -> io::Result<()> {
    let path = folder.join(tsi.to_string());
    let above = |epoch: u64| read(&path).map_or(epoch, |last| epoch.max(last.saturating_add(1)));
    // Also where nothing can be written.
    *epoch = above(*epoch);
    crate::folders::make_for(&path)?;
    let locked = Flock::lock(File::open(folder)?, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
    *epoch = above(*epoch);
    // Nobody else has the lock; what a sender left that was killed is written over.
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(format!("{epoch}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    locked.sync_all()
}

fn read(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn folder_of(key: &Path) -> PathBuf {
    let mut name = key.as_os_str().to_owned();
    name.push(".epochs");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_start_has_a_higher_number_even_if_the_clock_is_set_back() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("key.epochs");
        assert_eq!(after(&path, 7, 1_000), (1_000, None));
        assert_eq!(after(&path, 7, 1_000), (1_001, None));
        assert_eq!(after(&path, 7, 5_000), (5_000, None));
        assert_eq!(after(&path, 7, 10), (5_001, None));
        assert_eq!(after(&path, 8, 10), (10, None), "another session");
        assert_eq!(last(Some(&folder.path().join("key")), 7), Some(5_001));
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let (epoch, trouble) = after(&file.join("key.epochs"), 7, 9);
        assert_eq!(epoch, 9);
        assert!(trouble.is_some_and(|trouble| trouble.contains("file/key.epochs")));
    }

    #[test]
    fn senders_that_start_at_the_same_time_have_numbers_of_their_own() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("key.epochs");
        let starts = (0..8).map(|_| {
            let path = path.clone();
            std::thread::spawn(move || (0..20).map(|_| after(&path, 7, 1_000)).collect::<Vec<_>>())
        });
        let starts: Vec<_> = starts.collect();
        let all: Vec<_> = starts.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
        assert!(all.iter().all(|(_, trouble)| trouble.is_none()), "{all:?}");
        let numbers: BTreeSet<u64> = all.iter().map(|(epoch, _)| *epoch).collect();
        assert_eq!(numbers.len(), 8 * 20);
        assert_eq!(fs::read_dir(&path).expect("a folder").count(), 1, "nothing is left over");
    }
}
