//! What the sender knows of each outstanding segment (RFC 6675): sacked, lost, sent again.
//!
//! Two marks and a set say it all. Every segment below the *loss mark* that has not been sacked is lost; every such segment
//! below the *repair mark* has been sent again, since holes are filled in order. Counts are kept as the marks move, so that
//! the pipe is an addition.

use super::bit_ring::BitRing;

/// Segments that must be sacked above a hole before it counts as lost (`DupThresh`).
pub(super) const DUP_THRESH: u64 = 3;

/// The scoreboard. It covers what is outstanding: from the cumulative acknowledgement to the highest segment sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    una: u64,
    sacked: BitRing,
    sacked_count: u64,
    /// The loss mark.
    lost_below: u64,
    lost: u64,
    /// The repair mark (one past `HighRxt`).
    repaired_below: u64,
    /// Sent again and not acknowledged: from `una` to the repair mark.
    repaired: u64,
}

impl Scoreboard {
    /// `Update()` for the cumulative acknowledgement `ack`.
    #[inline]
    pub(super) fn acknowledge(&mut self, ack: u64) {
        if self.sacked_count > 0 || self.lost_below > self.una || self.repaired_below > self.una {
            self.lost -= self.unsacked(self.una, ack.min(self.lost_below));
            self.repaired -= self.unsacked(self.una, ack.min(self.repaired_below));
            self.sacked_count -= self.sacked.count(self.una, ack);
        }
        self.una = ack;
        self.sacked.advance(ack);
    }

    /// `Update()` for the block `start..end` of an acknowledgement. Gives back whether it says anything new.
    #[inline]
    pub(super) fn sack(&mut self, start: u64, end: u64) -> bool {
        let start = start.max(self.una);
        if start >= end {
            return false;
        }
        let absent = self.unsacked(start, end);
        if absent == 0 {
            return false;
        }
        self.lost -= self.unsacked(start, end.min(self.lost_below));
        self.repaired -= self.unsacked(start, end.min(self.repaired_below));
        self.sacked.insert(start, end, |_, _| {});
        self.sacked_count += absent;
        true
    }

    /// Moves the loss mark to the third highest sacked segment (`IsLost()`).
    pub(super) fn find_losses(&mut self) {
        if self.sacked_count < DUP_THRESH {
            return;
        }
        let mut mark = self.sacked.top();
        for _ in 0..DUP_THRESH {
            mark = self.sacked.last_present(mark).expect("as many are sacked as was asked for above");
        }
        self.move_loss_mark(mark);
    }

    /// Counts what is below `seq` as lost, and nothing as sent again: the timer has run out. What was sacked is forgotten, since
    /// the sink may have thrown it away (RFC 2018 §8).
    pub(super) fn lose_all(&mut self, seq: u64) {
        self.clear();
        self.move_loss_mark(seq);
    }

    /// Forgets what was sacked, lost and sent again.
    pub(super) fn clear(&mut self) {
        self.sacked.clear();
        self.sacked_count = 0;
        (self.lost, self.repaired) = (0, 0);
        (self.lost_below, self.repaired_below) = (self.una, self.una);
    }

    /// The lowest hole that is lost and has not been sent again (`NextSeg()`, rule 1).
    #[inline]
    pub(super) fn lost_hole(&self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        self.hole_below(self.lost_below)
    }

    /// The lowest hole below a sacked segment that has not been sent again, lost or not (rule 3).
    pub(super) fn any_hole(&self) -> Option<u64> {
        if self.sacked_count == 0 {
            return None;
        }
        self.hole_below(self.sacked.top())
    }

    #[inline]
    fn hole_below(&self, end: u64) -> Option<u64> {
        let hole = self.sacked.first_absent(self.repaired_below.max(self.una));
        (hole < end).then_some(hole)
    }

    /// The hole `seq`, the lowest that had not been, has been sent again.
    pub(super) fn repair(&mut self, seq: u64) {
        self.repaired_below = seq + 1;
        self.repaired += 1;
    }

    /// Whether the first outstanding segment is lost.
    #[inline]
    pub(super) fn is_first_lost(&self) -> bool {
        self.lost_below > self.una
    }

    /// Whether `seq` is sacked.
    pub(super) fn is_sacked(&self, seq: u64) -> bool {
        self.sacked.contains(seq)
    }

