//! The network under the agents: links, the packets on them, the ways that they take, and what is due when.

use std::collections::{BTreeMap, VecDeque};

use weir_link::{Dropped, Label, Link, LinkConfig, LinkKind};
use weir_units::{Random, Time};
use weir_wire::CciForm;

use crate::events::EventQueue;
use crate::graph::Graph;
use crate::multicast::{LeadsTo, Member, Pending, Tree};
use crate::packet::{Handle, Packet, Pool};
use crate::{Address, AgentId, FlowId, LinkId, NodeId, Probe, SessionConfig, SessionId};

/// What has to be looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Due {
    /// A packet comes out of the link.
    Link(LinkId),
    /// An agent's deadline; stale unless the agent still waits for this very instant.
    Agent(AgentId),
    /// The control of this number.
    Control(u32),
}

/// What happens at a time that is fixed beforehand.
#[derive(Debug)]
pub(crate) enum Control {
    /// An agent starts.
    Start(AgentId),
    /// An agent is told to finish.
    Stop(AgentId),
    /// A link becomes another; what waits on it stays.
    Link(LinkId, Box<LinkConfig>),
    /// A join or leave reaches the next node up the tree.
    Membership(SessionId, Pending),
}

/// Where a packet to one agent enters the way there: an index into the fabric's routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route(pub(crate) u32);

/// A multicast session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) root: NodeId,
    pub(crate) flow: FlowId,
    pub(crate) form: CciForm,
    pub(crate) sender: Option<AgentId>,
    tree: Tree,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) graph: Graph,
    pub(crate) events: EventQueue<Due>,
    /// Packets that reached their agents in this instant.
    pub(crate) reached: VecDeque<(AgentId, Handle)>,
    pub(crate) pool: Pool,
    pub(crate) sessions: Vec<Session>,
    /// Whether headers go through their encoding on the way into the network.
    pub(crate) through_the_wire: bool,
    links: Vec<Wire>,
    /// What the link made last is like.
    link_kind: Option<LinkKind>,
    /// Ways to agents, one after the other; `None` is the end of one.
    routes: Vec<Option<LinkId>>,
    /// By agent: its node.
    nodes: Vec<NodeId>,
    /// Routes between parties of sessions that have written to each other.
    ways: BTreeMap<(NodeId, NodeId), Route>,
    controls: Vec<Option<Control>>,
    free_controls: Vec<u32>,
}

/// Two lines of the cache: a packet of a large multicast session costs what it takes to fetch the links that it crosses.
#[derive(Debug)]
#[repr(align(64))]
struct Wire {
    link: Link<Handle>,
    to: NodeId,
    /// The instant for which an event is out.
    awaited: Option<Time>,
}

impl Fabric {
    pub(crate) fn new() -> Fabric {
        Fabric {
            graph: Graph::default(),
            events: EventQueue::new(),
            reached: VecDeque::new(),
            pool: Pool::default(),
            sessions: Vec::new(),
            through_the_wire: false,
            links: Vec::new(),
            link_kind: None,
            routes: Vec::new(),
            nodes: Vec::new(),
            ways: BTreeMap::new(),
            controls: Vec::new(),
            free_controls: Vec::new(),
        }
    }

    pub(crate) fn add_link(&mut self, from: NodeId, to: NodeId, config: &LinkConfig, random: Random) -> LinkId {
        // Networks are built of many links of one kind.
        let kind = self.link_kind.take().filter(|kind| kind.config() == config);
        let kind = kind.unwrap_or_else(|| config.clone().into());
        self.links.push(Wire { link: Link::new(kind.clone(), random), to, awaited: None });
        self.link_kind = Some(kind);
        self.graph.add_link(from, to)
    }

    pub(crate) fn link(&self, link: LinkId) -> &Link<Handle> {
        &self.links[link.index()].link
    }

