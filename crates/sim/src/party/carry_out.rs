//! What an endpoint wants is done, every action of the contract.

use weir_core::{Action, ChannelId, Destination, Header, Packet as ProtocolPacket, Payload, PeerId};
use weir_units::Bytes;
use weir_wire::{CciForm, Specimen};

use super::{Party, agent_at};
use crate::agent::Turn;
use crate::fabric::{Control, Fabric, Route};
use crate::ranges::{Attachment, Located};
use crate::traffic::{Delivered, Supplier};
use crate::{Address, AgentId, Body, Monitor, Packet, SessionId};

/// Why an action cannot be carried out: an error of the endpoint.
type Refused = &'static str;

impl Party {
    /// Does what the endpoint wants; `handled` is the packet that it has just handled. What cannot be done is an error of the
    /// run.
    #[inline]
    pub(crate) fn carry_out(&mut self, turn: &mut Turn<'_, impl Monitor>, handled: Option<&Packet>, action: &Action) {
        let done = match action {
            // What an agent sends in one instant goes onto its first link in one piece, so pairs need no care.
            Action::Send { to, packet, payload, with_next: _ } => self.send(turn, handled, *to, packet, *payload),
            Action::Contact { at } => {
                turn.fabric.schedule(turn.now, Control::Reached(turn.id, agent_at(*at)));
                Ok(())
            }
            Action::Part { peer } => self.part(turn, *peer),
            Action::Join(channel) => self.change(turn, *channel, true),
            Action::Leave(channel) => self.change(turn, *channel, false),
            Action::Deliver { number } => self.deliver(turn, handled, *number),
            Action::DeliverKept { number } => self.deliver_kept(turn, *number),
            Action::Take { number } => self.take(*number),
            Action::Keep { number } => self.keep(handled, *number),
            Action::Release { below } => {
                self.host.iter_mut().for_each(|host| host.kept.release(*below));
                Ok(())
            }
            Action::Complete => {
                turn.monitor.complete(turn.now, turn.id);
                Ok(())
            }
            Action::Observe(observation) => {
                turn.monitor.observe(turn.now, turn.id, observation);
                Ok(())
            }
            Action::ObserveSession(session, observation) => {
                turn.monitor.observe_session(turn.now, turn.id, *session, observation);
                Ok(())
            }
        };
        if let Err(why) = done {
            refuse(turn, why, action);
        }
    }

    fn change(&self, turn: &mut Turn<'_, impl Monitor>, channel: ChannelId, join: bool) -> Result<(), Refused> {
        let Located { at, channel: number } = self.locate(turn.fabric, channel).ok_or(NO_CHANNEL)?;
        let member = at.member.ok_or("it sends to this session, and was not attached to it to join channels")?;
        turn.monitor.member(turn.now, turn.id, channel.0, join);
        turn.fabric.change(turn.now, at.session, member, number, join);
        Ok(())
    }

