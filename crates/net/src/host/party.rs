//! A tenant's endpoint and all that surrounds it: the endpoint is told what happens, and all that it wants is carried out
//! (`actions.rs`). Here: events, deadlines and offers. Datagrams are in `taking.rs`, peers that come and go in `peer_events.rs`.

use std::net::SocketAddr;

use weir_core::{Endpoint, Event, Locator, Origin, PeerId};
use weir_units::{Bytes, Ecn, Time};

use super::application::Application;
use super::kept::Kept;
use super::outgoing::Outgoing;
use super::peers::Peers;
use super::statistics::Statistics;
use super::tenant::Sessions;
use crate::clock::Clock;
use crate::error::{Impossible, Result};
use crate::profile::Profile;
use crate::socket::{Input, Way, header_len};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Party<'a, P: Profile, A> {
    pub(super) application: &'a mut A,
    pub(super) clock: Clock,
    pub(super) endpoint: Option<Box<dyn Endpoint>>,
    /// The endpoint is that of one peer: the application makes it when the peer comes, and it goes with the peer.
    pub(super) is_per_peer: bool,
    /// The peer that the endpoint calls 0.
    pub(super) first: PeerId,
    pub(super) sessions: Sessions<P>,
    pub(super) calls: Option<Calls>,
    /// Where others can contact this party.
    pub(super) reachable_at: Option<Locator>,
    pub(super) peers: Peers<P::Association>,
    pub(super) input: Input,
    pub(super) outgoing: Outgoing,
    pub(super) kept: Kept<P::Label>,
    /// Where a datagram is opened.
    pub(super) opened: Vec<u8>,
    pub(super) statistics: Statistics,
    /// The time of the last event: it never goes back.
    pub(super) time: Time,
    pub(super) stage: Stage,
    pub(super) told: Told,
    /// Sessions that are over by what their senders said last.
    pub(super) closed: Vec<usize>,
    /// Something has happened that the application should not wait a tick to act on.
    pub(super) has_changed: bool,
}

/// How an endpoint contacts others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    /// Through which unicast socket, on which interface.
    pub(super) socket: usize,
    pub(super) interface: u32,
    /// This host's.
    pub(super) ssrc: u32,
}

/// How far the endpoint's session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for the peers of the configuration.
    Waiting,
    Started,
    Finished,
}

/// What the endpoint knows of the application.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    /// Payloads that it has not taken; `u64::MAX` for a supply without end.
    offered: u64,
    is_over: bool,
    /// Less what it has delivered since it was told.
    room: Option<u64>,
}

impl Told {
    /// The endpoint has taken a payload.
    pub(super) fn note_taken(&mut self) {
        if self.offered != u64::MAX {
            self.offered = self.offered.saturating_sub(1);
        }
    }

    /// The endpoint delivers a payload, which takes a place of the room that it knows of.
    pub(super) fn note_delivered(&mut self) -> Result<()> {
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(1).ok_or(Impossible::NoRoom)?;
        }
        Ok(())
    }
}

/// A datagram, and where it came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram<'d> {
    pub(super) at: Time,
    pub(super) way: Way,
    pub(super) from: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: &'d [u8],
}

/// The packet that the endpoint is told of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handled<'d, L> {
    pub(super) datagram: &'d Datagram<'d>,
    pub(super) origin: Origin,
    pub(super) label: Option<L>,
    pub(super) payload: &'d [u8],
}

impl Datagram<'_> {
    /// Bytes on the network.
    pub(super) fn size(&self) -> Bytes {
        Bytes::new(self.bytes.len() as u64 + header_len(self.from.ip()))
    }
}

impl<P: Profile, A: Application<P::Label>> Party<'_, P, A> {
    /// Tells the endpoint, and does what it wants. `handled` is the packet of the event. Nothing happens to an endpoint
    /// before its session starts.
    #[inline]
    pub(super) fn event(&mut self, at: Time, event: Event<'_>, handled: Option<&Handled<'_, P::Label>>) -> Result<()> {
        self.time = self.time.max(at);
        let Some(mut endpoint) = self.endpoint.take_if(|_| self.stage != Stage::Waiting) else { return Ok(()) };
        endpoint.handle(self.time, event);
        while let Some(action) = endpoint.poll(self.time) {
            self.carry_out(&action, handled)?;
        }
        self.endpoint = Some(endpoint);
        self.outgoing.flush(&mut self.statistics)
    }

    /// When the endpoint wants to be called.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.endpoint.as_ref().filter(|_| self.stage != Stage::Waiting)?.deadline()
    }

    /// The session starts. An application whose room is limited says so before.
    pub(super) fn begin(&mut self, now: Time) -> Result<()> {
        if let Some(at) = self.reachable_at {
            self.event(now, Event::Reachable { at }, None)?;
        }
        self.told.room = self.application.room();
        if let Some(payloads) = self.told.room {
            self.event(now, Event::Room { payloads }, None)?;
        }
        self.event(now, Event::Start, None)
    }

    /// Tells the endpoint which of its deadlines have passed at `at`, before anything else that happens then. A deadline is told
    /// as late as the order of events allows, so that an endpoint knows how late it is.
    pub(super) fn meet_deadlines(&mut self, at: Time) -> Result<()> {
        for _ in 0..MAX_DEADLINES {
            let Some(due) = self.deadline().filter(|due| *due <= at) else { break };
            self.statistics.note_lateness(due, at);
            self.event(at, Event::Deadline, None)?;
        }
        Ok(())
    }

    /// The host dropped packets of a channel before one that came at `at`.
    pub(super) fn host_dropped(&mut self, at: Time, packets: u64) -> Result<()> {
        self.statistics.host_dropped += packets;
        self.meet_deadlines(at)?;
        self.event(at, Event::HostDropped { packets }, None)
    }

    /// The application has what it wanted.
    pub(super) fn finish(&mut self, now: Time) -> Result<()> {
        self.peers.admit_nobody();
        match std::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::Started => self.event(now, Event::Finish, None),
            Stage::Waiting | Stage::Finished => Ok(()),
        }
    }

    /// What the endpoint does not know yet of payloads to send, of their end, and of the room for received ones.
    pub(super) fn next_offer(&self) -> Option<Event<'static>> {
        if self.stage != Stage::Started {
            return None;
        }
        if let Some(waiting) = self.application.waiting() {
            let packets = waiting.saturating_sub(self.told.offered);
            if packets > 0 {
                return Some(Event::Offer { packets });
            }
            if self.application.is_over() && !self.told.is_over {
                return Some(Event::End);
            }
        }
        let room = self.application.room().filter(|room| self.told.room != Some(*room));
        room.map(|payloads| Event::Room { payloads })
    }

    /// Tells it, one thing at a time.
    pub(super) fn offer(&mut self, now: Time) -> Result<()> {
        let Some(event) = self.next_offer() else { return Ok(()) };
        match event {
            Event::Offer { packets } => self.told.offered += packets,
            Event::Room { payloads } => self.told.room = Some(payloads),
            _ => self.told.is_over = true,
        }
        self.event(now, event, None)
    }
}

/// Deadlines in one go, so that an endpoint that asks for the same time again and again does not stop the host.
const MAX_DEADLINES: usize = 100_000;
