//! The life of a symbol: slot, window, disk, decoding.

use std::io;
use std::os::unix::fs::FileExt;

use raptorq::{EncodingPacket, PayloadId, SourceBlockDecoder};
use weir_wire::alc::Content;

use super::incoming::{Incoming, Part};
use super::journal::BlockState;
use super::slots::Slots;
use super::window::STRETCH;
use super::{FileState, Store, StoreError};
use crate::name::Name;

impl Incoming {
    /// Bytes of the file that are there.
    pub(crate) fn bytes(&self) -> u64 {
        let size = self.spec.parts.first().map_or(0, |part| part.layout.symbol_size() as u64);
        (self.symbols() * size).min(self.spec.length)
    }
}

impl Store {
    pub(super) fn add_symbol(
        &mut self,
        file: u32,
        part: u32,
        content: &Content,
        symbol: &[u8],
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
        if incoming.blocks[index as usize].done {
            self.counts.surplus_symbols += 1;
            return Ok(());
        }
        if incoming.blocks[index as usize].slots.is_none() {
            self.load_slots(file, index, &part)?;
        }
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else {
            return Ok(());
        };
        let block = &mut incoming.blocks[index as usize];
        block.touched = true;
        let slots = block.slots.as_mut().expect("was loaded");
        if block.have == block.symbols {
            return self.add_extra(file, index, &part, content.payload_id.symbol, symbol);
        }
        let was_clean = !slots.is_dirty();
        let Some(slot) = slots.place(content.payload_id.symbol) else {
            self.counts.surplus_symbols += 1;
            return Ok(());
        };
        self.counts.useful_symbols += 1;
        block.have += 1;
        let full = block.have == block.symbols;
        let in_place = slot == content.payload_id.symbol;
        let size = part.layout.symbol_size();
        let offset = block.start + u64::from(slot) * size as u64;
        if was_clean {
            self.changed.push((file, index));
        }
        if in_place {
            incoming.slot_is_final(&part, index as usize, slot);
        }
        self.put(file, offset, symbol, size, in_place && part.layout.in_order())?;
        if full { self.complete_block(file, index, &part) } else { Ok(()) }
    }

