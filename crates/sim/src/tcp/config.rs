//! What a connection is like.

use std::time::Duration;

use weir_units::Bytes;

/// How a sender controls congestion and recovers from loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Fast retransmit, then slow start (Jacobson 1988).
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgement (RFC 2581), as in ns-2: one a window of data.
    Reno,
    /// Fast recovery through partial acknowledgements (RFC 6582).
    NewReno,
    /// Reno's window, recovery by selective acknowledgements (RFC 6675).
    Sack,
    /// SACK as ns-2's `Agent/TCP/Sack1` recovers: its own count of the pipe, holes filled that are not known to be lost, the scoreboard
    /// cleared and going back after a time-out.
    Sack1,
    /// Avoids loss by keeping few packets in the queue (Brakmo and Peterson 1995, as in ns-2).
    Vegas,
    /// A cubic window between losses (RFC 9438), as in Linux.
    Cubic,
    /// Paced by a model of bottleneck bandwidth and propagation time, version 1
    /// (draft-cardwell-iccrg-bbr-congestion-control-00), as in Linux.
    Bbr,
}

impl Flavour {
    /// All of them.
    pub const ALL: [Flavour; 8] = [
        Flavour::Tahoe,
        Flavour::Reno,
        Flavour::NewReno,
        Flavour::Sack,
        Flavour::Sack1,
        Flavour::Vegas,
        Flavour::Cubic,
        Flavour::Bbr,
    ];

    /// Its name, as scenarios spell it.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Tahoe => "tahoe",
            Flavour::Reno => "reno",
            Flavour::NewReno => "newreno",
            Flavour::Sack => "sack",
            Flavour::Sack1 => "sack1",
            Flavour::Vegas => "vegas",
            Flavour::Cubic => "cubic",
            Flavour::Bbr => "bbr",
        }
    }
}

/// The retransmission timer (RFC 6298).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// G: the clock that measures round trips ticks this often. Not zero.
    pub granularity: Duration,
    /// The timer is never shorter (RFC 6298 §2.4 asks for 1 s; few follow it).
    pub min_rto: Duration,
    /// Nor, backed off, longer (§2.5).
    pub max_rto: Duration,
    /// Before the first round trip is measured (§2.1).
    pub initial_rto: Duration,
}

impl Timers {
    /// What ns-2.35 uses: `tcpTick_` 0.01, `minrto_` 0.2, `maxrto_` 60, `rtxcur_init_` 3.
    pub const NS2: Timers = Timers {
        granularity: Duration::from_millis(10),
        min_rto: Duration::from_millis(200),
        max_rto: Duration::from_secs(60),
        initial_rto: Duration::from_secs(3),
    };

    /// RFC 6298 to the letter, with a clock of 1 ms.
    pub const RFC_6298: Timers = Timers {
        granularity: Duration::from_millis(1),
        min_rto: Duration::from_secs(1),
        max_rto: Duration::from_secs(60),
        initial_rto: Duration::from_secs(1),
    };

    /// What Linux does: a clock of 1 ms where one is asked for, 200 ms under the deviation and not under the time-out, 120 s at most.
    pub const TODAY: Timers =
        Timers { min_rto: Duration::from_millis(200), max_rto: Duration::from_secs(120), ..Timers::RFC_6298 };
}

