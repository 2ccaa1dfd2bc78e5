//! A stream over a tree in the simulator: the network of the paper's Fig. 9 and others, and what came of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_core::observation::{TreeReport, WindowReport};
use weir_core::registry::{Build, Scheme, Setting, Stream, find};
use weir_core::{Observation, registry::Habitat};
use weir_link::LinkConfig;
use weir_sim::traffic::{ReaderConfig, Supply};
use weir_sim::{
    AgentId, EndpointConfig, Membership, Monitor, Network, NodeId, SessionConfig, SessionId, Times, topology,
};
use weir_units::{Bytes, Time};
use weir_wire::CciForm;

/// Which members there are, on which nodes, and who is above whom.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) link: &'static str,
    /// The parent of node n, from 1 on, in the network.
    pub(crate) up: Vec<usize>,
    /// The parent of the member on node n in the logical tree; 0 is the sender.
    pub(crate) above: Vec<usize>,
    pub(crate) supply: Supply,
    pub(crate) settings: Vec<Setting>,
    pub(crate) clocks_ahead: fn(usize) -> Duration,
    /// Every member is on a host of its own behind its node, over a link like this.
    pub(crate) hosts: Option<&'static str>,
    /// Members know all nodes above them.
    pub(crate) knows_all_above: bool,
    /// Nodes to which no multicast is routed from the one above.
    pub(crate) islands: Vec<usize>,
    /// Members that have no application.
    pub(crate) agents: BTreeSet<usize>,
    /// Members find the node above them, and know the sender.
    pub(crate) builds_itself: bool,
    /// When members come, by number, if not at once.
    pub(crate) come: BTreeMap<usize, Time>,
    /// When members leave, by number.
    pub(crate) leave: BTreeMap<usize, Time>,
    /// What members read, by number, where they do not take everything at once.
    pub(crate) readers: BTreeMap<usize, ReaderConfig>,
    /// Settings of one member.
    pub(crate) own_settings: BTreeMap<usize, Vec<Setting>>,
}

pub(crate) const STREAM: Stream =
    Stream { packet_size: Bytes::new(1000), feedback_size: Bytes::new(72), habitat: Habitat::Lab };

/// The network of Fig. 9 with `receivers`, all below the sender or in a tree of the network's shape.
pub(crate) fn fig_9(receivers: usize, is_one_level: bool) -> Plan {
    let up: Vec<usize> = (1..=receivers).map(|node| (node - 1) / 5).collect();
    let above = if is_one_level { vec![0; receivers] } else { up.clone() };
    Plan {
        link: "rate=1.5M,delay=10ms,buffer=8p",
        up,
        above,
        supply: Supply::Endless,
        settings: Vec::new(),
        clocks_ahead: |_| Duration::ZERO,
        hosts: None,
        knows_all_above: false,
        islands: Vec::new(),
        agents: BTreeSet::new(),
        builds_itself: false,
        come: BTreeMap::new(),
        leave: BTreeMap::new(),
        readers: BTreeMap::new(),
        own_settings: BTreeMap::new(),
    }
}

impl Plan {
    /// The nodes above a member in the logical tree, the nearest first.
    pub(crate) fn all_above(&self, number: usize) -> Vec<usize> {
        let next = |number: &usize| number.checked_sub(1).map(|index| self.above[index]);
        std::iter::successors(Some(number), next).skip(1).collect()
    }

    pub(crate) fn set(mut self, key: &str, value: &str) -> Plan {
        self.settings.push(Setting { key: key.to_owned(), value: value.to_owned() });
        self
    }
}

/// A network with a tree.
pub(crate) struct Site {
    pub(crate) net: Network,
    /// By number: where the member is, and the router that it is behind if it has a host of its own.
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) routers: Vec<NodeId>,
    pub(crate) sender: AgentId,
    pub(crate) members: Vec<AgentId>,
}

