//! The link as its owner sees it.

use alloc::boxed::Box;

use weir_units::{Bytes, Random, Time};

use crate::fifo::Fifo;
use crate::general::General;
use crate::loss::LossProcess;
use crate::queue::Queued;
use crate::{Delivered, DropReason, Dropped, Label, LinkConfig, LinkKind, Loss};

/// One direction of a link: packets wait in a queue, are sent one after the other at the link's rate, may be lost, travel
/// for the propagation delay, and come out, in the order in which they were sent unless the delay varies and may reorder.
///
/// The owner says what time it is: with [`Link::enqueue`] when a packet goes in, with [`Link::dequeue`] when it takes out
/// what has arrived, and asks [`Link::next_arrival`] when to come back. Times must not go back. What the link did between
/// two calls it did at its own exact times. Each packet that goes in is given back once: by `dequeue`, or to the `drops`
/// of some call, at the latest at the time for which `next_arrival` asked.
#[derive(Debug, Clone)]
pub struct Link<P> {
    engine: Engine<P>,
    kind: LinkKind,
    delivered: u64,
    delivered_bytes: Bytes,
    rare: Box<Rare>,
}

/// What most packets on most links have no need of, and do not fetch.
#[derive(Debug, Clone)]
struct Rare {
    /// `None` if nothing is lost on the way.
    loss: Option<LossProcess>,
    /// For the streams of what the link may need later.
    seed: u64,
    dropped: u64,
    lost: u64,
    marked: u64,
}

#[derive(Debug, Clone)]
enum Engine<P> {
    Fifo(Fifo<P>),
    General(Box<General<P>>),
}

/// What a link has done so far, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Came to the link.
    pub received: u64,
    /// Dropped by the queue.
    pub dropped: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Came out.
    pub delivered: u64,
    /// Bytes that came out.
    pub delivered_bytes: Bytes,
    /// Of those that came out, marked by the queue.
    pub marked: u64,
}

impl<P> Link<P> {
    /// An idle link. `random` decides which packets are lost, how delays vary, and what its queue leaves to luck.
    pub fn new(kind: impl Into<LinkKind>, random: Random) -> Link<P> {
        let kind = kind.into();
        let config = kind.config();
        let seed = random.clone().bits();
        let engine = if kind.is_plain() {
            Engine::Fifo(Fifo::new())
        } else {
            Engine::General(Box::new(General::new(config, Random::new(seed, "queue and delay"))))
        };
        let loss = (config.loss != Loss::None).then(|| LossProcess::new(config.loss.clone(), random));
        let rare = Box::new(Rare { loss, seed, dropped: 0, lost: 0, marked: 0 });
        Link { engine, kind, delivered: 0, delivered_bytes: Bytes::ZERO, rare }
    }

    /// A packet of `size` comes to the link at `now`. Whatever is dropped by then goes to `drops`.
    ///
    /// # Panics
    ///
    /// If the packet has 2 GiB or more.
    #[inline]
    pub fn enqueue(&mut self, now: Time, size: Bytes, label: Label, packet: P, drops: &mut impl FnMut(Dropped<P>)) {
        match &mut self.engine {
            Engine::Fifo(fifo) => {
                let plain = self.kind.plain();
                let lost = || plain.loses && self.rare.loss.as_mut().is_some_and(LossProcess::strikes);
                if let Err(packet) = fifo.enqueue(plain, now, size32(size), packet, lost) {
                    self.rare.dropped += 1;
                    drops(Dropped { packet, size, at: now, reason: DropReason::Overflow });
                }
            }
            Engine::General(general) => {
                let Rare { loss, dropped, .. } = &mut *self.rare;
                let packet = Queued { size, arrived: now, label, marked: false, packet };
                general.enqueue(packet, loss, &mut counting(dropped, drops));
            }
        }
    }

    /// Whether it makes a difference which labels packets have: a drop-tail link looks at none.
    #[inline]
    pub fn reads_labels(&self) -> bool {
        matches!(self.engine, Engine::General(_))
    }

