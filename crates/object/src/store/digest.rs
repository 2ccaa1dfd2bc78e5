//! BLAKE3 of a file whose bytes arrive in any order.
//!
//! BLAKE3 is a tree, so aligned leaves of a file can be hashed as soon as they are complete, mostly while they are in memory,
//! and joined later. What was not hashed from memory is read back. Not here: which digest was expected.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root};

/// The digest of one file in the making.
#[derive(Debug)]
pub(crate) struct TreeDigest {
    length: u64,
    /// Bytes of a group, a power of two: a leaf, or several where the file is large.
    group: u64,
    /// Bytes that are still missing in each group.
    missing: Vec<u32>,
    values: Vec<Option<ChainingValue>>,
    /// Leaves that were hashed from memory, of groups that were not, by where they start.
    leaves: BTreeMap<u64, ChainingValue>,
    /// Groups that are complete and not hashed yet.
    ready: Vec<u32>,
}

impl TreeDigest {
    /// The digest of a file of `length` bytes, none of which are there.
    pub(crate) fn new(length: u64) -> TreeDigest {
        let group = (length / MAX_GROUPS).next_power_of_two().max(LEAF);
        let groups = length.div_ceil(group);
        let missing = (0..groups).map(|i| (length - i * group).min(group) as u32).collect();
        let values = vec![None; groups as usize];
        TreeDigest { length, group, missing, values, leaves: BTreeMap::new(), ready: Vec::new() }
    }

