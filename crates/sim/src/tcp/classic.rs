//! A sender as ns-2 and the RFCs of its time have it: what it may send and when, and its timers. How it recovers from loss is in
//! `cumulative`, `selective` and `sack1`.

use std::time::Duration;

use weir_units::{Random, Time};

use super::config::Recovery;
use super::control::{Control, Window};
use super::rto::RttEstimator;
use super::scoreboard::Scoreboard;
use super::{Config, Counters, Kind, Segment};

/// Where in its losses a sender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a time-out, until all is acknowledged that was outstanding then.
    Loss,
}

/// The sending end of a connection.
///
/// Inputs are [`Classic::start`], [`Classic::receive`], [`Classic::expire`] and [`Classic::supply`]; each hands what is to be
/// sent to `out`, in order. Between them, [`Classic::deadline`] says when it wants [`Classic::expire`]; being called early or
/// late does no harm.
#[derive(Debug, Clone)]
pub(super) struct Classic {
    pub(super) config: Config,
    pub(super) control: Control,
    pub(super) window: Window,
    /// The lowest segment that is not acknowledged.
    pub(super) una: u64,
    /// The segment to send next, if it is not a repair.
    pub(super) next: u64,
    /// One past the highest segment ever sent. `next` is below it only when a time-out made it go back.
    pub(super) sent_below: u64,
    /// Segments that the application has handed over.
    pub(super) supplied: u64,
    closed: bool,
    started: bool,
    pub(super) phase: Phase,
    /// What was outstanding at the last loss ends here (`recover` of RFC 6582, `RecoveryPoint` of RFC 6675).
    pub(super) recover: Option<u64>,
    pub(super) dup_acks: u64,
    /// Segments by which fast recovery inflates the window (RFC 5681 §3.2 step 4).
    pub(super) inflation: u64,
    /// A partial acknowledgement has come in this recovery.
    pub(super) partial: bool,
    pub(super) scoreboard: Scoreboard,
    /// The segment above which a rescue may be sent in this recovery (`RescueRxt`).
    pub(super) rescued: Option<u64>,
    /// Segments that are on the way in Sack1's recovery, as ns-2 counts them.
    pub(super) pipe: i64,
    pub(super) rtt: RttEstimator,
    /// The segment whose round trip is being measured, without timestamps.
    pub(super) timed: Option<(u64, Time)>,
    pub(super) rto_at: Option<Time>,
    /// When what the window allows may be sent: the overhead's delay.
    send_at: Option<Time>,
    last_sent: Time,
    /// Where the last answer to a congestion mark ends.
    ecn_answered: u64,
    announce_reduction: bool,
    pub(super) counters: Counters,
    overhead: Option<Box<Random>>,
}

impl Classic {
    /// A sender that has not begun. `random` decides on overheads and on where in a tick the clock begins.
    pub(super) fn new(config: Config, mut random: Random) -> Classic {
        let rtt = RttEstimator::new(&config.timers, random.unit());
        // It decided on BBR's cycle once. Without the draw, overheads would be others and runs come out otherwise.
        let _ = random.below(7);
        let control = Control::new(&config);
        Classic {
            control,
            window: Window::new(&config),
            una: 0,
            next: 0,
            sent_below: 0,
            supplied: config.supply.unwrap_or(u64::MAX),
            closed: false,
            started: false,
            phase: Phase::Open,
            recover: None,
            dup_acks: 0,
            inflation: 0,
            partial: false,
            scoreboard: Scoreboard::default(),
            rescued: None,
            pipe: 0,
            rtt,
            timed: None,
            rto_at: None,
            send_at: None,
            last_sent: Time::ZERO,
            ecn_answered: 0,
            announce_reduction: false,
            counters: Counters::default(),
            overhead: (config.overhead > Duration::ZERO).then(|| Box::new(random)),
            config,
        }
    }

    /// The connection is open.
    pub(super) fn start(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.started = true;
        self.last_sent = now;
        self.send_allowed(now, u64::MAX, out);
    }

