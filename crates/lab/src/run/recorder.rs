//! Turns what the simulator tells into a [`Record`]: it knows which session, client or flow an event belongs to.

use std::collections::BTreeMap;

use weir_core::observation::PaceCause;
use weir_core::{Header, Observation};
use weir_link::DropReason;
use weir_sim::{AgentId, Body, FlowId, LinkId, Monitor, Network, Packet};
use weir_units::{Ecn, Time};

use super::in_order::InOrder;
use super::recorded::{Client, Ends, Flow, ManagedClient, Sender, Session, Sink, Tree};
use super::watched::WatchedLink;
use crate::metric::{ClientRecord, Fate, FlowRecord, Packets, Passage, Record, SessionRecord, TreeRecord, Windows};

/// Watches a run.
#[derive(Debug)]
pub(super) struct Recorder {
    record: Record,
    /// The links that are watched.
    links: Vec<WatchedLink>,
    /// By link: its place in `links`, if it is watched.
    watched: Vec<Option<usize>>,
    /// Packets of what is recorded, by slot.
    packets: Vec<Packets>,
    /// By flow: the slot of its packets, if anyone wants them.
    slots: Vec<Option<usize>>,
    clients: Vec<Client>,
    /// By agent: its place in `clients`, if it is one.
    client_of: Vec<Option<usize>>,
    /// By agent: the clients that it is under a manager.
    managed: BTreeMap<AgentId, Vec<ManagedClient>>,
    /// Which slots and clients make up which session or flow.
    sessions: Vec<Session>,
    flows: Vec<Flow>,
    /// By agent: the flow whose source it is.
    flow_of: Vec<Option<usize>>,
    trees: Vec<Tree>,
    /// By flow: the tree whose packets it carries.
    tree_of: Vec<Option<usize>>,
    /// By agent: what of TCP it receives.
    sinks: Vec<Option<Sink>>,
    /// By agent: its tree, and its place among the members.
    member_of: Vec<Option<(usize, usize)>>,
    /// By agent: the tree whose sender it is.
    root_of: Vec<Option<usize>>,
}

impl Recorder {
    /// Records what happens at these links, the first of which is the bottleneck.
    pub(super) fn new(links: Vec<WatchedLink>, names: BTreeMap<[String; 2], usize>) -> Recorder {
        let mut watched = Vec::new();
        for (place, link) in links.iter().enumerate() {
            set(&mut watched, link.id.index(), place);
        }
        Recorder {
            record: Record { link_names: names, ..Record::default() },
            links,
            watched,
            packets: Vec::new(),
            slots: Vec::new(),
            clients: Vec::new(),
            client_of: Vec::new(),
            managed: BTreeMap::new(),
            sessions: Vec::new(),
            flows: Vec::new(),
            flow_of: Vec::new(),
            trees: Vec::new(),
            tree_of: Vec::new(),
            sinks: Vec::new(),
            member_of: Vec::new(),
            root_of: Vec::new(),
        }
    }

    /// Records a session, whose clients are to follow. Of each packet, `header` bytes are not payload. Gives its number.
    pub(super) fn add_session(&mut self, name: &str, flow: FlowId, startup: std::time::Duration, header: u64) -> usize {
        let slot = self.slot(flow);
        let record = SessionRecord { startup, ..SessionRecord::default() };
        self.sessions.push(Session { name: name.to_owned(), record, slot, header, clients: Vec::new() });
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
        let header = self.sessions[session].header;
        self.clients.push(Client { record: ClientRecord { joined, ..ClientRecord::default() }, header });
        self.sessions[session].clients.push(self.clients.len() - 1);
        self.clients.len() - 1
    }

    /// One of the clients that an agent manages.
    fn managed(&mut self, agent: AgentId, is_it: impl Fn(&ManagedClient) -> bool) -> Option<&mut Client> {
        let managed = self.managed.get(&agent)?.iter().rfind(|managed| is_it(managed))?;
        self.clients.get_mut(managed.client)
    }

    /// Records a unicast flow.
    pub(super) fn add_flow(&mut self, name: &str, ends: &Ends) {
        let slot = self.slot(ends.flow);
        let number = self.flows.len();
        if let Sender::Source(agent) = ends.sender {
            set(&mut self.flow_of, agent.index(), number);
        }
        let sink = Sink { flow: number, header: ends.header, order: InOrder::default() };
        let place = ends.receiver.index();
        self.sinks.resize_with(self.sinks.len().max(place + 1), || None);
        self.sinks[place] = Some(sink);
        let record = FlowRecord { started: ends.started, size: ends.size, ..FlowRecord::default() };
        self.flows.push(Flow { name: name.to_owned(), slot, sender: ends.sender, record });
    }

