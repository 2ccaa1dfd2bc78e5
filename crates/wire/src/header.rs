//! The headers of all protocol families, and their encoding where only the headers matter.
//!
//! This is the list that a new family joins: every `match` on [`Header`] in the workspace is exhaustive, so the compiler names
//! the places that have to know it. Not here: payloads, and what stays the same for a whole session, which profiles write.

use crate::alc::{Alc, Content, MAX_OVERHEAD, Profile};
use crate::experimental::Experimental;
use crate::fec::PayloadId;
use crate::rtcp::{self, congestion};
use crate::rtp::{Origin, Rtp};
use crate::{CciForm, DecodeError, Feedback, Layered, Paced, Probe, experimental, mtcp, probe};

/// The protocol's part of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Data on a channel of a layered multicast session.
    Layered(Layered),
    /// Data of a paced unicast stream.
    Paced(Paced),
    /// What the sink of a paced unicast stream reports about the packets that came.
    Feedback(Feedback),
    /// How a party measures its round trip to another.
    Probe(Probe),
    /// Data of a stream over a tree.
    TreeData(mtcp::Data),
    /// What a member of a tree reports to the node above it.
    TreeAck(mtcp::Ack),
    /// How a member of a tree finds the node above it.
    TreeJoin(mtcp::join::Join),
    /// A packet of a protocol that is being tried out.
    Experimental(Experimental),
}

/// What stands in a header besides the protocol's part, where nothing but the header is of interest: in a simulated packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Specimen {
    /// Form of the congestion control information.
    pub form: CciForm,
    /// Transport session identifier.
    pub tsi: u16,
    /// RTP payload type.
    pub payload_type: u8,
    /// SSRC of the packet's sender.
    pub from_ssrc: u32,
    /// SSRC of whom feedback is about.
    pub to_ssrc: u32,
}

/// The most bytes that [`Specimen::encode`] writes.
pub const MAX_SPECIMEN: usize =
    max(max(MAX_OVERHEAD, congestion::MAX_LEN), max(mtcp::ACK_LEN, max(experimental::LEN, probe::LEN)));

impl Specimen {
    /// Writes the header as the real encoding does, and returns how many bytes that is. Data is of object 1.
    pub fn encode(&self, header: &Header, out: &mut [u8; MAX_SPECIMEN]) -> usize {
        match header {
            Header::Layered(layered) => {
                let payload_id = PayloadId { block: 0, symbol: layered.sequence & 0x00ff_ffff };
                let content =
                    Content { toi: 1, encoding_id: crate::fec::RAPTORQ, payload_id, fdt: None, oti: None, ask: None };
                Profile { tsi: self.tsi, form: self.form }.encode(layered, &content, out)
            }
            Header::Paced(paced) => {
                let (payload_type, sequence, ssrc) = (self.payload_type, paced.sequence, self.from_ssrc);
                let origin = paced.payload.map(|number| Origin { number, ..Origin::default() });
                Rtp { payload_type, sequence, ssrc, origin, ..Rtp::default() }.encode_into(out)
            }
            Header::Feedback(feedback) => congestion::encode(self.from_ssrc, self.to_ssrc, feedback, 0, out),
            Header::Probe(probe) => put(out, &probe.encode(self.tsi)),
            Header::TreeData(data) => put(out, &data.encode(self.tsi)),
            Header::TreeAck(ack) => put(out, &ack.encode(self.tsi)),
            Header::TreeJoin(join) => join.encode(self.tsi, out),
            Header::Experimental(fields) => put(out, &fields.encode(self.tsi)),
        }
    }

    /// The header as whoever receives it reads it: encoded and decoded. What does not fit the encoding shows.
    pub fn round_trip(&self, header: &Header) -> Result<Header, DecodeError> {
        let mut bytes = [0; MAX_SPECIMEN];
        let len = self.encode(header, &mut bytes);
        let mut message = [0; MAX_SPECIMEN + 1];
        message[..len].copy_from_slice(&bytes[..len]);
        match header {
            // A packet with an object has a symbol, if only of one byte.
            Header::Layered(_) => Alc::decode(&message[..=len])?.layered(self.form).map(Header::Layered),
            Header::Paced(_) => Ok(Header::Paced(Rtp::decode(&message[..len])?.0.paced())),
            Header::Feedback(_) => feedback(&message[..len]).map(Header::Feedback),
            Header::Probe(_) => Probe::decode(&message[..len]).map(|(probe, _)| Header::Probe(probe)),
            Header::TreeData(_) | Header::TreeAck(_) | Header::TreeJoin(_) => mtcp::Message::decode(&message[..len])
                .map(|(message, _)| match message {
                    mtcp::Message::Data(data, _) => Header::TreeData(data),
                    mtcp::Message::Ack(ack) => Header::TreeAck(ack),
                    mtcp::Message::Join(join) => Header::TreeJoin(join),
                }),
            Header::Experimental(_) => {
                Experimental::decode(&message[..len]).map(|(fields, ..)| Header::Experimental(fields))
            }
        }
    }
}

fn feedback(message: &[u8]) -> Result<Feedback, DecodeError> {
    let missing = |field| DecodeError::Truncated { field, needed: 1, left: 0 };
    let packet = rtcp::packets(message).next().ok_or(missing("RTCP packet"))??;
    let report = congestion::Report::decode(&packet)?;
    let stream = report.streams().next().ok_or(missing("report block"))??;
    stream.feedback().ok_or(missing("newest packet"))
}

fn put(out: &mut [u8], bytes: &[u8]) -> usize {
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_no_larger_than_the_largest_family() {
        assert_eq!(size_of::<Header>(), size_of::<mtcp::Ack>());
    }

    #[test]
    fn headers_of_every_family_come_back_as_they_went() {
        let feedback = Feedback { newest: 3, reports: 32, arrived: !2, marked: 4, held: 17 };
        let ack = mtcp::Ack { received: 2, start: 1, reported: 2, has_echo: true, ..mtcp::Ack::default() };
        let headers = [
            Header::Layered(Layered { signal: true, slot: 5, channel: 3, sequence: 9, clock_micros: 1 << 33 }),
            Header::Paced(Paced { sequence: 65_535, payload: None }),
            Header::Paced(Paced { sequence: 1, payload: Some(65_535) }),
            Header::Feedback(feedback),
            Header::Probe(Probe { kind: probe::Kind::Echo, clock_micros: 7 }),
            Header::TreeData(mtcp::Data { number: 9, sent_micros: 8, is_repair: true, is_end: false }),
            Header::TreeAck(ack),
            Header::TreeJoin(mtcp::join::Join::Offer(mtcp::join::Offer { next: 5, ..Default::default() })),
            Header::Experimental(Experimental([7; 16])),
        ];
        for header in headers {
            assert_eq!(Specimen::default().round_trip(&header), Ok(header));
        }
    }

    #[test]
    fn what_does_not_fit_the_wire_shows() {
        let long = Feedback { newest: 3, reports: 1, arrived: 1, marked: 0, held: u16::MAX };
        let cut = Header::Feedback(Feedback { held: Feedback::MAX_HELD, ..long });
        assert_eq!(Specimen::default().round_trip(&Header::Feedback(long)), Ok(cut));
    }
}
