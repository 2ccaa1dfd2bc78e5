//! The link that can do everything: any queueing discipline, a delay that varies, changes while it runs. What a plain link
//! needs is in `fifo`, and faster.

use alloc::collections::VecDeque;

use weir_units::{Bytes, Random, Time};

use crate::fifo::{Out, Parts};
use crate::loss::LossProcess;
use crate::queue::{Discipline, Drops, Queue, Queued};
use crate::serialiser::{Pace, Serialiser};
use crate::{Label, LinkConfig, LinkState, Variation};

/// The loss model of a link that has one.
type LossOf<'a> = &'a mut Option<LossProcess>;

#[derive(Debug, Clone)]
pub(crate) struct General<P> {
    /// `None` is without limit.
    rate: Option<Pace>,
    serialiser: Serialiser,
    /// Propagation delay, nanoseconds.
    delay: u64,
    /// How much time of its rate an idle link saves up, nanoseconds.
    burst: u64,
    variation: Option<Variation>,
    queue: Discipline<P>,
    /// When the packet that is being sent is sent whole; of meaning only while the link is not idle.
    busy_until: Time,
    idle: bool,
    /// What has begun to be sent, by arrival.
    travelling: VecDeque<Out<P>>,
    random: Random,
}

impl<P> General<P> {
    pub(crate) fn new(config: &LinkConfig, mut random: Random) -> General<P> {
        General {
            rate: config.rate.map(Pace::new),
            serialiser: Serialiser::default(),
            delay: config.delay_nanos(),
            burst: config.burst_nanos(),
            variation: config.variation,
            queue: Discipline::new(&config.queue, config.buffer, &mut random),
            busy_until: Time::ZERO,
            idle: true,
            travelling: VecDeque::new(),
            random,
        }
    }

    /// A link of `config` on which there is what was on another at `now`. What waits there stays, also if the new buffer has
    /// less room; its flow is no longer known.
    pub(crate) fn with_parts(
        config: &LinkConfig,
        random: Random,
        parts: Parts<P>,
        now: Time,
        drops: Drops<'_, P>,
    ) -> General<P> {
        let mut link = General::new(config, random);
        link.travelling = parts.travelling;
        link.idle = parts.busy_until.is_none();
        link.busy_until = parts.busy_until.unwrap_or(now);
        let open = LinkState { rate: config.rate, sending_for: None };
        for (size, packet) in parts.waiting {
            let size = Bytes::new(u64::from(size));
            let packet = Queued { size, arrived: now, label: Label::default(), marked: false, packet };
            link.queue.enqueue(packet, open, drops);
        }
        link
    }

    #[inline(never)] // The fast link's code stays small.
    pub(crate) fn enqueue(&mut self, packet: Queued<P>, loss: LossOf<'_>, drops: Drops<'_, P>) {
        let now = packet.arrived;
        self.advance(now, loss, drops);
        let sending_for = (!self.idle).then(|| self.busy_until.since(now));
        let rate = self.rate.map(Pace::rate);
        self.queue.enqueue(packet, LinkState { rate, sending_for }, drops);
        if self.idle {
            // A busy period begins, unless the queue dropped the packet.
            self.idle = false;
            self.busy_until = self.saved_since(now);
            self.serialiser.restart();
            self.advance(now, loss, drops);
        }
    }

    #[inline(never)] // As above.
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        let first = self.travelling.front()?.at;
        // A packet that has not begun to be sent may overtake the first.
        match self.variation {
            Some(variation) if variation.reorder && !self.queue.is_empty() => {
                Some(first.min(after(self.busy_until, variation.least(self.delay))))
            }
            _ => Some(first),
        }
    }

    #[inline(never)] // As above.
    pub(crate) fn dequeue(&mut self, now: Time, loss: LossOf<'_>, drops: Drops<'_, P>) -> Option<Out<P>> {
        self.advance(now, loss, drops);
        self.travelling.front().filter(|out| out.at <= now)?;
        self.travelling.pop_front()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Packets on the link, those that wait among them.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.travelling.len()
    }

    /// Goes on as a link of `new`. The packet that is being sent keeps the rate and the delay that it began with.
    pub(crate) fn change(
        &mut self,
        now: Time,
        old: &LinkConfig,
        new: &LinkConfig,
        loss: LossOf<'_>,
        drops: Drops<'_, P>,
    ) {
        self.advance(now, loss, drops);
        if old.rate != new.rate {
            self.rate = new.rate.map(Pace::new);
            self.serialiser.restart();
        }
        self.delay = new.delay_nanos();
        self.burst = new.burst_nanos();
        self.variation = new.variation;
        if old.queue != new.queue || old.buffer != new.buffer {
            let queue = Discipline::new(&new.queue, new.buffer, &mut self.random);
            let mut before = core::mem::replace(&mut self.queue, queue);
            let open = LinkState { rate: new.rate, sending_for: None };
            while let Some(packet) = before.dequeue(now, drops) {
                self.queue.enqueue(packet, open, drops);
            }
        }
    }

    /// Everything that begins to be sent by `now` does, each at its own time.
    fn advance(&mut self, now: Time, loss: LossOf<'_>, drops: Drops<'_, P>) {
        while !self.idle && self.busy_until <= now {
            match self.queue.dequeue(self.busy_until, drops) {
                Some(packet) => self.begin(packet, loss),
                None => self.idle = true,
            }
        }
    }

    /// Since when what the rate would have sent is saved up, on a link that is idle at `now`.
    fn saved_since(&self, now: Time) -> Time {
        match self.burst {
            0 => now,
            burst => self.busy_until.max(Time::from_nanos(now.as_nanos().saturating_sub(burst))),
        }
    }

    /// The packet is sent from `busy_until` on; what becomes of it is settled here.
    fn begin(&mut self, packet: Queued<P>, loss: LossOf<'_>) {
        let takes = self.rate.map_or(0, |pace| self.serialiser.next(&pace, crate::link::size32(packet.size)));
        self.busy_until = after(self.busy_until, takes);
        let delay = self.variation.map_or(self.delay, |variation| variation.draw(self.delay, &mut self.random));
        // Of what was saved up, a packet goes at once.
        let mut at = after(self.busy_until.max(packet.arrived), delay);
        let mut place = self.travelling.len();
        if self.variation.is_some_and(|variation| variation.reorder) {
            place = self.travelling.partition_point(|out| out.at <= at);
        } else if let Some(last) = self.travelling.back() {
            at = at.max(last.at);
        }
        let out = Out {
            packet: packet.packet,
            size: packet.size,
            at,
            lost: loss.as_mut().is_some_and(LossProcess::strikes),
            marked: packet.marked,
        };
        self.travelling.insert(place, out);
    }
}

fn after(time: Time, nanos: u64) -> Time {
    Time::from_nanos(time.as_nanos().saturating_add(nanos))
}
