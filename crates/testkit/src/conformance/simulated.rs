//! Runs a scenario in the simulator.

use std::time::Duration;

use weir_core::Endpoint;
use weir_core::registry::Scheme;
use weir_sim::traffic::Supply;
use weir_sim::{AgentId, EndpointConfig, LinkId, Membership, Network, NodeId, SessionConfig, StreamConfig, Times};
use weir_units::{Bytes, Time};

use super::{Case, Host, HostOutcome, LEAVE_GRACE, Outcome, Scenario, Traffic, session, stream};
use crate::record::{Record, Recorder};

/// Runs a case; the same seed gives the same outcome.
pub fn run(case: &Case, seed: u64) -> Outcome {
    let scenario = case.scenario;
    let mut network = Network::new(seed);
    network.send_through_the_wire(true);
    let root = network.add_node();
    let (links, nodes): (Vec<LinkId>, Vec<NodeId>) =
        scenario.hosts.iter().map(|host| connect(&mut network, root, host)).unzip();
    // What receivers send is little; nothing happens to it.
    nodes.iter().for_each(|node| _ = network.add_link(*node, root, &weir_link::LinkConfig::default()));
    let agents = match scenario.traffic {
        Traffic::Layered { ladder_kbps } => add_session(&mut network, case, ladder_kbps, root, &nodes),
        Traffic::Paced => add_streams(&mut network, case, root, &nodes),
    };
    let mut recorder = Recorder::new(agents.first().map(|of_host| of_host[0]), agents.iter().map(Vec::len).sum());
    let silence = silences(scenario, &mut network, &links, &mut recorder);
    let mut records = recorder.into_records().into_iter();
    let of_host = |(agents, after_leave): (&Vec<AgentId>, Option<Bytes>)| HostOutcome {
        record: records.by_ref().take(agents.len()).fold(Record::default(), Record::merged),
        after_leave,
    };
    Outcome { hosts: agents.iter().zip(silence).map(of_host).collect() }
}

/// Adds a session's sender, and a receiver on every host; by host the agents that tell of it.
fn add_session(
    network: &mut Network,
    case: &Case,
    ladder_kbps: (u64, u64),
    root: NodeId,
    nodes: &[NodeId],
) -> Vec<Vec<AgentId>> {
    let Case { scenario, scheme } = case;
    // Joins and leaves act at once, as on a bridge that snoops. Only an emulated link lets stragglers through.
    let stragglers = scenario.hosts.iter().any(|host| host.path().is_some());
    let membership = Membership { stragglers, ..Membership::default() };
    let session = session(ladder_kbps);
    let channels = scheme.channels(&session, &[]).expect("defaults are valid").len();
    let config = SessionConfig { channels, form: session.form, membership };
    let id = network.add_session(root, config).expect("schemes have 1 to 256 channels");
    let sender = endpoint(network, scheme, Role::Sender(ladder_kbps), "sender");
    network.add_sender(id, sender, EndpointConfig { lateness: LATENESS, ..EndpointConfig::default() });
    let mut agents = Vec::new();
    for (host, node) in scenario.hosts.iter().zip(nodes) {
        let config = EndpointConfig { times: times(host), clock_ahead: CLOCK_AHEAD, ..EndpointConfig::default() };
        let name = format!("receiver {}", agents.len());
        let receiver = endpoint(network, scheme, Role::Receiver(ladder_kbps), &name);
        agents.push(vec![network.add_receiver(id, *node, receiver, config).expect("every host has a link")]);
    }
    agents
}

/// Adds a stream to every host; by host the agents that tell of it.
fn add_streams(network: &mut Network, case: &Case, root: NodeId, nodes: &[NodeId]) -> Vec<Vec<AgentId>> {
    let mut agents = Vec::new();
    for (host, node) in case.scenario.hosts.iter().zip(nodes) {
        let [source, sink] = [Role::Source, Role::Sink].map(|role| {
            let name = format!("{role:?} {}", agents.len());
            endpoint(network, case.scheme, role, &name)
        });
        let config = StreamConfig { times: times(host), lateness: LATENESS, supply: Supply::Endless };
        let stream = network.add_stream(root, *node, source, sink, config).expect("every host has a link");
        agents.push(vec![stream.source, stream.sink]);
    }
    agents
}

#[derive(Debug, Clone, Copy)]
enum Role {
    Sender((u64, u64)),
    Receiver((u64, u64)),
    Source,
    Sink,
}

/// A party of a scheme with its defaults.
fn endpoint(network: &Network, scheme: &Scheme, role: Role, name: &str) -> Box<dyn Endpoint> {
    let random = network.random_for(name);
    let built = match role {
        Role::Sender(ladder_kbps) => scheme.sender(&session(ladder_kbps), &[], random),
        Role::Receiver(ladder_kbps) => scheme.receiver(&session(ladder_kbps), &[], random),
        Role::Source => scheme.source(&stream(), &[], random),
        Role::Sink => scheme.sink(&stream(), &[], random),
    };
    built.expect("defaults are valid")
}

fn times(host: &Host) -> Times {
    Times { start: Time::from_secs(host.joins), stop: host.leaves.map(Time::from_secs) }
}

/// Runs to the end; by host what came over its link after it had left.
fn silences(
    scenario: &Scenario,
    network: &mut Network,
    links: &[LinkId],
    recorder: &mut Recorder,
) -> Vec<Option<Bytes>> {
    let mut leaves: Vec<(Time, usize)> = (scenario.hosts.iter().enumerate())
        .filter_map(|(index, host)| Some((Time::from_secs(host.leaves?) + LEAVE_GRACE, index)))
        .collect();
    leaves.sort_unstable();
    let mut silence = vec![None; links.len()];
    for (at, index) in leaves {
        network.run_until(at, recorder);
        silence[index] = Some(network.link_counters(links[index]).delivered_bytes);
    }
    network.run_until(scenario.end(), recorder);
    let so_far = |index: usize| network.link_counters(links[index]).delivered_bytes;
    silence.iter().enumerate().map(|(index, then)| then.map(|then| so_far(index).saturating_sub(then))).collect()
}

/// A host behind its bottleneck, which changes in time, and the rest of its path; the bottleneck and the host's node.
fn connect(network: &mut Network, root: NodeId, host: &Host) -> (LinkId, NodeId) {
    let mut node = network.add_node();
    let (first, changes) = host.rates_kbps.split_first().expect("a link has a rate");
    let link = network.add_link(root, node, &Host::bottleneck(first.1));
    for (at, kbps) in changes {
        network.change_link(Time::from_secs(*at), link, &Host::bottleneck(*kbps));
    }
    if let Some(path) = host.path() {
        let end = network.add_node();
        network.add_link(node, end, &path);
        node = end;
    }
    (link, node)
}

/// By how much the sender's host wakes it late at most: the kernel's timers are 50 µs late, a busy host's a millisecond.
const LATENESS: Duration = Duration::from_millis(1);

/// Receivers' clocks are no one else's.
const CLOCK_AHEAD: Duration = Duration::from_millis(777);
