//! Random early detection (Floyd & Jacobson 1993) as ns-2 has it (`queue/red.cc`), with its gentle variant (Floyd 2000).
//! Not adaptive RED: the maximum probability stays what it is.

use weir_units::{Bytes, Random, Rate, Time, math};

use crate::queue::drop_tail::DropTail;
use crate::queue::{Drops, Queue, Queued};
use crate::{Buffer, DropReason, LinkState};

/// Parameters of RED. ns-2's names in brackets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// Average queue from which on packets are dropped, in packets \[`thresh_`\]. `None`: 5, or half of what the link sends
    /// in 5 ms where that is more.
    pub min_packets: Option<f64>,
    /// Average queue where the probability is `max_p`, in packets \[`maxthresh_`\]. `None`: three times the minimum.
    pub max_packets: Option<f64>,
    /// Probability at the maximum \[1 / `linterm_`\].
    pub max_p: f64,
    /// Weight of a new sample in the average \[`q_weight_`\]. `None`: 1 − e^(−1 / C), where C is what the link sends in a
    /// second, in packets.
    pub weight: Option<f64>,
    /// The probability rises from `max_p` to 1 between the maximum and twice the maximum, not at once \[`gentle_`\].
    pub gentle: bool,
    /// Drops are spread out: after one there is none for a while \[`wait_`\].
    pub wait: bool,
    /// The queue is measured in bytes, by `mean_size` to the packet, and large packets are dropped more often
    /// \[`bytes_`, `queue_in_bytes_`\].
    pub bytes: bool,
    /// Size of a packet, by which an idle time is turned into packets that could have been sent \[`mean_pktsize_`\].
    pub mean_size: Bytes,
    /// Packets that can be marked are marked, not dropped, while the probability is below `mark_p` \[`setbit_`\].
    pub ecn: bool,
    /// See `ecn` \[`mark_p_`\].
    pub mark_p: f64,
}

impl Default for RedConfig {
    /// A weight of 0.002, a maximum probability of 0.1 and gentle, as recommended by Floyd; packets of 500 bytes and the
    /// rest as in ns-2, but that the queue is measured in packets.
    fn default() -> RedConfig {
        RedConfig {
            min_packets: None,
            max_packets: None,
            max_p: 0.1,
            weight: Some(0.002),
            gentle: true,
            wait: true,
            bytes: false,
            mean_size: Bytes::new(500),
            ecn: false,
            mark_p: 0.1,
        }
    }
}

/// A first-in, first-out queue under RED.
#[derive(Debug, Clone)]
pub(crate) struct Red<P> {
    config: RedConfig,
    queue: DropTail<P>,
    random: Random,
    /// What follows from the rate of the link, and that rate.
    derived: Option<(Rate, Derived)>,
    /// In packets, or bytes if so configured.
    average: f64,
    /// Since when nothing waits; `None` while something does or did at the last chance.
    idle_since: Option<Time>,
    /// Packets since the last drop, while the average is above the minimum.
    count: u64,
    /// Their bytes.
    count_bytes: u64,
    /// Whether the average was above the minimum when the last packet came.
    above_min: bool,
}

#[derive(Debug, Clone, Copy)]
struct Derived {
    /// Packets that the link sends in a second.
    packets_per_sec: f64,
    weight: f64,
    min: f64,
    max: f64,
}

impl<P> Red<P> {
    pub(crate) fn new(config: RedConfig, limit: Buffer, random: Random) -> Red<P> {
        Red {
            config,
            queue: DropTail::new(limit),
            random,
            derived: None,
            average: 0.0,
            idle_since: Some(Time::ZERO),
            count: 0,
            count_bytes: 0,
            above_min: false,
        }
    }

