//! What a Linux sender sends, and when: window, batches, pacing.

use std::time::Duration;

use weir_units::Time;

use super::control::Control;
use super::{Linux, Phase, Timer};
use crate::tcp::Segment;

impl Linux {
    /// Sends what the window allows: now, or after the overhead's delay.
    pub(super) fn push(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if !self.started {
            return;
        }
        let Some(random) = &mut self.overhead else {
            self.write(now, out);
            return;
        };
        if self.send_at.is_none() && self.board.next < self.supplied && self.board.in_flight() < self.window.cwnd {
            self.send_at = Some(now + self.config.overhead.mul_f64(random.unit()));
        }
    }

    /// Sends new data, in batches as a host hands them to its interface (`tcp_write_xmit()`).
    pub(super) fn write(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        let mut sent = 0;
        let mut is_limited = false;
        let mut known = None;
        while let Some(left) = self.unsent() {
            if self.is_paced_until(now) {
                break;
            }
            let in_flight = self.board.in_flight();
            let room = self.window.cwnd.saturating_sub(in_flight).min((self.window.cwnd / 2).max(1));
            if room == 0 {
                is_limited = true;
                break;
            }
            let batch = *known.get_or_insert_with(|| self.batch());
            let size = room.min(batch).min(left);
            if self.waits_for_more(now, room, batch, left) {
                is_limited = true;
                break;
            }
            for _ in 0..size {
                self.transmit(now, self.board.next, out);
            }
            self.pace(now, size);
            sent += size;
        }
        is_limited |= self.board.in_flight() >= self.window.cwnd;
        if sent > 0 {
            self.schedule_probe(now, false);
        }
        if sent > 0 || is_limited {
            self.validate(is_limited);
        }
        if self.unsent().is_none() && !is_limited && self.board.next >= self.supplied {
            // The application is the limit.
            self.rate.app_limited = (self.rate.delivered + self.board.in_flight()).max(1);
        }
    }

    /// Segments that the application and the receiver's window have room for, if any.
    fn unsent(&self) -> Option<u64> {
        let window = self.window.limit.saturating_sub(self.board.outstanding());
        Some(self.supplied.saturating_sub(self.board.next).min(window)).filter(|left| *left > 0)
    }

    /// Segments that are handed over at once: what the pacing rate lets out in a millisecond, more where the round trip is below
    /// 16 ms (`tcp_tso_autosize()`).
    fn batch(&self) -> u64 {
        let rate = self.pacing_rate();
        let mut bytes = rate * self.window.segment_bytes / 1024.0;
        let shift = self.rtt.min_rtt().as_micros() >> 9;
        if shift < 32 {
            bytes += LARGEST_BATCH / (1u64 << shift) as f64;
        }
        let least = if self.control.is_bbr() && rate * self.window.segment_bytes < 150_000.0 { 1 } else { 2 };
        ((bytes.min(LARGEST_BATCH) / self.window.segment_bytes) as u64).max(least)
    }

    /// Segments per second that a pacer lets out, whether there is one or not; zero while it is not known.
    fn pacing_rate(&self) -> f64 {
        match &self.control {
            Control::Bbr(bbr) => bbr.rate(self.window.cwnd),
            _ => self.window.rate,
        }
    }

    fn is_paced(&self) -> bool {
        self.config.paced || self.control.is_bbr()
    }

    /// Whether a larger batch is worth waiting for: an acknowledgement is near, and less than a third of the window is open
    /// (`tcp_tso_should_defer()`).
    fn waits_for_more(&self, now: Time, room: u64, batch: u64, left: u64) -> bool {
        if matches!(self.phase, Phase::Recovery | Phase::Loss) || self.board.outstanding() == 0 {
            return false;
        }
        if now.since(self.next_send) > Duration::from_millis(1) {
            return false;
        }
        if room >= batch || left <= room || room >= self.window.cwnd / 3 {
            return false;
        }
        let srtt = self.rtt.srtt();
        let head = now.since(self.board.head_sent());
        srtt.saturating_sub(head) <= srtt / 2
    }

    /// Whether the pacer says no. It calls again.
    fn is_paced_until(&mut self, now: Time) -> bool {
        let waits = self.is_paced() && self.next_send > now;
        if waits {
            self.send_at = Some(self.next_send);
        }
        waits
    }

    /// A batch is on its way: the next one follows at the pacing rate, a little sooner if this one was late.
    fn pace(&mut self, now: Time, segments: u64) {
        let late = now.since(self.next_send);
        self.next_send = self.next_send.max(now);
        let rate = self.pacing_rate();
        if self.is_paced() && rate > 0.0 && self.counters.sent > UNPACED {
            let secs = segments as f64 / rate;
            let span = Duration::from_nanos((secs * 1e9) as u64);
            self.next_send += span - late.min(span / 2);
        }
    }

    /// Sends repairs that the window has room for (`tcp_xmit_retransmit_queue()`).
    pub(super) fn repair(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        while self.board.in_flight() < self.window.cwnd {
            let Some(hole) = self.board.lost_hole() else { return };
            if self.is_paced_until(now) {
                return;
            }
            self.resend(now, hole, out);
            if hole == self.board.una && self.timer.is_none_or(|(timer, _)| timer != Timer::Reordering) {
                self.set_timer(Timer::Retransmission, now + self.rtt.rto());
            }
        }
    }

    /// Sends a segment once more.
    pub(super) fn resend(&mut self, now: Time, seq: u64, out: &mut impl FnMut(Segment)) {
        self.transmit(now, seq, out);
        self.pace(now, 1);
    }

    /// Sends a segment, whatever the window says.
    pub(super) fn transmit(&mut self, now: Time, seq: u64, out: &mut impl FnMut(Segment)) {
        let again = seq < self.board.next;
        let was_idle = self.board.outstanding() == 0;
        if was_idle && self.rate.app_limited > 0 {
            let view = self.view(now);
            if let Control::Bbr(bbr) = &mut self.control {
                bbr.restart_from_idle(&view, &mut self.window.cwnd);
            }
        }
        let record = self.rate.record(now, self.board.outstanding());
        self.board.sent(seq, record, self.rate.app_limited > 0);
        self.counters.sent += 1;
        self.counters.retransmitted += u64::from(again);
        self.reduction.sent += u64::from(self.is_reducing());
        if !again && (was_idle || self.timer.is_none_or(|(timer, _)| timer == Timer::Probe)) {
            self.rearm(now);
        }
        self.last_sent = now;
        let mut segment = Segment::data(seq, now);
        if self.config.ecn {
            // Neither a segment sent again may be marked (RFC 3168 §6.1.5), nor may it announce.
            segment.ecn_capable = !again;
            segment.window_reduced = !again && std::mem::take(&mut self.announce_reduction);
        }
        out(segment);
    }

    /// Remembers whether the window was the limit in this round trip: else it does not grow (RFC 7661).
    fn validate(&mut self, is_limited: bool) {
        let outstanding = self.board.outstanding();
        let is_more = !self.window_limited && outstanding > self.most_outstanding;
        if self.board.una >= self.round_ends || is_limited || is_more {
            self.window_limited = is_limited;
            self.most_outstanding = outstanding;
            self.round_ends = self.board.next;
        }
    }

    /// Whether the window may grow.
    pub(super) fn is_window_limited(&self) -> bool {
        if self.window.cwnd < self.window.ssthresh {
            return self.window.cwnd < 2 * self.most_outstanding;
        }
        self.window_limited
    }
}

/// A host's largest batch, in bytes.
const LARGEST_BATCH: f64 = 65_536.0;
/// The first segments of a connection are not paced.
const UNPACED: u64 = 10;
