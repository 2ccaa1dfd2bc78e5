//! Streams over a tree: MTCP's packets ([`weir_wire::mtcp`]) on the channel and between the nodes, round-trip probes, and the
//! handshake.

use std::time::Duration;

use weir_wire::mtcp::{ACK_LEN, DATA_LEN, Message};
use weir_wire::{Header, Probe, mtcp, probe, rtcp};

use super::{Found, Handling, Ids, MAX_HEADER, Profile, Sender, Sending, control};

/// The packets of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtcpProfile {
    /// Transport session identifier.
    pub tsi: u16,
}

impl Profile for MtcpProfile {
    type Label = ();
    type Association = ();

    fn associate(&self, _ids: &Ids) {}

    #[inline]
    fn encode(&self, header: &Header, _: Option<&()>, sending: Sending<'_, ()>, out: &mut [u8]) -> Option<usize> {
        match header {
            Header::TreeData(data) => {
                out[..DATA_LEN].copy_from_slice(&data.encode(self.tsi));
                Some(DATA_LEN)
            }
            Header::TreeAck(ack) => {
                // What this host took on top of what the endpoint says.
                let waited = (sending.waited.as_micros() / 16).min(u128::from(u16::MAX)) as u16;
                let ack = mtcp::Ack { held: ack.held.saturating_add(waited), ..*ack };
                out[..ACK_LEN].copy_from_slice(&ack.encode(self.tsi));
                Some(ACK_LEN)
            }
            Header::TreeJoin(join) => Some(join.encode(self.tsi, out)),
            Header::Probe(asked) => {
                out[..probe::LEN].copy_from_slice(&asked.encode(self.tsi));
                Some(probe::LEN)
            }
            Header::Layered(_) | Header::Paced(_) | Header::Feedback(_) | Header::Experimental(_) => None,
        }
    }

    #[inline]
    fn decode<'d>(&self, datagram: &'d [u8], _from: Sender<()>, mut found: impl FnMut(Found<'d, ()>)) {
        if rtcp::is_rtcp(datagram) {
            for packet in rtcp::packets(datagram) {
                packet.map_or(Some(Found::Undecodable), |packet| control(&packet)).map(&mut found);
            }
            return;
        }
        let plain = |header| Found::Packet { header, label: None, payload: &[] };
        found(match (Message::decode(datagram), Probe::decode(datagram)) {
            (Ok((_, tsi)), _) | (_, Ok((_, tsi))) if tsi != self.tsi => Found::Foreign,
            (Ok((Message::Data(data, _), _)), _) if data.is_end => plain(Header::TreeData(data)),
            (Ok((Message::Data(data, payload), _)), _) => {
                Found::Packet { header: Header::TreeData(data), label: Some(()), payload }
            }
            (Ok((Message::Ack(ack), _)), _) => plain(Header::TreeAck(ack)),
            (Ok((Message::Join(join), _)), _) => plain(Header::TreeJoin(join)),
            (_, Ok((probe, _))) => plain(Header::Probe(probe)),
            _ => Found::Undecodable,
        });
    }

    fn handling(&self) -> Handling {
        Handling { coalesces: true, rest: REST }
    }
}

/// Half of what members wait between two acknowledgements on a fast path, and within the delay that is no queue (decision 15 of
/// `docs/papers/mtcp.md`).
const REST: Duration = Duration::from_millis(1);

const _: () = assert!(ACK_LEN <= MAX_HEADER, "every header fits");
