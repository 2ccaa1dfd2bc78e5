//! What is still to come, for a sender that asks for it.

use std::ops::Range;

use super::incoming::Block;
use super::slots::Slots;
use super::{FileState, Store, StoreError};
use crate::Lack;

impl Store {
    /// What is lacking of the files, in their order, `most` blocks of them at most. `None` before the whole table is here: until then nobody
    /// can say. A block that has symbols enough lacks nothing, decoded or not. A block of a bundle of which nothing
    /// is here is left out until all files of the bundle have been looked for: they may be in their places already.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn lacking(&mut self, most: usize) -> Result<Option<Vec<Lack>>, StoreError> {
        if !self.manifest_complete() {
            return Ok(None);
        }
        let mut lacks = Vec::new();
        for file in 0..self.files.len() as u32 {
            let FileState::Incoming(incoming) = &self.files[file as usize] else { continue };
            let blocks = incoming.blocks.len() as u32;
            let is_unseen = incoming.unpacking.as_ref().is_some_and(|unpacking| unpacking.unseen().is_some());
            let mut to_read = Vec::new();
            for index in 0..blocks {
                if lacks.len() == most {
                    break;
                }
                if is_unseen && self.incoming(file).blocks[index as usize].have == 0 {
                    continue;
                }
                if let Some(lack) = self.lack_of(file, index)? {
                    to_read.extend(self.incoming(file).blocks[index as usize].to_read());
                    lacks.push(lack);
                }
            }
            self.read_ahead_of(file, to_read);
            if lacks.len() == most {
                break;
            }
        }
        Ok(Some(lacks))
    }

    /// Has the system read these bytes of a file, if it is open.
    fn read_ahead_of(&mut self, file: u32, ranges: Vec<Range<u64>>) {
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return };
        if let Some(handles) = incoming.handles.as_ref().filter(|_| !ranges.is_empty()) {
            self.read_ahead.ask(&handles.data, ranges);
        }
    }

    /// What is lacking of a block; nothing also where it cannot be said of it.
    fn lack_of(&mut self, file: u32, index: u32) -> Result<Option<Lack>, StoreError> {
        let incoming = self.incoming(file);
        let block = &incoming.blocks[index as usize];
        if block.done || block.job.is_some() {
            return Ok(None);
        }
        let part = incoming.spec.parts[incoming.spec.parts.partition_point(|part| part.first_block <= index) - 1];
        let number = u8::try_from(index - part.first_block);
        let (Ok(toi), Ok(number), Ok(symbols)) = (u32::try_from(part.toi), number, u16::try_from(block.symbols)) else {
            return Ok(None);
        };
        let lack = |needed, runs| Ok(Some(Lack { toi, block: number, needed, runs }));
        let needed = symbols - block.have as u16;
        if let Some(extra) = block.wanted_extra {
            // Symbols that it has not would do, and which it has does not matter.
            return lack(extra.saturating_sub(block.extra.len() as u32).clamp(1, symbols.into()) as u16, Vec::new());
        }
        if needed == 0 {
            // What it has could not be decoded.
            return lack(1, Vec::new());
        }
        if block.have == 0 {
            return lack(needed, vec![(0, symbols)]);
        }
        self.keep_slots(file, index, &part)?;
        let slots = self.incoming(file).blocks[index as usize].slots.as_ref().expect("was loaded");
        lack(needed, lacking_runs(slots, symbols, needed))
    }
}

impl Block {
    /// What late symbols will be written into, and what will be hashed again then, if little is lacking.
    fn to_read(&self) -> Vec<Range<u64>> {
        let lacks_little = self.symbols - self.have <= self.symbols / LITTLE;
        self.values.as_ref().filter(|_| lacks_little).map_or(Vec::new(), |values| values.unknown())
    }
}

/// The first `needed` source symbols that a block does not have, in runs; none if there are too many runs to tell.
fn lacking_runs(slots: &Slots, symbols: u16, needed: u16) -> Vec<(u16, u16)> {
    let mut runs = Vec::<(u16, u16)>::new();
    let lacking = (0..symbols).filter(|symbol| !slots.contains((*symbol).into()));
    for symbol in lacking.take(needed.into()) {
        match runs.last_mut() {
            Some((first, length)) if *first + *length == symbol => *length += 1,
            _ => runs.push((symbol, 1)),
        }
    }
    if runs.len() > MOST_RUNS { Vec::new() } else { runs }
}

/// A block of which one symbol in this number is lacking, or fewer, is soon complete.
const LITTLE: u32 = 8;
/// More are not worth their bytes.
const MOST_RUNS: usize = weir_wire::lack::MAX_RUNS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Origin, StoreOptions};
    use crate::{Carousel, CarouselOptions, SourceSet};

    #[test]
    fn as_many_missing_source_symbols_are_told_as_are_needed() {
        let mut slots = Slots::new(10);
        for symbol in [0, 1, 5, 30] {
            slots.place(symbol, Origin(1)).expect("a slot is free");
        }
        assert_eq!(lacking_runs(&slots, 10, 6), [(2, 3), (6, 3)], "a repair symbol stands for one of seven");
    }

    #[test]
    fn what_a_block_that_lacks_little_has_to_be_read_back_is_read_ahead() {
        let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
        let file = sent.path().join("a");
        std::fs::write(&file, vec![7; 100_000]).expect("a folder of its own takes files");
        let set = SourceSet::collect(&[file], false).expect("readable");
        let mut carousel =
            Carousel::new(set, &CarouselOptions { symbol_size: 1000, ..Default::default() }).expect("valid");
        let mut store = Store::open(out.path(), StoreOptions::default()).expect("a folder");
        for have in 1..100 {
            while store.counts.useful_symbols < have {
                let (content, symbol) = carousel.next(0).expect("a packet");
                // The second symbol is lost: the piece that it is in cannot be hashed.
                if content.toi == 0 || content.payload_id.symbol != 1 {
                    store.add(&content, symbol, Origin(1)).expect("the disk works");
                }
            }
            store.write_out().expect("the disk works");
            store.lacking(9).expect("the disk works");
            assert_eq!(store.read_ahead.was_asked(), have >= 88, "{have} of 100");
        }
    }

    #[test]
    fn a_block_of_too_many_holes_tells_none_of_them() {
        let mut slots = Slots::new(400);
        assert!((0..200).all(|i| slots.place(2 * i, Origin(1)).is_some()));
        assert_eq!(lacking_runs(&slots, 400, 128).len(), MOST_RUNS);
        assert!(lacking_runs(&slots, 400, 129).is_empty());
    }
}
