//! FQ-CoDel (RFC 8290): flows by hash, served by deficit round robin that prefers new ones, each under CoDel.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use weir_units::{Bytes, Random, Time};

use crate::queue::codel::{CoDelConfig, ControlLaw};
use crate::queue::{Drops, Queue, Queued};
use crate::{Buffer, DropReason, LinkState};

/// Parameters of FQ-CoDel (RFC 8290 §5.2). What may wait in all is the link's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// For each flow.
    pub codel: CoDelConfig,
    /// Queues that flows are hashed to, above zero.
    pub flows: u16,
    /// Bytes that a queue may send in a round, above zero.
    pub quantum: Bytes,
}

impl Default for FqCoDelConfig {
    /// CoDel's parameters with marks, 1024 queues, 1514 bytes.
    fn default() -> FqCoDelConfig {
        let codel = CoDelConfig { ecn: true, ..CoDelConfig::default() };
        FqCoDelConfig { codel, flows: 1024, quantum: Bytes::new(1514) }
    }
}

/// The queues of FQ-CoDel.
#[derive(Debug, Clone)]
pub(crate) struct FqCoDel<P> {
    config: FqCoDelConfig,
    limit: Buffer,
    /// Makes the hash another one for each link and seed.
    perturbation: u64,
    flows: Vec<Flow<P>>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    packets: usize,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct Flow<P> {
    waiting: VecDeque<Queued<P>>,
    bytes: u64,
    /// Bytes that it may still send; below zero if it sent more.
    deficit: i64,
    /// Whether it is on one of the lists.
    listed: bool,
    law: ControlLaw,
}

impl<P> FqCoDel<P> {
    pub(crate) fn new(config: FqCoDelConfig, limit: Buffer, random: &mut Random) -> FqCoDel<P> {
        let idle =
            || Flow { waiting: VecDeque::new(), bytes: 0, deficit: 0, listed: false, law: ControlLaw::default() };
        FqCoDel {
            config,
            limit,
            perturbation: random.bits(),
            flows: (0..config.flows.max(1)).map(|_| idle()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    fn bucket(&self, flow: u64) -> u16 {
        ((u128::from(mix(flow ^ self.perturbation)) * self.flows.len() as u128) >> 64) as u16
    }

    fn quantum(&self) -> i64 {
        i64::try_from(self.config.quantum.count().max(1)).unwrap_or(i64::MAX / 2)
    }

    /// Drops from the head of the queue with the most bytes: half of it, up to 64 packets (RFC 8290 §4.1).
    fn drop_from_fattest(&mut self, now: Time, drops: Drops<'_, P>) {
        let fattest = self.flows.iter_mut().rev().max_by_key(|flow| flow.bytes).expect("there is at least one queue");
        let half = fattest.bytes / 2;
        for _ in 0..DROP_BATCH {
            let Some(victim) = fattest.waiting.pop_front() else { break };
            fattest.bytes -= victim.size.count();
            self.bytes -= victim.size.count();
            self.packets -= 1;
            drops(victim.dropped(now, DropReason::Overflow));
            if fattest.bytes <= half {
                break;
            }
        }
    }
}

impl<P> Queue<P> for FqCoDel<P> {
    fn enqueue(&mut self, packet: Queued<P>, link: LinkState, drops: Drops<'_, P>) {
        let (now, size) = (packet.arrived, packet.size);
        let bucket = self.bucket(packet.label.flow);
        let quantum = self.quantum();
        let has_room = self.limit.has_room(self.packets, Bytes::new(self.bytes), size, link);
        self.packets += 1;
        self.bytes += size.count();
        let flow = &mut self.flows[usize::from(bucket)];
        flow.bytes += size.count();
        flow.waiting.push_back(packet);
        if !core::mem::replace(&mut flow.listed, true) {
            flow.deficit = quantum;
            self.new.push_back(bucket);
        }
        if !has_room {
            self.drop_from_fattest(now, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: Drops<'_, P>) -> Option<Queued<P>> {
        let quantum = self.quantum();
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let bucket = *list.front()?;
            let flow = &mut self.flows[usize::from(bucket)];
            if flow.deficit <= 0 {
                flow.deficit += quantum;
                list.pop_front();
                self.old.push_back(bucket);
                continue;
            }
            let (waiting, bytes) = (&mut flow.waiting, &mut flow.bytes);
            let (all_packets, all_bytes) = (&mut self.packets, &mut self.bytes);
            let pop = &mut || {
                let packet = waiting.pop_front()?;
                *bytes -= packet.size.count();
                *all_bytes -= packet.size.count();
                *all_packets -= 1;
                Some((packet, Bytes::new(*bytes)))
            };
            if let Some(packet) = flow.law.dequeue(&self.config.codel, now, pop, drops) {
                flow.deficit -= i64::try_from(packet.size.count()).unwrap_or(i64::MAX / 2);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // Else a flow that sends one packet at a time would always be new and starve the old ones.
                self.old.push_back(bucket);
            } else {
                flow.listed = false;
            }
        }
    }

    fn len(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }
}

/// Spreads flow numbers over 64 bits (the finaliser of SplitMix64, Steele et al. 2014).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Packets that are dropped at once at most (RFC 8290 §4.1).
const DROP_BATCH: usize = 64;
