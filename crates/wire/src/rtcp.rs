//! RTCP: the packets of a datagram (RFC 3550 §6.1, alone as RFC 5506 allows), and four kinds of them.
//!
//! Read and written are APP (§6.7; [`handshake`] gives it a meaning), BYE (§6.6) and congestion control feedback ([`congestion`]); the clock
//! of a sender report (§6.4.1) is read. All other kinds are walked over, so that compound packets of other makers are understood.

pub mod congestion;
pub mod handshake;

use crate::rtp::{PADDING, VERSION, unpadded};
use crate::{DecodeError, take, take_array};

/// Whether a datagram on a port that RTP and RTCP share is RTCP (RFC 5761 §4): by its packet type.
pub fn is_rtcp(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|packet_type| (192..=223).contains(packet_type))
}

/// One packet of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The five bits after the version: a count, a subtype or a format, by the packet's type.
    pub format: u8,
    /// Packet type.
    pub packet_type: u8,
    /// What follows the first four bytes, without padding.
    pub body: &'a [u8],
}

/// The packets of a datagram, first to last. After an error there are no more.
pub fn packets(datagram: &[u8]) -> impl Iterator<Item = Result<Packet<'_>, DecodeError>> {
    let mut rest = datagram;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let packet = next(&mut rest);
        if packet.is_err() {
            rest = &[];
        }
        Some(packet)
    })
}

fn next<'a>(rest: &mut &'a [u8]) -> Result<Packet<'a>, DecodeError> {
    let [first, packet_type, high, low] = take_array(rest, "RTCP header")?;
    if first >> 6 != VERSION {
        return Err(DecodeError::Version { protocol: "RTCP", version: first >> 6 });
    }
    let body = take(rest, usize::from(u16::from_be_bytes([high, low])) * 4, "RTCP packet")?;
    let body = match first & PADDING != 0 {
        // RFC 3550 §6.4.1: only the last packet of a datagram has any.
        true if !rest.is_empty() => return Err(DecodeError::Value { field: "RTCP padding", value: 1 }),
        true => unpadded(body)?,
        false => body,
    };
    Ok(Packet { format: first & 0x1f, packet_type, body })
}

/// The first four bytes of a packet of `len` bytes in all, a multiple of 4.
fn header(format: u8, packet_type: u8, len: usize) -> [u8; 4] {
    let [high, low] = ((len / 4 - 1) as u16).to_be_bytes();
    [VERSION << 6 | format & 0x1f, packet_type, high, low]
}

/// A packet that an application has given a meaning of its own (APP, RFC 3550 §6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct App<'a> {
    /// What the application makes of it, 5 bits.
    pub subtype: u8,
    /// Who sends it.
    pub ssrc: u32,
    /// Whose packet it is, four ASCII characters.
    pub name: [u8; 4],
    /// A multiple of 4 bytes.
    pub data: &'a [u8],
}

impl<'a> App<'a> {
    /// Packet type.
    pub const TYPE: u8 = 204;
    /// Bytes before the data.
    pub const HEADER_LEN: usize = 12;

    /// What the packet says, if it is one.
    pub fn decode(packet: &Packet<'a>) -> Result<App<'a>, DecodeError> {
        let mut rest = of_type(packet, App::TYPE)?;
        Ok(App {
            subtype: packet.format,
            ssrc: u32::from_be_bytes(take_array(&mut rest, "APP SSRC")?),
            name: take_array(&mut rest, "APP name")?,
            data: rest,
        })
    }

    /// Writes the packet, and says how long it is: [`App::HEADER_LEN`] and the data.
    ///
    /// # Panics
    ///
    /// If the data is not a multiple of 4 bytes, or `out` is too short.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        assert!(self.data.len().is_multiple_of(4), "the data of an APP packet is whole words");
        let len = App::HEADER_LEN + self.data.len();
        out[..4].copy_from_slice(&header(self.subtype, App::TYPE, len));
        out[4..8].copy_from_slice(&self.ssrc.to_be_bytes());
        out[8..12].copy_from_slice(&self.name);
        out[12..len].copy_from_slice(self.data);
        len
    }
}

/// A source leaves (BYE, RFC 3550 §6.6). Of several sources in one packet the first counts; a reason is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bye {
    /// Who leaves.
    pub ssrc: u32,
}

impl Bye {
    /// Packet type.
    pub const TYPE: u8 = 203;
    /// Bytes of the packet.
    pub const LEN: usize = 8;

    /// What the packet says, if it is one.
    pub fn decode(packet: &Packet<'_>) -> Result<Bye, DecodeError> {
        let mut rest = of_type(packet, Bye::TYPE)?;
        match packet.format {
            0 => Err(DecodeError::Value { field: "BYE source count", value: 0 }),
            _ => Ok(Bye { ssrc: u32::from_be_bytes(take_array(&mut rest, "BYE SSRC")?) }),
        }
    }

    /// The packet.
    pub fn encode(&self) -> [u8; Bye::LEN] {
        let mut out = [0; Bye::LEN];
        out[..4].copy_from_slice(&header(1, Bye::TYPE, Bye::LEN));
        out[4..].copy_from_slice(&self.ssrc.to_be_bytes());
        out
    }
}

