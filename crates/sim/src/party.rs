//! An endpoint on a node: the simulator's driver of the seam.

use std::time::Duration;

use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Origin, Packet as ProtocolPacket, PeerId};
use weir_units::Time;

use crate::agent::Turn;
use crate::fabric::Route;
use crate::host::Host;
use crate::multicast::Member;
use crate::wire_check::over_the_wire;
use crate::{Address, AgentId, Body, Packet, Probe, SessionId};

/// An endpoint, and what the network knows of it.
#[derive(Debug)]
pub(crate) struct Party {
    endpoint: Box<dyn Endpoint>,
    session: Option<SessionId>,
    /// Where it is attached to the session's tree; a sender is not.
    member: Option<Member>,
    /// What is not as on most hosts.
    host: Option<Box<Host>>,
    wake: Option<Time>,
    started: bool,
    peers: Vec<(AgentId, Route)>,
}

impl Party {
    pub(crate) fn new(endpoint: Box<dyn Endpoint>, session: Option<SessionId>, member: Option<Member>) -> Party {
        Party { endpoint, session, member, host: None, wake: None, started: false, peers: Vec::new() }
    }

    pub(crate) fn change_host(&mut self, change: impl FnOnce(Host) -> Host) {
        let host = self.host.take().map_or_else(Host::default, |host| *host);
        self.host = Some(Box::new(change(host)));
    }

    /// Introduces a correspondent; gives the name by which the endpoint knows it.
    pub(crate) fn add_peer(&mut self, agent: AgentId, route: Route) -> PeerId {
        self.peers.push((agent, route));
        PeerId(self.peers.len() as u32 - 1)
    }

    pub(crate) fn start(&mut self, turn: &mut Turn<'_, impl Probe>) {
        self.started = true;
        self.handle(turn, Event::Start);
        let offered = self.host.as_mut().map_or(0, |host| host.start(turn.now));
        self.offer(turn, offered);
    }

    pub(crate) fn stop(&mut self, turn: &mut Turn<'_, impl Probe>) {
        if self.started {
            self.host.iter_mut().for_each(|host| host.stop());
            self.handle(turn, Event::Finish);
        }
    }

    #[inline]
    pub(crate) fn receive(&mut self, turn: &mut Turn<'_, impl Probe>, packet: &Packet) {
        self.take_in(turn.now, packet, &mut |party, action| party.carry_out(turn, packet.size.count(), action));
    }

    /// Gives the endpoint a packet; what it wants goes to `act`. The network is not needed for that.
    #[inline]
    pub(crate) fn take_in(&mut self, now: Time, packet: &Packet, act: &mut impl FnMut(&Party, &Action)) {
        let Body::Endpoint(header) = packet.body else { return };
        if !self.started {
            return;
        }
        let from = match packet.to {
            Address::Channel(_, channel) => Origin::Channel(ChannelId(channel)),
            Address::Agent(_) => match self.correspondent(packet.source) {
                Some(peer) => Origin::Peer(peer),
                None => return,
            },
        };
        let packet = ProtocolPacket { header, size: packet.size, ecn: packet.ecn };
        self.tell(now, Event::Packet { from, packet: &packet }, act);
    }

    pub(crate) fn expire(&mut self, turn: &mut Turn<'_, impl Probe>) {
        let offered = self.host.as_mut().map_or(0, |host| host.expire(turn.now));
        self.offer(turn, offered);
        if self.wake.is_some_and(|at| at <= turn.now) {
            self.handle(turn, Event::Deadline);
        }
    }

