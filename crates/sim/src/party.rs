//! An endpoint on a node: the simulator's driver of the contract. What happens to the endpoint comes in here; what it wants
//! is done in [`carry_out`].

mod carry_out;

use weir_core::{Action, ChannelId, Endpoint, Event, Locator, Origin, Packet as ProtocolPacket, PeerId};
use weir_units::Time;

use crate::agent::Turn;
use crate::clock::Clock;
use crate::fabric::{Fabric, Route};
use crate::host::{Host, News};
use crate::multicast::Member;
use crate::peers::Peers;
use crate::ranges::{Attachment, Located};
use crate::{Address, AgentId, Body, Monitor, Packet, SessionId};

/// An endpoint, and what the network knows of it.
#[derive(Debug)]
pub(crate) struct Party {
    endpoint: Box<dyn Endpoint>,
    /// The first of its sessions.
    session: Option<SessionId>,
    /// Where it is attached to that session's tree; a sender that joins nothing is not.
    member: Option<Member>,
    /// What is not as on most hosts.
    host: Option<Box<Host>>,
    wake: Option<Time>,
    peers: Peers,
    started: bool,
    stopped: bool,
    /// Whether agents that it does not know become its peers with their first packet.
    accepts_peers: bool,
}

impl Party {
    pub(crate) fn new(endpoint: Box<dyn Endpoint>, at: Option<Attachment>) -> Party {
        Party {
            endpoint,
            session: at.map(|at| at.session),
            member: at.and_then(|at| at.member),
            host: None,
            wake: None,
            peers: Peers::default(),
            started: false,
            stopped: false,
            accepts_peers: false,
        }
    }

    /// How many payloads it has its host keep.
    pub(crate) fn kept_payloads(&self) -> usize {
        self.host.as_ref().map_or(0, |host| host.kept.count())
    }

    pub(crate) fn change_host(&mut self, change: impl FnOnce(Host) -> Host) {
        let host = self.host.take().map_or_else(Host::default, |host| *host);
        self.host = Some(Box::new(change(host)));
    }

    /// Agents that the endpoint does not know become its peers with their first packet.
    pub(crate) fn accept_peers(&mut self) {
        self.accepts_peers = true;
    }

    /// Introduces a peer from the configuration; gives the name by which the endpoint knows it.
    pub(crate) fn introduce(&mut self, agent: AgentId, route: Route) -> PeerId {
        assert!(!self.started, "peers from the configuration are introduced before the endpoint starts");
        let peer = self.peers.add(agent);
        self.peers.get_mut(peer).into_iter().for_each(|peer| peer.route = Some(route));
        peer
    }

    /// Makes the endpoint a party of one more session; gives its first channel. `before` is how many channels the party's
    /// first session has.
    pub(crate) fn attach(&mut self, before: u16, at: Attachment, channels: u16) -> ChannelId {
        match self.session {
            Some(first) if first != at.session => self.host.get_or_insert_default().ranges.add(before, at, channels),
            _ => {
                (self.session, self.member) = (Some(at.session), at.member);
                ChannelId(0)
            }
        }
    }

    /// The first of its sessions.
    pub(crate) fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The endpoint's name for the first channel of a session, if it can be a member of its channels.
    pub(crate) fn first_channel(&self, session: SessionId) -> Option<ChannelId> {
        if self.session == Some(session) {
            return self.member.map(|_| ChannelId(0));
        }
        self.host.as_ref()?.ranges.first_of(session)
    }