/// What a connection is like. Windows are in segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How it controls congestion.
    pub flavour: Flavour,
    /// A data segment on the wire, headers included.
    pub segment_size: Bytes,
    /// An acknowledgement on the wire.
    pub ack_size: Bytes,
    /// Data segments that there are to send at the start; `None` is without end. More can be handed over later.
    pub supply: Option<u64>,
    /// The congestion window at the start, at least 1.
    pub initial_window: u32,
    /// No more than this is ever outstanding: the receiver's window. At least 1. Also where slow start ends at first.
    pub max_window: u32,
    /// The retransmission timer.
    pub timers: Timers,
    /// Tahoe, Sack1 and Vegas are ns-2's whatever this says, CUBIC and BBR Linux's; Reno, NewReno and Sack are with it one and the same: Linux's
    /// Reno, with selective acknowledgements, RACK, tail-loss probes and proportional rate reduction.
    pub linux: bool,
    /// Every acknowledgement of new data gives a round trip (RFC 7323 §4.1), or else one a round trip does.
    pub timestamps: bool,
    /// The sink acknowledges every second segment, or after this long (RFC 1122 §4.2.3.2). `None`: every segment.
    pub delayed_ack: Option<Duration>,
    /// So many acknowledgements are not delayed at the start.
    pub quick_acks: u32,
    /// Congestion marks are asked for and answered (RFC 3168).
    pub ecn: bool,
    /// Linux's Reno and CUBIC are paced, too, as the `fq` queueing discipline does it. BBR always is, and ns-2's senders never are.
    pub paced: bool,
    /// What the window allows is sent after a random delay, uniform up to this, so that flows do not lock phases
    /// (Floyd and Jacobson 1992; ns-2's `overhead_`). Zero is none.
    pub overhead: Duration,
    /// The fewest segments that Vegas keeps in the queue.
    pub vegas_alpha: u32,
    /// The most segments that Vegas keeps in the queue.
    pub vegas_beta: u32,
    /// Slow start ends with this number of segments in the queue.
    pub vegas_gamma: u32,
}

impl Config {
    /// ns-2.35's defaults for its one-way agents, with 1000 bytes on the wire; windows are without limit.
    pub fn ns2(flavour: Flavour) -> Config {
        Config {
            flavour,
            segment_size: Bytes::new(1000),
            ack_size: Bytes::new(40),
            supply: None,
            initial_window: 2,
            max_window: 1_000_000,
            timers: Timers::NS2,
            linux: false,
            timestamps: false,
            delayed_ack: None,
            quick_acks: 0,
            ecn: false,
            paced: false,
            overhead: Duration::ZERO,
            vegas_alpha: 1,
            vegas_beta: 3,
            vegas_gamma: 1,
        }
    }

    /// As hosts of today, which is Linux 6: an initial window of 10 (RFC 6928), timestamps, delayed acknowledgements, and Linux's
    /// recovery from loss. Congestion marks are not asked for, as Linux's clients do not unless told.
    pub fn today(flavour: Flavour) -> Config {
        Config {
            segment_size: Bytes::new(1500),
            ack_size: Bytes::new(52),
            initial_window: 10,
            timers: Timers::TODAY,
            linux: true,
            timestamps: true,
            delayed_ack: Some(Duration::from_millis(40)),
            quick_acks: 16,
            ..Config::ns2(flavour)
        }
    }

    /// Whether the sender is Linux's.
    pub fn is_linux(&self) -> bool {
        match self.flavour {
            Flavour::Cubic | Flavour::Bbr => true,
            Flavour::Reno | Flavour::NewReno | Flavour::Sack => self.linux,
            Flavour::Tahoe | Flavour::Sack1 | Flavour::Vegas => false,
        }
    }

    /// Whether sender and sink use selective acknowledgements.
    pub fn is_selective(&self) -> bool {
        self.is_linux() || self.recovery() != Recovery::Cumulative
    }

    /// By which rules a classic sender recovers.
    pub(super) fn recovery(&self) -> Recovery {
        match self.flavour {
            Flavour::Sack => Recovery::Selective,
            Flavour::Sack1 => Recovery::Sack1,
            _ => Recovery::Cumulative,
        }
    }
}

/// By which rules a classic sender recovers from loss: each has a file of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovery {
    /// By duplicate acknowledgements alone.
    Cumulative,
    /// By selective acknowledgements, as RFC 6675 has it.
    Selective,
    /// By selective acknowledgements, as ns-2 has it.
    Sack1,
}
