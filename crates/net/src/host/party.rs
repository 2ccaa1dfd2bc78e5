//! A tenant's endpoint between events and actions: it is told what happens, and all that it wants is carried out.

use std::net::SocketAddr;

use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Origin, Packet, Payload, PeerId};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::rtcp::handshake::Terms;

use super::application::{Application, Delivery, PeerChange};
use super::kept::Kept;
use super::outgoing::{Outgoing, Target};
use super::peers::{Departure, News, Peers};
use super::statistics::Statistics;
use super::tenant::Sessions;
use crate::error::{Impossible, NetError};
use crate::profile::{Found, Profile, Sending};
use crate::socket::{Input, header_len};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Party<'a, P: Profile, A> {
    pub(super) endpoint: Option<Box<dyn Endpoint>>,
    /// The endpoint is that of one peer: the application makes it when the peer comes, and it goes with the peer.
    is_per_peer: bool,
    pub(super) application: &'a mut A,
    pub(super) peers: Peers<P::Association>,
    pub(super) outgoing: Outgoing,
    pub(super) kept: Kept<P::Label>,
    pub(super) statistics: Statistics,
    /// The time of the last event: it never goes back.
    pub(super) time: Time,
    pub(super) stage: Stage,
    /// Payloads that the endpoint knows of and has not taken; `u64::MAX` for a supply without end.
    offered: u64,
    is_end_told: bool,
    /// The room that the endpoint knows of, less what it has delivered since.
    room_known: Option<u64>,
    is_closed: bool,
    /// Something has happened since the application's last tick that it should not wait for the next one to act on.
    pub(super) has_changed: bool,
}

/// How far the endpoint's session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for the peers of the configuration.
    Waiting,
    Started,
    Finished,
}

/// What surrounds the core: where packets came in, and what they look like.
#[derive(Debug)]
pub(super) struct Surroundings<'e, P> {
    pub(super) input: &'e Input,
    pub(super) sessions: &'e Sessions<P>,
}

/// A datagram, and where it came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram<'d> {
    pub(super) at: Time,
    pub(super) origin: Origin,
    /// The unicast socket through which it can be answered.
    pub(super) socket: usize,
    pub(super) from: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: &'d [u8],
}

/// The packet that the endpoint is told of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handled<'d, L> {
    datagram: Datagram<'d>,
    label: Option<L>,
    payload: &'d [u8],
}

impl<'a, P: Profile, A: Application<P::Label>> Party<'a, P, A> {
    pub(super) fn new(
        endpoint: Option<Box<dyn Endpoint>>,
        application: &'a mut A,
        peers: Peers<P::Association>,
        outgoing: Outgoing,
        statistics: Statistics,
    ) -> Self {
        Party {
            is_per_peer: endpoint.is_none(),
            endpoint,
            application,
            peers,
            outgoing,
            kept: Kept::new(),
            statistics,
            time: Time::ZERO,
            stage: Stage::Waiting,
            offered: 0,
            is_end_told: false,
            room_known: None,
            is_closed: false,
            has_changed: false,
        }
    }

    /// Starts the session once every peer of the configuration is there.
    pub(super) fn start(&mut self, now: Time, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        if self.stage == Stage::Waiting && !self.is_per_peer && self.peers.are_all_up() {
            self.stage = Stage::Started;
            self.event(now, Event::Start, None, around)?;
        }
        Ok(())
    }

    /// The session of one peer begins.
    fn open(&mut self, now: Time, peer: PeerId, terms: &Terms, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        if self.stage == Stage::Finished {
            return Ok(());
        }
        let address = self.peers.address(peer).map_or(UNKNOWN, |(_, address)| address);
        self.endpoint = self.application.open(now, address, terms);
        if self.endpoint.is_none() {
            return self.close(now, peer, Departure::Declined, around);
        }
        let peer = self.peers.rebase(peer);
        debug_assert_eq!(peer, PeerId(0));
        (self.offered, self.is_end_told, self.room_known) = (0, false, None);
        self.stage = Stage::Started;
        self.event(now, Event::Start, None, around)
    }

    /// A peer is gone, or is to go.
    fn close(&mut self, now: Time, peer: PeerId, why: Departure, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        let event = if self.is_per_peer { Event::Finish } else { Event::PeerDown(peer) };
        self.event(now, event, None, around)?;
        let address = self.peers.address(peer).map_or(UNKNOWN, |(_, address)| address);
        self.peers.leave(now, peer, why);
        if self.is_per_peer {
            self.endpoint = None;
            self.kept.clear();
            self.stage = Stage::Waiting;
        }
        self.application.peer(now, peer, address, PeerChange::Down(why));
        self.has_changed = true;
        Ok(())
    }

