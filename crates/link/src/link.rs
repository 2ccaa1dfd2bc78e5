//! The link itself.

use alloc::collections::VecDeque;

use weir_units::{Bytes, Random, Rate, Time};

use crate::LinkConfig;
use crate::queue::{Backlog, DropTail, Queue, Queued};

/// One direction of a link: packets wait in a queue, are sent one after the other at the link's rate, may be lost, travel
/// for the propagation delay, and come out in the order in which they were sent.
///
/// The owner says what time it is: with [`Link::enqueue`] when a packet goes in, with [`Link::dequeue`] when it takes out
/// what has arrived, and asks [`Link::next_arrival`] when to come back. Times must not go back.
#[derive(Debug, Clone)]
pub struct Link<P, Q = DropTail<P>> {
    config: LinkConfig,
    queue: Q,
    /// The packet that is being sent, and when it is sent whole.
    sending: Option<(Time, Queued<P>)>,
    /// What the last packet's sending time was rounded down by, in nanoseconds times the rate: carried to the next one,
    /// so that a busy link sends exactly at its rate.
    remainder: u64,
    /// Sent, and when they arrive.
    travelling: VecDeque<(Time, P)>,
    random: Random,
    counters: Counters,
}

/// What a link has done so far, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Came to the link.
    pub received: u64,
    /// Dropped by the queue.
    pub dropped: u64,
    /// Lost at random on the way.
    pub lost: u64,
    /// Came out.
    pub delivered: u64,
    /// Bytes that came out.
    pub delivered_bytes: Bytes,
}

impl<P> Link<P> {
    /// An idle link with a drop-tail queue. `random` decides which packets are lost on the way.
    pub fn new(config: LinkConfig, random: Random) -> Link<P> {
        Link::with_queue(config, DropTail::new(config.buffer), random)
    }
}

impl<P, Q: Queue<P>> Link<P, Q> {
    /// An idle link with a queue of another discipline; `config.buffer` means nothing then.
    pub fn with_queue(config: LinkConfig, queue: Q, random: Random) -> Link<P, Q> {
        Link {
            config,
            queue,
            sending: None,
            remainder: 0,
            travelling: VecDeque::new(),
            random,
            counters: Counters::default(),
        }
    }

    /// A packet of `size` comes to the link at `now`. Gives back the packet that the queue drops for it, if any.
    pub fn enqueue(&mut self, now: Time, size: Bytes, packet: P) -> Result<(), P> {
        self.counters.received += 1;
        let arriving = Queued { size, arrived: now, packet };
        let Some(rate) = self.config.rate else {
            self.depart(now, arriving);
            return Ok(());
        };
        self.advance(now);
        if let Some((sent, _)) = &self.sending {
            let backlog = Backlog { sending_for: sent.since(now), rate };
            return self.queue.enqueue(arriving, backlog).inspect_err(|_| self.counters.dropped += 1);
        }
        self.remainder = 0;
        self.send(now, rate, arriving);
        Ok(())
    }

    /// When the next packet comes out, if any is on the link. A packet that is lost on the way may make this early.
    pub fn next_arrival(&self) -> Option<Time> {
        let on_the_way = self.travelling.front().map(|(arrives, _)| *arrives);
        on_the_way.or_else(|| self.sending.as_ref().map(|(sent, _)| *sent + self.config.delay))
    }

    /// The next packet that has come out by `now`.
    pub fn dequeue(&mut self, now: Time) -> Option<P> {
        self.advance(now);
        self.travelling.front().filter(|(arrives, _)| *arrives <= now)?;
        self.counters.delivered += 1;
        self.travelling.pop_front().map(|(_, packet)| packet)
    }

    /// What the link has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets that wait, as of the last call.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// What the link is like.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Whatever is sent whole by `now` travels.
    fn advance(&mut self, now: Time) {
        while let Some((sent, packet)) = self.sending.take_if(|(sent, _)| *sent <= now) {
            self.depart(sent, packet);
            if let Some(next) = self.queue.dequeue(sent) {
                let rate = self.config.rate.expect("only a link with a rate is ever busy");
                self.send(sent, rate, next);
            }
        }
    }

    fn send(&mut self, now: Time, rate: Rate, packet: Queued<P>) {
        let work = u128::from(packet.size.count()) * 8_000_000_000 + u128::from(self.remainder);
        let (nanos, remainder) = match u64::try_from(work) {
            Ok(work) => (work / rate.bps(), work % rate.bps()),
            Err(_) => ((work / u128::from(rate.bps())) as u64, (work % u128::from(rate.bps())) as u64),
        };
        self.remainder = remainder;
        self.sending = Some((now + core::time::Duration::from_nanos(nanos), packet));
    }

