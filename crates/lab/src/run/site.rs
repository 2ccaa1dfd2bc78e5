//! The network of a set-up, and where on it everybody is.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_link::LinkConfig;
use weir_sim::topology::{self, TransitStubConfig};
use weir_sim::{LinkId, Network, NodeId};

use super::RunError;
use crate::scenario::{Chain, Dumbbell, Graph, Topology, TransitStub, Tree, one_node};

/// A network without anybody on it.
pub(super) struct Site<'a> {
    shape: Shape<'a>,
    /// The link that is watched.
    pub(super) bottleneck: LinkId,
}

enum Shape<'a> {
    /// Everybody has an access link of his own to one of two routers.
    Dumbbell { config: &'a Dumbbell, left: NodeId, right: NodeId },
    /// Everybody is on a node of that name; several nodes of a name are taken in turn.
    Named(BTreeMap<String, Vec<NodeId>>),
}

impl<'a> Site<'a> {
    pub(super) fn build(network: &mut Network, topology: &'a Topology, seed: u64) -> Result<Site<'a>, RunError> {
        let (nodes, bottleneck) = match topology {
            Topology::Dumbbell(config) => return Ok(Site::dumbbell(network, config)),
            Topology::Graph(graph) => self::graph(network, graph),
            Topology::Chain(chain) => self::chain(network, chain),
            Topology::Tree(tree) => (self::tree(network, tree), None),
            Topology::TransitStub(graph) => (transit_stub(network, graph, seed), None),
        };
        let bottleneck = match bottleneck {
            Some(pair) => {
                between(network, pair.each_ref().map(|name| nodes.get(name).map_or(&[][..], |all| all)), pair)?
            }
            None => network.links().next().ok_or_else(|| RunError::Setup("the topology has no link".to_owned()))?,
        };
        Ok(Site { shape: Shape::Named(nodes), bottleneck })
    }

    fn dumbbell(network: &mut Network, config: &'a Dumbbell) -> Site<'a> {
        let reverse = config.reverse.as_ref().unwrap_or(&config.bottleneck);
        let routers = topology::dumbbell(network, &config.bottleneck.0, &reverse.0);
        let shape = Shape::Dumbbell { config, left: routers.left, right: routers.right };
        Site { shape, bottleneck: routers.forward }
    }

    /// The nodes by the names that they have without anybody on them.
    pub(super) fn into_nodes(self) -> BTreeMap<String, Vec<NodeId>> {
        match self.shape {
            Shape::Dumbbell { left, right, .. } => {
                [("left", left), ("right", right)].map(|(name, node)| (name.to_owned(), vec![node])).into()
            }
            Shape::Named(nodes) => nodes,
        }
    }

    /// The link from one node to another, or the bottleneck.
    pub(super) fn link(&self, network: &Network, pair: Option<&[String; 2]>) -> Result<LinkId, RunError> {
        let Some(pair) = pair else { return Ok(self.bottleneck) };
        let [from, to] = pair.each_ref().map(|name| self.routers(name));
        between(network, [&from, &to], pair)
    }

    /// The nodes of a name; of a dumbbell, its routers.
    pub(super) fn routers(&self, name: &str) -> Vec<NodeId> {
        match &self.shape {
            Shape::Dumbbell { left, right, .. } => vec![if name == "left" { *left } else { *right }],
            Shape::Named(nodes) => nodes.get(name).cloned().unwrap_or_default(),
        }
    }

    /// The node of the `instance`th sender of those that are `at` these nodes.
    pub(super) fn sender(&self, network: &mut Network, at: &[String], instance: usize) -> Result<NodeId, RunError> {
        match &self.shape {
            Shape::Dumbbell { config, left, .. } => Ok(host(network, *left, config, Duration::ZERO)),
            Shape::Named(nodes) => named(nodes, at, instance),
        }
    }

    /// The nodes of the ends of the `instance`th unicast flow. They differ: where the lists have them at one node, the receiver
    /// is on the node half of its list further on, or the next one after that.
    pub(super) fn ends(
        &self,
        network: &mut Network,
        [from, to]: [&[String]; 2],
        rtt: Option<Duration>,
        instance: usize,
    ) -> Result<[NodeId; 2], RunError> {
        let Shape::Named(nodes) = &self.shape else {
            return Ok([self.sender(network, from, instance)?, self.receiver(network, to, rtt, instance)?]);
        };
        let (sender, receiver) = (named(nodes, from, instance)?, named(nodes, to, instance)?);
        let receivers = all(nodes, to);
        let further = (receivers.len() / 2..receivers.len()).map(|step| instance + step);
        let other = |node: &NodeId| *node != sender;
        let mut candidates = std::iter::once(receiver).chain(further.map(|place| receivers[place % receivers.len()]));
        if let Some(receiver) = candidates.find(other).or_else(|| receivers.iter().copied().find(other)) {
            return Ok([sender, receiver]);
        }
        let senders = all(nodes, from);
        let sender =
            (1..senders.len()).map(|step| senders[(instance + step) % senders.len()]).find(|node| *node != receiver);
        sender.map(|sender| [sender, receiver]).ok_or_else(|| RunError::Setup(one_node(from, to)))
    }

    /// The node of the `instance`th receiver of those that are `at` these nodes, or `rtt` away from the sender.
    pub(super) fn receiver(
        &self,
        network: &mut Network,
        at: &[String],
        rtt: Option<Duration>,
        instance: usize,
    ) -> Result<NodeId, RunError> {
        match &self.shape {
            Shape::Dumbbell { config, right, .. } => {
                let delay = one_way(config, rtt.unwrap_or_default())?;
                Ok(host(network, *right, config, delay))
            }
            Shape::Named(nodes) => named(nodes, at, instance),
        }
    }
}

/// The link from one of these nodes to one of those.
fn between(network: &Network, [from, to]: [&[NodeId]; 2], names: &[String; 2]) -> Result<LinkId, RunError> {
    let mut pairs = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
    let link = pairs.find_map(|(from, to)| network.link_between(from, to));
    link.ok_or_else(|| RunError::Setup(format!("no link leads from {:?} to {:?}", names[0], names[1])))
}

/// All nodes of these names, in order.
fn all(nodes: &BTreeMap<String, Vec<NodeId>>, at: &[String]) -> Vec<NodeId> {
    at.iter().filter_map(|name| nodes.get(name)).flatten().copied().collect()
}

fn named(nodes: &BTreeMap<String, Vec<NodeId>>, at: &[String], instance: usize) -> Result<NodeId, RunError> {
    let all = all(nodes, at);
    let node = instance.checked_rem(all.len()).map(|index| all[index]);
    node.ok_or_else(|| RunError::Setup(format!("there is no node called any of {at:?}")))
}

/// A host behind a router of a dumbbell, whose access link has this delay each way.
fn host(network: &mut Network, router: NodeId, dumbbell: &Dumbbell, delay: Duration) -> NodeId {
    topology::add_host(network, router, &LinkConfig { delay, ..dumbbell.access.0.clone() })
}

/// The delay of a receiver's access link, each way, that makes this round-trip propagation delay: all of it but the
/// bottleneck's, so that the sender's side has none.
fn one_way(dumbbell: &Dumbbell, rtt: Duration) -> Result<Duration, RunError> {
    let reverse = dumbbell.reverse.as_ref().unwrap_or(&dumbbell.bottleneck);
    let between = dumbbell.bottleneck.0.delay + reverse.0.delay;
    rtt.checked_sub(between).map(|rest| rest / 2).ok_or_else(|| {
        RunError::Setup(format!("a round-trip time of {rtt:?} is shorter than the bottleneck's own {between:?}"))
    })
}

type Built<'a> = (BTreeMap<String, Vec<NodeId>>, Option<&'a [String; 2]>);

fn graph<'a>(network: &mut Network, graph: &'a Graph) -> Built<'a> {
    let mut nodes: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
    for edge in &graph.links {
        let [from, to] = edge
            .between
            .each_ref()
            .map(|name| nodes.entry(name.clone()).or_insert_with(|| vec![network.add_node()])[0]);
        network.connect(from, to, &edge.link.0, &edge.back.as_ref().unwrap_or(&edge.link).0);
    }
    (nodes, graph.bottleneck.as_ref())
}

