//! The one timer of a Linux sender: retransmission, tail-loss probe (RFC 8985 §7), or a segment that may have been overtaken.

use std::time::Duration;

use weir_units::Time;

use super::control::Control;
use super::{Linux, Phase};
use crate::tcp::Segment;

/// What the timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    Retransmission,
    Probe,
    Reordering,
}

impl Linux {
    pub(super) fn set_timer(&mut self, timer: Timer, at: Time) {
        self.timer = Some((timer, at));
    }

    /// The retransmission timer, from now on; if another timer was set, from when the head was sent.
    pub(super) fn rearm(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            self.timer = None;
            return;
        }
        let mut at = now + self.rtt.rto();
        if matches!(self.timer, Some((Timer::Probe | Timer::Reordering, _))) {
            at = (self.board.head_sent() + self.rtt.rto()).max(now + Duration::from_micros(1));
        }
        self.set_timer(Timer::Retransmission, at);
    }

    /// `TLP_calc_PTO()`: the tail is probed two round trips after it was sent. `advancing` if an acknowledgement of new data
    /// asks. Whether a probe is due some time.
    pub(super) fn schedule_probe(&mut self, now: Time, advancing: bool) -> bool {
        let may = matches!(self.phase, Phase::Open | Phase::Reducing) && self.board.outstanding() > 0;
        if !may || self.board.sacked_out > 0 {
            return false;
        }
        let mut span = INITIAL;
        if self.rtt.has_sample() {
            let slack = if self.board.outstanding() == 1 { self.config.timers.min_rto } else { LEAST };
            span = self.rtt.srtt() * 2 + slack;
        }
        let rto = if advancing { now + self.rtt.rto() } else { self.board.head_sent() + self.rtt.rto() };
        let at = (now + span).min(rto.max(now + Duration::from_micros(1)));
        self.set_timer(Timer::Probe, at);
        true
    }

    pub(super) fn on_timer(&mut self, now: Time, timer: Timer, out: &mut impl FnMut(Segment)) {
        match timer {
            Timer::Retransmission => self.time_out(now, out),
            Timer::Probe => self.probe_tail(now, out),
            Timer::Reordering => self.look_for_losses(now, out),
        }
    }

    /// A new segment if there is one, or the last once more.
    fn probe_tail(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if self.board.outstanding() > 0 && self.probe.is_none() {
            let next = self.board.next;
            let has_new = next < self.supplied && self.board.outstanding() < self.window.limit;
            if has_new {
                self.transmit(now, next, out);
            } else {
                self.transmit(now, next - 1, out);
            }
            self.probe = Some((self.board.next, !has_new));
        }
        self.timer = None;
        self.rearm(now);
    }

    /// A segment may have been overtaken for too long.
    fn look_for_losses(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        let lost = self.board.lost;
        self.detect_losses(now);
        if self.board.lost > lost {
            if self.phase != Phase::Recovery {
                self.enter_recovery();
                if !self.control.is_bbr() {
                    self.reduce(1, self.board.lost - lost, false);
                }
            }
            self.repair(now, out);
        }
        if self.timer.is_none() {
            self.rearm(now);
        }
    }

    /// The retransmission timer ran out.
    fn time_out(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if self.board.outstanding() == 0 {
            return;
        }
        self.counters.timeouts += 1;
        self.board.lose_all(now);
        if matches!(self.phase, Phase::Open) || self.board.una >= self.reduction.ends || self.phase == Phase::Reducing {
            self.window.ssthresh = self.control.threshold(&self.window);
        }
        self.window.set(self.board.in_flight() + 1);
        self.window.restart_count();
        self.phase = Phase::Loss;
        self.reduction.ends = self.board.next;
        self.probe = None;
        self.announce_reduction = true;
        let view = self.view(now);
        match &mut self.control {
            Control::Cubic(cubic) => cubic.forget(now, self.board.next),
            Control::Bbr(bbr) => bbr.timed_out(&view),
            Control::Reno => {}
        }
        self.resend(now, self.board.una, out);
        self.rtt.back_off();
        self.set_timer(Timer::Retransmission, now + self.rtt.rto());
    }
}

/// Without a round trip.
const INITIAL: Duration = Duration::from_secs(1);
/// Two ticks of a clock of 250 Hz.
const LEAST: Duration = Duration::from_millis(8);
