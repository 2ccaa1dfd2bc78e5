//! CoDel (RFC 8289): drops, or marks, when packets have waited too long for too long. The law is here for one queue and for
//! the flows of `fq_codel`.

use core::time::Duration;

use weir_units::{Bytes, Time, math};

use crate::queue::drop_tail::DropTail;
use crate::queue::{Drops, Queue, Queued};
use crate::{Buffer, DropReason, LinkState};

/// Parameters of CoDel (RFC 8289 §3, §4.2, §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDelConfig {
    /// How long packets may wait without end.
    pub target: Duration,
    /// How long they may wait for longer than that before the first is dropped: about the largest usual round-trip time.
    pub interval: Duration,
    /// Nothing is dropped while no more than this waits: a full packet.
    pub mtu: Bytes,
    /// Packets that can be marked are marked, not dropped.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// 5 ms, 100 ms, 1514 bytes, without marks.
    fn default() -> CoDelConfig {
        CoDelConfig {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: Bytes::new(1514),
            ecn: false,
        }
    }
}

/// A first-in, first-out queue under CoDel.
#[derive(Debug, Clone)]
pub(crate) struct CoDel<P> {
    config: CoDelConfig,
    law: ControlLaw,
    queue: DropTail<P>,
}

impl<P> CoDel<P> {
    pub(crate) fn new(config: CoDelConfig, limit: Buffer) -> CoDel<P> {
        CoDel { config, law: ControlLaw::default(), queue: DropTail::new(limit) }
    }
}

impl<P> Queue<P> for CoDel<P> {
    fn enqueue(&mut self, packet: Queued<P>, link: LinkState, drops: Drops<'_, P>) {
        self.queue.enqueue(packet, link, drops);
    }

    fn dequeue(&mut self, now: Time, drops: Drops<'_, P>) -> Option<Queued<P>> {
        let queue = &mut self.queue;
        let pop = &mut || queue.pop().map(|packet| (packet, queue.bytes()));
        self.law.dequeue(&self.config, now, pop, drops)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

/// The state of CoDel for one queue, in the words of RFC 8289 §5.3.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ControlLaw {
    /// When packets will have waited above the target for an interval; `None` while they do not.
    first_above: Option<Time>,
    /// When the next packet is dropped, in the dropping state.
    drop_next: Time,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when it was.
    last_count: u32,
    dropping: bool,
}

/// Takes the first packet off a queue: it, and the bytes behind it.
type Pop<'a, P> = &'a mut dyn FnMut() -> Option<(Queued<P>, Bytes)>;

impl ControlLaw {
    /// The packet that is to be sent at `now` (RFC 8289 §5.5).
    pub(crate) fn dequeue<P>(
        &mut self,
        config: &CoDelConfig,
        now: Time,
        pop: Pop<'_, P>,
        drops: Drops<'_, P>,
    ) -> Option<Queued<P>> {
        let (mut packet, mut may_drop) = self.take(config, now, pop)?;
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if config.ecn && packet.mark() {
                    self.drop_next = after(self.drop_next, config.interval, self.count);
                    break;
                }
                drops(packet.dropped(now, DropReason::Early));
                (packet, may_drop) = self.take(config, now, pop)?;
                self.dropping = may_drop;
                if may_drop {
                    self.drop_next = after(self.drop_next, config.interval, self.count);
                }
            }
        } else if may_drop {
            let next = if config.ecn && packet.mark() {
                Some(packet)
            } else {
                drops(packet.dropped(now, DropReason::Early));
                self.take(config, now, pop).map(|(packet, _)| packet)
            };
            // If packets waited below the target for a short time only, the rate of drops that helped then is where to start.
            let since = self.count - self.last_count;
            let recent = now.since(self.drop_next) < 16 * config.interval;
            self.count = if since > 1 && recent { since } else { 1 };
            self.last_count = self.count;
            self.drop_next = after(now, config.interval, self.count);
            self.dropping = next.is_some();
            return next;
        }
        Some(packet)
    }

    /// The first packet, and whether it may be dropped (`dodequeue`).
    fn take<P>(&mut self, config: &CoDelConfig, now: Time, pop: Pop<'_, P>) -> Option<(Queued<P>, bool)> {
        let Some((packet, behind)) = pop() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        if now.since(packet.arrived) < config.target || behind <= config.mtu {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now + config.interval);
        Some((packet, now >= first_above))
    }
}

/// The control law (RFC 8289 §3.3): `time + interval / √count`.
fn after(time: Time, interval: Duration, count: u32) -> Time {
    let nanos = interval.as_nanos() as f64 / math::sqrt(f64::from(count));
    time + Duration::from_nanos(math::round(nanos) as u64)
}