    /// The application hands over `packets` more.
    ///
    /// After a silence longer than the time-out, the window is no more than the initial one (RFC 5681 §4.1).
    pub(super) fn supply(&mut self, now: Time, packets: u64, out: &mut impl FnMut(Segment)) {
        self.supplied = self.supplied.saturating_add(packets);
        if !self.started {
            return;
        }
        if self.una == self.sent_below && now > self.last_sent + self.rtt.rto() {
            self.window.cwnd = self.window.cwnd.min(f64::from(self.config.initial_window));
        }
        self.send_allowed(now, u64::MAX, out);
    }

    /// There will be no more to send.
    pub(super) fn close(&mut self) {
        self.closed = true;
        if self.config.supply.is_none() {
            self.supplied = self.supplied.min(self.sent_below);
        }
    }

    /// Sets the window and the threshold, in segments, as a new transfer on an old connection may.
    pub(super) fn restart(&mut self, cwnd: u32, ssthresh: u32) {
        self.window.cwnd = f64::from(cwnd).clamp(1.0, self.window.limit);
        self.window.ssthresh = f64::from(ssthresh).max(2.0);
    }

    /// An acknowledgement has come.
    #[inline]
    pub(super) fn receive(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        if segment.kind != Kind::Ack || segment.seq > self.sent_below {
            return;
        }
        self.counters.acks += 1;
        if segment.ecn_echo && self.config.ecn {
            self.answer_mark(segment.seq);
        }
        match self.config.recovery() {
            Recovery::Cumulative => self.receive_cumulative(now, segment, out),
            Recovery::Selective => self.receive_selective(now, segment, out),
            Recovery::Sack1 => self.receive_sack1(now, segment, out),
        }
    }

    /// A deadline may have passed.
    pub(super) fn expire(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if self.send_at.is_some_and(|at| at <= now) {
            self.send_at = None;
            self.send_now(now, u64::MAX, out);
        }
        if self.rto_at.is_some_and(|at| at <= now) {
            self.time_out(now, out);
        }
    }

