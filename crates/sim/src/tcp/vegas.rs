//! Vegas: congestion avoidance by the difference between the throughput expected and had (Brakmo and Peterson 1995).
//!
//! The rules are those of ns-2.35's agent, a descendant of the NetBSD code of Vegas's authors, less three of its slips, which
//! `docs/tcp.md` names.

use std::ops::Range;

use weir_units::Time;

use super::Config;
use super::control::Window;
use super::ring::Ring;

/// The window after a time-out.
const RESTART_WINDOW: f64 = 2.0;

/// When a segment was last sent, and how often.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    at: Time,
    times: u32,
}

/// State of Vegas. Times are in seconds.
#[derive(Debug, Clone)]
pub(super) struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    sent: Ring<Sent>,
    /// The round trip without queues: the least seen, or the last when one segment was on its way alone.
    base_rtt: Option<f64>,
    /// The round trip that is being judged: its first segment and when that was sent.
    round_begins: u64,
    round_began: Time,
    rtt_sum: f64,
    rtt_count: u32,
    /// By what each acknowledgement of this round trip raises the window.
    increment: f64,
    /// Slow start doubles in every other round trip.
    growing: bool,
    /// Fine-grained round trip, its deviation and the time-out that they give.
    srtt: f64,
    deviation: f64,
    overdue_after: f64,
    /// New acknowledgements after a retransmission that are looked at for another overdue segment.
    worried: u32,
    /// The window after the last reduction, without what duplicate acknowledgements add to it; `None` after a time-out.
    reduced: Option<f64>,
    reduced_at: Option<Time>,
}

impl Vegas {
    pub(super) fn new(config: &Config) -> Vegas {
        Vegas {
            alpha: f64::from(config.vegas_alpha),
            beta: f64::from(config.vegas_beta),
            gamma: f64::from(config.vegas_gamma),
            sent: Ring::default(),
            base_rtt: None,
            round_begins: 0,
            round_began: Time::ZERO,
            rtt_sum: 0.0,
            rtt_count: 0,
            increment: 0.0,
            growing: true,
            srtt: 0.0,
            deviation: 0.0,
            overdue_after: f64::INFINITY,
            worried: 0,
            reduced: None,
            reduced_at: None,
        }
    }

    #[inline]
    pub(super) fn sent(&mut self, now: Time, una: u64, seq: u64) {
        let entry = self.sent.entry(una.saturating_sub(1), seq);
        *entry = Sent { at: now, times: entry.times + 1 };
    }

    /// The segments of `acked` are acknowledged and `next` is sent next; `duplicates` is how many acknowledgements came
    /// twice before. Says whether the segment after them is overdue too and shall be sent again.
    #[inline]
    pub(super) fn acknowledged(
        &mut self,
        now: Time,
        window: &mut Window,
        acked: Range<u64>,
        next: u64,
        duplicates: u64,
    ) -> bool {
        if duplicates > super::cumulative::DUP_THRESH
            && let Some(reduced) = self.reduced.filter(|reduced| window.cwnd > *reduced)
        {
            window.cwnd = reduced;
            window.ssthresh = 2.0;
        }
        let last = acked.end - 1;
        let sent = self.sent.get(last);
        let outstanding = next - acked.end + 1;
        if self.base_rtt.is_none() {
            let first = secs(now.since(sent.at));
            self.base_rtt = Some(first);
            (self.srtt, self.deviation) = (first, first / 4.0);
            self.overdue_after = 1.5 * first;
        }
        if last >= self.round_begins {
            self.judge_round(now, window, next, outstanding);
        }
        if self.increment == 1.0 && window.cwnd >= window.ssthresh {
            self.increment = 0.0;
        }
        // Not while the sender cannot keep up with its window.
        if self.increment > 0.0 && window.cwnd - outstanding as f64 <= 2.0 {
            window.cwnd = (window.cwnd + self.increment).min(window.limit);
        }
        for seq in acked.clone() {
            *self.sent.entry(acked.start, seq) = Sent::default();
        }
        if sent.times == 1 {
            self.sample(secs(now.since(sent.at)));
        }
        if self.worried > 0 {
            self.worried -= 1;
            if self.is_overdue(now, acked.end) {
                return true;
            }
            self.worried = 0;
        }
        false
    }

