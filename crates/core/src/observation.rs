//! What endpoints tell about themselves. Progress displays, event logs and the laboratory's metrics are made of these.

use core::time::Duration;

use weir_units::Rate;

/// One observation. Its time is that of the call that produced it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Observation {
    /// The subscription level changed. Level 0 is no channel at all, level i the channels below i.
    Level {
        /// The new level.
        level: usize,
        /// Cumulative rate of that level.
        rate: Rate,
        /// Why.
        cause: LevelCause,
    },
    /// A loss event began: at least one packet of the network is missing.
    LossEvent,
    /// A time slot ended: what the receiver measured and concludes.
    Slot(SlotReport),
}

/// Why a subscription level changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LevelCause {
    /// The session started.
    Start,
    /// Slow start went on.
    SlowStart,
    /// Slow start went too far.
    SlowStartEnd,
    /// The target rate allows more.
    Add,
    /// The target rate allows less.
    Drop,
    /// This host could not keep up with what the network delivered.
    HostDrops,
    /// The application is done.
    Finish,
}

/// A receiver's measurements at the end of a time slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotReport {
    /// Subscription level.
    pub level: usize,
    /// What arrived in the slot.
    pub received_rate: Rate,
    /// Packets that arrived in the slot.
    pub received_packets: u64,
    /// Packets that the network lost in the slot.
    pub lost_packets: u64,
    /// Packets that this host dropped in the slot.
    pub host_dropped_packets: u64,
    /// Short-term and long-term average one-way queuing delay.
    pub queuing_delay: [Duration; 2],
    /// Short-term and long-term loss event rate; `None` before the first loss event.
    pub loss_event_rate: Option<[f64; 2]>,
    /// Short-term and long-term target rate; `None` while no model is in use (slow start).
    pub target_rate: Option<[Rate; 2]>,
    /// The Vegas threshold, packets; `None` for a scheme without one.
    pub vegas_beta_packets: Option<f64>,
}
