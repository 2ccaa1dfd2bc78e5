//! Turns what the simulator tells into a [`Record`]: it knows which session, client or flow an event belongs to.

use std::collections::BTreeMap;

use weir_core::observation::PaceCause;
use weir_core::{Header, Observation};
use weir_link::DropReason;
use weir_sim::{AgentId, Body, FlowId, LinkId, Monitor, Network, Packet};
use weir_units::{Bytes, Time};

use crate::metric::{ClientRecord, Fate, FlowRecord, Passage, Record, SessionRecord, TreeRecord, Windows};

/// Watches a run.
#[derive(Debug)]
pub(super) struct Recorder {
    bottleneck: LinkId,
    record: Record,
    /// Passages of what is recorded, by slot.
    passages: Vec<Vec<Passage>>,
    /// By flow: the slot of its passages, if anyone wants them.
    slots: Vec<Option<usize>>,
    clients: Vec<ClientRecord>,
    /// By agent: its place in `clients`, if it is one.
    client_of: Vec<Option<usize>>,
    /// By agent: the clients that it is under a manager.
    managed: BTreeMap<AgentId, Vec<ManagedClient>>,
    /// Which slots and clients make up which session or flow.
    sessions: Vec<(String, SessionRecord, usize, Vec<usize>)>,
    flows: Vec<Flow>,
    /// By agent: the flow whose source it is.
    flow_of: Vec<Option<usize>>,
    trees: Vec<Tree>,
    /// By flow: the tree whose packets it carries.
    tree_of: Vec<Option<usize>>,
    /// By agent: its tree, and its place among the members.
    member_of: Vec<Option<(usize, usize)>>,
    /// By agent: the tree whose sender it is.
    root_of: Vec<Option<usize>>,
}

/// A client of a session that a manager has.
#[derive(Debug)]
struct ManagedClient {
    session: u16,
    flow: FlowId,
    first_channel: u16,
    client: usize,
}

/// A stream over a tree.
#[derive(Debug)]
struct Tree {
    name: String,
    slot: usize,
    record: TreeRecord,
}

/// A unicast flow that is recorded.
#[derive(Debug)]
struct Flow {
    name: String,
    slot: usize,
    sender: Sender,
    record: FlowRecord,
}

/// Who sends a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The sending end of a TCP connection.
    Tcp(AgentId),
    /// The source of a paced stream.
    Source(AgentId),
    /// Somebody of whom there is nothing to tell.
    Datagrams,
}

impl Recorder {
    pub(super) fn new(bottleneck: LinkId) -> Recorder {
        Recorder {
            bottleneck,
            record: Record::default(),
            passages: Vec::new(),
            slots: Vec::new(),
            clients: Vec::new(),
            client_of: Vec::new(),
            managed: BTreeMap::new(),
            sessions: Vec::new(),
            flows: Vec::new(),
            flow_of: Vec::new(),
            trees: Vec::new(),
            tree_of: Vec::new(),
            member_of: Vec::new(),
            root_of: Vec::new(),
        }
    }

    /// What the record begins with.
    pub(super) fn record_mut(&mut self) -> &mut Record {
        &mut self.record
    }

    /// Records a session, whose clients are to follow. Gives its number.
    pub(super) fn add_session(&mut self, name: &str, flow: FlowId, startup: std::time::Duration) -> usize {
        let slot = self.slot(flow);
        let session = SessionRecord { startup, ..SessionRecord::default() };
        self.sessions.push((name.to_owned(), session, slot, Vec::new()));
        self.sessions.len() - 1
    }

    /// Records a client of a session.
    pub(super) fn add_client(&mut self, session: usize, agent: AgentId, joined: Time) {
        let client = self.new_client(session, joined);
        set(&mut self.client_of, agent.index(), client);
    }

    /// Records a client of a session, which is one of those that an agent manages: the one of this number, whose packets are of
    /// this flow, and whose channels have the agent's numbers from this one on.
    pub(super) fn add_managed(
        &mut self,
        session: usize,
        (agent, number): (AgentId, u16),
        flow: FlowId,
        first_channel: u16,
        joined: Time,
    ) {
        let client = self.new_client(session, joined);
        let managed = ManagedClient { session: number, flow, first_channel, client };
        self.managed.entry(agent).or_default().push(managed);
    }

