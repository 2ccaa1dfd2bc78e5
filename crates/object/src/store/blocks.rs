//! Whether a block is what the manifest says, and what becomes of one that is not.
//!
//! Symbols of others than the sender are thrown out, as far as addresses tell: who sent most of what was right is taken for the
//! sender, and where nobody has yet, those who might be have a turn each, until the block is right. Where addresses do not tell, a few
//! symbols more are collected, which say which ones are wrong (`forged.rs`). Only where they do not, that block alone is collected
//! again.

use std::collections::BTreeSet;
use std::ops::Range;

use super::digest::{self, Content, Expected};
use super::forged::{self, Symbol, Unknown};
use super::incoming::{Block, Part, Recollection};
use super::missing;

use super::window::STRETCH;
use super::{Event, FileState, Origin, Store, StoreError};

impl Block {
    /// Whether symbols of `origin` are taken.
    pub(super) fn takes(&mut self, origin: Origin) -> bool {
        let Some(recollection) = &mut self.recollection else { return true };
        if recollection.only.is_none_or(|only| only == origin) {
            return true;
        }
        recollection.refused += 1;
        recollection.left = recollection.left.saturating_sub(1);
        let is_silent = recollection.refused > self.symbols.saturating_mul(PATIENCE);
        if is_silent || recollection.left == 0 {
            recollection.end_turn(is_silent);
        }
        false
    }

    /// A symbol of `origin` was of use.
    pub(super) fn note_use(&mut self, origin: Origin) {
        if let Some(recollection) = self.recollection.as_mut().filter(|recollection| recollection.only == Some(origin))
        {
            recollection.refused = 0;
        }
    }

    /// Has symbols of `only` taken, or of everybody. One that is not `proven` is given less time; each turn that comes to nothing
    /// has the next one take longer.
    fn prefer(&mut self, only: Option<Origin>, proven: Option<Origin>) {
        let recollection = self.recollection.get_or_insert_default();
        (recollection.only, recollection.refused) = (only, 0);
        recollection.is_proven = only.is_some() && only == proven;
        let patience =
            if recollection.is_proven { LONG_PATIENCE } else { PATIENCE << recollection.turns.min(MOST_TURNS) };
        recollection.left = self.symbols.saturating_mul(patience);
    }

    /// Who is not preferred for it any more.
    fn tried(&mut self) -> &mut BTreeSet<Origin> {
        &mut self.recollection.get_or_insert_default().tried
    }

