//! Drivers for real sockets: they run a sender's or a receiver's endpoint over UDP multicast on Linux, and the two ends of a
//! paced stream over unicast.
//!
//! Not here: protocol decisions. No rate, no window, no level is chosen in this crate; it reads the clock, moves packets,
//! keeps memberships, and tells endpoints what happened and when. It is the only crate with clocks and sockets.

pub mod clock;
pub mod description;
mod emulator;
mod error;
mod everything;
pub mod interface;
mod probes;
pub mod receipts;
pub mod receiver;
pub mod sender;
pub mod socket;
pub mod stream;

pub use description::Description;
pub use error::NetError;
pub use interface::{Interface, InterfaceChoice};
