//! Layered media over multicast: RTP (RFC 3550) whose header extension (RFC 8285) carries what congestion control and the play-out
//! buffer need. A player that knows nothing of it plays the base layer's group.
//!
//! Two elements stand in the extension: the congestion control information in its 96-bit form (identifier 3), in every packet; and
//! the picture's place in the programme (identifier 4), in packets of pictures. Every packet has the session's full size: what a
//! payload does not fill is filled with padding between it and the extension's elements, and up to three bytes of RTP padding, which
//! cannot count beyond 255.

use crate::rtp::{EXTENSION, ONE_BYTE_ELEMENTS, PADDING, Rtp, element, elements};
use crate::{CciForm, DecodeError, Layered};

/// What stands before the payload of a packet of layered media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Media {
    /// The RTP header. Its SSRC is that of a [`StreamId`]; its origin is not used.
    pub rtp: Rtp,
    /// The picture that the payload is of; `None` in packets of repair and padding.
    pub picture: Option<PicturePlace>,
    /// Bytes of padding, before the payload and behind it ([`filled`]).
    pub fill: u16,
}

/// A picture's place in the programme, over all its layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PicturePlace {
    /// Number in decoding order, over all layers; wraps.
    pub number: u16,
    /// How many pictures earlier, in decoding order, the picture is that this one needs to be decoded; 0 for none.
    pub needs: u8,
    /// Its layer, 0 the base, 0 to 7.
    pub layer: u8,
    /// A decoder can begin with it.
    pub is_key: bool,
    /// It needs the latest key picture, too: it follows it in decoding order and precedes it in presentation.
    pub is_leading: bool,
    /// The packet is its first.
    pub is_start: bool,
}

impl Media {
    /// Bytes before the payload of every packet, so that all payloads have the same room.
    pub const LEN: usize = Rtp::LEN + EXTENSION_LEN;

    /// Writes all that stands before what [`filled`] makes of the payload; returns its length, [`Media::LEN`].
    pub fn encode(&self, layered: &Layered, out: &mut [u8]) -> usize {
        out[..Rtp::LEN].copy_from_slice(&self.rtp.encode());
        out[0] |= EXTENSION | if self.fill.is_multiple_of(4) { 0 } else { PADDING };
        let extension = &mut out[Rtp::LEN..Media::LEN];
        extension.fill(0);
        extension[..2].copy_from_slice(&ONE_BYTE_ELEMENTS.to_be_bytes());
        let words = EXTENSION_LEN as u16 / 4 - 1 + self.fill / 4;
        extension[2..4].copy_from_slice(&words.to_be_bytes());
        extension[4] = element(CONTROL, FORM.len() as u8);
        let (control, place) = extension[5..].split_at_mut(FORM.len());
        FORM.encode(layered, control);
        if let Some(picture) = self.picture {
            place[0] = element(PLACE, PLACE_LEN as u8);
            place[1..=PLACE_LEN].copy_from_slice(&picture.encode());
        }
        Media::LEN
    }

    /// Splits a packet into its headers and its payload; padding is left out.
    pub fn decode(packet: &[u8]) -> Result<(Layered, Media, &[u8]), DecodeError> {
        let (rtp, extension, payload) = Rtp::split(packet)?;
        let (mut layered, mut picture) = (None, None);
        for (id, value) in elements(extension) {
            match (id, value) {
                (CONTROL, value) => layered = FORM.decode(value, 0).ok(),
                (PLACE, &[a, b, c, d]) => picture = Some(PicturePlace::decode([a, b, c, d])),
                _ => {}
            }
        }
        let layered =
            layered.ok_or(DecodeError::Truncated { field: "congestion control", needed: FORM.len(), left: 0 })?;
        let fill = packet.len().saturating_sub(Media::LEN + payload.len());
        Ok((layered, Media { rtp, picture, fill: u16::try_from(fill).unwrap_or(u16::MAX) }, payload))
    }
}

/// Puts a payload of at most `room` bytes into `out`, with so much padding that it is `room` bytes long; returns how much that is.
pub fn filled(payload: &[u8], room: usize, out: &mut [u8]) -> u16 {
    let fill = room.saturating_sub(payload.len());
    let (before, behind) = (fill - fill % 4, fill % 4);
    let (front, rest) = out[..payload.len() + fill].split_at_mut(before);
    let (content, tail) = rest.split_at_mut(payload.len());
    front.fill(0);
    content.copy_from_slice(payload);
    tail.fill(behind as u8);
    fill as u16
}

impl PicturePlace {
    pub(crate) fn encode(self) -> [u8; PLACE_LEN] {
        let [high, low] = self.number.to_be_bytes();
        let flags = u8::from(self.is_key) << 7 | u8::from(self.is_start) << 6 | u8::from(self.is_leading) << 5;
        [high, low, self.needs, flags | self.layer & LAYER]
    }

