//! The RTP header (RFC 3550 §5.1). What precedes the payload of a paced stream's data packets.
//!
//! A header extension (RFC 8285) tells of payloads that may be sent again, and of the pictures that they are of; that of layered media over
//! multicast is [`crate::media`]'s. Other extensions and contributing sources are skipped.

use crate::media::PicturePlace;
use crate::{DecodeError, Paced, take, take_array};

/// An RTP header. This code reads any, and writes the twelve fixed bytes, with [`Origin`] behind them or without.
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
    /// What its header extension tells of its payload.
    pub origin: Option<Origin>,
}

/// Where a payload belongs in its stream, whichever packet carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Number of the payload; wraps.
    pub number: u16,
    /// When the sender got it, in microseconds of the sender's clock; wraps. Of a part of a picture: when it is sent.
    pub micros: u32,
    /// Of layered media: which part of which picture it is.
    pub part: Option<Part>,
}

/// A part of a picture of layered media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// The picture's place in the programme.
    pub picture: PicturePlace,
    /// Number of the part within its layer, the same when it is sent again; wraps.
    pub sequence: u16,
    /// How much later than it is sent the picture would be, were it sent at its time, in milliseconds; negative for what has waited.
    pub lead_ms: i16,
}

impl Part {
    fn encode(&self) -> [u8; PART_LEN] {
        let [a, b, c, d] = self.picture.encode();
        let ([high, low], [first, second]) = (self.sequence.to_be_bytes(), self.lead_ms.to_be_bytes());
        [a, b, c, d, high, low, first, second]
    }

    fn decode(bytes: [u8; PART_LEN]) -> Part {
        let [a, b, c, d, high, low, first, second] = bytes;
        Part {
            picture: PicturePlace::decode([a, b, c, d]),
            sequence: u16::from_be_bytes([high, low]),
            lead_ms: i16::from_be_bytes([first, second]),
        }
    }
}

impl Rtp {
    /// Bytes of the fixed header: no contributing sources, no extension.
    pub const LEN: usize = 12;

    /// Bytes of a header that tells of its payload's origin.
    pub const LEN_WITH_ORIGIN: usize = Rtp::LEN + EXTENSION_LEN;

    /// Bytes of a header that tells of its payload's origin and of the picture that it is a part of.
    pub const LEN_WITH_PART: usize = Rtp::LEN_WITH_ORIGIN + (1 + PART_LEN).next_multiple_of(4);

    /// The header of a packet of a stream, with the payload's origin if it is known; returns its length, at most [`Rtp::LEN_WITH_PART`].
    pub fn encode_into(&self, out: &mut [u8]) -> usize {
        out[..Rtp::LEN].copy_from_slice(&self.encode());
        let Some(Origin { number, micros, part }) = self.origin else { return Rtp::LEN };
        let len = if part.is_some() { Rtp::LEN_WITH_PART } else { Rtp::LEN_WITH_ORIGIN };
        out[0] |= EXTENSION;
        let extension = &mut out[Rtp::LEN..len];
        let words = (extension.len() / 4 - 1) as u16;
        extension[..2].copy_from_slice(&ONE_BYTE_ELEMENTS.to_be_bytes());
        extension[2..4].copy_from_slice(&words.to_be_bytes());
        extension[4] = element(NUMBER, 2);
        extension[5..7].copy_from_slice(&number.to_be_bytes());
        extension[7] = element(MICROS, 4);
        extension[8..12].copy_from_slice(&micros.to_be_bytes());
        if let Some(part) = part {
            extension[12..].fill(0);
            extension[12] = element(PART, PART_LEN as u8);
            extension[13..13 + PART_LEN].copy_from_slice(&part.encode());
        }
        len
    }

    /// The fixed header of a packet whose payload follows it to the end of the datagram.
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
        let (header, elements, payload) = Rtp::split(packet)?;
        Ok((Rtp { origin: origin(elements), ..header }, payload))
    }

    /// Splits a packet into its header without origin, the elements of its header extension, and its payload.
    pub(crate) fn split(packet: &[u8]) -> Result<(Rtp, &[u8], &[u8]), DecodeError> {
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
            origin: None,
        };
        take(&mut rest, usize::from(first & CSRC_COUNT) * 4, "RTP contributing sources")?;
        let mut elements: &[u8] = &[];
        if first & EXTENSION != 0 {
            let [kind, detail, high, low] = take_array(&mut rest, "RTP header extension")?;
            let len = usize::from(u16::from_be_bytes([high, low])) * 4;
            let extension = take(&mut rest, len, "RTP header extension")?;
            if u16::from_be_bytes([kind, detail]) == ONE_BYTE_ELEMENTS {
                elements = extension;
            }
        }
        if first & PADDING != 0 {
            rest = unpadded(rest)?;
        }
        Ok((header, elements, rest))
    }

    const fn payload_number(&self) -> Option<u16> {
        match self.origin {
            Some(Origin { number, .. }) => Some(number),
            None => None,
        }
    }

    /// The part that congestion control looks at.
    pub const fn paced(&self) -> Paced {
        Paced { sequence: self.sequence, payload: self.payload_number() }
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

/// What elements tell of the payload; `None` unless its number and its time are there.
fn origin(elements: &[u8]) -> Option<Origin> {
    let (mut number, mut micros, mut part) = (None, None, None);
    for (id, value) in self::elements(elements) {
        match id {
            NUMBER => number = value.try_into().ok().map(u16::from_be_bytes),
            MICROS => micros = value.try_into().ok().map(u32::from_be_bytes),
            PART => part = value.try_into().ok().map(Part::decode),
            _ => {}
        }
    }
    Some(Origin { number: number?, micros: micros?, part })
}

/// The identifiers and values of elements with one byte before each (RFC 8285 §4.2), up to the first that cannot be read.
pub(crate) fn elements(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        loop {
            let (first, tail) = rest.split_first()?;
            if *first == 0 {
                // Padding between elements.
                rest = tail;
                continue;
            }
            let (id, len) = (first >> 4, usize::from(first & 0x0f) + 1);
            let (value, tail) = tail.split_at_checked(len).filter(|_| id != STOP)?;
            rest = tail;
            return Some((id, value));
        }
    })
}

