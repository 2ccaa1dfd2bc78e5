//! The link as its owner sees it.

use alloc::boxed::Box;
use alloc::sync::Arc;

use weir_units::{Bytes, Random, Time};

use crate::fifo::Fifo;
use crate::general::General;
use crate::loss::LossProcess;
use crate::queue::Queued;
use crate::{Delivered, DropReason, Dropped, Label, LinkConfig, Loss, QueueConfig};

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
    /// `None` if nothing is lost on the way.
    loss: Option<Box<LossProcess>>,
    /// For the streams of what the link may need later.
    seed: u64,
    counters: Counters,
    config: Arc<LinkConfig>,
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
    ///
    /// Links of one kind may share their description.
    pub fn new(config: impl Into<Arc<LinkConfig>>, random: Random) -> Link<P> {
        let config = config.into();
        let seed = random.clone().bits();
        let plain = config.queue == QueueConfig::DropTail && config.variation.is_none();
        let engine = if plain {
            Engine::Fifo(Fifo::new(config.rate, config.delay_nanos(), config.buffer))
        } else {
            Engine::General(Box::new(General::new(&config, Random::new(seed, "queue and delay"))))
        };
        let loss = (config.loss != Loss::None).then(|| Box::new(LossProcess::new(config.loss.clone(), random)));
        Link { engine, loss, seed, counters: Counters::default(), config }
    }

    /// A packet of `size` comes to the link at `now`. Whatever is dropped by then goes to `drops`.
    ///
    /// # Panics
    ///
    /// If the packet has 2 GiB or more.
    #[inline]
    pub fn enqueue(&mut self, now: Time, size: Bytes, label: Label, packet: P, drops: &mut impl FnMut(Dropped<P>)) {
        self.counters.received += 1;
        let loss = &mut self.loss;
        match &mut self.engine {
            Engine::Fifo(fifo) => {
                let strikes = || loss.as_mut().is_some_and(|loss| loss.strikes());
                if let Err(packet) = fifo.enqueue(now, size32(size), packet, strikes) {
                    self.counters.dropped += 1;
                    drops(Dropped { packet, size, at: now, reason: DropReason::Overflow });
                }
            }
            Engine::General(general) => {
                let packet = Queued { size, arrived: now, label, marked: false, packet };
                general.enqueue(packet, loss, &mut |dropped| {
                    self.counters.dropped += 1;
                    drops(dropped);
                });
            }
        }
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
                Engine::Fifo(fifo) => fifo.dequeue(now),
                Engine::General(general) => general.dequeue(now, &mut self.loss, &mut |dropped| {
                    self.counters.dropped += 1;
                    drops(dropped);
                }),
            }?;
            if out.lost {
                self.counters.lost += 1;
                drops(Dropped { packet: out.packet, size: out.size, at: out.at, reason: DropReason::Lost });
                continue;
            }
            self.counters.delivered += 1;
            self.counters.delivered_bytes += out.size;
            self.counters.marked += u64::from(out.marked);
            return Some(Delivered { packet: out.packet, at: out.at, marked: out.marked });
        }
    }

    /// Becomes a link of `config` at `now`. What waits stays, what is being sent or travels goes on as it began; without
    /// reordering, what comes later does not overtake it.
    ///
    /// A queue of another discipline or another buffer takes over what waits, in the order in which it would have been sent,
    /// and applies its limit from the next packet on.
    pub fn change(&mut self, now: Time, config: LinkConfig, drops: &mut impl FnMut(Dropped<P>)) {
        let drops = &mut |dropped| {
            self.counters.dropped += 1;
            drops(dropped);
        };
        match &mut self.engine {
            Engine::Fifo(fifo) => {
                let parts = core::mem::replace(fifo, Fifo::new(None, 0, config.buffer)).take_apart(now);
                if let Some(loss) = &mut self.loss {
                    loss.take_back(parts.waiting.len());
                }
                let random = Random::new(self.seed, "queue and delay");
                self.engine = Engine::General(Box::new(General::with_parts(&config, random, parts, now, drops)));
            }
            Engine::General(general) => general.change(now, &self.config, &config, &mut self.loss, drops),
        }
        match &mut self.loss {
            Some(loss) => loss.change(&config.loss),
            None if config.loss == Loss::None => {}
            loss @ None => {
                let random = Random::new(self.seed, "loss from a change on");
                *loss = Some(Box::new(LossProcess::new(config.loss.clone(), random)));
            }
        }
        self.config = Arc::new(config);
    }

    /// What the link has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
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
        &self.config
    }
}

/// The size of a packet where room is scarce.
#[inline]
pub(crate) fn size32(size: Bytes) -> u32 {
    u32::try_from(size.count()).ok().filter(|size| *size < 1 << 31).expect("a packet has less than 2 GiB")
}