    /// Segments that are on the way, if what was sent reaches to `next` (`SetPipe()`).
    #[inline]
    pub(super) fn pipe(&self, next: u64) -> u64 {
        next - self.una + self.repaired - self.sacked_count - self.lost
    }

    fn move_loss_mark(&mut self, mark: u64) {
        let from = self.lost_below.max(self.una);
        if mark > from {
            self.lost += self.unsacked(from, mark);
            self.lost_below = mark;
        }
    }

    fn unsacked(&self, start: u64, end: u64) -> u64 {
        if start >= end { 0 } else { end - start - self.sacked.count(start, end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hole_is_lost_when_three_above_it_are_sacked() {
        let mut board = Scoreboard::default();
        for (seq, lost) in [(1, false), (3, false), (4, true)] {
            board.sack(seq, seq + 1);
            board.find_losses();
            assert_eq!(board.is_first_lost(), lost, "after {seq}");
        }
        assert_eq!(board.lost_hole(), Some(0));
        assert_eq!(board.pipe(10), 10 - 3 - 1, "2 is a hole, and not lost: only two above it are sacked");
        board.repair(0);
        assert_eq!(board.pipe(10), 10 - 3);
        assert_eq!((board.lost_hole(), board.any_hole()), (None, Some(2)));
    }

    #[test]
    fn after_a_timeout_all_is_lost_and_repaired_in_order() {
        let mut board = Scoreboard::default();
        board.sack(5, 9);
        board.lose_all(10);
        assert_eq!((board.pipe(10), board.lost_hole()), (0, Some(0)));
        board.repair(0);
        board.acknowledge(5);
        assert_eq!((board.pipe(10), board.lost_hole()), (0, Some(5)), "what was sacked is forgotten");
    }

    /// A scoreboard with a flag for each segment, as the RFC describes it.
    #[derive(Default)]
    struct Shadow {
        una: u64,
        sacked: Vec<bool>,
        repaired: Vec<bool>,
    }

    impl Shadow {
        fn is_lost(&self, seq: u64) -> bool {
            self.sacked[seq as usize + 1..].iter().filter(|sacked| **sacked).count() as u64 >= DUP_THRESH
        }

        fn pipe(&self) -> u64 {
            (self.una..self.sacked.len() as u64)
                .filter(|seq| !self.sacked[*seq as usize])
                .map(|seq| u64::from(!self.is_lost(seq)) + u64::from(self.repaired[seq as usize]))
                .sum()
        }

        fn lost_hole(&self) -> Option<u64> {
            (self.una..self.sacked.len() as u64)
                .find(|seq| !self.sacked[*seq as usize] && !self.repaired[*seq as usize] && self.is_lost(*seq))
        }
    }

    proptest! {
        #[test]
        fn pipe_and_next_hole_are_those_of_the_rfc(
            steps in proptest::collection::vec((0u64..200, 1u64..5, 0u8..4), 1..80),
        ) {
            const SENT: u64 = 200;
            let mut board = Scoreboard::default();
            let mut shadow = Shadow { una: 0, sacked: vec![false; 200], repaired: vec![false; 200] };
            for (seq, length, action) in steps {
                match action {
                    0 | 1 => {
                        let (start, end) = (seq, (seq + length).min(SENT));
                        board.sack(start, end);
                        (start.max(shadow.una)..end).for_each(|seq| shadow.sacked[seq as usize] = true);
                    }
                    2 => if let Some(hole) = board.lost_hole() {
                        prop_assert_eq!(Some(hole), shadow.lost_hole());
                        board.repair(hole);
                        shadow.repaired[hole as usize] = true;
                    },
                    _ => {
                        let ack = (shadow.una + length).min(SENT);
                        board.acknowledge(ack);
                        shadow.una = ack;
                        (0..ack as usize).for_each(|seq| shadow.sacked[seq] = true);
                    }
                }
                board.find_losses();
                // The loss mark does not go back when what is above it is acknowledged, and neither does a loss.
                if board.sacked_count >= DUP_THRESH {
                    prop_assert_eq!(board.pipe(SENT), shadow.pipe());
                    prop_assert_eq!(board.lost_hole(), shadow.lost_hole());
                }
            }
        }
    }
}
