//! From which addresses what was right came: whose symbols a block is collected from again that was wrong.
//!
//! An address proves nothing, as anyone on the sender's own network can forge it. It tells the sender from a stranger who does
//! not.

/// Stands for the address that a packet came from. Whoever feeds the store numbers the addresses from 1; 0 is one that is not
/// known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Origin(pub u8);

/// What came from each address.
#[derive(Debug)]
pub(crate) struct Senders(Box<[Account; 1 << u8::BITS]>);

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    /// Symbols in blocks that were right.
    symbols: u64,
    /// Tables that counted.
    tables: u64,
}

impl Senders {
    pub(crate) fn new() -> Senders {
        Senders(Box::new([Account::default(); 1 << u8::BITS]))
    }

    /// A block was right that has these symbols of each.
    pub(crate) fn note_block(&mut self, symbols: impl Iterator<Item = (Origin, u32)>) {
        symbols.for_each(|(origin, count)| self.0[usize::from(origin.0)].symbols += u64::from(count));
    }

    /// A table that counts came from there.
    pub(crate) fn note_table(&mut self, origin: Origin) {
        self.0[usize::from(origin.0)].tables += 1;
    }

    /// Who is to be preferred for a block that was wrong with these symbols of each: the one who sent most of what was right.
    /// `None` if nobody is known.
    pub(crate) fn preferred(&self, block: impl Iterator<Item = (Origin, u32)>) -> Option<Origin> {
        let mut in_block = [0; 1 << u8::BITS];
        block.for_each(|(origin, count)| in_block[usize::from(origin.0)] = count);
        let rank = |origin: &Origin| {
            let Account { symbols, tables } = self.0[usize::from(origin.0)];
            (symbols, tables, in_block[usize::from(origin.0)])
        };
        (1..=u8::MAX).map(Origin).max_by_key(rank).filter(|origin| rank(origin) != (0, 0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sent_good_blocks_is_preferred_to_who_sent_tables_and_to_who_sent_much() {
        let [a, b, c] = [1, 2, 3].map(Origin);
        let mut senders = Senders::new();
        assert_eq!(senders.preferred([(Origin::default(), 9)].into_iter()), None);
        let block = || [(a, 100), (b, 5), (c, 1)].into_iter();
        assert_eq!(senders.preferred(block()), Some(a));
        senders.note_table(b);
        assert_eq!(senders.preferred(block()), Some(b));
        senders.note_block([(c, 1)].into_iter());
        assert_eq!(senders.preferred(block()), Some(c));
    }
}
