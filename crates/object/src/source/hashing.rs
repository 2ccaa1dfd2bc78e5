//! Hashes what is to be sent, on as many threads as there are processors: several small files at a time, or parts of a large one.
//!
//! What comes of it does not depend on the threads, and neither does which of several errors is told: the first, in the order of the files.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use blake3::hazmat::ChainingValue;
use md5::Digest;

use super::{SourceError, SourceFile, Stamp, open};
use crate::attributes::Attributes;
use crate::device;
use crate::name::Name;
use crate::partition::MAX_FILE_BYTES;
use crate::pieces::{self, LEAF};
use crate::sparse;

/// A file that was found.
pub(super) type Found = (Name, (PathBuf, Metadata));

/// Hears how many more bytes have been hashed, and may end it.
pub(super) type Note<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// Hashes files, in their order.
pub(super) fn hash(found: &[Found], md5: bool, note: &mut Note<'_>) -> Result<Vec<SourceFile>, SourceError> {
    let is_small = |(_, (_, metadata)): &Found| metadata.len() <= LARGE;
    let mut files = Vec::with_capacity(found.len());
    // Small files that follow each other, or a large one.
    for lot in found.chunk_by(|one, next| is_small(one) && is_small(next)) {
        match lot {
            [file] if md5 || is_small(file) => files.push(hash_one(file, |open| open.in_order(md5, note))?),
            [file] => files.push(hash_one(file, |open| open.in_parts(note))?),
            _ => {
                let work = |number: usize, (): &mut ()| {
                    hash_one(&lot[number], |open| open.in_order(md5, &mut |_| ControlFlow::Continue(())))
                };
                files.extend(in_parallel(lot.len(), || (), work, &mut |file| note(file.length))?);
            }
        }
    }
    Ok(files)
}

/// What is known of the leaves of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Leaves {
    /// Their chaining values, in their order.
    pub(super) values: Vec<ChainingValue>,
    /// The numbers of those that are all zeros, in ranges that do not touch.
    pub(super) zeros: Vec<Range<u64>>,
}

impl Leaves {
    /// Those that begin at `start`, the start of one.
    fn of(start: u64, bytes: &[u8]) -> Leaves {
        let mut leaves = Leaves::default();
        for (number, leaf) in (start / LEAF..).zip(bytes.chunks(LEAF as usize)) {
            leaves.values.push(pieces::leaf(number * LEAF, leaf));
            if sparse::is_zero(leaf) {
                leaves.note_zeros(number..number + 1);
            }
        }
        leaves
    }

    /// Takes those that follow.
    fn append(&mut self, next: Leaves) {
        self.values.extend(next.values);
        next.zeros.into_iter().for_each(|zeros| self.note_zeros(zeros));
    }

    fn note_zeros(&mut self, zeros: Range<u64>) {
        match self.zeros.last_mut() {
            Some(last) if last.end == zeros.start => last.end = zeros.end,
            _ => self.zeros.push(zeros),
        }
    }
}

/// Hashes all leaves of `length` bytes. `read` fills a buffer from an offset on; `own` makes what each thread keeps for that, such
/// as an open file.
pub(super) fn leaves<B>(
    length: u64,
    own: impl Fn() -> B + Sync,
    read: impl Fn(&mut B, &mut [u8], u64) -> Result<(), SourceError> + Sync,
    note: &mut Note<'_>,
) -> Result<Leaves, SourceError> {
    let work = |number: usize, (own, buffer): &mut (B, Vec<u8>)| {
        let start = number as u64 * PART;
        let bytes = &mut buffer[..(length - start).min(PART) as usize];
        read(own, bytes, start)?;
        Ok((bytes.len() as u64, Leaves::of(start, bytes)))
    };
    let own = || (own(), vec![0; PART as usize]);
    let parts = in_parallel(length.div_ceil(PART) as usize, own, work, &mut |(bytes, _)| note(*bytes))?;
    let mut all = Leaves::default();
    parts.into_iter().for_each(|(_, leaves)| all.append(leaves));
    Ok(all)
}

/// A file that is being hashed.
struct Opened<'a> {
    path: &'a Path,
    file: File,
    length: u64,
}

/// What comes of it.
struct Hashed {
    length: u64,
    digest: [u8; 32],
    md5: Option<[u8; 16]>,
    leaves: Leaves,
}

