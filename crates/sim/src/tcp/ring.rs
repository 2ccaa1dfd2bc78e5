//! One record a segment that is outstanding.

/// Records by sequence number, in a ring that grows when the window does.
#[derive(Debug, Clone, Default)]
pub(super) struct Ring<T> {
    /// A power of two of them, or none.
    records: Vec<T>,
}

impl<T: Copy + Default> Ring<T> {
    /// The record of `seq`, which lies between `oldest`, the lowest number that matters still, and what was sent last.
    #[inline]
    pub(super) fn entry(&mut self, oldest: u64, seq: u64) -> &mut T {
        if seq - oldest >= self.records.len() as u64 {
            self.grow(oldest, seq);
        }
        let mask = self.records.len() - 1;
        &mut self.records[seq as usize & mask]
    }

    /// The record of `seq`; a default one if nothing was ever recorded.
    #[inline]
    pub(super) fn get(&self, seq: u64) -> T {
        self.records.get(seq as usize & self.records.len().wrapping_sub(1)).copied().unwrap_or_default()
    }

    #[cold]
    fn grow(&mut self, oldest: u64, seq: u64) {
        let size = (seq - oldest + 1).next_power_of_two().max(64) as usize;
        let mut records = vec![T::default(); size];
        for old in oldest..oldest + self.records.len() as u64 {
            records[old as usize & (size - 1)] = self.get(old);
        }
        self.records = records;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_growth() {
        let mut ring = Ring::default();
        for seq in 1000..1300 {
            *ring.entry(1000, seq) = seq;
        }
        assert!((1000..1300).all(|seq| ring.get(seq) == seq));
    }
}
