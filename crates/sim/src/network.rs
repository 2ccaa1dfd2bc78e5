//! The simulated network as its users build it: nodes, links, sessions, and other agents on the nodes than endpoints.

use std::time::Duration;

use weir_link::LinkConfig;
use weir_units::{Random, Time};

use crate::agent::{Agent, Listener, Program};
use crate::config::{DatagramStream, NetworkError, SessionConfig, TcpConnection, Times};
use crate::connection::{Receiving, Sending, Source};
use crate::datagrams::{self, To};
use crate::fabric::{Control, Fabric};
use crate::multicast::{Member, Tree};
use crate::together::Together;
use crate::traffic::{HttpConfig, HttpServer, UdpConfig, UdpSource};
use crate::{AgentId, FlowId, LinkId, NodeId, SessionId, tcp};

/// A network: nodes and links, the agents on the nodes, and the time.
///
/// Routes are found when an agent is added, over the links that there are then. A large network is built faster if all nodes
/// and links come before the first session. The same calls with the same seed give the same run, bit for bit, on every
/// machine.
#[derive(Debug)]
pub struct Network {
    pub(crate) seed: u64,
    pub(crate) now: Time,
    pub(crate) agents: Vec<Agent>,
    flows: usize,
    pub(crate) fabric: Fabric,
    pub(crate) together: Together,
}

impl Network {
    /// An empty network at time zero.
    pub fn new(seed: u64) -> Network {
        Network {
            seed,
            now: Time::ZERO,
            agents: Vec::new(),
            flows: 0,
            fabric: Fabric::new(),
            together: Together::new(1),
        }
    }

    /// The headers of endpoints' packets go through their encoding on the way into the network. Slower, with the same result
    /// if the encoding carries all that the protocol needs.
    pub fn send_through_the_wire(&mut self, whether: bool) {
        self.fabric.through_the_wire = whether;
    }

    /// Has endpoints handle packets in up to `threads` threads where thousands of packets arrive in one instant, as with a
    /// large multicast session. The run is the same, bit for bit.
    pub fn use_threads(&mut self, threads: usize) {
        self.together = Together::new(threads);
    }

    /// The random stream of an endpoint of this run, by a name of its own such as `receiver 3`.
    pub fn random_for(&self, endpoint: &str) -> Random {
        Random::new(self.seed, &format!("endpoint {endpoint}"))
    }

    /// Adds a node.
    pub fn add_node(&mut self) -> NodeId {
        self.fabric.graph.add_node()
    }

    /// Adds one direction of a link.
    pub fn add_link(&mut self, from: NodeId, to: NodeId, config: &LinkConfig) -> LinkId {
        let name = format!("link {}", self.fabric.graph.links());
        self.fabric.add_link(from, to, config, Random::new(self.seed, &name))
    }

    /// Adds both directions of a link: from `a` to `b`, and back.
    pub fn connect(&mut self, a: NodeId, b: NodeId, there: &LinkConfig, back: &LinkConfig) -> [LinkId; 2] {
        [self.add_link(a, b, there), self.add_link(b, a, back)]
    }

    /// Routes no multicast over a link direction, as most networks do between sites. Members that are there already are not asked.
    pub fn route_no_multicast(&mut self, link: LinkId) {
        self.fabric.graph.route_no_multicast(link);
    }

    /// Leaves take this long at a router, whatever a session says: from a host's leave until the router stops forwarding. Members
    /// that are there already are not asked.
    pub fn set_leave_latency(&mut self, router: NodeId, latency: Duration) {
        self.fabric.graph.set_leave_latency(router, latency);
    }

    /// A node is a switch that does not snoop on joins and leaves: it sends what it gets of a session to all ports. Must be said before
    /// the first session is added.
    pub fn flood(&mut self, switch: NodeId) {
        self.fabric.graph.flood(switch);
    }

    /// Fair queues take each channel of a session for a flow of its own from here on, as those that tell flows apart by their
    /// addresses do. Else a session is one flow.
    pub fn split_sessions_by_channel(&mut self) {
        self.fabric.splits_sessions = true;
    }

