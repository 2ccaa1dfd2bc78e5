//! The network's shape, and the names by which its nodes are called. Not here: building it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use weir_link::LinkConfig;

use super::did_you_mean;
use super::values::Text;

/// The network's shape. All but the dumbbell have named nodes, on which sessions and flows are put with `at`, `from` and `to`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Topology {
    /// All senders on one side, all receivers on the other, one bottleneck between.
    Dumbbell(Dumbbell),
    /// Any nodes and links.
    Graph(Graph),
    /// Nodes in a row, called n0, n1 and so on.
    Chain(Chain),
    /// A tree: `root`, `level1`, `level2` and so on, of which the last are also called `leaves`.
    Tree(Tree),
    /// A transit-stub graph as GT-ITM makes them, of another shape for every seed: the nodes of `transit` domains, and of `stubs`.
    TransitStub(TransitStub),
}

/// A dumbbell: every sender and every receiver has an access link of its own to one of two routers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// The link from the senders' router to the receivers' router. Its delay counts in the round-trip times of sessions and
    /// flows, which must be at least twice as long.
    pub bottleneck: Text<LinkConfig>,
    /// The link the other way. Default: as the bottleneck.
    pub reverse: Option<Text<LinkConfig>>,
    /// Access links, without their delay: that follows from the round-trip times of sessions and flows. Default:
    /// 100 Mbit/s with a buffer that no burst fills.
    #[serde(default = "access")]
    pub access: Text<LinkConfig>,
}

/// Any network: its nodes are those that links name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The links.
    pub links: Vec<Edge>,
    /// From where to where the link leads that counts as the bottleneck. Default: as the first link of the list.
    pub bottleneck: Option<[String; 2]>,
}

/// A link between two nodes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// From where to where.
    pub between: [String; 2],
    /// There.
    pub link: Text<LinkConfig>,
    /// Back. Default: as there.
    pub back: Option<Text<LinkConfig>>,
}

/// Nodes in a row.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The links from n0 to n1, from n1 to n2, and so on; the same in both directions.
    pub links: Vec<Text<LinkConfig>>,
    /// From where to where the link leads that counts as the bottleneck. Default: from n0 to n1.
    pub bottleneck: Option<[String; 2]>,
}

/// A tree in which all links are alike. The first link down from the root counts as the bottleneck.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Children of every node but the leaves.
    pub degree: Text<usize>,
    /// Levels below the root.
    pub depth: Text<usize>,
    /// The links, the same in both directions.
    pub link: Text<LinkConfig>,
}

/// A transit-stub graph. Links are the same in both directions; the first one made, between transit nodes if there are two,
/// counts as the bottleneck.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransitStub {
    /// Transit domains, at least 1.
    pub transit_domains: Text<usize>,
    /// Nodes of a transit domain, at least 1.
    pub transit_nodes: Text<usize>,
    /// Stub domains that hang on each transit node.
    pub stubs_per_transit_node: Text<usize>,
    /// Nodes of a stub domain, at least 1.
    pub stub_nodes: Text<usize>,
    /// Probability of a link between any two transit domains, next to those that connect them all. Default 0.
    #[serde(default = "never")]
    pub domain_edge: Text<f64>,
    /// Probability of a link between any two nodes of a transit domain, next to those that connect them all. Default 0.
    #[serde(default = "never")]
    pub transit_edge: Text<f64>,
    /// Probability of a link between any two nodes of a stub domain, next to those that connect them all. Default 0.
    #[serde(default = "never")]
    pub stub_edge: Text<f64>,
    /// Links between and within transit domains.
    pub transit_link: Text<LinkConfig>,
    /// Links from a stub domain to its transit node.
    pub access_link: Text<LinkConfig>,
    /// Links within stub domains.
    pub stub_link: Text<LinkConfig>,
}

impl Topology {
    /// Whether it can be built, apart from who is on it.
    pub(super) fn check(&self) -> Result<(), String> {
        let names = self.names();
        let linked = |pair: &[String; 2]| match self {
            Topology::Graph(graph) => graph.links.iter().any(|edge| is_between(edge, pair)),
            _ => names.contains(&pair[0]) && names.contains(&pair[1]),
        };
        match self {
            Topology::Dumbbell(_) => Ok(()),
            Topology::Graph(Graph { links, .. }) if links.is_empty() => Err("a graph needs links".to_owned()),
            Topology::Chain(Chain { links, .. }) if links.is_empty() => Err("a chain needs links".to_owned()),
            Topology::Graph(Graph { bottleneck: Some(pair), .. })
            | Topology::Chain(Chain { bottleneck: Some(pair), .. })
                if !linked(pair) =>
            {
                Err(format!("no link joins the bottleneck's ends, {:?} and {:?}", pair[0], pair[1]))
            }
            Topology::Tree(tree) if tree.degree.0 == 0 || tree.depth.0 == 0 => {
                Err("a tree needs a degree and a depth of 1 or more".to_owned())
            }
            Topology::TransitStub(graph) => graph.check(),
            Topology::Graph(_) | Topology::Chain(_) | Topology::Tree(_) => Ok(()),
        }
    }

