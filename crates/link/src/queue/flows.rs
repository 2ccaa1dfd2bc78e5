//! The flows that wait at a fair queue, each first in, first out. Not whose turn it is.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use weir_units::Bytes;

use crate::queue::Queued;
use crate::{Buffer, LinkState};

/// Which packet has to go when the buffer of a fair queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DropFrom {
    /// A packet of the flow with the most bytes waiting; the buffer is for all flows together.
    #[default]
    Longest,
    /// The packet that came; each flow has a buffer of its own.
    Own,
}

/// The index of a flow that waits.
pub(crate) type FlowIndex = u32;

/// Flows that have packets waiting, with a `T` for each that lives as long as they do.
#[derive(Debug, Clone)]
pub(crate) struct Flows<P, T> {
    by_label: BTreeMap<u64, FlowIndex>,
    /// Those that wait, and those that wait no more and can be used again.
    flows: Vec<Flow<P, T>>,
    free: Vec<FlowIndex>,
    packets: usize,
    bytes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Flow<P, T> {
    label: u64,
    pub(crate) waiting: VecDeque<Queued<P>>,
    pub(crate) bytes: u64,
    /// The discipline's own.
    pub(crate) state: T,
}

impl<P, T: Default> Flows<P, T> {
    pub(crate) fn new() -> Flows<P, T> {
        Flows { by_label: BTreeMap::new(), flows: Vec::new(), free: Vec::new(), packets: 0, bytes: 0 }
    }

    pub(crate) fn get(&mut self, flow: FlowIndex) -> &mut Flow<P, T> {
        &mut self.flows[flow as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// Takes a packet into its flow; whether that flow is new, and its index.
    pub(crate) fn push(&mut self, packet: Queued<P>) -> (FlowIndex, bool) {
        let label = packet.label.flow;
        let known = self.by_label.get(&label).copied();
        let flow = known.unwrap_or_else(|| self.admit(label));
        self.packets += 1;
        self.bytes += packet.size.count();
        let queue = self.get(flow);
        queue.bytes += packet.size.count();
        queue.waiting.push_back(packet);
        (flow, known.is_none())
    }

    /// Takes the first or the last packet of a flow; whether the flow is gone then.
    pub(crate) fn take(&mut self, flow: FlowIndex, end: End) -> (Queued<P>, bool) {
        let queue = self.get(flow);
        let packet = match end {
            End::First => queue.waiting.pop_front(),
            End::Last => queue.waiting.pop_back(),
        };
        let packet = packet.expect("a flow that waits has packets");
        queue.bytes -= packet.size.count();
        let (gone, label) = (queue.waiting.is_empty(), queue.label);
        if gone {
            self.by_label.remove(&label);
            self.free.push(flow);
        }
        self.packets -= 1;
        self.bytes -= packet.size.count();
        (packet, gone)
    }

    /// The flow with the most bytes, of equals the one with the lowest label.
    pub(crate) fn longest(&self) -> FlowIndex {
        let bytes = |flow: FlowIndex| self.flows[flow as usize].bytes;
        let longest = self.by_label.iter().max_by_key(|(label, flow)| (bytes(**flow), Reverse(**label)));
        *longest.expect("asked while something waits").1
    }

    /// Whether `packet` has to be refused because its flow's own buffer is full.
    pub(crate) fn own_is_full(&self, packet: &Queued<P>, limit: Buffer, link: LinkState) -> bool {
        let own = self.by_label.get(&packet.label.flow).map(|flow| &self.flows[*flow as usize]);
        let (packets, bytes) = own.map_or((0, 0), |own| (own.waiting.len(), own.bytes));
        !limit.has_room(packets, Bytes::new(bytes), packet.size, link)
    }

    /// Whether more waits than `limit` allows, now that a packet of `size` has come.
    pub(crate) fn too_much(&self, limit: Buffer, size: Bytes, link: LinkState) -> bool {
        let before = Bytes::new(self.bytes).saturating_sub(size);
        self.packets > 0 && !limit.has_room(self.packets - 1, before, size, link)
    }

    fn admit(&mut self, label: u64) -> FlowIndex {
        let flow = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow { label, waiting: VecDeque::new(), bytes: 0, state: T::default() });
            self.flows.len() as FlowIndex - 1
        });
        self.by_label.insert(label, flow);
        let new = self.get(flow);
        new.label = label;
        new.state = T::default();
        flow
    }
}

/// An end of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}