/// What a sender report (SR, RFC 3550 §6.4.1) says of the clock of its source's timestamps. Its counts and report blocks are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderClock {
    /// Whose timestamps.
    pub ssrc: u32,
    /// A time of the wall clock, in units of 2⁻³² seconds since 1900 (NTP).
    pub ntp: u64,
    /// The same time as a timestamp of the source's RTP packets.
    pub timestamp: u32,
}

impl SenderClock {
    /// Packet type.
    pub const TYPE: u8 = 200;

    /// What the packet says, if it is one.
    pub fn decode(packet: &Packet<'_>) -> Result<SenderClock, DecodeError> {
        let mut rest = of_type(packet, SenderClock::TYPE)?;
        let ssrc = u32::from_be_bytes(take_array(&mut rest, "SR SSRC")?);
        let ntp = u64::from_be_bytes(take_array(&mut rest, "SR NTP timestamp")?);
        let timestamp = u32::from_be_bytes(take_array(&mut rest, "SR RTP timestamp")?);
        Ok(SenderClock { ssrc, ntp, timestamp })
    }
}

fn of_type<'a>(packet: &Packet<'a>, packet_type: u8) -> Result<&'a [u8], DecodeError> {
    match packet.packet_type == packet_type {
        true => Ok(packet.body),
        false => Err(DecodeError::Value { field: "RTCP packet type", value: u64::from(packet.packet_type) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYE: Bye = Bye { ssrc: 0x0102_0304 };

    /// A receiver report without report blocks, as compound packets begin.
    const EMPTY_REPORT: [u8; 8] = [0x80, 201, 0, 1, 9, 9, 9, 9];

    fn all(datagram: &[u8]) -> impl Iterator<Item = Result<Packet<'_>, DecodeError>> {
        assert!(is_rtcp(datagram));
        packets(datagram)
    }

    #[test]
    fn a_compound_packet_is_walked_to_its_end() {
        let mut datagram = [0; 8 + 8 + 16];
        datagram[..8].copy_from_slice(&EMPTY_REPORT);
        datagram[8..16].copy_from_slice(&BYE.encode());
        let app = App { subtype: 3, ssrc: 7, name: *b"WEIR", data: &[1, 2, 3, 4] };
        assert_eq!(app.encode(&mut datagram[16..]), 16);
        let mut found = all(&datagram).map(|packet| packet.expect("it is whole"));
        assert_eq!(found.next().map(|packet| packet.packet_type), Some(201));
        assert_eq!(found.next().map(|packet| Bye::decode(&packet)), Some(Ok(BYE)));
        assert_eq!(found.next().as_ref().map(App::decode), Some(Ok(app)));
        assert_eq!(found.next(), None);
    }

    #[test]
    fn a_packet_that_is_cut_or_of_another_version_ends_the_walk() {
        let bye = BYE.encode();
        for len in 1..8 {
            let mut found = packets(&bye[..len]);
            assert!(found.next().is_some_and(|packet| packet.is_err()), "{len} bytes");
            assert_eq!(found.next(), None);
        }
        let mut other = bye;
        other[0] = 0x41;
        assert_eq!(packets(&other).next(), Some(Err(DecodeError::Version { protocol: "RTCP", version: 1 })));
    }

    #[test]
    fn padding_is_taken_off_the_last_packet_and_refused_elsewhere() {
        let padded = [0xa1, 203, 0, 2, 1, 2, 3, 4, 0, 0, 0, 4];
        let packet = all(&padded).next().expect("there is one").expect("it is whole");
        assert_eq!((packet.body.len(), Bye::decode(&packet)), (4, Ok(BYE)));
        let mut followed = [0; 20];
        followed[..12].copy_from_slice(&padded);
        followed[12..].copy_from_slice(&BYE.encode());
        assert!(all(&followed).next().is_some_and(|packet| packet.is_err()));
    }

    #[test]
    fn a_sender_report_says_which_timestamp_a_time_has() {
        let mut report = [0; 28];
        report[..4].copy_from_slice(&[0x80, SenderClock::TYPE, 0, 6]);
        report[4..20].copy_from_slice(&[1, 2, 3, 4, 0, 0, 0, 9, 0x80, 0, 0, 0, 0, 1, 0x5f, 0x90]);
        let packet = all(&report).next().expect("there is one").expect("it is whole");
        let clock = SenderClock { ssrc: 0x0102_0304, ntp: 9 << 32 | 1 << 31, timestamp: 90_000 };
        assert_eq!(SenderClock::decode(&packet), Ok(clock));
        assert!(SenderClock::decode(&Packet { body: &packet.body[..12], ..packet }).is_err(), "it is cut off");
    }

    #[test]
    fn a_packet_of_another_type_is_not_taken_for_one_of_ours() {
        let packet = Packet { format: 1, packet_type: 200, body: &[0; 24] };
        assert!(App::decode(&packet).is_err() && Bye::decode(&packet).is_err());
        assert!(Bye::decode(&Packet { format: 0, packet_type: Bye::TYPE, body: &[0; 4] }).is_err(), "nobody leaves");
    }
}
