//! One direction of a link, driven by time alone: its rate, its propagation delay and how that varies, its queue, and its
//! loss.
//!
//! The simulator wires links into networks; a receiver on sockets can have one put in front of it. Not here: topology,
//! clocks, and what is in the packets.

#![no_std]

extern crate alloc;

mod buffer;
mod config;
mod fifo;
mod general;
mod kind;
mod link;
mod loss;
mod packet;
mod queue;
mod serialiser;
mod variation;

pub use buffer::{Buffer, LinkState};
pub use config::{Grammar, Key, LinkConfig, LinkConfigError, grammar};
pub use kind::LinkKind;
pub use link::{Counters, Link};
pub use loss::{GilbertElliott, Loss};
pub use packet::{Delivered, DropReason, Dropped, Label};
pub use queue::codel::CoDelConfig;
pub use queue::drr::DrrConfig;
pub use queue::fair::FairConfig;
pub use queue::flows::DropFrom;
pub use queue::fq_codel::FqCoDelConfig;
pub use queue::red::RedConfig;
pub use queue::{Drops, Queue, QueueConfig, Queued};
pub use variation::{Shape, Variation};
