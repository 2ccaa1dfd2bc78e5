//! An Asynchronous Layered Coding packet (RFC 5775): LCT header, FEC payload ID, one encoding symbol.
//!
//! Two owners meet in it: the congestion control wrote [`Layered`], the object's encoder wrote [`Content`]. The encoder
//! writes Weir's default profile (`docs/wire.md`); the decoder takes any ALC packet whose FEC payload ID is 32 bits.

use crate::extension::{self, Extension, Question};
use crate::fec::{Oti, PayloadId};
use crate::lct::{self, Lct};
use crate::{CciForm, DecodeError, Layered, take_array};

/// What a packet carries of which object: everything but the symbol itself and the congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Transport object identifier; 0 is the file delivery table.
    pub toi: u128,
    /// FEC encoding id, which is also the codepoint.
    pub encoding_id: u8,
    /// Where the symbol belongs.
    pub payload_id: PayloadId,
    /// The FDT instance, on TOI 0.
    pub fdt: Option<FdtInstance>,
    /// Object transmission information, where the packet carries it.
    pub oti: Option<Oti>,
    /// What the sender asks of its receivers, if it does.
    pub ask: Option<Question>,
}

/// Which instance of the file delivery table a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdtInstance {
    /// FLUTE version, 1 or 2.
    pub version: u8,
    /// Instance id, 20 bits.
    pub id: u32,
    /// Content encoding of the instance; 0 is none.
    pub content_encoding: u8,
}

/// A packet as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alc<'a> {
    /// Transport session identifier.
    pub tsi: u64,
    /// The sender says that this session ends here.
    pub close_session: bool,
    /// Congestion control information, still in bytes: its form is known from the session's description.
    pub cci: &'a [u8],
    /// The sender's clock in microseconds (EXT_TIME), where the packet carries it.
    pub sender_time_micros: Option<u64>,
    /// What the packet carries; `None` for a packet without an object.
    pub content: Option<Content>,
    /// The encoding symbol.
    pub symbol: &'a [u8],
}

impl<'a> Alc<'a> {
    /// Reads a packet.
    pub fn decode(packet: &'a [u8]) -> Result<Alc<'a>, DecodeError> {
        let (header, mut rest) = Lct::decode(packet)?;
        let mut alc = Alc {
            tsi: header.tsi,
            close_session: header.close_session,
            cci: header.cci,
            sender_time_micros: None,
            content: None,
            symbol: &[],
        };
        let mut fdt = None;
        let mut content_encoding = 0;
        let mut oti = None;
        let mut ask = None;
        for extension in extension::iter(header.extensions) {
            match extension? {
                Extension::SenderTime(micros) => alc.sender_time_micros = Some(micros),
                Extension::Fdt { version, instance } => fdt = Some((version, instance)),
                Extension::ContentEncoding(encoding) => content_encoding = encoding,
                Extension::Fti(body) => oti = Some(Oti::decode(body, header.codepoint)?),
                Extension::Ask(question) => ask = Some(question),
                Extension::Other(_) => {}
            }
        }
        if let Some(toi) = header.toi
            && !rest.is_empty()
        {
            alc.content = Some(Content {
                toi,
                encoding_id: header.codepoint,
                payload_id: PayloadId::decode(take_array(&mut rest, "FEC payload ID")?, header.codepoint),
                fdt: fdt.map(|(version, id)| FdtInstance { version, id, content_encoding }),
                oti,
                ask,
            });
            alc.symbol = rest;
        }
        Ok(alc)
    }

    /// The congestion control information, read in the session's form.
    ///
    /// A packet without a sender's clock is an error in the forms that need one: nothing can be measured with it.
    pub fn layered(&self, form: CciForm) -> Result<Layered, DecodeError> {
        match self.sender_time_micros {
            None if !form.has_clock() => Err(DecodeError::Truncated { field: "EXT_TIME", needed: 12, left: 0 }),
            clock => form.decode(self.cci, clock.unwrap_or(0)),
        }
    }
}

/// What stays the same in all packets of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Transport session identifier.
    pub tsi: u16,
    /// Form of the congestion control information.
    pub form: CciForm,
}

impl Profile {
    /// Bytes before the symbol in a packet that carries a symbol of a file: LCT header and FEC payload ID.
    pub fn overhead(&self, wide_toi: bool) -> usize {
        let time = if self.form.has_clock() { 0 } else { extension::TIME_LEN };
        4 + self.form.len() + 4 + if wide_toi { 4 } else { 0 } + time + 4
    }

    /// Writes everything that stands before the symbol to the front of `out`, and returns how many bytes that is.
    ///
    /// At most [`MAX_OVERHEAD`] bytes. `out` must have room for them.
    pub fn encode(&self, layered: &Layered, content: &Content, out: &mut [u8]) -> usize {
        let wide_toi = content.toi > 0xffff;
        let mut at = 4;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let mut cci = [0; 12];
        self.form.encode(layered, &mut cci[..self.form.len()]);
        put(&cci[..self.form.len()]);
        put(&self.tsi.to_be_bytes());
        let toi = content.toi.to_be_bytes();
        put(if wide_toi { &toi[10..] } else { &toi[14..] });
        if !self.form.has_clock() {
            put(&extension::encode_time(layered.clock_micros));
        }
        if let Some(fdt) = content.fdt {
            put(&extension::encode_fdt(fdt.version, fdt.id));
        }
        if let Some(oti) = content.oti {
            put(&extension::encode_fti(oti.encode()));
        }
        if let Some(question) = content.ask {
            put(&extension::encode_ask(question));
        }
        put(&content.payload_id.encode(content.encoding_id));
        let len = at;
        let header_len = len - 4;
        out[..4].copy_from_slice(&lct::encode_fixed(header_len, self.form.len(), wide_toi, false, content.encoding_id));
        len
    }

