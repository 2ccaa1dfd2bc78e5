//! A first-in, first-out queue whose few entries are in place. Not one that anything is taken from but its front.
//!
//! Most links of a large network carry a few packets at a time. These are then fetched with the link itself, and not from
//! somewhere else that only the link knows.

use alloc::collections::VecDeque;

#[derive(Debug, Clone)]
pub(crate) enum Ring<T> {
    /// In order, the empty places last.
    Few([Option<T>; FEW]),
    /// There have been more.
    Many(VecDeque<T>),
}

/// Entries in place: as many as leave room for the rest of a link in two lines of the cache.
const FEW: usize = 3;

impl<T> Ring<T> {
    pub(crate) fn new() -> Ring<T> {
        Ring::Few([const { None }; FEW])
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Ring::Few(few) => few.iter().flatten().count(),
            Ring::Many(many) => many.len(),
        }
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        match self {
            Ring::Few(few) => few.get(place)?.as_ref(),
            Ring::Many(many) => many.get(place),
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, entry: T) {
        match self {
            Ring::Few(few) => match few.iter_mut().find(|place| place.is_none()) {
                Some(place) => *place = Some(entry),
                None => self.outgrow(entry),
            },
            Ring::Many(many) => many.push_back(entry),
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        match self {
            Ring::Few(few) => {
                let first = few[0].take();
                few.rotate_left(1);
                first
            }
            Ring::Many(many) => many.pop_front(),
        }
    }

    /// How many entries at the front `holds` of, if it holds of none behind one of which it does not.
    pub(crate) fn partition_point(&self, mut holds: impl FnMut(&T) -> bool) -> usize {
        match self {
            Ring::Few(few) => few.iter().flatten().take_while(|entry| holds(entry)).count(),
            Ring::Many(many) => many.partition_point(holds),
        }
    }

    #[cold]
    fn outgrow(&mut self, entry: T) {
        *self = Ring::Many(core::iter::from_fn(|| self.pop_front()).collect());
        self.push_back(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn few_entries_or_many_come_out_in_the_order_in_which_they_went_in(
            pushes in proptest::collection::vec(prop::bool::weighted(0.6), 0..40),
        ) {
            let (mut ring, mut model) = (Ring::new(), VecDeque::new());
            for (number, push) in pushes.into_iter().enumerate() {
                if push {
                    ring.push_back(number);
                    model.push_back(number);
                } else {
                    prop_assert_eq!(ring.pop_front(), model.pop_front());
                }
                prop_assert_eq!((ring.len(), ring.front()), (model.len(), model.front()));
                prop_assert!((0..=model.len()).all(|place| ring.get(place) == model.get(place)));
                let middle = number / 2;
                prop_assert_eq!(
                    ring.partition_point(|entry| *entry < middle), model.partition_point(|entry| *entry < middle)
                );
            }
        }
    }
}
