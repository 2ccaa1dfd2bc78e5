//! Loss recovery by selective acknowledgements (RFC 6675): Sack. ns-2's own rules are in `sack1`.

use weir_units::Time;

use super::Segment;
use super::classic::{Classic, Phase};

impl Classic {
    #[inline]
    pub(super) fn receive_selective(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        if segment.seq < self.una {
            return;
        }
        let is_new = segment.seq > self.una;
        self.update_scoreboard(segment, is_new);
        if is_new {
            self.advance(now, segment);
            if self.phase != Phase::Open && self.recover.is_none_or(|recover| self.una >= recover) {
                self.phase = Phase::Open;
            }
        }
        if self.phase == Phase::Open && self.scoreboard.is_first_lost() && self.may_recover() {
            self.enter_recovery(now, out);
        }
        let marked = segment.ecn_echo && self.config.ecn;
        if is_new && self.phase != Phase::Recovery && !marked {
            self.window.grow();
        }
        self.send_allowed(now, u64::MAX, out);
    }

    /// `Update()` (RFC 6675 §4).
    #[inline]
    fn update_scoreboard(&mut self, segment: &Segment, is_new: bool) {
        if is_new {
            self.scoreboard.acknowledge(segment.seq);
        }
        if segment.has_sack() {
            for (start, end) in segment.sack_blocks() {
                self.scoreboard.sack(start, end.min(self.sent_below));
            }
            self.scoreboard.find_losses();
        }
    }

    /// RFC 6675 §5 step 4: one decrease a window of data, and the first hole at once.
    fn enter_recovery(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.begin_recovery(now);
        self.rescued = None;
        self.control.reduce(&mut self.window);
        // A loss that was found and mended in the last recovery is not sent once more, though it begins a new one.
        if let Some(hole) = self.scoreboard.lost_hole() {
            self.transmit(now, hole, out);
        }
    }

    /// `NextSeg()` (RFC 6675 §4), if the pipe leaves room for it (§5 step C).
    #[inline]
    pub(super) fn next_selective(&self) -> Option<u64> {
        if self.scoreboard.pipe(self.next) >= self.allowed() {
            return None;
        }
        if let Some(hole) = self.scoreboard.lost_hole() {
            return Some(hole);
        }
        if self.has_new_data() {
            return Some(self.next);
        }
        if self.phase == Phase::Recovery { self.scoreboard.any_hole().or_else(|| self.rescue()) } else { None }
    }

    /// Rule 4: the highest segment outstanding, once a recovery, so that a lost tail is found without the timer.
    fn rescue(&self) -> Option<u64> {
        let highest = self.next.checked_sub(1).filter(|highest| *highest >= self.una)?;
        let may = self.rescued.is_none_or(|rescued| self.una > rescued) && !self.scoreboard.is_sacked(highest);
        may.then_some(highest)
    }

    /// `seq` has been sent again.
    pub(super) fn repaired(&mut self, seq: u64) {
        if self.scoreboard.any_hole().or(self.scoreboard.lost_hole()) == Some(seq) {
            self.scoreboard.repair(seq);
        } else {
            self.rescued = self.recover;
        }
    }
}
