//! Protocols that are being tried out: [`weir_wire::experimental`] on channels and unicast alike, and the handshake.

use std::time::Duration;

use weir_wire::experimental::{Experimental, LEN};
use weir_wire::{Header, rtcp};

use super::{Found, Handling, Ids, Profile, Sender, Sending, control};

/// The packets of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExperimentalProfile {
    /// Transport session identifier.
    pub tsi: u16,
}

impl Profile for ExperimentalProfile {
    type Label = ();
    type Association = ();

    fn associate(&self, _ids: &Ids) {}

    fn encode(&self, header: &Header, _: Option<&()>, _: Sending<'_, ()>, out: &mut [u8]) -> Option<usize> {
        match header {
            Header::Experimental(fields) => {
                out[..LEN].copy_from_slice(&fields.encode(self.tsi));
                Some(LEN)
            }
            Header::Layered(_)
            | Header::Paced(_)
            | Header::Feedback(_)
            | Header::Probe(_)
            | Header::TreeData(_)
            | Header::TreeAck(_)
            | Header::TreeJoin(_) => None,
        }
    }

    fn decode<'d>(&self, datagram: &'d [u8], _from: Sender<()>, mut found: impl FnMut(Found<'d, ()>)) {
        if rtcp::is_rtcp(datagram) {
            for packet in rtcp::packets(datagram) {
                packet.map_or(Some(Found::Undecodable), |packet| control(&packet)).map(&mut found);
            }
            return;
        }
        found(match Experimental::decode(datagram) {
            Ok((fields, tsi, payload)) if tsi == self.tsi => {
                // Only the protocol knows which of its headers a payload follows, so every packet has one, if an empty one.
                Found::Packet { header: Header::Experimental(fields), label: Some(()), payload }
            }
            Ok(_) => Found::Foreign,
            Err(_) => Found::Undecodable,
        });
    }

    fn handling(&self) -> Handling {
        Handling { coalesces: false, rest: Duration::ZERO }
    }
}
