//! The simulated network as its users see it: build it, put agents on it, run it, ask what became of it.

use std::time::Duration;

use weir_core::{Endpoint, PeerId};
use weir_link::{Counters, LinkConfig};
use weir_units::{Random, Time};
use weir_wire::CciForm;

use crate::agent::{Agent, Listener, Program, Received};
use crate::connection::{Receiving, Sending, Source};
use crate::datagrams::{self, To};
use crate::fabric::{Control, Due, Fabric};
use crate::multicast::{Membership, Tree};
use crate::party::Party;
use crate::together::{Outcome, Together};
use crate::traffic::{HttpConfig, HttpServer, Supply, UdpConfig, UdpSource};
use crate::{AgentId, FlowId, LinkId, NodeId, Probe, SessionId, tcp};

/// A network: nodes and links, the agents on the nodes, and the time.
///
/// Ways are found when an agent is added, over the links that there are then. A large network is built faster if all nodes
/// and links come before the first session. The same calls with the
/// same seed give the same run, bit for bit, on every machine.
#[derive(Debug)]
pub struct Network {
    seed: u64,
    now: Time,
    agents: Vec<Agent>,
    flows: usize,
    fabric: Fabric,
    together: Together,
}

/// What cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No chain of links leads from one node to the other.
    #[error("no link leads from node {} to node {}, not even over others", from.index(), to.index())]
    NoWay {
        /// Where from.
        from: NodeId,
        /// Where to.
        to: NodeId,
    },
    /// A session has more channels than a simulated tree can tell apart.
    #[error("a session of {channels} channels cannot be simulated; there can be 1 to {}", Tree::MAX_CHANNELS)]
    Channels {
        /// Channels asked for.
        channels: usize,
    },
}

/// How a multicast session is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// Channels, 1 to 256.
    pub channels: usize,
    /// The form of the congestion control information, for [`Network::send_through_the_wire`].
    pub form: CciForm,
    /// How joins and leaves take effect.
    pub membership: Membership,
}

/// When an agent starts and stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// When it starts.
    pub start: Time,
    /// When it stops, if ever.
    pub stop: Option<Time>,
}

impl Times {
    /// From `start` on, without end.
    pub const fn from(start: Time) -> Times {
        Times { start, stop: None }
    }
}

/// When and on what kind of host an endpoint runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointConfig {
    /// When it starts, and when it is told to finish.
    pub times: Times,
    /// How far its clock is ahead of the network's.
    pub clock_ahead: Duration,
    /// Its host wakes it after its deadlines, by a random time between nothing and this.
    pub lateness: Duration,
}

/// A stream of datagrams: its flow, and the agents at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramStream {
    /// The datagrams' flow.
    pub flow: FlowId,
    /// Who sends.
    pub source: AgentId,
    /// Who counts: [`Network::received`] says what.
    pub counter: AgentId,
}

/// When a paced stream runs, and what it has to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamConfig {
    /// When its source starts, and when it is told to finish. The sink is there all the time.
    pub times: Times,
    /// The source's host wakes it after its deadlines, by a random time between nothing and this.
    pub lateness: Duration,
    /// What the application hands over.
    pub supply: Supply,
}

/// A paced stream: its flow, and the agents at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacedStream {
    /// Data and feedback alike.
    pub flow: FlowId,
    /// Who sends.
    pub source: AgentId,
    /// Who answers.
    pub sink: AgentId,
}

