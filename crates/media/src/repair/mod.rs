//! Systematic FEC over the RTP packets of one layer's stream (RaptorQ, RFC 6330).
//!
//! Packets go out as they are. Of each window of them a block is made, in which every packet is a symbol: its length in two
//! bytes, its bytes, zeros up to the size of the longest. A repair payload is eight bytes and a repair symbol of the block:
//!
//! ```text
//! base sequence number 16 | packets 16 | encoding symbol id 32 | symbol
//! ```
//!
//! Numbers are big-endian. The identifiers of source symbols are 0 to packets - 1, and repair symbols follow (RFC 6330 §5.3.5.1).

mod protect;
mod recover;

pub use protect::{Block, Protector};
pub use recover::{Recovered, Recovery, RecoveryCounts};

use raptorq::ObjectTransmissionInformation;

/// The most packets of a block.
pub const MAX_BLOCK_PACKETS: usize = 512;

/// The most bytes of a symbol: a packet and two bytes for its length.
pub const MAX_SYMBOL_BYTES: usize = 1500;

/// How many bytes a repair payload is longer than the longest packet that it protects.
pub const REPAIR_OVERHEAD: usize = HEADER + LENGTH;

/// Bytes in front of the symbol in a repair payload.
const HEADER: usize = 8;

/// Bytes in front of the packet in a symbol.
const LENGTH: usize = 2;

/// What the codec has to know of a block.
fn codec(packets: usize, symbol_bytes: usize) -> ObjectTransmissionInformation {
    // Both are within their limits, and so within these types.
    ObjectTransmissionInformation::new((packets * symbol_bytes) as u64, symbol_bytes as u16, 1, 1, 1)
}

#[cfg(test)]
mod tests;