    /// What nodes can be called, in order; nothing for a dumbbell.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        match self {
            Topology::Dumbbell(_) => BTreeSet::new(),
            Topology::Graph(graph) => graph.links.iter().flat_map(|edge| edge.between.clone()).collect(),
            Topology::Chain(chain) => (0..=chain.links.len()).map(|i| format!("n{i}")).collect(),
            Topology::Tree(tree) => {
                let levels = (1..=tree.depth.0).map(|level| format!("level{level}"));
                ["root".to_owned(), "leaves".to_owned()].into_iter().chain(levels).collect()
            }
            Topology::TransitStub(_) => ["transit".to_owned(), "stubs".to_owned()].into(),
        }
    }

    /// Whether there is a node of this name; the two routers of a dumbbell are `left` and `right`.
    pub(super) fn has_router(&self, name: &str) -> Result<(), String> {
        let names = match self {
            Topology::Dumbbell(_) => ["left".to_owned(), "right".to_owned()].into(),
            _ => self.names(),
        };
        if names.contains(name) {
            return Ok(());
        }
        let suggestion = did_you_mean(name, names.iter().map(String::as_str));
        let names: Vec<_> = names.iter().take(20).map(String::as_str).collect();
        Err(format!("there is no node {name:?}; there are {}{suggestion}", names.join(", ")))
    }

    /// Whether not all of these are one node, as far as names tell.
    pub(super) fn has_two_ends(&self, from: &[String], to: &[String]) -> bool {
        let is_one = match from.first().filter(|first| from.iter().chain(to).all(|name| name == *first)) {
            Some(name) => self.has_one_node(name),
            None => false,
        };
        !is_one
    }

    /// Whether only one node has this name.
    fn has_one_node(&self, name: &str) -> bool {
        match self {
            Topology::Dumbbell(_) => false,
            Topology::Graph(_) | Topology::Chain(_) => true,
            Topology::Tree(tree) => name == "root" || tree.degree.0 == 1,
            Topology::TransitStub(graph) => graph.nodes_of(name) == 1,
        }
    }

    /// Whether somebody who says where he is with `at`, and how far off the other end is with `rtt`, can be put there. The
    /// dumbbell's links follow from round-trip times; elsewhere the links are given and nodes are named.
    pub(super) fn has_place(&self, key: &str, at: &[String], rtt: Option<bool>) -> Result<(), String> {
        if let Topology::Dumbbell(_) = self {
            return match (at, rtt) {
                (_, Some(false)) => Err("missing key \"rtt\", from which a dumbbell's access links follow".to_owned()),
                ([], _) => Ok(()),
                _ => Err(format!("a dumbbell has no named nodes: leave {key} out")),
            };
        }
        let names = self.names();
        match at.iter().find(|name| !names.contains(*name)) {
            _ if rtt == Some(true) => {
                Err("the delays of the topology's links give round-trip times: leave rtt out".to_owned())
            }
            Some(name) => {
                let suggestion = did_you_mean(name, names.iter().map(String::as_str));
                let names: Vec<_> = names.iter().take(20).map(String::as_str).collect();
                Err(format!("{key}: there is no node {name:?}; there are {}{suggestion}", names.join(", ")))
            }
            None if at.is_empty() => Err(format!("missing key {key:?}, a list of nodes")),
            None => Ok(()),
        }
    }
}

impl TransitStub {
    /// How many nodes have this name.
    fn nodes_of(&self, name: &str) -> usize {
        let transit = self.transit_domains.0.saturating_mul(self.transit_nodes.0);
        let stubs = self.stubs_per_transit_node.0.saturating_mul(self.stub_nodes.0);
        if name == "transit" { transit } else { transit.saturating_mul(stubs) }
    }

    fn check(&self) -> Result<(), String> {
        if [self.transit_domains, self.transit_nodes, self.stub_nodes].iter().any(|count| count.0 == 0) {
            return Err("transit_domains, transit_nodes and stub_nodes must be 1 or more".to_owned());
        }
        let nodes = self.transit_domains.0 * self.transit_nodes.0;
        if nodes == 1 && self.stubs_per_transit_node.0 == 0 {
            return Err("a transit-stub graph of one node has no links".to_owned());
        }
        let chances = [self.domain_edge, self.transit_edge, self.stub_edge];
        match chances.iter().all(|chance| (0.0..=1.0).contains(&chance.0)) {
            true => Ok(()),
            false => Err("domain_edge, transit_edge and stub_edge are probabilities, 0 to 1".to_owned()),
        }
    }
}

/// Why a flow has no place: all nodes that it may take are one.
pub(crate) fn one_node(from: &[String], to: &[String]) -> String {
    format!("from {from:?} and to {to:?} are one node, and a flow needs two: name another node in from or in to")
}

/// Why a tree has no place: all of its members are with the sender.
pub(crate) const ALL_ON_ONE_NODE: &str =
    "all members are on the sender's node, where nothing limits their rate: name another node in at or in members.at";

/// Whether the edge joins these two, in either direction.
fn is_between(edge: &Edge, [from, to]: &[String; 2]) -> bool {
    let [a, b] = &edge.between;
    (a, b) == (from, to) || (b, a) == (from, to)
}

fn access() -> Text<LinkConfig> {
    Text("rate=100M,buffer=10000p".parse().expect("a valid link"))
}

fn never() -> Text<f64> {
    Text(0.0)
}
