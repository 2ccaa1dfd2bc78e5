//! What was read lately of a live stream, and how far each viewer has got in it. A state machine without clock or socket.
//!
//! A payload is there once, however many viewers get it, and goes when nobody wants it any more. A viewer that falls behind what is
//! kept loses the oldest, in whole pictures. Not here: where payloads come from, whether those who make them wait (`feed.rs`), and where
//! pictures begin (`pictures.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use weir_core::PeerId;
use weir_units::Time;
use weir_wire::rtp::Rtp;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Ring {
    slots: VecDeque<Slot>,
    /// The number of the first slot; payloads are numbered from 0.
    first: u64,
    readers: BTreeMap<PeerId, Reader>,
    dropped: u64,
}

/// A payload.
#[derive(Debug)]
pub(super) struct Slot {
    /// When it came in.
    pub(super) came: Time,
    /// What its RTP header says.
    pub(super) header: Rtp,
    pub(super) payload: Arc<[u8]>,
    /// Whether a picture begins in it.
    begins: bool,
    /// How many viewers have yet to get it.
    wanted: usize,
}

impl Slot {
    /// A payload that came at this time, and whether a picture begins in it.
    pub(super) fn new(came: Time, header: Rtp, payload: Arc<[u8]>, begins: bool) -> Slot {
        Slot { came, header, payload, begins, wanted: 0 }
    }
}

/// How much is kept for viewers that are behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// How long a payload is of use.
    pub(super) longest_wait: Duration,
    /// How many payloads there are at most.
    pub(super) most: usize,
}

/// A viewer.
#[derive(Debug, Clone, Copy, Default)]
struct Reader {
    /// The next payload that it gets, or an earlier one that is not kept any more.
    next: u64,
    dropped: u64,
    /// It has lost a part of a picture, and goes on with the next one that begins.
    skips: bool,
    /// Payloads that it was said to get and passed over: as many others are to come before more are said to wait.
    owed: u64,
}

impl Ring {
    /// Adds a payload. If the oldest has waited for too long, or there is no room, the oldest goes: one comes, one goes, so that what was said
    /// to wait never shrinks. Without a window nothing goes that somebody wants.
    pub(super) fn push(&mut self, slot: Slot, window: Option<Window>) {
        let is_too_much = |window: Window, oldest: &Slot| {
            slot.came.since(oldest.came) > window.longest_wait || self.slots.len() >= window.most.max(1)
        };
        if window.zip(self.slots.front()).is_some_and(|(window, oldest)| is_too_much(window, oldest)) {
            let oldest = self.slots.pop_front();
            self.first += 1;
            // Where nobody is, nobody gets it.
            self.dropped += oldest.map_or(0, |oldest| oldest.wanted.max(1) as u64);
        }
        // It is one more for those who have not lost the one that made room.
        let has_more = |reader: &&mut Reader| reader.next >= self.first;
        self.readers.values_mut().filter(has_more).for_each(|reader| reader.owed = reader.owed.saturating_sub(1));
        self.slots.push_back(Slot { wanted: self.readers.len(), ..slot });
        self.forget();
    }

    /// A viewer comes. The first one begins with what is there, others with what comes next.
    pub(super) fn add(&mut self, viewer: PeerId) {
        let next = if self.readers.is_empty() {
            self.slots.iter_mut().for_each(|slot| slot.wanted = 1);
            self.first
        } else {
            self.end()
        };
        self.readers.insert(viewer, Reader { next, ..Reader::default() });
    }

    /// A viewer has gone. What the last one has not got is there for the next.
    pub(super) fn remove(&mut self, viewer: PeerId) {
        let Some(reader) = self.readers.remove(&viewer) else { return };
        let got = reader.next.saturating_sub(self.first) as usize;
        self.slots.iter_mut().skip(got).for_each(|slot| slot.wanted -= 1);
        self.forget();
    }

