//! Which start of a sender was the last one heard: a receiver never goes back to an earlier one.
//!
//! The highest epoch of each key and TSI is remembered in the file [`STATE`] next to what is received, one line each: the key as
//! 64 hexadecimal digits, the TSI, the epoch as 20 digits, so that a line is written over in place. Several receivers may
//! use one folder. Not here: whether a table is signed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use nix::fcntl::{Flock, FlockArg};

use super::folder::{How, OutFolder};
use crate::keys::{PublicKey, encode_hex};

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
        if let Some(file) = folder.open_own(STATE, How::Read)? {
            let found = epochs.find(&file)?;
            epochs.highest = least.max(found.map_or(0, |(_, epoch)| epoch));
        }
        Ok(epochs)
    }

    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Remembers that `epoch` was heard, if none higher was.
    pub(crate) fn raise(&mut self, folder: &OutFolder, epoch: u64) -> io::Result<()> {
        self.highest = self.highest.max(epoch);
        let Some(file) = folder.open_own(STATE, How::Create)? else { return Ok(()) };
        let file = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
        let line = format!("{}{:020}\n", self.line, self.highest);
        match self.find(&file)? {
            Some((_, there)) if there >= self.highest => Ok(()),
            Some((at, _)) => file.write_all_at(line.as_bytes(), at),
            // Whatever the last line is, it ends here.
            None => file.write_all_at(format!("\n{line}").as_bytes(), file.metadata()?.len()),
        }
    }

    /// The line of this key and TSI: where it is, and the epoch in it.
    fn find(&self, file: &File) -> io::Result<Option<(u64, u64)>> {
        let mut text = Vec::new();
        file.take(MAX_STATE).read_to_end(&mut text)?;
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let epoch = line.strip_prefix(self.line.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok());
            if let Some(epoch) = epoch.and_then(|digits| digits.trim().parse().ok()) {
                return Ok(Some((at, epoch)));
            }
            at += line.len() as u64;
        }
        Ok(None)
    }
}

/// The name of the file. No file that is received can have it.
pub(crate) const STATE: &str = ".weir-epochs";
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
        let text = std::fs::read_to_string(temporary.path().join(STATE)).expect("readable");
        assert_eq!(text.split_whitespace().count(), 3 * 3, "{text}");
    }

    #[test]
    fn a_damaged_state_is_no_error() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        std::fs::write(temporary.path().join(STATE), b"\xff\n\nx y z").expect("written");
        let folder = OutFolder::open(temporary.path()).expect("a folder");
        let key = SecretKey::from_seed([1; 32]).public();
        let mut epochs = Epochs::open(&folder, &key, 7, 0).expect("readable");
        epochs.raise(&folder, 5).expect("writable");
        epochs.raise(&folder, 6).expect("writable");
        assert_eq!(Epochs::open(&folder, &key, 7, 0).expect("readable").highest(), 6);
    }
}
