//! Multicast routing: a tree of a session, and how joins and leaves travel up it.
//!
//! The tree is that of the shortest routes from the node where packets start. A node forwards a channel to those of its
//! branches that want it. What a branch wants changes when a join or leave has reached the node; [`Membership`] says how long
//! that takes. Not here: which trees a session has (`sessions.rs`).

mod wants;

use std::num::NonZeroU32;
use std::time::Duration;

use weir_units::Time;

use crate::graph::Graph;
use crate::{AgentId, LinkId, NodeId};
use wants::Wants;

/// How joins and leaves take effect. The default is at once, as in ns-2 and in the papers' simulations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Membership {
    /// From a host's join until its first router forwards (IGMP or MLD report and the router's work).
    pub join_latency: Duration,
    /// From a host's leave until its first router stops forwarding (the last member query of IGMP or MLD), if that router has no
    /// latency of its own.
    pub leave_latency: Duration,
    /// What a router takes to pass a join or leave on to the next router up the tree.
    pub hop_latency: Duration,
    /// Whether endpoints also get what reaches their hosts over channels that they have left. A host's kernel withholds it;
    /// an emulated link that stands between the sockets and the endpoint does not.
    pub stragglers: bool,
}

/// A tree of a session.
///
/// The branches of all nodes lie in one piece, in the order in which they grew: with a hundred thousand members a packet
/// costs what it takes to fetch these from memory, and what is fetched in order comes by itself.
#[derive(Debug)]
pub(crate) struct Tree {
    membership: Membership,
    root: NodeId,
    ways: Vec<Option<LinkId>>,
    /// By node: the first of its branches.
    firsts: Vec<Option<BranchId>>,
    nodes: Vec<Node>,
    branches: Vec<Branch>,
    channels: u16,
    /// Over which branches a channel is sent.
    wants: Wants,
    /// Which branches have asked for it, where that differs: at switches that flood. Empty in networks without any.
    asks: Wants,
}

#[derive(Debug, Clone, Default)]
struct Node {
    /// The last of the node's branches.
    last: Option<BranchId>,
    /// The node's parent, and which of its branches leads here; `None` at the root and outside the tree.
    above: Option<(NodeId, BranchId)>,
    /// How long leaves take at the router above, if it has a latency of its own.
    leave_latency: Option<Duration>,
    /// Whether it sends what it gets to all ports.
    floods: bool,
}

#[derive(Debug)]
struct Branch {
    leads_to: LeadsTo,
    /// The next branch of the same node.
    next: Option<BranchId>,
}

/// A branch: its place among all of the tree's, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BranchId(NonZeroU32);

impl BranchId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Where a branch leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeadsTo {
    Link(LinkId),
    Agent(AgentId),
}

/// A member of a session: where in the tree it is attached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) node: NodeId,
    pub(crate) branch: BranchId,
}

/// How a member stands to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Outside,
    /// It has joined, and its first router has not heard of it yet.
    Joining,
    Member,
}

/// A change that has still to reach the node above: whether `node` wants the channel is asked when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    node: NodeId,
    channel: u16,
}

impl Tree {
    /// Most channels that a session can have.
    pub(crate) const MAX_CHANNELS: usize = 256;

    /// The tree of a session with this number of channels, without members, from the node where the sender is.
    pub(crate) fn new(graph: &Graph, root: NodeId, channels: usize, membership: Membership) -> Tree {
        Tree {
            membership,
            root,
            ways: graph.ways_from(root),
            firsts: vec![None; graph.nodes()],
            nodes: vec![Node::default(); graph.nodes()],
            branches: Vec::new(),
            channels: channels as u16,
            wants: Wants::new(channels),
            asks: Wants::new(if graph.has_flooding() { channels } else { 0 }),
        }
    }

