//! Digests of a file and of its source blocks, from the same leaves, so that no byte is hashed twice for both.
//!
//! BLAKE3 is a tree: a leaf of [`LEAF`] bytes of a file, aligned, has a chaining value, and the values of all leaves make the
//! file's digest. A block begins and ends anywhere in a leaf. It is cut at every multiple of [`LEAF`] of the *file* into
//! pieces; the value of a piece that is a whole leaf is its chaining value, that of any other its own BLAKE3 hash. The block's
//! digest is the first 16 bytes of BLAKE3, in key derivation mode with a context of its own, over the values of its pieces.
//!
//! Where the sender leaves out a block of zeros, 16 zero bytes stand in the place of its digest.
//!
//! Not here: files and what was expected.

use std::ops::Range;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root};

/// The digest of a source block: 128 bits, which nobody but the sender can find other bytes for.
pub type BlockDigest = [u8; 16];

/// Stands for the digest of a block that is all zeros and is not sent: a receiver has it already.
pub(crate) const ZEROS: BlockDigest = [0; 16];

/// Bytes of a leaf: large enough to be hashed at full speed, and so small that those which are being filled stay in the
/// processor's cache.
pub const LEAF: u64 = 32 << 10;

/// What sets block digests apart from all other uses of BLAKE3.
const CONTEXT: &str = "weir 2026 digest of a source block";

/// The chaining value of the leaf that starts at `start` of a file; `bytes` are all of it, and at least one. That of an only leaf is
/// not the file's digest.
pub fn leaf(start: u64, bytes: &[u8]) -> ChainingValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(start);
    hasher.update(bytes);
    hasher.finalize_non_root()
}

/// The digest of a file of `length` bytes, more than one leaf, from the values of its leaves.
pub(crate) fn file_digest(length: u64, values: &[ChainingValue]) -> [u8; 32] {
    let left = left_subtree_len(length);
    let (left_value, right_value) = (subtree(0, left, values), subtree(left, length - left, values));
    *merge_subtrees_root(&left_value, &right_value, Mode::Hash).as_bytes()
}

fn subtree(start: u64, length: u64, values: &[ChainingValue]) -> ChainingValue {
    if length <= LEAF {
        return values[(start / LEAF) as usize];
    }
    let left = left_subtree_len(length);
    let (left_value, right_value) = (subtree(start, left, values), subtree(start + left, length - left, values));
    merge_subtrees_non_root(&left_value, &right_value, Mode::Hash)
}

/// The pieces of a block that takes these bytes of a file.
pub(crate) fn pieces(block: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = block.start;
    std::iter::from_fn(move || {
        let piece = at..((at / LEAF + 1) * LEAF).min(block.end);
        at = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The number of the leaf that a piece is, if it is a whole one.
pub(crate) fn whole_leaf(piece: &Range<u64>) -> Option<u64> {
    (piece.end - piece.start == LEAF).then_some(piece.start / LEAF)
}

/// The value of one piece of a block in the making; it is given its bytes from the first to the last.
#[derive(Debug, Clone)]
pub(crate) struct PieceHasher {
    hasher: blake3::Hasher,
    is_leaf: bool,
}

impl PieceHasher {
    /// Before the first byte. Of a file that `is_file`, one block, the last piece is a leaf as well, however short.
    pub(crate) fn new(piece: &Range<u64>, is_file: bool) -> PieceHasher {
        let is_leaf = is_file || whole_leaf(piece).is_some();
        let mut hasher = blake3::Hasher::new();
        if is_leaf {
            hasher.set_input_offset(piece.start);
        }
        PieceHasher { hasher, is_leaf }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// When it has had all bytes, and at least one.
    pub(crate) fn value(&self) -> [u8; 32] {
        if self.is_leaf { self.hasher.finalize_non_root() } else { *self.hasher.finalize().as_bytes() }
    }
}

/// The value of a piece whose bytes are these.
pub(crate) fn piece_value(piece: &Range<u64>, is_file: bool, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = PieceHasher::new(piece, is_file);
    hasher.update(bytes);
    hasher.value()
}

/// The digest of one block in the making; it is given the pieces in their order.
#[derive(Debug)]
pub(crate) struct BlockHasher(blake3::Hasher);

impl BlockHasher {
    pub(crate) fn new() -> BlockHasher {
        BlockHasher(blake3::Hasher::new_derive_key(CONTEXT))
    }

    /// Takes the value of a piece.
    pub(crate) fn piece(&mut self, value: &[u8; 32]) {
        self.0.update(value);
    }

    pub(crate) fn finish(&self) -> BlockDigest {
        self.0.finalize().as_bytes()[..16].try_into().expect("16 of 32 bytes")
    }
}

/// The digest of a block that takes the bytes `block` of a file, of which `bytes` are those.
#[cfg(test)]
pub(crate) fn block_digest(block: Range<u64>, bytes: &[u8]) -> BlockDigest {
    let mut hasher = BlockHasher::new();
    for piece in pieces(block.clone()) {
        let content = &bytes[(piece.start - block.start) as usize..(piece.end - block.start) as usize];
        hasher.piece(&piece_value(&piece, false, content));
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(length: u64) -> Vec<u8> {
        (0..length).map(|i| ((i * 7) >> 3) as u8).collect()
    }

    #[test]
    fn the_values_of_the_leaves_make_the_digest_of_the_whole() {
        for length in [LEAF + 1, 2 * LEAF, 1_000_000, LEAF * 5] {
            let content = content(length);
            let leaves = content.chunks(LEAF as usize).enumerate();
            let values: Vec<_> = leaves.map(|(number, bytes)| leaf(number as u64 * LEAF, bytes)).collect();
            assert_eq!(file_digest(length, &values), *blake3::hash(&content).as_bytes(), "{length} bytes");
        }
    }

    #[test]
    fn a_block_is_cut_at_the_leaves_of_its_file() {
        let cut: Vec<_> = pieces(LEAF - 10..2 * LEAF + 5).collect();
        assert_eq!(cut, [LEAF - 10..LEAF, LEAF..2 * LEAF, 2 * LEAF..2 * LEAF + 5]);
        assert_eq!(cut.iter().map(whole_leaf).collect::<Vec<_>>(), [None, Some(1), None]);
        assert_eq!(pieces(3..9).next(), Some(3..9));
    }

    #[test]
    fn every_byte_of_a_block_and_its_place_count() {
        let range = LEAF / 2..3 * LEAF + 7;
        let mut bytes = content(range.end - range.start);
        let right = block_digest(range.clone(), &bytes);
        for at in [0, LEAF as usize, bytes.len() - 1] {
            bytes[at] ^= 1;
            assert_ne!(block_digest(range.clone(), &bytes), right, "byte {at}");
            bytes[at] ^= 1;
        }
        assert_ne!(block_digest(range.start + LEAF..range.end + LEAF, &bytes), right, "elsewhere in the file");
    }
}
