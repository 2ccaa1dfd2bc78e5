//! One party, an account of what it did, and the rules for all parties of all schemes.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_core::{
    Action, ChannelId, Destination, Endpoint, Event, Header, Observation, Origin, Packet, Payload, PeerId,
};
use weir_units::{Bytes, Time};

use crate::setup::PACKET_SIZE;

/// Which part it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
    Source,
    Sink,
    /// The sender of a tree.
    Root,
    /// A member of a tree without an application.
    Agent,
    /// A receiver of a tree.
    Leaf,
}

/// A party, and what it has done.
#[derive(Debug)]
pub(crate) struct Party {
    pub(crate) role: Role,
    endpoint: Box<dyn Endpoint>,
    /// Channels that the session has.
    channels: u16,
    /// The channels that it is a member of.
    pub(crate) members: BTreeSet<u16>,
    /// Its level, as it last said.
    pub(crate) level: usize,
    /// The highest level that it may have.
    most: usize,
    /// How far its clock is ahead.
    ahead: Duration,
    /// Who it may write to: its first peer, if it knows one from the start, and those that are up.
    pub(crate) peers: BTreeSet<u32>,
    /// Peers that were up and have gone down.
    pub(crate) gone: BTreeSet<u32>,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    /// Payloads that it has taken from its application.
    pub(crate) taken: u64,
    /// Payloads that it has taken and kept.
    kept: BTreeSet<u64>,
    /// Payloads with lower numbers are released.
    released: u64,
    /// For how many payloads its application has room, if it has said so.
    room: Option<u64>,
    pub(crate) is_complete: bool,
    finished: bool,
    /// What the last event led to.
    pub(crate) last: Turn,
    contacts: u64,
}

/// What an event led to.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) sent: Vec<(Destination, Packet)>,
    pub(crate) delivered: u64,
}

impl Party {
    /// A party of a session with this number of channels.
    pub(crate) fn new(role: Role, endpoint: Box<dyn Endpoint>, channels: u16, ahead: Duration) -> Party {
        Party {
            role,
            endpoint,
            channels,
            members: BTreeSet::new(),
            level: 0,
            most: usize::MAX,
            ahead,
            // Nobody has told the sender of a session who its receivers are.
            peers: match role {
                Role::Sender | Role::Root => BTreeSet::new(),
                _ => BTreeSet::from([0]),
            },
            gone: BTreeSet::new(),
            offered: 0,
            sent: 0,
            delivered: 0,
            taken: 0,
            kept: BTreeSet::new(),
            released: 0,
            room: None,
            is_complete: false,
            finished: false,
            last: Turn::default(),
            contacts: 0,
        }
    }