    /// Attaches an agent, which is not a member of any channel yet. `None` if the sender cannot reach the node. Where multicast is
    /// not routed on the way, nothing will come.
    pub(crate) fn attach(&mut self, graph: &Graph, node: NodeId, agent: AgentId) -> Option<Member> {
        if self.nodes.len() < graph.nodes() {
            // The network has grown since; ways that members take already stay.
            self.ways = graph.ways_from(self.root);
            self.firsts.resize(graph.nodes(), None);
            self.nodes.resize(graph.nodes(), Node::default());
        }
        let mut at = node;
        while at != self.root && self.nodes.get(at.index())?.above.is_none() {
            let link = self.ways[at.index()]?;
            if !graph.routes_multicast(link) {
                break;
            }
            let parent = graph.from(link);
            let branch = self.branch_over(parent, link);
            self.place_below(graph, at, parent, branch);
            self.flood(graph, parent);
            at = parent;
        }
        self.flood(graph, node);
        Some(Member { node, branch: self.grow(node, LeadsTo::Agent(agent)) })
    }

    fn place_below(&mut self, graph: &Graph, node: NodeId, parent: NodeId, branch: BranchId) {
        let below = &mut self.nodes[node.index()];
        (below.above, below.leave_latency) = (Some((parent, branch)), graph.leave_latency(parent));
    }

    /// The branch of a node that leads over a link, which grows if it is not there.
    fn branch_over(&mut self, node: NodeId, link: LinkId) -> BranchId {
        let leads_to = LeadsTo::Link(link);
        // Only a switch that floods has a branch before anybody behind it is there.
        let known = self.nodes[node.index()]
            .floods
            .then(|| self.branches(node).find(|branch| self.branches[branch.index()].leads_to == leads_to));
        known.flatten().unwrap_or_else(|| self.grow(node, leads_to))
    }

    fn grow(&mut self, node: NodeId, leads_to: LeadsTo) -> BranchId {
        self.branches.push(Branch { leads_to, next: None });
        self.wants.grow();
        self.asks.grow();
        let count = u32::try_from(self.branches.len()).ok().and_then(NonZeroU32::new);
        let new = BranchId(count.expect("memory ends before four billion branches"));
        match self.nodes[node.index()].last.replace(new) {
            Some(last) => self.branches[last.index()].next = Some(new),
            None => self.firsts[node.index()] = Some(new),
        }
        new
    }

