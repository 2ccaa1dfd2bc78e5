//! Loss recovery by duplicate acknowledgements alone: Tahoe, Reno, NewReno, Vegas.

use weir_units::Time;

use super::classic::{Classic, Phase};
use super::control::Control;
use super::{Flavour, Segment};

/// Duplicate acknowledgements that tell a loss (RFC 5681 §3.2).
pub(super) const DUP_THRESH: u64 = 3;

/// Segments that one acknowledgement may release in NewReno's recovery, as in ns-2: the window opens at once where a
/// recovery began after others, and would send in a burst.
const RECOVERY_BURST: u64 = 2;

impl Classic {
    #[inline]
    pub(super) fn receive_cumulative(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        if segment.seq > self.una {
            self.new_ack(now, segment, out);
        } else if segment.seq == self.una {
            self.duplicate_ack(now, out);
        }
        if self.dup_acks == 0 {
            self.send_allowed(now, u64::MAX, out);
        } else if self.dup_acks >= DUP_THRESH || self.config.flavour == Flavour::Tahoe {
            let newreno = self.config.flavour == Flavour::NewReno;
            self.send_allowed(now, if newreno { RECOVERY_BURST } else { u64::MAX }, out);
        }
    }

    /// The segment that the window allows, if any.
    #[inline]
    pub(super) fn next_cumulative(&self) -> Option<u64> {
        (self.next < self.supplied && self.next - self.una < self.allowed()).then_some(self.next)
    }

    #[inline]
    fn new_ack(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        let before = self.una;
        if self.phase == Phase::Recovery {
            if self.config.flavour == Flavour::NewReno && self.recover.is_some_and(|recover| segment.seq < recover) {
                self.partial_ack(now, segment, out);
                return;
            }
            self.leave_recovery();
        } else if self.phase == Phase::Loss && self.recover.is_none_or(|recover| segment.seq >= recover) {
            self.phase = Phase::Open;
        }
        let duplicates = std::mem::take(&mut self.dup_acks);
        self.advance(now, segment);
        if let Control::Vegas(vegas) = &mut self.control {
            let again = vegas.acknowledged(now, &mut self.window, before..self.una, self.next, duplicates);
            if again && self.una < self.sent_below {
                self.dup_acks = DUP_THRESH;
                self.transmit(now, self.una, out);
            }
        } else if !(segment.ecn_echo && self.config.ecn) {
            self.window.grow();
        }
    }

    /// All that was outstanding at the loss is acknowledged, or, but for NewReno, any of it. The window is half of what it was, less
    /// what partial acknowledgements took, as in ns-2; the threshold would be half a segment less, 8 % at a loss of a fiftieth.
    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        self.inflation = 0;
    }

    /// Some of what was outstanding at the loss is acknowledged: the next hole is sent again at once, the window deflates
    /// by what is acknowledged and grows by one, and only the first such acknowledgement restarts the timer (RFC 6582 §3.2
    /// step 3, the "impatient" variant).
    fn partial_ack(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        let acknowledged = segment.seq - self.una;
        if self.inflation > acknowledged {
            self.inflation -= acknowledged - 1;
        } else {
            self.window.cwnd = (self.window.cwnd - (acknowledged - self.inflation) as f64).max(1.0);
            self.inflation = 1;
        }
        self.una = segment.seq;
        self.next = self.next.max(self.una);
        if !std::mem::replace(&mut self.partial, true) {
            self.restart_timer(now);
        }
        self.transmit(now, self.una, out);
    }

    fn duplicate_ack(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.dup_acks += 1;
        if let Control::Vegas(vegas) = &mut self.control {
            let tells_loss = vegas.is_overdue(now, self.una) || self.dup_acks == DUP_THRESH;
            if tells_loss && self.una < self.sent_below {
                if self.may_recover() || self.phase != Phase::Loss {
                    self.vegas_retransmit(now, out);
                }
            } else if self.dup_acks > DUP_THRESH {
                self.window.cwnd += 1.0;
            }
        } else if self.dup_acks == DUP_THRESH {
            if self.may_recover() && self.una < self.sent_below {
                self.fast_retransmit(now, out);
            }
        } else if self.dup_acks > DUP_THRESH {
            self.inflation += u64::from(self.phase == Phase::Recovery);
        } else {
            self.limited_transmit(now, out);
        }
    }

    /// A first or second duplicate acknowledgement lets out a new segment (RFC 3042).
    pub(super) fn limited_transmit(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if self.has_new_data() && self.next - self.una < self.window.cwnd as u64 + self.dup_acks {
            self.transmit(now, self.next, out);
        }
    }

    fn fast_retransmit(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.begin_recovery(now);
        if self.config.flavour == Flavour::Tahoe {
            self.phase = Phase::Loss;
            self.window.halve_threshold();
            self.window.cwnd = 1.0;
            self.next = self.una;
            return;
        }
        self.control.reduce(&mut self.window);
        self.inflation = DUP_THRESH;
        self.transmit(now, self.una, out);
    }

    /// Vegas sends again what is overdue by its own fine clock, and reduces only once for what was sent at one window.
    fn vegas_retransmit(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        let allowed = self.allowed();
        let Control::Vegas(vegas) = &mut self.control else { return };
        let first = vegas.retransmitting(now, &mut self.window, allowed, self.una, self.next, self.dup_acks);
        self.begin_recovery(now);
        self.rtt.back_off();
        self.rto_at = Some(self.rtt.timeout_from(now));
        if first {
            self.dup_acks = DUP_THRESH;
        }
        self.transmit(now, self.una, out);
    }
}