    /// Notes that the bytes from `start` on, `count` of them, have got their final values. Each byte once.
    pub(crate) fn add(&mut self, start: u64, count: u64) {
        let end = (start + count).min(self.length);
        let mut at = start;
        while at < end {
            let group = (at / self.group) as usize;
            let stop = end.min((group as u64 + 1) * self.group);
            self.missing[group] -= (stop - at) as u32;
            if self.missing[group] == 0 {
                self.ready.push(group as u32);
            }
            at = stop;
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the final bytes of the leaf that starts at `start`, a multiple of [`LEAF`]: all of it, or to the end of the
    /// file and beyond. What is known already is not hashed again.
    pub(crate) fn add_leaf(&mut self, start: u64, bytes: &[u8]) {
        let group = (start / self.group) as usize;
        let is_known = self.values.get(group).is_none_or(Option::is_some) || self.leaves.contains_key(&start);
        // The whole of a file that is one leaf is hashed otherwise, at the end.
        if is_known || self.values.len() == 1 || self.leaves.len() >= MAX_LEAVES {
            return;
        }
        let length = (self.length - start).min(LEAF) as usize;
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(start);
        hasher.update(&bytes[..length]);
        let value = hasher.finalize_non_root();
        if self.group == LEAF {
            self.values[group] = Some(value);
        } else {
            self.leaves.insert(start, value);
        }
    }

    /// Hashes the groups that are complete. Their bytes must be in `file`.
    pub(crate) fn hash_ready(&mut self, file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
        while let Some(group) = self.ready.pop() {
            self.hash_group(group as usize, file, buffer)?;
        }
        Ok(())
    }

    fn hash_group(&mut self, group: usize, file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
        if self.values.len() == 1 || self.values[group].is_some() {
            return Ok(());
        }
        let start = group as u64 * self.group;
        let value = self.hash_subtree(start, (self.length - start).min(self.group), file, buffer)?;
        self.values[group] = Some(value);
        Ok(())
    }

    /// Joins the leaves that were hashed from memory, and reads the others.
    fn hash_subtree(
        &mut self,
        start: u64,
        length: u64,
        file: &File,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ChainingValue> {
        if length > LEAF {
            let left = left_subtree_len(length);
            let left_value = self.hash_subtree(start, left, file, buffer)?;
            let right_value = self.hash_subtree(start + left, length - left, file, buffer)?;
            return Ok(merge_subtrees_non_root(&left_value, &right_value, Mode::Hash));
        }
        if let Some(value) = self.leaves.remove(&start) {
            return Ok(value);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(start);
        update(&mut hasher, file, start, length, buffer)?;
        Ok(hasher.finalize_non_root())
    }

    /// The digest of the whole file, all of which must be there.
    pub(crate) fn finish(&mut self, file: &File, buffer: &mut Vec<u8>) -> io::Result<[u8; 32]> {
        if self.values.len() <= 1 {
            let mut hasher = blake3::Hasher::new();
            update(&mut hasher, file, 0, self.length, buffer)?;
            return Ok(*hasher.finalize().as_bytes());
        }
        for group in 0..self.values.len() {
            if self.values[group].is_none() {
                self.hash_group(group, file, buffer)?;
            }
        }
        let left = left_subtree_len(self.length);
        let (left_value, right_value) = (self.subtree(0, left), self.subtree(left, self.length - left));
        Ok(*merge_subtrees_root(&left_value, &right_value, Mode::Hash).as_bytes())
    }

    fn subtree(&self, start: u64, length: u64) -> ChainingValue {
        if length <= self.group {
            return self.values[(start / self.group) as usize].expect("all groups were hashed");
        }
        let left = left_subtree_len(length);
        merge_subtrees_non_root(&self.subtree(start, left), &self.subtree(start + left, length - left), Mode::Hash)
    }
}

fn update(hasher: &mut blake3::Hasher, file: &File, start: u64, length: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.resize(READ_BUFFER, 0);
    let mut at = 0;
    while at < length {
        let count = (length - at).min(READ_BUFFER as u64) as usize;
        file.read_exact_at(&mut buffer[..count], start + at)?;
        hasher.update(&buffer[..count]);
        at += count as u64;
    }
    Ok(())
}

/// Bytes of a leaf: large enough to be hashed at full speed, and so small that those which are being filled stay in the
/// processor's cache.
pub(crate) const LEAF: u64 = 32 << 10;
/// Bounds the memory: at most this many values of 32 bytes, times two.
const MAX_GROUPS: u64 = 1 << 16;
/// Likewise, for files whose groups are several leaves.
const MAX_LEAVES: usize = 1 << 14;
const READ_BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn content(length: u64) -> Vec<u8> {
        (0..length).map(|i| ((i * 7) >> 3) as u8).collect()
    }

    #[test]
    fn the_joined_digest_is_that_of_the_whole() {
        for length in [0u64, 1, 1024, LEAF, LEAF + 1, 2 * LEAF, 1_000_000, LEAF * 5] {
            let content = content(length);
            let file = tempfile::tempfile().expect("temporary file");
            file.write_all_at(&content, 0).expect("written");
            let mut digest = TreeDigest::new(length);
            let mut buffer = Vec::new();
            let mut at = 0;
            while at < length {
                digest.add(at, 1400);
                at += 1400;
                digest.hash_ready(&file, &mut buffer).expect("readable");
            }
            assert!(digest.missing.iter().all(|missing| *missing == 0));
            let actual = digest.finish(&file, &mut buffer).expect("readable");
            assert_eq!(actual, *blake3::hash(&content).as_bytes(), "{length} bytes");
        }
    }

    proptest! {
        /// Whichever leaves were seen in memory, and whether a group is one leaf or several.
        #[test]
        fn leaves_from_memory_and_from_the_file_make_one_digest(
            length in 1u64..10 * LEAF, seen in proptest::collection::vec(any::<bool>(), 10), leaves_a_group in 0u32..3,
        ) {
            let content = content(length);
            let file = tempfile::tempfile().expect("temporary file");
            let mut on_disk = content.clone();
            let mut digest = TreeDigest::new(length);
            digest.group = LEAF << leaves_a_group;
            let groups = length.div_ceil(digest.group);
            digest.values = vec![None; groups as usize];
            digest.missing = (0..groups).map(|i| (length - i * digest.group).min(digest.group) as u32).collect();
            for (number, leaf) in content.chunks(LEAF as usize).enumerate().filter(|(number, _)| seen[*number]) {
                digest.add_leaf(number as u64 * LEAF, leaf);
                if groups > 1 {
                    // It must not be looked at again.
                    on_disk[number * LEAF as usize] ^= 1;
                }
            }
            file.write_all_at(&on_disk, 0).expect("written");
            digest.add(0, length);
            let mut buffer = Vec::new();
            digest.hash_ready(&file, &mut buffer).expect("readable");
            let actual = digest.finish(&file, &mut buffer).expect("readable");
            prop_assert_eq!(actual, *blake3::hash(&content).as_bytes());
            prop_assert!(digest.leaves.is_empty() || groups == 1);
        }
    }
}