/// Opens a file and has `how` hash it. It has to be the one that was found, and stay the same meanwhile.
fn hash_one(
    (name, (path, found)): &Found,
    how: impl FnOnce(&Opened<'_>) -> Result<Hashed, SourceError>,
) -> Result<SourceFile, SourceError> {
    let io_error = |source| SourceError::Io { path: path.clone(), source };
    let mut file = open(path)?;
    let metadata = file.metadata().map_err(io_error)?;
    let mut stamp = Stamp::of(&metadata);
    if device::is_one(&metadata) {
        stamp.length = device::length(&mut file).map_err(io_error)?;
    }
    let is_one = metadata.is_file() || device::is_one(&metadata);
    if !is_one || !stamp.is_same_file(&Stamp::of(found)) {
        return Err(SourceError::Changed { path: path.clone() });
    }
    if stamp.length > MAX_FILE_BYTES {
        return Err(SourceError::TooLarge { path: path.clone(), length: stamp.length });
    }
    let sparse = metadata.is_file() && sparse::has_holes(&file, &metadata).map_err(io_error)?;
    let opened = Opened { path, file, length: stamp.length };
    let hashed = how(&opened)?;
    if hashed.length != stamp.length || !stamp.is_of(&opened.file.metadata().map_err(io_error)?) {
        return Err(SourceError::Changed { path: path.clone() });
    }
    Ok(SourceFile {
        path: path.clone(),
        name: name.clone(),
        length: hashed.length,
        digest: hashed.digest,
        md5: hashed.md5,
        attributes: Attributes { sparse, ..Attributes::of(&metadata) },
        stamp,
        leaves: hashed.leaves.values.into(),
        zeros: hashed.leaves.zeros.into(),
        bundled: None,
    })
}

impl Opened<'_> {
    /// Hashes it from its beginning to its end, however long it is.
    fn in_order(&self, md5: bool, note: &mut Note<'_>) -> Result<Hashed, SourceError> {
        let mut buffer = vec![0; self.length.clamp(1, PART) as usize];
        let mut md5_hasher = md5.then(md5::Md5::new);
        let (mut length, mut leaves, mut only_leaf) = (0, Leaves::default(), blake3::hash(b""));
        loop {
            let n = read_full(&self.file, &mut buffer).map_err(|error| self.error(error))?;
            if n == 0 {
                break;
            }
            leaves.append(Leaves::of(length, &buffer[..n]));
            if self.length <= LEAF {
                only_leaf = blake3::hash(&buffer[..n]);
            }
            if let Some(hasher) = &mut md5_hasher {
                hasher.update(&buffer[..n]);
            }
            length += n as u64;
            if note(n as u64).is_break() {
                return Err(SourceError::Stopped);
            }
        }
        let digest = if length <= LEAF { *only_leaf.as_bytes() } else { pieces::file_digest(length, &leaves.values) };
        Ok(Hashed { length, digest, md5: md5_hasher.map(|hasher| hasher.finalize().into()), leaves })
    }

    /// Hashes parts of it at the same time.
    fn in_parts(&self, note: &mut Note<'_>) -> Result<Hashed, SourceError> {
        let read = |(): &mut (), bytes: &mut [u8], at| {
            // Twice as fast as to read it.
            if sparse::is_hole(&self.file, &(at..at + bytes.len() as u64)) {
                bytes.fill(0);
                return Ok(());
            }
            self.file.read_exact_at(bytes, at).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => SourceError::Changed { path: self.path.to_owned() },
                _ => self.error(error),
            })
        };
        let (length, leaves) = (self.length, leaves(self.length, || (), read, note)?);
        Ok(Hashed { length, digest: pieces::file_digest(length, &leaves.values), md5: None, leaves })
    }

    fn error(&self, source: io::Error) -> SourceError {
        SourceError::Io { path: self.path.to_owned(), source }
    }
}

