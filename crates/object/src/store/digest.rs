//! Whether a block, or a whole file, is what the sender signed.
//!
//! The pieces of a block (see [`crate::pieces`]) are hashed from memory, as far as their bytes leave it in order. The rest is read back when
//! the block is complete: of a file that is larger than memory that means from the disk, whose other work it is to write what comes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::pieces::{self, BlockDigest, BlockHasher, LEAF, PieceHasher};
use crate::sparse;

/// What the manifest says of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Its own digest.
    Block(BlockDigest),
    /// It is all zeros, and is not sent.
    Zeros,
    /// It is the whole of a file with this digest.
    File([u8; 32]),
}

impl Expected {
    /// Whether the block is all of its file.
    fn is_file(&self) -> bool {
        matches!(self, Expected::File(_))
    }
}

/// The values of a block's pieces, as far as they are known.
#[derive(Debug)]
pub(crate) struct Values {
    block: Range<u64>,
    is_file: bool,
    values: Box<[Option<[u8; 32]>]>,
    /// One of which only the beginning has been hashed.
    begun: Option<Box<Begun>>,
}

/// A piece that has been hashed up to some place of the file.
#[derive(Debug)]
struct Begun {
    number: usize,
    until: u64,
    hasher: PieceHasher,
}

impl Values {
    /// None of the pieces of a block that takes these bytes of its file.
    pub(crate) fn of(block: Range<u64>, expected: &Expected) -> Values {
        let count = block.end.div_ceil(LEAF) - block.start / LEAF;
        Values { block, is_file: expected.is_file(), values: vec![None; count as usize].into(), begun: None }
    }

    /// About how many bytes of memory the values of a block of `length` bytes take.
    pub(crate) fn memory(length: u64) -> u64 {
        (length / LEAF + 2) * size_of::<Option<[u8; 32]>>() as u64 + size_of::<Begun>() as u64
    }

    /// Takes bytes of one piece, which are at `at` of the file and will not change. What is known already, and what does not follow what was
    /// taken of its piece, changes nothing.
    pub(crate) fn take(&mut self, at: u64, bytes: &[u8]) {
        let number = self.number(at);
        let piece = self.piece(number);
        if self.values[number].is_some() || bytes.is_empty() {
            return;
        }
        if at == piece.start && bytes.len() as u64 == piece.end - piece.start {
            self.values[number] = Some(pieces::piece_value(&piece, self.is_file, bytes));
            return;
        }
        let follows = self.begun.as_ref().is_some_and(|begun| begun.number == number && begun.until == at);
        if !follows && at != piece.start {
            return;
        }
        if !follows {
            let hasher = PieceHasher::new(&piece, self.is_file);
            self.begun = Some(Box::new(Begun { number, until: at, hasher }));
        }
        let begun = self.begun.as_mut().expect("it was or has just begun");
        begun.hasher.update(bytes);
        begun.until += bytes.len() as u64;
        if begun.until == piece.end {
            self.values[number] = Some(begun.hasher.value());
            self.begun = None;
        }
    }

    /// Whether all of them are known.
    pub(crate) fn is_whole(&self) -> bool {
        self.values.iter().all(Option::is_some)
    }

    /// Where those are in the file that are not.
    pub(crate) fn unknown(&self) -> Vec<Range<u64>> {
        let mut unknown = Vec::<Range<u64>>::new();
        for (number, _) in self.values.iter().enumerate().filter(|(_, value)| value.is_none()) {
            let piece = self.piece(number);
            match unknown.last_mut() {
                Some(last) if last.end == piece.start => last.end = piece.end,
                _ => unknown.push(piece),
            }
        }
        unknown
    }

    /// The number of the piece with the byte at `at` of the file.
    fn number(&self, at: u64) -> usize {
        (at / LEAF - self.block.start / LEAF) as usize
    }

    fn piece(&self, number: usize) -> Range<u64> {
        let leaf = self.block.start / LEAF + number as u64;
        (leaf * LEAF).max(self.block.start)..((leaf + 1) * LEAF).min(self.block.end)
    }

    fn known(&self, piece: &Range<u64>) -> Option<[u8; 32]> {
        self.values[self.number(piece.start)]
    }

    fn begun(&self, piece: &Range<u64>) -> Option<&Begun> {
        self.begun.as_deref().filter(|begun| begun.number == self.number(piece.start))
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

/// Whether a block that takes the bytes `block` of a file is what was expected. What `values` do not know is read.
pub(crate) fn is_block(
    expected: &Expected,
    block: Range<u64>,
    values: Option<&Values>,
    content: &mut Content<'_>,
) -> io::Result<bool> {
    let is_file = expected.is_file();
    let pieces = pieces::pieces(block.clone());
    match expected {
        Expected::File(digest) if block.end <= LEAF => Ok(blake3::hash(content.read(block)?) == *digest),
        Expected::File(digest) => {
            let values: io::Result<Vec<_>> = pieces.map(|piece| value(&piece, is_file, values, content)).collect();
            Ok(pieces::file_digest(block.end, &values?) == *digest)
        }
        Expected::Block(digest) => {
            let mut hasher = BlockHasher::new();
            for piece in pieces {
                hasher.piece(&value(&piece, is_file, values, content)?);
            }
            Ok(hasher.finish() == *digest)
        }
        Expected::Zeros => {
            if let Content::File(file, _) = content
                && sparse::is_hole(file, &block)
            {
                return Ok(true);
            }
            for piece in pieces {
                if !sparse::is_zero(content.read(piece)?) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// The value of a piece; what is not known of it is read.
fn value(
    piece: &Range<u64>,
    is_file: bool,
    values: Option<&Values>,
    content: &mut Content<'_>,
) -> io::Result<[u8; 32]> {
    if let Some(value) = values.and_then(|values| values.known(piece)) {
        return Ok(value);
    }
    let (mut hasher, until) = match values.and_then(|values| values.begun(piece)) {
        Some(begun) => (begun.hasher.clone(), begun.until),
        None => (PieceHasher::new(piece, is_file), piece.start),
    };
    hasher.update(content.read(until..piece.end)?);
    Ok(hasher.value())
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
        /// Whichever parts of pieces were seen in memory, and wherever the block lies.
        #[test]
        fn pieces_from_memory_and_from_the_file_make_one_digest(
            start in 0u64..3 * LEAF, length in 1u64..6 * LEAF, seen in proptest::collection::vec((any::<bool>(), any::<[u64; 2]>()), 10),
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
            let mut values = Values::of(block.clone(), &expected);
            for (piece, (stays, cut)) in pieces::pieces(block.clone()).zip(seen.iter().cycle()) {
                // Its first bytes, then some that follow, with or without a gap.
                let cut = cut.map(|cut| piece.start + cut % (piece.end - piece.start));
                let parts = [piece.start..cut[0], cut[0].max(cut[1])..piece.end];
                for part in parts.into_iter().filter(|_| *stays) {
                    values.take(part.start, &content[part.start as usize..part.end as usize]);
                }
            }
            let unknown = values.unknown();
            for piece in pieces::pieces(block.clone()) {
                let is_unknown = unknown.iter().any(|range| range.start <= piece.start && piece.end <= range.end);
                prop_assert_eq!(is_unknown, values.known(&piece).is_none());
            }
            let is_right = is_block(&expected, block, Some(&values), &mut Content::Memory(0, &content));
            prop_assert_eq!(is_right.expect("in memory"), damage.is_none());
        }
    }
}
