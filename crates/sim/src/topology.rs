//! Networks that are asked for often: dumbbells, chains, trees and transit-stub graphs.

mod transit_stub;

use weir_link::LinkConfig;

use crate::{LinkId, Network, NodeId};

pub use transit_stub::{TransitStub, TransitStubConfig, transit_stub};

/// A bottleneck between two routers; hosts are added on either side.
#[derive(Debug, Clone, Copy)]
pub struct Dumbbell {
    /// The router on the senders' side.
    pub left: NodeId,
    /// The router on the receivers' side.
    pub right: NodeId,
    /// The link from left to right.
    pub forward: LinkId,
    /// The link from right to left.
    pub backward: LinkId,
}

/// Builds a dumbbell without hosts.
pub fn dumbbell(net: &mut Network, forward: &LinkConfig, backward: &LinkConfig) -> Dumbbell {
    let (left, right) = (net.add_node(), net.add_node());
    let [forward, backward] = net.connect(left, right, forward, backward);
    Dumbbell { left, right, forward, backward }
}

/// Adds a host behind a router, with the same link in both directions.
pub fn add_host(net: &mut Network, router: NodeId, link: &LinkConfig) -> NodeId {
    let host = net.add_node();
    net.connect(router, host, link, link);
    host
}

/// Builds a chain of `links.len() + 1` nodes; link i joins nodes i and i + 1, the same in both directions.
pub fn chain(net: &mut Network, links: &[LinkConfig]) -> Vec<NodeId> {
    let mut nodes = vec![net.add_node()];
    for link in links {
        nodes.push(add_host(net, nodes[nodes.len() - 1], link));
    }
    nodes
}

/// A tree: its root, and the nodes of every level below.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The root.
    pub root: NodeId,
    /// The nodes of level 1 and on; the last are the leaves.
    pub levels: Vec<Vec<NodeId>>,
}

/// Builds a tree of `depth` levels below the root in which every inner node has `degree` children; all links alike.
pub fn tree(net: &mut Network, degree: usize, depth: usize, link: &LinkConfig) -> Tree {
    let root = net.add_node();
    let mut levels: Vec<Vec<NodeId>> = Vec::new();
    for depth in 0..depth {
        let parents = if depth == 0 { vec![root] } else { levels[depth - 1].clone() };
        let level = parents.iter().flat_map(|parent| (0..degree).map(|_| *parent));
        let level = level.collect::<Vec<_>>().into_iter().map(|parent| add_host(net, parent, link)).collect();
        levels.push(level);
    }
    Tree { root, levels }
}

impl Tree {
    /// The nodes furthest from the root.
    pub fn leaves(&self) -> &[NodeId] {
        self.levels.last().map_or(std::slice::from_ref(&self.root), Vec::as_slice)
    }
}