    /// Something happens to it; it does what it wants, by the rules.
    pub(crate) fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            // To a tree newcomers are announced.
            Event::Packet { from: Origin::Peer(PeerId(peer)), .. } if !self.is_in_tree() => _ = self.peers.insert(peer),
            Event::PeerUp(PeerId(peer)) | Event::Reached { peer: PeerId(peer), .. } => _ = self.peers.insert(peer),
            Event::PeerDown(PeerId(peer)) if self.is_in_tree() => {
                self.peers.remove(&peer);
                self.gone.insert(peer);
            }
            Event::Room { payloads } => self.room = Some(payloads),
            Event::Offer { packets } => self.offered = self.offered.saturating_add(packets),
            Event::Allot(allotment) => self.most = allotment.level.max(1),
            Event::Finish => self.finished = true,
            _ => {}
        }
        self.last = Turn::default();
        let now = now + self.ahead;
        self.endpoint.handle(now, event);
        for _ in 0..MOST_ACTIONS {
            let Some(action) = self.endpoint.poll(now) else {
                assert!(!self.finished || self.members.is_empty(), "the end leaves everything: {:?}", self.members);
                assert!(self.level <= self.most, "level {} of {} allotted", self.level, self.most);
                return;
            };
            self.carry_out(event, &action);
        }
        panic!("after {event:?} it never stops wanting things: {self:?}");
    }

    /// Whether such a thing can happen to a party of a tree: it starts and ends once, and hears from those who are there.
    pub(crate) fn may_come(&self, event: &Event<'_>) -> bool {
        match event {
            Event::Packet { from: Origin::Peer(PeerId(peer)), .. } => self.peers.contains(peer),
            Event::PeerUp(PeerId(peer)) | Event::Reached { peer: PeerId(peer), .. } => !self.gone.contains(peer),
            Event::PeerDown(PeerId(peer)) => self.peers.contains(peer),
            Event::Start | Event::Finish => false,
            _ => true,
        }
    }

    /// How often it wanted to contact another party.
    pub(crate) fn contacts(&self) -> u64 {
        self.contacts
    }

    /// Calls it until its deadline is ahead, as a driver does.
    pub(crate) fn catch_up(&mut self, now: Time, mut after_each: impl FnMut(&Party)) {
        for _ in 0..MOST_CALLS {
            if self.deadline().is_none_or(|at| at > now) {
                return;
            }
            self.handle(now, Event::Deadline);
            after_each(self);
        }
        panic!("at {now} its deadline stays in the past: {self:?}");
    }

    /// The next deadline.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.endpoint.deadline().map(|at| Time::ZERO + at.since(Time::ZERO + self.ahead))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether its payloads have an order, and its peers come and go.
    fn is_in_tree(&self) -> bool {
        matches!(self.role, Role::Root | Role::Agent | Role::Leaf)
    }

    fn carry_out(&mut self, event: Event<'_>, action: &Action) {
        match *action {
            Action::Send { to, packet, payload, .. } => {
                self.check_sent(event, to, &packet, payload);
                match payload {
                    Payload::Kept(number) => assert!(self.kept.contains(&number), "payload {number} is not kept"),
                    Payload::None | Payload::Fresh => {}
                }
                self.sent += 1;
                self.last.sent.push((to, packet));
            }
            Action::Contact { .. } => {
                assert!(self.is_in_tree(), "{:?} contacts others", self.role);
                self.contacts += 1;
            }
            Action::Part { peer: PeerId(peer) } => {
                assert!(self.peers.remove(&peer), "it parts from {peer}, which is not there");
                self.gone.insert(peer);
            }
            Action::Join(ChannelId(channel)) => {
                let joins = matches!(self.role, Role::Receiver | Role::Agent | Role::Leaf);
                assert!(joins && channel < self.channels, "{:?} joins {channel}", self.role);
                assert!(self.members.insert(channel), "a member of channel {channel} joins it");
            }
            Action::Leave(ChannelId(channel)) => {
                assert!(self.members.remove(&channel), "no member of channel {channel} leaves it");
            }
            Action::Deliver { number } => {
                assert!(matches!(event, Event::Packet { .. }) && self.last.delivered == 0, "nothing came to deliver");
                self.deliver(number);
            }
            Action::DeliverKept { number } => {
                assert!(self.kept.contains(&number), "payload {number} is not kept");
                self.deliver(Some(number));
            }
            Action::Take { number } => {
                assert!(self.taken < self.offered, "nothing is offered");
                self.taken += 1;
                self.keep(number);
            }
            Action::Keep { number } => {
                assert!(matches!(event, Event::Packet { .. }), "nothing came to keep");
                self.keep(number);
            }
            Action::Release { below } => {
                self.kept = self.kept.split_off(&below);
                self.released = self.released.max(below);
            }
            Action::Complete => {
                assert!(!self.is_complete, "it is complete once");
                self.is_complete = true;
            }
            Action::Observe(Observation::Level { level, .. }) => self.level = level,
            Action::Observe(_) | Action::ObserveSession(..) => {}
        }
    }

    /// A payload under a released number would never be forgotten.
    fn keep(&mut self, number: u64) {
        assert!(number >= self.released, "payload {number} is kept, and those below {} are released", self.released);
        self.kept.insert(number);
        assert!(!self.is_in_tree() || self.kept.len() <= MOST_KEPT, "{} payloads are kept", self.kept.len());
    }

    fn deliver(&mut self, number: Option<u64>) {
        if self.is_in_tree() {
            assert!(self.role == Role::Leaf && !self.is_complete, "{:?} delivers {number:?}", self.role);
            assert_eq!(number, Some(self.delivered), "payloads are delivered in order");
            assert_ne!(self.room, Some(0), "payload {number:?} is delivered where there is no room");
            self.room = self.room.map(|room| room - 1);
        }
        self.delivered += 1;
        self.last.delivered += 1;
    }

    fn check_sent(&self, event: Event<'_>, to: Destination, packet: &Packet, payload: Payload) {
        let role = self.role;
        assert!(packet.size > Bytes::ZERO && packet.size <= PACKET_SIZE, "{role:?} sends {packet:?}");
        match to {
            Destination::Channel(ChannelId(channel)) => {
                let sends = matches!(role, Role::Sender | Role::Root);
                assert!(sends && channel < self.channels, "{role:?} sends to channel {channel}");
                assert!(!self.finished, "the sender sends data after the end");
            }
            Destination::Peer(PeerId(peer)) => {
                assert!(self.peers.contains(&peer), "{role:?} writes to {peer}, who is a stranger: {packet:?}");
            }
            Destination::Reply => {
                let Event::Packet { from: Origin::Unverified, packet: asked } = event else {
                    panic!("{role:?} replies to nobody: {packet:?}")
                };
                assert!(packet.size <= asked.size, "{role:?} replies with more than came: {packet:?}");
            }
        }
        match packet.header {
            Header::Layered(layered) => {
                assert_eq!(to, Destination::Channel(ChannelId(layered.channel)), "data goes where it belongs");
            }
            Header::Paced(_) => {
                assert!(role == Role::Source && !self.finished, "{role:?} sends {packet:?}");
            }
            Header::Feedback(_) | Header::Probe(_) => {
                assert!(!matches!(to, Destination::Channel(_)), "{role:?} sends {packet:?} to a channel");
            }
            Header::TreeData(data) => {
                assert!(self.is_in_tree() && !self.finished, "{role:?} sends {packet:?}");
                // To one member, a packet that is not sent again is for one to which no multicast leads.
                let is_to_all = matches!(to, Destination::Channel(_));
                assert!(!is_to_all || (!data.is_repair && role != Role::Leaf), "{role:?} sends {packet:?} to {to:?}");
                // The end has none.
                assert_eq!(data.is_end, payload == Payload::None, "{packet:?} with {payload:?}");
            }
            Header::TreeAck(_) => {
                assert!(matches!(role, Role::Agent | Role::Leaf) && !self.finished, "{role:?} sends {packet:?}");
                assert!(matches!(to, Destination::Peer(_)), "{role:?} reports to the member above it");
            }
            Header::TreeJoin(_) => {
                assert!(self.is_in_tree() && !self.finished, "{role:?} sends {packet:?}");
                assert!(matches!(to, Destination::Peer(_)), "{packet:?} goes to {to:?}");
            }
            Header::Experimental(_) => panic!("no scheme of the registry is under trial: {packet:?}"),
        }
    }
}

/// A sender that is called a long time after its last deadline has fewer packets due.
const MOST_ACTIONS: u32 = 20_000;

/// Payloads: twice the largest buffer of a member.
const MOST_KEPT: usize = 10_000;

/// Deadlines in a row at one instant.
const MOST_CALLS: u32 = 10_000;
