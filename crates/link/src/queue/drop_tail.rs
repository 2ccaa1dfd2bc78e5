//! First come, first served; a packet that finds the buffer full is dropped. For links that are not `fifo`'s, which does the same
//! without a queue.

use alloc::collections::VecDeque;

use weir_units::{Bytes, Time};

use crate::queue::{Drops, Queue, Queued};
use crate::{Buffer, DropReason, LinkState};

/// A first-in, first-out queue.
#[derive(Debug, Clone)]
pub(crate) struct DropTail<P> {
    limit: Buffer,
    waiting: VecDeque<Queued<P>>,
    bytes: Bytes,
}

impl<P> DropTail<P> {
    /// An empty queue that holds up to `limit`.
    pub(crate) fn new(limit: Buffer) -> DropTail<P> {
        DropTail { limit, waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }

    /// Takes a packet whatever the limit.
    pub(crate) fn push(&mut self, packet: Queued<P>) {
        self.bytes += packet.size;
        self.waiting.push_back(packet);
    }

    /// Takes the first packet.
    pub(crate) fn pop(&mut self) -> Option<Queued<P>> {
        let first = self.waiting.pop_front()?;
        self.bytes = self.bytes - first.size;
        Some(first)
    }

    /// Whether there is room for `packet`.
    pub(crate) fn has_room(&self, packet: &Queued<P>, link: LinkState) -> bool {
        self.limit.has_room(self.waiting.len(), self.bytes, packet.size, link)
    }
}

impl<P> Queue<P> for DropTail<P> {
    fn enqueue(&mut self, packet: Queued<P>, link: LinkState, drops: Drops<'_, P>) {
        if self.has_room(&packet, link) {
            self.push(packet);
        } else {
            let at = packet.arrived;
            drops(packet.dropped(at, DropReason::Overflow));
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: Drops<'_, P>) -> Option<Queued<P>> {
        self.pop()
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bytes(&self) -> Bytes {
        self.bytes
    }
}
