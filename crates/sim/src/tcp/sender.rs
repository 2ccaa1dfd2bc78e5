//! The sending end of a connection: which machine runs it is its configuration's affair.

use std::time::Duration;

use weir_units::{Random, Time};

use super::classic::Classic;
use super::linux::Linux;
use super::{Config, Segment};

/// What a sender has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Segments sent, again or for the first time.
    pub sent: u64,
    /// Of these, sent again.
    pub retransmitted: u64,
    /// Times that the retransmission timer ran out.
    pub timeouts: u64,
    /// Times that a loss was found by duplicate or selective acknowledgements.
    pub fast_retransmits: u64,
    /// Times that a congestion mark was answered.
    pub ecn_reductions: u64,
    /// Acknowledgements that came.
    pub acks: u64,
}

/// The sending end of a connection.
///
/// Inputs are [`Sender::start`], [`Sender::receive`], [`Sender::expire`] and [`Sender::supply`]; each hands what is to be
/// sent to `out`, in order. Between them, [`Sender::deadline`] says when it wants [`Sender::expire`]; being called early or
/// late does no harm.
#[derive(Debug, Clone)]
pub struct Sender(Machine);

#[derive(Debug, Clone)]
enum Machine {
    Classic(Classic),
    Linux(Linux),
}

/// Calls a method of whichever machine it is.
macro_rules! machine {
    ($self:expr, $one:ident => $call:expr) => {
        match $self {
            Machine::Classic($one) => $call,
            Machine::Linux($one) => $call,
        }
    };
}

impl Sender {
    /// A sender that has not begun. `random` decides on overheads, where in a tick the clock begins, and where in its cycle
    /// BBR begins.
    pub fn new(config: Config, random: Random) -> Sender {
        match config.is_linux() {
            true => Sender(Machine::Linux(Linux::new(config, random))),
            false => Sender(Machine::Classic(Classic::new(config, random))),
        }
    }

    /// The connection is open.
    pub fn start(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        machine!(&mut self.0, one => one.start(now, out));
    }

    /// The application hands over `packets` more.
    ///
    /// After a silence longer than the time-out, the window is no more than the initial one (RFC 5681 §4.1).
    pub fn supply(&mut self, now: Time, packets: u64, out: &mut impl FnMut(Segment)) {
        machine!(&mut self.0, one => one.supply(now, packets, out));
    }

    /// There will be no more to send.
    pub fn close(&mut self) {
        machine!(&mut self.0, one => one.close());
    }

    /// Sets the window and the threshold, in segments, as a new transfer on an old connection may.
    pub fn restart(&mut self, cwnd: u32, ssthresh: u32) {
        machine!(&mut self.0, one => one.restart(cwnd, ssthresh));
    }

    /// An acknowledgement has come.
    #[inline]
    pub fn receive(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        machine!(&mut self.0, one => one.receive(now, segment, out));
    }

    /// A deadline may have passed.
    pub fn expire(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        machine!(&mut self.0, one => one.expire(now, out));
    }

    /// When [`Sender::expire`] is wanted, if nothing else happens.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        machine!(&self.0, one => one.deadline())
    }

    /// Segments that the sink is known to have, all of them from the first on.
    pub fn acknowledged(&self) -> u64 {
        machine!(&self.0, one => one.acknowledged())
    }

    /// Segments that are believed to be on the way: the pipe of RFC 6675 (Sack1: of ns-2) with selective acknowledgements,
    /// and without them all that is sent and not acknowledged.
    pub fn outstanding(&self) -> u64 {
        machine!(&self.0, one => one.outstanding())
    }

    /// Whether all that the application handed over is acknowledged.
    pub fn is_idle(&self) -> bool {
        machine!(&self.0, one => one.is_idle())
    }

    /// Whether the connection is closed and all is acknowledged.
    pub fn is_finished(&self) -> bool {
        self.is_idle() && machine!(&self.0, one => one.is_closed())
    }

    /// The congestion window, in segments.
    pub fn cwnd(&self) -> f64 {
        match &self.0 {
            Machine::Classic(one) => one.cwnd(),
            Machine::Linux(one) => one.cwnd() as f64,
        }
    }

    /// Where slow start ends, in segments.
    pub fn ssthresh(&self) -> f64 {
        match &self.0 {
            Machine::Classic(one) => one.ssthresh(),
            Machine::Linux(one) => one.ssthresh() as f64,
        }
    }

    /// The smoothed round-trip time; zero before the first is measured.
    pub fn srtt(&self) -> Duration {
        machine!(&self.0, one => one.srtt())
    }

    /// The retransmission time-out.
    pub fn rto(&self) -> Duration {
        machine!(&self.0, one => one.rto())
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        machine!(&self.0, one => one.counters())
    }

    /// What it is like.
    pub fn config(&self) -> &Config {
        machine!(&self.0, one => one.config())
    }
}