fn chain<'a>(network: &mut Network, chain: &'a Chain) -> Built<'a> {
    let links: Vec<LinkConfig> = chain.links.iter().map(|link| link.0.clone()).collect();
    let nodes = topology::chain(network, &links).into_iter().enumerate();
    let nodes = nodes.map(|(i, node)| (format!("n{i}"), vec![node])).collect();
    (nodes, chain.bottleneck.as_ref())
}

fn tree(network: &mut Network, tree: &Tree) -> BTreeMap<String, Vec<NodeId>> {
    let built = topology::tree(network, tree.degree.0, tree.depth.0, &tree.link.0);
    let leaves = built.leaves().to_vec();
    let levels = built.levels.into_iter().enumerate().map(|(i, level)| (format!("level{}", i + 1), level));
    levels.chain([("root".to_owned(), vec![built.root]), ("leaves".to_owned(), leaves)]).collect()
}

fn transit_stub(network: &mut Network, graph: &TransitStub, seed: u64) -> BTreeMap<String, Vec<NodeId>> {
    let config = TransitStubConfig {
        transit_domains: graph.transit_domains.0,
        transit_nodes: graph.transit_nodes.0,
        stubs_per_transit_node: graph.stubs_per_transit_node.0,
        stub_nodes: graph.stub_nodes.0,
        domain_edge: graph.domain_edge.0,
        transit_edge: graph.transit_edge.0,
        stub_edge: graph.stub_edge.0,
        transit_link: graph.transit_link.0.clone(),
        access_link: graph.access_link.0.clone(),
        stub_link: graph.stub_link.0.clone(),
    };
    let built = topology::transit_stub(network, seed, &config);
    [("transit".to_owned(), built.transit.concat()), ("stubs".to_owned(), built.stubs.concat())].into()
}
