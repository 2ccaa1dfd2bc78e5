//! Bytes to typed headers and back: LCT (RFC 5651), ALC (RFC 5775), FLUTE's extensions (RFC 6726), RTP and RTCP (RFC 3550,
//! RFC 8888), MTCP's packets, receipts, what receivers lack, round-trip probes, announcements (RFC 2974), and a header for protocols under trial.
//!
//! Not here: what the headers mean. Decoding never panics, never allocates, and borrows what it can; `docs/wire.md` draws
//! every layout.

#![no_std]

pub mod alc;
pub mod auth;
pub mod experimental;
pub mod extension;
pub mod fec;
mod header;
pub mod lack;
mod layered;
pub mod lct;
mod locator;
pub mod media;
pub mod mtcp;
mod paced;
pub mod probe;
pub mod receipt;
pub mod rtcp;
pub mod rtp;
pub mod sap;

pub use experimental::Experimental;
pub use header::{Header, MAX_SPECIMEN, Specimen};
pub use layered::{CciForm, Layered};
pub use locator::Locator;
pub use paced::{Feedback, Paced};
pub use probe::Probe;
pub use sap::Sap;

/// Why bytes are not a packet of ours. The packet is dropped and counted; nothing else may follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The packet ends inside a field.
    #[error("{field} needs {needed} bytes, {left} are left")]
    Truncated {
        /// The field.
        field: &'static str,
        /// Bytes that the field needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A version that this code does not speak.
    #[error("{protocol} version {version} is not supported")]
    Version {
        /// The protocol.
        protocol: &'static str,
        /// The version in the packet.
        version: u8,
    },
    /// A field whose value contradicts the rest of the packet.
    #[error("{field} has the impossible value {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Splits `n` bytes off the front of `bytes`.
fn take<'a>(bytes: &mut &'a [u8], n: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let (head, tail) =
        bytes.split_at_checked(n).ok_or(DecodeError::Truncated { field, needed: n, left: bytes.len() })?;
    *bytes = tail;
    Ok(head)
}

/// Splits an array of `N` bytes off the front of `bytes`.
fn take_array<const N: usize>(bytes: &mut &[u8], field: &'static str) -> Result<[u8; N], DecodeError> {
    let head = take(bytes, N, field)?;
    Ok(head.try_into().expect("take returned exactly N bytes"))
}
