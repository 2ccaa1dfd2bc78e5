//! What comes to a party: its seals are checked, its profile reads it, and the endpoint or the application is told.

use std::net::SocketAddr;

use weir_core::{ChannelId, Event, Origin, Packet, PeerId};
use weir_units::{Ecn, Time};
use weir_wire::rtcp::{self, handshake, handshake::Message};

use super::application::Application;
use super::keys::Opened;
use super::party::{Datagram, Handled, Party, Stage};
use super::strangers::Strange;
use crate::error::Result;
use crate::profile::{Found, Profile, Sender};
use crate::socket::Way;

impl<P: Profile, A: Application<P::Label>> Party<'_, P, A> {
    /// Takes a datagram: what its seals say comes before anything in it.
    #[inline]
    pub(super) fn take_in(&mut self, datagram: &Datagram<'_>) -> Result<()> {
        match datagram.way {
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
        // What is not from the sender is not worth the look.
        let opened = match self.input.is_source(ChannelId(channel), datagram.from.ip()) {
            true => opener.open(channel - first, datagram.bytes).map_err(Strange::Seal),
            false => Err(Strange::Source),
        };
        let result = match opened {
            Ok(packet) => self.read(datagram, packet),
            Err(why) => {
                self.on_strange(datagram, why);
                Ok(())
            }
        };
        if let Some(epoch) = opener.take_begun() {
            self.application.begun(datagram.at, session, epoch);
        }
        self.sessions.get_mut(session).opener = Some(opener);
        result
    }

    /// Takes a datagram to a unicast socket, which is sealed if this host shares keys with its sender.
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
        let (profile, from, sender) = match datagram.way {
            Way::Channel(channel) => {
                let session = self.sessions.of_channel(channel);
                let from = From { origin: Origin::Channel(channel), peer: None };
                (session.profile, from, Sender::Channel(channel.0 - session.channels.start))
            }
            Way::Unicast(socket) => {
                let peer = self.peers.find(datagram.from);
                let association = peer.and_then(|peer| self.peers.association(peer)).copied();
                let name = peer.map(|peer| self.name_of(peer));
                let sender = association.map_or(Sender::Unassociated, Sender::Peer);
                let from = From { origin: name.map_or(Origin::Unverified, Origin::Peer), peer };
                (self.sessions.of_unicast(socket).profile, from, sender)
            }
        };
        let mut result = Ok(());
        profile.decode(bytes, sender, |found: Found<'_, P::Label>| {
            if result.is_ok()
                && let Err(error) = self.on_found(datagram, from, found)
            {
                result = Err(error);
            }
        });
        result
    }

    #[inline]
    fn on_found<'d>(
        &mut self,
        datagram: &'d Datagram<'d>,
        From { origin, peer }: From,
        found: Found<'d, P::Label>,
    ) -> Result<()> {
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
                return self.on_packet(&packet, &Handled { datagram, origin, peer, label, payload });
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
            // A peer sends on until it hears that this one has left.
            (Found::Foreign, Way::Unicast(_)) if matches!(self.stage, Stage::Resting | Stage::Finished) => {}
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
        if let Some(peer) = handled.peer {
            is_for_endpoint = self.peers.is_open(peer);
            self.peers.on_heard(at, peer);
            self.on_news(at)?;
        }
        if self.stage == Stage::Resting {
            // It was on its way when the application began to rest.
            return Ok(());
        }
        let place = self.seats.place_of(handled.peer).filter(|_| is_for_endpoint && self.stage != Stage::Waiting);
        let Some(place) = place else {
            self.statistics.ignored.foreign += 1;
            return Ok(());
        };
        match handled.payload.is_empty() {
            false => self.statistics.note_received(self.sessions.of(handled.datagram.way), packet.size.count()),
            true => self.statistics.control_received += 1,
        }
        self.statistics.marked += u64::from(packet.ecn == Ecn::Ce);
        self.meet_deadlines(at)?;
        self.event(place, at, Event::Packet { from: handled.origin, packet }, Some(handled))
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

/// Where a datagram came from: as the endpoint is told, and the peer, if it came from one.
#[derive(Debug, Clone, Copy)]
struct From {
    origin: Origin,
    peer: Option<PeerId>,
}

/// Whether a datagram is a step of the handshake and nothing else.
fn is_handshake(datagram: &[u8]) -> bool {
    let first = rtcp::packets(datagram).next().and_then(std::result::Result::ok);
    datagram.len() == handshake::LEN && first.is_some_and(|packet| Message::decode(&packet).is_ok())
}