    /// Says goodbye, unless the peer has gone already.
    fn part(&mut self, turn: &mut Turn<'_, impl Monitor>, peer: PeerId) -> Result<(), Refused> {
        let peer = self.peers.get_mut(peer).ok_or(NO_PEER)?;
        if !std::mem::replace(&mut peer.is_gone, true) {
            turn.fabric.schedule(turn.now, Control::Goodbye(turn.id, peer.agent));
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        turn: &mut Turn<'_, impl Monitor>,
        handled: Option<&Packet>,
        number: Option<u64>,
    ) -> Result<(), Refused> {
        let size = handled.ok_or(NO_PACKET)?.size;
        self.hand_over(turn, size, number)
    }

    fn deliver_kept(&mut self, turn: &mut Turn<'_, impl Monitor>, number: u64) -> Result<(), Refused> {
        let size = self.kept(number)?;
        self.hand_over(turn, size, Some(number))
    }

    /// Gives a payload to the receiving application.
    fn hand_over(
        &mut self,
        turn: &mut Turn<'_, impl Monitor>,
        size: Bytes,
        number: Option<u64>,
    ) -> Result<(), Refused> {
        let reader = self.host.as_mut().and_then(|host| host.reader.as_mut());
        match reader.map_or(Delivered::Taken, |reader| reader.deliver(turn.now)) {
            Delivered::Taken => turn.monitor.deliver(turn.now, turn.id, size.count(), number),
            Delivered::ThrownAway => {}
            Delivered::Refused => return Err("the application has no room"),
        }
        Ok(())
    }

    fn take(&mut self, number: u64) -> Result<(), Refused> {
        if self.kept(number).is_ok() {
            return Err("a payload is kept under this number");
        }
        let supplier = self.host.as_mut().and_then(|host| host.supplier.as_mut());
        if !supplier.is_some_and(Supplier::take) {
            return Err(NOTHING_OFFERED);
        }
        self.insert_kept(number, Bytes::ZERO)
    }

    fn keep(&mut self, handled: Option<&Packet>, number: u64) -> Result<(), Refused> {
        let size = handled.ok_or(NO_PACKET)?.size;
        self.insert_kept(number, size)
    }

    fn insert_kept(&mut self, number: u64, size: Bytes) -> Result<(), Refused> {
        let kept = &mut self.host.get_or_insert_default().kept;
        if kept.is_full() {
            return Err(KEEPS_TOO_MUCH);
        }
        kept.insert(number, size);
        Ok(())
    }

    /// The size of the packet in which a kept payload came.
    fn kept(&self, number: u64) -> Result<Bytes, Refused> {
        self.host.as_ref().and_then(|host| host.kept.get(number)).ok_or("no payload is kept under this number")
    }

    #[inline]
    fn send(
        &mut self,
        turn: &mut Turn<'_, impl Monitor>,
        handled: Option<&Packet>,
        to: Destination,
        packet: &ProtocolPacket,
        payload: Payload,
    ) -> Result<(), Refused> {
        self.fetch(payload)?;
        match to {
            Destination::Channel(channel) => self.send_to_channel(turn, channel, packet),
            Destination::Peer(peer) => {
                let to = self.route_to(turn, peer)?;
                self.send_to_agent(turn, to, packet);
                Ok(())
            }
            Destination::Reply => {
                let to = self.route_back(turn, handled, packet)?;
                self.send_to_agent(turn, to, packet);
                Ok(())
            }
        }
    }

    /// The payload of a packet that is sent must be there.
    #[inline]
    fn fetch(&mut self, payload: Payload) -> Result<(), Refused> {
        match payload {
            Payload::None => Ok(()),
            Payload::Kept(number) => self.kept(number).map(|_| ()),
            // Without a supply of its own, an application always has something to send.
            Payload::Fresh => match self.host.as_mut().and_then(|host| host.supplier.as_mut()) {
                Some(supplier) => supplier.take().then_some(()).ok_or(NOTHING_OFFERED),
                None => Ok(()),
            },
        }
    }

    fn send_to_channel(
        &self,
        turn: &mut Turn<'_, impl Monitor>,
        channel: ChannelId,
        packet: &ProtocolPacket,
    ) -> Result<(), Refused> {
        let Located { at: Attachment { session, .. }, channel } =
            self.locate(turn.fabric, channel).ok_or(NO_CHANNEL)?;
        if !turn.fabric.is_wanted(turn.now, turn.id, session, channel) {
            return Ok(());
        }
        let known = &turn.fabric.sessions[session.index()];
        let packet = Packet {
            size: packet.size,
            flow: known.flow,
            source: turn.id,
            to: Address::Channel(session, channel),
            ecn: packet.ecn,
            body: body(turn.fabric, Some(session), packet),
        };
        turn.fabric.multicast(turn.now, packet, session, turn.monitor);
        Ok(())
    }

    #[inline]
    fn send_to_agent(&self, turn: &mut Turn<'_, impl Monitor>, to: (AgentId, Route), packet: &ProtocolPacket) {
        let body = body(turn.fabric, self.session, packet);
        turn.send(to, packet.size, packet.ecn, body);
    }

    /// Which agent the endpoint knows by this name, and the route there.
    #[inline]
    fn route_to(&mut self, turn: &mut Turn<'_, impl Monitor>, peer: PeerId) -> Result<(AgentId, Route), Refused> {
        let peer = self.peers.get_mut(peer).ok_or(NO_PEER)?;
        let route = match peer.route {
            Some(route) => route,
            None => *peer.route.insert(turn.fabric.route(turn.id, peer.agent).ok_or(NO_ROUTE)?),
        };
        Ok((peer.agent, route))
    }

    /// The route back to the unverified origin of the packet being handled.
    fn route_back(
        &self,
        turn: &mut Turn<'_, impl Monitor>,
        handled: Option<&Packet>,
        reply: &ProtocolPacket,
    ) -> Result<(AgentId, Route), Refused> {
        let asked = handled.ok_or(NO_PACKET)?;
        if matches!(asked.to, Address::Channel(..)) || self.peers.find(asked.source).is_some() {
            return Err("the packet being handled is not of an unverified origin");
        }
        if reply.size > asked.size {
            return Err("a reply is not longer than the packet that it answers");
        }
        Ok((asked.source, turn.fabric.route(turn.id, asked.source).ok_or(NO_ROUTE)?))
    }
}

/// What travels of a packet of a session, or of none: its header, through its encoding if that is wanted.
#[inline]
fn body(fabric: &Fabric, session: Option<SessionId>, packet: &ProtocolPacket) -> Body {
    Body::Endpoint(match fabric.through_the_wire {
        true => over_the_wire(session.map(|id| fabric.sessions[id.index()].form), &packet.header),
        false => packet.header,
    })
}

#[cold]
fn over_the_wire(form: Option<CciForm>, header: &Header) -> Header {
    let specimen = Specimen { form: form.unwrap_or_default(), ..Specimen::default() };
    specimen.round_trip(header).expect("what the encoder wrote can be read")
}

#[cold]
fn refuse(turn: &Turn<'_, impl Monitor>, why: Refused, action: &Action) -> ! {
    panic!("the endpoint of agent {} wants at {} what cannot be done: {why}: {action:?}", turn.id.index(), turn.now)
}

const NO_PEER: Refused = "it has no such peer";
const NO_CHANNEL: Refused = "its sessions have no such channel";
const NO_ROUTE: Refused = "no links lead there";
const NO_PACKET: Refused = "no packet is being handled";
const NOTHING_OFFERED: Refused = "the application offers nothing";
const KEEPS_TOO_MUCH: Refused = "it keeps a million payloads and releases none";
