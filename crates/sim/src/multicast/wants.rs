//! Which of a session's channels each branch of a tree wants, and the switches that do not ask.
//!
//! A router sends a channel over the branches that have asked for it. A switch that does not snoop on joins and leaves sends what
//! it gets to all its ports, and it gets what anybody behind it has asked for.

use super::{BranchId, LeadsTo, Tree};
use crate::NodeId;
use crate::graph::Graph;

/// Which of a session's channels each branch wants.
#[derive(Debug)]
pub(super) struct Wants {
    /// Bits by channel, in as many words a branch as the session's channels need: most need one.
    bits: Vec<u64>,
    words: usize,
}

impl Wants {
    pub(super) fn new(channels: usize) -> Wants {
        Wants { bits: Vec::new(), words: channels.div_ceil(64) }
    }

    /// One more branch, which wants nothing.
    pub(super) fn grow(&mut self) {
        self.bits.resize(self.bits.len() + self.words, 0);
    }

    #[inline]
    pub(super) fn contains(&self, branch: BranchId, channel: u16) -> bool {
        self.bits[branch.index() * self.words..][..self.words][usize::from(channel) / 64] >> (channel % 64) & 1 == 1
    }

    /// Says whether that changed anything.
    pub(super) fn set(&mut self, branch: BranchId, channel: u16, wanted: bool) -> bool {
        let word = &mut self.bits[branch.index() * self.words..][..self.words][usize::from(channel) / 64];
        let (before, bit) = (*word, 1 << (channel % 64));
        *word = if wanted { before | bit } else { before & !bit };
        *word != before
    }
}

impl Tree {
    /// A branch of `node` asks for a channel, or no longer does. Says whether that changed anything.
    pub(super) fn ask(&mut self, node: NodeId, branch: BranchId, channel: u16, wanted: bool) -> bool {
        if !self.nodes[node.index()].floods {
            return self.wants.set(branch, channel, wanted);
        }
        let changed = self.asks.set(branch, channel, wanted);
        self.spread(node, channel);
        changed
    }

    /// Whether a branch of `node` has asked for a channel.
    pub(super) fn asks(&self, node: NodeId, branch: BranchId, channel: u16) -> bool {
        let asked = if self.nodes[node.index()].floods { &self.asks } else { &self.wants };
        asked.contains(branch, channel)
    }

    /// Whether any branch of `node` has.
    pub(super) fn is_asked(&self, node: NodeId, channel: u16) -> bool {
        self.branches(node).any(|branch| self.asks(node, branch, channel))
    }

    /// A switch sends a channel to all ports if anybody has asked for it; to agents of its own only if they have.
    fn spread(&mut self, node: NodeId, channel: u16) {
        let anybody = self.is_asked(node, channel);
        let mut next = self.first(node);
        while let Some(branch) = next {
            let sends = match self.branches[branch.index()].leads_to {
                LeadsTo::Link(_) => anybody,
                LeadsTo::Agent(_) => self.asks.contains(branch, channel),
            };
            self.wants.set(branch, channel, sends);
            next = self.next(branch);
        }
    }

    /// Makes a node of the tree a switch that floods, if it is one and is not yet, and those that it floods likewise.
    pub(super) fn flood(&mut self, graph: &Graph, node: NodeId) {
        if !graph.floods(node) || self.nodes[node.index()].floods {
            return;
        }
        for channel in 0..self.channels {
            let mut next = self.first(node);
            while let Some(branch) = next {
                self.asks.set(branch, channel, self.wants.contains(branch, channel));
                next = self.next(branch);
            }
        }
        self.nodes[node.index()].floods = true;
        let from = self.ways[node.index()].map(|link| graph.from(link));
        for &link in graph.leaving(node) {
            let to = graph.to(link);
            if from == Some(to) || !graph.routes_multicast(link) {
                continue;
            }
            let branch = self.branch_over(node, link);
            if self.ways[to.index()] == Some(link) && self.nodes[to.index()].above.is_none() {
                self.place_below(graph, to, node, branch);
                self.flood(graph, to);
            }
        }
        (0..self.channels).for_each(|channel| self.spread(node, channel));
    }
}