    /// Bytes of the symbols beyond those in its slots.
    pub(super) fn extra_bytes(&self) -> u64 {
        self.extra.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

impl Recollection {
    /// Takes symbols of everybody again: the one who was preferred is silent, or others send too much.
    fn end_turn(&mut self, is_silent: bool) {
        self.turns += 1;
        // The sender may have another address now, or never had this one.
        let is_given_up = !self.is_proven || (is_silent && self.turns >= TURNS_OF_PROVEN);
        let only = self.only.take();
        self.tried.extend(only.filter(|_| is_given_up));
    }
}

impl Store {
    /// Whether a block that was decoded is what the manifest says of it, if it says anything.
    pub(super) fn is_block_right(&mut self, file: u32, index: u32, decoded: &[u8]) -> Result<bool, StoreError> {
        let incoming = self.incoming(file);
        let Some(expected) = incoming.spec.expected(index) else { return Ok(true) };
        let block = &incoming.blocks[index as usize];
        let mut content = Content::Memory(block.start, decoded);
        let is_right = digest::is_block(&expected, block.range(), block.values.as_deref(), &mut content);
        is_right.map_err(|source| self.file_error(file, source))
    }

    /// The same of a block whose source symbols are in the window and in the file.
    pub(super) fn is_right_in_file(&mut self, file: u32, index: u32) -> Result<bool, StoreError> {
        let range = self.incoming(file).blocks[index as usize].range();
        self.put_in_file(file, &range)?;
        self.is_right_on_disk(file, index)
    }

    /// The same of one whose source symbols are all in the file.
    pub(super) fn is_right_on_disk(&mut self, file: u32, index: u32) -> Result<bool, StoreError> {
        let incoming = self.incoming(file);
        let Some(expected) = incoming.spec.expected(index) else { return Ok(true) };
        let range = incoming.blocks[index as usize].range();
        self.open_handles(file)?;
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(true) };
        let handles = incoming.handles.as_ref().expect("was just opened");
        let values = incoming.blocks[index as usize].values.as_deref();
        let mut content = Content::File(&handles.data, &mut self.scratch);
        let is_right = digest::is_block(&expected, range, values, &mut content);
        is_right.map_err(|source| self.file_error(file, source))
    }

    /// Hashes and writes what is in the window of these bytes of a file.
    pub(super) fn put_in_file(&mut self, file: u32, range: &Range<u64>) -> Result<(), StoreError> {
        for number in stretches(range) {
            if let Some(place) = self.window.find(file, number) {
                self.hash_stretch(place);
                self.write_stretch(place)?;
            }
        }
        Ok(())
    }

    /// A block is not what the manifest says, or cannot be decoded from many symbols: some were forged or damaged. Those of the
    /// sender stay, as far as anybody can tell who that is, and the rest is collected again.
    pub(super) fn reject_block(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(()) };
        let expected = incoming.spec.expected(index);
        let block = &mut incoming.blocks[index as usize];
        let range = block.range();
        if let (Some(values), Some(expected)) = (&mut block.values, &expected) {
            **values = digest::Values::of(range, expected);
        }
        let slots = block.slots.as_ref().expect("a block that is full has its map in memory");
        let origins: Vec<(Origin, u32)> = slots.senders().collect();
        let mut preferred = self.senders.preferred(&origins, block.tried());
        if preferred.is_none() {
            // All have been tried: from the beginning.
            block.tried().clear();
            preferred = self.senders.preferred(&origins, block.tried());
        }
        let is_coded = part.layout.codec().is_some() && forged::can_search(2 * block.symbols);
        let can_search = expected.is_some() && is_coded && block.wanted_extra.is_none();
        match origins[..] {
            [(sole, _)] if preferred == Some(sole) && can_search => self.search_block(file, index, part, sole),
            [(sole, _)] => {
                block.tried().insert(sole);
                self.empty_block(file, index, None)
            }
            _ => self.empty_block(file, index, preferred),
        }
    }

    /// A block is wrong, and all of it came from `sole`: waits for more symbols from there, to find out which of them are.
    fn search_block(&mut self, file: u32, index: u32, part: &Part, sole: Origin) -> Result<(), StoreError> {
        let (proven, forged) = (self.senders.proven(), self.forged_lately);
        let block = &mut self.incoming(file).blocks[index as usize];
        block.wanted_extra = Some(forged + FIRST_EXTRA);
        block.prefer(Some(sole), proven);
        self.note_bad_block(file, index, 0);
        self.search_with_extra(file, index, part)
    }

    /// Throws all symbols of a block away but those of one sender.
    pub(super) fn empty_block(&mut self, file: u32, index: u32, keep: Option<Origin>) -> Result<(), StoreError> {
        // What stays must be in the file before its stretches leave memory.
        self.flush_data()?;
        let proven = self.senders.proven();
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
        // A sender of nothing but what is thrown away is not asked for more of it.
        let only = keep.or(proven).filter(|only| !block.tried().contains(only));
        block.prefer(only, proven);
        let was_told = block.wanted_extra.take().is_some();
        let range = block.range();
        // So that no byte counts as final twice.
        self.window.forget_stretches(file, stretches(&range));
        self.counts.discarded_symbols += u64::from(had - kept);
        if !was_told {
            self.note_bad_block(file, index, had - kept);
        }
        // Nothing else may get into a slot that the journal says is taken.
        self.flush_maps()
    }

    /// A block is wrong, and all of it came from one address. With enough symbols more, finds those that are wrong.
    pub(super) fn search_with_extra(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let block = &self.incoming(file).blocks[index as usize];
        let (count, extra) = (block.symbols, block.extra.len() as u32);
        if block.wanted_extra.is_none_or(|wanted| extra < wanted) {
            return Ok(());
        }
        self.write_out()?;
        self.open_handles(file)?;
        let symbols = self.symbols_of(file, index, part).map_err(|source| self.file_error(file, source))?;
        match self.decode_without_forged(file, index, part, symbols)? {
            Ok(decoded) => {
                self.write_back(file, index, part, &decoded, true)?;
                self.take_block(file, index)
            }
            Err(Unknown::TooFew) if extra < count && self.counts.tried_symbols <= self.tries_allowed() => {
                // With more symbols, more of them can be wrong.
                self.incoming(file).blocks[index as usize].wanted_extra = Some(2 * extra);
                Ok(())
            }
            Err(_) => self.give_up_search(file, index),
        }
    }

