//! Endpoints in a network: they are put on nodes, into sessions, and introduced to each other.

use weir_core::{ChannelId, Endpoint, PeerId};
use weir_units::Random;

use crate::agent::Program;
use crate::clock::Clock;
use crate::config::{EndpointConfig, NetworkError, PacedStream, StreamConfig};
use crate::party::Party;
use crate::ranges::Attachment;
use crate::{AgentId, FlowId, Network, NodeId, SessionId};

impl Network {
    /// Adds the sender of a session, on the session's root.
    pub fn add_sender(&mut self, session: SessionId, endpoint: Box<dyn Endpoint>, config: EndpointConfig) -> AgentId {
        let (root, flow) = (self.session_root(session), self.session_flow(session));
        self.fabric.sessions[session.index()].sender = Some(self.next_agent());
        let at = Attachment { session, member: None };
        self.add_party(root, flow, Party::new(endpoint, Some(at)), config)
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
        let member = self.member(session, node, id)?;
        let at = Attachment { session, member: Some(member) };
        Ok(self.add_party(node, self.session_flow(session), Party::new(endpoint, Some(at)), config))
    }

    /// Makes an endpoint a party of one more session, whose channels it can join and send to. Gives the number by which it
    /// knows the session's first channel: its sessions' channels follow one another.
    pub fn attach(&mut self, agent: AgentId, session: SessionId) -> Result<ChannelId, NetworkError> {
        if let Some(first) = self.party(agent).first_channel(session) {
            return Ok(first);
        }
        let member = self.member(session, self.node_of(agent), agent)?;
        let channels = |session: SessionId| self.fabric.sessions[session.index()].channels;
        let (before, more) = (self.party(agent).session().map_or(0, channels), channels(session));
        Ok(self.party_mut(agent).attach(before, Attachment { session, member: Some(member) }, more))
    }

    /// Adds an endpoint that is a party of no session.
    pub fn add_peer(
        &mut self,
        node: NodeId,
        flow: FlowId,
        endpoint: Box<dyn Endpoint>,
        config: EndpointConfig,
    ) -> AgentId {
        self.add_party(node, flow, Party::new(endpoint, None), config)
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
        let StreamConfig { times, lateness, supply } = config;
        let at_source = EndpointConfig { times, lateness, supply: Some(supply), ..EndpointConfig::default() };
        let source = self.add_peer(from, flow, source, at_source);
        let sink = self.add_peer(to, flow, sink, EndpointConfig::default());
        self.introduce(source, sink)?;
        self.introduce(sink, source)?;
        Ok(PacedStream { flow, source, sink })
    }

    /// Tells an endpoint of a peer before it starts; gives the number by which the endpoint is to know it.
    pub fn introduce(&mut self, agent: AgentId, to: AgentId) -> Result<PeerId, NetworkError> {
        let [from_node, to_node] = [agent, to].map(|agent| self.node_of(agent));
        let no_way = NetworkError::NoWay { from: from_node, to: to_node };
        let route = self.fabric.route(agent, to).ok_or(no_way)?;
        Ok(self.party_mut(agent).introduce(to, route))
    }

    fn party(&self, agent: AgentId) -> &Party {
        self.agents[agent.index()].party().expect(NO_ENDPOINT)
    }

    fn party_mut(&mut self, agent: AgentId) -> &mut Party {
        match &mut self.agents[agent.index()].program {
            Program::Party(party) => party,
            _ => panic!("{NO_ENDPOINT}"),
        }
    }

    fn add_party(&mut self, node: NodeId, flow: FlowId, mut party: Party, config: EndpointConfig) -> AgentId {
        let id = self.next_agent();
        let random = |of: &str| Random::new(self.seed, &format!("{of} {}", id.index()));
        let clock = Clock::new(config.clock_ahead, config.clock_drift_ppm, config.clock_grain);
        if clock != Clock::default() {
            party.change_host(|host| host.with_clock(clock));
        }
        if !config.lateness.is_zero() {
            party.change_host(|host| host.late(config.lateness, random("lateness")));
        }
        if let Some(supply) = config.supply {
            party.change_host(|host| host.with_supply(supply, random("supply")));
        }
        if let Some(reader) = config.reader {
            party.change_host(|host| host.with_reader(reader, random("reader")));
        }
        if config.accepts_peers {
            party.accept_peers();
        }
        self.add_agent(node, flow, Program::Party(party), Some(config.times))
    }
}

const NO_ENDPOINT: &str = "only endpoints have peers and sessions";
