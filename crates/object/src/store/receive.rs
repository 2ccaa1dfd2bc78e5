//! The life of a symbol: slot, window, disk, decoding.

use std::io;

use weir_wire::alc::Content;

use super::decoders::MAX_EXTRA;
use super::digest::Values;
use super::forged::Symbol;
use super::incoming::{Incoming, Job, Part};
use super::journal::BlockState;
use super::slots::{ENTRY, Slots};
use super::window::STRETCH;
use super::{FileState, Origin, Store, StoreError};
use crate::name::Name;

impl Incoming {
    /// Bytes of the file that are there.
    pub(crate) fn bytes(&self) -> u64 {
        let size = self.spec.parts.first().map_or(0, |part| part.layout.symbol_size() as u64);
        (self.symbols() * size).min(self.spec.length)
    }

    /// Has the blocks hash bytes of one stretch of the file, which are at `at` and will not change.
    fn hash(&mut self, mut at: u64, mut bytes: &[u8]) {
        while let Some(block) = self.block_at(at) {
            let count = block.range().end.saturating_sub(at).min(bytes.len() as u64) as usize;
            if count == 0 {
                // Nothing is left, or what fills up the file's last symbol.
                return;
            }
            if let Some(values) = &mut block.values {
                values.take(at, &bytes[..count]);
            }
            (at, bytes) = (at + count as u64, &bytes[count..]);
        }
    }
}

