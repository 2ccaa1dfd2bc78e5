//! Multicast sessions: who sends, who is attached, and over which trees the packets of a channel go.
//!
//! A session has the tree from its root, and one more from every other node from which somebody has sent to a channel, made at
//! the first such packet. All have the same members, who join and leave in all of them with the same latencies. So each node
//! that sends costs the memory of a tree, and each join and leave the work of one.

use std::collections::BTreeMap;

use weir_units::Time;
use weir_wire::CciForm;

use crate::fabric::{Control, Fabric};
use crate::multicast::{BranchId, Member, Pending, Standing, Tree};
use crate::{AgentId, FlowId, NodeId, SessionConfig, SessionId};

/// A multicast session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) root: NodeId,
    pub(crate) flow: FlowId,
    pub(crate) form: CciForm,
    pub(crate) channels: u16,
    pub(crate) sender: Option<AgentId>,
    config: SessionConfig,
    /// The tree from the root.
    tree: TreeId,
    others: Vec<Other>,
}

/// The number of a tree among those of all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeId(pub(crate) u32);

impl TreeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The tree from a node that is not the session's root.
#[derive(Debug)]
struct Other {
    root: NodeId,
    tree: TreeId,
    /// Where the members of the root's tree are in this one, if packets get there.
    members: BTreeMap<BranchId, Member>,
}

impl Fabric {
    /// Adds a session without members.
    pub(crate) fn add_session(&mut self, root: NodeId, flow: FlowId, config: SessionConfig) -> SessionId {
        let tree = self.add_tree(Tree::new(&self.graph, root, config.channels, config.membership));
        let (form, channels) = (config.form, config.channels as u16);
        self.sessions.push(Session { root, flow, form, channels, sender: None, config, tree, others: Vec::new() });
        SessionId::new(self.sessions.len() - 1)
    }

    fn add_tree(&mut self, tree: Tree) -> TreeId {
        self.trees.push(tree);
        TreeId(u32::try_from(self.trees.len() - 1).expect("memory ends before four billion trees"))
    }

    /// Attaches an agent to a session's trees; `None` if packets from the root cannot get to its node.
    pub(crate) fn attach(&mut self, session: SessionId, node: NodeId, agent: AgentId) -> Option<Member> {
        let known = &mut self.sessions[session.index()];
        let member = self.trees[known.tree.index()].attach(&self.graph, node, agent)?;
        for other in &mut known.others {
            if let Some(there) = self.trees[other.tree.index()].attach(&self.graph, node, agent) {
                other.members.insert(member.branch, there);
            }
        }
        Some(member)
    }

    /// A member joins or leaves a channel.
    pub(crate) fn change(&mut self, now: Time, session: SessionId, member: Member, channel: u16, join: bool) {
        self.change_in(now, self.sessions[session.index()].tree, member, channel, join);
        for number in 0..self.sessions[session.index()].others.len() {
            let other = &self.sessions[session.index()].others[number];
            if let Some(there) = other.members.get(&member.branch).copied() {
                self.change_in(now, other.tree, there, channel, join);
            }
        }
    }

    fn change_in(&mut self, now: Time, tree: TreeId, member: Member, channel: u16, join: bool) {
        let mut later = Vec::new();
        self.trees[tree.index()].change(now, member, channel, join, &mut |at, pending| later.push((at, pending)));
        self.schedule_membership(tree, &later);
    }

    /// A join or leave has reached the next node up the tree.
    pub(crate) fn change_above(&mut self, now: Time, tree: TreeId, pending: Pending) {
        let mut later = Vec::new();
        self.trees[tree.index()].arrive(now, pending, &mut |at, pending| later.push((at, pending)));
        self.schedule_membership(tree, &later);
    }

    fn schedule_membership(&mut self, tree: TreeId, later: &[(Time, Pending)]) {
        for (at, pending) in later {
            self.schedule(*at, Control::Membership(tree, *pending));
        }
    }

    /// The tree that packets to a session's channels take from a node.
    #[inline]
    pub(crate) fn tree_from(&mut self, now: Time, session: SessionId, node: NodeId) -> TreeId {
        let known = &self.sessions[session.index()];
        match known.root == node {
            true => known.tree,
            false => self.tree_from_elsewhere(now, session, node),
        }
    }

    #[cold]
    fn tree_from_elsewhere(&mut self, now: Time, session: SessionId, node: NodeId) -> TreeId {
        let known = &self.sessions[session.index()];
        match known.others.iter().find(|other| other.root == node) {
            Some(other) => other.tree,
            None => self.grow_tree(now, session, node),
        }
    }

    /// Makes the tree from a node from which somebody sends for the first time. Who is a member in the root's tree is one
    /// here; a join that has not reached its first router there takes its whole latency here.
    fn grow_tree(&mut self, now: Time, session: SessionId, node: NodeId) -> TreeId {
        let Session { config, tree: first, .. } = self.sessions[session.index()];
        let mut tree = Tree::new(&self.graph, node, config.channels, config.membership);
        let (mut members, mut later) = (BTreeMap::new(), Vec::new());
        let known = &self.trees[first.index()];
        for (branch, agent) in known.agents() {
            let member = Member { node: self.nodes[agent.index()], branch };
            let Some(there) = tree.attach(&self.graph, member.node, agent) else { continue };
            members.insert(branch, there);
            for channel in 0..config.channels as u16 {
                match known.standing(member, channel) {
                    Standing::Outside => {}
                    Standing::Joining => tree.change(now, there, channel, true, &mut |at, todo| later.push((at, todo))),
                    Standing::Member => tree.settle(there, channel),
                }
            }
        }
        let tree = self.add_tree(tree);
        self.schedule_membership(tree, &later);
        self.sessions[session.index()].others.push(Other { root: node, tree, members });
        tree
    }
}
