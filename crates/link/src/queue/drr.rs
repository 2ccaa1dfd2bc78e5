//! Deficit round robin (Shreedhar & Varghese 1995), with the buffer shared as in ns-2's `drr.cc`.

use alloc::collections::VecDeque;

use weir_units::{Bytes, Time};

use crate::queue::flows::{DropFrom, End, FlowIndex, Flows};
use crate::queue::{Drops, Queue, Queued};
use crate::{Buffer, DropReason, LinkState};

/// Parameters of deficit round robin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrrConfig {
    /// Bytes that a flow may send in a round, above zero. With at least the largest packet, each turn sends one.
    pub quantum: Bytes,
    /// Which packet goes when the buffer is full. The longest queue loses its first packet, as in ns-2.
    pub drop: DropFrom,
}

impl Default for DrrConfig {
    /// A quantum of 1500 bytes; the longest queue is dropped from.
    fn default() -> DrrConfig {
        DrrConfig { quantum: Bytes::new(1500), drop: DropFrom::Longest }
    }
}

/// Flows that take turns.
#[derive(Debug, Clone)]
pub(crate) struct Drr<P> {
    config: DrrConfig,
    limit: Buffer,
    flows: Flows<P, Turn>,
    round: VecDeque<FlowIndex>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// Bytes that the flow may still send.
    deficit: u64,
    /// Whether it got its quantum for this round.
    has_quantum: bool,
}

impl<P> Drr<P> {
    pub(crate) fn new(config: DrrConfig, limit: Buffer) -> Drr<P> {
        Drr { config, limit, flows: Flows::new(), round: VecDeque::new() }
    }
}

impl<P> Queue<P> for Drr<P> {
    fn enqueue(&mut self, packet: Queued<P>, link: LinkState, drops: Drops<'_, P>) {
        let (now, size) = (packet.arrived, packet.size);
        if self.config.drop == DropFrom::Own && self.flows.own_is_full(&packet, self.limit, link) {
            drops(packet.dropped(now, DropReason::Overflow));
            return;
        }
        let (flow, is_new) = self.flows.push(packet);
        if is_new {
            self.round.push_back(flow);
        }
        while self.config.drop == DropFrom::Longest && self.flows.too_much(self.limit, size, link) {
            let longest = self.flows.longest();
            let (victim, gone) = self.flows.take(longest, End::First);
            if gone {
                self.round.retain(|flow| *flow != longest);
            }
            drops(victim.dropped(now, DropReason::Overflow));
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: Drops<'_, P>) -> Option<Queued<P>> {
        loop {
            let index = *self.round.front()?;
            let flow = self.flows.get(index);
            let first = flow.waiting.front().expect("a flow in the round has packets").size.count();
            if !core::mem::replace(&mut flow.state.has_quantum, true) {
                flow.state.deficit += self.config.quantum.count().max(1);
            }
            if flow.state.deficit >= first {
                flow.state.deficit -= first;
                let (packet, gone) = self.flows.take(index, End::First);
                if gone {
                    self.round.pop_front();
                }
                return Some(packet);
            }
            flow.state.has_quantum = false;
            self.round.rotate_left(1);
        }
    }

    fn len(&self) -> usize {
        self.flows.len()
    }

    fn bytes(&self) -> Bytes {
        self.flows.bytes()
    }
}
