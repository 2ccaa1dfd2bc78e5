//! A link that is watched: what comes, goes and is dropped, and how long it waited.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use weir_link::DropReason;
use weir_sim::{Address, LinkId, Packet};
use weir_units::{Bytes, Time};

use crate::metric::{LinkRecord, Wait};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct WatchedLink {
    pub(super) id: LinkId,
    record: LinkRecord,
    /// Those on the link, if anybody wants to know how long they wait. Packets of one flow and channel keep their order, whatever the queue.
    on_link: Option<BTreeMap<Lane, VecDeque<Waiting>>>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    came: Time,
    source: u32,
}

impl WatchedLink {
    /// Watches a link of which `record` knows the rates. `waits` says whether it is wanted how long packets wait.
    pub(super) fn new(id: LinkId, record: LinkRecord, waits: bool) -> WatchedLink {
        WatchedLink { id, record, on_link: waits.then(BTreeMap::new) }
    }

    /// A packet comes, of those recorded in this slot if in any.
    pub(super) fn came(&mut self, now: Time, packet: &Packet, slot: Option<usize>) {
        self.record.counts(now).offered += 1;
        if let Some(on_link) = &mut self.on_link {
            let source = slot.map_or(Wait::OTHERS, |slot| slot as u32);
            on_link.entry(lane(packet)).or_default().push_back(Waiting { came: now, source });
        }
    }

    /// A packet is lost.
    pub(super) fn dropped(&mut self, at: Time, packet: &Packet, reason: DropReason) {
        self.record.counts(at).dropped += 1;
        let waiting = self.on_link.as_mut().and_then(|on_link| {
            let lane = on_link.get_mut(&lane(packet))?;
            // A queue refuses the last that came, or gives up the first.
            let refused = reason != DropReason::Lost && lane.back().is_some_and(|last| last.came == at);
            if refused { lane.pop_back() } else { lane.pop_front() }
        });
        let Some(Waiting { came, source }) = waiting else { return };
        // What is lost on the way has waited as long as if it had arrived.
        let left = if reason == DropReason::Lost { self.service_began(at, packet.size) } else { at };
        self.note(Wait { came, left: left.max(came), through: false, source });
    }

    /// A packet comes out at the far end.
    pub(super) fn left(&mut self, now: Time, packet: &Packet) {
        let counts = self.record.counts(now);
        counts.sent += Bytes::new(packet.size.count());
        let waiting = self.on_link.as_mut().and_then(|on_link| on_link.get_mut(&lane(packet))?.pop_front());
        let Some(Waiting { came, source }) = waiting else { return };
        let left = self.service_began(now, packet.size);
        self.note(Wait { came, left: left.max(came), through: true, source });
    }

    fn note(&mut self, wait: Wait) {
        self.record.waits.push(wait);
    }

    /// When the link began to send what comes out at `out`.
    fn service_began(&self, out: Time, size: Bytes) -> Time {
        let capacity = self.record.capacity_at(out);
        let sending = capacity.rate.map_or(Duration::ZERO, |rate| size / rate);
        Time::ZERO + out.since(Time::ZERO + capacity.delay + sending)
    }

    /// What was recorded until `end`; what still waits then has waited until then.
    pub(super) fn finish(mut self, end: Time) -> LinkRecord {
        for Waiting { came, source } in self.on_link.take().into_iter().flat_map(BTreeMap::into_values).flatten() {
            let left = self.service_began(end, Bytes::ZERO).max(came);
            self.record.waits.push(Wait { came, left, through: false, source });
        }
        self.record.waits.sort_by_key(|wait| wait.left);
        self.record
    }
}

/// What keeps its order in every queue: a flow, and its channel if it has any.
type Lane = (usize, Option<u16>);

fn lane(packet: &Packet) -> Lane {
    let channel = match packet.to {
        Address::Channel(_, channel) => Some(channel),
        Address::Agent(_) => None,
    };
    (packet.flow.index(), channel)
}
