//! Runs a scenario in the simulator.

use std::time::Duration;

use weir_link::LinkConfig;
use weir_sim::traffic::{ReaderConfig, Supply, WhenFull};
use weir_sim::{AgentId, EndpointConfig, Membership, Monitor, Network, NodeId, SessionConfig, SessionId, Times};
use weir_units::Time;
use weir_wire::CciForm;

use super::{Account, Given, Log, Outcome, Party, Setup};

/// Runs a scenario: every party on a node of its own, all around a router.
pub fn run(setup: Setup) -> Outcome {
    let Setup { parties, sessions, lasts } = setup;
    let mut network = Network::new(1);
    network.send_through_the_wire(true);
    let router = network.add_node();
    let nodes: Vec<NodeId> = parties.iter().map(|party| connect(&mut network, router, &party.link)).collect();
    let add_session = |session: &super::Session| {
        let config = SessionConfig {
            channels: usize::from(session.channels),
            form: CciForm::Short,
            membership: Membership::default(),
        };
        network.add_session(nodes[session.root], config).expect("scenarios have few channels")
    };
    let sessions: Vec<SessionId> = sessions.iter().map(add_session).collect();
    let starts: Vec<Duration> = parties.iter().map(|party| party.starts).collect();
    let knows: Vec<Vec<usize>> = parties.iter().map(|party| party.knows.clone()).collect();
    let logs: Vec<Log> = parties.iter().map(|party| party.endpoint.log()).collect();
    let add_party = |(party, node)| add_party(&mut network, party, node, &sessions);
    let agents: Vec<AgentId> = parties.into_iter().zip(nodes).map(add_party).collect();
    for (party, knows) in knows.iter().enumerate() {
        knows.iter().for_each(|known| _ = network.introduce(agents[party], agents[*known]).expect("a star joins all"));
    }
    let accounts = starts.iter().map(|_| Account::default()).collect();
    let mut accounts = Accounts { agents, starts, accounts };
    network.run_until(Time::ZERO + lasts, &mut accounts);
    let parties = accounts.accounts.into_iter().zip(logs).map(|(account, log)| Account { seen: log.seen(), ..account });
    Outcome { parties: parties.collect(), slack: Duration::ZERO }
}

/// A node behind a router. What comes to it passes the link.
fn connect(network: &mut Network, router: NodeId, link: &LinkConfig) -> NodeId {
    let (node, away) = (network.add_node(), LinkConfig { delay: DELAY, ..LinkConfig::default() });
    network.connect(router, node, &LinkConfig { delay: link.delay + DELAY, ..link.clone() }, &away);
    node
}

fn add_party(network: &mut Network, party: Party, node: NodeId, sessions: &[SessionId]) -> AgentId {
    let Party { endpoint, starts, stops, knows: _, accepts_peers, sessions: places, offers, reads, link: _ } = party;
    let config = EndpointConfig {
        times: Times { start: Time::ZERO + starts, stop: stops.map(|stop| Time::ZERO + stop) },
        accepts_peers,
        supply: offers.map(|count| if count == u64::MAX { Supply::Endless } else { Supply::AtOnce(count) }),
        reader: reads.map(|reads| ReaderConfig {
            capacity: reads.capacity,
            when_full: WhenFull::Refuses,
            gap: reads.gap,
            pauses: None,
        }),
        ..EndpointConfig::default()
    };
    let flow = network.add_flow();
    let agent = network.add_peer(node, flow, Box::new(endpoint), config);
    places.iter().for_each(|place| _ = network.attach(agent, sessions[*place]).expect("a star joins all"));
    agent
}

/// What applications are given. Payloads have no bytes here.
struct Accounts {
    agents: Vec<AgentId>,
    starts: Vec<Duration>,
    accounts: Vec<Account>,
}

impl Accounts {
    fn of(&mut self, agent: AgentId) -> Option<(&mut Account, Duration)> {
        let party = self.agents.iter().position(|known| *known == agent)?;
        Some((&mut self.accounts[party], self.starts[party]))
    }
}

impl Monitor for Accounts {
    fn deliver(&mut self, now: Time, agent: AgentId, _bytes: u64, number: Option<u64>) {
        if let Some((account, start)) = self.of(agent) {
            account.given.push(Given { at: now.since(Time::ZERO + start), number, place: None });
        }
    }

    fn complete(&mut self, _now: Time, agent: AgentId) {
        self.of(agent).into_iter().for_each(|(account, _)| account.complete += 1);
    }
}

/// The propagation delay of every link, so that nothing is answered in the instant in which it was asked.
const DELAY: Duration = Duration::from_millis(1);