    /// When the link wants to be looked at, if any packet is on it: the next packet comes out then, or not before if packets
    /// are lost or may overtake each other.
    #[inline]
    pub fn next_arrival(&self) -> Option<Time> {
        match &self.engine {
            Engine::Fifo(fifo) => fifo.next_arrival(),
            Engine::General(general) => general.next_arrival(),
        }
    }

    /// The next packet that has come out by `now`. Whatever is dropped or lost by then goes to `drops`.
    #[inline]
    pub fn dequeue(&mut self, now: Time, drops: &mut impl FnMut(Dropped<P>)) -> Option<Delivered<P>> {
        loop {
            let out = match &mut self.engine {
                Engine::Fifo(fifo) => fifo.dequeue(self.kind.plain(), now),
                Engine::General(general) => {
                    let Rare { loss, dropped, .. } = &mut *self.rare;
                    general.dequeue(now, loss, &mut counting(dropped, drops))
                }
            }?;
            if out.lost {
                self.rare.lost += 1;
                drops(Dropped { packet: out.packet, size: out.size, at: out.at, reason: DropReason::Lost });
                continue;
            }
            self.delivered += 1;
            self.delivered_bytes += out.size;
            if out.marked {
                self.rare.marked += 1;
            }
            return Some(Delivered { packet: out.packet, at: out.at, marked: out.marked });
        }
    }

    /// Becomes a link of `config` at `now`. What waits stays, what is being sent or travels goes on as it began; without
    /// reordering, what comes later does not overtake it.
    ///
    /// A queue of another discipline or another buffer takes over what waits, in the order in which it would have been sent,
    /// and applies its limit from the next packet on.
    pub fn change(&mut self, now: Time, config: LinkConfig, drops: &mut impl FnMut(Dropped<P>)) {
        let Rare { loss, seed, dropped, .. } = &mut *self.rare;
        let drops = &mut counting(dropped, drops);
        match &mut self.engine {
            Engine::Fifo(fifo) => {
                let parts = core::mem::replace(fifo, Fifo::new()).take_apart(self.kind.plain(), now);
                if let Some(loss) = loss {
                    loss.take_back(parts.waiting.len());
                }
                let random = Random::new(*seed, "queue and delay");
                self.engine = Engine::General(Box::new(General::with_parts(&config, random, parts, now, drops)));
            }
            Engine::General(general) => general.change(now, self.kind.config(), &config, loss, drops),
        }
        match loss {
            Some(loss) => loss.change(&config.loss),
            None if config.loss == Loss::None => {}
            None => *loss = Some(LossProcess::new(config.loss.clone(), Random::new(*seed, "loss from a change on"))),
        }
        self.kind = config.into();
    }

    /// What the link has done so far.
    pub fn counters(&self) -> Counters {
        let Rare { dropped, lost, marked, .. } = *self.rare;
        let on_the_link = match &self.engine {
            Engine::Fifo(fifo) => fifo.len(),
            Engine::General(general) => general.len(),
        };
        Counters {
            received: dropped + lost + self.delivered + on_the_link as u64,
            dropped,
            lost,
            delivered: self.delivered,
            delivered_bytes: self.delivered_bytes,
            marked,
        }
    }

    /// Packets that wait at `now`, not counting the one that is being sent. A link that is not drop-tail says what it was
    /// after the last call.
    pub fn waiting(&self, now: Time) -> usize {
        match &self.engine {
            Engine::Fifo(fifo) => fifo.waiting(now),
            Engine::General(general) => general.waiting(),
        }
    }

    /// What the link is like.
    pub fn config(&self) -> &LinkConfig {
        self.kind.config()
    }
}

/// Counts what is dropped on its way to `drops`.
fn counting<P>(dropped: &mut u64, drops: &mut impl FnMut(Dropped<P>)) -> impl FnMut(Dropped<P>) {
    move |packet| {
        *dropped += 1;
        drops(packet);
    }
}

/// The size of a packet where room is scarce.
#[inline]
pub(crate) fn size32(size: Bytes) -> u32 {
    u32::try_from(size.count()).ok().filter(|size| *size < 1 << 31).expect("a packet has less than 2 GiB")
}
