//! MTCP's packets: data of a stream, and what a member of the tree acknowledges to the node above it (Rhee et al., §3.1).
//!
//! Layout, big-endian. All packets begin with magic `WM`, version 1 and kind in four bits each, flags, TSI 16 bits. Then
//!
//! - data (kind 1): number 32, sender's clock in microseconds 32; the payload follows. Flags: 1 repair, 2 end of the stream.
//! - acknowledgement (kind 2): how long the packet of the echo was held, in 16 µs, 16; first missing number 32; how many
//!   packets from there on are reported 8, zero 8, receivers below 16; the report, one bit a packet, 64; echoed clock 32; minimum congestion
//!   window 32 and maximum transit window 32, both in 1/256 packets; the limit and the low mark, two numbers, 32 each. Flags:
//!   1 the echo is there, 2 window update, 4 everything below has the whole stream, 8 no multicast leads here.
//!
//! Kinds 3 to 5 build the tree ([`join`]).
//!
//! Numbers are the lowest 32 bits of 64. Differences from the paper: the report may have 64 packets at most, the echo is of any
//! packet that was not a repair and not only of the one before the first missing one, buffers are advertised as the number
//! up to which there is room, and the low mark is new.

pub mod join;

use crate::{DecodeError, take_array};

use join::Join;

/// Data on the stream's channel, or sent again to one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Data {
    /// The packet's number.
    pub number: u32,
    /// The sender's clock when it was sent for the first time, microseconds modulo 2^32.
    pub sent_micros: u32,
    /// Sent again, by unicast.
    pub is_repair: bool,
    /// The stream ends before this number. There is no payload.
    pub is_end: bool,
}

/// What a member says of itself and of all below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ack {
    /// One bit for each of the packets from `start` on, the lowest first: whether it has come.
    pub received: u64,
    /// The first number that has not come.
    pub start: u32,
    /// The clock of the packet that is echoed; zero without one.
    pub echo_micros: u32,
    /// The least congestion window below, packets × 256.
    pub min_cwnd: u32,
    /// The greatest transit window below, packets × 256.
    pub max_twnd: u32,
    /// There is room for lower numbers.
    pub limit: u32,
    /// Everyone below has all lower numbers.
    pub low_mark: u32,
    /// Between the arrival of the packet that is echoed and this acknowledgement, in 16 µs.
    pub held: u16,
    /// Receivers in the subtree, itself included; 65535 are as many or more.
    pub receivers: u16,
    /// How many packets `received` is about.
    pub reported: u8,
    /// Whether there is an echo.
    pub has_echo: bool,
    /// Sent because nothing was said for a while (§3.11).
    pub is_update: bool,
    /// Everyone below has the whole stream.
    pub is_complete: bool,
    /// What goes to the channel does not come here: the node above is to send it.
    pub is_cut_off: bool,
}

/// Bytes of a data packet's header.
pub const DATA_LEN: usize = 14;
/// Bytes of an acknowledgement.
pub const ACK_LEN: usize = 44;
/// The most packets that [`Ack::received`] is about.
pub const MAX_REPORTED: u8 = 64;

impl Data {
    /// The header of session `tsi`.
    pub fn encode(&self, tsi: u16) -> [u8; DATA_LEN] {
        let mut out = [0; DATA_LEN];
        let flags = (u8::from(self.is_repair) * REPAIR) | (u8::from(self.is_end) * END);
        out[..6].copy_from_slice(&head(DATA, flags, tsi));
        out[6..10].copy_from_slice(&self.number.to_be_bytes());
        out[10..14].copy_from_slice(&self.sent_micros.to_be_bytes());
        out
    }
}

impl Ack {
    /// The acknowledgement in session `tsi`.
    pub fn encode(&self, tsi: u16) -> [u8; ACK_LEN] {
        let mut out = [0; ACK_LEN];
        let flags =
            [(self.has_echo, ECHO), (self.is_update, UPDATE), (self.is_complete, COMPLETE), (self.is_cut_off, CUT_OFF)];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
        out[..6].copy_from_slice(&head(ACK, flags, tsi));
        out[6..8].copy_from_slice(&self.held.to_be_bytes());
        out[8..12].copy_from_slice(&self.start.to_be_bytes());
        out[12] = self.reported;
        out[14..16].copy_from_slice(&self.receivers.to_be_bytes());
        out[16..24].copy_from_slice(&self.received.to_be_bytes());
        let words = [self.echo_micros, self.min_cwnd, self.max_twnd, self.limit, self.low_mark];
        for (place, word) in out[24..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        out
    }
}

/// What an MTCP packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Data, and the payload behind it.
    Data(Data, &'a [u8]),
    /// An acknowledgement.
    Ack(Ack),
    /// What builds the tree.
    Join(Join),
}

impl Message<'_> {
    /// The packet in these bytes, and its session.
    pub fn decode(message: &[u8]) -> Result<(Message<'_>, u16), DecodeError> {
        let mut rest = message;
        let magic: [u8; 2] = take_array(&mut rest, "MTCP magic")?;
        if &magic != MAGIC {
            return Err(DecodeError::Value { field: "MTCP magic", value: u64::from(u16::from_be_bytes(magic)) });
        }
        let [kind, flags] = take_array(&mut rest, "MTCP kind")?;
        if kind >> 4 != VERSION {
            return Err(DecodeError::Version { protocol: "MTCP", version: kind >> 4 });
        }
        let tsi = u16::from_be_bytes(take_array(&mut rest, "MTCP TSI")?);
        match kind & 0xf {
            DATA => {
                let number = word(&mut rest)?;
                let sent_micros = word(&mut rest)?;
                let (is_repair, is_end) = (flags & REPAIR != 0, flags & END != 0);
                Ok((Message::Data(Data { number, sent_micros, is_repair, is_end }, rest), tsi))
            }
            ACK => Ok((Message::Ack(ack(flags, &mut rest)?), tsi)),
            kind @ (ASK | OFFER | NODE) => Ok((Message::Join(Join::decode(kind, flags, &mut rest)?), tsi)),
            kind => Err(DecodeError::Value { field: "MTCP kind", value: u64::from(kind) }),
        }
    }
}

