//! What a tenant has done and seen.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::errno::Errno;
use weir_core::PeerId;
use weir_units::{Bytes, Time};

use super::strangers::Strangers;

/// The account of one tenant. All bytes are on the network, headers included, unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Data sent on each channel.
    pub channels: Vec<Amount>,
    /// Data sent in all: packets with a payload.
    pub sent: Amount,
    /// The same to each peer that is there, where each has an endpoint.
    pub sent_to: BTreeMap<PeerId, Amount>,
    /// Bytes of payload in what was sent in all.
    pub sent_payload: Bytes,
    /// Headers without payload sent: feedback, probes, replies.
    pub control_sent: u64,
    /// Of these, round-trip probes: each wants an answer.
    pub probes_sent: u64,
    /// Calls to the kernel that sending took.
    pub batches: u64,
    /// Packets not sent because the kernel's queue was full.
    pub queue_full: u64,
    /// Packets not sent because the system refused them, because their peer has gone or nobody knows where it is, or because
    /// they are answers longer than what they answer.
    pub refused: u64,
    /// What it said when it last refused.
    pub last_refusal: Option<Errno>,
    /// Payloads that the application did not have when they were due.
    pub starved: u64,
    /// Packets with a payload that reached the endpoint.
    pub received: Amount,
    /// The same of each session.
    pub sessions: Vec<Amount>,
    /// Headers without payload that reached the endpoint.
    pub control_received: u64,
    /// Payloads given to the application.
    pub delivered: u64,
    /// Bytes of these payloads alone.
    pub delivered_payload: Bytes,
    /// Packets that came with a congestion mark.
    pub marked: u64,
    /// Packets that the kernel dropped because the receive buffer was full.
    pub host_dropped: u64,
    /// Packets that the modelled link dropped because its buffer was full, or lost at random.
    pub link_dropped: u64,
    /// What came and was ignored.
    pub ignored: Ignored,
    /// What of it came over channels, by sender.
    pub strangers: Strangers,
    /// Joins and leaves that the system refused.
    pub failed_memberships: u64,
    /// Peers so far.
    pub peers: u64,
    /// Hosts that asked to become a peer when there was no room for another.
    pub turned_away: u64,
    /// Deadlines of the endpoint that were met more than a millisecond late.
    pub late_deadlines: u64,
    /// How late the latest was.
    pub worst_lateness: Duration,
}

/// Packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the network, all headers included.
    pub bytes: Bytes,
}

/// What came and was ignored. Nothing of it is the network's doing: it is noise, or somebody means harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored {
    /// Datagrams, or packets in them, that cannot be read.
    pub undecodable: u64,
    /// Of other groups, sessions, streams or senders.
    pub foreign: u64,
    /// Feedback for packets that were never sent.
    pub impossible: u64,
    /// Packets on channels whose seal is not the session's, or that do not count any more.
    pub forged: u64,
}

impl Statistics {
    #[inline]
    pub(super) fn note_received(&mut self, session: usize, size: u64) {
        self.received.add(1, size);
        if let Some(amount) = self.sessions.get_mut(session) {
            amount.add(1, size);
        }
    }

    /// A packet was sent, on a channel or to a peer; `payload` is the length of its payload, if it has one.
    pub(super) fn note_sent(
        &mut self,
        channel: Option<usize>,
        peer: Option<PeerId>,
        size: u64,
        payload: Option<usize>,
    ) {
        let Some(payload) = payload else {
            self.control_sent += 1;
            return;
        };
        self.sent.add(1, size);
        self.sent_payload += Bytes::new(payload as u64);
        if let Some(channel) = channel {
            self.channels[channel].add(1, size);
        }
        if let Some(amount) = peer.and_then(|peer| self.sent_to.get_mut(&peer)) {
            amount.add(1, size);
        }
    }

    /// The application was given a payload of this length.
    pub(super) fn note_delivered(&mut self, payload: usize) {
        self.delivered += 1;
        self.delivered_payload += Bytes::new(payload as u64);
    }

    pub(super) fn note_lateness(&mut self, due: Time, met: Time) {
        let late = met.since(due);
        self.late_deadlines += u64::from(late > LATE);
        self.worst_lateness = self.worst_lateness.max(late);
    }
}

impl Amount {
    pub(super) fn add(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += Bytes::new(bytes);
    }
}

impl Ignored {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.undecodable + self.foreign + self.impossible + self.forged
    }
}

/// A deadline met within this is met: it is what the system's timers and scheduler take.
const LATE: Duration = Duration::from_millis(1);