    /// All link directions, in the order in which they were made.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.fabric.graph.links()).map(LinkId::new)
    }

    /// From which node to which a link direction leads.
    pub fn link_ends(&self, link: LinkId) -> (NodeId, NodeId) {
        (self.fabric.graph.from(link), self.fabric.graph.to(link))
    }

    /// All agents, in the order in which they were added.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> + use<> {
        (0..self.agents.len()).map(AgentId::new)
    }

    /// The link direction from one node to its neighbour; the first one made, if there are several.
    pub fn link_between(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        self.fabric.graph.between(from, to)
    }

    /// What a link direction is like.
    pub fn link_config(&self, link: LinkId) -> &LinkConfig {
        self.fabric.link(link).config()
    }

    /// Adds a multicast session whose sender is on `root`.
    pub fn add_session(&mut self, root: NodeId, config: SessionConfig) -> Result<SessionId, NetworkError> {
        if !(1..=Tree::MAX_CHANNELS).contains(&config.channels) {
            return Err(NetworkError::Channels { channels: config.channels });
        }
        let flow = self.add_flow();
        Ok(self.fabric.add_session(root, flow, config))
    }

    pub(crate) fn member(&mut self, session: SessionId, node: NodeId, agent: AgentId) -> Result<Member, NetworkError> {
        let no_way = NetworkError::NoWay { from: self.session_root(session), to: node };
        self.fabric.attach(session, node, agent).ok_or(no_way)
    }

    /// Adds a member of the first `channels` channels of a session that only counts what it gets, from `start` on.
    pub fn add_listener(
        &mut self,
        session: SessionId,
        node: NodeId,
        channels: u16,
        start: Time,
    ) -> Result<AgentId, NetworkError> {
        let id = self.next_agent();
        let member = self.member(session, node, id)?;
        let listener = Listener { session, member, channels };
        let flow = self.session_flow(session);
        Ok(self.add_agent(node, flow, Program::Listener(listener), Some(Times::from(start))))
    }

    /// Adds a TCP connection, open from `start` on, that sends what its configuration says.
    pub fn add_tcp(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: tcp::Config,
        times: Times,
    ) -> Result<TcpConnection, NetworkError> {
        self.add_connection(from, to, config, times, |random| {
            Source::Supply(Box::new(tcp::Sender::new(config, random("tcp"))))
        })
    }

    /// Adds a TCP connection over which a server answers a user of the web.
    pub fn add_http(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: HttpConfig,
        times: Times,
    ) -> Result<TcpConnection, NetworkError> {
        self.add_connection(from, to, config.tcp, times, |random| {
            Source::Http(Box::new(HttpServer::new(config, random("http"), random("tcp"))))
        })
    }

    fn add_connection(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: tcp::Config,
        times: Times,
        source: impl FnOnce(&dyn Fn(&str) -> Random) -> Source,
    ) -> Result<TcpConnection, NetworkError> {
        let there = self.fabric.add_route(from, to).ok_or(NetworkError::NoWay { from, to })?;
        let back = self.fabric.add_route(to, from).ok_or(NetworkError::NoWay { from: to, to: from })?;
        let flow = self.add_flow();
        let (sender_id, sink_id) = (self.next_agent(), AgentId::new(self.agents.len() + 1));
        let source = source(&|of| Random::new(self.seed, &format!("{of} {}", flow.index())));
        let sending = Sending { source, to: (sink_id, there), segment_size: config.segment_size };
        let receiving = Receiving { sink: tcp::Sink::new(&config), to: (sender_id, back), ack_size: config.ack_size };
        let sender = self.add_agent(from, flow, Program::TcpSender(Box::new(sending)), Some(times));
        let sink = self.add_agent(to, flow, Program::TcpSink(Box::new(receiving)), None);
        Ok(TcpConnection { flow, sender, sink })
    }

    /// Adds a source of datagrams on one node, and on another somebody who counts them.
    pub fn add_datagrams(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: UdpConfig,
        times: Times,
    ) -> Result<DatagramStream, NetworkError> {
        let route = self.fabric.add_route(from, to).ok_or(NetworkError::NoWay { from, to })?;
        let flow = self.add_flow();
        let counter = self.add_agent(to, flow, Program::Counter, None);
        let source = self.add_udp_source(from, flow, config, To::Agent(counter, route), times);
        Ok(DatagramStream { flow, source, counter })
    }

    /// Adds a source of datagrams to a channel of a session, on the session's root.
    pub fn add_datagrams_to_channel(
        &mut self,
        session: SessionId,
        channel: u16,
        config: UdpConfig,
        times: Times,
    ) -> AgentId {
        let (root, flow) = (self.session_root(session), self.session_flow(session));
        self.add_udp_source(root, flow, config, To::Channel(session, channel), times)
    }

    fn add_udp_source(&mut self, node: NodeId, flow: FlowId, config: UdpConfig, to: To, times: Times) -> AgentId {
        let random = Random::new(self.seed, &format!("datagrams {}", self.next_agent().index()));
        let sending = datagrams::Sending { source: UdpSource::new(config, random), to };
        self.add_agent(node, flow, Program::Datagrams(Box::new(sending)), Some(times))
    }

    /// The sending end of a connection, to be looked at.
    pub fn tcp(&self, sender: AgentId) -> &tcp::Sender {
        match &self.agents[sender.index()].program {
            Program::TcpSender(sending) => sending.sender(),
            _ => panic!("agent {} is not the sending end of a connection", sender.index()),
        }
    }

    /// How many payloads an endpoint has its host keep; an agent without an endpoint has none.
    pub fn kept_payloads(&self, agent: AgentId) -> usize {
        match &self.agents[agent.index()].program {
            Program::Party(party) => party.kept_payloads(),
            _ => 0,
        }
    }

    /// A name for packets that belong together.
    pub fn add_flow(&mut self) -> FlowId {
        self.flows += 1;
        FlowId::new(self.flows - 1)
    }

    /// From `at` on a link is another; what waits on it stays.
    pub fn change_link(&mut self, at: Time, link: LinkId, config: &LinkConfig) {
        self.fabric.schedule(at, Control::Link(link, Box::new(config.clone())));
    }

    pub(crate) fn session_root(&self, session: SessionId) -> NodeId {
        self.fabric.sessions[session.index()].root
    }

    /// The flow that a session's packets are of.
    pub fn session_flow(&self, session: SessionId) -> FlowId {
        self.fabric.sessions[session.index()].flow
    }

    pub(crate) fn next_agent(&self) -> AgentId {
        AgentId::new(self.agents.len())
    }

    pub(crate) fn add_agent(&mut self, node: NodeId, flow: FlowId, program: Program, times: Option<Times>) -> AgentId {
        let id = self.next_agent();
        self.agents.push(Agent::new(node, flow, program));
        self.fabric.settle(node);
        if let Some(Times { start, stop }) = times {
            self.fabric.schedule(start, Control::Start(id));
            if let Some(stop) = stop {
                self.fabric.schedule(stop, Control::Stop(id));
            }
        }
        id
    }
}
