//! EXT_AUTH (RFC 5651 §5.2.1, RFC 6584): what proves who sent a packet, as the first extension of its LCT header.
//!
//! Here is where it stands and how it is taken out again. What its body says is its scheme's business.

use crate::{DecodeError, lct};

/// A packet whose first header extension is EXT_AUTH, in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authenticated<'a> {
    /// Number of the authentication scheme, 4 bits.
    pub scheme: u8,
    /// The 12 bits next to it, which RFC 6584 reserves.
    pub detail: u16,
    /// What follows in the extension.
    pub body: &'a [u8],
    /// The packet in front of the extension. Its header still counts the extension's words.
    head: &'a [u8],
    tail: &'a [u8],
}

impl<'a> Authenticated<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no LCT packet, or its first extension is another.
    pub fn decode(packet: &'a [u8]) -> Result<Authenticated<'a>, DecodeError> {
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
        })
    }

    /// Bytes of the packet without the extension.
    pub fn stripped_len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Writes the packet without the extension to the front of `out`, which has [`Authenticated::stripped_len`] bytes or more; returns
    /// how many that were.
    pub fn strip(&self, out: &mut [u8]) -> usize {
        let at = self.head.len();
        out[..at].copy_from_slice(self.head);
        out[WORDS] -= (self.body.len() / 4 + 1) as u8;
        out[at..self.stripped_len()].copy_from_slice(self.tail);
        self.stripped_len()
    }
}

/// Writes `packet` to the front of `out` with EXT_AUTH as its first extension, with this body of whole words; returns how many bytes that is. `out`
/// has [`len`] bytes more than the packet.
///
/// # Errors
/// [`DecodeError`] if `packet` is no LCT packet, or its header would have more than the 255 words that it can count.
pub fn insert(packet: &[u8], scheme: u8, detail: u16, body: &[u8], out: &mut [u8]) -> Result<usize, DecodeError> {
    debug_assert!(body.len().is_multiple_of(4) && scheme < 16 && detail < 1 << 12, "whole words, 4 bits and 12");
    let words = body.len() / 4 + 1;
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

/// Bytes that an extension with a body of this length takes.
pub const fn len(body: usize) -> usize {
    4 + body
}

/// The header extension type.
const AUTH: u8 = 1;
/// Where an LCT header counts its words.
const WORDS: usize = 2;
const MISSING: DecodeError = DecodeError::Truncated { field: "EXT_AUTH", needed: 4, left: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alc::{Alc, Content, MAX_OVERHEAD, Profile};
    use crate::fec::PayloadId;
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
        let content = Content { toi, encoding_id: 6, payload_id: PayloadId::default(), fdt: None, oti: None };
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
        fn any_bytes_are_read_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(read) = Authenticated::decode(&bytes) {
                read.strip(&mut [0; 100]);
            }
            let _ = insert(&bytes, 1, 0, &[0; 16], &mut [0; 120]);
        }
    }

    #[test]
    fn a_packet_without_the_extension_or_with_a_full_header_is_refused() {
        let plain = packet(CciForm::Clocked, 1);
        assert!(Authenticated::decode(plain.bytes()).is_err());
        assert!(insert(plain.bytes(), 1, 0, &[0; 1016], &mut [0; 2000]).is_err());
        assert!(insert(b"WEXP", 1, 0, &[0; 16], &mut [0; 100]).is_err());
    }
}