    /// Once a round trip: how far the throughput is below what the window promises, in segments that must be in queues.
    fn judge_round(&mut self, now: Time, window: &mut Window, next: u64, outstanding: u64) {
        let measured = self.rtt_count > 0;
        let rtt = if measured { self.rtt_sum / f64::from(self.rtt_count) } else { secs(now.since(self.round_began)) };
        (self.rtt_sum, self.rtt_count) = (0.0, 0);
        let sent_in_round = next - self.round_begins;
        if rtt > 0.0 {
            let mut base = self.base_rtt.unwrap_or(rtt);
            // Not by a round trip of segments sent twice: the acknowledgement may be the first copy's.
            if measured && (rtt < base || sent_in_round <= 1) {
                base = rtt;
            }
            self.base_rtt = Some(base);
            let actual = sent_in_round as f64 / rtt;
            let expected = outstanding as f64 / base;
            let queued = ((expected - actual) * base + 0.5).trunc();
            if window.cwnd < window.ssthresh {
                self.judge_slow_start(window, queued);
            } else if queued > self.beta {
                window.cwnd = (window.cwnd - 1.0).max(2.0);
                self.increment = 0.0;
            } else {
                self.increment = if queued < self.alpha { 1.0 / window.cwnd } else { 0.0 };
            }
        }
        self.round_begins = next;
        self.round_began = now;
    }

    fn judge_slow_start(&mut self, window: &mut Window, queued: f64) {
        self.growing = !self.growing;
        self.increment = 0.0;
        if !self.growing {
            return;
        }
        if queued > self.gamma {
            window.ssthresh = 2.0;
            window.cwnd = (window.cwnd - window.cwnd / 8.0).max(2.0);
        } else {
            self.increment = 1.0;
        }
    }

    fn sample(&mut self, rtt: f64) {
        self.rtt_sum += rtt;
        self.rtt_count += 1;
        if rtt > 0.0 {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            let error = rtt - self.srtt;
            self.srtt += error / 8.0;
            self.deviation += (error.abs() - self.deviation) / 4.0;
            // A sixteenth more than SRTT and two deviations.
            self.overdue_after = (self.srtt + 2.0 * self.deviation) * (1.0 + 1.0 / 16.0);
        }
    }

    /// Whether segment `seq` has been on its way for longer than the fine-grained time-out.
    pub(super) fn is_overdue(&self, now: Time, seq: u64) -> bool {
        let sent = self.sent.get(seq);
        sent.times > 0 && secs(now.since(sent.at)) >= self.overdue_after
    }

    /// Segment `una` is about to be sent again. Reduces the window unless it was sent before the last reduction. Says
    /// whether it is sent again for the first time.
    pub(super) fn retransmitting(
        &mut self,
        now: Time,
        window: &mut Window,
        allowed: u64,
        una: u64,
        next: u64,
        dup_acks: u64,
    ) -> bool {
        let sent = self.sent.get(una);
        self.worried = (next - una + 1).min(2) as u32;
        self.overdue_after *= if sent.times > 1 { 2.0 } else { 1.0 + 1.0 / 8.0 };
        if self.reduced_at.is_none_or(|reduced| reduced < sent.at) {
            let reduced = match allowed {
                0..=3 => 2,
                _ if sent.times > 1 => allowed / 2,
                _ => allowed - allowed / 4,
            };
            self.reduced = Some(reduced as f64);
            window.cwnd = (reduced + dup_acks) as f64;
            self.reduced_at = Some(now);
        }
        sent.times == 1
    }

    /// The retransmission timer ran out.
    pub(super) fn collapse(&mut self, now: Time, window: &mut Window) {
        window.halve_threshold();
        window.cwnd = RESTART_WINDOW;
        self.reduced = None;
        self.reduced_at = Some(now);
    }
}

fn secs(span: std::time::Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}
