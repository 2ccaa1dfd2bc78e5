//! Which numbers of the stream have come.

use std::collections::VecDeque;
use std::ops::Range;

/// How many numbers from the first missing one on a party keeps account of, and payloads for.
pub const WINDOW: u64 = 256;

/// The numbers that have come, in any order.
#[derive(Debug)]
pub(super) struct Arrivals {
    next: u64,
    /// Whether `next` and the numbers behind it have come; `next` has not.
    ahead: VecDeque<bool>,
    /// Missing numbers below this have been asked for.
    asked_below: u64,
}

impl Arrivals {
    pub(super) fn new() -> Arrivals {
        Arrivals { next: 0, ahead: VecDeque::from(vec![false; WINDOW as usize]), asked_below: 0 }
    }

    /// The first number that has not come.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// A number comes. Whether it is new; one that is too far ahead does not count as come.
    pub(super) fn note(&mut self, number: u64) -> bool {
        let place = number.checked_sub(self.next).and_then(|place| usize::try_from(place).ok());
        let Some(has_come) = place.and_then(|place| self.ahead.get_mut(place)) else { return false };
        let is_new = !std::mem::replace(has_come, true);
        while self.ahead[0] {
            self.step();
        }
        is_new
    }

    /// Lower numbers are not expected any more.
    pub(super) fn skip_to(&mut self, next: u64) {
        for _ in self.next..next.min(self.next + WINDOW) {
            self.step();
        }
        self.next = self.next.max(next);
        while self.ahead[0] {
            self.step();
        }
    }

    fn step(&mut self) {
        self.ahead.rotate_left(1);
        self.ahead[WINDOW as usize - 1] = false;
        self.next += 1;
    }

    pub(super) fn has(&self, number: u64) -> bool {
        let place = number.checked_sub(self.next).map(|place| usize::try_from(place).unwrap_or(usize::MAX));
        place.is_none_or(|place| self.ahead.get(place).is_some_and(|has_come| *has_come))
    }

    /// The first missing numbers that a later one has overtaken.
    pub(super) fn hole(&self) -> Option<Range<u64>> {
        let len = self.ahead.iter().position(|has_come| *has_come)?;
        Some(self.next..self.next + len as u64)
    }

    /// The first hole, if it has not been asked for.
    pub(super) fn new_hole(&mut self) -> Option<Range<u64>> {
        let hole = self.hole().filter(|hole| hole.end > self.asked_below)?;
        self.asked_below = hole.end;
        Some(hole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_shows_when_a_later_number_comes_and_closes_with_its_last_number() {
        let mut arrivals = Arrivals::new();
        assert!(arrivals.note(0) && !arrivals.note(0), "a number is new once");
        assert!(arrivals.note(3) && arrivals.hole() == Some(1..3));
        assert_eq!((arrivals.new_hole(), arrivals.new_hole()), (Some(1..3), None), "it is asked for once");
        assert!(arrivals.note(1) && arrivals.new_hole().is_none(), "what is left of it has been asked for");
        assert!(arrivals.note(2));
        assert_eq!((arrivals.next(), arrivals.hole()), (4, None));
    }

    #[test]
    fn what_is_too_far_ahead_has_not_come() {
        let mut arrivals = Arrivals::new();
        assert!(!arrivals.note(WINDOW) && arrivals.note(WINDOW - 1));
        assert_eq!([0, WINDOW - 1, WINDOW, u64::MAX].map(|number| arrivals.has(number)), [false, true, false, false]);
    }

    #[test]
    fn numbers_that_are_skipped_are_not_missing() {
        let mut arrivals = Arrivals::new();
        arrivals.note(12);
        arrivals.skip_to(10);
        assert_eq!(arrivals.hole(), Some(10..12));
        arrivals.skip_to(12);
        assert_eq!((arrivals.next(), arrivals.hole()), (13, None));
        arrivals.skip_to(1 << 50);
        assert_eq!(arrivals.next(), 1 << 50);
    }
}