    fn derive(&mut self, rate: Rate) -> Derived {
        if let Some((of, derived)) = self.derived
            && of == rate
        {
            return derived;
        }
        let packets_per_sec = rate.packets_per_sec(self.config.mean_size);
        let unit = if self.config.bytes { self.config.mean_size.count() as f64 } else { 1.0 };
        let min = self.config.min_packets.unwrap_or_else(|| f64::max(5.0, TARGET_DELAY_SECS * packets_per_sec / 2.0));
        let max = self.config.max_packets.unwrap_or(3.0 * min);
        let weight = self.config.weight.unwrap_or_else(|| -math::exp_m1(-1.0 / packets_per_sec));
        let derived = Derived { packets_per_sec, weight, min: min * unit, max: max * unit };
        self.derived = Some((rate, derived));
        derived
    }

    /// Updates the average: as if a packet had found an empty queue for each that the link could have sent since it was idle.
    fn measure(&mut self, now: Time, derived: Derived) {
        let idle = self.idle_since.take().map_or(0.0, |since| now.since(since).as_secs_f64());
        let samples = math::floor(idle * derived.packets_per_sec) + 1.0;
        let decay = if samples > 1.0 { math::pow(1.0 - derived.weight, samples) } else { 1.0 - derived.weight };
        let length = if self.config.bytes { self.queue.bytes().count() as f64 } else { self.queue.len() as f64 };
        self.average = self.average * decay + length * derived.weight;
    }

    /// The probability that belongs to the average, before drops are spread out (`calculate_p_new`).
    fn base_probability(&self, derived: Derived) -> f64 {
        let RedConfig { max_p, gentle, .. } = self.config;
        let above_max = self.average / derived.max - 1.0;
        let p = match above_max >= 0.0 {
            true if gentle => max_p + (1.0 - max_p) * above_max,
            true => 1.0,
            false => max_p * (self.average - derived.min) / (derived.max - derived.min),
        };
        p.min(1.0)
    }

    /// The probability for this packet (`modify_p`).
    fn probability(&self, base: f64, size: Bytes) -> f64 {
        let mean_size = self.config.mean_size.count();
        let count = if self.config.bytes { self.count_bytes / mean_size } else { self.count } as f64;
        let expected = count * base;
        let (from, to) = if self.config.wait { (1.0, 2.0) } else { (0.0, 1.0) };
        let p = if expected < from {
            0.0
        } else if expected < to {
            base / (to - expected)
        } else {
            1.0
        };
        if self.config.bytes && p < 1.0 { (p * size.count() as f64 / mean_size as f64).min(1.0) } else { p.min(1.0) }
    }

    /// Whether the packet is to go before the buffer is full. Marks it if that will do.
    fn drops_early(&mut self, packet: &mut Queued<P>, derived: Derived) -> bool {
        self.count += 1;
        self.count_bytes += packet.size.count();
        if self.average < derived.min || self.queue.len() <= 1 {
            self.above_min = false;
            return false;
        }
        if !core::mem::replace(&mut self.above_min, true) {
            // The average has just come above the minimum: drops are spread from here.
            self.count = 1;
            self.count_bytes = packet.size.count();
            return false;
        }
        let base = self.base_probability(derived);
        if self.random.unit() >= self.probability(base, packet.size) {
            return false;
        }
        self.restart_count();
        !(self.config.ecn && base < self.config.mark_p && packet.mark())
    }

    fn restart_count(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }
}

impl<P> Queue<P> for Red<P> {
    fn enqueue(&mut self, mut packet: Queued<P>, link: LinkState, drops: Drops<'_, P>) {
        let now = packet.arrived;
        if let Some(rate) = link.rate {
            let derived = self.derive(rate);
            self.measure(now, derived);
            if self.drops_early(&mut packet, derived) {
                drops(packet.dropped(now, DropReason::Early));
                return;
            }
        }
        if !self.queue.has_room(&packet, link) {
            self.restart_count();
            drops(packet.dropped(now, DropReason::Overflow));
            return;
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, now: Time, _drops: Drops<'_, P>) -> Option<Queued<P>> {
        let next = self.queue.pop();
        self.idle_since = next.is_none().then_some(now);
        next
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

/// What an average queue at the automatic thresholds aims at, in seconds \[`targetdelay_`\].
const TARGET_DELAY_SECS: f64 = 0.005;