impl Store {
    pub(super) fn add_symbol(
        &mut self,
        file: u32,
        part: u32,
        content: &Content,
        symbol: &[u8],
        origin: Origin,
    ) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else {
            self.counts.surplus_symbols += 1;
            return Ok(());
        };
        let part = incoming.spec.parts[part as usize];
        if !fits(&part, content, symbol) {
            self.counts.rejected_packets += 1;
            return Ok(());
        }
        let index = part.first_block + content.payload_id.block;
        let block = &mut incoming.blocks[index as usize];
        if block.done || block.job == Some(Job::Fill) {
            self.counts.surplus_symbols += 1;
            return Ok(());
        }
        if !block.takes(origin) {
            self.counts.refused_symbols += 1;
            return Ok(());
        }
        block.touched = true;
        let is_full = block.have == block.symbols;
        self.keep_slots(file, index, &part)?;
        if is_full {
            return self.add_extra((file, index), &part, content.payload_id.symbol, symbol, origin);
        }
        self.place_symbol((file, index), &part, content.payload_id.symbol, symbol, origin)
    }

    /// Puts a symbol into a slot of a block that has one left.
    fn place_symbol(
        &mut self,
        (file, index): (u32, u32),
        part: &Part,
        number: u32,
        symbol: &[u8],
        origin: Origin,
    ) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        let slots = block.slots.as_mut().expect("was loaded");
        let was_clean = !slots.is_dirty();
        let Some(slot) = slots.place(number, origin) else {
            self.counts.surplus_symbols += 1;
            return Ok(());
        };
        block.have += 1;
        block.note_use(origin);
        let full = block.have == block.symbols;
        let in_place = slot == number;
        let size = part.layout.symbol_size();
        let offset = block.start + u64::from(slot) * size as u64;
        self.counts.useful_symbols += 1;
        if was_clean {
            self.changed.push((file, index));
        }
        self.put(file, offset, symbol, size, in_place && part.layout.in_order())?;
        if full { self.complete_block(file, index, part) } else { Ok(()) }
    }

    /// Takes source symbols that follow each other, `size` bytes each, if nothing is special about any of them; whether it
    /// did. As [`Store::add_symbol`] for each, at less cost.
    pub(super) fn add_source_run(
        &mut self,
        (file, part): (u32, u32),
        content: &Content,
        symbols: &[u8],
        size: usize,
        origin: Origin,
    ) -> Result<bool, StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(false) };
        let part = incoming.spec.parts[part as usize];
        let (id, count) = (content.payload_id, (symbols.len() / size) as u32);
        if size != part.layout.symbol_size() || !fits(&part, content, &symbols[..size]) {
            return Ok(false);
        }
        let index = part.first_block + id.block;
        let block = &mut incoming.blocks[index as usize];
        let Some(slots) = block.slots.as_mut().filter(|_| !block.done && block.recollection.is_none()) else {
            return Ok(false);
        };
        let was_clean = !slots.is_dirty();
        if !slots.place_run(id.symbol, count, origin) {
            return Ok(false);
        }
        block.touched = true;
        block.have += count;
        let full = block.have == block.symbols;
        let offset = block.start + u64::from(id.symbol) * size as u64;
        self.counts.useful_symbols += u64::from(count);
        if was_clean {
            self.changed.push((file, index));
        }
        self.put(file, offset, symbols, symbols.len(), part.layout.in_order())?;
        if full {
            self.complete_block(file, index, &part)?;
        }
        Ok(true)
    }

    /// Brings the map of a block into memory if it is not there.
    pub(super) fn keep_slots(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        if self.incoming(file).blocks[index as usize].slots.is_some() {
            return Ok(());
        }
        self.load_slots(file, index, part)
    }

    /// Brings the map of a block into memory, and others out of it.
    pub(super) fn load_slots(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let (blank, first_slot, symbols) = {
            let block = &self.incoming(file).blocks[index as usize];
            (block.have == 0, block.first_slot, block.symbols)
        };
        let memory = Slots::memory(symbols);
        self.make_room_for_maps(memory)?;
        let slots = if blank {
            Slots::new(symbols)
        } else {
            self.open_handles(file)?;
            let limit = part.layout.esi_limit(index - part.first_block);
            let incoming = self.incoming(file);
            let handles = incoming.handles.as_ref().expect("was just opened");
            let bytes = handles.journal.read_slots(first_slot, symbols);
            let bytes = bytes.map_err(|source| self.file_error(file, source))?;
            let read = Slots::read(&bytes, limit, false);
            let (slots, _) = read.ok_or_else(|| {
                self.file_error(file, io::Error::other("somebody else wrote to its journal while it was received"))
            })?;
            slots
        };
        self.loaded_bytes += memory;
        // Without its map nothing of a block can be taken: the last one may be too much.
        self.budget.force(memory);
        self.loaded.push_back((file, index));
        let incoming = self.incoming(file);
        let expected = incoming.spec.expected(index);
        let block = &mut incoming.blocks[index as usize];
        block.slots = Some(Box::new(slots));
        let range = block.range();
        if let (Some(expected), false) = (expected, block.has_values) {
            block.values = Some(Box::new(Values::of(range.clone(), &expected)));
            block.has_values = true;
            let memory = block.value_memory();
            self.value_bytes += memory;
            self.budget.force(memory);
        }
        if !blank {
            self.note_arrived(file, range);
        }
        Ok(())
    }

    /// Takes maps out of memory until there is room for another of so many bytes, or none left.
    pub(super) fn make_room_for_maps(&mut self, bytes: u64) -> Result<(), StoreError> {
        while self.loaded_bytes > self.options.memory_limit / 4 || !self.budget.has(bytes) {
            let Some((file, index)) = self.loaded.pop_front() else { break };
            let FileState::Incoming(incoming) = &mut self.files[file as usize] else {
                continue;
            };
            let block = &mut incoming.blocks[index as usize];
            if block.slots.is_none() {
                continue;
            }
            if std::mem::take(&mut block.touched) {
                self.loaded.push_back((file, index));
                continue;
            }
            if block.slots.as_ref().is_some_and(|slots| slots.is_dirty()) {
                self.write_out()?;
            }
            // A map can be read again; for the values of a block's pieces, all of them would have to be. Where there is no room for all
            // blocks' values, some have theirs, rather than none for long enough.
            let has_room = self.value_bytes <= self.options.memory_limit / 10 * VALUES_TENTHS;
            let block = &mut self.incoming(file).blocks[index as usize];
            let map = block.map_memory();
            block.keeps_values |= has_room;
            let values = if block.keeps_values { 0 } else { block.value_memory() };
            block.slots = None;
            if !block.keeps_values {
                (block.values, block.has_values) = (None, false);
            }
            self.give_map(map, values);
        }
        Ok(())
    }

    /// A map has left memory, or values of pieces have.
    pub(super) fn give_map(&mut self, map: u64, values: u64) {
        self.loaded_bytes -= map;
        self.value_bytes -= values;
        self.budget.give(map + values);
    }

    /// A block has as many symbols as it needs.
    fn complete_block(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        let in_place = block.slots.as_ref().is_some_and(|slots| slots.all_in_place());
        if in_place && part.layout.in_order() {
            self.check_whole_block(file, index, part)
        } else {
            self.decode_block(file, index, part)
        }
    }

    /// A block is right, and so perhaps is the whole file.
    pub(super) fn take_block(&mut self, file: u32, index: u32) -> Result<(), StoreError> {
        self.settle_block(file, index);
        if self.incoming(file).spec.bundle.is_some() {
            self.unpack_block(file, index)?;
        }
        self.finish_if_whole(file)
    }

    /// Finishes a file of which nothing is missing, or a bundle when there is time for its files.
    pub(super) fn finish_if_whole(&mut self, file: u32) -> Result<(), StoreError> {
        match &self.files[file as usize] {
            FileState::Incoming(incoming) if incoming.left > 0 => Ok(()),
            FileState::Incoming(incoming) if incoming.spec.bundle.is_some() && self.unpacks_later() => {
                self.note_whole(file);
                Ok(())
            }
            FileState::Incoming(_) => self.finish_file(file),
            _ => Ok(()),
        }
    }

    /// Marks a block as done, all of whose slots hold their source symbols or are about to.
    pub(super) fn settle_block(&mut self, file: u32, index: u32) {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return };
        let is_known = incoming.spec.expected(index).is_some();
        let block = &incoming.blocks[index as usize];
        let (map, values) = (block.map_memory(), block.value_memory());
        self.budget.give(block.extra_bytes());
        let slots = incoming.blocks[index as usize].slots.take();
        incoming.mark_done(index as usize);
        if let Some(slots) = slots.filter(|_| is_known) {
            self.senders.note_block(slots.senders());
        }
        self.give_map(map, values);
    }

    /// Keeps a symbol of a block that has enough of them and yet could not be decoded, and tries again.
    fn add_extra(
        &mut self,
        (file, index): (u32, u32),
        part: &Part,
        number: u32,
        symbol: &[u8],
        origin: Origin,
    ) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        let is_searched = block.wanted_extra.is_some();
        let is_decoding = block.job.is_some();
        let is_enough = match block.job {
            Some(Job::Check | Job::Fill) => true,
            Some(Job::Decode) => block.extra.len() >= MAX_EXTRA,
            None => false,
        };
        let known = block.slots.as_ref().is_some_and(|slots| slots.contains(number))
            || block.extra.iter().any(|(extra, _)| *extra == number);
        if known || is_enough {
            self.counts.surplus_symbols += 1;
            return Ok(());
        }
        if !self.budget.take(symbol.len() as u64) {
            if is_decoding {
                // It is most likely not needed.
                self.counts.surplus_symbols += 1;
                return Ok(());
            }
            if is_searched {
                // It would wait for ever.
                self.counts.surplus_symbols += 1;
                return self.give_up_search(file, index);
            }
            // There is no other way on, and there are never many.
            self.budget.force(symbol.len() as u64);
        }
        let block = &mut self.incoming(file).blocks[index as usize];
        block.extra.push((number, symbol.to_vec()));
        block.note_use(origin);
        if is_decoding {
            // In case that its symbols are not enough.
            self.counts.surplus_symbols += 1;
            return Ok(());
        }
        self.counts.useful_symbols += 1;
        if is_searched { self.search_with_extra(file, index, part) } else { self.decode_block(file, index, part) }
    }

    /// The symbols of a block that is full: those in its slots, in the order of the slots, and those beyond.
    pub(super) fn symbols_of(&mut self, file: u32, index: u32, part: &Part) -> io::Result<Vec<Symbol>> {
        let incoming = self.incoming(file);
        let block = &incoming.blocks[index as usize];
        let handles = incoming.handles.as_ref().expect("was just opened");
        let slots = block.slots.as_ref().expect("a block that is full has its map in memory");
        let size = part.layout.symbol_size();
        let mut bytes = vec![0; block.symbols as usize * size];
        handles.data.read(&mut bytes, block.start)?;
        let in_slots = slots.symbols().iter().zip(bytes.chunks_exact(size));
        let in_slots = in_slots.map(|(symbol, bytes)| (*symbol, bytes.to_vec()));
        Ok(in_slots.chain(block.extra.iter().cloned()).collect())
    }

    /// Writes the source symbols of a block over those that it was decoded from; with `all`, over those that are there too.
    pub(super) fn write_back(
        &mut self,
        file: u32,
        index: u32,
        part: &Part,
        decoded: &[u8],
        all: bool,
    ) -> Result<(), StoreError> {
        self.set_state(file, index, BlockState::WritingBack)?;
        let incoming = self.incoming(file);
        let block = &mut incoming.blocks[index as usize];
        let start = block.start;
        // It is known now; what is written back need not be hashed again.
        block.values = None;
        let slots = block.slots.as_ref().expect("a block that is full has its map in memory");
        let is_there = |slot: &u32| !all && part.layout.in_order() && slots.is_in_place(*slot);
        let missing: Vec<u32> = (0..slots.len()).filter(|slot| !is_there(slot)).collect();
        let size = part.layout.symbol_size();
        for slot in &missing {
            let at = *slot as usize * size;
            self.put(file, start + at as u64, &decoded[at..at + size], size, true)?;
        }
        self.flush_data()?;
        self.set_state(file, index, BlockState::Done)
    }

    fn set_state(&mut self, file: u32, index: u32, state: BlockState) -> Result<(), StoreError> {
        self.open_handles(file)?;
        let handles = self.incoming(file).handles.as_ref().expect("was just opened");
        let result = handles.journal.set_state(index, state);
        result.map_err(|source| self.file_error(file, source))
    }

    /// Puts symbols into the window, and zeros behind them to `size` bytes in all; `is_final` as for [`super::window::Window::put`].
    ///
    /// They are in the window even where making room for them fails: the maps speak of them already.
    fn put(
        &mut self,
        file: u32,
        offset: u64,
        mut symbols: &[u8],
        size: usize,
        is_final: bool,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        let (mut at, end) = (offset, offset + size as u64);
        while at < end {
            let (number, start) = (at / STRETCH as u64, (at % STRETCH as u64) as usize);
            let size = (STRETCH - start).min((end - at) as usize);
            if self.window.find(file, number).is_none() {
                outcome = outcome.and(self.make_room_for_stretch());
                let length = self.incoming(file).spec.padded_length() - number * STRETCH as u64;
                self.window.open(file, number, length.min(STRETCH as u64) as usize);
            }
            let place = self.window.find(file, number).expect("it is there or was just opened");
            let (now, later) = symbols.split_at(symbols.len().min(size));
            self.window.put(place, start, now, size, is_final);
            symbols = later;
            at += size as u64;
            outcome = outcome.and(self.finish_stretch(place));
        }
        outcome
    }

    fn make_room_for_stretch(&mut self) -> Result<(), StoreError> {
        let Some(place) = self.window.crowded_out() else { return Ok(()) };
        self.hash_stretch(place);
        self.write_stretch(place)?;
        self.window.close(place);
        Ok(())
    }

    /// Hashes and writes a stretch that is complete, and lets it go.
    fn finish_stretch(&mut self, place: usize) -> Result<(), StoreError> {
        if !self.window.is_complete(place) {
            return Ok(());
        }
        self.hash_stretch(place);
        self.write_stretch(place)?;
        self.window.close(place);
        Ok(())
    }

    /// Hashes what has its final values in a stretch. What was hashed before is not hashed again.
    pub(super) fn hash_stretch(&mut self, place: usize) {
        let (file, _) = self.window.identity(place);
        if let FileState::Incoming(incoming) = &mut self.files[file as usize] {
            self.window.finals(place, |at, bytes| incoming.hash(at, bytes));
        }
    }

    pub(super) fn write_stretch(&mut self, place: usize) -> Result<(), StoreError> {
        let (file, _) = self.window.identity(place);
        self.open_handles(file)?;
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(()) };
        let data = &incoming.handles.as_ref().expect("was just opened").data;
        let is_sparse = incoming.spec.attributes.sparse;
        let mut written = 0;
        let result = self.window.write(place, |bytes, offset| {
            written += bytes.len() as u64;
            data.write(bytes, offset, is_sparse)
        });
        if self.options.sync {
            self.writeback.on_written(data, written);
        }
        result.map_err(|source| self.file_error(file, source))
    }

    /// Writes what is in the window to the files.
    pub(super) fn flush_data(&mut self) -> Result<(), StoreError> {
        self.window.dirty().into_iter().try_for_each(|place| self.write_stretch(place))
    }

    /// Writes the maps and states of blocks that changed. Their data must have been written.
    pub(super) fn flush_maps(&mut self) -> Result<(), StoreError> {
        for (file, index) in std::mem::take(&mut self.changed) {
            if !matches!(self.files[file as usize], FileState::Incoming(_)) {
                continue;
            }
            self.open_handles(file)?;
            let incoming = self.incoming(file);
            let block = &mut incoming.blocks[index as usize];
            let journal = &incoming.handles.as_ref().expect("was just opened").journal;
            let (mut arrived, start) = (0..0, block.start);
            let result = if block.done {
                journal.set_state(index, BlockState::Done)
            } else {
                match block.slots.as_mut().and_then(|slots| slots.write()) {
                    Some((first, bytes)) => {
                        arrived = first..first + (bytes.len() / ENTRY) as u32;
                        journal.write_slots(block.first_slot + u64::from(first), &bytes)
                    }
                    None => Ok(()),
                }
            };
            let size = incoming.spec.parts[0].layout.symbol_size() as u64;
            result.map_err(|source| self.file_error(file, source))?;
            if !arrived.is_empty() {
                self.note_arrived(file, start + u64::from(arrived.start) * size..start + u64::from(arrived.end) * size);
            }
        }
        Ok(())
    }

    /// Opens a file's descriptors, closing those of the file that was opened longest ago where there are too many.
    pub(super) fn open_handles(&mut self, file: u32) -> Result<(), StoreError> {
        if self.incoming(file).handles.is_some() {
            return Ok(());
        }
        while self.open_files.len() >= MAX_OPEN_FILES {
            let oldest = self.open_files.pop_front().expect("there is one");
            if let FileState::Incoming(incoming) = &mut self.files[oldest as usize] {
                incoming.handles = None;
            }
        }
        self.open_files.push_back(file);
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(()) };
        let result = incoming.reopen(&self.folder);
        result.map_err(|source| self.file_error(file, source))
    }

    /// The file `file`, which must be one that is being received.
    pub(super) fn incoming(&mut self, file: u32) -> &mut Incoming {
        match &mut self.files[file as usize] {
            FileState::Incoming(incoming) => incoming,
            _ => panic!("only a file that is being received has blocks"),
        }
    }

    pub(super) fn file_error(&self, file: u32, source: io::Error) -> StoreError {
        let name: Name = match &self.files[file as usize] {
            FileState::Incoming(incoming) => incoming.spec.name.clone(),
            _ => panic!("only a file that is being received can fail"),
        };
        self.io_error(name, source)
    }
}

/// Whether a packet's numbers and length are possible in its object.
fn fits(part: &Part, content: &Content, symbol: &[u8]) -> bool {
    let layout = &part.layout;
    let id = content.payload_id;
    if content.encoding_id != layout.oti().encoding_id()
        || id.block >= layout.blocks()
        || id.symbol >= layout.esi_limit(id.block)
    {
        return false;
    }
    if symbol.len() == layout.symbol_size() {
        return true;
    }
    // The last source symbol of an object may be sent without its filling.
    let start = layout.offset(id.block) + u64::from(id.symbol) * layout.symbol_size() as u64;
    id.symbol < layout.symbols(id.block)
        && start + symbol.len() as u64 == layout.transfer_length()
        && !symbol.is_empty()
        && symbol.len() < layout.symbol_size()
}

/// So many tenths of the memory are for values of blocks whose maps have left it: with what a receiver has by default, of 22 GB. Of blocks
/// beyond that, more is read back.
const VALUES_TENTHS: u64 = 3;
/// Each file takes two descriptors.
pub(super) const MAX_OPEN_FILES: usize = 100;
