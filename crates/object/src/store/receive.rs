//! The life of a symbol: slot, stage, disk, decoding.

use std::io;
use std::os::unix::fs::FileExt;

use raptorq::{EncodingPacket, PayloadId, SourceBlockDecoder};
use weir_wire::alc::Content;

use super::incoming::{Incoming, Part};
use super::journal::BlockState;
use super::slots::Slots;
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
        self.stage.push(file, block.start + u64::from(slot) * size as u64, symbol, size);
        if was_clean {
            self.changed.push((file, index));
        }
        if in_place {
            incoming.slot_is_final(&part, index as usize, slot);
        }
        if full {
            self.complete_block(file, index, &part)?;
        }
        if self.stage.is_full() {
            self.flush_data()?;
        }
        Ok(())
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
        if !result {
            return Ok(());
        }
        self.counts.decoded_blocks += 1;
        self.settle_block(file, index);
        if self.incoming(file).left == 0 {
            return self.finish_file(file);
        }
        self.hash_ready(file)
    }

    fn try_decode(&mut self, file: u32, index: u32, part: &Part) -> io::Result<bool> {
        let Some(config) = part.layout.codec() else { return Ok(false) };
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
        drop(bytes);
        let mut decoder = SourceBlockDecoder::new(0, &config, u64::from(block.symbols) * size as u64);
        let Some(decoded) = decoder.decode(packets) else {
            if block.extra.len() >= MAX_EXTRA {
                return self.empty_block(file, index).map(|()| false);
            }
            return Ok(false);
        };
        handles.journal.set_state(index, BlockState::WritingBack)?;
        let mut written = Vec::new();
        for slot in 0..slots.len() {
            if !part.layout.in_order() || !slots.is_in_place(slot) {
                let start = slot as usize * size;
                handles.data.write_all_at(&decoded[start..start + size], block.start + start as u64)?;
                written.push(slot);
            }
        }
        handles.journal.set_state(index, BlockState::Done)?;
        if part.layout.in_order() {
            for slot in written {
                incoming.slot_is_final(part, index as usize, slot);
            }
        } else if let Some(digest) = &mut incoming.digest {
            digest.add(block.start, u64::from(block.symbols) * size as u64);
        }
        Ok(true)
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
        handles.journal.write_slots(first_slot, &vec![0; symbols as usize * super::slots::ENTRY])
    }

    /// Writes what is staged to the files.
    pub(super) fn flush_data(&mut self) -> Result<(), StoreError> {
        for file in self.stage.files() {
            if !matches!(self.files[file as usize], FileState::Incoming(_)) {
                continue;
            }
            self.open_handles(file)?;
            let FileState::Incoming(incoming) = &self.files[file as usize] else { continue };
            let handles = incoming.handles.as_ref().expect("was just opened");
            self.stage.write(file, &handles.data).map_err(|source| self.file_error(file, source))?;
            self.hash_ready(file)?;
        }
        self.stage.clear();
        Ok(())
    }

    fn hash_ready(&mut self, file: u32) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(()) };
        let Some(digest) = incoming.digest.as_mut().filter(|digest| digest.has_ready()) else { return Ok(()) };
        let handles = incoming.handles.as_ref().expect("only open files are hashed");
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

/// A block that cannot be decoded from so many more symbols than it has source symbols holds forged ones: with honest ones
/// the chance is below 10^-60.
const MAX_EXTRA: usize = 24;
/// Each file takes two descriptors.
pub(super) const MAX_OPEN_FILES: usize = 100;