    /// A link becomes another; what waits on it stays.
    pub(crate) fn change_link(&mut self, now: Time, id: LinkId, config: &LinkConfig, probe: &mut impl Probe) {
        let pool = &mut self.pool;
        let wire = &mut self.links[id.index()];
        wire.link.change(now, config.clone(), &mut |drop| pool.lose(id, drop, probe));
        // What waits may come out sooner now; an event that finds nothing does no harm.
        if let Some(at) = wire.link.next_arrival() {
            wire.awaited = Some(at);
            self.events.push(at, Due::Link(id));
        }
    }

    pub(crate) fn traversals(&self) -> u64 {
        self.links.iter().map(|wire| wire.link.counters().delivered).sum()
    }

    pub(crate) fn add_session(&mut self, root: NodeId, flow: FlowId, config: SessionConfig) -> SessionId {
        let SessionConfig { channels, form, membership } = config;
        let tree = Tree::new(&self.graph, root, channels, membership);
        self.sessions.push(Session { root, flow, form, sender: None, tree });
        SessionId::new(self.sessions.len() - 1)
    }

    /// Attaches an agent to a session's tree; `None` if the sender's packets cannot get to its node.
    pub(crate) fn attach(&mut self, session: SessionId, node: NodeId, agent: AgentId) -> Option<Member> {
        self.sessions[session.index()].tree.attach(&self.graph, node, agent)
    }

    /// Lays a way from one node to another; `None` if there is none.
    pub(crate) fn add_route(&mut self, from: NodeId, to: NodeId) -> Option<Route> {
        let path = self.graph.path(&self.graph.ways_from(from), from, to)?;
        let start = u32::try_from(self.routes.len()).expect("routes fit into memory");
        self.routes.extend(path.into_iter().map(Some));
        self.routes.push(None);
        Some(Route(start))
    }

    /// The next agent is on this node.
    pub(crate) fn settle(&mut self, node: NodeId) {
        self.nodes.push(node);
    }

    /// The way from one agent to another, which is laid when it is first asked for; `None` if there is none.
    pub(crate) fn way(&mut self, from: AgentId, to: AgentId) -> Option<Route> {
        let pair = (*self.nodes.get(from.index())?, *self.nodes.get(to.index())?);
        if let Some(route) = self.ways.get(&pair) {
            return Some(*route);
        }
        let route = self.add_route(pair.0, pair.1)?;
        self.ways.insert(pair, route);
        Some(route)
    }

    pub(crate) fn schedule(&mut self, at: Time, control: Control) {
        let number = self.free_controls.pop().unwrap_or_else(|| {
            self.controls.push(None);
            self.controls.len() as u32 - 1
        });
        self.controls[number as usize] = Some(control);
        self.events.push(at, Due::Control(number));
    }

    pub(crate) fn take_control(&mut self, number: u32) -> Control {
        self.free_controls.push(number);
        self.controls[number as usize].take().expect("a control is due once")
    }

    /// A member joins or leaves a channel.
    pub(crate) fn change(&mut self, now: Time, session: SessionId, member: Member, channel: u16, join: bool) {
        let mut later = Vec::new();
        let tree = &mut self.sessions[session.index()].tree;
        tree.change(now, member, channel, join, &mut |at, pending| later.push((at, pending)));
        self.schedule_membership(session, &later);
    }

    /// A join or leave has reached the next node up the tree.
    pub(crate) fn change_above(&mut self, now: Time, session: SessionId, pending: Pending) {
        let mut later = Vec::new();
        let tree = &mut self.sessions[session.index()].tree;
        tree.arrive(now, pending, &mut |at, pending| later.push((at, pending)));
        self.schedule_membership(session, &later);
    }

    fn schedule_membership(&mut self, session: SessionId, later: &[(Time, Pending)]) {
        for (at, pending) in later {
            self.schedule(*at, Control::Membership(session, *pending));
        }
    }

    /// Sends a packet to one agent.
    #[inline]
    pub(crate) fn unicast(&mut self, now: Time, packet: Packet, route: Route, probe: &mut impl Probe) {
        let handle = self.pool.insert(packet, route);
        self.go_on(now, route, handle, probe);
    }

