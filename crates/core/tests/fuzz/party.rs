//! One party, an account of what it did, and the rules for all parties of all schemes.

use std::collections::BTreeSet;

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
    /// Who it may write to: its first peer, if it knows one from the start, and who is up.
    peers: BTreeSet<u32>,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    /// Payloads that it has taken and kept.
    kept: BTreeSet<u64>,
    finished: bool,
    /// What the last event led to.
    pub(crate) last: Turn,
}

/// What an event led to.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) sent: Vec<(Destination, Packet)>,
    pub(crate) delivered: u64,
}

impl Party {
    /// A party of a session with this number of channels.
    pub(crate) fn new(role: Role, endpoint: Box<dyn Endpoint>, channels: u16) -> Party {
        Party {
            role,
            endpoint,
            channels,
            members: BTreeSet::new(),
            level: 0,
            // Nobody has told the sender of a session who its receivers are.
            peers: if role == Role::Sender { BTreeSet::new() } else { BTreeSet::from([0]) },
            offered: 0,
            sent: 0,
            delivered: 0,
            kept: BTreeSet::new(),
            finished: false,
            last: Turn::default(),
        }
    }

    /// Something happens to it; it does what it wants, by the rules.
    pub(crate) fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Packet { from: Origin::Peer(PeerId(peer)), .. } | Event::PeerUp(PeerId(peer)) => {
                self.peers.insert(peer);
            }
            Event::Offer { packets } => self.offered = self.offered.saturating_add(packets),
            Event::Finish => self.finished = true,
            _ => {}
        }
        self.last = Turn::default();
        self.endpoint.handle(now, event);
        for _ in 0..MOST_ACTIONS {
            let Some(action) = self.endpoint.poll(now) else {
                assert!(!self.finished || self.members.is_empty(), "the end leaves everything: {:?}", self.members);
                return;
            };
            self.carry_out(event, &action);
        }
        panic!("after {event:?} it never stops wanting things: {self:?}");
    }

    /// Calls it until its deadline is ahead, as a driver does.
    pub(crate) fn catch_up(&mut self, now: Time, mut after_each: impl FnMut(&Party)) {
        for _ in 0..MOST_CALLS {
            if self.endpoint.deadline().is_none_or(|at| at > now) {
                return;
            }
            self.handle(now, Event::Deadline);
            after_each(self);
        }
        panic!("at {now} its deadline stays in the past: {self:?}");
    }

    /// The next deadline.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.endpoint.deadline()
    }

    fn carry_out(&mut self, event: Event<'_>, action: &Action) {
        match *action {
            Action::Send { to, packet, payload, .. } => {
                self.check_sent(event, to, &packet);
                match payload {
                    Payload::Kept(number) => assert!(self.kept.contains(&number), "payload {number} is not kept"),
                    Payload::None | Payload::Fresh => {}
                }
                self.sent += 1;
                self.last.sent.push((to, packet));
            }
            Action::Join(ChannelId(channel)) => {
                assert!(self.role == Role::Receiver && channel < self.channels, "{:?} joins {channel}", self.role);
                assert!(self.members.insert(channel), "a member of channel {channel} joins it");
            }
            Action::Leave(ChannelId(channel)) => {
                assert!(self.members.remove(&channel), "no member of channel {channel} leaves it");
            }
            Action::Deliver { .. } => {
                assert!(matches!(event, Event::Packet { .. }) && self.last.delivered == 0, "nothing came to deliver");
                self.deliver();
            }
            Action::DeliverKept { number } => {
                assert!(self.kept.contains(&number), "payload {number} is not kept");
                self.deliver();
            }
            Action::Take { number } => {
                assert!(self.sent + (self.kept.len() as u64) < self.offered, "nothing is offered");
                self.kept.insert(number);
            }
            Action::Keep { number } => {
                assert!(matches!(event, Event::Packet { .. }), "nothing came to keep");
                self.kept.insert(number);
            }
            Action::Release { below } => self.kept = self.kept.split_off(&below),
            Action::Complete => {}
            Action::Observe(Observation::Level { level, .. }) => self.level = level,
            Action::Observe(_) => {}
        }
    }

    fn deliver(&mut self) {
        self.delivered += 1;
        self.last.delivered += 1;
    }

    fn check_sent(&self, event: Event<'_>, to: Destination, packet: &Packet) {
        let role = self.role;
        assert!(packet.size > Bytes::ZERO && packet.size <= PACKET_SIZE, "{role:?} sends {packet:?}");
        match to {
            Destination::Channel(ChannelId(channel)) => {
                assert!(role == Role::Sender && channel < self.channels, "{role:?} sends to channel {channel}");
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
            Header::TreeData(_) | Header::TreeAck(_) => panic!("{role:?} is in no tree: {packet:?}"),
            Header::Experimental(_) => panic!("no scheme of the registry is under trial: {packet:?}"),
        }
    }
}

/// A sender that is called a long time after its last deadline has fewer packets due.
const MOST_ACTIONS: u32 = 20_000;

/// Deadlines in a row at one instant.
const MOST_CALLS: u32 = 10_000;
