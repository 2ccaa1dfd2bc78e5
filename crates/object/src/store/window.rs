//! The parts of files that are being filled: symbols wait here for their neighbours, so that a stretch of a file is
//! written at one go and hashed while it is in memory.
//!
//! A stretch is [`STRETCH`] bytes, aligned. It leaves when all its bytes have their final values, or when another needs its
//! place; then whoever wants its digest must read it back. Not here: files. What is dirty is handed to whoever writes.

use std::collections::HashMap;
use std::io;

use crate::pieces::LEAF;

/// Bytes of a stretch: what the digest takes at a time. Larger ones cost as much a byte to write, on tmpfs.
pub(crate) const STRETCH: usize = LEAF as usize;

/// The stretches in memory.
#[derive(Debug)]
pub(crate) struct Window {
    stretches: Vec<Stretch>,
    /// Where the stretch of a file and number is.
    places: HashMap<(u32, u64), usize>,
    /// Most stretches at a time.
    limit: usize,
    /// Where the last symbol went, which is mostly where the next one goes.
    last: usize,
    /// Counts symbols: the clock by which a stretch is old.
    now: u64,
    /// Memory of stretches that have left.
    spare: Vec<Box<[u8]>>,
}

/// Some consecutive bytes of a file.
#[derive(Debug)]
struct Stretch {
    file: u32,
    number: u64,
    /// What is outside of the ranges that were put here is of no meaning.
    bytes: Box<[u8]>,
    /// Bytes that have to get their final values, and those that got them since it came into memory.
    length: usize,
    complete: usize,
    /// Where those are.
    finals: Vec<(u32, u32)>,
    /// What has not been written.
    dirty: Vec<(u32, u32)>,
    touched: u64,
}

impl Window {
    /// A window of `memory` bytes, or of a few stretches if that is more.
    pub(crate) fn new(memory: u64) -> Window {
        let limit = usize::try_from(memory).unwrap_or(usize::MAX) / STRETCH;
        let limit = limit.max(FEWEST);
        Window { stretches: Vec::new(), places: HashMap::new(), limit, last: 0, now: 0, spare: Vec::new() }
    }

    /// The place of stretch `number` of `file`, if it is in memory.
    pub(crate) fn find(&mut self, file: u32, number: u64) -> Option<usize> {
        let is_last = self.stretches.get(self.last).is_some_and(|last| last.file == file && last.number == number);
        if !is_last {
            self.last = *self.places.get(&(file, number))?;
        }
        Some(self.last)
    }

    /// The place of the stretch that must leave before another comes, if so.
    pub(crate) fn crowded_out(&self) -> Option<usize> {
        if self.stretches.len() < self.limit {
            return None;
        }
        (0..self.stretches.len()).min_by_key(|place| self.stretches[*place].touched)
    }

    /// Brings a stretch into memory of which nothing is there yet; `length` bytes of it belong to the file.
    pub(crate) fn open(&mut self, file: u32, number: u64, length: usize) -> usize {
        debug_assert!(!self.places.contains_key(&(file, number)), "a stretch has one place");
        let bytes = self.spare.pop().unwrap_or_else(|| vec![0; STRETCH].into());
        self.last = self.stretches.len();
        self.places.insert((file, number), self.last);
        self.stretches.push(Stretch {
            file,
            number,
            bytes,
            length,
            complete: 0,
            finals: Vec::with_capacity(8),
            dirty: Vec::with_capacity(8),
            touched: self.now,
        });
        self.last
    }

    /// Puts `symbol` at `start` of a stretch, and zeros behind it to `size` bytes in all; `is_final` if nothing will be put
    /// over it.
    pub(crate) fn put(&mut self, place: usize, start: usize, symbol: &[u8], size: usize, is_final: bool) {
        self.now += 1;
        let stretch = &mut self.stretches[place];
        let (content, filling) = stretch.bytes[start..start + size].split_at_mut(symbol.len());
        content.copy_from_slice(symbol);
        filling.fill(0);
        stretch.touched = self.now;
        let (start, end) = (start as u32, (start + size) as u32);
        if is_final {
            stretch.complete += size;
            append(&mut stretch.finals, start, end);
        }
        append(&mut stretch.dirty, start, end);
    }

    /// Calls `take` with all that got its final values, from the first byte to the last: where in the file it is, and bytes that follow each
    /// other.
    pub(crate) fn finals(&mut self, place: usize, mut take: impl FnMut(u64, &[u8])) {
        let stretch = &mut self.stretches[place];
        stretch.finals.sort_unstable();
        for (start, end) in joined(&stretch.finals) {
            take(stretch.number * STRETCH as u64 + u64::from(start), &stretch.bytes[start as usize..end as usize]);
        }
    }

    /// Which file the stretch at `place` is of, and which of its stretches it is.
    pub(crate) fn identity(&self, place: usize) -> (u32, u64) {
        (self.stretches[place].file, self.stretches[place].number)
    }

    /// Whether all bytes of a stretch have their final values.
    pub(crate) fn is_complete(&self, place: usize) -> bool {
        let stretch = &self.stretches[place];
        stretch.complete == stretch.length
    }

    /// The places with something that has not been written.
    pub(crate) fn dirty(&self) -> Vec<usize> {
        (0..self.stretches.len()).filter(|place| !self.stretches[*place].dirty.is_empty()).collect()
    }

