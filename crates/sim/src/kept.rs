//! Payloads that a host keeps for its endpoint, by number. In the simulator a payload is nothing but the size of its packet.

use std::collections::BTreeMap;

use weir_units::Bytes;

/// Kept payloads, and the packets that they came in: nothing for one that the application offered.
#[derive(Debug, Default)]
pub(crate) struct Kept(BTreeMap<u64, Bytes>);

impl Kept {
    /// What a host has memory for. An endpoint that keeps more has forgotten to release.
    pub(crate) const MOST: usize = 1 << 20;

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= Self::MOST
    }

    /// Keeps a payload; one that is kept under this number already stays.
    pub(crate) fn insert(&mut self, number: u64, packet: Bytes) {
        self.0.entry(number).or_insert(packet);
    }

    /// The size of the packet that it came in, if it is kept.
    pub(crate) fn get(&self, number: u64) -> Option<Bytes> {
        self.0.get(&number).copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Forgets all with lower numbers.
    pub(crate) fn release(&mut self, below: u64) {
        self.0 = self.0.split_off(&below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_until_it_is_released_and_the_first_of_a_number_counts() {
        let mut kept = Kept::default();
        for (number, size) in [(5, 100), (2, 200), (9, 300), (5, 400)] {
            kept.insert(number, Bytes::new(size));
        }
        assert_eq!(kept.get(5), Some(Bytes::new(100)));
        kept.release(5);
        assert_eq!([2, 5, 9].map(|number| kept.get(number).map(Bytes::count)), [None, Some(100), Some(300)]);
    }
}
