//! What proves who sent a packet: EXT_AUTH (RFC 5651 §5.2.1, RFC 6584) as the first extension of an LCT header, or the same at the end of an
//! RTP or RTCP packet, as padding (RFC 3550 §5.1), so that a player that knows nothing of it plays what it is put on.
//!
//! Here is where it stands and how it is taken out again. What its body says is its scheme's business.

use crate::rtp::PADDING;
use crate::{DecodeError, lct};

/// A packet that bears a proof, in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authenticated<'a> {
    /// Number of the authentication scheme, 4 bits.
    pub scheme: u8,
    /// The 12 bits next to it, which RFC 6584 reserves.
    pub detail: u16,
    /// What follows in the extension.
    pub body: &'a [u8],
    /// The packet in front of the proof. Its header still tells of that.
    head: &'a [u8],
    tail: &'a [u8],
    carrier: Carrier,
}

/// What bears the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// An LCT header.
    Lct,
    /// An RTP packet's padding, which it had without the proof, too, or not.
    Rtp { is_padded: bool },
}

impl<'a> Authenticated<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// [`DecodeError`] if it is neither an LCT nor an RTP packet, or bears no proof.
    pub fn decode(packet: &'a [u8]) -> Result<Authenticated<'a>, DecodeError> {
        if is_rtp(packet) {
            return Authenticated::decode_rtp(packet);
        }
        let (at, end) = lct::extensions(packet)?;
        let first: [u8; 4] = packet[at..end].first_chunk().copied().ok_or(MISSING)?;
        let [kind, words, scheme, detail] = first;
        let len = usize::from(words) * 4;
        if kind != AUTH || len < 4 || at + len > end {
            return Err(MISSING);
        }
        Ok(Authenticated {
            scheme: scheme >> 4,
            detail: u16::from_be_bytes([scheme & 0x0f, detail]),
            body: &packet[at + 4..at + len],
            head: &packet[..at],
            tail: &packet[at + len..],
            carrier: Carrier::Lct,
        })
    }

    fn decode_rtp(packet: &'a [u8]) -> Result<Authenticated<'a>, DecodeError> {
        let (rest, &[scheme, detail, words, count]) = packet.split_last_chunk().ok_or(MISSING)?;
        let (words, is_padded) = (usize::from(words & !WAS_PADDED), words & WAS_PADDED != 0);
        let body_len = (words * 4).checked_sub(4).ok_or(MISSING)?;
        let (head, body) = rest.len().checked_sub(body_len).map(|at| rest.split_at(at)).ok_or(MISSING)?;
        let own = if is_padded { head.last().copied().map_or(0, usize::from) } else { 0 };
        if head.len() < LEAST_RTP || packet[0] & PADDING == 0 || usize::from(count) != words * 4 + own {
            return Err(MISSING);
        }
        let detail = u16::from_be_bytes([scheme & 0x0f, detail]);
        Ok(Authenticated { scheme: scheme >> 4, detail, body, head, tail: &[], carrier: Carrier::Rtp { is_padded } })
    }

    /// Bytes of the packet without the proof.
    pub fn stripped_len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Writes the packet without the proof to the front of `out`, which has [`Authenticated::stripped_len`] bytes or more; returns
    /// how many that were.
    pub fn strip(&self, out: &mut [u8]) -> usize {
        let at = self.head.len();
        out[..at].copy_from_slice(self.head);
        match self.carrier {
            Carrier::Lct => out[WORDS] -= (self.body.len() / 4 + 1) as u8,
            Carrier::Rtp { is_padded: true } => {}
            Carrier::Rtp { is_padded: false } => out[0] &= !PADDING,
        }
        out[at..self.stripped_len()].copy_from_slice(self.tail);
        self.stripped_len()
    }
}

/// Writes `packet` to the front of `out` with a proof with this body of whole words; returns how many bytes that is. `out` has [`len`] bytes
/// more than the packet.
///
/// # Errors
/// [`DecodeError`] if `packet` is neither an LCT nor an RTP packet; if an LCT header would have more than the 255 words that it can count, or
/// an RTP packet more than 255 bytes of padding.
pub fn insert(packet: &[u8], scheme: u8, detail: u16, body: &[u8], out: &mut [u8]) -> Result<usize, DecodeError> {
    debug_assert!(body.len().is_multiple_of(4) && scheme < 16 && detail < 1 << 12, "whole words, 4 bits and 12");
    let words = body.len() / 4 + 1;
    if is_rtp(packet) {
        return insert_rtp(packet, scheme, detail, body, out);
    }
    let (at, end) = lct::extensions(packet)?;
    if end / 4 + words > 255 {
        return Err(DecodeError::Value { field: "LCT header length", value: (end / 4 + words) as u64 });
    }
    let [high, low] = detail.to_be_bytes();
    let parts = [&packet[..at], &[AUTH, words as u8, scheme << 4 | high, low], body, &packet[at..]];
    let mut len = 0;
    for part in parts {
        out[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    out[WORDS] += words as u8;
    Ok(len)
}

fn insert_rtp(packet: &[u8], scheme: u8, detail: u16, body: &[u8], out: &mut [u8]) -> Result<usize, DecodeError> {
    let is_padded = packet[0] & PADDING != 0;
    let own = if is_padded { packet.last().copied().map_or(0, usize::from) } else { 0 };
    let count = len(body.len()) + own;
    if count > 255 || packet.len() < LEAST_RTP {
        return Err(DecodeError::Value { field: "RTP padding", value: count as u64 });
    }
    let [high, low] = detail.to_be_bytes();
    let words = (len(body.len()) / 4) as u8 | if is_padded { WAS_PADDED } else { 0 };
    let (front, end) = out[..packet.len() + len(body.len())].split_at_mut(packet.len());
    front.copy_from_slice(packet);
    front[0] |= PADDING;
    let (to, tail) = end.split_at_mut(body.len());
    to.copy_from_slice(body);
    tail.copy_from_slice(&[scheme << 4 | high, low, words, count as u8]);
    Ok(packet.len() + len(body.len()))
}

/// RTP and RTCP have version 2, LCT has version 1 in twice as many bits.
fn is_rtp(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 6 == 2)
}

/// Bytes that a proof with a body of this length takes.
pub const fn len(body: usize) -> usize {
    4 + body
}

/// The header extension type.
const AUTH: u8 = 1;
/// In the third byte from the end of an RTP packet: it has padding without the proof, too.
const WAS_PADDED: u8 = 0x80;
/// The shortest packets of RTP and RTCP have this many bytes.
const LEAST_RTP: usize = 8;
/// Where an LCT header counts its words.
const WORDS: usize = 2;
const MISSING: DecodeError = DecodeError::Truncated { field: "EXT_AUTH", needed: 4, left: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alc::{Alc, Content, MAX_OVERHEAD, Profile};
    use crate::fec::PayloadId;
    use crate::media::{Media, filled};
    use crate::rtcp::{self, Bye};
    use crate::rtp::Rtp;
    use crate::{CciForm, Layered};
    use proptest::prelude::*;

    struct Packet {
        bytes: [u8; MAX_OVERHEAD + 6],
        len: usize,
    }

    impl Packet {
        fn bytes(&self) -> &[u8] {
            &self.bytes[..self.len]
        }
    }

    fn packet(form: CciForm, toi: u128) -> Packet {
        let content =
            Content { toi, encoding_id: 6, payload_id: PayloadId::default(), fdt: None, oti: None, ask: None };
        let mut bytes = [0; MAX_OVERHEAD + 6];
        let len = Profile { tsi: 7, form }.encode(&Layered::default(), &content, &mut bytes);
        bytes[len..len + 6].copy_from_slice(b"symbol");
        Packet { bytes, len: len + 6 }
    }

    proptest! {
        #[test]
        fn what_was_inserted_is_read_and_taken_out_again(
            form in prop_oneof![Just(CciForm::Short), Just(CciForm::Long), Just(CciForm::Clocked)],
            toi in 0u128..1 << 48, scheme in 0u8..16, detail in 0u16..1 << 12, words in 0usize..60,
        ) {
            let packet = packet(form, toi);
            let body = &[0xa5; 240][..words * 4];
            let mut out = [0; 512];
            let sealed = insert(packet.bytes(), scheme, detail, body, &mut out).expect("it fits");
            prop_assert_eq!(sealed, packet.len + len(body.len()));
            let out = &out[..sealed];
            // A receiver that does not know the extension reads the same packet.
            prop_assert_eq!(Alc::decode(out).map(|alc| (alc.tsi, alc.content, alc.symbol)),
                Alc::decode(packet.bytes()).map(|alc| (alc.tsi, alc.content, alc.symbol)));
            let read = Authenticated::decode(out).expect("our own");
            prop_assert_eq!((read.scheme, read.detail, read.body), (scheme, detail, body));
            let mut stripped = [0; 512];
            let len = read.strip(&mut stripped);
            prop_assert_eq!(&stripped[..len], packet.bytes());
        }

        #[test]
        fn a_player_finds_the_payload_of_an_rtp_packet_with_a_proof_and_taking_it_out_gives_the_packet(
            payload in 0usize..40, scheme in 0u8..16, detail in 0u16..1 << 12, words in 0usize..50,
        ) {
            let (mut packet, mut filling) = ([0; Media::LEN + 40], [0; 40]);
            let fill = filled(&[0x77; 40][..payload], 40, &mut filling);
            let header = Media { fill, ..Media::default() }.encode(&Layered::default(), &mut packet);
            packet[header..].copy_from_slice(&filling);
            let body = &[0xa5; 200][..words * 4];
            let mut out = [0; 512];
            let sealed = insert(&packet, scheme, detail, body, &mut out).expect("it fits");
            prop_assert_eq!(sealed, packet.len() + len(body.len()));
            prop_assert_eq!(Rtp::decode(&out[..sealed]), Rtp::decode(&packet));
            let read = Authenticated::decode(&out[..sealed]).expect("our own");
            prop_assert_eq!((read.scheme, read.detail, read.body), (scheme, detail, body));
            let mut stripped = [0; 512];
            let len = read.strip(&mut stripped);
            prop_assert_eq!(&stripped[..len], &packet[..]);
        }

        #[test]
        fn any_bytes_are_read_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(read) = Authenticated::decode(&bytes) {
                read.strip(&mut [0; 100]);
            }
            let _ = insert(&bytes, 1, 0, &[0; 16], &mut [0; 120]);
            let mut rtp = bytes;
            rtp.iter_mut().take(1).for_each(|first| *first |= 0x80);
            if let Ok(read) = Authenticated::decode(&rtp) {
                read.strip(&mut [0; 100]);
            }
        }
    }

    #[test]
    fn a_goodbye_bears_a_proof_as_rtp_does_and_without_one_is_refused() {
        let bye = Bye { ssrc: 7 }.encode();
        let mut out = [0; 64];
        let sealed = insert(&bye, 1, 0, &[9; 32], &mut out).expect("it fits");
        let read = Authenticated::decode(&out[..sealed]).expect("our own");
        let mut stripped = [0; 64];
        let len = read.strip(&mut stripped);
        assert_eq!(&stripped[..len], bye);
        assert!(rtcp::is_rtcp(&stripped[..len]) && Authenticated::decode(&bye).is_err());
        // More padding than a packet can count.
        assert!(insert(&bye, 1, 0, &[9; 252], &mut [0; 300]).is_err());
    }

    #[test]
    fn a_packet_without_the_extension_or_with_a_full_header_is_refused() {
        let plain = packet(CciForm::Clocked, 1);
        assert!(Authenticated::decode(plain.bytes()).is_err());
        assert!(insert(plain.bytes(), 1, 0, &[0; 1016], &mut [0; 2000]).is_err());
        assert!(insert(b"WEXP", 1, 0, &[0; 16], &mut [0; 100]).is_err());
    }
}