/// A TCP connection: its flow, and the agents at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpConnection {
    /// Data and acknowledgements alike.
    pub flow: FlowId,
    /// The sending end.
    pub sender: AgentId,
    /// The receiving end.
    pub sink: AgentId,
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

    /// All link directions, in the order in which they were made.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.fabric.graph.links()).map(LinkId::new)
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

    /// Adds the sender of a session, on the session's root.
    pub fn add_sender(&mut self, session: SessionId, endpoint: Box<dyn Endpoint>, config: EndpointConfig) -> AgentId {
        let (root, flow) = (self.session_root(session), self.session_flow(session));
        self.fabric.sessions[session.index()].sender = Some(self.next_agent());
        self.add_party(root, flow, Party::new(endpoint, Some(session), None), config)
    }

    /// Adds a receiver of a session.
    pub fn add_receiver(
        &mut self,
        session: SessionId,
        node: NodeId,
        endpoint: Box<dyn Endpoint>,
        config: EndpointConfig,
    ) -> Result<AgentId, NetworkError> {
        let id = self.next_agent();
        let no_way = NetworkError::NoWay { from: self.session_root(session), to: node };
        let member = self.fabric.attach(session, node, id).ok_or(no_way)?;
        let party = Party::new(endpoint, Some(session), Some(member));
        Ok(self.add_party(node, self.session_flow(session), party, config))
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
        let no_way = NetworkError::NoWay { from: self.session_root(session), to: node };
        let member = self.fabric.attach(session, node, id).ok_or(no_way)?;
        let listener = Listener { session, member, channels };
        let flow = self.session_flow(session);
        Ok(self.add_agent(node, flow, Program::Listener(listener), Some(Times::from(start))))
    }

    /// Adds an endpoint that exchanges packets with correspondents only.
    pub fn add_peer(
        &mut self,
        node: NodeId,
        flow: FlowId,
        endpoint: Box<dyn Endpoint>,
        config: EndpointConfig,
    ) -> AgentId {
        self.add_party(node, flow, Party::new(endpoint, None, None), config)
    }

    /// Adds a stream between two endpoints, each the other's first correspondent.
    pub fn add_stream(
        &mut self,
        from: NodeId,
        to: NodeId,
        source: Box<dyn Endpoint>,
        sink: Box<dyn Endpoint>,
        config: StreamConfig,
    ) -> Result<PacedStream, NetworkError> {
        let flow = self.add_flow();
        let timing = EndpointConfig { times: config.times, lateness: config.lateness, ..EndpointConfig::default() };
        let source = self.add_peer(from, flow, source, timing);
        let sink = self.add_peer(to, flow, sink, EndpointConfig::default());
        self.introduce(source, sink)?;
        self.introduce(sink, source)?;
        let random = Random::new(self.seed, &format!("supply {}", source.index()));
        let Program::Party(party) = &mut self.agents[source.index()].program else {
            unreachable!("a stream's source was added as an endpoint")
        };
        party.change_host(|host| host.with_supply(config.supply, random));
        Ok(PacedStream { flow, source, sink })
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

    /// Tells an endpoint of a correspondent; gives the name by which the endpoint is to know it.
    pub fn introduce(&mut self, agent: AgentId, to: AgentId) -> Result<PeerId, NetworkError> {
        let [from, to_node] = [agent, to].map(|agent| self.agents[agent.index()].node);
        let route = self.fabric.add_route(from, to_node).ok_or(NetworkError::NoWay { from, to: to_node })?;
        match &mut self.agents[agent.index()].program {
            Program::Party(party) => Ok(party.add_peer(to, route)),
            _ => panic!("only endpoints have correspondents"),
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

    /// Runs until `until`, that instant included.
    pub fn run_until(&mut self, until: Time, probe: &mut impl Probe) {
        while let Some((now, due)) = self.fabric.events.pop(until) {
            self.now = now;
            match due {
                Due::Link(link) => self.fabric.arrivals(now, link, probe),
                Due::Agent(agent) => self.agents[agent.index()].wake(now, agent, &mut self.fabric, probe),
                Due::Control(number) => self.control(number, probe),
            }
            // First everything moves, then everybody looks at what has come: each of the two loops stays with its own data.
            if !self.fabric.events.has_more_now() {
                self.hand_over(probe);
            }
        }
        self.now = self.now.max(until);
    }

    /// Packets that have reached their agents in this instant are given to them.
    fn hand_over(&mut self, probe: &mut impl Probe) {
        if self.together.is_worth(self.fabric.reached.len()) {
            self.hand_over_together(probe);
        }
        while let Some((agent, handle)) = self.fabric.reached.pop_front() {
            let packet = *self.fabric.pool.get(handle);
            self.fabric.pool.release(handle);
            self.agents[agent.index()].receive(self.now, agent, &packet, &mut self.fabric, probe);
        }
    }

    /// The same, with several threads; after that, what the endpoints wanted is done in the order of their packets.
    #[cold]
    fn hand_over_together(&mut self, probe: &mut impl Probe) {
        let now = self.now;
        let mut reached = std::mem::take(&mut self.fabric.reached);
        self.together.handle(now, reached.make_contiguous(), &self.fabric.pool, &mut self.agents);
        for (place, (id, handle)) in reached.drain(..).enumerate() {
            let packet = *self.fabric.pool.get(handle);
            self.fabric.pool.release(handle);
            match self.together.outcome(place) {
                Outcome::Unseen => self.agents[id.index()].receive(now, id, &packet, &mut self.fabric, probe),
                Outcome::Seen { delivers, actions, wake } => {
                    probe.arrive(now, id, &packet);
                    if delivers {
                        probe.deliver(now, id, packet.size.count());
                    }
                    for action in (0..actions).map_while(|_| self.together.action(id)) {
                        self.agents[id.index()].carry_out(now, id, &packet, &action, &mut self.fabric, probe);
                    }
                    if let Some(at) = wake {
                        self.fabric.events.push(at, Due::Agent(id));
                    }
                }
            }
        }
        // What has reached agents meanwhile comes next.
        reached.append(&mut self.fabric.reached);
        self.fabric.reached = reached;
    }

    fn control(&mut self, number: u32, probe: &mut impl Probe) {
        let now = self.now;
        match self.fabric.take_control(number) {
            Control::Start(agent) => self.agents[agent.index()].start(now, agent, &mut self.fabric, probe),
            Control::Stop(agent) => self.agents[agent.index()].stop(now, agent, &mut self.fabric, probe),
            Control::Link(link, config) => self.fabric.change_link(now, link, &config, probe),
            Control::Membership(session, pending) => self.fabric.change_above(now, session, pending),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What a link has done so far.
    pub fn link_counters(&self, link: LinkId) -> Counters {
        self.fabric.link(link).counters()
    }

    /// Packets that wait on a link, not counting the one that is being sent.
    pub fn waiting(&self, link: LinkId) -> usize {
        self.fabric.link(link).waiting(self.now)
    }

    /// Packets that have come out of all links together.
    pub fn link_traversals(&self) -> u64 {
        self.fabric.traversals()
    }

    /// What has arrived at an agent.
    pub fn received(&self, agent: AgentId) -> Received {
        self.agents[agent.index()].received
    }

    /// The node on which an agent is.
    pub fn node_of(&self, agent: AgentId) -> NodeId {
        self.agents[agent.index()].node
    }

    /// The flow to which what an agent sends belongs.
    pub fn flow_of(&self, agent: AgentId) -> FlowId {
        self.agents[agent.index()].flow
    }

    /// Packets that are on links.
    pub fn travelling(&self) -> usize {
        self.fabric.pool.len()
    }

    fn session_root(&self, session: SessionId) -> NodeId {
        self.fabric.sessions[session.index()].root
    }

    fn session_flow(&self, session: SessionId) -> FlowId {
        self.fabric.sessions[session.index()].flow
    }

    fn next_agent(&self) -> AgentId {
        AgentId::new(self.agents.len())
    }

    fn add_party(&mut self, node: NodeId, flow: FlowId, mut party: Party, config: EndpointConfig) -> AgentId {
        let id = self.next_agent();
        if !config.clock_ahead.is_zero() {
            party.change_host(|host| host.ahead(config.clock_ahead));
        }
        if !config.lateness.is_zero() {
            let random = Random::new(self.seed, &format!("lateness {}", id.index()));
            party.change_host(|host| host.late(config.lateness, random));
        }
        self.add_agent(node, flow, Program::Party(party), Some(config.times))
    }

    fn add_agent(&mut self, node: NodeId, flow: FlowId, program: Program, times: Option<Times>) -> AgentId {
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