    /// How many symbols searches may have decoded by now, so that a forger cannot keep this host busy.
    fn tries_allowed(&self) -> u64 {
        TRIES_FREE + TRIES_PER_SYMBOL * self.counts.useful_symbols
    }

    /// Nothing tells which symbols of a block are wrong that all came from one address: it is collected again.
    pub(super) fn give_up_search(&mut self, file: u32, index: u32) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        let slots = block.slots.as_ref().expect("a block that is full has its map in memory");
        let origins: Vec<Origin> = slots.senders().map(|(origin, _)| origin).collect();
        block.tried().extend(origins);
        self.empty_block(file, index, None)
    }

    /// What a block decodes to without the symbols that are wrong, if that is what the manifest says.
    fn decode_without_forged(
        &mut self,
        file: u32,
        index: u32,
        part: &Part,
        mut symbols: Vec<Symbol>,
    ) -> Result<Result<Vec<u8>, Unknown>, StoreError> {
        let Some(codec) = part.layout.codec() else { return Ok(Err(Unknown::Alike)) };
        let count = self.incoming(file).blocks[index as usize].symbols;
        self.counts.tried_symbols += forged::cost(symbols.len());
        let wrong = match forged::find(count, &codec, &symbols) {
            Ok(wrong) => wrong,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let mut at = 0..;
        symbols.retain(|_| !at.next().is_some_and(|at| wrong.contains(&at)));
        let some = symbols.iter().map(|(symbol, bytes)| (*symbol, &bytes[..]));
        let Some(decoded) = missing::decode(&codec, count, some) else { return Ok(Err(Unknown::TooFew)) };
        if !self.is_block_right(file, index, &decoded)? {
            return Ok(Err(Unknown::Alike));
        }
        self.forged_lately = wrong.len() as u32;
        Ok(Ok(decoded))
    }

    /// Opens those blocks of a complete file again that are of an earlier run and wrong; whether there are any.
    pub(super) fn open_wrong_blocks(&mut self, file: u32) -> Result<bool, StoreError> {
        let mut found = false;
        for index in 0..self.incoming(file).blocks.len() as u32 {
            let block = &mut self.incoming(file).blocks[index as usize];
            if !std::mem::take(&mut block.unchecked) || self.is_right_in_file(file, index)? {
                continue;
            }
            if self.incoming(file).spec.expected(index) == Some(Expected::Zeros) {
                // Nobody sends it.
                self.write_zeros(file, index)?;
                continue;
            }
            found = true;
            self.open_wrong_block(file, index)?;
        }
        Ok(found)
    }

    /// Makes a block zeros.
    fn write_zeros(&mut self, file: u32, index: u32) -> Result<(), StoreError> {
        self.open_handles(file)?;
        let incoming = self.incoming(file);
        let (range, is_sparse) = (incoming.blocks[index as usize].range(), incoming.spec.attributes.sparse);
        let data = &incoming.handles.as_ref().expect("was just opened").data;
        let written = data.write(&vec![0; (range.end - range.start) as usize], range.start, is_sparse);
        written.map_err(|source| self.file_error(file, source))
    }

    /// Opens a block of an earlier run again, all of which is wrong.
    pub(super) fn open_wrong_block(&mut self, file: u32, index: u32) -> Result<(), StoreError> {
        self.open_handles(file)?;
        let symbols = self.incoming(file).blocks[index as usize].symbols;
        let result = self.incoming(file).open_again(index);
        result.map_err(|source| self.file_error(file, source))?;
        self.counts.discarded_symbols += u64::from(symbols);
        self.note_bad_block(file, index, symbols);
        Ok(())
    }

    fn note_bad_block(&mut self, file: u32, index: u32, discarded: u32) {
        self.counts.bad_blocks += 1;
        let name = self.incoming(file).spec.name.clone();
        self.event(Event::BadBlock { name, block: index, discarded });
    }
}

