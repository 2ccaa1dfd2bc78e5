//! The network under the agents: links, the packets on them, the routes that they take, and what is due when.

use std::collections::{BTreeMap, VecDeque};

use weir_link::{Dropped, Label, Link, LinkConfig, LinkKind};
use weir_units::{Random, Time};

use crate::events::EventQueue;
use crate::graph::Graph;
use crate::multicast::{LeadsTo, Pending, Tree};
use crate::packet::{Handle, Packet, Pool};
use crate::sessions::{Session, TreeId};
use crate::{Address, AgentId, LinkId, Monitor, NodeId, SessionId};

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
    Membership(TreeId, Pending),
    /// The first agent has stopped and says goodbye to the second, behind all that it has sent.
    Goodbye(AgentId, AgentId),
    /// The first agent has contacted the second, which is there if it has started.
    Reached(AgentId, AgentId),
}

/// Where a packet to one agent is on its way: an index into the fabric's routes. For a packet to a channel, the number of its
/// tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route(pub(crate) u32);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) graph: Graph,
    pub(crate) events: EventQueue<Due>,
    /// Packets that reached their agents in this instant.
    pub(crate) reached: VecDeque<(AgentId, Handle)>,
    pub(crate) pool: Pool,
    pub(crate) sessions: Vec<Session>,
    /// The trees of all sessions: see [`Session`].
    pub(crate) trees: Vec<Tree>,
    /// Whether headers go through their encoding on the way into the network.
    pub(crate) through_the_wire: bool,
    /// Whether fair queues take each channel of a session for a flow of its own.
    pub(crate) splits_sessions: bool,
    links: Vec<Wire>,
    /// What the link made last is like.
    link_kind: Option<LinkKind>,
    /// Routes to agents, one after the other; `None` is the end of one.
    routes: Vec<Option<LinkId>>,
    /// By agent: its node.
    pub(crate) nodes: Vec<NodeId>,
    /// Where the route from one node to another begins.
    known_routes: BTreeMap<(NodeId, NodeId), Route>,
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
            trees: Vec::new(),
            through_the_wire: false,
            splits_sessions: false,
            links: Vec::new(),
            link_kind: None,
            routes: Vec::new(),
            nodes: Vec::new(),
            known_routes: BTreeMap::new(),
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
    pub(crate) fn change_link(&mut self, now: Time, id: LinkId, config: &LinkConfig, monitor: &mut impl Monitor) {
        let pool = &mut self.pool;
        let wire = &mut self.links[id.index()];
        wire.link.change(now, config.clone(), &mut |drop| pool.lose(id, drop, monitor));
        // What waits may come out sooner now; an event that finds nothing does no harm.
        if let Some(at) = wire.link.next_arrival() {
            wire.awaited = Some(at);
            self.events.push(at, Due::Link(id));
        }
    }

    pub(crate) fn traversals(&self) -> u64 {
        self.links.iter().map(|wire| wire.link.counters().delivered).sum()
    }

    /// Lays a route from one node to another; `None` if there is none.
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

    /// The route from one agent to another, which is laid when it is first asked for; `None` if no links lead there.
    pub(crate) fn route(&mut self, from: AgentId, to: AgentId) -> Option<Route> {
        let pair = (*self.nodes.get(from.index())?, *self.nodes.get(to.index())?);
        if let Some(route) = self.known_routes.get(&pair) {
            return Some(*route);
        }
        let route = self.add_route(pair.0, pair.1)?;
        self.known_routes.insert(pair, route);
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

    /// Sends a packet to one agent.
    #[inline]
    pub(crate) fn unicast(&mut self, now: Time, packet: Packet, route: Route, monitor: &mut impl Monitor) {
        let handle = self.pool.insert(packet, route);
        self.go_on(now, route, handle, monitor);
    }

    /// Whether anything comes of a packet that this agent sends to a channel. Of a ladder much higher than the network most channels are
    /// wanted by nobody, and their packets need not be made.
    pub(crate) fn is_wanted(&mut self, now: Time, source: AgentId, session: SessionId, channel: u16) -> bool {
        let node = self.nodes[source.index()];
        let tree = self.tree_from(now, session, node);
        let tree = &self.trees[tree.index()];
        let mut branches = std::iter::successors(tree.first(node), |branch| tree.next(*branch));
        branches.any(|branch| tree.wanted(branch, channel).is_some())
    }

    /// Sends a packet to the members of a channel, from its sender's node.
    pub(crate) fn multicast(&mut self, now: Time, packet: Packet, session: SessionId, monitor: &mut impl Monitor) {
        let node = self.nodes[packet.source.index()];
        let tree = self.tree_from(now, session, node);
        let handle = self.pool.insert(packet, Route(tree.0));
        self.fan_out(now, node, handle, monitor);
    }

    /// What comes out of a link at `now` goes on; the link's next arrival is awaited.
    #[inline]
    pub(crate) fn arrivals(&mut self, now: Time, id: LinkId, monitor: &mut impl Monitor) {
        if self.links[id.index()].awaited != Some(now) {
            return;
        }
        while self.links[id.index()].link.next_arrival().is_some_and(|at| at <= now) {
            let pool = &mut self.pool;
            let link = &mut self.links[id.index()].link;
            let Some(out) = link.dequeue(now, &mut |drop| pool.lose(id, drop, monitor)) else { break };
            let handle = if out.marked { pool.mark(out.packet) } else { out.packet };
            monitor.dequeue(now, id, pool.get(handle));
            match pool.cross(handle) {
                Some(route) => self.go_on(now, route, handle, monitor),
                None => self.fan_out(now, self.links[id.index()].to, handle, monitor),
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
    fn go_on(&mut self, now: Time, route: Route, handle: Handle, monitor: &mut impl Monitor) {
        match self.routes[route.0 as usize] {
            Some(link) => self.offer(now, link, handle, monitor),
            None => {
                let Address::Agent(agent) = self.pool.get(handle).to else {
                    unreachable!("only packets to one agent take a route")
                };
                self.reached.push_back((agent, handle));
            }
        }
    }

    /// From a node of the packet's tree: over every link and to every agent that wants the channel, but not to its sender.
    #[inline]
    fn fan_out(&mut self, now: Time, node: NodeId, handle: Handle, monitor: &mut impl Monitor) {
        let Packet { to: Address::Channel(_, channel), source, .. } = *self.pool.get(handle) else {
            unreachable!("only packets to a channel take a tree")
        };
        let Route(tree) = self.pool.route(handle);
        let mut next = self.trees[tree as usize].first(node);
        while let Some(branch) = next {
            let tree = &self.trees[tree as usize];
            next = tree.next(branch);
            match tree.wanted(branch, channel) {
                Some(LeadsTo::Link(link)) => {
                    let handle = self.pool.share(handle);
                    self.offer(now, link, handle, monitor);
                }
                Some(LeadsTo::Agent(agent)) if agent != source => {
                    self.reached.push_back((agent, self.pool.share(handle)));
                }
                Some(LeadsTo::Agent(_)) | None => {}
            }
        }
        self.pool.release(handle);
    }

    #[inline]
    fn offer(&mut self, now: Time, id: LinkId, handle: Handle, monitor: &mut impl Monitor) {
        let pool = &mut self.pool;
        monitor.enqueue(now, id, pool.get(handle));
        let wire = &mut self.links[id.index()];
        let label = match wire.link.reads_labels() {
            true => label(pool.get(handle), self.splits_sessions),
            false => Label::default(),
        };
        let size = pool.get(handle).size;
        wire.link.enqueue(now, size, label, handle, &mut |drop| pool.lose(id, drop, monitor));
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

/// What a queue may look at. Fair queues tell flows apart by the number.
fn label(packet: &Packet, splits_sessions: bool) -> Label {
    let flow = packet.flow.index() as u64;
    let flow = match packet.to {
        Address::Channel(_, channel) if splits_sessions => flow | (u64::from(channel) + 1) << 32,
        _ => flow,
    };
    Label { flow, ecn: packet.ecn }
}

impl Pool {
    /// A link has lost a packet.
    #[cold]
    fn lose(&mut self, link: LinkId, drop: Dropped<Handle>, monitor: &mut impl Monitor) {
        monitor.drop(drop.at, link, self.get(drop.packet), drop.reason);
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
