//! Which start of a sender was the last one heard: a receiver never goes back to an earlier one.
//!
//! The highest epoch of each key and TSI is remembered in the file [`EPOCHS`] next to what is received, one line each: the key as
//! 64 hexadecimal digits, the TSI, the epoch. Several receivers may use one folder. Not here: whether a table is signed.

use std::io::{self, Read};
use std::path::Path;

use super::folder::{How, OutFolder};
use crate::keys::{PublicKey, encode_hex};
use crate::name::EPOCHS;

/// What is remembered of one key and TSI.
#[derive(Debug)]
pub(crate) struct Epochs {
    /// What a line begins with.
    line: String,
    highest: u64,
}

impl Epochs {
    /// Reads what is remembered, if anything is; nothing below `least` is taken in any case.
    pub(crate) fn open(folder: &OutFolder, key: &PublicKey, tsi: u64, least: u64) -> io::Result<Epochs> {
        let mut epochs = Epochs { line: format!("{} {tsi} ", encode_hex(&key.to_bytes())), highest: least };
        let there = read(folder)?.iter().find_map(|line| epochs.own(line));
        epochs.highest = least.max(there.unwrap_or(0));
        Ok(epochs)
    }

    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Remembers that `epoch` was heard, if none higher was.
    pub(crate) fn raise(&mut self, folder: &OutFolder, epoch: u64) -> io::Result<()> {
        self.highest = self.highest.max(epoch);
        let _locked = folder.lock()?;
        let lines = read(folder)?;
        if lines.iter().any(|line| self.own(line).is_some_and(|there| there >= self.highest)) {
            return Ok(());
        }
        // What is heard comes first, so that what nobody has heard for long is cut off.
        let own = format!("{}{}", self.line, self.highest).into_bytes();
        let others = lines.into_iter().filter(|line| self.own(line).is_none());
        let text = std::iter::once(own).chain(others).flat_map(|line| [line, vec![b'\n']].concat());
        folder.replace_own(EPOCHS, &text.collect::<Vec<u8>>())
    }

    /// The epoch in a line of this key and TSI.
    fn own(&self, line: &[u8]) -> Option<u64> {
        std::str::from_utf8(line).ok()?.strip_prefix(&self.line)?.parse().ok()
    }
}

/// What a folder remembers of the starts of a sender, where no [`super::Store`] does: for what is no files.
#[derive(Debug)]
pub struct EpochMemory {
    folder: OutFolder,
    epochs: Epochs,
}

impl EpochMemory {
    /// Reads what the folder at `path` remembers of a key and TSI. The folder is made if it is not there.
    ///
    /// # Errors
    /// If the folder or what is in it cannot be read.
    pub fn open(path: &Path, key: &PublicKey, tsi: u64) -> io::Result<EpochMemory> {
        let folder = OutFolder::open(path)?;
        let epochs = Epochs::open(&folder, key, tsi, 0)?;
        Ok(EpochMemory { folder, epochs })
    }

    /// The highest epoch that was heard; 0 if none was.
    pub fn highest(&self) -> u64 {
        self.epochs.highest()
    }

    /// Remembers that `epoch` was heard, if none higher was.
    ///
    /// # Errors
    /// If it cannot be written. It counts in this run all the same.
    pub fn raise(&mut self, epoch: u64) -> io::Result<()> {
        self.epochs.raise(&self.folder, epoch)
    }
}

/// The lines of the file.
fn read(folder: &OutFolder) -> io::Result<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    if let Some(file) = folder.open_own(EPOCHS, How::Read)? {
        file.take(MAX_STATE).read_to_end(&mut text)?;
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(<[u8]>::to_vec).collect())
}

/// Ten thousand lines; more are not looked at.
const MAX_STATE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SecretKey;

    #[test]
    fn the_highest_epoch_of_each_key_and_session_is_remembered() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let folder = OutFolder::open(temporary.path()).expect("a folder");
        let [a, b] = [1, 2].map(|seed| SecretKey::from_seed([seed; 32]).public());
        let open = |key, tsi, least| Epochs::open(&folder, key, tsi, least).expect("readable");
        assert_eq!(open(&a, 7, 3).highest(), 3);
        for (key, tsi, epoch) in [(&a, 7, 10), (&b, 7, 20), (&a, 8, u64::MAX), (&a, 7, 12), (&a, 7, 11)] {
            open(key, tsi, 0).raise(&folder, epoch).expect("writable");
        }
        assert_eq!([open(&a, 7, 0), open(&b, 7, 0), open(&a, 8, 0)].map(|epochs| epochs.highest()), [12, 20, u64::MAX]);
        assert_eq!(open(&a, 7, 99).highest(), 99);
        let text = std::fs::read_to_string(temporary.path().join(EPOCHS)).expect("readable");
        assert_eq!(text.split_whitespace().count(), 3 * 3, "{text}");
        assert_eq!(std::fs::read_dir(temporary.path()).expect("a folder").count(), 1, "nothing is left over");
    }

    #[test]
    fn who_reads_while_another_writes_sees_all_or_what_was_before() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let folder = OutFolder::open(temporary.path()).expect("a folder");
        let key = SecretKey::from_seed([1; 32]).public();
        let raise = |epoch| Epochs::open(&folder, &key, 7, 0).and_then(|mut epochs| epochs.raise(&folder, epoch));
        raise(1).expect("writable");
        let before = folder.open_own(EPOCHS, How::Read).expect("readable").expect("it is there");
        raise(2).expect("writable");
        let mut text = String::new();
        { before }.read_to_string(&mut text).expect("text");
        assert!(text.ends_with(" 7 1\n"), "{text}");
    }

    #[test]
    fn a_damaged_state_is_no_error() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        std::fs::write(temporary.path().join(EPOCHS), b"\xff\n\nx y z").expect("written");
        let folder = OutFolder::open(temporary.path()).expect("a folder");
        let key = SecretKey::from_seed([1; 32]).public();
        let mut epochs = Epochs::open(&folder, &key, 7, 0).expect("readable");
        epochs.raise(&folder, 5).expect("writable");
        epochs.raise(&folder, 6).expect("writable");
        assert_eq!(Epochs::open(&folder, &key, 7, 0).expect("readable").highest(), 6);
    }
}