    /// The application has what it wanted.
    pub(super) fn finish(&mut self, now: Time, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        if self.stage != Stage::Finished {
            self.stage = Stage::Finished;
            self.event(now, Event::Finish, None, around)?;
        }
        Ok(())
    }

    /// Tells the endpoint of payloads to send, of their end, and of the room for received ones.
    pub(super) fn offer(&mut self, now: Time, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        if self.stage != Stage::Started {
            return Ok(());
        }
        if let Some(waiting) = self.application.waiting() {
            let packets = waiting.saturating_sub(self.offered);
            if packets > 0 {
                self.offered = waiting;
                self.event(now, Event::Offer { packets }, None, around)?;
            }
            if self.application.is_over() && !std::mem::replace(&mut self.is_end_told, true) {
                self.event(now, Event::End, None, around)?;
            }
        }
        let room = self.application.room();
        if let Some(payloads) = room.filter(|_| room != self.room_known) {
            self.room_known = room;
            self.event(now, Event::Room { payloads }, None, around)?;
        }
        Ok(())
    }

    /// A datagram says something.
    #[inline]
    pub(super) fn on_found(
        &mut self,
        datagram: Datagram<'_>,
        found: Found<'_, P::Label>,
        around: &Surroundings<'_, P>,
    ) -> Result<(), NetError> {
        let ignored = &mut self.statistics.ignored;
        match found {
            Found::Packet { header, label, payload } => {
                let packet = Packet { header, size: size_of(&datagram), ecn: datagram.ecn };
                return self.on_packet(&packet, Handled { datagram, label, payload }, around);
            }
            Found::Message(message) => return self.on_message(&datagram, message),
            Found::Handshake(message) => {
                let Datagram { at, socket, from, .. } = datagram;
                let terms = self.application.terms(from);
                let is_ours = self.peers.on_message(at, socket, from, &message, terms);
                self.statistics.ignored.foreign += u64::from(!is_ours);
                return self.on_news(at, around);
            }
            Found::Bye(bye) => {
                let is_ours = self.peers.on_bye(datagram.from, bye);
                self.statistics.ignored.foreign += u64::from(!is_ours);
                return self.on_news(datagram.at, around);
            }
            Found::Closed if std::mem::replace(&mut self.is_closed, true) => {}
            Found::Closed => self.application.closed(datagram.at),
            Found::Undecodable => ignored.undecodable += 1,
            Found::Foreign => ignored.foreign += 1,
            Found::Impossible => ignored.impossible += 1,
        }
        Ok(())
    }

    #[inline]
    fn on_packet(
        &mut self,
        packet: &Packet,
        handled: Handled<'_, P::Label>,
        around: &Surroundings<'_, P>,
    ) -> Result<(), NetError> {
        let Datagram { at, origin, .. } = handled.datagram;
        if let Origin::Peer(peer) = origin {
            if self.peers.association(peer).is_none() && !self.peers.is_known(peer) {
                self.statistics.ignored.foreign += 1;
                return Ok(());
            }
            self.peers.on_heard(at, peer);
            if self.peers.has_news() {
                self.on_news(at, around)?;
            }
        }
        if self.stage == Stage::Waiting {
            self.statistics.ignored.foreign += 1;
            return Ok(());
        }
        match handled.label {
            Some(_) => self.statistics.received.add(1, packet.size.count()),
            None => self.statistics.control_received += 1,
        }
        self.statistics.marked += u64::from(packet.ecn == Ecn::Ce);
        self.event(at, Event::Packet { from: origin, packet }, Some(&handled), around)
    }

    fn on_message(&mut self, datagram: &Datagram<'_>, message: &[u8]) -> Result<(), NetError> {
        let answer = self.application.message(datagram.at, datagram.from, message);
        // Nobody can use this host to send a third party more than he spends himself.
        match answer.filter(|answer| answer.len() <= message.len()) {
            Some(answer) => self.outgoing.message(datagram.socket, datagram.from, &answer, &mut self.statistics),
            None => Ok(()),
        }
    }

    /// Sends what the handshake has to say, and acts on what it has found.
    pub(super) fn on_news(&mut self, now: Time, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        loop {
            while let Some(message) = self.peers.next_message() {
                self.outgoing.message(message.socket, message.to, message.bytes(), &mut self.statistics)?;
            }
            let Some(news) = self.peers.next_news() else { break };
            self.on_one_news(now, news, around)?;
        }
        self.start(now, around)
    }

