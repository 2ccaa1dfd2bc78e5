//! Whether a block is what the manifest says, and what becomes of one that is not.
//!
//! Symbols of others than the sender are thrown out, as far as addresses tell. Where they do not, a few symbols more are
//! collected, and the block is decoded without these and without those: if one or two of it are wrong, that finds them out, at a
//! small part of what the whole block would cost. Else that block alone is collected again.

use super::digest::{self, Content};
use weir_units::Random;

use super::incoming::{Again, Block, Part};
use super::receive::decode;
use super::window::STRETCH;
use super::{Event, FileState, Origin, Store, StoreError};

impl Block {
    /// Whether symbols of `origin` are taken.
    pub(super) fn takes(&mut self, origin: Origin) -> bool {
        let Some(Again { only: Some(only), refused }) = &mut self.again else { return true };
        if *only == origin {
            *refused = 0;
            return true;
        }
        *refused += 1;
        if *refused > self.symbols.saturating_mul(PATIENCE) {
            // The sender may have another address now.
            self.again = Some(Again { only: None, refused: 0 });
        }
        false
    }

    /// Bytes of the symbols beyond those in its slots.
    pub(super) fn extra_bytes(&self) -> u64 {
        self.extra.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

impl Store {
    /// Whether a block that was decoded is what the manifest says of it, if it says anything.
    pub(super) fn is_right(&mut self, file: u32, index: u32, decoded: &[u8]) -> Result<bool, StoreError> {
        let incoming = self.incoming(file);
        let Some(expected) = incoming.spec.expected(index) else { return Ok(true) };
        let block = &incoming.blocks[index as usize];
        let mut content = Content::Memory(block.start, decoded);
        let is_right = digest::is_block(&expected, block.range(), block.leaves.as_deref(), &mut content);
        is_right.map_err(|source| self.file_error(file, source))
    }

    /// The same of a block whose source symbols are in the window and in the file.
    pub(super) fn is_right_in_file(&mut self, file: u32, index: u32) -> Result<bool, StoreError> {
        let incoming = self.incoming(file);
        let Some(expected) = incoming.spec.expected(index) else { return Ok(true) };
        let range = incoming.blocks[index as usize].range();
        for number in stretches(&range) {
            if let Some(place) = self.window.find(file, number) {
                self.write_stretch(place)?;
            }
        }
        self.open_handles(file)?;
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(true) };
        let handles = incoming.handles.as_ref().expect("was just opened");
        let leaves = incoming.blocks[index as usize].leaves.as_deref();
        let mut content = Content::File(&handles.data, &mut self.scratch);
        let is_right = digest::is_block(&expected, range, leaves, &mut content);
        is_right.map_err(|source| self.file_error(file, source))
    }

    /// A block is not what the manifest says, or cannot be decoded from many symbols: some were forged or damaged. Those of the
    /// sender stay, as far as anybody can tell who that is, and the rest is collected again.
    pub(super) fn reject_block(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        // What stays must be in the file before its stretches leave memory.
        self.flush_data()?;
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(()) };
        let has_digest = incoming.spec.expected(index).is_some();
        let block = &mut incoming.blocks[index as usize];
        if let Some(leaves) = &mut block.leaves {
            **leaves = digest::Leaves::of(&(block.start..block.start + block.length));
        }
        let slots = block.slots.as_ref().expect("a block that is full has its map in memory");
        let preferred = self.senders.preferred(slots.senders());
        let is_of_one = slots.senders().count() == 1 && slots.senders().all(|(origin, _)| Some(origin) == preferred);
        if is_of_one && has_digest && part.layout.codec().is_some() && block.doubt.is_none() {
            block.doubt = Some(block.symbols.div_ceil(DOUBTS[0]) + SPARE);
            block.again = Some(Again { only: preferred, refused: 0 });
            self.note_bad_block(file, index, 0);
            return self.resolve_doubt(file, index, part);
        }
        self.empty_block(file, index, preferred.filter(|_| !is_of_one))
    }