    /// Writes a packet without an object that closes the session (RFC 5651 §5.1, flag A); returns its length.
    pub fn encode_close(&self, layered: &Layered, out: &mut [u8]) -> usize {
        let cci_len = self.form.len();
        let mut at = 4;
        self.form.encode(layered, &mut out[at..at + cci_len]);
        at += cci_len;
        out[at..at + 2].copy_from_slice(&self.tsi.to_be_bytes());
        out[at + 2..at + 4].fill(0);
        at += 4;
        if !self.form.has_clock() {
            out[at..at + extension::TIME_LEN].copy_from_slice(&extension::encode_time(layered.clock_micros));
            at += extension::TIME_LEN;
        }
        out[..4].copy_from_slice(&lct::encode_fixed(at, cci_len, false, true, crate::fec::NO_CODE));
        at
    }
}

/// Bytes before the symbol in the largest header that [`Profile::encode`] writes.
pub const MAX_OVERHEAD: usize = 4 + 12 + 8 + extension::TIME_LEN + 4 + 16 + extension::ASK_LEN + 4;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forms() -> impl Strategy<Value = CciForm> {
        prop_oneof![Just(CciForm::Short), Just(CciForm::Long), Just(CciForm::Clocked)]
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_packet_gives_it_back(
            form in forms(), tsi in any::<u16>(), signal in any::<bool>(), slot in 0u16..128, channel in 0u16..256,
            sequence in 0u32..65536, clock_micros in 0u64..1 << 50, toi in 0u128..1 << 48, block in 0u32..256,
            symbol in 0u32..1 << 24, fdt in proptest::option::of((1u8..3, 0u32..1 << 20)), ask in any::<Option<(u8, u16)>>(),
        ) {
            let profile = Profile { tsi, form };
            let clock_micros = clock_micros % (1 << 32) + if form.has_clock() { 0 } else { 1 << 33 };
            let layered = Layered { signal, slot, channel, sequence, clock_micros };
            let content = Content {
                toi,
                encoding_id: crate::fec::RAPTORQ,
                payload_id: PayloadId { block, symbol },
                fdt: fdt.map(|(version, id)| FdtInstance { version, id, content_encoding: 0 }),
                oti: Some(Oti::RaptorQ {
                    transfer_length: 1 << 39, symbol_size: 1400, blocks: 200, sub_blocks: 1, alignment: 8,
                }),
                ask: ask.map(|(number, receivers)| Question { number, receivers }),
            };
            let mut packet = [0; MAX_OVERHEAD + 3];
            let len = profile.encode(&layered, &content, &mut packet);
            prop_assert!(len <= MAX_OVERHEAD);
            packet[len..len + 3].copy_from_slice(b"abc");
            let alc = Alc::decode(&packet[..len + 3]).expect("our own packet decodes");
            prop_assert_eq!(alc.layered(form), Ok(layered));
            prop_assert_eq!(alc.content, Some(content));
            prop_assert_eq!((alc.tsi, alc.symbol), (u64::from(tsi), &b"abc"[..]));
            for cut in 0..len {
                let _ = Alc::decode(&packet[..cut]);
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(alc) = Alc::decode(&bytes) {
                let _ = alc.layered(CciForm::Short);
            }
        }
    }

    #[test]
    fn the_default_profile_spends_28_bytes_before_the_symbol() {
        let profile = Profile { tsi: 1, form: CciForm::Short };
        assert_eq!(profile.overhead(false), 28);
        let content =
            Content { toi: 1, encoding_id: 6, payload_id: PayloadId::default(), fdt: None, oti: None, ask: None };
        assert_eq!(profile.encode(&Layered::default(), &content, &mut [0; MAX_OVERHEAD]), 28);
    }

    #[test]
    fn the_header_stands_byte_by_byte_as_documented() {
        let layered = Layered { signal: true, slot: 5, channel: 3, sequence: 0x1234, clock_micros: 2_500_000 };
        let content = Content {
            toi: 7,
            encoding_id: 6,
            payload_id: PayloadId { block: 2, symbol: 0x01_0203 },
            fdt: None,
            oti: None,
            ask: None,
        };
        let mut packet = [0; MAX_OVERHEAD];
        let len = Profile { tsi: 0xabcd, form: CciForm::Short }.encode(&layered, &content, &mut packet);
        assert_eq!(
            packet[..len],
            [
                0x10, 0x10, 6, 6, // LCT 1, C=0; S=0 O=0 H=1; 6 words; codepoint RaptorQ
                0x85, 3, 0x12, 0x34, // signal and slot 5, channel 3, sequence
                0xab, 0xcd, 0, 7, // TSI, TOI
                2, 3, 0xc0, 0, 0, 0, 0, 2, 0x80, 0, 0, 0, // EXT_TIME: 2.5 s
                2, 1, 2, 3, // block 2, symbol 0x010203
            ]
        );
    }

    #[test]
    fn a_closing_packet_carries_no_object() {
        let mut packet = [0; MAX_OVERHEAD];
        let len = Profile { tsi: 9, form: CciForm::Long }.encode_close(&Layered::default(), &mut packet);
        let alc = Alc::decode(&packet[..len]).expect("our own packet decodes");
        assert!(alc.close_session && alc.content.is_none() && alc.tsi == 9);
    }
}
