//! Packet captures in pcapng, for Wireshark and other analysers.
//!
//! A capture holds one record for each packet, with the IP and transport headers that the packet has on the network, checksums
//! included, and a time in nanoseconds. The drivers of `weir-net` record what they send and receive. The laboratory records
//! what its simulated links carry.
//!
//! Not here: sockets and clocks. The caller says what was sent and when, so this crate is portable.

mod error;
mod file;
mod packet;

pub use error::CaptureError;
pub use file::{Capture, Datagram};
pub use packet::{IpPacket, Transport};
