//! A tenant's endpoint and all that surrounds it: the endpoint is told what happens, and all that it wants is carried out
//! (`actions.rs`). Here: datagrams and offers. Peers that come and go are in `peer_events.rs`.

use std::net::SocketAddr;

use weir_core::{ChannelId, Endpoint, Event, Locator, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Time};

use super::application::Application;
use super::kept::Kept;
use super::outgoing::Outgoing;
use super::peers::{Opened, Peers};
use super::statistics::Statistics;
use super::strangers::Strange;
use super::tenant::Sessions;
use crate::clock::Clock;
use crate::error::{Impossible, Result};
use crate::profile::{Found, Profile, Sender};
use crate::socket::{Input, Way, header_len};
use weir_wire::rtcp::{self, handshake, handshake::Message};

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

    /// Takes a datagram: checks its source and its seals first, then reads it.
    #[inline]
    pub(super) fn take_in(&mut self, datagram: &Datagram<'_>) -> Result<()> {
        match datagram.way {
            Way::Channel(channel) if !self.input.is_source(channel, datagram.from.ip()) => {
                self.on_strange(datagram, Strange::Source);
                Ok(())
            }
            Way::Channel(channel) => self.take_from_channel(datagram, channel),
            Way::Unicast(socket) => match &self.sessions.of_unicast(socket).key {
                None => self.take_from_peer(datagram),
                Some(key) => match key.open(datagram.bytes) {
                    Some(message) => self.read(datagram, message),
                    None => {
                        self.statistics.ignored.foreign += 1;
                        Ok(())
                    }
                },
            },
        }
    }

    #[inline]
    fn take_from_channel(&mut self, datagram: &Datagram<'_>, ChannelId(channel): ChannelId) -> Result<()> {
        let session = self.sessions.of(datagram.way);
        let of = self.sessions.get_mut(session);
        let first = of.channels.start;
        let Some(mut opener) = of.opener.take() else { return self.read(datagram, datagram.bytes) };
        let result = match opener.open(channel - first, datagram.bytes) {
            Ok(packet) => self.read(datagram, packet),
            Err(why) => {
                self.on_strange(datagram, Strange::Seal(why));
                Ok(())
            }
        };
        self.sessions.get_mut(session).opener = Some(opener);
        result
    }

    /// Takes a datagram to a unicast socket, which is sealed if this host shares keys with who sent it.
    fn take_from_peer(&mut self, datagram: &Datagram<'_>) -> Result<()> {
        let mut opened = std::mem::take(&mut self.opened);
        let result = match self.peers.open(datagram.from, datagram.bytes, &mut opened) {
            Opened::Clear => self.read(datagram, datagram.bytes),
            Opened::Handshake if is_handshake(datagram.bytes) => self.read(datagram, datagram.bytes),
            Opened::Sealed => self.read(datagram, &opened),
            Opened::Handshake | Opened::Forged => {
                self.statistics.ignored.forged += 1;
                Ok(())
            }
        };
        self.opened = opened;
        result
    }

    /// Reads a datagram, without its seals, with the profile of its session, and acts on what it says.
    #[inline]
    fn read<'d>(&mut self, datagram: &'d Datagram<'d>, bytes: &'d [u8]) -> Result<()> {
        let (profile, origin, sender) = match datagram.way {
            Way::Channel(channel) => {
                let session = self.sessions.of_channel(channel);
                (session.profile, Origin::Channel(channel), Sender::Channel(channel.0 - session.channels.start))
            }
            Way::Unicast(socket) => {
                let peer = self.peers.find(datagram.from);
                let association = peer.and_then(|peer| self.peers.association(peer)).copied();
                let name = peer.and_then(|peer| self.name_of(peer));
                let sender = association.map_or(Sender::Unassociated, Sender::Peer);
                (self.sessions.of_unicast(socket).profile, name.map_or(Origin::Unverified, Origin::Peer), sender)
            }
        };
        let mut result = Ok(());
        profile.decode(bytes, sender, |found: Found<'_, P::Label>| {
            if result.is_ok()
                && let Err(error) = self.on_found(datagram, origin, found)
            {
                result = Err(error);
            }
        });
        result
    }

    #[inline]
    fn on_found<'d>(&mut self, datagram: &'d Datagram<'d>, origin: Origin, found: Found<'d, P::Label>) -> Result<()> {
        let Datagram { at, from, ecn, .. } = *datagram;
        if let (Found::Packet { .. } | Found::Closed, Way::Channel(channel)) = (&found, datagram.way)
            && !self.input.is_source(channel, from.ip())
        {
            self.on_strange(datagram, Strange::Source);
            return Ok(());
        }
        let ignored = &mut self.statistics.ignored;
        match (found, datagram.way) {
            (Found::Packet { header, label, payload }, way) => {
                if !self.closed.is_empty() && matches!(way, Way::Channel(_)) {
                    self.on_data_after_close(at, self.sessions.of(way));
                }
                let packet = Packet { header, size: datagram.size(), ecn };
                return self.on_packet(&packet, &Handled { datagram, origin, label, payload });
            }
            (Found::Message(message), Way::Unicast(socket)) => return self.on_message(at, socket, from, message),
            (Found::Handshake(message), Way::Unicast(socket)) => {
                let terms = self.application.terms(from);
                ignored.foreign += u64::from(!self.peers.on_message(at, socket, from, &message, terms));
                return self.on_news(at);
            }
            (Found::Bye(bye), Way::Unicast(_)) => {
                ignored.foreign += u64::from(!self.peers.on_bye(from, bye));
                return self.on_news(at);
            }
            (Found::Closed, way) => self.on_closed(at, self.sessions.of(way)),
            (Found::Strange(why), _) => self.on_strange(datagram, why),
            (Found::Undecodable, _) => ignored.undecodable += 1,
            (Found::Impossible, _) => ignored.impossible += 1,
            (Found::Foreign | Found::Message(_) | Found::Handshake(_) | Found::Bye(_), _) => ignored.foreign += 1,
        }
        Ok(())
    }

    /// A packet on a channel is not taken.
    fn on_strange(&mut self, datagram: &Datagram<'_>, why: Strange) {
        match why {
            Strange::Unreadable => self.statistics.ignored.undecodable += 1,
            Strange::Session(_) | Strange::Source | Strange::Channel | Strange::Code(_) => {
                self.statistics.ignored.foreign += 1;
            }
            Strange::Seal(_) => self.statistics.ignored.forged += 1,
        }
        let session = self.sessions.of(datagram.way);
        self.statistics.strangers.note(session, why, datagram.from.ip());
    }

    fn on_closed(&mut self, at: Time, session: usize) {
        if !self.closed.contains(&session) {
            self.closed.push(session);
            self.application.closed(at, session);
        }
    }

    /// Data takes back that the session is over: the sender sends on, or somebody else has said so.
    #[cold]
    fn on_data_after_close(&mut self, at: Time, session: usize) {
        if self.closed.contains(&session) {
            self.closed.retain(|closed| *closed != session);
            self.application.reopened(at, session);
        }
    }

    #[inline]
    fn on_packet(&mut self, packet: &Packet, handled: &Handled<'_, P::Label>) -> Result<()> {
        let at = handled.datagram.at;
        let mut is_for_endpoint = true;
        if let Origin::Peer(name) = handled.origin {
            let peer = self.peer_of(name);
            is_for_endpoint = self.peers.is_open(peer);
            self.peers.on_heard(at, peer);
            self.on_news(at)?;
        }
        if !is_for_endpoint || self.stage == Stage::Waiting {
            self.statistics.ignored.foreign += 1;
            return Ok(());
        }
        match handled.payload.is_empty() {
            false => self.statistics.note_received(self.sessions.of(handled.datagram.way), packet.size.count()),
            true => self.statistics.control_received += 1,
        }
        self.statistics.marked += u64::from(packet.ecn == Ecn::Ce);
        self.meet_deadlines(at)?;
        self.event(at, Event::Packet { from: handled.origin, packet }, Some(handled))
    }

    /// A message to the application came. Nobody can use this host to send a third party more than he spends himself.
    fn on_message(&mut self, at: Time, socket: usize, from: SocketAddr, message: &[u8]) -> Result<()> {
        self.has_changed = true;
        let Some(answer) = self.application.message(at, from, message) else { return Ok(()) };
        if answer.len() > message.len() {
            self.statistics.refused += 1;
            return Ok(());
        }
        self.outgoing.message(socket, from, &answer, &mut self.statistics)
    }
}

/// Whether a datagram is a step of the handshake and nothing else.
fn is_handshake(datagram: &[u8]) -> bool {
    let first = rtcp::packets(datagram).next().and_then(std::result::Result::ok);
    datagram.len() == handshake::LEN && first.is_some_and(|packet| Message::decode(&packet).is_ok())
}

/// Deadlines in one go, so that an endpoint that asks for the same time again and again does not stop the host.
const MAX_DEADLINES: usize = 100_000;
