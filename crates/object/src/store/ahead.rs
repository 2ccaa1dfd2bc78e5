//! Unpacking while a bundle still comes: files whose bytes are there, though the blocks that they are in are not complete.
//!
//! A file's own digest tells whether it is right, and the index has that. The sender sends indexes first, and source symbols in about the order
//! of the files, so that most files can be written while nothing else is to be done, and hardly any are left at the end. What is not right
//! yet waits for its blocks.

use std::ops::Range;

use super::incoming::{Block, Incoming};
use super::unpack::State;
use super::{FileState, Store, StoreError};

impl Block {
    /// Whether these bytes of the file, as far as they are in the block, are in the partial file, in symbols of `size` bytes.
    fn has_written(&self, range: &Range<u64>, size: u64) -> bool {
        let first = (range.start.max(self.start) - self.start) / size;
        let end = (range.end.min(self.range().end) - self.start).div_ceil(size);
        (first..end).all(|slot| self.slots.as_ref().is_some_and(|slots| slots.is_written(slot as u32)))
    }
}

impl Incoming {
    /// Whether these bytes are in the partial file; with `only_right`, in blocks that are known to be right.
    pub(super) fn has(&self, range: &Range<u64>, only_right: bool) -> bool {
        let layout = self.spec.parts.first().map(|part| part.layout);
        let size = layout.filter(|layout| layout.in_order() && !only_right).map(|layout| layout.symbol_size() as u64);
        let mut blocks = self.blocks[self.blocks_in(range)].iter();
        blocks.all(|block| block.done || size.is_some_and(|size| block.has_written(range, size)))
    }

    /// The numbers of the blocks that these bytes are in.
    pub(super) fn blocks_in(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.blocks.partition_point(|block| block.range().end <= range.start);
        first..first + self.blocks[first..].partition_point(|block| block.start < range.end)
    }
}

impl Store {
    /// Writes a few files of bundles that are there already, if there are any; whether there may be more. To be called when there is
    /// nothing else to do. Where threads decode blocks ([`super::StoreOptions::decoding_threads`]) nothing else writes files of bundles;
    /// elsewhere [`Store::add`] does when their blocks are complete.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn unpack_some(&mut self) -> Result<bool, StoreError> {
        self.take_synced()?;
        let mut room = LOT;
        while let Some((file, range)) = self.bundles.arrived.pop_front() {
            let FileState::Incoming(incoming) = &self.files[file as usize] else { continue };
            let Some(unpacking) = &incoming.unpacking else {
                self.read_index_ahead(file)?;
                continue;
            };
            let Some(index) = &unpacking.index else { continue };
            let numbers = index.files_in(&range);
            let is_waiting = |number: &usize| matches!(unpacking.states[*number], State::Unseen | State::Waiting);
            let Some(first) = numbers.clone().find(is_waiting) else { continue };
            let last = numbers.end.min(first + room);
            if last < numbers.end {
                let rest = index.files[last].start..range.end;
                self.bundles.arrived.push_front((file, rest));
            }
            self.unpack(file, first..last)?;
            room -= last - first;
            if room == 0 {
                return Ok(true);
            }
        }
        if self.see_some(room)? { Ok(true) } else { self.finish_some(room) }
    }

    /// Looks for a few files of the bundles whose files nobody has looked for; whether there may be more.
    fn see_some(&mut self, room: usize) -> Result<bool, StoreError> {
        let Some(file) = self.bundles.unseen.front().copied() else { return Ok(false) };
        let unseen = match &self.files[file as usize] {
            FileState::Incoming(incoming) => incoming.unpacking.as_ref().and_then(|unpacking| unpacking.unseen()),
            _ => None,
        };
        match unseen {
            Some(first) => self.unpack(file, first..first + room)?,
            None => {
                self.bundles.unseen.pop_front();
                self.cover(file)?;
            }
        }
        Ok(true)
    }

    /// Writes a few files of the bundles of which nothing is missing, or lets one go all of whose files are done; whether there may be more.
    fn finish_some(&mut self, room: usize) -> Result<bool, StoreError> {
        let mut done = None;
        for at in 0..self.bundles.whole.len() {
            let file = self.bundles.whole[at];
            let unpacking = match &self.files[file as usize] {
                FileState::Incoming(incoming) if incoming.left == 0 => incoming.unpacking.as_ref(),
                // A block was wrong after all, or the set is another.
                _ => {
                    self.bundles.whole.remove(at);
                    return Ok(true);
                }
            };
            if let Some(first) = unpacking.and_then(|unpacking| unpacking.waiting()) {
                self.unpack(file, first..first + room)?;
                return Ok(true);
            }
            if !unpacking.is_some_and(|unpacking| unpacking.is_uncommitted()) {
                done = done.or(Some(at));
            }
        }
        if let Some(file) = done.and_then(|at| self.bundles.whole.remove(at)) {
            self.finish_bundle(file)?;
            return Ok(true);
        }
        if self.bundles.whole.is_empty() {
            return Ok(false);
        }
        // Nothing is left to be done but to wait for the disk.
        self.commit()?;
        Ok(!self.is_syncing())
    }

    /// Nothing is missing of a bundle.
    pub(super) fn note_whole(&mut self, file: u32) {
        if !self.bundles.whole.contains(&file) {
            self.bundles.whole.push_back(file);
        }
    }

    /// Reads the index of a bundle as soon as it is there, and has what came before it looked at.
    fn read_index_ahead(&mut self, file: u32) -> Result<(), StoreError> {
        self.read_index(file)?;
        if let FileState::Incoming(incoming) = &self.files[file as usize]
            && incoming.unpacking.is_some()
        {
            let length = incoming.spec.length;
            self.note_arrived(file, 0..length);
        }
        self.finish_if_whole(file)
    }

    /// These bytes of a file are in its partial file now.
    pub(super) fn note_arrived(&mut self, file: u32, range: Range<u64>) {
        if self.incoming(file).spec.bundle.is_none() {
            return;
        }
        // Nobody asks for them: their blocks will be complete sometime.
        if self.bundles.arrived.len() >= MAX_ARRIVED {
            self.bundles.arrived.pop_front();
        }
        self.bundles.arrived.push_back((file, range));
    }
}

/// So many files are looked at in one call: some milliseconds.
const LOT: usize = 64;
const MAX_ARRIVED: usize = 1 << 14;
