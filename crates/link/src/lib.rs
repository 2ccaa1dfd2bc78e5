//! One direction of a link, driven by time alone: its rate, its propagation delay, its queue and its random loss.
//!
//! The simulator wires links into networks; a receiver on sockets can have one put in front of it. Not here: topology,
//! clocks, and what is in the packets.

#![no_std]

extern crate alloc;

mod config;
mod link;
mod queue;

pub use config::{LinkConfig, LinkConfigError};
pub use link::{Counters, Link};
pub use queue::{Backlog, Buffer, DropTail, Queue, Queued};
