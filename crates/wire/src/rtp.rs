//! The RTP header (RFC 3550 §5.1). What precedes the payload of a paced stream's data packets.
//!
//! Not here: header extensions' content and contributing sources, which are skipped.

use crate::{DecodeError, Paced, take, take_array};

/// An RTP header, of which this code writes the twelve fixed bytes and reads any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rtp {
    /// What the payload format makes of it, such as the last packet of a frame.
    pub marker: bool,
    /// Payload type, 7 bits: 33 is an MPEG transport stream (RFC 3551 §6), 96 to 127 are agreed on elsewhere.
    pub payload_type: u8,
    /// Sequence number; wraps.
    pub sequence: u16,
    /// Sampling instant of the payload's first byte, in the payload format's clock; wraps.
    pub timestamp: u32,
    /// Synchronisation source: whose sequence and timestamp these are.
    pub ssrc: u32,
}

impl Rtp {
    /// Bytes of the header as written here: no contributing sources, no extension.
    pub const LEN: usize = 12;

    /// The header of a packet whose payload follows it to the end of the datagram.
    pub fn encode(&self) -> [u8; Rtp::LEN] {
        let mut out = [0; Rtp::LEN];
        out[0] = VERSION << 6;
        out[1] = u8::from(self.marker) << 7 | self.payload_type & 0x7f;
        out[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
        out
    }

    /// Splits a packet into its header and its payload; contributing sources, extension and padding are left out.
    pub fn decode(packet: &[u8]) -> Result<(Rtp, &[u8]), DecodeError> {
        let mut rest = packet;
        let [first, second] = take_array(&mut rest, "RTP header")?;
        if first >> 6 != VERSION {
            return Err(DecodeError::Version { protocol: "RTP", version: first >> 6 });
        }
        let header = Rtp {
            marker: second & 0x80 != 0,
            payload_type: second & 0x7f,
            sequence: u16::from_be_bytes(take_array(&mut rest, "RTP sequence number")?),
            timestamp: u32::from_be_bytes(take_array(&mut rest, "RTP timestamp")?),
            ssrc: u32::from_be_bytes(take_array(&mut rest, "RTP SSRC")?),
        };
        take(&mut rest, usize::from(first & CSRC_COUNT) * 4, "RTP contributing sources")?;
        if first & EXTENSION != 0 {
            let [_, _, high, low] = take_array(&mut rest, "RTP header extension")?;
            take(&mut rest, usize::from(u16::from_be_bytes([high, low])) * 4, "RTP header extension")?;
        }
        if first & PADDING != 0 {
            rest = unpadded(rest)?;
        }
        Ok((header, rest))
    }

    /// The part that congestion control looks at.
    pub const fn paced(&self) -> Paced {
        Paced { sequence: self.sequence }
    }
}

/// `bytes` without the padding at their end, whose last byte counts it, itself included.
pub(crate) fn unpadded(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let count = bytes.last().copied().unwrap_or(0);
    let impossible = DecodeError::Value { field: "padding", value: u64::from(count) };
    match bytes.len().checked_sub(usize::from(count)) {
        Some(len) if count > 0 => Ok(&bytes[..len]),
        _ => Err(impossible),
    }
}

pub(crate) const VERSION: u8 = 2;
pub(crate) const PADDING: u8 = 0x20;
const EXTENSION: u8 = 0x10;
const CSRC_COUNT: u8 = 0x0f;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Rtp =
        Rtp { marker: true, payload_type: 33, sequence: 0x1234, timestamp: 0xdead_beef, ssrc: 0x0102_0304 };

    #[test]
    fn the_fixed_header_is_laid_out_as_rfc_3550_draws_it() {
        let bytes = [0x80, 0xa1, 0x12, 0x34, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4];
        assert_eq!(HEADER.encode(), bytes);
        assert_eq!(Rtp::decode(&bytes), Ok((HEADER, &[][..])));
    }

    #[test]
    fn contributing_sources_extension_and_padding_are_skipped() {
        let mut packet = [0; 12 + 8 + 4 + 4 + 3 + 2];
        packet[..12].copy_from_slice(&HEADER.encode());
        packet[0] |= PADDING | EXTENSION | 2;
        packet[20..24].copy_from_slice(&[0xbe, 0xde, 0, 1]);
        packet[28..].copy_from_slice(&[7, 8, 9, 0, 2]);
        assert_eq!(Rtp::decode(&packet), Ok((HEADER, &[7, 8, 9][..])));
        packet[32] = 6;
        assert!(Rtp::decode(&packet).is_err(), "more padding than payload");
        packet[32] = 0;
        assert!(Rtp::decode(&packet).is_err(), "padding counts itself");
    }

    #[test]
    fn other_versions_and_cut_headers_are_refused() {
        assert_eq!(Rtp::decode(&[0x40; 12]), Err(DecodeError::Version { protocol: "RTP", version: 1 }));
        for len in 0..12 {
            assert!(Rtp::decode(&HEADER.encode()[..len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_header_gives_it_back(
            marker in any::<bool>(), payload_type in 0u8..128, sequence in any::<u16>(),
            timestamp in any::<u32>(), ssrc in any::<u32>(),
        ) {
            let header = Rtp { marker, payload_type, sequence, timestamp, ssrc };
            let bytes = header.encode();
            prop_assert_eq!(Rtp::decode(&bytes), Ok((header, &[][..])));
        }
    }
}