    /// The next payload for a viewer. What is left of a picture of which it has lost a part is passed over.
    pub(super) fn next(&mut self, viewer: PeerId) -> Option<(Time, Rtp, Arc<[u8]>)> {
        let reader = self.readers.get_mut(&viewer)?;
        let lost = self.first.saturating_sub(reader.next);
        reader.dropped += lost;
        reader.skips |= lost > 0;
        reader.next = reader.next.max(self.first);
        let mut found = None;
        while let Some(slot) = self.slots.get_mut((reader.next - self.first) as usize) {
            reader.next += 1;
            slot.wanted -= 1;
            reader.skips &= !slot.begins;
            if !reader.skips {
                found = Some((slot.came, slot.header, Arc::clone(&slot.payload)));
                break;
            }
            reader.dropped += 1;
            reader.owed += 1;
            self.dropped += 1;
        }
        if found.is_none() {
            reader.owed = 0;
        }
        self.forget();
        found
    }

    /// How many payloads wait for a viewer.
    pub(super) fn waiting(&self, viewer: PeerId) -> u64 {
        self.readers.get(&viewer).map_or(0, |reader| self.end() - reader.next.max(self.first) + reader.owed)
    }

    /// Payloads that a viewer has lost.
    pub(super) fn dropped_of(&self, viewer: PeerId) -> u64 {
        self.readers.get(&viewer).map_or(0, |reader| reader.dropped + self.first.saturating_sub(reader.next))
    }