    /// Throws all symbols of a block away but those of one sender.
    fn empty_block(&mut self, file: u32, index: u32, keep: Option<Origin>) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(()) };
        let block = &mut incoming.blocks[index as usize];
        let slots = block.slots.as_mut().expect("a block that is full has its map in memory");
        let had = block.symbols + block.extra.len() as u32;
        if !slots.is_dirty() {
            self.changed.push((file, index));
        }
        block.have = slots.keep_only(keep);
        let kept = block.have;
        self.budget.give(block.extra_bytes());
        block.extra = Vec::new();
        // Who sent nothing but what is thrown away is not asked for more of it.
        block.again = Some(Again { only: keep, refused: 0 });
        let was_told = block.doubt.take().is_some();
        let range = block.range();
        // So that no byte counts as final twice.
        self.window.forget_stretches(file, stretches(&range));
        self.counts.discarded_symbols += u64::from(had - kept);
        if !was_told {
            self.note_bad_block(file, index, had - kept);
        }
        Ok(())
    }

    /// A block is wrong, and all of it came from one address. With enough symbols more, tries it without some of them, in turn.
    pub(super) fn resolve_doubt(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let block = &self.incoming(file).blocks[index as usize];
        let (count, extra) = (block.symbols, block.extra.len() as u32);
        if block.doubt.is_none_or(|wanted| extra < wanted) {
            return Ok(());
        }
        self.flush()?;
        self.open_handles(file)?;
        let symbols = self.symbols_of(file, index, part).map_err(|source| self.file_error(file, source))?;
        if let Some(decoded) = self.decode_without(file, index, part, symbols)? {
            self.incoming(file).blocks[index as usize].leaves = None;
            self.write_back(file, index, part, &decoded, true)?;
            self.settle_block(file, index);
            return if self.incoming(file).left == 0 { self.finish_file(file) } else { Ok(()) };
        }
        // With more symbols, more of them can be wrong.
        let next = DOUBTS.iter().map(|share| count.div_ceil(*share) + SPARE).find(|wanted| *wanted > extra);
        match next {
            Some(next) => self.incoming(file).blocks[index as usize].doubt = Some(next),
            None => self.empty_block(file, index, None)?,
        }
        Ok(())
    }

    /// What a block decodes to without some of its symbols, if that is what the manifest says.
    fn decode_without(
        &mut self,
        file: u32,
        index: u32,
        part: &Part,
        mut symbols: Vec<(u32, Vec<u8>)>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let count = self.incoming(file).blocks[index as usize].symbols;
        let left_out = symbols.len() - (count + SPARE) as usize;
        let mut random = Random::new(u64::from(index), "symbols to leave out");
        for trial in 0..TRIALS {
            let first = trial * left_out % symbols.len();
            if first < left_out {
                // All have been left out once, or none.
                (1..symbols.len()).for_each(|i| symbols.swap(i, random.below(i as u64 + 1) as usize));
            }
            self.counts.tried_symbols += symbols.len() as u64;
            if self.counts.tried_symbols > TRIES_FREE + TRIES_PER_SYMBOL * self.counts.useful_symbols {
                return Ok(None);
            }
            let end = first + left_out;
            let is_left_out = |at: usize| (first..end).contains(&at) || (first..end).contains(&(at + symbols.len()));
            let some = symbols.iter().enumerate().filter(|(at, _)| !is_left_out(*at));
            let decoded = decode(part, count, some.map(|(_, (symbol, bytes))| (*symbol, &bytes[..])));
            if let Some(decoded) = decoded
                && self.is_right(file, index, &decoded)?
            {
                return Ok(Some(decoded));
            }
        }
        Ok(None)
    }

    /// Opens those blocks of a complete file again that are of an earlier run and wrong; whether there are any.
    pub(super) fn open_wrong_blocks(&mut self, file: u32) -> Result<bool, StoreError> {
        let mut found = false;
        for index in 0..self.incoming(file).blocks.len() as u32 {
            let block = &mut self.incoming(file).blocks[index as usize];
            if !std::mem::take(&mut block.unchecked) || self.is_right_in_file(file, index)? {
                continue;
            }
            found = true;
            self.open_handles(file)?;
            let symbols = self.incoming(file).blocks[index as usize].symbols;
            let result = self.incoming(file).open_again(index);
            result.map_err(|source| self.file_error(file, source))?;
            self.counts.discarded_symbols += u64::from(symbols);
            self.note_bad_block(file, index, symbols);
        }
        Ok(found)
    }

    fn note_bad_block(&mut self, file: u32, index: u32, discarded: u32) {
        self.counts.bad_blocks += 1;
        let name = self.incoming(file).spec.name.clone();
        self.event(Event::BadBlock { name, block: index, discarded });
    }
}

/// The stretches of a file that these bytes lie in.
fn stretches(range: &std::ops::Range<u64>) -> std::ops::Range<u64> {
    range.start / STRETCH as u64..range.end.div_ceil(STRETCH as u64)
}

/// A block that is collected from one sender is collected from all again after this number of times its symbols came from others
/// and none from that one.
const PATIENCE: u32 = 4;
/// Symbols beyond those of the block that are collected before it is tried without some: these parts of it, in turn. With a 32nd, one
/// wrong symbol is found for sure; with a quarter, two or three with luck.
const DOUBTS: [u32; 2] = [32, 4];
/// Symbols more than a block has with which decoding hardly ever fails.
const SPARE: u32 = 2;
/// How often a block is tried: each symbol is left out once where there are a 32nd more.
const TRIALS: usize = 40;
/// Symbols that may be decoded in vain: so many for each one that was of use, besides some that are free. Who forges much must not
/// keep this host busy.
const TRIES_PER_SYMBOL: u64 = 16;
const TRIES_FREE: u64 = 100_000;
