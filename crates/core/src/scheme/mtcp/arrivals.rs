//! What has come to a member: everything below a number, and some of what follows.

use alloc::collections::VecDeque;

use weir_units::Seq;
use weir_wire::mtcp::MAX_REPORTED;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    start: Seq,
    /// Of the packets from `start` on. The first is missing.
    beyond: VecDeque<bool>,
}

impl Arrivals {
    /// The first number that has not come.
    pub(super) fn start(&self) -> Seq {
        self.start
    }

    /// The number after the last one that has come.
    pub(super) fn next(&self) -> Seq {
        Seq::new(self.start.value() + self.beyond.len() as u64)
    }

    /// Packet `number` has come. Whether that is news, and it is below `limit`.
    pub(super) fn note(&mut self, number: Seq, limit: Seq) -> bool {
        if number < self.start || number >= limit {
            return false;
        }
        let index = number.since(self.start) as usize;
        if index >= self.beyond.len() {
            self.beyond.resize(index + 1, false);
        }
        let is_news = !core::mem::replace(&mut self.beyond[index], true);
        self.advance();
        is_news
    }

    /// What is below `number` is not wanted.
    pub(super) fn begin_at(&mut self, number: Seq) {
        let skipped = number.since(self.start).min(self.beyond.len() as u64);
        self.beyond.drain(..skipped as usize);
        self.start = self.start.max(number);
        self.advance();
    }

    /// Whether a packet has come.
    pub(super) fn has(&self, number: Seq) -> bool {
        number < self.start || self.beyond.get(number.since(self.start) as usize).is_some_and(|has_come| *has_come)
    }

    fn advance(&mut self) {
        while self.beyond.front() == Some(&true) {
            self.beyond.pop_front();
            self.start = self.start.next();
        }
    }

    /// A bit for each of the packets from `start` on, and how many these are: up to the last that has come.
    pub(super) fn report(&self) -> (u64, u8) {
        let reported = self.beyond.len().min(usize::from(MAX_REPORTED));
        let bits = self.beyond.iter().take(reported).enumerate();
        (bits.fold(0, |all, (bit, has_come)| all | u64::from(*has_come) << bit), reported as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fig_1_a_member_that_has_151_153_and_155_reports_150_to_155() {
        let mut arrivals = Arrivals::default();
        let limit = Seq::new(1000);
        assert!((0..150).chain([151, 153, 155]).all(|number| arrivals.note(Seq::new(number), limit)));
        assert_eq!((arrivals.start(), arrivals.report()), (Seq::new(150), (0b10_1010, 6)));
        assert!(!arrivals.note(Seq::new(153), limit) && !arrivals.note(Seq::new(3), limit));
        assert!(!arrivals.note(limit, limit));
        assert!(arrivals.note(Seq::new(150), limit));
        assert_eq!((arrivals.start(), arrivals.report()), (Seq::new(152), (0b1010, 4)));
    }
}
