//! The bytes of a file that is received: its partial file, or a block device that it is written to.
//!
//! A file's last block ends with a whole symbol, beyond the file's end, and until it is decoded another symbol may lie there. A partial file is
//! cut when it is complete. On a device the bytes behind the file are not ours to change, so the end of the last symbol stays in memory.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use nix::fcntl::Flock;

use super::incoming::Spec;
use crate::sparse;

/// What a file that is received is written to.
#[derive(Debug)]
pub(crate) struct Data {
    file: Flock<File>,
    beyond: Option<Arc<Beyond>>,
}

/// The same for another thread, which reads, or fills what nobody else writes.
#[derive(Debug)]
pub(crate) struct Reader {
    file: File,
    beyond: Option<Arc<Beyond>>,
}

/// What lies beyond the file's end. At first it is zeros, as what fills up the last symbol.
#[derive(Debug)]
struct Beyond {
    start: u64,
    bytes: Mutex<Vec<u8>>,
}

impl Data {
    /// Its partial file.
    pub(crate) fn of_file(file: Flock<File>) -> Data {
        Data { file, beyond: None }
    }

    /// A device to which nothing but the file is written.
    pub(crate) fn of_device(device: Flock<File>, spec: &Spec) -> Data {
        let bytes = vec![0; (spec.padded_length() - spec.length) as usize];
        Data { file: device, beyond: Some(Arc::new(Beyond { start: spec.length, bytes: Mutex::new(bytes) })) }
    }

    /// Writes `bytes` from `at` on. Where `is_sparse`, zeros leave holes; a device has none, and would take longer to make some than to write.
    pub(crate) fn write(&self, bytes: &[u8], at: u64, is_sparse: bool) -> io::Result<()> {
        let (within, rest) = bytes.split_at(Beyond::split(self.beyond.as_deref(), at, bytes.len()));
        match is_sparse && self.beyond.is_none() {
            true => sparse::write(&self.file, within, at)?,
            false => self.file.write_all_at(within, at)?,
        }
        if let Some(beyond) = self.beyond.as_deref().filter(|_| !rest.is_empty()) {
            beyond.with(at + within.len() as u64, rest.len(), |bytes| bytes.copy_from_slice(rest));
        }
        Ok(())
    }

    /// Fills `bytes` with what lies from `at` on.
    pub(crate) fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        read(&self.file, self.beyond.as_deref(), bytes, at)
    }

    pub(crate) fn reader(&self) -> io::Result<Reader> {
        Ok(Reader { file: self.file.try_clone()?, beyond: self.beyond.clone() })
    }
}

impl Deref for Data {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Reader {
    /// The file, up to its end.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Fills `bytes` with what lies from `at` on.
    pub(crate) fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        read(&self.file, self.beyond.as_deref(), bytes, at)
    }

    /// Makes these bytes of the file zeros.
    pub(crate) fn fill(&self, range: Range<u64>) -> io::Result<()> {
        sparse::fill(&self.file, range)
    }
}

impl Beyond {
    /// How many of `length` bytes from `at` on are the file's.
    fn split(beyond: Option<&Beyond>, at: u64, length: usize) -> usize {
        let of_file = |beyond: &Beyond| beyond.start.saturating_sub(at).min(length as u64) as usize;
        beyond.map_or(length, of_file)
    }

    /// Has `length` bytes from `at` on read or changed.
    fn with(&self, at: u64, length: usize, what: impl FnOnce(&mut [u8])) {
        let from = (at - self.start) as usize;
        what(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner)[from..from + length]);
    }
}

fn read(file: &File, beyond: Option<&Beyond>, bytes: &mut [u8], at: u64) -> io::Result<()> {
    let (within, rest) = bytes.split_at_mut(Beyond::split(beyond, at, bytes.len()));
    file.read_exact_at(within, at)?;
    if let Some(beyond) = beyond.filter(|_| !rest.is_empty()) {
        beyond.with(at + within.len() as u64, rest.len(), |bytes| rest.copy_from_slice(bytes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A file in place of a device: nothing but its first bytes is written, whatever lies where.
        #[test]
        fn what_is_read_was_written_last_and_nothing_behind_the_file_is_touched(
            writes in proptest::collection::vec((0usize..1_400, 1usize..600, 1u8..9), 1..20),
        ) {
            let file = tempfile::tempfile().expect("temporary file");
            file.write_all_at(&[0xaa; 2_000], 0).expect("written");
            let lock = Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).expect("ours");
            let beyond = Arc::new(Beyond { start: 1_000, bytes: Mutex::new(vec![0; 1_000]) });
            let data = Data { file: lock, beyond: Some(beyond) };
            let mut expected = [0xaa; 2_000];
            expected[1_000..].fill(0);
            for (at, length, byte) in writes {
                expected[at..at + length].fill(byte);
                data.write(&expected[at..at + length], at as u64, false).expect("written");
            }
            let mut read = [0; 2_000];
            data.reader().and_then(|reader| reader.read(&mut read, 0)).expect("readable");
            prop_assert_eq!(read, expected);
            data.file.read_exact_at(&mut read, 0).expect("readable");
            prop_assert_eq!(&read[..1_000], &expected[..1_000]);
            prop_assert!(read[1_000..].iter().all(|byte| *byte == 0xaa), "behind the file");
        }
    }
}