    fn on_one_news(&mut self, now: Time, news: News, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        match news {
            News::Offered(peer, terms) => {
                self.associate(peer, around);
                if self.is_per_peer && self.endpoint.is_none() {
                    return self.open(now, peer, &terms, around);
                }
            }
            News::Up(peer) => return self.on_up(now, peer, around),
            News::Busy(peer) => self.tell(now, peer, PeerChange::Busy),
            News::Unanswered(peer, is_refused) => self.tell(now, peer, PeerChange::Unanswered { is_refused }),
            News::Down(peer, why) => return self.close(now, peer, why, around),
        }
        Ok(())
    }

    fn on_up(&mut self, now: Time, peer: PeerId, around: &Surroundings<'_, P>) -> Result<(), NetError> {
        self.associate(peer, around);
        self.statistics.peers += 1;
        self.tell(now, peer, PeerChange::Up);
        if self.is_per_peer {
            if self.endpoint.is_none() {
                let terms = self.peers.address(peer).map(|(_, address)| self.application.terms(address));
                return self.open(now, peer, &terms.unwrap_or_default(), around);
            }
        } else if self.stage == Stage::Started {
            return self.event(now, Event::PeerUp(peer), None, around);
        }
        Ok(())
    }

    fn tell(&mut self, now: Time, peer: PeerId, change: PeerChange) {
        if let Some((_, address)) = self.peers.address(peer) {
            self.application.peer(now, peer, address, change);
        }
    }

    fn associate(&mut self, peer: PeerId, around: &Surroundings<'_, P>) {
        if let Some((ids, (socket, _))) = self.peers.ids(peer).zip(self.peers.address(peer)) {
            self.peers.associate(peer, around.sessions.of_unicast(socket).profile.associate(&ids));
        }
    }

    /// Tells the endpoint, and does what it wants. `handled` is the packet of the event.
    #[inline]
    pub(super) fn event(
        &mut self,
        at: Time,
        event: Event<'_>,
        handled: Option<&Handled<'_, P::Label>>,
        around: &Surroundings<'_, P>,
    ) -> Result<(), NetError> {
        self.time = self.time.max(at);
        let Some(mut endpoint) = self.endpoint.take() else { return Ok(()) };
        endpoint.handle(self.time, event);
        while let Some(action) = endpoint.poll(self.time) {
            self.carry_out(&action, handled, around)?;
        }
        self.endpoint = Some(endpoint);
        self.outgoing.flush(&mut self.statistics)
    }

    #[inline]
    fn carry_out(
        &mut self,
        action: &Action,
        handled: Option<&Handled<'_, P::Label>>,
        around: &Surroundings<'_, P>,
    ) -> Result<(), NetError> {
        match action {
            Action::Send { to, packet, payload, with_next } => {
                let (target, peer) = self.target(*to, packet, handled)?;
                let Some(target) = target else { return Ok(()) };
                self.outgoing.make_room(target, packet.ecn, *with_next, &mut self.statistics)?;
                self.send(target, peer, packet, *payload, around)
            }
            Action::Join(channel) => self.change_membership(around.input.join(*channel)),
            Action::Leave(channel) => self.change_membership(around.input.leave(*channel)),
            Action::Deliver { number } => self.deliver(*number, handled),
            Action::DeliverKept { number } => {
                let (label, payload) = self.kept.get(*number).ok_or(Impossible::NotKept { number: *number })?;
                self.room_known = self.room_known.map(|room| room.saturating_sub(1));
                self.statistics.delivered += 1;
                self.statistics.delivered_payload += Bytes::new(payload.len() as u64);
                self.application.deliver(self.time, Delivery { from: None, number: Some(*number), label, payload });
                Ok(())
            }
            Action::Take { number } => {
                let (label, payload) = self.application.payload(self.time, None).ok_or(Impossible::NothingOffered)?;
                self.kept.keep(*number, label, payload);
                self.offered = less_one(self.offered);
                Ok(())
            }
            Action::Keep { number } => {
                let handled = handled.ok_or(Impossible::NoPayload)?;
                self.kept.keep(*number, handled.label.ok_or(Impossible::NoPayload)?, handled.payload);
                Ok(())
            }
            Action::Release { below } => {
                self.kept.release(*below);
                Ok(())
            }
            Action::Complete => {
                self.application.complete(self.time);
                self.has_changed = true;
                if self.is_per_peer {
                    self.peers.complete(PeerId(0));
                }
                Ok(())
            }
            Action::Observe(observation) => {
                self.application.observe(self.time, observation);
                Ok(())
            }
        }
    }

