//! Which encoding symbol lies in which slot of a block.
//!
//! A block has as many slots as source symbols, in the partial file itself. A source symbol takes its own slot; a repair
//! symbol, and a source symbol whose slot is taken, any free one. A slot is taken once and keeps its symbol until the
//! block is decoded, so an entry on disk is right whatever the moment at which a process dies.

use std::collections::HashSet;

use super::Origin;

/// The map of one block.
#[derive(Debug)]
pub(crate) struct Slots {
    symbols: Box<[u32]>,
    /// Who sent the symbol in each slot; not written down.
    origins: Box<[Origin]>,
    /// Symbols that are not in the slot of their own number.
    elsewhere: HashSet<u32>,
    /// No slot above is free.
    highest_free: usize,
    /// Slots that changed since they were last written down.
    dirty: Option<(u32, u32)>,
}

impl Slots {
    /// The map of an empty block of `count` source symbols.
    pub(crate) fn new(count: u32) -> Slots {
        Slots {
            symbols: vec![FREE; count as usize].into(),
            origins: vec![Origin::default(); count as usize].into(),
            elsewhere: HashSet::new(),
            highest_free: (count as usize).saturating_sub(1),
            dirty: None,
        }
    }

    /// Reads a map as [`Slots::write`] left it, and counts the symbols in it. With `only_in_place`, other symbols are
    /// forgotten. `None` for what no map can be: numbers out of range, or one symbol in two slots.
    pub(crate) fn read(bytes: &[u8], symbol_limit: u32, only_in_place: bool) -> Option<(Slots, u32)> {
        let mut slots = Slots::new((bytes.len() / ENTRY) as u32);
        let mut have = 0;
        for (slot, entry) in bytes.chunks_exact(ENTRY).enumerate() {
            let entry = u32::from_le_bytes(entry.try_into().expect("chunks of four bytes"));
            let Some(symbol) = entry.checked_sub(1) else { continue };
            if symbol >= symbol_limit {
                return None;
            }
            if symbol as usize != slot {
                if only_in_place {
                    slots.dirty = Some((0, slots.len()));
                    continue;
                }
                if !slots.elsewhere.insert(symbol) {
                    return None;
                }
            }
            slots.symbols[slot] = symbol;
            have += 1;
        }
        let twice = |symbol: &u32| slots.symbols.get(*symbol as usize) == Some(symbol);
        if slots.elsewhere.iter().any(twice) { None } else { Some((slots, have)) }
    }

    /// The bytes of the slots that changed, and the first of them; nothing if none did.
    pub(crate) fn write(&mut self) -> Option<(u32, Vec<u8>)> {
        let (first, end) = self.dirty.take()?;
        let changed = &self.symbols[first as usize..end as usize];
        Some((first, changed.iter().flat_map(|symbol| symbol.wrapping_add(1).to_le_bytes()).collect()))
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.is_some()
    }

    pub(crate) fn len(&self) -> u32 {
        self.symbols.len() as u32
    }

    /// Finds a slot for `symbol`; `None` if it is here already or nothing is free.
    pub(crate) fn place(&mut self, symbol: u32, origin: Origin) -> Option<u32> {
        if self.contains(symbol) {
            return None;
        }
        let slot = match self.symbols.get(symbol as usize) {
            Some(&FREE) => symbol as usize,
            _ => {
                while self.symbols[self.highest_free] != FREE {
                    self.highest_free = self.highest_free.checked_sub(1)?;
                }
                self.elsewhere.insert(symbol);
                self.highest_free
            }
        };
        self.symbols[slot] = symbol;
        self.origins[slot] = origin;
        let slot = slot as u32;
        self.note_change(slot, slot + 1);
        Some(slot)
    }

    /// Puts `count` source symbols from `first` on into their own slots, if all of those are free; whether they were.
    pub(crate) fn place_run(&mut self, first: u32, count: u32, origin: Origin) -> bool {
        let range = first as usize..first as usize + count as usize;
        let Some(run) = self.symbols.get_mut(range.clone()) else { return false };
        if !self.elsewhere.is_empty() || run.iter().any(|symbol| *symbol != FREE) {
            return false;
        }
        run.iter_mut().zip(first..).for_each(|(slot, symbol)| *slot = symbol);
        self.origins[range].fill(origin);
        self.note_change(first, first + count);
        true
    }

    /// Throws out the symbols of all but `origin`, or all; gives how many stay.
    pub(crate) fn keep_only(&mut self, origin: Option<Origin>) -> u32 {
        let mut kept = 0;
        for (symbol, from) in self.symbols.iter_mut().zip(&self.origins) {
            if Some(*from) != origin && *symbol != FREE {
                self.elsewhere.remove(symbol);
                *symbol = FREE;
            }
            kept += u32::from(*symbol != FREE);
        }
        self.highest_free = self.symbols.len().saturating_sub(1);
        self.note_change(0, self.len());
        kept
    }