    fn offer(&mut self, turn: &mut Turn<'_, impl Probe>, packets: u64) {
        if packets > 0 {
            self.handle(turn, Event::Offer { packets });
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.wake
    }

    /// By which name the endpoint knows an agent. Nobody introduces the parties of a session to each other: to a receiver the
    /// sender is its first correspondent, and to the sender a receiver is called by its number.
    #[inline]
    fn correspondent(&self, agent: AgentId) -> Option<PeerId> {
        match (self.peers.is_empty(), self.session, self.member) {
            (true, Some(_), Some(_)) => Some(PeerId(0)),
            (true, Some(_), None) => Some(PeerId(agent.index() as u32)),
            _ => self.peers.iter().position(|(peer, _)| *peer == agent).map(|peer| PeerId(peer as u32)),
        }
    }

    /// Which agent the endpoint knows by this name, and the way there.
    fn way_to(&self, turn: &mut Turn<'_, impl Probe>, PeerId(peer): PeerId) -> Option<(AgentId, Route)> {
        let Some(session) = self.session.filter(|_| self.peers.is_empty()) else {
            return self.peers.get(peer as usize).copied();
        };
        let to = match self.member {
            Some(_) => turn.fabric.sessions[session.index()].sender.filter(|_| peer == 0)?,
            None => AgentId::new(peer as usize),
        };
        Some((to, turn.fabric.way(turn.id, to)?))
    }

    /// What happens to the endpoint beside packets.
    fn handle(&mut self, turn: &mut Turn<'_, impl Probe>, event: Event<'_>) {
        self.tell(turn.now, event, &mut |party, action| party.carry_out(turn, 0, action));
    }

    #[inline]
    fn tell(&mut self, now: Time, event: Event<'_>, act: &mut impl FnMut(&Party, &Action)) {
        let ahead = self.host.as_ref().map_or(Duration::ZERO, |host| host.clock_ahead());
        let local = now + ahead;
        self.endpoint.handle(local, event);
        // By reference, so that an action, which is large, is not moved once more.
        while let Some(action) = &self.endpoint.poll(local) {
            act(self, action);
        }
        self.wake = self.endpoint.deadline().map(|at| at - ahead);
        if let Some(host) = &mut self.host {
            self.wake = host.wakes_at(self.wake);
        }
    }

    /// Does what the endpoint wants; `bytes` are those of the packet just handled.
    #[inline]
    pub(crate) fn carry_out(&self, turn: &mut Turn<'_, impl Probe>, bytes: u64, action: &Action) {
        match action {
            Action::Send { to, packet } => self.send(turn, *to, *packet),
            Action::Join(channel) => self.change(turn, *channel, true),
            Action::Leave(channel) => self.change(turn, *channel, false),
            Action::Deliver => turn.probe.deliver(turn.now, turn.id, bytes),
            Action::Observe(observation) => turn.probe.observe(turn.now, turn.id, observation),
        }
    }

    fn change(&self, turn: &mut Turn<'_, impl Probe>, ChannelId(channel): ChannelId, join: bool) {
        if let (Some(session), Some(member)) = (self.session, self.member) {
            turn.probe.member(turn.now, turn.id, channel, join);
            turn.fabric.change(turn.now, session, member, channel, join);
        }
    }

    fn send(&self, turn: &mut Turn<'_, impl Probe>, to: Destination, packet: ProtocolPacket) {
        let session = self.session.map(|id| (id, &turn.fabric.sessions[id.index()]));
        let header = match turn.fabric.through_the_wire {
            true => over_the_wire(session.map(|(_, session)| session.form), packet.header),
            false => packet.header,
        };
        match to {
            Destination::Channel(ChannelId(channel)) => {
                let Some((session, _)) = session else { return };
                let packet = Packet {
                    size: packet.size,
                    flow: turn.flow,
                    source: turn.id,
                    to: Address::Channel(session, channel),
                    ecn: packet.ecn,
                    body: Body::Endpoint(header),
                };
                turn.fabric.multicast(turn.now, packet, session, turn.probe);
            }
            Destination::Peer(peer) => {
                if let Some(to) = self.way_to(turn, peer) {
                    turn.send(to, packet.size, packet.ecn, Body::Endpoint(header));
                }
            }
        }
    }
}