/// The stretches of a file that these bytes lie in.
fn stretches(range: &Range<u64>) -> Range<u64> {
    range.start / STRETCH as u64..range.end.div_ceil(STRETCH as u64)
}

/// A block that is collected from one sender is collected from all again after this number of times its symbols came from others
/// and none of use from that one; or in all, at first, unless that one sent most of what was right. (With one block's worth instead, a
/// sender was given up next to a stranger who sent ten times as much.)
const PATIENCE: u32 = 4;
/// The same, in all, of one that did. The block then begins with its symbols again.
const LONG_PATIENCE: u32 = 64;
/// How often the patience with one that did not is doubled.
const MOST_TURNS: u32 = 16;
/// One that did is given up for a block after so many turns, if it was silent in the last one.
const TURNS_OF_PROVEN: u32 = 3;
/// Symbols beyond those of the block that are collected before the first search, besides one for each that was wrong in the last block:
/// enough to find one that is wrong.
const FIRST_EXTRA: u32 = 3;
/// The most symbols to decode in searches that find nothing: this many for each useful symbol, and a fixed number to begin with.
const TRIES_PER_SYMBOL: u64 = 16;
const TRIES_FREE: u64 = 100_000;

#[cfg(test)]
mod tests {
    use weir_units::Random;

    use super::*;
    use crate::source::SourceSet;
    use crate::store::StoreOptions;
    use crate::{Carousel, CarouselOptions, SecretKey};

    /// A carousel of one file of small blocks, and a store for it that has its table.
    fn transfer(sent: &std::path::Path, out: &std::path::Path, bytes: usize) -> (Carousel, Store) {
        let file = sent.join("a");
        let content: Vec<u8> = (0..bytes as u32).flat_map(|i| i.wrapping_mul(0x9e37_79b1).to_le_bytes()).collect();
        std::fs::write(&file, &content[..bytes]).expect("written");
        let set = SourceSet::collect(&[file], false).expect("readable");
        let key = SecretKey::from_seed([1; 32]);
        let options = CarouselOptions {
            symbol_size: 64,
            block_symbols: 10,
            key: Some(key.clone()),
            ..CarouselOptions::default()
        };
        let mut carousel = Carousel::new(set, &options).expect("valid options");
        let options = StoreOptions { key: Some(key.public()), sync: false, ..StoreOptions::default() };
        let mut store = Store::open(out, options).expect("a folder");
        while store.files.is_empty() {
            let (content, symbol) = carousel.next(0).expect("a packet");
            if content.toi == 0 {
                store.add(&content, symbol, Origin(1)).expect("the disk works");
            }
        }
        (carousel, store)
    }

    #[test]
    fn no_block_waits_for_ever_where_all_memory_is_taken() {
        let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
        let (mut carousel, mut store) = transfer(sent.path(), out.path(), 300_000);
        let symbols = carousel.stats().symbols_per_cycle;
        // Repair symbols alone, of which some blocks need one more than they have; and some that are forged.
        while carousel.stats().cycles < 1 {
            carousel.next(0).expect("a packet");
        }
        let (mut arrived, mut is_taken, mut random) = (0, false, Random::new(1, "loss"));
        while !store.is_complete() {
            let (content, symbol) = carousel.next(0).expect("a packet");
            let mut symbol = symbol.to_vec();
            // So that blocks have different ones.
            if random.chance(0.3) {
                continue;
            }
            arrived += 1;
            symbol[0] ^= u8::from(arrived % 500 == 0 && arrived < 1_500);
            // Whenever a block waits for more than it has slots for.
            let is_waiting = |block: &Block| block.have == block.symbols && !block.done;
            let is_needed = store.incoming(0).blocks.iter().any(is_waiting);
            match (is_needed, std::mem::replace(&mut is_taken, is_needed)) {
                (true, false) => store.budget.force(1 << 40),
                (false, true) => store.budget.give(1 << 40),
                _ => {}
            }
            store.add(&content, &symbol, Origin(1)).expect("the disk works");
            assert!(arrived < 4 * symbols, "{arrived} of {symbols}: {:?}", store.progress());
        }
        assert!(store.progress().bad_blocks > 0, "{:?}", store.progress());
        assert_eq!(store.progress().files_done, 1);
    }
}