/// The byte before an element of `len` bytes.
pub(crate) const fn element(id: u8, len: u8) -> u8 {
    id << 4 | (len - 1)
}

/// Says that elements with one byte before each follow (RFC 8285 §4.2).
pub(crate) const ONE_BYTE_ELEMENTS: u16 = 0xbede;
/// Local identifiers of the elements.
const NUMBER: u8 = 1;
const MICROS: u8 = 2;
/// 3 and 4 are [`crate::media`]'s.
const PART: u8 = 5;
const PART_LEN: usize = 8;
/// Nothing is read behind an element with this identifier (RFC 8285 §4.2).
const STOP: u8 = 15;
const EXTENSION_LEN: usize = 12;

pub(crate) const VERSION: u8 = 2;
pub(crate) const PADDING: u8 = 0x20;
pub(crate) const EXTENSION: u8 = 0x10;
const CSRC_COUNT: u8 = 0x0f;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Rtp = Rtp {
        marker: true,
        payload_type: 33,
        sequence: 0x1234,
        timestamp: 0xdead_beef,
        ssrc: 0x0102_0304,
        origin: None,
    };

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
    fn the_origin_of_a_payload_is_laid_out_as_rfc_8285_has_it() {
        let origin = Some(Origin { number: 0x1234, micros: 0x5566_7788, part: None });
        let mut bytes = [0; Rtp::LEN_WITH_ORIGIN];
        assert_eq!(Rtp { origin, ..HEADER }.encode_into(&mut bytes), 24);
        assert_eq!(bytes[0], 0x90);
        assert_eq!(bytes[12..], [0xbe, 0xde, 0, 2, 0x11, 0x12, 0x34, 0x23, 0x55, 0x66, 0x77, 0x88]);
    }

    #[test]
    fn the_picture_of_a_payload_is_laid_out_as_documented() {
        let picture =
            PicturePlace { number: 0x0102, needs: 2, layer: 1, is_key: false, is_leading: true, is_start: true };
        let part = Some(Part { picture, sequence: 0x0304, lead_ms: -2 });
        let mut bytes = [0xff; Rtp::LEN_WITH_PART];
        assert_eq!(Rtp { origin: Some(Origin { number: 7, micros: 8, part }), ..HEADER }.encode_into(&mut bytes), 36);
        assert_eq!(bytes[12..24], [0xbe, 0xde, 0, 5, 0x11, 0, 7, 0x23, 0, 0, 0, 8]);
        assert_eq!(bytes[24..], [0x57, 1, 2, 2, 0x61, 3, 4, 0xff, 0xfe, 0, 0, 0]);
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
            timestamp in any::<u32>(), ssrc in any::<u32>(), told in any::<Option<(u16, u32, Option<(u16, u16, i16)>)>>(),
        ) {
            let origin = told.map(|(number, micros, place)| {
                let part = place.map(|(number, sequence, lead_ms)| {
                    Part { picture: PicturePlace { number, ..PicturePlace::default() }, sequence, lead_ms }
                });
                Origin { number, micros, part }
            });
            let header = Rtp { marker, payload_type, sequence, timestamp, ssrc, origin };
            let mut bytes = [0; Rtp::LEN_WITH_PART];
            let len = header.encode_into(&mut bytes);
            prop_assert_eq!(Rtp::decode(&bytes[..len]), Ok((header, &[][..])));
        }

        #[test]
        fn whatever_an_extension_holds_the_rest_is_read(elements in proptest::collection::vec(any::<[u8; 4]>(), 0..20)) {
            let mut packet = HEADER.encode().to_vec();
            packet[0] |= EXTENSION;
            packet.extend([0xbe, 0xde, 0, elements.len() as u8]);
            packet.extend(elements.concat());
            packet.extend([7, 8, 9]);
            let (header, payload) = Rtp::decode(&packet).expect("its lengths are right");
            prop_assert_eq!((Rtp { origin: None, ..header }, payload), (HEADER, &[7, 8, 9][..]));
        }
    }
}