    /// When [`Classic::expire`] is wanted, if nothing else happens.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        match (self.rto_at, self.send_at) {
            (Some(rto), Some(send)) => Some(rto.min(send)),
            (rto, send) => rto.or(send),
        }
    }

    /// Segments that the sink is known to have, all of them from the first on.
    pub(super) fn acknowledged(&self) -> u64 {
        self.una
    }

    /// Segments that are believed to be on the way: the pipe of RFC 6675 or of ns-2 with selective acknowledgements, and
    /// without them all that is sent and not acknowledged.
    pub(super) fn outstanding(&self) -> u64 {
        match self.config.recovery() {
            Recovery::Cumulative => self.next - self.una,
            Recovery::Selective => self.scoreboard.pipe(self.next),
            Recovery::Sack1 => self.outstanding_sack1(),
        }
    }

    /// Whether all that the application handed over is acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.una == self.supplied
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The congestion window, in segments.
    pub(super) fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    /// Where slow start ends, in segments.
    pub(super) fn ssthresh(&self) -> f64 {
        self.window.ssthresh
    }

    /// The smoothed round-trip time; zero before the first is measured.
    pub(super) fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    /// The retransmission time-out.
    pub(super) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// What it has done so far.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// What it is like.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Segments that may be outstanding.
    #[inline]
    pub(super) fn allowed(&self) -> u64 {
        (self.window.cwnd as u64 + self.inflation).min(self.window.limit as u64)
    }

    /// New data for which the application and the receiver's window leave room.
    #[inline]
    pub(super) fn has_new_data(&self) -> bool {
        self.next < self.supplied && self.next - self.una < self.window.limit as u64
    }

    /// The segment that the window allows, if any.
    #[inline]
    fn next_segment(&self) -> Option<u64> {
        match self.config.recovery() {
            Recovery::Cumulative => self.next_cumulative(),
            Recovery::Selective => self.next_selective(),
            Recovery::Sack1 => self.next_sack1(),
        }
    }

    /// Sends what the window allows, up to `most` segments: now, or after the overhead's delay.
    #[inline]
    pub(super) fn send_allowed(&mut self, now: Time, most: u64, out: &mut impl FnMut(Segment)) {
        if self.send_at.is_some() || !self.started {
            return;
        }
        if self.overhead.is_some() {
            if self.next_segment().is_some()
                && let Some(random) = &mut self.overhead
            {
                self.send_at = Some(now + self.config.overhead.mul_f64(random.unit()));
            }
            return;
        }
        self.send_now(now, most, out);
    }

    #[inline]
    fn send_now(&mut self, now: Time, most: u64, out: &mut impl FnMut(Segment)) {
        for _ in 0..most {
            let Some(seq) = self.next_segment() else { return };
            self.transmit(now, seq, out);
        }
    }

    /// Sends a segment, whatever the window says.
    #[inline]
    pub(super) fn transmit(&mut self, now: Time, seq: u64, out: &mut impl FnMut(Segment)) {
        self.counters.sent += 1;
        let again = seq < self.sent_below;
        if again {
            self.counters.retransmitted += 1;
        } else {
            self.sent_below = seq + 1;
            if self.timed.is_none() && !self.config.timestamps {
                self.timed = Some((seq, now));
            }
        }
        if let Control::Vegas(vegas) = &mut self.control {
            vegas.sent(now, self.una, seq);
        }
        match self.config.recovery() {
            Recovery::Selective if again => self.repaired(seq),
            Recovery::Sack1 => self.sent_sack1(seq),
            _ => self.next += u64::from(seq == self.next),
        }
        if self.rto_at.is_none() {
            self.rto_at = Some(self.rtt.timeout_from(now));
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

    /// New data is acknowledged, up to `ack`: round trip and timer (RFC 6298 §5).
    #[inline]
    pub(super) fn advance(&mut self, now: Time, segment: &Segment) {
        self.una = segment.seq;
        self.next = self.next.max(self.una);
        if self.config.timestamps {
            self.rtt.sample(segment.sent, now);
        } else if let Some((seq, sent)) = self.timed
            && seq < self.una
        {
            self.rtt.sample(sent, now);
            self.timed = None;
        }
        self.restart_timer(now);
    }

    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.rto_at = (self.una < self.sent_below).then(|| self.rtt.timeout_from(now));
    }

    /// A loss has been found before the timer ran out: no round trip is measured across it (Karn), the timer starts again.
    pub(super) fn begin_recovery(&mut self, now: Time) {
        self.counters.fast_retransmits += 1;
        self.phase = Phase::Recovery;
        self.recover = Some(self.sent_below);
        self.partial = false;
        self.timed = None;
        self.rto_at = Some(self.rtt.timeout_from(now));
        self.announce_reduction = true;
    }

    /// Whether all is acknowledged that was outstanding at the last loss: only then may another begin a recovery.
    pub(super) fn may_recover(&self) -> bool {
        self.recover.is_none_or(|recover| self.una > recover)
    }

    fn time_out(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.counters.timeouts += 1;
        self.control.collapse(now, &mut self.window);
        self.rtt.back_off();
        self.phase = Phase::Loss;
        self.recover = Some(self.sent_below);
        (self.dup_acks, self.inflation, self.partial) = (0, 0, false);
        self.timed = None;
        self.announce_reduction = true;
        match self.config.recovery() {
            Recovery::Selective => self.scoreboard.lose_all(self.sent_below),
            Recovery::Cumulative => self.next = self.una,
            Recovery::Sack1 => self.go_back_sack1(),
        }
        self.rto_at = Some(self.rtt.timeout_from(now));
        self.send_allowed(now, u64::MAX, out);
    }

    /// A congestion mark came back: once a window of data it is answered as a loss is (RFC 3168 §6.1.2).
    fn answer_mark(&mut self, ack: u64) {
        if ack <= self.ecn_answered || self.phase != Phase::Open {
            return;
        }
        self.ecn_answered = self.sent_below;
        self.counters.ecn_reductions += 1;
        self.announce_reduction = true;
        self.control.reduce(&mut self.window);
        self.window.cwnd = self.window.cwnd.max(1.0);
    }
}
