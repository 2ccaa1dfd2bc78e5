//! A sender as Linux has it: selective acknowledgements, RACK and tail-loss probes (RFC 8985), proportional rate reduction (RFC 6937),
//! Reno, CUBIC with HyStart, and BBR version 1. Not here: undoing what turns out to be no loss (F-RTO, D-SACK, timestamps), and
//! the limits of socket buffers.

mod ack;
mod aggregation;
mod bbr;
mod bbr_window;
mod board;
mod control;
mod cubic;
mod filter;
mod policer;
mod rate;
mod recovery;
mod rtt;
mod send;
mod timers;

use std::time::Duration;

use weir_units::{Random, Time};

use self::bbr::{Bbr, View};
use self::board::Board;
use self::control::{Control, Window};
use self::cubic::Cubic;
use self::rate::Rate;
use self::recovery::Reduction;
use self::rtt::Rtt;
use self::timers::Timer;
use super::{Config, Counters, Flavour, Segment};

/// Where in its losses a sender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// A congestion mark is being answered (CWR).
    Reducing,
    /// Fast recovery.
    Recovery,
    /// After a time-out, until all is acknowledged that was outstanding then.
    Loss,
}

/// The sending end.
#[derive(Debug, Clone)]
pub(super) struct Linux {
    config: Config,
    control: Control,
    window: Window,
    board: Board,
    rate: Rate,
    rtt: Rtt,
    phase: Phase,
    reduction: Reduction,
    supplied: u64,
    closed: bool,
    started: bool,
    timer: Option<(Timer, Time)>,
    /// The tail is being probed: what was outstanding then ends here, and whether the probe was a repair.
    probe: Option<(u64, bool)>,
    /// When the pacer lets the next segment out (`tcp_wstamp_ns`); without a pacer, when the last one was sent.
    next_send: Time,
    /// The pacer's alarm, or the overhead's.
    send_at: Option<Time>,
    last_sent: Time,
    /// Whether the window was the limit in the last round trip, the most that was outstanding in it, and its end.
    window_limited: bool,
    most_outstanding: u64,
    round_ends: u64,
    announce_reduction: bool,
    counters: Counters,
    overhead: Option<Box<Random>>,
}

impl Linux {
    pub(super) fn new(config: Config, mut random: Random) -> Linux {
        let limit = u64::from(config.max_window.max(1));
        let mut window = Window::new(u64::from(config.initial_window), limit);
        window.segment_bytes = config.segment_size.count().max(1) as f64;
        let control = match config.flavour {
            Flavour::Bbr => Control::Bbr(Box::new(Bbr::new(Random::new(random.bits(), "bbr")))),
            Flavour::Cubic => Control::Cubic(Box::<Cubic>::default()),
            _ => Control::Reno,
        };
        Linux {
            control,
            window,
            board: Board::default(),
            rate: Rate::default(),
            rtt: Rtt::new(&config.timers),
            phase: Phase::Open,
            reduction: Reduction::default(),
            supplied: config.supply.unwrap_or(u64::MAX),
            closed: false,
            started: false,
            timer: None,
            probe: None,
            next_send: Time::ZERO,
            send_at: None,
            last_sent: Time::ZERO,
            window_limited: false,
            most_outstanding: 0,
            round_ends: 0,
            announce_reduction: false,
            counters: Counters::default(),
            overhead: (config.overhead > Duration::ZERO).then(|| Box::new(random)),
            config,
        }
    }

    pub(super) fn start(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.started = true;
        self.last_sent = now;
        self.push(now, out);
    }

    /// After a silence the window is halved for each time-out that it lasted, down to the initial one.
    pub(super) fn supply(&mut self, now: Time, packets: u64, out: &mut impl FnMut(Segment)) {
        self.supplied = self.supplied.saturating_add(packets);
        if !self.started {
            return;
        }
        if self.board.outstanding() == 0 && !self.control.is_bbr() {
            let least = u64::from(self.config.initial_window).min(self.window.cwnd);
            let (mut cwnd, mut idle) = (self.window.cwnd, now.since(self.last_sent));
            while idle > self.rtt.rto() && cwnd > least {
                idle -= self.rtt.rto();
                cwnd /= 2;
            }
            self.window.set(cwnd.max(least));
        }
        self.push(now, out);
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        if self.config.supply.is_none() {
            self.supplied = self.supplied.min(self.board.next);
        }
    }

    pub(super) fn restart(&mut self, cwnd: u32, ssthresh: u32) {
        self.window.set(u64::from(cwnd));
        self.window.ssthresh = u64::from(ssthresh).max(2);
    }

    pub(super) fn expire(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if self.send_at.is_some_and(|at| at <= now) {
            self.send_at = None;
            self.repair(now, out);
            self.write(now, out);
        }
        if let Some((timer, at)) = self.timer
            && at <= now
        {
            self.timer = None;
            self.on_timer(now, timer, out);
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        let timer = self.timer.map(|(_, at)| at);
        match (timer, self.send_at) {
            (Some(timer), Some(send)) => Some(timer.min(send)),
            (timer, send) => timer.or(send),
        }
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.board.una
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.board.in_flight()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.board.una == self.supplied
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    pub(super) fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    pub(super) fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    pub(super) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    fn view(&self, now: Time) -> View {
        View {
            now,
            in_flight: self.board.in_flight(),
            delivered: self.rate.delivered,
            lost: self.board.lost,
            next_send: self.next_send,
            srtt: self.rtt.srtt(),
            segment_bytes: self.window.segment_bytes,
            recovering: matches!(self.phase, Phase::Recovery | Phase::Loss),
            is_fast_recovery: self.phase == Phase::Recovery,
        }
    }
}
