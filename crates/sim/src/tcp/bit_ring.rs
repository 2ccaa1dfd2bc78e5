//! A set of sequence numbers in a moving window: one bit each, in a ring that grows when it must and never shrinks.

/// Sequence numbers from `base` on. What falls below the base is forgotten.
#[derive(Debug, Clone, Default)]
pub(super) struct BitRing {
    /// A power of two of them, or none.
    words: Vec<u64>,
    base: u64,
    /// One past the highest member since the last [`BitRing::clear`]: above it nothing is set.
    top: u64,
}

impl BitRing {
    /// Adds `start..end`; `added` is told each word's worth of new members, as the number of its lowest bit and the bits.
    #[inline]
    pub(super) fn insert(&mut self, start: u64, end: u64, mut added: impl FnMut(u64, u64)) {
        let start = start.max(self.base);
        if start >= end {
            return;
        }
        self.reserve(end);
        self.top = self.top.max(end);
        for (word, mask) in words(start, end) {
            let index = self.index(word);
            let new = mask & !self.words[index];
            if new != 0 {
                self.words[index] |= new;
                added(word << 6, new);
            }
        }
    }

    /// Whether `seq` is a member.
    #[inline]
    pub(super) fn contains(&self, seq: u64) -> bool {
        (self.base..self.top).contains(&seq) && self.words[self.index(seq >> 6)] >> (seq & 63) & 1 == 1
    }

    /// Members in `start..end`.
    pub(super) fn count(&self, start: u64, end: u64) -> u64 {
        let (start, end) = (start.max(self.base), end.min(self.top));
        if start >= end {
            return 0;
        }
        words(start, end).map(|(word, mask)| u64::from((self.words[self.index(word)] & mask).count_ones())).sum()
    }

    /// Forgets everything below `base`.
    pub(super) fn advance(&mut self, base: u64) {
        let end = base.min(self.top);
        if self.base < end {
            for (word, mask) in words(self.base, end) {
                let index = self.index(word);
                self.words[index] &= !mask;
            }
        }
        self.base = self.base.max(base);
        self.top = self.top.max(self.base);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.top = self.base;
    }

    /// One past the highest member, or the base.
    #[inline]
    pub(super) fn top(&self) -> u64 {
        self.top
    }

    /// The lowest number from `from` on that is no member.
    pub(super) fn first_absent(&self, from: u64) -> u64 {
        if from < self.base || from >= self.top {
            return from;
        }
        words(from, self.top)
            .find_map(|(word, mask)| {
                let absent = mask & !self.words[self.index(word)];
                (absent != 0).then(|| (word << 6) + u64::from(absent.trailing_zeros()))
            })
            .unwrap_or(self.top)
    }

    /// The highest member below `end`.
    pub(super) fn last_present(&self, end: u64) -> Option<u64> {
        let end = end.min(self.top);
        if self.base >= end {
            return None;
        }
        words(self.base, end).rev().find_map(|(word, mask)| {
            let present = mask & self.words[self.index(word)];
            (present != 0).then(|| (word << 6) + 63 - u64::from(present.leading_zeros()))
        })
    }

    /// Where the run of members that ends with `seq` begins.
    pub(super) fn run_start(&self, seq: u64) -> u64 {
        words(self.base, seq + 1)
            .rev()
            .find_map(|(word, mask)| {
                let absent = mask & !self.words[self.index(word)];
                (absent != 0).then(|| (word << 6) + 64 - u64::from(absent.leading_zeros()))
            })
            .unwrap_or(self.base)
    }

    fn index(&self, word: u64) -> usize {
        word as usize & (self.words.len() - 1)
    }

    /// Makes room for members below `end`.
    #[inline]
    fn reserve(&mut self, end: u64) {
        let needed = ((end - 1) >> 6) - (self.base >> 6) + 1;
        if needed > self.words.len() as u64 {
            self.grow(needed as usize);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let size = needed.next_power_of_two().max(4);
        let mut words = vec![0; size];
        if self.base < self.top {
            for word in self.base >> 6..=(self.top - 1) >> 6 {
                words[word as usize & (size - 1)] = self.words[self.index(word)];
            }
        }
        self.words = words;
    }
}

/// The words that hold `start..end`, which is not empty, with the bits of each that are in it.
#[inline]
fn words(start: u64, end: u64) -> impl DoubleEndedIterator<Item = (u64, u64)> {
    let (first, last) = (start >> 6, (end - 1) >> 6);
    (first..=last).map(move |word| {
        let mut mask = u64::MAX;
        if word == first {
            mask &= u64::MAX << (start & 63);
        }
        if word == last {
            mask &= u64::MAX >> (63 - ((end - 1) & 63));
        }
        (word, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_answers_as_a_set_of_numbers_does(
            steps in proptest::collection::vec((0u64..400, 0u64..90, 0u64..40), 1..60), start in 0u64..1000,
        ) {
            let mut ring = BitRing::default();
            ring.advance(start);
            let (mut shadow, mut base) = (BTreeSet::new(), start);
            for (offset, length, step) in steps {
                let (from, to) = (base + offset, base + offset + length);
                let mut added = 0;
                ring.insert(from, to, |_, bits| added += bits.count_ones() as usize);
                let before = shadow.len();
                shadow.extend(from..to);
                prop_assert_eq!(added, shadow.len() - before);
                base += step;
                ring.advance(base);
                shadow = shadow.split_off(&base);
                prop_assert_eq!(ring.count(base, base + 600), shadow.len() as u64);
                prop_assert_eq!(ring.count(from, to), shadow.range(from.max(base)..to.max(base)).count() as u64);
                prop_assert_eq!(ring.contains(from), shadow.contains(&from));
                prop_assert_eq!(ring.last_present(to), shadow.range(..to).next_back().copied());
                let absent = (from.max(base)..).find(|seq| !shadow.contains(seq));
                prop_assert_eq!(Some(ring.first_absent(from.max(base))), absent);
                if let Some(last) = shadow.last() {
                    let run = (base..=*last).rev().take_while(|seq| shadow.contains(seq)).last();
                    prop_assert_eq!(Some(ring.run_start(*last)), run);
                }
            }
        }
    }
}
