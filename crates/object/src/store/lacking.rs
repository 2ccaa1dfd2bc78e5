//! What is still to come, for a sender that asks for it.

use super::slots::Slots;
use super::{FileState, Store, StoreError};
use crate::lack::Lack;

impl Store {
    /// What is lacking of the files, in their order, `most` blocks of them at most. `None` before the whole table is here: until then nobody
    /// can say. A block that has symbols enough lacks nothing, decoded or not.
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
            for index in 0..blocks {
                if lacks.len() == most {
                    return Ok(Some(lacks));
                }
                lacks.extend(self.lack_of(file, index)?);
            }
        }
        Ok(Some(lacks))
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

/// The first so many source symbols that a block does not have, in runs; none if there are too many runs to tell.
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

/// More are not worth their bytes.
const MOST_RUNS: usize = weir_wire::lack::MAX_RUNS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Origin;

    #[test]
    fn as_many_missing_source_symbols_are_told_as_are_needed() {
        let mut slots = Slots::new(10);
        for symbol in [0, 1, 5, 30] {
            slots.place(symbol, Origin(1)).expect("a slot is free");
        }
        assert_eq!(lacking_runs(&slots, 10, 6), [(2, 3), (6, 3)], "a repair symbol stands for one of seven");
    }

    #[test]
    fn a_block_of_too_many_holes_tells_none_of_them() {
        let mut slots = Slots::new(400);
        assert!((0..200).all(|i| slots.place(2 * i, Origin(1)).is_some()));
        assert_eq!(lacking_runs(&slots, 400, 128).len(), MOST_RUNS);
        assert!(lacking_runs(&slots, 400, 129).is_empty());
    }
}