    /// The agents to whom it says goodbye.
    pub(crate) fn correspondents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.peers.iter().filter(|(_, peer)| !peer.is_gone).map(|(_, peer)| peer.agent)
    }

    /// Whether a goodbye from an agent is of interest, now or when a packet that is on its way has come.
    pub(crate) fn may_know(&self, agent: AgentId) -> bool {
        self.accepts_peers || self.peers.find(agent).is_some()
    }

    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// Whether it can be contacted now.
    pub(crate) fn is_reachable(&self) -> bool {
        self.started && !self.stopped && self.accepts_peers
    }

    pub(crate) fn start(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        self.started = true;
        if self.peers.is_empty() {
            self.add_senders(turn);
        }
        if self.accepts_peers {
            self.handle(turn, Event::Reachable { at: locator(turn.id) });
        }
        let room = self.host.as_mut().and_then(|host| host.open(turn.now));
        room.into_iter().for_each(|room| self.handle(turn, room));
        self.handle(turn, Event::Start);
        let gone: Vec<PeerId> = self.peers.iter().filter(|(_, peer)| peer.is_gone).map(|(id, _)| id).collect();
        gone.into_iter().for_each(|peer| self.handle(turn, Event::PeerDown(peer)));
        let news = self.host.as_mut().map(|host| host.start(turn.now));
        self.tell_news(turn, news);
    }

    /// Nobody introduces the parties of a session to each other: a receiver's first peers are the senders of its sessions.
    fn add_senders(&mut self, turn: &Turn<'_, impl Monitor>) {
        let first = self.session.zip(self.member).map(|(session, _)| session);
        let others = self.host.iter().flat_map(|host| host.ranges.attachments()).map(|at| at.session);
        let senders = first.into_iter().chain(others).filter_map(|id| turn.fabric.sessions[id.index()].sender);
        for sender in senders.filter(|sender| *sender != turn.id) {
            self.peers.add(sender);
        }
    }

    pub(crate) fn stop(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        if self.started {
            self.host.iter_mut().for_each(|host| host.stop());
            self.handle(turn, Event::Finish);
            self.stopped = true;
        }
    }

    /// An agent has said goodbye, and nothing that it has sent is on its way any more.
    pub(crate) fn on_goodbye(&mut self, turn: &mut Turn<'_, impl Monitor>, agent: AgentId) {
        let Some((id, _)) = self.peers.find(agent).filter(|(_, peer)| !peer.is_gone) else { return };
        self.peers.get_mut(id).into_iter().for_each(|peer| peer.is_gone = true);
        if self.started {
            self.handle(turn, Event::PeerDown(id));
        }
    }

    /// An agent that the endpoint has contacted is there.
    pub(crate) fn on_reached(&mut self, turn: &mut Turn<'_, impl Monitor>, agent: AgentId) {
        if self.stopped {
            return;
        }
        let known = self.peers.find(agent).filter(|(_, peer)| !peer.is_gone);
        let peer = known.map_or_else(|| self.peers.add(agent), |(id, _)| id);
        self.handle(turn, Event::Reached { at: locator(agent), peer });
    }

    #[inline]
    pub(crate) fn receive(&mut self, turn: &mut Turn<'_, impl Monitor>, packet: &Packet) {
        self.take_in(turn.now, packet, &mut |party, action| party.carry_out(turn, Some(packet), action));
    }

    /// Whether the endpoint can handle a packet while others handle theirs. A host that counts the room of its application
    /// cannot: what is delivered decides when it wakes.
    #[inline]
    pub(crate) fn decides_apart(&self) -> bool {
        self.host.as_ref().is_none_or(|host| host.reader.is_none())
    }

    /// Gives the endpoint a packet; what it wants goes to `act`. The network is not needed for that.
    #[inline]
    pub(crate) fn take_in(&mut self, now: Time, packet: &Packet, act: &mut impl FnMut(&mut Party, &Action)) {
        let Body::Endpoint(header) = packet.body else { return };
        if !self.started {
            return;
        }
        let from = match packet.to {
            Address::Channel(session, channel) => Origin::Channel(self.channel(session, channel)),
            Address::Agent(_) => match self.origin(now, packet.source, act) {
                Some(origin) => origin,
                None => return,
            },
        };
        let packet = ProtocolPacket { header, size: packet.size, ecn: packet.ecn };
        self.tell(now, Event::Packet { from, packet: &packet }, act);
    }

    /// By which number the endpoint knows a channel of a session.
    #[inline]
    fn channel(&self, session: SessionId, channel: u16) -> ChannelId {
        if self.session == Some(session) {
            return ChannelId(channel);
        }
        let first = self.host.as_ref().and_then(|host| host.ranges.first_of(session));
        let ChannelId(first) = first.expect("packets of a channel come to parties of its session");
        ChannelId(first + channel)
    }

    /// Who an agent is to the endpoint, which is told of a new peer first; `None` if it has said goodbye.
    #[inline]
    fn origin(&mut self, now: Time, agent: AgentId, act: &mut impl FnMut(&mut Party, &Action)) -> Option<Origin> {
        match self.peers.find(agent) {
            Some((id, peer)) if !peer.is_gone => Some(Origin::Peer(id)),
            _ if self.accepts_peers => Some(self.accept(now, agent, act)),
            Some(_) => None,
            None => Some(Origin::Unverified),
        }
    }

    /// In the simulator an address needs no proof: what an agent says of itself is true.
    #[cold]
    fn accept(&mut self, now: Time, agent: AgentId, act: &mut impl FnMut(&mut Party, &Action)) -> Origin {
        let id = self.peers.add(agent);
        self.tell(now, Event::PeerUp(id), act);
        Origin::Peer(id)
    }

    pub(crate) fn expire(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        let news = self.host.as_mut().and_then(|host| host.expire(turn.now));
        self.tell_news(turn, news);
        if self.wake.is_some_and(|at| at <= turn.now) {
            self.handle(turn, Event::Deadline);
        }
    }

    fn tell_news(&mut self, turn: &mut Turn<'_, impl Monitor>, news: Option<News>) {
        let Some(news) = news else { return };
        news.events().for_each(|event| self.handle(turn, event));
        // An application that has read has changed when it reads next, also if it has nothing to tell.
        self.arm(self.clock());
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.wake
    }

    /// Which channel the endpoint means.
    fn locate(&self, fabric: &Fabric, channel: ChannelId) -> Option<Located> {
        let session = self.session?;
        if channel.0 < fabric.sessions[session.index()].channels {
            return Some(Located { at: Attachment { session, member: self.member }, channel: channel.0 });
        }
        self.host.as_ref()?.ranges.locate(channel)
    }

    /// What happens to the endpoint besides packets.
    #[inline]
    fn handle(&mut self, turn: &mut Turn<'_, impl Monitor>, event: Event<'_>) {
        self.tell(turn.now, event, &mut |party, action| party.carry_out(turn, None, action));
    }

    #[inline]
    fn tell(&mut self, now: Time, event: Event<'_>, act: &mut impl FnMut(&mut Party, &Action)) {
        let clock = self.clock();
        let local = clock.local(now);
        self.endpoint.handle(local, event);
        // By reference, so that an action, which is large, is not moved once more.
        while let Some(action) = &self.endpoint.poll(local) {
            act(self, action);
        }
        self.arm(clock);
    }

    /// Finds out when the host has something to do next.
    #[inline]
    fn arm(&mut self, clock: Clock) {
        self.wake = self.endpoint.deadline().map(|at| clock.until(at));
        if let Some(host) = &mut self.host {
            self.wake = host.wakes_at(self.wake);
        }
    }

    #[inline]
    fn clock(&self) -> Clock {
        self.host.as_ref().map_or(Clock::default(), |host| host.clock())
    }
}

/// Where an agent can be contacted: its number, in place of an address.
fn locator(agent: AgentId) -> Locator {
    let mut at = Locator::default();
    at.0[..4].copy_from_slice(&(agent.index() as u32).to_be_bytes());
    at
}

/// The agent at a locator; it need not exist.
fn agent_at(at: Locator) -> AgentId {
    let [a, b, c, d, ..] = at.0;
    AgentId::new(u32::from_be_bytes([a, b, c, d]) as usize)
}