    /// Payloads that viewers have lost, each counted for each of them; one that was lost while there was none counts once.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many payloads there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many viewers there are.
    pub(super) fn viewers(&self) -> usize {
        self.readers.len()
    }

    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// What all viewers have got goes; while there is none, nothing does.
    fn forget(&mut self) {
        while !self.readers.is_empty() && self.slots.front().is_some_and(|slot| slot.wanted == 0) {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Window = Window { longest_wait: Duration::from_secs(1), most: 1_000 };
    const A: PeerId = PeerId(1);
    const B: PeerId = PeerId(2);
    const C: PeerId = PeerId(3);

    /// Adds a payload that is its number, at this time in milliseconds.
    fn push(ring: &mut Ring, number: u64, millis: u64, window: Option<Window>) {
        push_part(ring, number, true, millis, window);
    }

    /// The same, of a picture that begins in it or before.
    fn push_part(ring: &mut Ring, number: u64, begins: bool, millis: u64, window: Option<Window>) {
        let payload = number.to_be_bytes().as_slice().into();
        ring.push(Slot::new(Time::from_millis(millis), Rtp::default(), payload, begins), window);
    }

    fn next(ring: &mut Ring, viewer: PeerId) -> Option<u64> {
        let (_, _, payload) = ring.next(viewer)?;
        payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }

    fn drain(ring: &mut Ring, viewer: PeerId) -> Vec<u64> {
        std::iter::from_fn(|| next(ring, viewer)).collect()
    }

    #[test]
    fn the_first_viewer_begins_with_what_is_there_and_others_with_what_comes_next() {
        let mut ring = Ring::default();
        (0..3).for_each(|number| push(&mut ring, number, 0, Some(WINDOW)));
        ring.add(A);
        ring.add(B);
        push(&mut ring, 3, 0, Some(WINDOW));
        assert_eq!((ring.waiting(A), ring.waiting(B)), (4, 1));
        assert_eq!((drain(&mut ring, A), drain(&mut ring, B)), (vec![0, 1, 2, 3], vec![3]));
        assert_eq!((ring.len(), ring.dropped()), (0, 0));
    }

    #[test]
    fn payloads_are_shared_and_go_when_the_last_viewer_has_got_them() {
        let mut ring = Ring::default();
        [A, B].into_iter().for_each(|viewer| ring.add(viewer));
        push(&mut ring, 0, 0, Some(WINDOW));
        let [(.., one), (.., other)] = [A, B].map(|viewer| ring.next(viewer).expect("it waits"));
        assert!(Arc::ptr_eq(&one, &other) && ring.len() == 0);
        assert_eq!(Arc::strong_count(&one), 2, "nobody else has it");
    }

    #[test]
    fn a_slow_viewer_loses_the_oldest_and_holds_nobody_up() {
        let mut ring = Ring::default();
        [A, B].into_iter().for_each(|viewer| ring.add(viewer));
        for number in 0..200 {
            push(&mut ring, number, number * 10, Some(WINDOW));
            assert_eq!(next(&mut ring, A), Some(number));
            if number % 4 == 0 {
                next(&mut ring, B);
            }
        }
        assert_eq!((ring.waiting(A), ring.dropped_of(A)), (0, 0));
        assert_eq!(ring.waiting(B), 101, "a second of it, to one payload");
        let (lost, rest) = (ring.dropped_of(B), drain(&mut ring, B));
        assert_eq!((lost, ring.dropped(), lost + 50 + rest.len() as u64), (49, 49, 200));
        assert_eq!((rest.first(), rest.last()), (Some(&99), Some(&199)));
    }

    #[test]
    fn a_viewer_that_has_lost_a_part_of_a_picture_goes_on_with_the_next_picture() {
        let mut ring = Ring::default();
        ring.add(A);
        // Pictures of ten payloads, of which 95 are kept.
        let window = Window { most: 95, ..WINDOW };
        (0..103).for_each(|number| push_part(&mut ring, number, number % 10 == 0, 0, Some(window)));
        assert_eq!((ring.dropped_of(A), ring.waiting(A)), (8, 95));
        assert_eq!(next(&mut ring, A), Some(10), "the third and later payloads of the first picture are of no use");
        assert_eq!((ring.dropped_of(A), ring.dropped()), (10, 10));
        assert_eq!(ring.waiting(A), 94, "what was said to wait has only lost what was got");
        (103..106).for_each(|number| push_part(&mut ring, number, number % 10 == 0, 0, Some(window)));
        assert_eq!((ring.waiting(A), drain(&mut ring, A)), (95, (11..106).collect()));
    }

    #[test]
    fn where_nothing_follows_a_picture_that_is_passed_over_nothing_waits() {
        let mut ring = Ring::default();
        ring.add(A);
        let window = Window { most: 5, ..WINDOW };
        (0..8).for_each(|number| push_part(&mut ring, number, number == 0, 0, Some(window)));
        assert_eq!((ring.waiting(A), next(&mut ring, A), ring.waiting(A)), (5, None, 0));
        push_part(&mut ring, 8, false, 0, Some(window));
        push_part(&mut ring, 9, true, 0, Some(window));
        assert_eq!((ring.waiting(A), drain(&mut ring, A), ring.dropped_of(A)), (2, vec![9], 9));
    }

    #[test]
    fn what_was_said_to_wait_never_shrinks_but_by_what_is_got() {
        let mut ring = Ring::default();
        ring.add(A);
        (0..100).for_each(|number| push(&mut ring, number, number, Some(WINDOW)));
        // A long pause: all of it is too old.
        push(&mut ring, 100, 60_000, Some(WINDOW));
        assert_eq!((ring.waiting(A), ring.dropped_of(A)), (100, 1));
    }

    #[test]
    fn there_are_no_more_payloads_than_the_window_has_room_for() {
        let mut ring = Ring::default();
        ring.add(A);
        let window = Window { most: 10, ..WINDOW };
        (0..1_000).for_each(|number| push(&mut ring, number, 0, Some(window)));
        assert_eq!((ring.len(), ring.dropped_of(A)), (10, 990));
        assert_eq!(drain(&mut ring, A), (990..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn without_a_window_nothing_is_lost() {
        let mut ring = Ring::default();
        [A, B].into_iter().for_each(|viewer| ring.add(viewer));
        (0..100).for_each(|number| push(&mut ring, number, number * 1_000, None));
        assert_eq!(drain(&mut ring, A).len(), 100);
        assert_eq!((ring.len(), drain(&mut ring, B).len(), ring.len()), (100, 100, 0));
    }

    #[test]
    fn who_goes_leaves_nothing_behind_but_the_last_one_what_he_has_not_got() {
        let mut ring = Ring::default();
        [A, B].into_iter().for_each(|viewer| ring.add(viewer));
        (0..10).for_each(|number| push(&mut ring, number, 0, Some(WINDOW)));
        (0..5).for_each(|number| assert_eq!(next(&mut ring, A), Some(number)));
        ring.remove(B);
        assert_eq!((ring.len(), ring.waiting(A)), (5, 5));
        ring.remove(A);
        ring.add(C);
        assert_eq!(drain(&mut ring, C), [5, 6, 7, 8, 9]);
    }

    #[test]
    fn while_nobody_is_there_the_oldest_is_dropped_and_counts_once() {
        let mut ring = Ring::default();
        (0..300).for_each(|number| push(&mut ring, number, number * 10, Some(WINDOW)));
        assert_eq!((ring.len(), ring.dropped()), (101, 199));
        ring.add(A);
        assert_eq!((next(&mut ring, A), ring.dropped_of(A)), (Some(199), 0), "it was not there");
    }

    proptest! {
        #[test]
        fn every_viewer_gets_each_payload_in_order_once_or_it_is_counted(
            steps in proptest::collection::vec((0u8..8, 0u64..40, 0u8..3), 1..400),
        ) {
            let (mut ring, mut pushed, mut now) = (Ring::default(), 0, 0);
            // By viewer: what it got, and the number of the first that it could get.
            let mut there: BTreeMap<PeerId, (Vec<u64>, u64)> = BTreeMap::new();
            let window = Window { longest_wait: Duration::from_millis(200), most: 12 };
            let (mut left, mut begin) = (0, Vec::new());
            for (what, millis, part) in steps {
                now += millis;
                let viewer = [A, B, C][usize::from(what % 3)];
                let waited: BTreeMap<PeerId, u64> = there.keys().map(|viewer| (*viewer, ring.waiting(*viewer))).collect();
                match what {
                    0..=2 => {
                        let got = next(&mut ring, viewer);
                        if let Some((all, first)) = there.get_mut(&viewer) {
                            prop_assert!(got.is_none() || waited[&viewer] > 0);
                            let follows = all.last().map_or(*first, |last| last + 1);
                            prop_assert!(got.is_none_or(|got| got == follows || begin[got as usize]), "a part of a picture");
                            all.extend(got);
                        } else {
                            prop_assert_eq!(got, None);
                        }
                    }
                    3 if there.contains_key(&viewer) => {
                        left += ring.dropped_of(viewer);
                        ring.remove(viewer);
                        there.remove(&viewer);
                    }
                    3 | 4 if !there.contains_key(&viewer) => {
                        let first = if there.is_empty() { pushed - ring.len() as u64 } else { pushed };
                        ring.add(viewer);
                        there.insert(viewer, (Vec::new(), first));
                    }
                    _ => {
                        begin.push(part == 0);
                        push_part(&mut ring, pushed, part == 0, now, Some(window));
                        pushed += 1;
                        for (viewer, waited) in waited {
                            prop_assert!(ring.waiting(viewer) >= waited, "what waits has shrunk");
                        }
                    }
                }
                prop_assert!(ring.len() <= window.most);
                for (viewer, (got, first)) in &there {
                    prop_assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
                    let waits = ring.waiting(*viewer) - ring.readers[viewer].owed;
                    let told_of = got.len() as u64 + waits + ring.dropped_of(*viewer);
                    prop_assert_eq!(told_of, pushed - first, "viewer {:?}", viewer);
                }
                let now_there: u64 = there.keys().map(|viewer| ring.dropped_of(*viewer)).sum();
                prop_assert!(ring.dropped() >= now_there + left);
            }
        }
    }
}
