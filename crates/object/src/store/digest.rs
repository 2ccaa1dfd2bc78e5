//! Whether a block, or a whole file, is what the sender signed.
//!
//! The leaves of a block are hashed as soon as they are complete, mostly while they are in memory (see [`crate::pieces`]). What
//! was not hashed from memory is read back when the block is complete.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use blake3::hazmat::ChainingValue;

use crate::pieces::{self, BlockDigest, BlockHasher, LEAF};

/// What the manifest says of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Its own digest.
    Block(BlockDigest),
    /// It is the whole of a file with this digest.
    File([u8; 32]),
}

/// The values of a block's leaves, as far as they are known.
#[derive(Debug)]
pub(crate) struct Leaves {
    first: u64,
    values: Box<[Option<ChainingValue>]>,
}

impl Leaves {
    /// None of the leaves of a block that takes these bytes of its file.
    pub(crate) fn of(block: &Range<u64>) -> Leaves {
        let first = block.start / LEAF;
        let count = block.end.div_ceil(LEAF) - first;
        Leaves { first, values: vec![None; count as usize].into() }
    }

    /// Bytes of memory for the leaves of a block of so many bytes, about.
    pub(crate) fn memory(length: u64) -> u64 {
        (length / LEAF + 2) * size_of::<Option<ChainingValue>>() as u64
    }

    /// Takes all the bytes of the leaf that starts at `start`. What is known already is not hashed again.
    pub(crate) fn add(&mut self, start: u64, bytes: &[u8]) {
        let number = (start / LEAF).wrapping_sub(self.first) as usize;
        if let Some(value @ None) = self.values.get_mut(number) {
            *value = Some(pieces::leaf(start, bytes));
        }
    }

    fn known(&self, leaf: u64) -> Option<&ChainingValue> {
        self.values.get(leaf.checked_sub(self.first)? as usize)?.as_ref()
    }
}

/// Where the bytes of a file are read from.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    /// The bytes from here on are these.
    Memory(u64, &'a [u8]),
    /// The file, and room to read in.
    File(&'a File, &'a mut Vec<u8>),
}

impl Content<'_> {
    fn read(&mut self, range: Range<u64>) -> io::Result<&[u8]> {
        match self {
            Content::Memory(start, bytes) => Ok(&bytes[(range.start - *start) as usize..(range.end - *start) as usize]),
            Content::File(file, buffer) => {
                buffer.resize((range.end - range.start) as usize, 0);
                file.read_exact_at(buffer, range.start)?;
                Ok(buffer)
            }
        }
    }
}

/// Whether a block that takes the bytes `block` of a file is what was expected. What `leaves` do not know is read.
pub(crate) fn is_block(
    expected: &Expected,
    block: Range<u64>,
    leaves: Option<&Leaves>,
    content: &mut Content<'_>,
) -> io::Result<bool> {
    let known = |leaf| leaves.and_then(|leaves| leaves.known(leaf));
    match expected {
        Expected::File(digest) if block.end <= LEAF => Ok(blake3::hash(content.read(block)?) == *digest),
        Expected::File(digest) => {
            let mut values = Vec::with_capacity((block.end / LEAF) as usize + 1);
            for piece in pieces::pieces(block.clone()) {
                values.push(match known(piece.start / LEAF) {
                    Some(value) => *value,
                    None => pieces::leaf(piece.start, content.read(piece)?),
                });
            }
            Ok(pieces::file_digest(block.end, &values) == *digest)
        }
        Expected::Block(digest) => {
            let mut hasher = BlockHasher::new();
            for piece in pieces::pieces(block) {
                let number = pieces::whole_leaf(&piece);
                match number.and_then(known) {
                    Some(value) => hasher.whole(value),
                    None if number.is_some() => hasher.whole(&pieces::leaf(piece.start, content.read(piece)?)),
                    None => hasher.part(content.read(piece)?),
                }
            }
            Ok(hasher.finish() == *digest)
        }
    }
}

/// BLAKE3 over the first `length` bytes of a file.
pub(crate) fn of_file(file: &File, length: u64, buffer: &mut Vec<u8>) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    buffer.resize(READ_BUFFER, 0);
    let mut at = 0;
    while at < length {
        let count = (length - at).min(READ_BUFFER as u64) as usize;
        file.read_exact_at(&mut buffer[..count], at)?;
        hasher.update(&buffer[..count]);
        at += count as u64;
    }
    Ok(*hasher.finalize().as_bytes())
}

pub(crate) const READ_BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whichever leaves were seen in memory, and wherever the block lies.
        #[test]
        fn leaves_from_memory_and_from_the_file_make_one_digest(
            start in 0u64..3 * LEAF, length in 1u64..6 * LEAF, seen in proptest::collection::vec(any::<bool>(), 10),
            whole_file in any::<bool>(), damage in proptest::option::of(any::<prop::sample::Index>()),
        ) {
            let block = if whole_file { 0..length } else { start..start + length };
            let mut content: Vec<u8> = (0..block.end).map(|i| ((i * 7) >> 3) as u8).collect();
            let expected = match whole_file {
                true => Expected::File(*blake3::hash(&content).as_bytes()),
                false => Expected::Block(pieces::block_digest(block.clone(), &content[block.start as usize..])),
            };
            let damage = damage.map(|index| block.start as usize + index.index(length as usize));
            if let Some(at) = damage {
                content[at] ^= 1;
            }
            let mut leaves = Leaves::of(&block);
            for (number, bytes) in content.chunks(LEAF as usize).enumerate().filter(|(number, _)| seen[*number % 10]) {
                leaves.add(number as u64 * LEAF, bytes);
            }
            let is_right = is_block(&expected, block, Some(&leaves), &mut Content::Memory(0, &content));
            prop_assert_eq!(is_right.expect("in memory"), damage.is_none());
        }
    }
}
