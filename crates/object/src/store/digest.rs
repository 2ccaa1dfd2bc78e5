//! BLAKE3 of a file whose bytes arrive in any order.
//!
//! BLAKE3 is a tree, so aligned stretches of a file can be hashed as soon as they are complete, while the page cache still
//! holds them, and joined at the end. Not here: which digest was expected.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root};

/// The digest of one file in the making.
#[derive(Debug)]
pub(crate) struct TreeDigest {
    length: u64,
    /// Bytes of a group, a power of two.
    group: u64,
    /// Bytes that are still missing in each group.
    missing: Vec<u32>,
    values: Vec<Option<ChainingValue>>,
    /// Groups that are complete and not hashed yet.
    ready: Vec<u32>,
}

impl TreeDigest {
    /// The digest of a file of `length` bytes, none of which are there.
    pub(crate) fn new(length: u64) -> TreeDigest {
        let group = (length / MAX_GROUPS).next_power_of_two().max(MIN_GROUP);
        let groups = length.div_ceil(group);
        let missing = (0..groups).map(|i| (length - i * group).min(group) as u32).collect();
        TreeDigest { length, group, missing, values: vec![None; groups as usize], ready: Vec::new() }
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

    /// Hashes the groups that are complete. Their bytes must be in `file`.
    pub(crate) fn hash_ready(&mut self, file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
        while let Some(group) = self.ready.pop() {
            self.hash_group(group as usize, file, buffer)?;
        }
        Ok(())
    }

    fn hash_group(&mut self, group: usize, file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
        if self.values.len() == 1 {
            return Ok(());
        }
        let start = group as u64 * self.group;
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(start);
        update(&mut hasher, file, start, (self.length - start).min(self.group), buffer)?;
        self.values[group] = Some(hasher.finalize_non_root());
        Ok(())
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

/// Small enough that groups complete while a file arrives.
const MIN_GROUP: u64 = 128 << 10;
/// Bounds the memory: at most this many values of 32 bytes, times two.
const MAX_GROUPS: u64 = 1 << 15;
const READ_BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_joined_digest_is_that_of_the_whole() {
        for length in [0u64, 1, 1024, 131_072, 131_073, 262_144, 1_000_000, 131_072 * 5] {
            let content: Vec<u8> = (0..length).map(|i| ((i * 7) >> 3) as u8).collect();
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
}