/// Fills the buffer, or reads to the end of the file.
fn read_full(mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Runs `work` for each number below `count`, on several threads, and returns the results in order. `own` makes what each thread keeps for it.
/// `note` hears each result as it arrives, and may stop the run.
fn in_parallel<T: Send, B>(
    count: usize,
    own: impl Fn() -> B + Sync,
    work: impl Fn(usize, &mut B) -> Result<T, SourceError> + Sync,
    note: &mut dyn FnMut(&T) -> ControlFlow<()>,
) -> Result<Vec<T>, SourceError> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS).min(count);
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let run = |results: Sender<(usize, Result<T, SourceError>)>| {
        let mut own = own();
        while !is_over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || results.send((number, work(number, &mut own))).is_err() {
                break;
            }
        }
    };
    let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let mut failure: Option<(usize, SourceError)> = None;
    std::thread::scope(|scope| {
        let (results, results_end) = channel();
        let start = |_| {
            let (results, run) = (results.clone(), &run);
            std::thread::Builder::new().name("hashing".to_owned()).spawn_scoped(scope, move || run(results)).ok()
        };
        // Where the system gives no thread, this one does it all.
        if (0..threads).filter_map(start).count() == 0 {
            run(results.clone());
        }
        drop(results);
        for (number, result) in results_end {
            // What comes before an error in the order was begun before it.
            let failed = match result {
                Ok(value) if failure.is_none() && note(&value).is_break() => Some((0, SourceError::Stopped)),
                Ok(value) => {
                    done[number] = Some(value);
                    None
                }
                Err(error) => Some((number, error)),
            };
            if let Some(failed) = failed {
                is_over.store(true, Ordering::Relaxed);
                failure = Some(failure.take().filter(|(first, _)| *first <= failed.0).unwrap_or(failed));
            }
        }
    });
    match failure {
        Some((_, error)) => Err(error),
        None => Ok(done.into_iter().map(|value| value.expect("nothing failed")).collect()),
    }
}

/// A file of more bytes than this is hashed in parts.
pub(super) const LARGE: u64 = 1 << 20;
/// Bytes of a part: large enough that system calls do not count, small enough to stay in a core's cache; a whole number of leaves.
const PART: u64 = 256 << 10;
/// More threads than this hash faster than any disk reads.
const MOST_THREADS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn go_on(_: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn found(path: &Path) -> Found {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        (Name::new(name).expect("a plain name"), (path.to_owned(), std::fs::metadata(path).expect("it is there")))
    }

    #[test]
    fn a_file_has_one_digest_whether_it_is_hashed_in_order_or_in_parts() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for length in [LARGE + 1, LARGE + LEAF, LARGE + PART, 3 * LARGE - 1] {
            let path = folder.path().join("a");
            let mut content: Vec<u8> = (0..length).map(|i| ((i * 7) >> 3) as u8 | 1).collect();
            content[5 * LEAF as usize + 1..12 * LEAF as usize + 1].fill(0);
            std::fs::write(&path, &content).expect("written");
            let found = found(&path);
            let in_order = hash_one(&found, |open| open.in_order(false, &mut go_on)).expect("readable");
            let in_parts = hash_one(&found, |open| open.in_parts(&mut go_on)).expect("readable");
            assert_eq!(in_parts.digest, *blake3::hash(&content).as_bytes());
            assert!(in_parts.digest == in_order.digest && in_parts.leaves == in_order.leaves);
            assert_eq!(
                (in_parts.zeros.len(), &in_parts.zeros[0]),
                (1, &(6..12)),
                "leaves of zeros across the parts of a file"
            );
        }
    }

    #[test]
    fn of_several_errors_the_first_file_s_is_told() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut all: Vec<Found> = (0..100)
            .map(|number| {
                let path = folder.path().join(format!("{number:02}"));
                std::fs::write(&path, b"content").expect("written");
                found(&path)
            })
            .collect();
        for number in [60, 7, 30] {
            std::fs::remove_file(&all[number].1.0).expect("it was there");
        }
        let failure = hash(&all, false, &mut go_on).expect_err("three are missing");
        assert!(matches!(&failure, SourceError::Io { path, .. } if path.ends_with("07")), "{failure}");
        all.truncate(7);
        let files = hash(&all, true, &mut go_on).expect("those are there");
        assert!(files.iter().map(|file| &file.name).eq(all.iter().map(|(name, _)| name)));
        assert!(files.iter().all(|file| file.md5.is_some()));
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_hashed_in_parts_has_changed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("a");
        std::fs::write(&path, vec![7; 2 * LARGE as usize]).expect("written");
        let mut shrink = |_| {
            File::options().write(true).open(&path).and_then(|file| file.set_len(LARGE)).expect("ours");
            ControlFlow::Continue(())
        };
        let failure = hash(&[found(&path)], false, &mut shrink).expect_err("it has changed");
        assert!(matches!(failure, SourceError::Changed { .. }), "{failure}");
    }
}
