//! Loss recovery as ns-2.35's `Agent/TCP/Sack1` has it, at its defaults: Sack1.
//!
//! RFC 6675, in `selective`, differs in four things. The pipe is counted here from acknowledgements, whatever they say, and not
//! from what is known to be lost. Every hole below a sacked segment is filled. Outside of recovery the scoreboard holds what
//! duplicate acknowledgements said since the last new one. After a time-out all is sent again.

use weir_units::Time;

use super::Segment;
use super::classic::{Classic, Phase};
use super::cumulative::DUP_THRESH;

impl Classic {
    pub(super) fn receive_sack1(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        if segment.seq < self.una {
            return;
        }
        let is_new = segment.seq > self.una;
        let was_recovering = self.phase == Phase::Recovery;
        match self.phase {
            Phase::Recovery => self.recover_sack1(now, segment, is_new),
            _ if is_new => self.new_ack_sack1(now, segment),
            Phase::Open => self.duplicate_ack_sack1(now, segment, out),
            Phase::Loss => {}
        }
        if was_recovering || self.dup_acks == 0 {
            self.send_allowed(now, u64::MAX, out);
        }
    }

    fn new_ack_sack1(&mut self, now: Time, segment: &Segment) {
        self.phase = Phase::Open;
        self.forget_sack1(now, segment);
        if !(segment.ecn_echo && self.config.ecn) {
            self.window.grow();
        }
    }

    /// Only an acknowledgement that sacks something new counts. The third begins a recovery with the first hole, which is not
    /// added to the pipe.
    fn duplicate_ack_sack1(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        if !self.update_sack1(segment) {
            return;
        }
        self.dup_acks += 1;
        if self.dup_acks < DUP_THRESH {
            self.limited_transmit(now, out);
        } else if self.dup_acks == DUP_THRESH && self.may_recover() {
            let pipe = (self.sent_below - self.una) as i64 - DUP_THRESH as i64;
            self.begin_recovery(now);
            self.control.reduce(&mut self.window);
            self.scoreboard.repair(self.una);
            self.transmit(now, self.una, out);
            self.pipe = pipe;
        }
    }

    /// Every acknowledgement takes one out of the pipe, a partial one two: the hole and its repair.
    fn recover_sack1(&mut self, now: Time, segment: &Segment, is_new: bool) {
        self.pipe -= 1;
        if self.recover.is_none_or(|recover| segment.seq >= recover) {
            self.phase = Phase::Open;
            self.recover = None;
            self.forget_sack1(now, segment);
            return;
        }
        if is_new {
            self.pipe -= 1;
            self.advance(now, segment);
            self.scoreboard.acknowledge(self.una);
        }
        self.update_sack1(segment);
    }

    fn forget_sack1(&mut self, now: Time, segment: &Segment) {
        self.dup_acks = 0;
        self.advance(now, segment);
        self.scoreboard.acknowledge(self.una);
        self.scoreboard.clear();
    }

    /// Whether the blocks of an acknowledgement say anything new.
    fn update_sack1(&mut self, segment: &Segment) -> bool {
        let mut news = false;
        for (start, end) in segment.sack_blocks() {
            news |= self.scoreboard.sack(start, end.min(self.sent_below));
        }
        news
    }

    /// The lowest hole, or the next segment, if the pipe or outside of recovery the window leaves room for it. ns-2 sends no
    /// hole before the first loss, and nothing else while there is one.
    pub(super) fn next_sack1(&self) -> Option<u64> {
        let recovering = self.phase == Phase::Recovery;
        let window_open = self.next - self.una < self.allowed();
        let open = if recovering { self.pipe < self.window.cwnd as i64 } else { window_open };
        if !open || self.is_idle() {
            return None;
        }
        if let Some(hole) = self.scoreboard.any_hole() {
            return self.recover.map(|_| hole);
        }
        ((recovering || window_open) && self.has_new_data()).then_some(self.next)
    }

    /// `seq` has been sent.
    pub(super) fn sent_sack1(&mut self, seq: u64) {
        self.pipe += i64::from(self.phase == Phase::Recovery);
        if self.scoreboard.any_hole() == Some(seq) {
            self.scoreboard.repair(seq);
        }
        self.next = self.next.max(seq + 1);
    }

    /// The timer has run out.
    pub(super) fn go_back_sack1(&mut self) {
        self.scoreboard.clear();
        self.next = self.una;
    }

    /// ns-2's pipe in recovery, else all that is sent and not acknowledged.
    pub(super) fn outstanding_sack1(&self) -> u64 {
        if self.phase == Phase::Recovery { self.pipe.max(0) as u64 } else { self.next - self.una }
    }
}
