//! What the parts of a run's network are called: as the scenario names them, not by their numbers.

use std::collections::BTreeMap;

use weir_sim::{AgentId, FlowId, LinkId, Network, NodeId};

/// Names of flows, agents and links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The link that counts as the bottleneck.
    pub bottleneck: Option<LinkId>,
    /// By flow: `session.main.0`, `tree.stream.0`, `flow.tcp.0`, with the number of the instance.
    pub flows: Vec<String>,
    /// By agent: its flow's name with `.sender`, `.receiver`, `.receiver.3` or `.member.3`.
    pub agents: Vec<String>,
    /// By agent: its flow. That of a manager is its first session's.
    pub flow_of: Vec<FlowId>,
    /// By manager: the flows of its sessions.
    pub managed: BTreeMap<AgentId, Vec<FlowId>>,
    /// By link direction: `a-b` from node a to node b, or `bottleneck`.
    pub links: Vec<String>,
    /// What the bottleneck is called by its ends.
    pub bottleneck_ends: String,
}

/// Takes down names while a network is built, and makes the rest of them only if they are wanted.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// By flow: its name, and the node of a unicast sender.
    flows: BTreeMap<FlowId, (String, Option<NodeId>)>,
    managed: BTreeMap<AgentId, Vec<FlowId>>,
}

impl Labels {
    /// The flow of an instance of a session or of a tree, which `kind` tells.
    pub(super) fn group(&mut self, kind: &str, name: &str, instance: usize, flow: FlowId) {
        self.flows.insert(flow, (label(kind, name, instance), None));
    }

    /// An instance of a unicast flow, and its sender's node.
    pub(super) fn unicast(&mut self, name: &str, instance: usize, flow: FlowId, from: NodeId) {
        self.flows.insert(flow, (label("flow", name, instance), Some(from)));
    }

    /// A manager has one more session.
    pub(super) fn manages(&mut self, agent: AgentId, flow: FlowId) {
        self.managed.entry(agent).or_default().push(flow);
    }

    /// All names; `nodes` are those that the topology names.
    pub(super) fn names(self, network: &Network, nodes: &BTreeMap<String, Vec<NodeId>>, bottleneck: LinkId) -> Names {
        let mut names = Names { bottleneck: Some(bottleneck), managed: self.managed, ..Names::default() };
        for (flow, (name, _)) in &self.flows {
            names.flows.resize(names.flows.len().max(flow.index() + 1), String::new());
            names.flows[flow.index()].clone_from(name);
        }
        let mut node_names: BTreeMap<NodeId, String> = BTreeMap::new();
        for (name, nodes) in nodes {
            for (i, node) in nodes.iter().enumerate() {
                let name = if nodes.len() == 1 { plain(name) } else { format!("{}.{i}", plain(name)) };
                node_names.insert(*node, name);
            }
        }
        let mut seen: BTreeMap<FlowId, usize> = BTreeMap::new();
        for agent in network.agents() {
            let (flow, node) = (network.flow_of(agent), network.node_of(agent));
            let number = seen.entry(flow).or_default();
            let role = match self.flows.get(&flow) {
                Some((_, Some(from))) => if node == *from { "sender" } else { "receiver" }.to_owned(),
                _ if *number == 0 => "sender".to_owned(),
                Some((name, None)) if name.starts_with("tree.") => format!("member.{}", *number - 1),
                _ => format!("receiver.{}", *number - 1),
            };
            *number += 1;
            let name = format!("{}.{role}", names.flows.get(flow.index()).map_or("", String::as_str));
            node_names.entry(node).or_insert_with(|| name.clone());
            names.agents.push(name);
            names.flow_of.push(flow);
        }
        let end = |node: &NodeId| node_names.get(node).cloned().unwrap_or_else(|| format!("node.{}", node.index()));
        let ends = network.links().map(|link| network.link_ends(link));
        names.links = ends.map(|(from, to)| format!("{}-{}", end(&from), end(&to))).collect();
        names.bottleneck_ends = std::mem::replace(&mut names.links[bottleneck.index()], "bottleneck".to_owned());
        names
    }
}

fn label(kind: &str, name: &str, instance: usize) -> String {
    format!("{kind}.{}.{instance}", plain(name))
}

/// A name in one word.
fn plain(name: &str) -> String {
    name.replace(char::is_whitespace, "_")
}
