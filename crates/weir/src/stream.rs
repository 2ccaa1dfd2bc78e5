//! Streams over a tree: `weir send stream` sends bytes in order to all members, `weir recv stream://…` is one, and `weir agent`
//! serves others.

mod address;
mod ends;
pub mod events;
mod member;
mod node;
mod seal;
mod send;
mod spool;
pub(crate) mod words;

pub(crate) use address::{LEAST_PACKET, PREFIX};
pub use address::{StreamAddress, StreamAddressError};
pub use ends::{StreamReader, StreamWriter};
pub(crate) use events::StreamEvent;
pub use member::{receive, serve};
pub use send::run as send;

#[cfg(test)]
pub(crate) use events::samples;