    #[inline]
    fn deliver(&mut self, number: Option<u64>, handled: Option<&Handled<'_, P::Label>>) -> Result<(), NetError> {
        let handled = handled.ok_or(Impossible::NoPayload)?;
        let label = handled.label.as_ref().ok_or(Impossible::NoPayload)?;
        self.room_known = self.room_known.map(|room| room.saturating_sub(1));
        self.statistics.delivered += 1;
        self.statistics.delivered_payload += Bytes::new(handled.payload.len() as u64);
        let from = Some(handled.datagram.origin);
        self.application.deliver(self.time, Delivery { from, number, label, payload: handled.payload });
        Ok(())
    }

    /// What the system refuses is told, and the session goes on without it; a channel that does not exist is an error.
    fn change_membership(&mut self, result: Result<(), NetError>) -> Result<(), NetError> {
        match result {
            Err(error @ NetError::UnknownChannel { .. }) => Err(error),
            Err(problem) => {
                self.statistics.failed_memberships += 1;
                self.application.problem(self.time, &problem);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Where a packet goes, and to which peer; `None` for a peer that has gone.
    fn target(
        &mut self,
        to: Destination,
        packet: &Packet,
        handled: Option<&Handled<'_, P::Label>>,
    ) -> Result<(Option<Target>, Option<PeerId>), NetError> {
        let target = match to {
            Destination::Channel(channel) => Target::Channel(usize::from(channel.0)),
            Destination::Peer(peer) => {
                self.peers.address(peer).ok_or(Impossible::NoPeer { peer })?;
                let Some((socket, address, _)) = self.peers.route(peer) else {
                    self.statistics.refused += 1;
                    return Ok((None, None));
                };
                return Ok((Some(Target::Unicast(socket, address)), Some(peer)));
            }
            Destination::Reply => {
                let asked = handled.map(|handled| handled.datagram);
                let asked = asked.filter(|datagram| datagram.origin == Origin::Unverified);
                let asked = asked.ok_or(Impossible::NobodyToReplyTo)?;
                if packet.size > size_of(&asked) {
                    return Err(Impossible::LongReply.into());
                }
                Target::Unicast(asked.socket, asked.from)
            }
        };
        if !self.outgoing.can_reach(target) {
            return Err(Impossible::NoOutput { to }.into());
        }
        Ok((Some(target), None))
    }

    #[inline]
    fn send(
        &mut self,
        target: Target,
        peer: Option<PeerId>,
        packet: &Packet,
        payload: Payload,
        around: &Surroundings<'_, P>,
    ) -> Result<(), NetError> {
        let session = match target {
            Target::Channel(channel) => around.sessions.of_channel(ChannelId(channel as u16)),
            Target::Unicast(socket, _) => around.sessions.of_unicast(socket),
        };
        let profile = &session.profile;
        let empty = profile.empty();
        let data = match payload {
            Payload::None => None,
            Payload::Kept(number) => {
                let (label, payload) = self.kept.get(number).ok_or(Impossible::NotKept { number })?;
                Some((*label, payload))
            }
            Payload::Fresh => {
                let channel = match target {
                    Target::Channel(channel) => Some(ChannelId(channel as u16)),
                    Target::Unicast(..) => None,
                };
                self.offered = less_one(self.offered);
                let fresh = self.application.payload(self.time, channel);
                self.statistics.starved += u64::from(fresh.is_none());
                match fresh.or(empty.map(|label| (label, &[][..]))) {
                    None => return Ok(()),
                    fresh => fresh,
                }
            }
        };
        let (leaves, ntp_micros) = self.outgoing.stamp();
        let waited = leaves.since(self.time);
        let association = peer.and_then(|peer| self.peers.route(peer)).and_then(|(_, _, association)| association);
        let write = |out: &mut [u8]| {
            let label = data.as_ref().map(|(label, _)| label);
            profile.encode(&packet.header, label, Sending { ntp_micros, waited, association }, out)
        };
        let payload = data.as_ref().map(|(_, payload)| *payload);
        match self.outgoing.add(target, packet, payload, write, &mut self.statistics)? {
            true => Ok(()),
            false => Err(Impossible::Header { header: packet.header }.into()),
        }
    }
}

/// What is left of an offer when a payload has been taken; one without end stays.
fn less_one(offered: u64) -> u64 {
    if offered == u64::MAX { offered } else { offered.saturating_sub(1) }
}

fn size_of(datagram: &Datagram<'_>) -> Bytes {
    Bytes::new(datagram.bytes.len() as u64 + header_len(datagram.from.ip()))
}

/// Stands where a peer has no address any more.
const UNKNOWN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
