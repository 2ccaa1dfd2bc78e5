//! Transit-stub graphs, as GT-ITM makes them (Zegura, Calvert and Bhattacharjee, "How to model an internetwork", 1996):
//! transit domains joined to one another, stub domains hung on their nodes, each domain a connected random graph.

use weir_link::LinkConfig;
use weir_units::Random;

use crate::{Network, NodeId};

/// What a transit-stub graph is like.
#[derive(Debug, Clone)]
pub struct TransitStubConfig {
    /// Transit domains, at least 1.
    pub transit_domains: usize,
    /// Nodes of a transit domain, at least 1.
    pub transit_nodes: usize,
    /// Stub domains that hang on each transit node.
    pub stubs_per_transit_node: usize,
    /// Nodes of a stub domain, at least 1.
    pub stub_nodes: usize,
    /// Probability of a link between any two transit domains, next to those that connect them all.
    pub domain_edge: f64,
    /// Probability of a link between any two nodes of a transit domain, next to those that connect them all.
    pub transit_edge: f64,
    /// Probability of a link between any two nodes of a stub domain, next to those that connect them all.
    pub stub_edge: f64,
    /// Links between and within transit domains.
    pub transit_link: LinkConfig,
    /// Links from a stub domain to its transit node.
    pub access_link: LinkConfig,
    /// Links within stub domains.
    pub stub_link: LinkConfig,
}

/// A transit-stub graph.
#[derive(Debug, Clone)]
pub struct TransitStub {
    /// The nodes of each transit domain.
    pub transit: Vec<Vec<NodeId>>,
    /// The nodes of each stub domain.
    pub stubs: Vec<Vec<NodeId>>,
}

/// Builds a transit-stub graph; `seed` decides its shape. Links are the same in both directions.
///
/// GT-ITM draws a domain again until it is connected. Here a random tree connects it from the start and further links come
/// with their probability, so that sparse domains can be had too.
pub fn transit_stub(net: &mut Network, seed: u64, config: &TransitStubConfig) -> TransitStub {
    let mut random = Random::new(seed, "transit-stub");
    let transit: Vec<Vec<NodeId>> = (0..config.transit_domains)
        .map(|_| domain(net, config.transit_nodes, config.transit_edge, &config.transit_link, &mut random))
        .collect();
    for (a, b) in edges(transit.len(), config.domain_edge, &mut random) {
        let [from, to] = [a, b].map(|domain| pick(&transit[domain], &mut random));
        net.connect(from, to, &config.transit_link, &config.transit_link);
    }
    let mut stubs = Vec::new();
    for &above in transit.iter().flatten() {
        for _ in 0..config.stubs_per_transit_node {
            let stub = domain(net, config.stub_nodes, config.stub_edge, &config.stub_link, &mut random);
            net.connect(above, pick(&stub, &mut random), &config.access_link, &config.access_link);
            stubs.push(stub);
        }
    }
    TransitStub { transit, stubs }
}

fn domain(net: &mut Network, nodes: usize, edge: f64, link: &LinkConfig, random: &mut Random) -> Vec<NodeId> {
    let nodes: Vec<NodeId> = (0..nodes).map(|_| net.add_node()).collect();
    for (a, b) in edges(nodes.len(), edge, random) {
        net.connect(nodes[a], nodes[b], link, link);
    }
    nodes
}

fn pick(nodes: &[NodeId], random: &mut Random) -> NodeId {
    nodes[random.below(nodes.len() as u64) as usize]
}

/// The edges of a connected random graph of `nodes` nodes: a tree in which each node hangs on a random earlier one, and
/// each other pair with probability `edge`.
fn edges(nodes: usize, edge: f64, random: &mut Random) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for node in 1..nodes {
        let parent = random.below(node as u64) as usize;
        edges.push((parent, node));
        edges.extend((0..node).filter(|other| *other != parent && random.chance(edge)).map(|other| (other, node)));
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_random_graph_is_connected_and_has_no_edge_twice(nodes in 1usize..40, edge in 0.0f64..=1.0, seed: u64) {
            let edges = edges(nodes, edge, &mut Random::new(seed, "test"));
            let mut reached = vec![false; nodes];
            reached[0] = true;
            // A node's first edge leads to an earlier node.
            edges.iter().for_each(|(a, b)| reached[*b] |= reached[*a]);
            prop_assert!(reached.iter().all(|reached| *reached));
            let mut sorted = edges.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), edges.len());
            prop_assert!(edges.iter().all(|(a, b)| a < b));
        }
    }

    #[test]
    fn the_share_of_further_edges_is_as_asked() {
        let edges = edges(200, 0.3, &mut Random::new(5, "test")).len() as f64;
        let pairs = 200.0 * 199.0 / 2.0;
        let expected = 199.0 + 0.3 * (pairs - 199.0);
        assert!((edges - expected).abs() < 300.0, "{edges} edges, {expected} expected");
    }
}