    /// How many of the symbols each sent that sent any.
    pub(crate) fn senders(&self) -> impl Iterator<Item = (Origin, u32)> {
        let mut counts = [0u32; 1 << u8::BITS];
        let taken = self.symbols.iter().zip(&self.origins).filter(|(symbol, _)| **symbol != FREE);
        taken.for_each(|(_, origin)| counts[usize::from(origin.0)] += 1);
        (0..=u8::MAX).map(Origin).zip(counts).filter(|(_, count)| *count > 0)
    }

    fn note_change(&mut self, start: u32, stop: u32) {
        self.dirty = Some(match self.dirty {
            Some((first, end)) => (first.min(start), end.max(stop)),
            None => (start, stop),
        });
    }

    pub(crate) fn contains(&self, symbol: u32) -> bool {
        self.symbols.get(symbol as usize) == Some(&symbol) || self.elsewhere.contains(&symbol)
    }

    pub(crate) fn is_in_place(&self, slot: u32) -> bool {
        self.symbols[slot as usize] == slot
    }

    /// Whether a slot holds its own symbol since the map was last written down.
    pub(crate) fn is_written(&self, slot: u32) -> bool {
        self.is_in_place(slot) && self.dirty.is_none_or(|(first, end)| !(first..end).contains(&slot))
    }

    pub(crate) fn all_in_place(&self) -> bool {
        self.elsewhere.is_empty() && !self.symbols.contains(&FREE)
    }

    /// The symbol in each slot, of a full map.
    pub(crate) fn symbols(&self) -> &[u32] {
        &self.symbols
    }

    /// Bytes of memory, about.
    pub(crate) fn memory(count: u32) -> u64 {
        // The map, who sent what, and a set that in the worst case holds every symbol.
        u64::from(count) * 17 + 128
    }
}

/// Bytes of an entry on disk: the symbol's number plus one, or zero for a free slot.
pub(crate) const ENTRY: usize = 4;
/// No symbol has this number.
const FREE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Origin = Origin(1);
    const B: Origin = Origin(2);

    #[test]
    fn what_one_sender_sent_stays_when_the_rest_is_thrown_out() {
        let mut slots = Slots::new(6);
        for (symbol, origin) in [(0, A), (1, B), (9, A), (8, B), (3, A)] {
            slots.place(symbol, origin).expect("a slot is free");
        }
        assert_eq!(slots.senders().collect::<Vec<_>>(), [(A, 3), (B, 2)]);
        assert_eq!(slots.keep_only(Some(A)), 3);
        assert!(slots.contains(0) && slots.contains(9) && slots.contains(3));
        assert!(!slots.contains(1) && !slots.contains(8));
        let placed = (20..30).filter(|symbol| slots.place(*symbol, A).is_some()).count();
        assert_eq!(placed, 3, "what was thrown out leaves its slots free");
        assert_eq!(slots.keep_only(None), 0);
        assert_eq!(slots.write(), Some((0, vec![0; 24])));
    }

    #[test]
    fn a_source_symbol_takes_its_own_slot_and_a_repair_symbol_a_free_one() {
        let mut slots = Slots::new(4);
        assert_eq!((slots.place(1, A), slots.place(9, A), slots.place(3, A)), (Some(1), Some(3), Some(2)));
        assert_eq!((slots.place(3, A), slots.place(9, A), slots.place(1, A)), (None, None, None), "duplicates");
        assert_eq!((slots.place(7, A), slots.place(8, A)), (Some(0), None), "the second finds nothing free");
        assert!(!slots.all_in_place());
    }

    proptest! {
        #[test]
        fn a_run_leaves_the_map_as_its_symbols_one_by_one_do(
            before in proptest::collection::vec(0u32..20, 0..6), first in 0u32..20, count in 1u32..6,
        ) {
            let (mut run, mut singles) = (Slots::new(16), Slots::new(16));
            for symbol in before {
                prop_assert_eq!(run.place(symbol, A), singles.place(symbol, A));
            }
            let in_place = run.place_run(first, count, A);
            if in_place {
                (first..first + count).for_each(|symbol| assert_eq!(singles.place(symbol, A), Some(symbol)));
            }
            prop_assert_eq!(run.symbols(), singles.symbols());
            prop_assert_eq!(run.write(), singles.write());
        }

        #[test]
        fn a_map_survives_its_bytes(symbols in proptest::collection::vec(0u32..40, 0..40)) {
            let mut slots = Slots::new(16);
            let placed = symbols.iter().filter(|symbol| slots.place(**symbol, A).is_some()).count();
            let mut bytes = vec![0; 16 * ENTRY];
            if let Some((first, changed)) = slots.write() {
                bytes[first as usize * ENTRY..][..changed.len()].copy_from_slice(&changed);
            }
            let (read, have) = Slots::read(&bytes, 100, false).expect("our own");
            prop_assert_eq!(have as usize, placed);
            prop_assert_eq!(read.symbols(), slots.symbols());
        }

        #[test]
        fn any_bytes_are_a_map_or_refused(bytes in proptest::collection::vec(0u8..3, 64)) {
            if let Some((mut slots, have)) = Slots::read(&bytes, 1 << 24, false) {
                let free = (1000..1100).filter(|symbol| slots.place(*symbol, A).is_some()).count();
                prop_assert_eq!(free as u32 + have, 16);
            }
        }
    }
}