    fn new_client(&mut self, session: usize, joined: Time) -> usize {
        self.clients.push(ClientRecord { joined, ..ClientRecord::default() });
        self.sessions[session].3.push(self.clients.len() - 1);
        self.clients.len() - 1
    }

    /// One of the clients that an agent manages.
    fn managed(&mut self, agent: AgentId, is_it: impl Fn(&ManagedClient) -> bool) -> Option<&mut ClientRecord> {
        let managed = self.managed.get(&agent)?.iter().rfind(|managed| is_it(managed))?;
        self.clients.get_mut(managed.client)
    }

    /// Records a unicast flow.
    pub(super) fn add_flow(&mut self, name: &str, flow: FlowId, sender: Sender) {
        let slot = self.slot(flow);
        if let Sender::Source(agent) = sender {
            set(&mut self.flow_of, agent.index(), self.flows.len());
        }
        self.flows.push(Flow { name: name.to_owned(), slot, sender, record: FlowRecord::default() });
    }

    /// Records a stream over a tree, whose members are to follow. Of a full packet, so much is payload.
    pub(super) fn add_tree(&mut self, name: &str, flow: FlowId, sender: AgentId, payload_share: f64) {
        let slot = self.slot(flow);
        set(&mut self.root_of, sender.index(), self.trees.len());
        set(&mut self.tree_of, flow.index(), self.trees.len());
        let record = TreeRecord { payload_share, ..TreeRecord::default() };
        self.trees.push(Tree { name: name.to_owned(), slot, record });
    }

    /// Records a member of the tree that was added last.
    pub(super) fn add_member(&mut self, agent: AgentId, joined: Time) {
        let last = self.trees.len() - 1;
        let TreeRecord { members, agents, .. } = &mut self.trees[last].record;
        set(&mut self.member_of, agent.index(), (last, members.len()));
        members.push(ClientRecord { joined, ..ClientRecord::default() });
        agents.push(Vec::new());
    }

    /// Takes down what only shows from time to time: how much TCP senders have on the way, how often they timed out.
    pub(super) fn sample(&mut self, network: &Network) {
        for flow in &mut self.flows {
            if let Sender::Tcp(agent) = flow.sender {
                let (now, tcp) = (network.now(), network.tcp(agent));
                flow.record.outstanding.push((now, tcp.outstanding()));
                flow.record.time_outs.push((now, tcp.counters().timeouts));
            }
        }
    }

    fn slot(&mut self, flow: FlowId) -> usize {
        self.passages.push(Vec::new());
        set(&mut self.slots, flow.index(), self.passages.len() - 1);
        self.passages.len() - 1
    }

    /// The record of the run, which ended at `end`.
    pub(super) fn finish(mut self, end: Time) -> Record {
        // A queue may tell of a drop after it happened.
        self.passages.iter_mut().for_each(|passages| passages.sort_by_key(|passage| passage.at));
        let mut sessions: BTreeMap<String, Vec<SessionRecord>> = BTreeMap::new();
        for (name, mut session, slot, clients) in self.sessions {
            session.passages = std::mem::take(&mut self.passages[slot]);
            session.clients = clients.into_iter().map(|client| std::mem::take(&mut self.clients[client])).collect();
            sessions.entry(name).or_default().push(session);
        }
        let mut flows: BTreeMap<String, Vec<FlowRecord>> = BTreeMap::new();
        for Flow { name, slot, record, .. } in self.flows {
            let passages = std::mem::take(&mut self.passages[slot]);
            flows.entry(name).or_default().push(FlowRecord { passages, ..record });
        }
        let mut trees: BTreeMap<String, Vec<TreeRecord>> = BTreeMap::new();
        for Tree { name, slot, record } in self.trees {
            let passages = std::mem::take(&mut self.passages[slot]);
            trees.entry(name).or_default().push(TreeRecord { passages, ..record });
        }
        Record { end, sessions, flows, trees, ..self.record }
    }

    fn source(&mut self, agent: AgentId) -> Option<&mut FlowRecord> {
        let flow = self.flow_of.get(agent.index()).copied().flatten()?;
        self.flows.get_mut(flow).map(|flow| &mut flow.record)
    }

    fn client(&mut self, agent: AgentId) -> Option<&mut ClientRecord> {
        let client = self.client_of.get(agent.index()).copied().flatten()?;
        self.clients.get_mut(client)
    }

