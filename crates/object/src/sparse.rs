//! Holes: parts of a file that are zero and take no room on the disk.
//!
//! The sender says of a file that it has some, and the receiver leaves them where zeros come: it claims no room for such a file in
//! advance and writes no zeros where there are some already. That holds on every file system. Where one cannot tell holes from data, it
//! gets the zeros.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::unistd::{Whence, lseek};

/// Whether the file has holes. Moves its position to its start.
pub(crate) fn has_holes(file: &File, metadata: &Metadata) -> io::Result<bool> {
    let length = metadata.len();
    // Less room than bytes may also come from compression, or from an inode that holds a few bytes itself.
    if metadata.blocks().saturating_mul(BLOCK) >= length {
        return Ok(false);
    }
    let hole = lseek(file, 0, Whence::SeekHole);
    lseek(file, 0, Whence::SeekSet)?;
    Ok(hole.is_ok_and(|hole| (hole as u64) < length))
}

/// Writes `bytes` from `at` on, but for zeros where the file has some. What lies in pages of zeros gives its room back.
///
/// The file must be as long as where they end. Its position moves.
pub(crate) fn write(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    for (range, is_zero) in runs(bytes, at) {
        if !(is_zero && is_or_becomes_hole(file, &range)) {
            file.write_all_at(&bytes[(range.start - at) as usize..(range.end - at) as usize], range.start)?;
        }
    }
    Ok(())
}

/// Makes these bytes zeros, of a device by its own means where it has some.
pub(crate) fn fill(file: &File, range: Range<u64>) -> io::Result<()> {
    let zeros = vec![0; FILLED_AT_ONCE as usize];
    let write = |range: Range<u64>| {
        range
            .clone()
            .step_by(FILLED_AT_ONCE as usize)
            .try_for_each(|at| file.write_all_at(&zeros[..(range.end - at).min(FILLED_AT_ONCE) as usize], at))
    };
    let pages = range.start.next_multiple_of(PAGE)..range.end / PAGE * PAGE;
    if pages.is_empty() || !becomes_hole(file, &pages) {
        return write(range);
    }
    write(range.start..pages.start)?;
    write(pages.end..range.end)
}

/// Cuts `bytes` into runs of pages that are zero and of pages that are not, as far as these bytes tell.
fn runs(bytes: &[u8], at: u64) -> Vec<(Range<u64>, bool)> {
    let mut runs: Vec<(Range<u64>, bool)> = Vec::new();
    let end = at + bytes.len() as u64;
    let mut start = at;
    while start < end {
        let next = (start / PAGE + 1).saturating_mul(PAGE).min(end);
        let is_zero = is_zero(&bytes[(start - at) as usize..(next - at) as usize]);
        match runs.last_mut() {
            Some((last, was_zero)) if *was_zero == is_zero => last.end = next,
            _ => runs.push((start..next, is_zero)),
        }
        start = next;
    }
    runs
}

/// Whether all of these are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// Whether nothing was ever written there, so that it is zeros. The file's position moves.
pub(crate) fn is_hole(file: &File, range: &Range<u64>) -> bool {
    let Ok(start) = i64::try_from(range.start) else { return false };
    match lseek(file, start, Whence::SeekData) {
        // Nothing but holes up to the end of the file.
        Err(Errno::ENXIO) => true,
        Ok(data) => data as u64 >= range.end,
        // It is read.
        Err(_) => false,
    }
}

fn is_or_becomes_hole(file: &File, range: &Range<u64>) -> bool {
    if is_hole(file, range) {
        return true;
    }
    // Less than a page gives no room back.
    if range.start.next_multiple_of(PAGE) + PAGE > range.end {
        return false;
    }
    becomes_hole(file, range)
}

fn becomes_hole(file: &File, range: &Range<u64>) -> bool {
    let (Ok(start), Ok(length)) = (i64::try_from(range.start), i64::try_from(range.end - range.start)) else {
        return false;
    };
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file.as_fd(), flags, start, length).is_ok()
}

/// What file systems mostly give out room by.
const PAGE: u64 = 4096;
/// Bytes of zeros that are written at a time.
const FILLED_AT_ONCE: u64 = 1 << 20;
/// Compared at a time, which is faster than to look at each byte.
static ZEROS: [u8; 1024] = [0; 1024];
/// The unit of [`MetadataExt::blocks`], whatever the file system.
const BLOCK: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn room(file: &File) -> u64 {
        file.metadata().expect("readable").blocks() * BLOCK
    }

    #[test]
    fn zeros_take_no_room_and_what_was_there_before_is_gone() {
        let file = tempfile::tempfile().expect("temporary file");
        file.set_len(64 * PAGE).expect("it is ours");
        write(&file, &vec![0; 64 * PAGE as usize], 0).expect("it can be written");
        assert_eq!(room(&file), 0, "zeros were written");
        // A symbol that was put there for another, or was forged.
        write(&file, &vec![7; 4 * PAGE as usize], 8 * PAGE).expect("it can be written");
        write(&file, &vec![0; 16 * PAGE as usize], 0).expect("it can be written");
        let mut content = vec![1; 64 * PAGE as usize];
        file.read_exact_at(&mut content, 0).expect("readable");
        assert!(content.iter().all(|byte| *byte == 0) && room(&file) == 0, "{} bytes of room", room(&file));
    }

    #[test]
    fn a_file_has_holes_only_where_it_was_left_out() {
        let file = tempfile::tempfile().expect("temporary file");
        let is_sparse = || has_holes(&file, &file.metadata().expect("readable")).expect("it can be asked");
        assert!(!is_sparse(), "it is empty");
        file.write_all_at(&[0; 100_000], 0).expect("it can be written");
        file.sync_all().expect("it can be written");
        assert!(!is_sparse(), "zeros are data, too");
        file.set_len(1 << 30).expect("it is ours");
        assert!(is_sparse());
    }

    #[test]
    fn what_is_filled_is_zeros_and_what_lies_next_to_it_stays() {
        let file = tempfile::tempfile().expect("temporary file");
        for range in [10..20, 100..9_000, 4_096..8_192, 5_000..2_500_001, 0..3_000_000] {
            file.write_all_at(&[7; 3_000_000], 0).expect("it can be written");
            fill(&file, range.clone()).expect("it can be written");
            let mut content = vec![1; 3_000_000];
            file.read_exact_at(&mut content, 0).expect("readable");
            let is_right = |(at, byte): (u64, u8)| byte == if range.contains(&at) { 0 } else { 7 };
            assert!((0..).zip(content).all(is_right), "{range:?}");
        }
    }

    proptest! {
        #[test]
        fn a_file_is_what_was_written_last(
            writes in proptest::collection::vec((0usize..60_000, 1usize..20_000, 0u8..2), 1..30),
        ) {
            let file = tempfile::tempfile().expect("temporary file");
            file.set_len(80_000).expect("it is ours");
            let mut expected = vec![0; 80_000];
            for (at, length, byte) in writes {
                expected[at..at + length].fill(byte);
                write(&file, &expected[at..at + length], at as u64).expect("it can be written");
            }
            let mut content = vec![9; 80_000];
            file.read_exact_at(&mut content, 0).expect("readable");
            prop_assert_eq!(content, expected);
        }
    }
}
