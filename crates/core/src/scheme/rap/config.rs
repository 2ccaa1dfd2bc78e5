//! The configuration: the paper's constants, and what it leaves open.

use core::time::Duration;

use weir_units::{Bytes, Rate};

use super::quality::{LayerRates, QualityConfig};
use crate::definition::Habitat;

/// Everything that can be set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// β: what a back-off leaves of the rate (Eq. 3: 0.5).
    pub decrease: f64,
    /// How round trips are averaged, and what time-out follows.
    pub timing: Timing,
    /// Fine-grain adaptation (§III-B), if wanted.
    pub fine_grain: Option<FineGrain>,
    /// How the rate grows before the first congestion (decision 1).
    pub start_up: Growth,
    /// Packets in the first round trip of which the time is known (decision 1).
    pub start_packets: u64,
    /// What makes a missing packet a lost one.
    pub loss: LossRule,
    /// Which losses are congestion.
    pub losses: Losses,
    /// Whether a change of the gap acts on the packet that is waiting already, or from the next one on (decision 4).
    pub moves_the_waiting: bool,
    /// Whether steps count from the start, and raise the rate even if nothing came back in them; else they count from the
    /// first answer (decision 8).
    pub steps_from_start: bool,
    /// Whether packets say that they can be marked instead of dropped, and marks count as loss (decision 7).
    pub ecn: bool,
    /// Whether the rate of an application that has less to send is bounded by what it used lately (decision 13).
    pub validates: bool,
    /// For how long after it was sent a lost payload goes again, if it can arrive by then; `None` sends nothing again (decision 14).
    pub repair: Option<Duration>,
    /// Whether the application is told of each payload that it has come, or is lost.
    pub tells: bool,
    /// The layers of a stored stream (decision 15); `None` is a stream without.
    pub layers: Option<LayerRates>,
    /// From the first packet that comes until the receiver of layers plays.
    pub start_up_delay: Duration,
    /// K_max: how many back-offs the receiver's buffers are to survive with a layer more before it is added.
    pub k_max: u64,
    /// A layer of which the receiver has this much gets no more.
    pub max_buffer: Duration,
    /// Over what time the rate is averaged that is to carry a layer more.
    pub average_over: Duration,
    /// The rate never falls below this; `None` is below a packet in two seconds.
    pub min_rate: Option<Rate>,
    /// The rate never grows above this.
    pub max_rate: Rate,
    /// A wake-up that is late by up to this much is caught up with; the schedule of a later one begins again.
    pub catch_up: Duration,
}

/// How round trips are averaged, and what time-out follows (Jacobson and Karels; RFC 6298 §2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// What stands for the round-trip time, the time-out and the gap until the first acknowledgement.
    pub initial: Duration,
    /// Whether the first sample replaces that; else it is averaged with it.
    pub first_replaces: bool,
    /// Weight of a sample in SRTT.
    pub gain: f64,
    /// Weight of a sample's distance from SRTT in the variation.
    pub variation_gain: f64,
    /// What the time-out takes of SRTT; next to it comes four times the variation,
    pub timeout_weight: f64,
    /// or this, if it is more: RFC 6298's G. Without it, the time-out of a path without variation is the round trip.
    pub granularity: Duration,
}

/// The averages whose ratio is fine-grain adaptation's feedback (Eq. 7).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FineGrain {
    /// Weight of a round trip in FRTT, the short-term average.
    pub short_gain: f64,
    /// Weight of a round trip in XRTT, the long-term average.
    pub long_gain: f64,
}

impl FineGrain {
    /// The gains of ns-2's RAP, whose authors are the paper's.
    pub const NS2: FineGrain = FineGrain { short_gain: 0.9, long_gain: 0.01 };
}

/// How the rate grows from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// By one packet a round trip (Eq. 1).
    Additive,
    /// To twice the rate.
    Doubling,
}

/// What makes a missing packet a lost one (§III).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossRule {
    /// Three later packets were delivered.
    Deliveries,
    /// A packet was delivered whose number is higher by three or more.
    Distance,
}

/// Which losses are congestion (decision 23).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Losses {
    /// Each.
    All,
    /// Those behind a queue, and those that are more than a path has of its own.
    Queued,
}

/// Later packets, or numbers, that make a missing packet a lost one (§III).
pub(super) const LATER_PACKETS: u64 = 3;

/// Time-outs in a row after which the path counts as silent (decision 6).
pub(super) const SILENT_TIMEOUTS: u32 = 4;
/// Of TCP, packets (RFC 6928 §2).
const INITIAL_WINDOW: u64 = 10;

impl Config {
    /// RAP as `docs/papers/rap.md` reads it.
    pub fn new(habitat: Habitat) -> Config {
        let sockets = habitat == Habitat::Sockets;
        Config {
            decrease: 0.5,
            timing: Timing {
                initial: Duration::from_secs(1),
                first_replaces: true,
                gain: 0.125,
                variation_gain: 0.25,
                timeout_weight: 1.0,
                granularity: Duration::from_millis(100),
            },
            fine_grain: Some(FineGrain::NS2),
            start_up: Growth::Doubling,
            start_packets: if sockets { INITIAL_WINDOW } else { 1 },
            loss: LossRule::Deliveries,
            losses: Losses::All,
            moves_the_waiting: true,
            steps_from_start: false,
            ecn: sockets,
            validates: true,
            repair: None,
            tells: false,
            layers: None,
            start_up_delay: Duration::from_secs(2),
            k_max: 4,
            max_buffer: Duration::from_secs(20),
            average_over: Duration::from_secs(10),
            min_rate: None,
            max_rate: Rate::from_mbps(10_000),
            catch_up: Duration::from_millis(if sockets { 5 } else { 0 }),
        }
    }

    /// Below what the rate of packets of this size never falls.
    pub fn floor(&self, packet_size: Bytes) -> Rate {
        self.min_rate.unwrap_or_else(|| Rate::from_packets_per_sec(0.5, packet_size))
    }

    /// What the manager of the layers works by, if the stream has any.
    pub(super) fn quality(&self) -> Option<QualityConfig> {
        let Config { start_up_delay, k_max, max_buffer, average_over, decrease, repair, .. } = *self;
        let live = None;
        let with =
            |layers| QualityConfig { layers, start_up_delay, k_max, max_buffer, live, average_over, decrease, repair };
        self.layers.map(with)
    }

    /// The same as ns-2.35's `Agent/RAP` has it, where that differs on purpose or by accident (`docs/papers/rap.md`).
    pub(super) fn as_ns2(self) -> Config {
        Config {
            timing: Timing {
                initial: Duration::from_secs(2),
                first_replaces: false,
                gain: 0.5,
                variation_gain: 0.5,
                timeout_weight: 1.2,
                granularity: Duration::ZERO,
            },
            start_up: Growth::Additive,
            start_packets: 1,
            loss: LossRule::Distance,
            moves_the_waiting: false,
            steps_from_start: true,
            validates: false,
            ..self
        }
    }
}