    /// Where is written down what a node of a tree says of its windows.
    fn windows(&mut self, agent: AgentId) -> Option<&mut Vec<Windows>> {
        if let Some(tree) = self.root_of.get(agent.index()).copied().flatten() {
            return Some(&mut self.trees[tree].record.sender);
        }
        let (tree, member) = self.member_of.get(agent.index()).copied().flatten()?;
        Some(&mut self.trees[tree].record.agents[member])
    }

    /// The tree of which the packet is an acknowledgement.
    fn acknowledged(&mut self, packet: &Packet) -> Option<&mut TreeRecord> {
        let tree = self.tree_of.get(packet.flow.index()).copied().flatten()?;
        let is_ack = matches!(packet.body, Body::Endpoint(Header::TreeAck(_)));
        is_ack.then(|| &mut self.trees[tree].record)
    }

    fn pass(&mut self, at: Time, packet: &Packet, fate: Fate) {
        if let Some(slot) = self.slots.get(packet.flow.index()).copied().flatten() {
            let bytes = u32::try_from(packet.size.count()).unwrap_or(u32::MAX);
            self.passages[slot].push(Passage { at, bytes, fate });
        }
    }
}

impl Monitor for Recorder {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        match observation {
            Observation::Level { level, .. } => {
                self.client(agent).into_iter().for_each(|client| client.levels.push((now, *level)));
            }
            Observation::RoundTrip(round_trip) => {
                self.source(agent).into_iter().for_each(|flow| flow.round_trips.push((now, *round_trip)));
            }
            Observation::Pace(pace) if is_back_off(pace.cause) => {
                self.source(agent).into_iter().for_each(|flow| flow.back_offs.push(now));
            }
            Observation::Window(report) => {
                let (own, in_slow_start) = (report.window_packets, report.in_slow_start);
                let windows = Windows { at: now, own, in_slow_start, least: report.least_packets };
                self.windows(agent).into_iter().for_each(|all| all.push(windows));
            }
            _ => {}
        }
    }

    fn observe_session(&mut self, now: Time, agent: AgentId, session: u16, observation: &Observation) {
        let Observation::Level { level, .. } = observation else { return };
        if let Some(client) = self.managed(agent, |managed| managed.session == session) {
            client.levels.push((now, *level));
        }
    }

    fn member(&mut self, now: Time, agent: AgentId, channel: u16, _joins: bool) {
        let client = match self.client_of.get(agent.index()).copied().flatten() {
            Some(client) => self.clients.get_mut(client),
            None => self.managed(agent, |managed| managed.first_channel <= channel),
        };
        client.into_iter().for_each(|client| client.memberships.push(now));
    }

    fn arrive(&mut self, now: Time, agent: AgentId, packet: &Packet) {
        let client = match self.client_of.get(agent.index()).copied().flatten() {
            Some(client) => self.clients.get_mut(client),
            None if self.managed.is_empty() => None,
            None => self.managed(agent, |managed| managed.flow == packet.flow),
        };
        if let Some(client) = client {
            client.first_packet.get_or_insert(now);
            client.receive(now, packet.size.count());
        }
        self.acknowledged(packet).into_iter().for_each(|tree| tree.acks_arrived += 1);
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, _number: Option<u64>) {
        let Some((tree, member)) = self.member_of.get(agent.index()).copied().flatten() else { return };
        self.trees[tree].record.members[member].receive(now, bytes);
    }

    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if link == self.bottleneck {
            self.record.bottleneck.offered += 1;
            self.pass(now, packet, Fate::Came);
        }
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, _: DropReason) {
        self.acknowledged(packet).into_iter().for_each(|tree| tree.acks_dropped += 1);
        if link == self.bottleneck {
            self.record.bottleneck.dropped += 1;
            self.pass(at, packet, Fate::Dropped);
        }
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if link == self.bottleneck {
            let sent = self.record.bottleneck.sent;
            self.record.bottleneck.sent = sent + Bytes::new(packet.size.count());
            self.pass(now, packet, Fate::Left);
        }
    }
}

fn is_back_off(cause: PaceCause) -> bool {
    matches!(cause, PaceCause::Loss | PaceCause::Timeout | PaceCause::Mark)
}

fn set<T: Clone>(list: &mut Vec<Option<T>>, index: usize, value: T) {
    if list.len() <= index {
        list.resize(index + 1, None);
    }
    list[index] = Some(value);
}