    /// Takes source symbols that follow each other, `size` bytes each, if nothing is special about any of them; whether it
    /// did. As [`Store::add_symbol`] for each, at less cost.
    pub(super) fn add_source_run(
        &mut self,
        (file, part): (u32, u32),
        content: &Content,
        symbols: &[u8],
        size: usize,
    ) -> Result<bool, StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(false) };
        let part = incoming.spec.parts[part as usize];
        let (id, count) = (content.payload_id, (symbols.len() / size) as u32);
        if size != part.layout.symbol_size() || !fits(&part, content, &symbols[..size]) {
            return Ok(false);
        }
        let index = part.first_block + id.block;
        let block = &mut incoming.blocks[index as usize];
        let Some(slots) = block.slots.as_mut().filter(|_| !block.done) else { return Ok(false) };
        let was_clean = !slots.is_dirty();
        if !slots.place_run(id.symbol, count) {
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
        incoming.slots_are_final(&part, index as usize, id.symbol, count);
        self.put(file, offset, symbols, symbols.len(), part.layout.in_order())?;
        if full {
            self.complete_block(file, index, &part)?;
        }
        Ok(true)
    }

    /// Brings the map of a block into memory, and others out of it.
    fn load_slots(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        self.make_room_for_maps()?;
        let (blank, first_slot, symbols) = {
            let block = &self.incoming(file).blocks[index as usize];
            (block.have == 0, block.first_slot, block.symbols)
        };
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
        self.loaded_bytes += Slots::memory(symbols);
        self.loaded.push_back((file, index));
        self.incoming(file).blocks[index as usize].slots = Some(Box::new(slots));
        Ok(())
    }

    fn make_room_for_maps(&mut self) -> Result<(), StoreError> {
        while self.loaded_bytes > self.options.memory_limit / 4 {
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
            let symbols = block.symbols;
            if block.slots.as_ref().is_some_and(|slots| slots.is_dirty()) {
                self.flush()?;
            }
            self.incoming(file).blocks[index as usize].slots = None;
            self.loaded_bytes -= Slots::memory(symbols);
        }
        Ok(())
    }

    /// A block has as many symbols as it needs.
    fn complete_block(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        let in_place = block.slots.as_ref().is_some_and(|slots| slots.all_in_place());
        if in_place && part.layout.in_order() {
            // Its state is written down with the maps, after the data.
            self.settle_block(file, index);
            if self.incoming(file).left == 0 {
                return self.finish_file(file);
            }
            return Ok(());
        }
        self.decode_block(file, index, part)
    }

    /// Marks a block as done, all of whose slots hold their source symbols or are about to.
    fn settle_block(&mut self, file: u32, index: u32) {
        let incoming = self.incoming(file);
        let symbols = incoming.blocks[index as usize].symbols;
        if incoming.blocks[index as usize].slots.is_some() {
            incoming.mark_done(index as usize);
            self.loaded_bytes -= Slots::memory(symbols);
        } else {
            incoming.mark_done(index as usize);
        }
    }

    /// Keeps a symbol of a block that has enough of them and yet could not be decoded, and tries again.
    fn add_extra(&mut self, file: u32, index: u32, part: &Part, number: u32, symbol: &[u8]) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        let known = block.slots.as_ref().is_some_and(|slots| slots.contains(number))
            || block.extra.iter().any(|(extra, _)| *extra == number);
        if known {
            self.counts.surplus_symbols += 1;
            return Ok(());
        }
        block.extra.push((number, symbol.to_vec()));
        self.counts.useful_symbols += 1;
        self.decode_block(file, index, part)
    }

    /// Decodes a block and writes its source symbols over those that it was decoded from.
    pub(super) fn decode_block(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        self.flush()?;
        self.open_handles(file)?;
        let result = self.try_decode(file, index, part).map_err(|source| self.file_error(file, source))?;
        let Some(decoded) = result else { return Ok(()) };
        self.write_back(file, index, part, &decoded)?;
        self.counts.decoded_blocks += 1;
        self.settle_block(file, index);
        if self.incoming(file).left == 0 {
            return self.finish_file(file);
        }
        self.hash_ready(file)
    }

    /// The source symbols of a block, if the symbols in its slots and beyond are enough to know them.
    fn try_decode(&mut self, file: u32, index: u32, part: &Part) -> io::Result<Option<Vec<u8>>> {
        let Some(config) = part.layout.codec() else { return Ok(None) };
        let incoming = self.incoming(file);
        let block = &incoming.blocks[index as usize];
        let handles = incoming.handles.as_ref().expect("was just opened");
        let slots = block.slots.as_ref().expect("a block that is full has its map in memory");
        let size = part.layout.symbol_size();
        let mut bytes = vec![0; block.symbols as usize * size];
        handles.data.read_exact_at(&mut bytes, block.start)?;
        let in_slots = slots.symbols().iter().zip(bytes.chunks_exact(size));
        let in_slots = in_slots.map(|(symbol, bytes)| (*symbol, bytes.to_vec()));
        let extra = block.extra.iter().map(|(symbol, bytes)| (*symbol, bytes.clone()));
        let packets: Vec<_> = in_slots
            .chain(extra)
            .map(|(symbol, bytes)| EncodingPacket::new(PayloadId::new(0, symbol), bytes))
            .collect();
        let mut decoder = SourceBlockDecoder::new(0, &config, u64::from(block.symbols) * size as u64);
        let mut decoded = decoder.decode(packets);
        if let Some(decoded) = decoded.as_mut().filter(|_| part.layout.in_order()) {
            // What is to be hashed is what lies in the file; that forged symbols contradict each other must show.
            let pairs = decoded.chunks_exact_mut(size).zip(bytes.chunks_exact(size)).enumerate();
            for (_, (symbol, in_slot)) in pairs.filter(|(slot, _)| slots.is_in_place(*slot as u32)) {
                symbol.copy_from_slice(in_slot);
            }
        }
        if decoded.is_none() && block.extra.len() >= MAX_EXTRA {
            self.empty_block(file, index)?;
        }
        Ok(decoded)
    }

    /// Writes the source symbols of a block over those that it was decoded from.
    fn write_back(&mut self, file: u32, index: u32, part: &Part, decoded: &[u8]) -> Result<(), StoreError> {
        self.set_state(file, index, BlockState::WritingBack)?;
        let incoming = self.incoming(file);
        let block = &incoming.blocks[index as usize];
        let start = block.start;
        let slots = block.slots.as_ref().expect("a block that is full has its map in memory");
        let is_there = |slot: &u32| part.layout.in_order() && slots.is_in_place(*slot);
        let missing: Vec<u32> = (0..slots.len()).filter(|slot| !is_there(slot)).collect();
        let size = part.layout.symbol_size();
        for slot in &missing {
            let at = *slot as usize * size;
            self.put(file, start + at as u64, &decoded[at..at + size], size, true)?;
        }
        self.flush_data()?;
        self.set_state(file, index, BlockState::Done)?;
        let incoming = self.incoming(file);
        if part.layout.in_order() {
            missing.into_iter().for_each(|slot| incoming.slot_is_final(part, index as usize, slot));
        } else if let Some(digest) = &mut incoming.digest {
            digest.add(start, decoded.len() as u64);
        }
        if let Some(digest) = &mut incoming.digest {
            let leaf = STRETCH as u64;
            let end = start + decoded.len() as u64;
            let mut at = start.next_multiple_of(leaf);
            while at + leaf <= end {
                digest.add_leaf(at, &decoded[(at - start) as usize..][..STRETCH]);
                at += leaf;
            }
        }
        Ok(())
    }

    fn set_state(&mut self, file: u32, index: u32, state: BlockState) -> Result<(), StoreError> {
        self.open_handles(file)?;
        let handles = self.incoming(file).handles.as_ref().expect("was just opened");
        let result = handles.journal.set_state(index, state);
        result.map_err(|source| self.file_error(file, source))
    }

    /// Throws away a block whose symbols contradict each other: somebody forged some.
    fn empty_block(&mut self, file: u32, index: u32) -> io::Result<()> {
        let incoming = self.incoming(file);
        let block = &mut incoming.blocks[index as usize];
        let symbols = block.symbols;
        let first_slot = block.first_slot;
        let forget = block.slots.replace(Box::new(Slots::new(symbols))).expect("a full block has its map");
        block.have = 0;
        block.extra = Vec::new();
        // Its bytes will get their final values a second time: the digest is then taken at the end.
        let kept = forget.symbols().iter().enumerate().any(|(slot, symbol)| slot as u32 == *symbol);
        if kept {
            incoming.forget_digest();
        }
        let handles = incoming.handles.as_ref().expect("was just opened");
        let result = handles.journal.write_slots(first_slot, &vec![0; symbols as usize * super::slots::ENTRY]);
        // So that no byte counts as final twice.
        self.window.forget(file);
        result
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
        self.write_stretch(place)?;
        self.window.close(place);
        Ok(())
    }

    /// Hashes and writes a stretch that is complete, and lets it go.
    fn finish_stretch(&mut self, place: usize) -> Result<(), StoreError> {
        let Some(bytes) = self.window.complete(place) else { return Ok(()) };
        let (file, number) = self.window.identity(place);
        if let FileState::Incoming(incoming) = &mut self.files[file as usize]
            && let Some(digest) = &mut incoming.digest
        {
            digest.add_leaf(number * STRETCH as u64, bytes);
        }
        self.write_stretch(place)?;
        self.window.close(place);
        Ok(())
    }

    fn write_stretch(&mut self, place: usize) -> Result<(), StoreError> {
        let (file, _) = self.window.identity(place);
        self.open_handles(file)?;
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(()) };
        let data = &incoming.handles.as_ref().expect("was just opened").data;
        let result = self.window.write(place, |bytes, offset| data.write_all_at(bytes, offset));
        result.map_err(|source| self.file_error(file, source))
    }

    /// Writes what is in the window to the files.
    pub(super) fn flush_data(&mut self) -> Result<(), StoreError> {
        let mut files = Vec::new();
        for place in self.window.dirty() {
            self.write_stretch(place)?;
            files.push(self.window.identity(place).0);
        }
        files.sort_unstable();
        files.dedup();
        files.into_iter().try_for_each(|file| self.hash_ready(file))
    }

    fn hash_ready(&mut self, file: u32) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(()) };
        let Some(digest) = incoming.digest.as_mut().filter(|digest| digest.has_ready()) else { return Ok(()) };
        // Another file's stretch may have taken the descriptors; then they are hashed with the next, or at the end.
        let Some(handles) = incoming.handles.as_ref() else { return Ok(()) };
        let result = digest.hash_ready(&handles.data, &mut self.scratch);
        result.map_err(|source| self.file_error(file, source))
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
            let result = if block.done {
                journal.set_state(index, BlockState::Done)
            } else {
                match block.slots.as_mut().and_then(|slots| slots.write()) {
                    Some((first, bytes)) => journal.write_slots(block.first_slot + u64::from(first), &bytes),
                    None => Ok(()),
                }
            };
            result.map_err(|source| self.file_error(file, source))?;
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

/// A block holds forged symbols if it cannot be decoded from this many more than it has source symbols: with honest ones the
/// chance is below 10^-60.
const MAX_EXTRA: usize = 24;
/// Each file takes two descriptors.
pub(super) const MAX_OPEN_FILES: usize = 100;