    /// The branches that lead to agents, with these.
    pub(crate) fn agents(&self) -> impl Iterator<Item = (BranchId, AgentId)> + '_ {
        let numbers = (1..).map_while(NonZeroU32::new).map(BranchId);
        numbers.zip(&self.branches).filter_map(|(id, branch)| match branch.leads_to {
            LeadsTo::Agent(agent) => Some((id, agent)),
            LeadsTo::Link(_) => None,
        })
    }

    /// Whether a member has joined a channel, and whether its first router has heard of that.
    pub(crate) fn standing(&self, member: Member, channel: u16) -> Standing {
        let is_heard = |(parent, branch)| self.asks(parent, branch, channel);
        match self.asks(member.node, member.branch, channel) {
            false => Standing::Outside,
            true if self.nodes[member.node.index()].above.is_none_or(is_heard) => Standing::Member,
            true => Standing::Joining,
        }
    }

    /// Makes an agent a member of a channel that it has joined before the tree was there.
    pub(crate) fn settle(&mut self, member: Member, channel: u16) {
        self.ask(member.node, member.branch, channel, true);
        let mut at = member.node;
        while let Some((parent, branch)) = self.nodes[at.index()].above {
            self.ask(parent, branch, channel, true);
            at = parent;
        }
    }

    /// The first branch of a node.
    #[inline]
    pub(crate) fn first(&self, node: NodeId) -> Option<BranchId> {
        self.firsts[node.index()]
    }

    /// The next branch of the same node.
    #[inline]
    pub(crate) fn next(&self, branch: BranchId) -> Option<BranchId> {
        self.branches[branch.index()].next
    }

    /// Where a branch leads, if packets of the channel go there.
    #[inline]
    pub(crate) fn wanted(&self, branch: BranchId, channel: u16) -> Option<LeadsTo> {
        let leads_to = self.branches[branch.index()].leads_to;
        let passes =
            self.wants.contains(branch, channel) || self.membership.stragglers && matches!(leads_to, LeadsTo::Agent(_));
        passes.then_some(leads_to)
    }

    /// The branches of a node, in the order in which they grew.
    fn branches(&self, node: NodeId) -> impl Iterator<Item = BranchId> {
        std::iter::successors(self.first(node), |branch| self.next(*branch))
    }

    /// A member joins or leaves a channel at `now`. What takes time comes out through `later`, to be brought to
    /// [`Tree::arrive`] when it is due.
    pub(crate) fn change(
        &mut self,
        now: Time,
        member: Member,
        channel: u16,
        join: bool,
        later: &mut impl FnMut(Time, Pending),
    ) {
        if self.ask(member.node, member.branch, channel, join) {
            let own = self.nodes[member.node.index()].leave_latency;
            let leave_latency = own.unwrap_or(self.membership.leave_latency);
            let latency = if join { self.membership.join_latency } else { leave_latency };
            self.pass_on(now, latency, Pending { node: member.node, channel }, later);
        }
    }

    /// A join or leave has reached the node above.
    pub(crate) fn arrive(&mut self, now: Time, pending: Pending, later: &mut impl FnMut(Time, Pending)) {
        let Some((parent, branch)) = self.nodes[pending.node.index()].above else { return };
        let wanted = self.is_asked(pending.node, pending.channel);
        if self.ask(parent, branch, pending.channel, wanted) {
            self.pass_on(now, self.membership.hop_latency, Pending { node: parent, ..pending }, later);
        }
    }

    fn pass_on(&mut self, now: Time, latency: Duration, pending: Pending, later: &mut impl FnMut(Time, Pending)) {
        if self.nodes[pending.node.index()].above.is_none() {
            return;
        }
        match latency.is_zero() {
            true => self.arrive(now, pending, later),
            false => later(now + latency, pending),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root, a router, and two hosts behind it; the sender's tree and both members.
    fn tree(membership: Membership) -> (Tree, [NodeId; 4], [Member; 2]) {
        let mut graph = Graph::default();
        let nodes = [(); 4].map(|()| graph.add_node());
        graph.add_link(nodes[0], nodes[1]);
        graph.add_link(nodes[1], nodes[2]);
        graph.add_link(nodes[1], nodes[3]);
        let mut tree = Tree::new(&graph, nodes[0], 65, membership);
        let members = [2, 3].map(|host| tree.attach(&graph, nodes[host], AgentId::new(host)).expect("it is reached"));
        (tree, nodes, members)
    }

    #[test]
    fn a_branch_takes_12_bytes() {
        assert_eq!(size_of::<Branch>(), 12);
    }

    fn wanting(tree: &Tree, node: NodeId, channel: u16) -> usize {
        tree.branches(node).filter(|branch| tree.wanted(*branch, channel).is_some()).count()
    }

    #[test]
    fn a_join_without_latency_reaches_the_root_at_once_and_a_leave_prunes_what_nobody_wants() {
        let (mut tree, nodes, members) = tree(Membership::default());
        let mut later = |_, _| panic!("nothing takes time");
        tree.change(Time::ZERO, members[0], 3, true, &mut later);
        tree.change(Time::ZERO, members[1], 3, true, &mut later);
        assert_eq!((wanting(&tree, nodes[0], 3), wanting(&tree, nodes[1], 3)), (1, 2));
        assert_eq!(wanting(&tree, nodes[0], 2), 0, "another channel");
        tree.change(Time::ZERO, members[0], 3, false, &mut later);
        assert_eq!((wanting(&tree, nodes[0], 3), wanting(&tree, nodes[1], 3)), (1, 1));
        tree.change(Time::ZERO, members[1], 3, false, &mut later);
        assert_eq!((wanting(&tree, nodes[0], 3), wanting(&tree, nodes[1], 3)), (0, 0));
    }

    #[test]
    fn latencies_add_up_hop_by_hop_and_a_join_before_the_leave_took_effect_undoes_it() {
        let millis = Duration::from_millis;
        let latencies = Membership {
            join_latency: millis(1),
            leave_latency: millis(2000),
            hop_latency: millis(10),
            stragglers: false,
        };
        let (mut tree, nodes, members) = tree(latencies);
        let mut due = Vec::new();
        tree.change(Time::ZERO, members[0], 0, true, &mut |at, pending| due.push((at, pending)));
        assert_eq!(wanting(&tree, nodes[1], 0), 0);
        let (at, pending) = due.pop().expect("the router hears of it later");
        assert_eq!(at, Time::from_millis(1));
        tree.arrive(at, pending, &mut |at, pending| due.push((at, pending)));
        assert_eq!((wanting(&tree, nodes[0], 0), wanting(&tree, nodes[1], 0)), (0, 1));
        let (at, pending) = due.pop().expect("and the root later still");
        assert_eq!(at, Time::from_millis(11));
        tree.arrive(at, pending, &mut |at, pending| due.push((at, pending)));
        assert_eq!((wanting(&tree, nodes[0], 0), due.len()), (1, 0));

        tree.change(Time::from_secs(1), members[0], 0, false, &mut |at, pending| due.push((at, pending)));
        tree.change(Time::from_secs(2), members[0], 0, true, &mut |at, pending| due.push((at, pending)));
        for (at, pending) in due.drain(..) {
            tree.arrive(at, pending, &mut |_, _| panic!("nothing changes above"));
        }
        assert_eq!((wanting(&tree, nodes[0], 0), wanting(&tree, nodes[1], 0)), (1, 1));
    }

    #[test]
    fn a_router_s_own_leave_latency_goes_before_the_session_s() {
        let mut graph = Graph::default();
        let nodes = [(); 3].map(|()| graph.add_node());
        graph.add_link(nodes[0], nodes[1]);
        graph.add_link(nodes[1], nodes[2]);
        graph.set_leave_latency(nodes[1], Duration::from_secs(3));
        let membership = Membership { leave_latency: Duration::from_secs(1), ..Membership::default() };
        let mut tree = Tree::new(&graph, nodes[0], 1, membership);
        let member = tree.attach(&graph, nodes[2], AgentId::new(0)).expect("it is reached");
        tree.change(Time::ZERO, member, 0, true, &mut |_, _| panic!("a join takes no time"));
        let mut due = Vec::new();
        tree.change(Time::ZERO, member, 0, false, &mut |at, _| due.push(at));
        assert_eq!(due, [Time::from_secs(3)]);
    }

    /// A root, a router, a switch that floods, and three hosts behind it, of whom the last one has no member.
    #[test]
    fn a_switch_that_floods_sends_to_every_port_what_anybody_behind_it_wants() {
        let mut graph = Graph::default();
        let nodes = [(); 6].map(|()| graph.add_node());
        for (from, to) in [(0, 1), (1, 2), (2, 3), (2, 4), (2, 5)] {
            graph.add_link(nodes[from], nodes[to]);
            graph.add_link(nodes[to], nodes[from]);
        }
        graph.flood(nodes[2]);
        let mut tree = Tree::new(&graph, nodes[0], 65, Membership::default());
        let members = [3, 4].map(|host| tree.attach(&graph, nodes[host], AgentId::new(host)).expect("it is reached"));
        let mut later = |_, _| panic!("nothing takes time");
        assert_eq!(wanting(&tree, nodes[2], 64), 0);
        tree.change(Time::ZERO, members[0], 64, true, &mut later);
        assert_eq!((wanting(&tree, nodes[1], 64), wanting(&tree, nodes[2], 64)), (1, 3), "back it does not send");
        assert_eq!(
            (wanting(&tree, nodes[3], 64), wanting(&tree, nodes[4], 64)),
            (1, 0),
            "a host looks before it takes"
        );
        tree.change(Time::ZERO, members[1], 64, true, &mut later);
        tree.change(Time::ZERO, members[0], 64, false, &mut later);
        assert_eq!((wanting(&tree, nodes[2], 64), wanting(&tree, nodes[3], 64)), (3, 0));
        tree.change(Time::ZERO, members[1], 64, false, &mut later);
        assert_eq!((wanting(&tree, nodes[1], 64), wanting(&tree, nodes[2], 64)), (0, 0));
    }

    #[test]
    fn what_is_on_its_way_when_a_member_leaves_reaches_it_only_if_stragglers_are_to() {
        for stragglers in [false, true] {
            let (mut tree, nodes, members) = tree(Membership { stragglers, ..Membership::default() });
            let mut later = |_, _| panic!("nothing takes time");
            tree.change(Time::ZERO, members[0], 0, true, &mut later);
            tree.change(Time::ZERO, members[0], 0, false, &mut later);
            assert_eq!(wanting(&tree, nodes[2], 0), usize::from(stragglers), "from the host to the member");
            assert_eq!((wanting(&tree, nodes[0], 0), wanting(&tree, nodes[1], 0)), (0, 0), "on the links");
        }
    }
}
