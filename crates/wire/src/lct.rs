//! The Layered Coding Transport header (RFC 5651 §5.1).

use crate::{DecodeError, take, take_array};

/// An LCT header, its extensions still in bytes (see [`crate::extension`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lct<'a> {
    /// The sender closes the session (flag A).
    pub close_session: bool,
    /// The sender closes the object (flag B).
    pub close_object: bool,
    /// The codepoint: FLUTE's FEC encoding id.
    pub codepoint: u8,
    /// Congestion control information: 4, 8, 12 or 16 bytes.
    pub cci: &'a [u8],
    /// Transport session identifier, up to 48 bits; zero where the header has none.
    pub tsi: u64,
    /// Transport object identifier, up to 112 bits; `None` where the header has none.
    pub toi: Option<u128>,
    /// The header extensions, a whole number of 32-bit words.
    pub extensions: &'a [u8],
}

impl<'a> Lct<'a> {
    /// Splits a packet into its LCT header and what follows it.
    pub fn decode(packet: &'a [u8]) -> Result<(Lct<'a>, &'a [u8]), DecodeError> {
        let mut rest = packet;
        let [first, second, words, codepoint] = take_array(&mut rest, "LCT header")?;
        let version = first >> 4;
        if version != VERSION {
            return Err(DecodeError::Version { protocol: "LCT", version });
        }
        let header_len = usize::from(words) * 4;
        let mut header = packet.get(4..header_len).ok_or(match header_len {
            0..4 => DecodeError::Value { field: "LCT header length", value: u64::from(words) },
            _ => DecodeError::Truncated { field: "LCT header", needed: header_len, left: packet.len() },
        })?;
        let half_word = usize::from(second >> 4 & 1) * 2;
        let cci = take(&mut header, (usize::from(first >> 2 & 3) + 1) * 4, "CCI")?;
        let tsi = take(&mut header, usize::from(second >> 7) * 4 + half_word, "TSI")?;
        let toi = take(&mut header, usize::from(second >> 5 & 3) * 4 + half_word, "TOI")?;
        let lct = Lct {
            close_session: second & 0b10 != 0,
            close_object: second & 0b01 != 0,
            codepoint,
            cci,
            tsi: big_endian(tsi) as u64,
            toi: (!toi.is_empty()).then(|| big_endian(toi)),
            extensions: header,
        };
        Ok((lct, &packet[header_len..]))
    }
}

/// Where the extensions of a packet's header begin and end.
pub(crate) fn extensions(packet: &[u8]) -> Result<(usize, usize), DecodeError> {
    let (header, rest) = Lct::decode(packet)?;
    let end = packet.len() - rest.len();
    Ok((end - header.extensions.len(), end))
}

/// Writes the four fixed bytes of a header that is `header_len` bytes long, with 16 bits of TSI and 16 or, for
/// `wide_toi`, 48 bits of TOI.
pub(crate) fn encode_fixed(
    header_len: usize,
    cci_len: usize,
    wide_toi: bool,
    close_session: bool,
    codepoint: u8,
) -> [u8; 4] {
    debug_assert!(header_len.is_multiple_of(4) && header_len / 4 <= 255, "an LCT header is up to 255 words");
    let first = VERSION << 4 | ((cci_len / 4 - 1) as u8) << 2;
    let second = u8::from(wide_toi) << 5 | 1 << 4 | u8::from(close_session) << 1;
    [first, second, (header_len / 4) as u8, codepoint]
}

fn big_endian(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

const VERSION: u8 = 1;
