//! The fast link: first come, first served, drop-tail, a constant delay. Not a link that changes, marks or reorders;
//! those are `general`.
//!
//! When a packet departs is known when it comes. So it is written once, with its departure, into one ring that holds the
//! packets that travel, the one that is being sent and those that wait, in this order. A cursor says where waiting begins.

use alloc::collections::VecDeque;

use weir_units::{Bytes, Time};

use crate::kind::{Limit, Plain};
use crate::serialiser::Serialiser;

/// What its kind says comes with each call: it is the same for many links, and has no room in each.
#[derive(Debug, Clone)]
pub(crate) struct Fifo<P> {
    ring: VecDeque<Entry<P>>,
    /// Entries at the front that have begun to be sent; up to date only after `catch_up`.
    begun: u32,
    /// Bytes of the others, modulo 2^32; a limit in bytes is below that.
    waiting_bytes: u32,
    /// When the last packet is sent whole.
    free_at: Time,
    /// When the first packet of the ring arrives, if there is one.
    first_arrives: Time,
    serialiser: Serialiser,
}

/// A packet on the link: 16 bytes for a packet of 4.
#[derive(Debug, Clone, Copy)]
struct Entry<P> {
    departs: Time,
    /// Whether it is lost in the lowest bit, its bytes above.
    size_and_lost: u32,
    packet: P,
}

/// A packet at the end of the link, lost on the way or not.
#[derive(Debug, Clone)]
pub(crate) struct Out<P> {
    pub(crate) packet: P,
    pub(crate) size: Bytes,
    pub(crate) at: Time,
    pub(crate) lost: bool,
    pub(crate) marked: bool,
}

impl<P> Fifo<P> {
    pub(crate) fn new() -> Fifo<P> {
        Fifo {
            ring: VecDeque::new(),
            begun: 0,
            waiting_bytes: 0,
            free_at: Time::ZERO,
            first_arrives: Time::ZERO,
            serialiser: Serialiser::default(),
        }
    }

    /// Takes a packet if there is room. `lost` is asked only then: whether this packet will be lost on the way.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        kind: &Plain,
        now: Time,
        size: u32,
        packet: P,
        lost: impl FnOnce() -> bool,
    ) -> Result<(), P> {
        let idle = self.free_at <= now;
        if !idle && !self.has_room(kind.limit, now, size) {
            return Err(packet);
        }
        let begins = if idle { now } else { self.free_at };
        if idle {
            self.serialiser.restart();
        }
        let takes = kind.rate.as_ref().map_or(0, |pace| self.serialiser.next(pace, size));
        self.free_at = Time::from_nanos(begins.as_nanos().saturating_add(takes));
        let size_and_lost = size << 1 | u32::from(lost());
        let entry = Entry { departs: self.free_at, size_and_lost, packet };
        if self.ring.is_empty() {
            self.first_arrives = entry.arrives(kind);
        }
        self.ring.push_back(entry);
        if idle {
            self.begun = self.ring.len() as u32;
            self.waiting_bytes = 0;
        } else {
            self.waiting_bytes = self.waiting_bytes.wrapping_add(size);
        }
        Ok(())
    }

    /// Asked while the link is busy.
    #[inline]
    fn has_room(&mut self, limit: Limit, now: Time, size: u32) -> bool {
        match limit {
            Limit::Nanos(nanos) => self.free_at.as_nanos() - now.as_nanos() <= nanos,
            Limit::Packets(packets) => {
                // Where all that is on the link would fit, nothing needs to be counted.
                self.ring.len() < packets || {
                    self.catch_up(now);
                    self.ring.len() - (self.begun as usize) < packets
                }
            }
            Limit::Bytes(bytes) => {
                self.catch_up(now);
                u64::from(self.waiting_bytes) + u64::from(size) <= bytes
            }
        }
    }

    /// Packets on the link, those that wait among them.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        (!self.ring.is_empty()).then_some(self.first_arrives)
    }

    /// The next packet that is at the end by `now`.
    #[inline]
    pub(crate) fn dequeue(&mut self, kind: &Plain, now: Time) -> Option<Out<P>> {
        let at = self.next_arrival().filter(|at| *at <= now)?;
        if self.begun == 0 {
            self.catch_up(now);
        }
        // It has departed by now, so it has begun.
        self.begun -= 1;
        let entry = self.ring.pop_front()?;
        if let Some(next) = self.ring.front() {
            self.first_arrives = next.arrives(kind);
        }
        Some(entry.out(at))
    }

    /// Packets that wait at `now`.
    pub(crate) fn waiting(&self, now: Time) -> usize {
        // A packet begins when the one before it departs; the one that is being sent does not wait.
        let departing = self.ring.len() - self.ring.partition_point(|entry| entry.departs <= now);
        departing.saturating_sub(1)
    }

    #[inline(never)] // Rare but where what waits is counted.
    fn catch_up(&mut self, now: Time) {
        while self.next_begins() <= now
            && let Some(entry) = self.ring.get(self.begun as usize)
        {
            self.begun += 1;
            self.waiting_bytes = self.waiting_bytes.wrapping_sub(entry.size_and_lost >> 1);
        }
    }

    /// When the entry at `begun` begins to be sent, or would if there were one: when the one before it departs, which is
    /// past if that one has arrived.
    #[inline]
    fn next_begins(&self) -> Time {
        let before = self.begun.checked_sub(1).and_then(|before| self.ring.get(before as usize));
        before.map_or(Time::ZERO, |entry| entry.departs)
    }

    /// Takes the link apart: what travels or is being sent, and what waits, both in order.
    pub(crate) fn take_apart(mut self, kind: &Plain, now: Time) -> Parts<P> {
        self.catch_up(now);
        let busy_until = (self.free_at > now).then(|| self.next_begins());
        let mut entries = core::iter::from_fn(|| self.ring.pop_front());
        let travelling = entries.by_ref().take(self.begun as usize).map(|entry| {
            let at = entry.arrives(kind);
            entry.out(at)
        });
        Parts {
            travelling: travelling.collect(),
            waiting: entries.map(|entry| (entry.size_and_lost >> 1, entry.packet)).collect(),
            busy_until,
        }
    }
}

impl<P> Entry<P> {
    #[inline]
    fn arrives(&self, kind: &Plain) -> Time {
        Time::from_nanos(self.departs.as_nanos().saturating_add(kind.delay))
    }

    #[inline]
    fn out(self, at: Time) -> Out<P> {
        Out {
            packet: self.packet,
            size: Bytes::new(u64::from(self.size_and_lost >> 1)),
            at,
            lost: self.size_and_lost & 1 == 1,
            marked: false,
        }
    }
}

/// What was on a link.
pub(crate) struct Parts<P> {
    pub(crate) travelling: VecDeque<Out<P>>,
    /// Sizes and packets.
    pub(crate) waiting: VecDeque<(u32, P)>,
    /// When what is being sent is sent, if something is.
    pub(crate) busy_until: Option<Time>,
}
