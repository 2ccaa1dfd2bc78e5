//! From Open to recovery and back (`tcp_fastretrans_alert()`), and proportional rate reduction (RFC 6937).

use weir_units::Time;

use super::{Linux, Phase, Timer};

/// A reduction of the window that is under way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reduction {
    /// It is over when all is acknowledged that was outstanding at its beginning.
    pub(super) ends: u64,
    prior_window: u64,
    /// Delivered and sent since.
    delivered: u64,
    pub(super) sent: u64,
}

impl Linux {
    /// Whether proportional rate reduction says what may be sent.
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Reducing)
    }

    /// An acknowledgement is not an ordinary one, or things are not ordinary. Whether repairs may be sent.
    pub(super) fn alert(&mut self, now: Time, marked: bool) -> bool {
        let is_over = self.board.una >= self.reduction.ends;
        match self.phase {
            Phase::Reducing if self.board.una > self.reduction.ends => {
                self.end_reduction();
                self.phase = Phase::Open;
            }
            Phase::Recovery if is_over => {
                self.end_reduction();
                self.phase = Phase::Open;
            }
            Phase::Loss if is_over => self.phase = Phase::Open,
            _ => {}
        }
        let repairing = self.board.repairing();
        self.detect_losses(now);
        match self.phase {
            Phase::Recovery => return true,
            // A repair that was lost begins another reduction.
            Phase::Loss if self.board.repairing() >= repairing => return true,
            _ => {}
        }
        if self.board.lost_out == 0 {
            if marked && self.phase == Phase::Open {
                self.counters.ecn_reductions += 1;
                self.begin_reduction();
                self.phase = Phase::Reducing;
            }
            return true;
        }
        self.enter_recovery();
        true
    }

    /// RACK, with its timer.
    pub(super) fn detect_losses(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            return;
        }
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let again = self.board.detect_losses(now, self.rtt.min_rtt(), self.rtt.srtt(), recovering);
        if let Some(at) = again {
            self.set_timer(Timer::Reordering, at + CLOCK_SLACK);
        }
    }

    pub(super) fn enter_recovery(&mut self) {
        self.counters.fast_retransmits += 1;
        if !self.is_reducing() {
            self.begin_reduction();
        }
        self.phase = Phase::Recovery;
    }

    pub(super) fn begin_reduction(&mut self) {
        self.reduction = Reduction { ends: self.board.next, prior_window: self.window.cwnd, delivered: 0, sent: 0 };
        self.probe = None;
        self.window.restart_count();
        self.window.ssthresh = self.control.threshold(&self.window);
        self.announce_reduction = true;
    }

    pub(super) fn end_reduction(&mut self) {
        if !self.control.is_bbr() {
            self.window.set(self.window.ssthresh);
        }
    }

    /// Proportional rate reduction: what is sent is to what is delivered as the new window is to the old; below the new window, no
    /// more than slow start would (RFC 6937 §3.1, with its reduction bound).
    pub(super) fn reduce(&mut self, acked: u64, lost: u64, advanced: bool) {
        if acked == 0 || self.reduction.prior_window == 0 {
            return;
        }
        self.reduction.delivered += acked;
        let Reduction { prior_window, delivered, sent, .. } = self.reduction;
        let in_flight = self.board.in_flight();
        let ssthresh = self.window.ssthresh;
        let mut may = if in_flight > ssthresh {
            (ssthresh * delivered).div_ceil(prior_window).saturating_sub(sent)
        } else {
            let more = delivered.saturating_sub(sent).max(acked) + u64::from(advanced && lost == 0);
            more.min(ssthresh - in_flight)
        };
        // The first repair goes out at once.
        may = may.max(u64::from(sent == 0));
        self.window.set(in_flight + may);
    }

    /// Whether an acknowledgement up to `ack` says that a probe of the tail has mended a loss.
    pub(super) fn read_probe(&mut self, ack: u64, is_plain_duplicate: bool) {
        let Some((end, was_repair)) = self.probe else { return };
        if ack < end {
            return;
        }
        if !was_repair || (ack == end && is_plain_duplicate) {
            self.probe = None;
        } else if ack > end {
            self.begin_reduction();
            self.end_reduction();
            self.probe = None;
        }
    }
}

/// Timers of a clock of 250 Hz are late by up to two ticks.
const CLOCK_SLACK: std::time::Duration = std::time::Duration::from_millis(4);
