//! What a receiver can learn from the packets that reach it: averages, losses, loss events, queuing delay.
//!
//! Pure state; nothing here decides anything.

mod ewma;
mod extreme;
mod loss_events;
mod loss_intervals;
mod packet_pair;
mod queuing_delay;
mod sequence;

pub use ewma::Ewma;
pub use extreme::Extreme;
pub use loss_events::LossEvents;
pub use loss_intervals::LossIntervals;
pub use packet_pair::{Bursts, Estimates, InBurst, PacketPair, PacketTrain};
pub use queuing_delay::{DelaySample, DelayWindow, QueuingDelay, TimestampDifference};
pub use sequence::{Arrival, SequenceTracker};