    /// Records a stream over a tree, whose members are to follow. Of a full packet, so much is payload.
    pub(super) fn add_tree(&mut self, name: &str, flow: FlowId, sender: AgentId, payload_share: f64, header: u64) {
        let slot = self.slot(flow);
        set(&mut self.root_of, sender.index(), self.trees.len());
        set(&mut self.tree_of, flow.index(), self.trees.len());
        let record = TreeRecord { payload_share, ..TreeRecord::default() };
        self.trees.push(Tree { name: name.to_owned(), slot, header, record });
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
                flow.record.windows.push((now, tcp.cwnd()));
                flow.record.round_trips.extend((!tcp.srtt().is_zero()).then(|| (now, tcp.srtt())));
            }
        }
    }

    fn slot(&mut self, flow: FlowId) -> usize {
        let slot = self.packets.len();
        let passages = vec![Vec::new(); self.links.len()];
        self.packets.push(Packets { number: slot as u32, passages, sent: false });
        set(&mut self.slots, flow.index(), slot);
        slot
    }

    /// The record of the run, which ended at `end`.
    pub(super) fn finish(mut self, end: Time) -> Record {
        // A queue may tell of a drop after it happened.
        let passages = self.packets.iter_mut().flat_map(|packets| &mut packets.passages);
        passages.for_each(|passages| passages.sort_by_key(|passage| passage.at));
        let mut sessions: BTreeMap<String, Vec<SessionRecord>> = BTreeMap::new();
        for Session { name, mut record, slot, clients, .. } in self.sessions {
            record.packets = std::mem::take(&mut self.packets[slot]);
            record.clients =
                clients.into_iter().map(|client| std::mem::take(&mut self.clients[client].record)).collect();
            sessions.entry(name).or_default().push(record);
        }
        let mut flows: BTreeMap<String, Vec<FlowRecord>> = BTreeMap::new();
        for Flow { name, slot, record, .. } in self.flows {
            let packets = std::mem::take(&mut self.packets[slot]);
            flows.entry(name).or_default().push(FlowRecord { packets, ..record });
        }
        let mut trees: BTreeMap<String, Vec<TreeRecord>> = BTreeMap::new();
        for Tree { name, slot, record, .. } in self.trees {
            let packets = std::mem::take(&mut self.packets[slot]);
            trees.entry(name).or_default().push(TreeRecord { packets, ..record });
        }
        let links = self.links.into_iter().map(|link| link.finish(end)).collect();
        Record { end, sessions, flows, trees, links, ..self.record }
    }

    fn source(&mut self, agent: AgentId) -> Option<&mut FlowRecord> {
        let flow = self.flow_of.get(agent.index()).copied().flatten()?;
        self.flows.get_mut(flow).map(|flow| &mut flow.record)
    }

    fn client(&mut self, agent: AgentId) -> Option<&mut Client> {
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

    /// A packet at a link: of those that are recorded it is noted, and whose it is.
    fn pass(&mut self, at: Time, link: Option<usize>, packet: &Packet, fate: Fate) -> Option<usize> {
        let slot = self.slots.get(packet.flow.index()).copied().flatten()?;
        let packets = &mut self.packets[slot];
        packets.sent = true;
        if let Some(link) = link {
            let bytes = u32::try_from(packet.size.count()).unwrap_or(u32::MAX);
            packets.passages[link].push(Passage { at, bytes, fate, marked: packet.ecn == Ecn::Ce });
        }
        Some(slot)
    }

    fn watched(&self, link: LinkId) -> Option<usize> {
        self.watched.get(link.index()).copied().flatten()
    }
}

impl Monitor for Recorder {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        match observation {
            Observation::Level { level, .. } => {
                self.client(agent).into_iter().for_each(|client| client.record.levels.push((now, *level)));
            }
            Observation::RoundTrip(round_trip) => {
                self.source(agent).into_iter().for_each(|flow| flow.round_trips.push((now, *round_trip)));
            }
            Observation::Pace(pace) if is_back_off(pace.cause) => {
                self.source(agent).into_iter().for_each(|flow| flow.back_offs.push(now));
            }
            Observation::Layers(report) => {
                self.source(agent).into_iter().for_each(|flow| flow.layers.push((now, *report)));
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
            client.record.levels.push((now, *level));
        }
    }

    fn member(&mut self, now: Time, agent: AgentId, channel: u16, _joins: bool) {
        let client = match self.client_of.get(agent.index()).copied().flatten() {
            Some(client) => self.clients.get_mut(client),
            None => self.managed(agent, |managed| managed.first_channel <= channel),
        };
        client.into_iter().for_each(|client| client.record.memberships.push(now));
    }

    fn arrive(&mut self, now: Time, agent: AgentId, packet: &Packet) {
        let client = match self.client_of.get(agent.index()).copied().flatten() {
            Some(client) => self.clients.get_mut(client),
            None if self.managed.is_empty() => None,
            None => self.managed(agent, |managed| managed.flow == packet.flow),
        };
        if let Some(client) = client {
            client.record.first_packet.get_or_insert(now);
            client.record.receive(now, packet.size.count());
            if let Body::Endpoint(Header::Layered(_)) = &packet.body {
                client.record.delivered.add(now, packet.size.count().saturating_sub(client.header));
            }
        }
        if let Some(Some(sink)) = self.sinks.get_mut(agent.index()) {
            let payload = packet.size.count().saturating_sub(sink.header);
            let packets = sink.order.receive(&packet.body);
            if packets > 0 {
                self.flows[sink.flow].record.delivered.add(now, packets * payload);
            }
        }
        self.acknowledged(packet).into_iter().for_each(|tree| tree.acks_arrived += 1);
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, _number: Option<u64>) {
        let Some((tree, member)) = self.member_of.get(agent.index()).copied().flatten() else { return };
        let Tree { header, record, .. } = &mut self.trees[tree];
        record.members[member].receive(now, bytes);
        record.members[member].delivered.add(now, bytes.saturating_sub(*header));
    }

    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        let watched = self.watched(link);
        let slot = self.pass(now, watched, packet, Fate::Came);
        if let Some(link) = watched {
            self.links[link].came(now, packet, slot);
        }
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        self.acknowledged(packet).into_iter().for_each(|tree| tree.acks_dropped += 1);
        if let Some(link) = self.watched(link) {
            self.pass(at, Some(link), packet, Fate::Dropped);
            self.links[link].dropped(at, packet, reason);
        }
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if let Some(link) = self.watched(link) {
            self.pass(now, Some(link), packet, Fate::Left);
            self.links[link].left(now, packet);
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
