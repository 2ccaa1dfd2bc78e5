//! The fast link: first come, first served, drop-tail, a constant delay. Not a link that changes, marks or reorders;
//! those are `general`.
//!
//! When a packet departs is known when it comes. So it is written once, with its departure, into one ring that holds the
//! packets that travel, the one that is being sent and those that wait, in this order. A cursor says where waiting begins.

use alloc::collections::VecDeque;

use weir_units::{Bytes, Rate, Time};

use crate::Buffer;
use crate::serialiser::Serialiser;

#[derive(Debug, Clone)]
pub(crate) struct Fifo<P> {
    ring: VecDeque<Entry<P>>,
    /// Entries at the front that have begun to be sent; up to date only after `catch_up`.
    begun: usize,
    /// Bytes of the others.
    waiting_bytes: u64,
    /// When the last packet is sent whole.
    free_at: Time,
    /// Propagation delay, nanoseconds.
    delay: u64,
    limit: Limit,
    /// `None` is without limit of rate.
    serialiser: Option<Serialiser>,
}

/// A [`Buffer`] in plain numbers.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Packets(usize),
    Bytes(u64),
    Nanos(u64),
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
    pub(crate) fn new(rate: Option<Rate>, delay: u64, limit: Buffer) -> Fifo<P> {
        Fifo {
            ring: VecDeque::new(),
            begun: 0,
            waiting_bytes: 0,
            free_at: Time::ZERO,
            delay,
            limit: match limit {
                Buffer::Packets(packets) => Limit::Packets(packets),
                Buffer::Bytes(bytes) => Limit::Bytes(bytes.count()),
                Buffer::Span(span) => Limit::Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
            },
            serialiser: rate.map(Serialiser::new),
        }
    }

    /// Takes a packet if there is room. `lost` is asked only then: whether this packet will be lost on the way.
    #[inline]
    pub(crate) fn enqueue(&mut self, now: Time, size: u32, packet: P, lost: impl FnOnce() -> bool) -> Result<(), P> {
        let idle = self.free_at <= now;
        if !idle && !self.has_room(now, size) {
            return Err(packet);
        }
        let begins = if idle { now } else { self.free_at };
        let takes = match &mut self.serialiser {
            Some(serialiser) => {
                if idle {
                    serialiser.restart();
                }
                serialiser.next(size)
            }
            None => 0,
        };
        self.free_at = Time::from_nanos(begins.as_nanos().saturating_add(takes));
        let size_and_lost = size << 1 | u32::from(lost());
        self.ring.push_back(Entry { departs: self.free_at, size_and_lost, packet });
        if idle {
            self.begun = self.ring.len();
            self.waiting_bytes = 0;
        } else {
            self.waiting_bytes += u64::from(size);
        }
        Ok(())
    }

    /// Asked while the link is busy.
    #[inline]
    fn has_room(&mut self, now: Time, size: u32) -> bool {
        match self.limit {
            Limit::Nanos(nanos) => self.free_at.as_nanos() - now.as_nanos() <= nanos,
            Limit::Packets(packets) => {
                // Where all that is on the link would fit, nothing needs to be counted.
                self.ring.len() < packets || {
                    self.catch_up(now);
                    self.ring.len() - self.begun < packets
                }
            }
            Limit::Bytes(bytes) => {
                self.catch_up(now);
                self.waiting_bytes + u64::from(size) <= bytes
            }
        }
    }

    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.ring.front().map(|entry| self.arrival(entry))
    }

    /// The next packet that is at the end by `now`.
    #[inline]
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<Out<P>> {
        let at = self.next_arrival().filter(|at| *at <= now)?;
        if self.begun == 0 {
            self.catch_up(now);
        }
        // It has departed by now, so it has begun.
        self.begun -= 1;
        let entry = self.ring.pop_front()?;
        Some(self.out(entry, at))
    }

    /// Packets that wait at `now`.
    pub(crate) fn waiting(&self, now: Time) -> usize {
        // A packet begins when the one before it departs; the one that is being sent does not wait.
        let departing = self.ring.len() - self.ring.partition_point(|entry| entry.departs <= now);
        departing.saturating_sub(1)
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_begins() <= now
            && let Some(entry) = self.ring.get(self.begun)
        {
            self.begun += 1;
            self.waiting_bytes -= u64::from(entry.size_and_lost >> 1);
        }
    }

    /// When the entry at `begun` begins to be sent, or would if there were one: when the one before it departs, which is
    /// past if that one has arrived.
    #[inline]
    fn next_begins(&self) -> Time {
        self.begun.checked_sub(1).map_or(Time::ZERO, |before| self.ring[before].departs)
    }

    /// Takes the link apart: what travels or is being sent, and what waits, both in order.
    pub(crate) fn take_apart(mut self, now: Time) -> Parts<P> {
        self.catch_up(now);
        let busy_until = (self.free_at > now).then(|| self.next_begins());
        let waiting = self.ring.split_off(self.begun);
        let travelling = core::mem::take(&mut self.ring);
        let travelling = travelling.into_iter().map(|entry| {
            let at = self.arrival(&entry);
            self.out(entry, at)
        });
        Parts {
            travelling: travelling.collect(),
            waiting: waiting.into_iter().map(|entry| (entry.size_and_lost >> 1, entry.packet)).collect(),
            busy_until,
        }
    }

    #[inline]
    fn arrival(&self, entry: &Entry<P>) -> Time {
        Time::from_nanos(entry.departs.as_nanos().saturating_add(self.delay))
    }

    #[inline]
    fn out(&self, entry: Entry<P>, at: Time) -> Out<P> {
        Out {
            packet: entry.packet,
            size: Bytes::new(u64::from(entry.size_and_lost >> 1)),
            at,
            lost: entry.size_and_lost & 1 == 1,
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
