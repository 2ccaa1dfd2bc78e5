//! Runs a scenario in the simulator.

use std::time::Duration;

use weir_core::registry;
use weir_sim::{AgentId, EndpointConfig, LinkId, Membership, Network, SessionConfig, Times};
use weir_units::{Bytes, Time};

use super::{Host, HostOutcome, LEAVE_GRACE, Outcome, SCHEME, Scenario};
use crate::record::Recorder;

/// Runs a scenario; the same seed gives the same outcome.
pub fn run(scenario: &Scenario, seed: u64) -> Outcome {
    let scheme = registry::find(SCHEME).expect("the scheme is registered");
    let session = scenario.session();
    let mut network = Network::new(seed);
    network.send_through_the_wire(true);
    let root = network.add_node();
    // Joins and leaves act at once, as on a bridge that snoops. Only an emulated link lets stragglers through.
    let stragglers = scenario.hosts.iter().any(|host| host.path().is_some());
    let membership = Membership { stragglers, ..Membership::default() };
    let channels = scheme.channels(&session, &[]).expect("defaults are valid").len();
    let config = SessionConfig { channels, form: session.form, membership };
    let id = network.add_session(root, config).expect("schemes have 1 to 256 channels");
    let sender = scheme.sender(&session, &[], network.random_for("sender")).expect("defaults are valid");
    network.add_sender(id, sender, EndpointConfig { lateness: LATENESS, ..EndpointConfig::default() });
    let (mut links, mut agents): (Vec<LinkId>, Vec<AgentId>) = (Vec::new(), Vec::new());
    for (number, host) in scenario.hosts.iter().enumerate() {
        let (link, node) = connect(&mut network, root, host);
        let times = Times { start: Time::from_secs(host.joins), stop: host.leaves.map(Time::from_secs) };
        let config = EndpointConfig { times, clock_ahead: CLOCK_AHEAD, ..EndpointConfig::default() };
        let receiver = scheme
            .receiver(&session, &[], network.random_for(&format!("receiver {number}")))
            .expect("defaults are valid");
        agents.push(network.add_receiver(id, node, receiver, config).expect("every host has a link"));
        links.push(link);
    }
    let mut recorder = Recorder::new(agents.first().copied(), agents.len());
    let silence: Vec<Option<Bytes>> = silences(scenario, &mut network, &links, &mut recorder);
    let records = recorder.into_records().into_iter().zip(silence);
    Outcome { hosts: records.map(|(record, after_leave)| HostOutcome { record, after_leave }).collect() }
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
fn connect(network: &mut Network, root: weir_sim::NodeId, host: &Host) -> (LinkId, weir_sim::NodeId) {
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
