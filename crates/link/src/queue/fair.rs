//! Fair queueing (Demers, Keshav & Shenker 1989): packets leave in the order in which a link that serves all flows at once,
//! bit by bit in turn, would have finished them. Their promptness δ is zero.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use weir_units::{Bytes, Rate, Time};

use crate::queue::flows::{DropFrom, End, FlowIndex, Flows};
use crate::queue::{Drops, Queue, Queued};
use crate::{Buffer, DropReason, LinkState};

/// Parameters of fair queueing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FairConfig {
    /// Which packet goes when the buffer is full. The longest queue loses its last packet; `Own` is ns-2's `FQ` with a drop-tail
    /// queue for each flow.
    pub drop: DropFrom,
}

/// Flows served by finish number.
#[derive(Debug, Clone)]
pub(crate) struct Fair<P> {
    config: FairConfig,
    limit: Buffer,
    flows: Flows<P, VecDeque<Numbers>>,
    /// Finish number, number of arrival and flow of the first packet of each flow.
    first: BTreeSet<(Number, u64, FlowIndex)>,
    arrivals: u64,
    clock: RoundClock,
}

/// What the bit-by-bit link does with a packet.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    start: f64,
    finish: f64,
    arrival: u64,
}

impl<P> Fair<P> {
    pub(crate) fn new(config: FairConfig, limit: Buffer) -> Fair<P> {
        Fair { config, limit, flows: Flows::new(), first: BTreeSet::new(), arrivals: 0, clock: RoundClock::default() }
    }

    fn key(&mut self, flow: FlowIndex) -> Option<(Number, u64, FlowIndex)> {
        let numbers = self.flows.get(flow).state.front()?;
        Some((Number::of(numbers.finish), numbers.arrival, flow))
    }

    fn drop_from_longest(&mut self, now: Time, drops: Drops<'_, P>) {
        let longest = self.flows.longest();
        let numbers = self.flows.get(longest).state.pop_back().expect("each packet has its numbers");
        let (victim, gone) = self.flows.take(longest, End::Last);
        if gone {
            self.first.remove(&(Number::of(numbers.finish), numbers.arrival, longest));
        }
        self.clock.take_back(victim.label.flow, numbers.start);
        drops(victim.dropped(now, DropReason::Overflow));
    }
}

impl<P> Queue<P> for Fair<P> {
    fn enqueue(&mut self, packet: Queued<P>, link: LinkState, drops: Drops<'_, P>) {
        let (now, size, label) = (packet.arrived, packet.size, packet.label.flow);
        self.clock.advance(now, link.rate);
        if self.config.drop == DropFrom::Own && self.flows.own_is_full(&packet, self.limit, link) {
            drops(packet.dropped(now, DropReason::Overflow));
            return;
        }
        let (flow, is_new) = self.flows.push(packet);
        let (start, finish) = self.clock.add(label, size);
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.flows.get(flow).state.push_back(Numbers { start, finish, arrival });
        if is_new {
            self.first.insert((Number::of(finish), arrival, flow));
        }
        while self.config.drop == DropFrom::Longest && self.flows.too_much(self.limit, size, link) {
            self.drop_from_longest(now, drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: Drops<'_, P>) -> Option<Queued<P>> {
        let (_, _, flow) = self.first.pop_first()?;
        self.flows.get(flow).state.pop_front();
        let next = self.key(flow);
        let (packet, _) = self.flows.take(flow, End::First);
        self.first.extend(next);
        Some(packet)
    }

    fn len(&self) -> usize {
        self.flows.len()
    }

    fn bytes(&self) -> Bytes {
        self.flows.bytes()
    }
}

/// The bit-by-bit link: its round number R(t), in bytes that each flow with something to send has sent.
///
/// R starts again from zero when that link has nothing left to send. A double keeps it to a thousandth of a byte over 10^12
/// bytes of each flow without a pause.
#[derive(Debug, Clone, Default)]
struct RoundClock {
    round: f64,
    as_of: Time,
    /// The last finish number of each flow that is not done, which is above `round`.
    last_finish: BTreeMap<u64, f64>,
    /// The same, by finish number.
    by_finish: BTreeSet<(Number, u64)>,
}

impl RoundClock {
    fn advance(&mut self, now: Time, rate: Option<Rate>) {
        let span = now.since(self.as_of).as_secs_f64();
        let mut bytes = rate.map_or(f64::INFINITY, |rate| rate.bps() as f64 / 8.0 * span);
        self.as_of = now;
        while let Some(&(finish, flow)) = self.by_finish.first() {
            let flows = self.by_finish.len() as f64;
            let until_done = (finish.value() - self.round) * flows;
            if until_done > bytes {
                self.round += bytes / flows;
                return;
            }
            bytes -= until_done;
            self.round = finish.value();
            self.by_finish.pop_first();
            self.last_finish.remove(&flow);
        }
        self.round = 0.0;
    }

    /// Start and finish number of a packet that comes: `S = max(F of the one before, R)`, `F = S + size`.
    fn add(&mut self, flow: u64, size: Bytes) -> (f64, f64) {
        let start = self.last_finish.get(&flow).copied().unwrap_or(self.round);
        let finish = start + size.count() as f64;
        self.set(flow, finish);
        (start, finish)
    }

    /// The last packet of a flow, which started at `start`, is not sent after all.
    fn take_back(&mut self, flow: u64, start: f64) {
        if self.last_finish.contains_key(&flow) {
            self.set(flow, start);
        }
    }

    fn set(&mut self, flow: u64, finish: f64) {
        if let Some(before) = self.last_finish.remove(&flow) {
            self.by_finish.remove(&(Number::of(before), flow));
        }
        if finish > self.round {
            self.last_finish.insert(flow, finish);
            self.by_finish.insert((Number::of(finish), flow));
        }
    }
}

/// A finite number of zero or more; the bits of such are in the order of their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Number(u64);

impl Number {
    fn of(value: f64) -> Number {
        debug_assert!(value >= 0.0 && value.is_finite(), "round numbers grow from zero");
        Number(value.to_bits())
    }

    fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}
