//! TCP as background traffic, in the flavours that networks have had.
//!
//! A connection is a [`Sender`] and a [`Sink`]: pure state machines that take the time and segments in and hand segments
//! out. One way only, as in ns-2: data from sender to sink, acknowledgements back, sequence numbers count segments, and
//! the connection is open from the start. Not here: payload, byte-level sequence numbers, handshakes and resets, path MTU.
//! `docs/tcp.md` says which section of which RFC is where, and where ns-2 is followed instead.

mod bit_ring;
mod classic;
mod config;
mod control;
mod cumulative;
mod linux;
mod ring;
mod rto;
mod sack1;
mod scoreboard;
mod segment;
mod selective;
mod sender;
mod sink;
mod vegas;

pub use config::{Config, Flavour, Timers};
pub use segment::{Kind, SackBlock, Segment};
pub use sender::{Counters, Sender};
pub use sink::Sink;
