//! Packets that have come already.

/// The numbers that have come, as far back as packets are overtaken: 65 536, 65 ms of 10 Gbit/s.
#[derive(Debug)]
pub(super) struct Window {
    /// A bit a number, by its lowest bits.
    come: Box<[u64; WORDS]>,
    /// The highest that has come, plus one.
    end: u64,
}

impl Window {
    pub(super) fn new() -> Window {
        Window { come: Box::new([0; WORDS]), end: 0 }
    }

    /// Notes a number; says whether it is there for the first time, as far as can be told.
    pub(super) fn note(&mut self, number: u64) -> bool {
        if number + SIZE < self.end {
            return false;
        }
        // What lies between the highest until now and this one has not come.
        for skipped in self.end.max((number + 1).saturating_sub(SIZE))..=number {
            self.come[word(skipped)] &= !bit(skipped);
        }
        self.end = self.end.max(number + 1);
        let is_new = self.come[word(number)] & bit(number) == 0;
        self.come[word(number)] |= bit(number);
        is_new
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

const WORDS: usize = 1024;
const SIZE: u64 = WORDS as u64 * 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn each_number_counts_once_and_none_from_long_ago() {
        let mut window = Window::new();
        assert!(window.note(5) && !window.note(5) && window.note(4) && window.note(70_000));
        assert!(!window.note(4), "it is too long ago");
        assert!(window.note(69_999) && window.note(70_000 - SIZE + 1) && !window.note(70_000));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_that_came(steps in proptest::collection::vec((0u64..200_000, any::<bool>()), 1..300)) {
            let (mut window, mut come, mut at, mut end) = (Window::new(), HashSet::new(), 0u64, 0u64);
            for (step, is_back) in steps {
                at = if is_back { at.saturating_sub(step % 1000) } else { at + step };
                let expected = at + SIZE >= end && come.insert(at);
                prop_assert_eq!(window.note(at), expected, "number {}", at);
                end = end.max(at + 1);
            }
        }
    }
}