    /// Sends a packet to the members of a channel, from the session's root.
    pub(crate) fn multicast(&mut self, now: Time, packet: Packet, session: SessionId, probe: &mut impl Probe) {
        let handle = self.pool.insert(packet, Route(u32::MAX));
        let root = self.sessions[session.index()].root;
        self.fan_out(now, root, handle, probe);
    }

    /// What comes out of a link at `now` goes on; the link's next arrival is awaited.
    #[inline]
    pub(crate) fn arrivals(&mut self, now: Time, id: LinkId, probe: &mut impl Probe) {
        if self.links[id.index()].awaited != Some(now) {
            return;
        }
        while self.links[id.index()].link.next_arrival().is_some_and(|at| at <= now) {
            let pool = &mut self.pool;
            let link = &mut self.links[id.index()].link;
            let Some(out) = link.dequeue(now, &mut |drop| pool.lose(id, drop, probe)) else { break };
            let handle = if out.marked { pool.mark(out.packet) } else { out.packet };
            probe.dequeue(now, id, pool.get(handle));
            match pool.cross(handle) {
                Some(route) => self.go_on(now, route, handle, probe),
                None => self.fan_out(now, self.links[id.index()].to, handle, probe),
            }
        }
        let wire = &mut self.links[id.index()];
        wire.awaited = wire.link.next_arrival();
        if let Some(at) = wire.awaited {
            self.events.push(at, Due::Link(id));
        }
    }

    /// From a point on a route: over the next link, or to the agent.
    #[inline]
    fn go_on(&mut self, now: Time, route: Route, handle: Handle, probe: &mut impl Probe) {
        match self.routes[route.0 as usize] {
            Some(link) => self.offer(now, link, handle, probe),
            None => {
                let Address::Agent(agent) = self.pool.get(handle).to else {
                    unreachable!("only packets to one agent take a route")
                };
                self.reached.push_back((agent, handle));
            }
        }
    }

    /// From a node of the tree: over every link and to every agent that wants the channel.
    #[inline]
    fn fan_out(&mut self, now: Time, node: NodeId, handle: Handle, probe: &mut impl Probe) {
        let Address::Channel(session, channel) = self.pool.get(handle).to else {
            unreachable!("only packets to a channel take the tree")
        };
        let mut next = self.sessions[session.index()].tree.first(node);
        while let Some(branch) = next {
            let tree = &self.sessions[session.index()].tree;
            next = tree.next(branch);
            match tree.wanted(branch, channel) {
                Some(LeadsTo::Link(link)) => {
                    let handle = self.pool.share(handle);
                    self.offer(now, link, handle, probe);
                }
                Some(LeadsTo::Agent(agent)) => self.reached.push_back((agent, self.pool.share(handle))),
                None => {}
            }
        }
        self.pool.release(handle);
    }

    #[inline]
    fn offer(&mut self, now: Time, id: LinkId, handle: Handle, probe: &mut impl Probe) {
        let pool = &mut self.pool;
        let packet = pool.get(handle);
        probe.enqueue(now, id, packet);
        let (size, label) = (packet.size, Label { flow: packet.flow.index() as u64, ecn: packet.ecn });
        let wire = &mut self.links[id.index()];
        wire.link.enqueue(now, size, label, handle, &mut |drop| pool.lose(id, drop, probe));
        // An event that is out is early enough but for packets that overtake others.
        let next = wire.link.next_arrival();
        if let Some(at) = next
            && wire.awaited.is_none_or(|awaited| at < awaited)
        {
            wire.awaited = next;
            self.events.push(at, Due::Link(id));
        }
    }
}

impl Pool {
    /// A link has lost a packet.
    #[cold]
    fn lose(&mut self, link: LinkId, drop: Dropped<Handle>, probe: &mut impl Probe) {
        probe.drop(drop.at, link, self.get(drop.packet), drop.reason);
        self.release(drop.packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_takes_two_lines_of_the_cache() {
        assert_eq!(size_of::<Wire>(), 128);
    }
}