    /// Has `write` write what has not been written of a stretch, in few pieces: bytes and where in the file they belong.
    /// What fails is still to be written.
    pub(crate) fn write(
        &mut self,
        place: usize,
        mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let stretch = &mut self.stretches[place];
        let offset = stretch.number * STRETCH as u64;
        stretch.dirty.sort_unstable();
        for (start, end) in joined(&stretch.dirty) {
            write(&stretch.bytes[start as usize..end as usize], offset + u64::from(start))?;
        }
        stretch.dirty.clear();
        Ok(())
    }

    /// Lets a stretch go. What has not been written of it is lost.
    pub(crate) fn close(&mut self, place: usize) {
        let gone = self.stretches.swap_remove(place);
        self.places.remove(&(gone.file, gone.number));
        if let Some(moved) = self.stretches.get(place) {
            self.places.insert((moved.file, moved.number), place);
        }
        self.spare.push(gone.bytes);
    }

    /// Lets all stretches of `file` go.
    pub(crate) fn forget(&mut self, file: u32) {
        for place in (0..self.stretches.len()).rev() {
            if self.stretches[place].file == file {
                self.close(place);
            }
        }
    }

    /// Lets those stretches of `file` go.
    pub(crate) fn forget_stretches(&mut self, file: u32, numbers: std::ops::Range<u64>) {
        for number in numbers {
            if let Some(place) = self.places.get(&(file, number)) {
                self.close(*place);
            }
        }
    }

    /// Lets everything go.
    pub(crate) fn clear(&mut self) {
        while !self.stretches.is_empty() {
            self.close(self.stretches.len() - 1);
        }
    }
}

fn append(ranges: &mut Vec<(u32, u32)>, start: u32, end: u32) {
    match ranges.last_mut() {
        Some(last) if last.1 == start => last.1 = end,
        _ => ranges.push((start, end)),
    }
}

/// Sorted ranges, those that touch as one.
fn joined(ranges: &[(u32, u32)]) -> impl Iterator<Item = (u32, u32)> {
    let touching = ranges.chunk_by(|one, next| one.1 >= next.0);
    touching.map(|ranges| (ranges[0].0, ranges.iter().map(|range| range.1).max().unwrap_or(0)))
}

/// Symbols may lie in two stretches, and a block in several.
const FEWEST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(window: &mut Window, place: usize) -> Vec<(u64, usize)> {
        let mut pieces = Vec::new();
        let write = |bytes: &[u8], offset| {
            pieces.push((offset, bytes.len()));
            Ok(())
        };
        window.write(place, write).expect("a vector takes all");
        pieces
    }

    #[test]
    fn neighbours_are_written_at_one_go_and_once() {
        let mut window = Window::new(0);
        let place = window.open(3, 2, STRETCH);
        for start in [1400, 4200, 0, 2800, 9800] {
            window.put(place, start, &[7; 1400], 1400, true);
        }
        let offset = 2 * STRETCH as u64;
        assert_eq!(written(&mut window, place), [(offset, 5600), (offset + 9800, 1400)]);
        assert_eq!(written(&mut window, place), []);
    }

    #[test]
    fn what_fails_to_be_written_is_written_the_next_time() {
        let mut window = Window::new(0);
        let place = window.open(0, 0, STRETCH);
        window.put(place, 100, &[1; 50], 60, false);
        assert!(window.write(place, |_, _| Err(io::ErrorKind::StorageFull.into())).is_err());
        assert_eq!(written(&mut window, place), [(100, 60)]);
    }

    #[test]
    fn the_stretch_that_was_left_alone_longest_is_crowded_out() {
        let mut window = Window::new(0);
        for number in 0..FEWEST as u64 {
            assert_eq!(window.crowded_out(), None);
            let place = window.open(0, number, STRETCH);
            window.put(place, 0, &[1], 1, true);
        }
        let first = window.find(0, 0).expect("is here");
        window.put(first, 1, &[1], 1, true);
        let oldest = window.crowded_out().expect("it is full");
        assert_eq!(window.identity(oldest), (0, 1));
    }

    proptest! {
        #[test]
        fn a_stretch_is_complete_when_every_byte_was_final_once(order in Just((0..32usize).collect::<Vec<_>>()).prop_shuffle()) {
            let mut window = Window::new(0);
            let place = window.open(0, 0, 3200);
            let content: Vec<u8> = (0..3200).map(|i| (i / 7) as u8).collect();
            for (done, symbol) in order.iter().enumerate() {
                prop_assert!(!window.is_complete(place), "after {done}");
                window.put(place, symbol * 100, &content[symbol * 100..][..100], 100, true);
                let (mut finals, mut next) = (0, 0);
                window.finals(place, |at, bytes| {
                    assert!(at >= next && bytes == &content[at as usize..][..bytes.len()]);
                    (finals, next) = (finals + bytes.len(), at + bytes.len() as u64 + 1);
                });
                prop_assert_eq!(finals, (done + 1) * 100);
            }
            prop_assert!(window.is_complete(place));
        }

        #[test]
        fn stretches_are_found_wherever_others_left(gone in proptest::collection::vec(0u64..8, 0..8)) {
            let mut window = Window::new(0);
            (0..8).for_each(|number| { window.open(1, number, STRETCH); });
            let mut here: Vec<u64> = (0..8).collect();
            for number in gone {
                if let Some(place) = window.find(1, number) {
                    window.close(place);
                    here.retain(|one| *one != number);
                }
                for number in 0..8 {
                    let found = window.find(1, number).map(|place| window.identity(place));
                    prop_assert_eq!(found, here.contains(&number).then_some((1, number)));
                }
            }
        }
    }
}
