//! One viewer: the endpoint that sends to it, the numbers of its stream, and the packets to it that are due together.

use weir_core::Endpoint;
use weir_units::{Ecn, Time};
use weir_wire::rtp::Rtp;
use weir_wire::{Feedback, Paced};

use super::super::door::{Door, Viewer};
use super::Payload;
use crate::socket::{Received, header_len};

/// A viewer and the endpoint that sends to it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) viewer: Viewer,
    pub(super) endpoint: Box<dyn Endpoint>,
    /// The stream's number.
    pub(super) ssrc: u32,
    /// What the endpoint calls 0 goes by this number, so that nobody can acknowledge blindly.
    pub(super) first: u16,
    pub(super) header_len: u64,
    /// Payloads that the endpoint knows of and has not sent.
    pub(super) offered: u64,
    /// Packets sent.
    pub(super) sent: u64,
    /// The number of the last one, as the endpoint has it.
    pub(super) last: u16,
    pub(super) last_time: Time,
    /// The viewer has the last packet.
    pub(super) is_acknowledged: bool,
    /// When the viewer last said something.
    pub(super) heard: Time,
    /// Its host said that nobody listens, and it has said nothing since.
    pub(super) refused: Option<Time>,
    pub(super) said_bye: bool,
    /// The time of the last event: it never goes back.
    pub(super) time: Time,
}

/// Packets to one viewer that are due together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Where each ends.
    pub(super) ends: Vec<usize>,
    pub(super) ecn: Ecn,
}

impl Session {
    pub(super) fn new(viewer: Viewer, endpoint: Box<dyn Endpoint>, door: &Door, now: Time) -> Session {
        Session {
            viewer,
            endpoint,
            ssrc: door.stream_ssrc(viewer),
            first: door.first_sequence(viewer),
            header_len: header_len(viewer.address.ip()),
            offered: 0,
            sent: 0,
            last: 0,
            last_time: now,
            is_acknowledged: false,
            heard: now,
            refused: None,
            said_bye: false,
            time: now,
        }
    }

    pub(super) fn is(&self, received: &Received, ssrc: u32) -> bool {
        self.viewer == Viewer { address: received.from, ssrc }
    }

    /// Feedback in the endpoint's numbers; `None` if its newest packet was never sent.
    pub(super) fn translate(&self, feedback: Feedback) -> Option<Feedback> {
        let newest = feedback.newest.wrapping_sub(self.first);
        let age = u64::from(self.last.wrapping_sub(newest));
        (age < self.sent && age < 1 << 15).then_some(Feedback { newest, ..feedback })
    }
}

impl Batch {
    pub(super) fn add(&mut self, session: &mut Session, paced: Paced, ecn: Ecn, payload: Option<Payload<'_>>) {
        let empty = Payload { marker: false, payload_type: 0, timestamp: 0, bytes: &[] };
        let payload = payload.unwrap_or(empty);
        let header = Rtp {
            marker: payload.marker,
            payload_type: payload.payload_type,
            sequence: paced.sequence.wrapping_add(session.first),
            timestamp: payload.timestamp,
            ssrc: session.ssrc,
        };
        session.offered = session.offered.saturating_sub(1);
        session.sent += 1;
        session.last = paced.sequence;
        session.last_time = session.time;
        session.is_acknowledged = false;
        self.bytes.extend(header.encode());
        self.bytes.extend(payload.bytes);
        self.ends.push(self.bytes.len());
        self.ecn = ecn;
    }

    pub(super) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