pub(crate) fn build(plan: &Plan, seed: u64) -> Site {
    let mut net = Network::new(seed);
    net.send_through_the_wire(true);
    let link: LinkConfig = plan.link.parse().expect("a link");
    let mut nodes = vec![net.add_node()];
    for up in &plan.up {
        let node = net.add_node();
        let [down, back] = net.connect(nodes[*up], node, &link, &link);
        if plan.islands.contains(&nodes.len()) {
            net.route_no_multicast(down);
            net.route_no_multicast(back);
        }
        nodes.push(node);
    }
    let routers = nodes.clone();
    if let Some(hosts) = plan.hosts {
        let link: LinkConfig = hosts.parse().expect("a link");
        nodes.iter_mut().skip(1).for_each(|node| *node = topology::add_host(&mut net, *node, &link));
    }
    let config = SessionConfig { channels: 1, form: CciForm::Short, membership: Membership::default() };
    let session = net.add_session(nodes[0], config).expect("a channel");
    let tree = find("mtcp").and_then(Scheme::tree).expect("it is a tree");
    let sender = add(&mut net, session, plan, tree.sender, nodes[0], 0);
    let mut members = vec![sender];
    for (number, node) in nodes.iter().enumerate().skip(1) {
        let build = if plan.agents.contains(&number) { tree.agent } else { tree.receiver };
        let member = add(&mut net, session, plan, build, *node, number);
        members.push(member);
    }
    for number in 1..members.len() {
        if plan.builds_itself {
            net.introduce(members[number], members[0]).expect("a way");
            continue;
        }
        for above in plan.all_above(number).into_iter().take(if plan.knows_all_above { usize::MAX } else { 1 }) {
            net.introduce(members[number], members[above]).expect("a way");
        }
    }
    members.remove(0);
    Site { net, nodes, routers, sender, members }
}

/// Member `number`, on `node`; 0 is the sender, on the root.
fn add(
    net: &mut Network,
    session: SessionId,
    plan: &Plan,
    build: Build<Stream>,
    node: NodeId,
    number: usize,
) -> AgentId {
    let is_sender = number == 0;
    let start = plan.come.get(&number).copied().unwrap_or(if is_sender && !plan.builds_itself {
        Time::from_secs(1)
    } else {
        Time::ZERO
    });
    let children = plan.above.iter().filter(|above| **above == number).count();
    let mut settings = plan.settings.clone();
    let uplinks = if plan.knows_all_above { plan.all_above(number).len().max(1) } else { 1 };
    let set = |key: &str, value: String| Setting { key: key.to_owned(), value };
    match plan.builds_itself {
        true => settings.push(set("tree", "found".to_owned())),
        false => settings.extend([set("children", children.to_string()), set("uplinks", uplinks.to_string())]),
    }
    settings.extend(plan.own_settings.get(&number).into_iter().flatten().cloned());
    let random = net.random_for(&format!("member {number}"));
    let endpoint = build(&STREAM, &settings, random).expect("good settings");
    let config = EndpointConfig {
        times: Times { start, stop: plan.leave.get(&number).copied() },
        accepts_peers: true,
        clock_ahead: (plan.clocks_ahead)(number),
        supply: is_sender.then_some(plan.supply),
        reader: plan.readers.get(&number).copied(),
        ..EndpointConfig::default()
    };
    match is_sender {
        true => net.add_sender(session, endpoint, config),
        false => net.add_receiver(session, node, endpoint, config).expect("a way"),
    }
}

/// What each member got.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Notes {
    /// The number of the next payload that each member gets.
    pub(crate) delivered: BTreeMap<AgentId, u64>,
    /// Members that need not begin at the start.
    pub(crate) late: BTreeSet<AgentId>,
    pub(crate) complete: BTreeMap<AgentId, Time>,
    pub(crate) reports: Vec<(Time, AgentId, WindowReport)>,
    pub(crate) tree: Vec<(Time, AgentId, TreeReport)>,
}

impl Monitor for Notes {
    fn deliver(&mut self, _now: Time, agent: AgentId, _bytes: u64, number: Option<u64>) {
        let begins_at = self.late.contains(&agent).then_some(number).flatten().unwrap_or_default();
        let next = self.delivered.entry(agent).or_insert(begins_at);
        assert_eq!(number, Some(*next), "{agent:?} gets payloads in order");
        *next += 1;
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        assert!(self.complete.insert(agent, now).is_none(), "{agent:?} is complete once");
    }

    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        if let Observation::Window(report) = observation {
            self.reports.push((now, agent, *report));
        }
        if let Observation::Tree(report) = observation {
            self.tree.push((now, agent, *report));
        }
    }
}