    pub(crate) fn decode([high, low, needs, last]: [u8; PLACE_LEN]) -> PicturePlace {
        let number = u16::from_be_bytes([high, low]);
        let [is_key, is_start, is_leading] = [0x80, 0x40, 0x20].map(|bit| last & bit != 0);
        PicturePlace { number, needs, layer: last & LAYER, is_key, is_leading, is_start }
    }
}

/// A stream of RTP packets of a session, which its SSRC names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamId {
    /// The session, the upper 16 bits of the SSRC.
    pub tsi: u16,
    /// Which start of the sender: 12 bits, by chance. A receiver begins anew with another one.
    pub start: u16,
    /// Whether it repairs the layer: one bit.
    pub is_repair: bool,
    /// The layer, 3 bits.
    pub layer: u8,
}

impl StreamId {
    /// The SSRC.
    pub const fn ssrc(self) -> u32 {
        let StreamId { tsi, start, is_repair, layer } = self;
        (tsi as u32) << 16 | ((start & 0xfff) as u32) << 4 | (is_repair as u32) << 3 | (layer & LAYER) as u32
    }

    /// The stream that an SSRC names.
    pub const fn of(ssrc: u32) -> StreamId {
        StreamId {
            tsi: (ssrc >> 16) as u16,
            start: (ssrc >> 4) as u16 & 0xfff,
            is_repair: ssrc & 8 != 0,
            layer: ssrc as u8 & LAYER,
        }
    }
}

/// The form of the congestion control information.
pub const FORM: CciForm = CciForm::Clocked;

/// Local identifiers of the elements. 1, 2 and 5 are those of [`crate::rtp::Origin`].
const CONTROL: u8 = 3;
const PLACE: u8 = 4;
const PLACE_LEN: usize = 4;
const LAYER: u8 = 0x07;
/// Four bytes before the elements, one before each, and padding to whole words.
const EXTENSION_LEN: usize = (4 + 1 + FORM.len() + 1 + PLACE_LEN).next_multiple_of(4);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: StreamId = StreamId { tsi: 7, start: 0x123, is_repair: false, layer: 1 };

    #[test]
    fn the_header_stands_byte_by_byte_as_documented() {
        let rtp = Rtp {
            marker: true,
            payload_type: 98,
            sequence: 0x1234,
            timestamp: 0x0506_0708,
            ssrc: STREAM.ssrc(),
            origin: None,
        };
        let picture =
            Some(PicturePlace { number: 0x0102, needs: 2, layer: 1, is_key: false, is_leading: true, is_start: true });
        let layered = Layered { signal: true, slot: 3, channel: 1, sequence: 9, clock_micros: 0x0a0b_0c0d };
        let mut out = [0xff; Media::LEN];
        assert_eq!(Media { rtp, picture, fill: 9 }.encode(&layered, &mut out), 36);
        let expected = [
            0xb0, 0xe2, 0x12, 0x34, 5, 6, 7, 8, 0, 7, 0x12, 0x31, // RTP, with padding and extension
            0xbe, 0xde, 0, 7, // five words of elements with one byte before each, and two of padding
            0x3b, 0x80, 3, 0, 1, 0, 0, 0, 9, 0x0a, 0x0b, 0x0c, 0x0d, // congestion control
            0x43, 1, 2, 2, 0x61, 0, 0, // place, padding of the extension
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_packet_without_congestion_control_is_refused() {
        let mut packet = Rtp::default().encode().to_vec();
        assert!(Media::decode(&packet).is_err());
        packet[0] |= EXTENSION;
        packet.extend([0xbe, 0xde, 0, 1, 0x43, 1, 2, 3]);
        assert!(Media::decode(&packet).is_err());
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_packet_gives_it_back(
            (marker, payload_type, sequence, timestamp, ssrc) in (any::<bool>(), 0u8..128, any::<u16>(), any::<u32>(), any::<u32>()),
            place in any::<Option<(u16, u8, u8, [bool; 3])>>(),
            (signal, slot, channel, number, clock) in (any::<bool>(), 0u16..1 << 15, any::<u16>(), any::<u32>(), any::<u32>()),
            len in 0usize..1400,
        ) {
            let rtp = Rtp { marker, payload_type, sequence, timestamp, ssrc, origin: None };
            let picture = place.map(|(number, needs, layer, [is_key, is_start, is_leading])| PicturePlace { number, needs, layer: layer & LAYER, is_key, is_leading, is_start });
            let payload = [7; 1400];
            let mut content = [0xff; 1400];
            let media = Media { rtp, picture, fill: filled(&payload[..len], 1400, &mut content) };
            let layered = Layered { signal, slot, channel, sequence: number, clock_micros: u64::from(clock) };
            let mut packet = [0; Media::LEN].to_vec();
            media.encode(&layered, &mut packet);
            packet.extend(content);
            prop_assert_eq!(Media::decode(&packet), Ok((layered, media, &payload[..len])));
        }

        #[test]
        fn an_ssrc_names_its_stream(ssrc in any::<u32>()) {
            prop_assert_eq!(StreamId::of(ssrc).ssrc(), ssrc);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Media::decode(&bytes);
        }
    }
}
