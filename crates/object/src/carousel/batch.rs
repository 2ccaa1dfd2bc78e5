//! Symbols that are ready to be sent, and which channel sends which.
//!
//! Not here: who makes batches ([`super::worker`]), and when their symbols are sent ([`super::Carousel`]).

use std::ops::Range;

/// Symbols ready to be sent, a region of them for each channel.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(super) slots: Vec<Slot>,
    /// For each channel, what it has not sent of its slots.
    pub(super) regions: Vec<Range<u32>>,
    pub(super) left: usize,
    pub(super) data: Vec<u8>,
    /// Whether the first cycle ends with this batch: no channel goes on to repair symbols before it is over.
    pub(super) ends_first_cycle: bool,
}

/// One symbol of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// Index into the plan's blocks.
    pub(crate) block: u32,
    pub(crate) symbol: u32,
    /// Which symbol of the batch's data.
    pub(crate) at: u32,
}

impl Batch {
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    pub(crate) fn ends_first_cycle(&self) -> bool {
        self.ends_first_cycle
    }

    /// Whether at least half of it was sent.
    pub(crate) fn is_half_sent(&self) -> bool {
        self.left * 2 <= self.slots.len()
    }

    /// The next slot of `channel`, while it has one.
    pub(crate) fn take(&mut self, channel: usize) -> Option<Slot> {
        let slot = self.regions[channel].next()?;
        self.left -= 1;
        Some(self.slots[slot as usize])
    }

    /// Takes a slot from the channel with the most left, once few slots of the batch are left.
    pub(crate) fn steal_rest(&mut self) -> Option<Slot> {
        if self.left * REST > self.slots.len() { None } else { self.steal() }
    }

    /// Takes a slot from the channel with the most left.
    pub(crate) fn steal(&mut self) -> Option<Slot> {
        let channel = (0..self.regions.len()).max_by_key(|channel| self.regions[*channel].len())?;
        self.take(channel)
    }

    pub(crate) fn data(&self, slot: Slot, symbol_size: usize) -> &[u8] {
        let start = slot.at as usize * symbol_size;
        &self.data[start..start + symbol_size]
    }
}

/// Any channel may take the last slots of a batch: one in this many.
const REST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_64th_of_a_batch_is_anybody_s() {
        let slot = |i: u32| Slot { block: 0, symbol: i, at: i };
        let slots: Vec<Slot> = (0..256).map(slot).collect();
        let mut batch = Batch { slots, regions: vec![0..250, 250..256], left: 256, ..Batch::default() };
        assert!(batch.steal_rest().is_none());
        let own = std::iter::from_fn(|| batch.take(0)).count();
        assert_eq!((own, batch.left()), (250, 6));
        assert!(batch.steal_rest().is_none(), "6 of 256 are more than a 64th");
        batch.take(1);
        batch.take(1);
        let rest: Vec<u32> = std::iter::from_fn(|| batch.steal_rest()).map(|slot| slot.symbol).collect();
        assert_eq!((rest, batch.left()), (vec![252, 253, 254, 255], 0));
    }
}