fn ack(flags: u8, rest: &mut &[u8]) -> Result<Ack, DecodeError> {
    let held = u16::from_be_bytes(take_array(rest, "MTCP held time")?);
    let start = word(rest)?;
    let [reported, _, high, low]: [u8; 4] = take_array(rest, "MTCP report length")?;
    if reported > MAX_REPORTED {
        return Err(DecodeError::Value { field: "MTCP report length", value: u64::from(reported) });
    }
    let received = u64::from_be_bytes(take_array(rest, "MTCP report")?);
    // Bits beyond the report say nothing, and the first packet of a report is missing by definition.
    let known = u64::MAX.checked_shr(64 - u32::from(reported)).unwrap_or(0);
    let received = received & known & !1;
    let [echo_micros, min_cwnd, max_twnd, limit, low_mark] =
        [word(rest)?, word(rest)?, word(rest)?, word(rest)?, word(rest)?];
    if !rest.is_empty() {
        return Err(DecodeError::Value { field: "MTCP acknowledgement length", value: (ACK_LEN + rest.len()) as u64 });
    }
    let [has_echo, is_update, is_complete, is_cut_off] =
        [ECHO, UPDATE, COMPLETE, CUT_OFF].map(|flag| flags & flag != 0);
    Ok(Ack {
        received,
        start,
        echo_micros,
        min_cwnd,
        max_twnd,
        limit,
        low_mark,
        held,
        receivers: u16::from_be_bytes([high, low]),
        reported,
        has_echo,
        is_update,
        is_complete,
        is_cut_off,
    })
}

fn head(kind: u8, flags: u8, tsi: u16) -> [u8; 6] {
    let [high, low] = tsi.to_be_bytes();
    [MAGIC[0], MAGIC[1], VERSION << 4 | kind, flags, high, low]
}

fn word(rest: &mut &[u8]) -> Result<u32, DecodeError> {
    Ok(u32::from_be_bytes(take_array(rest, "MTCP number")?))
}

const MAGIC: &[u8; 2] = b"WM";
const VERSION: u8 = 1;
const DATA: u8 = 1;
const ACK: u8 = 2;
const ASK: u8 = 3;
const OFFER: u8 = 4;
const NODE: u8 = 5;
const REPAIR: u8 = 1;
const END: u8 = 2;
const ECHO: u8 = 1;
const UPDATE: u8 = 2;
const COMPLETE: u8 = 4;
const CUT_OFF: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The acknowledgement of Fig. 1: 150 to 155 are reported; 151, 153 and 155 have come.
    #[test]
    fn fig_1_the_report_of_150_to_155_says_that_151_153_and_155_have_come() {
        let ack = Ack { start: 150, reported: 6, received: 0b10_1010, ..Ack::default() };
        let came = (0..ack.reported).filter(|bit| ack.received >> bit & 1 == 1).map(|bit| 150 + u32::from(bit));
        assert!(came.eq([151, 153, 155]));
        assert_eq!(Message::decode(&ack.encode(7)), Ok((Message::Ack(ack), 7)));
    }

    #[test]
    fn a_data_packet_lies_on_the_wire_as_the_page_draws_it() {
        let data = Data { number: 0x0102_0304, sent_micros: 0x0506_0708, is_repair: true, is_end: false };
        assert_eq!(data.encode(0xa0b0), [b'W', b'M', 0x11, 1, 0xa0, 0xb0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    proptest! {
        #[test]
        fn decoding_encoded_data_gives_it_and_the_payload_back(
            (number, sent_micros, is_repair, is_end) in any::<(u32, u32, bool, bool)>(), tsi in any::<u16>()
        ) {
            let data = Data { number, sent_micros, is_repair, is_end };
            let mut message = data.encode(tsi).to_vec();
            message.extend(b"payload");
            prop_assert_eq!(Message::decode(&message), Ok((Message::Data(data, b"payload"), tsi)));
        }

        #[test]
        fn decoding_an_encoded_acknowledgement_gives_it_back(
            words in any::<[u32; 6]>(), bits in any::<u64>(), (held, receivers) in any::<(u16, u16)>(), reported in 0..=MAX_REPORTED,
            flags in any::<[bool; 4]>(), tsi in any::<u16>()
        ) {
            let [start, echo_micros, min_cwnd, max_twnd, limit, low_mark] = words;
            let received = bits & u64::MAX.checked_shr(64 - u32::from(reported)).unwrap_or(0) & !1;
            let [has_echo, is_update, is_complete, is_cut_off] = flags;
            let ack = Ack {
                received, start, echo_micros, min_cwnd, max_twnd, limit, low_mark, held, receivers, reported,
                has_echo, is_update, is_complete, is_cut_off,
            };
            let message = ack.encode(tsi);
            prop_assert_eq!(Message::decode(&message), Ok((Message::Ack(ack), tsi)));
            prop_assert!(Message::decode(&message[..ACK_LEN - 1]).is_err());
        }

        #[test]
        fn any_bytes_are_a_packet_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Message::decode(&bytes);
        }
    }
}