    fn depart(&mut self, sent: Time, packet: Queued<P>) {
        if self.config.loss > 0.0 && self.random.chance(self.config.loss) {
            self.counters.lost += 1;
            return;
        }
        self.counters.delivered_bytes += packet.size;
        self.travelling.push_back((sent + self.config.delay, packet.packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn link(text: &str) -> Link<u32> {
        Link::new(text.parse().expect("a valid link"), Random::new(1, "link"))
    }

    /// Everything that comes out, with its time.
    fn drain(link: &mut Link<u32>) -> Vec<(u64, u32)> {
        let mut out = Vec::new();
        while let Some(at) = link.next_arrival() {
            out.extend(link.dequeue(at).map(|packet| (at.as_nanos(), packet)));
        }
        out
    }

    #[test]
    fn a_packet_takes_its_serialisation_and_the_propagation_delay() {
        let mut link = link("rate=1M,delay=20ms");
        assert_eq!(link.enqueue(Time::from_millis(5), Bytes::new(1000), 7), Ok(()));
        assert_eq!(link.next_arrival(), Some(Time::from_millis(33)));
        assert_eq!(link.dequeue(Time::from_nanos(32_999_999)), None);
        assert_eq!(link.dequeue(Time::from_millis(33)), Some(7));
        assert_eq!(link.next_arrival(), None);
    }

    #[test]
    fn rounding_does_not_add_up_over_a_busy_period() {
        // At 3 bit/s a byte takes 2.666… s; three take eight seconds to the nanosecond.
        let mut link = link("rate=3,buffer=1000p");
        (0..300).for_each(|i| assert_eq!(link.enqueue(Time::ZERO, Bytes::new(1), i), Ok(())));
        let out = drain(&mut link);
        assert_eq!(out[0].0, 2_666_666_666);
        assert_eq!(out.last(), Some(&(800_000_000_000, 299)));
    }

    #[test]
    fn the_buffer_counts_what_waits_and_not_what_is_sent() {
        let accepted = |buffer: &str| {
            let mut link = link(&alloc::format!("rate=8k,buffer={buffer}"));
            let accepted = (0..20).filter(|i| link.enqueue(Time::ZERO, Bytes::new(100), *i).is_ok()).count();
            assert_eq!(link.counters().dropped, 20 - accepted as u64);
            accepted
        };
        // A packet takes 100 ms.
        assert_eq!(accepted("3p"), 4);
        assert_eq!(accepted("399B"), 4);
        assert_eq!(accepted("400B"), 5);
        assert_eq!(accepted("300ms"), 4, "a fifth packet would wait for 400 ms");
        assert_eq!(accepted("0p"), 1);
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut link = link("delay=5ms,buffer=0p");
        (0..100).for_each(|i| assert_eq!(link.enqueue(Time::ZERO, Bytes::new(1500), i), Ok(())));
        assert_eq!(drain(&mut link).len(), 100);
    }

    #[test]
    fn random_loss_strikes_at_its_rate() {
        let mut link = link("loss=10%");
        (0..10_000).for_each(|i| assert_eq!(link.enqueue(Time::ZERO, Bytes::new(1), i), Ok(())));
        let out = drain(&mut link).len() as u64;
        let counters = link.counters();
        assert_eq!((counters.delivered, counters.lost), (out, 10_000 - out));
        assert!((900..1100).contains(&counters.lost), "{counters:?}");
    }

    proptest! {
        #[test]
        fn every_packet_is_delivered_in_order_or_dropped_and_never_faster_than_the_rate(
            packets in proptest::collection::vec((0u64..3_000_000, 40u64..1500), 1..200), bps in 1_000_000u64..100_000_000,
            buffer in prop_oneof![Just("10p"), Just("8kB"), Just("5ms")],
        ) {
            let mut link = link(&alloc::format!("rate={bps},delay=3ms,buffer={buffer}"));
            let mut now = 0;
            let mut out = Vec::new();
            for (i, (gap, size)) in packets.iter().enumerate() {
                now += gap;
                let now = Time::from_nanos(now);
                while let Some(at) = link.next_arrival().filter(|at| *at <= now) {
                    out.extend(link.dequeue(at).map(|packet| (at.as_nanos(), packet)));
                }
                let _ = link.enqueue(now, Bytes::new(*size), i as u32);
            }
            out.extend(drain(&mut link));
            let counters = link.counters();
            prop_assert_eq!(counters.received, counters.delivered + counters.dropped);
            prop_assert_eq!(counters.delivered, out.len() as u64);
            for pair in out.windows(2) {
                prop_assert!(pair[0].1 < pair[1].1, "order");
                let bits = packets[pair[1].1 as usize].1 * 8;
                let least = u128::from(bits) * 1_000_000_000 / u128::from(bps);
                prop_assert!(u128::from(pair[1].0 - pair[0].0) >= least, "too fast");
            }
        }
    }
}
