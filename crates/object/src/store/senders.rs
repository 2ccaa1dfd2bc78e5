//! From which addresses what was right came: whose symbols a block is collected from again that was wrong.
//!
//! An address proves nothing, as anyone on the sender's own network can forge it. It tells the sender from a stranger who does
//! not. A table proves less than a block that was right: anyone can send again what the sender signed, under as many numbers as he
//! likes.

use std::collections::BTreeSet;

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
    /// A table that counted came from there.
    has_table: bool,
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
        self.0[usize::from(origin.0)].has_table = true;
    }

    /// Who sent most of what was right; while nothing was, the only one whose table counts.
    pub(crate) fn proven(&self) -> Option<Origin> {
        let account = |origin: &Origin| self.0[usize::from(origin.0)];
        let all = || (1..=u8::MAX).map(Origin);
        let most = all().max_by_key(|origin| account(origin).symbols).filter(|origin| account(origin).symbols > 0);
        let mut with_table = all().filter(|origin| account(origin).has_table);
        most.or_else(|| with_table.next().filter(|_| with_table.next().is_none()))
    }

    /// Who is to be preferred for a block that was wrong with these symbols of each: the one who sent most of what was right, but for
    /// those whose symbols alone made this block wrong. `None` if nobody is known.
    pub(crate) fn preferred(&self, block: &[(Origin, u32)], tried: &BTreeSet<Origin>) -> Option<Origin> {
        let mut in_block = [0; 1 << u8::BITS];
        block.iter().for_each(|(origin, count)| in_block[usize::from(origin.0)] = *count);
        let rank = |origin: &Origin| {
            let Account { symbols, has_table } = self.0[usize::from(origin.0)];
            (symbols, has_table, in_block[usize::from(origin.0)])
        };
        let untried = (1..=u8::MAX).map(Origin).filter(|origin| !tried.contains(origin));
        untried.max_by_key(rank).filter(|origin| rank(origin) != (0, false, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Origin = Origin(1);
    const B: Origin = Origin(2);
    const C: Origin = Origin(3);
    const BLOCK: [(Origin, u32); 3] = [(A, 100), (B, 5), (C, 1)];

    #[test]
    fn who_sent_good_blocks_is_preferred_to_who_sent_tables_and_to_who_sent_much() {
        let mut senders = Senders::new();
        assert_eq!(senders.preferred(&[(Origin::default(), 9)], &BTreeSet::new()), None);
        assert_eq!((senders.preferred(&BLOCK, &BTreeSet::new()), senders.proven()), (Some(A), None));
        senders.note_table(B);
        assert_eq!((senders.preferred(&BLOCK, &BTreeSet::new()), senders.proven()), (Some(B), Some(B)));
        senders.note_block([(C, 1)].into_iter());
        assert_eq!((senders.preferred(&BLOCK, &BTreeSet::new()), senders.proven()), (Some(C), Some(C)));
        assert_eq!(senders.preferred(&BLOCK, &[C].into()), Some(B));
        assert_eq!(senders.preferred(&BLOCK[..1], &[A, B, C].into()), None);
    }

    #[test]
    fn who_sends_a_table_again_and_again_is_not_preferred_for_it() {
        let mut senders = Senders::new();
        senders.note_table(A);
        (0..100).for_each(|_| senders.note_table(C));
        assert_eq!((senders.preferred(&BLOCK, &BTreeSet::new()), senders.proven()), (Some(A), None));
    }
}
