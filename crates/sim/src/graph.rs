//! The network as a graph: who is next to whom, and which way is shortest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::{LinkId, NodeId};

/// Nodes and the link directions between them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// By node: the links that leave it, in the order in which they were made.
    leaving: Vec<Vec<LinkId>>,
    /// By link: where it begins and ends.
    ends: Vec<(NodeId, NodeId)>,
    /// Links that no multicast is routed over.
    without_multicast: BTreeSet<LinkId>,
    /// How long leaves take where a router has a latency of its own.
    leave_latencies: BTreeMap<NodeId, Duration>,
    /// Switches that do not snoop.
    flooding: BTreeSet<NodeId>,
}

impl Graph {
    pub(crate) fn add_node(&mut self) -> NodeId {
        self.leaving.push(Vec::new());
        NodeId::new(self.leaving.len() - 1)
    }

    pub(crate) fn add_link(&mut self, from: NodeId, to: NodeId) -> LinkId {
        let link = LinkId::new(self.ends.len());
        self.ends.push((from, to));
        self.leaving[from.index()].push(link);
        link
    }

    pub(crate) fn nodes(&self) -> usize {
        self.leaving.len()
    }

    pub(crate) fn links(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn from(&self, link: LinkId) -> NodeId {
        self.ends[link.index()].0
    }

    pub(crate) fn to(&self, link: LinkId) -> NodeId {
        self.ends[link.index()].1
    }

    /// The first link made from one node to its neighbour.
    pub(crate) fn between(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        self.leaving[from.index()].iter().copied().find(|link| self.to(*link) == to)
    }

    pub(crate) fn route_no_multicast(&mut self, link: LinkId) {
        self.without_multicast.insert(link);
    }

    pub(crate) fn routes_multicast(&self, link: LinkId) -> bool {
        !self.without_multicast.contains(&link)
    }

    pub(crate) fn set_leave_latency(&mut self, router: NodeId, latency: Duration) {
        self.leave_latencies.insert(router, latency);
    }

    /// How long a leave takes at this router, if it has a latency of its own.
    pub(crate) fn leave_latency(&self, router: NodeId) -> Option<Duration> {
        self.leave_latencies.get(&router).copied()
    }

    pub(crate) fn flood(&mut self, switch: NodeId) {
        self.flooding.insert(switch);
    }

    pub(crate) fn floods(&self, node: NodeId) -> bool {
        self.flooding.contains(&node)
    }

    pub(crate) fn has_flooding(&self) -> bool {
        !self.flooding.is_empty()
    }

    /// The links that leave a node, in the order in which they were made.
    pub(crate) fn leaving(&self, node: NodeId) -> &[LinkId] {
        &self.leaving[node.index()]
    }

    /// By node: the link over which a shortest way from `source` comes to it; `None` for `source` itself and for nodes that
    /// cannot be reached. Every link counts as one; of several shortest ways, that over the links made first is taken.
    pub(crate) fn ways_from(&self, source: NodeId) -> Vec<Option<LinkId>> {
        let mut way = vec![None; self.nodes()];
        let mut frontier = VecDeque::from([source]);
        while let Some(node) = frontier.pop_front() {
            for &link in &self.leaving[node.index()] {
                let next = self.to(link);
                if next != source && way[next.index()].is_none() {
                    way[next.index()] = Some(link);
                    frontier.push_back(next);
                }
            }
        }
        way
    }

    /// The links from the source of `ways` (as [`Graph::ways_from`] gives them) to `to`, in order; `None` if there is no way.
    pub(crate) fn path(&self, ways: &[Option<LinkId>], source: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        let mut path = Vec::new();
        let mut at = to;
        while at != source {
            let link = ways[at.index()]?;
            path.push(link);
            at = self.from(link);
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_is_found_and_the_first_made_link_wins() {
        let mut graph = Graph::default();
        let nodes: Vec<NodeId> = (0..5).map(|_| graph.add_node()).collect();
        let mut link = |from: usize, to: usize| graph.add_link(nodes[from], nodes[to]);
        let (by_one, _, direct) = (link(0, 1), link(0, 2), link(1, 3));
        link(2, 3);
        let ways = graph.ways_from(nodes[0]);
        assert_eq!(graph.path(&ways, nodes[0], nodes[3]), Some(vec![by_one, direct]));
        assert_eq!(graph.path(&ways, nodes[0], nodes[0]), Some(vec![]));
        assert_eq!(graph.path(&ways, nodes[0], nodes[4]), None, "nothing leads there");
    }
}
