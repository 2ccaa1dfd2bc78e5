//! LCT header extensions (RFC 5651 §5.2, RFC 6726 §3.4, RFC 5445).

use crate::{DecodeError, take};

/// One header extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extension<'a> {
    /// EXT_TIME with a sender current time, in microseconds since the NTP epoch (1900), as far as its seconds reach.
    SenderTime(u64),
    /// EXT_FDT: this packet carries a part of an FDT instance.
    Fdt {
        /// FLUTE version: 2 (RFC 6726) or 1 (RFC 3926).
        version: u8,
        /// FDT instance id, 20 bits.
        instance: u32,
    },
    /// EXT_CENC: how the FDT instance is compressed; 0 not at all, 1 ZLIB, 2 DEFLATE, 3 GZIP.
    ContentEncoding(u8),
    /// EXT_FTI: object transmission information; its layout depends on the FEC encoding id (see [`crate::fec`]).
    Fti(&'a [u8]),
    /// EXT_ASK, Weir's own: the sender asks its receivers what they lack.
    Ask(Question),
    /// Anything else, to be skipped.
    Other(u8),
}

/// What a sender asks of its receivers: what each of them lacks ([`crate::lack`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Its number, which wraps. A receiver answers each once.
    pub number: u8,
    /// How many receivers are asked, and share what answers may take.
    pub receivers: u16,
}

/// The extensions of a header, in order. Stops after the first malformed one.
pub fn iter(extensions: &[u8]) -> impl Iterator<Item = Result<Extension<'_>, DecodeError>> {
    let mut rest = extensions;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let next = decode_one(&mut rest);
        if next.is_err() {
            rest = &[];
        }
        Some(next)
    })
}

fn decode_one<'a>(rest: &mut &'a [u8]) -> Result<Extension<'a>, DecodeError> {
    let word = rest.first_chunk::<4>().copied().ok_or(DecodeError::Truncated {
        field: "header extension",
        needed: 4,
        left: rest.len(),
    })?;
    let kind = word[0];
    if kind >= FIRST_FIXED {
        take(rest, 4, "header extension")?;
        return Ok(match kind {
            FDT => Extension::Fdt {
                version: word[1] >> 4,
                instance: u32::from_be_bytes([0, word[1] & 0x0f, word[2], word[3]]),
            },
            CENC => Extension::ContentEncoding(word[1]),
            ASK => Extension::Ask(Question { number: word[1], receivers: u16::from_be_bytes([word[2], word[3]]) }),
            _ => Extension::Other(kind),
        });
    }
    let len = usize::from(word[1]) * 4;
    if len == 0 {
        return Err(DecodeError::Value { field: "header extension length", value: 0 });
    }
    let body = &take(rest, len, "header extension")?[2..];
    match kind {
        TIME => decode_time(body),
        FTI => Ok(Extension::Fti(body)),
        _ => Ok(Extension::Other(kind)),
    }
}

/// EXT_TIME: a use field, then the words that its flags name, the sender current time first.
fn decode_time(body: &[u8]) -> Result<Extension<'_>, DecodeError> {
    let mut words = body;
    let flags = take(&mut words, 2, "EXT_TIME use field")?[0];
    if flags & SCT_HIGH == 0 {
        return Ok(Extension::Other(TIME));
    }
    let word = |words: &mut &[u8]| {
        take(words, 4, "EXT_TIME word")
            .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes were taken")))
    };
    let seconds = u64::from(word(&mut words)?);
    let fraction = if flags & SCT_LOW == 0 { 0 } else { u64::from(word(&mut words)?) };
    Ok(Extension::SenderTime(seconds * 1_000_000 + fraction_to_micros(fraction)))
}

/// Bytes of EXT_TIME as [`encode_time`] writes it.
pub(crate) const TIME_LEN: usize = 12;

/// EXT_TIME with the sender current time `micros`, in microseconds since the NTP epoch.
///
/// The fraction is rounded up, so that reading it back, rounded down, gives the same microsecond.
pub(crate) fn encode_time(micros: u64) -> [u8; TIME_LEN] {
    let mut out = [TIME, 3, SCT_HIGH | SCT_LOW, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    out[4..8].copy_from_slice(&((micros / 1_000_000) as u32).to_be_bytes());
    let fraction = ((micros % 1_000_000) << 32).div_ceil(1_000_000);
    out[8..12].copy_from_slice(&(fraction as u32).to_be_bytes());
    out
}

fn fraction_to_micros(fraction: u64) -> u64 {
    (fraction * 1_000_000) >> 32
}

/// EXT_FDT for `instance` (20 bits) of FLUTE `version`.
pub(crate) fn encode_fdt(version: u8, instance: u32) -> [u8; 4] {
    let [_, high, mid, low] = instance.to_be_bytes();
    [FDT, version << 4 | (high & 0x0f), mid, low]
}

/// EXT_ASK.
pub(crate) fn encode_ask(question: Question) -> [u8; ASK_LEN] {
    let [high, low] = question.receivers.to_be_bytes();
    [ASK, question.number, high, low]
}

/// EXT_FTI around a body of 14 bytes, which is what encoding ids 0 and 6 have.
pub(crate) fn encode_fti(body: [u8; 14]) -> [u8; 16] {
    let mut out = [0; 16];
    out[..2].copy_from_slice(&[FTI, 4]);
    out[2..].copy_from_slice(&body);
    out
}

const TIME: u8 = 2;
const FTI: u8 = 64;
/// Extension types from here on are 4 bytes long and have no length field.
const FIRST_FIXED: u8 = 128;
const FDT: u8 = 192;
const CENC: u8 = 193;
/// None of those that are registered.
const ASK: u8 = 240;
/// Bytes of EXT_ASK.
pub(crate) const ASK_LEN: usize = 4;
const SCT_HIGH: u8 = 0x80;
const SCT_LOW: u8 = 0x40;
