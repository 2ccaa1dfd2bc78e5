//! What a node knows of one child: what it has, how far away it is, what is being repaired for it, and what it says of those
//! below.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Seq, Time};
use weir_wire::mtcp::Ack;

use crate::endpoint::{Locator, PeerId};

use super::config::Config;
use super::delay::{BaseDelay, Timeout};
use super::newcomers::Pace;
use super::window::{Acknowledged, Window};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) peer: PeerId,
    /// Where it takes children itself.
    pub(super) door: Option<Locator>,
    /// It is a receiver itself, as far as is known.
    pub(super) is_receiver: bool,
    /// The check sum of the node that it has lost, until it has said for how many receivers it comes; then 0.
    pub(super) orphan_of: u16,
    pub(super) pace: Pace,
    /// No multicast leads to it.
    pub(super) is_cut_off: bool,
    /// It has all packets below.
    start: Seq,
    /// Of the packets from `start` on it has those whose bit is set.
    beyond: u64,
    /// Relative time delay, and round trip.
    pub(super) rtd: Timeout,
    pub(super) rtt: Timeout,
    base_rtd: BaseDelay,
    /// Of the queuing delay of late, if it is smoothed so.
    recent: Option<BaseDelay>,
    slack: f64,
    base_rtt: BaseDelay,
    /// By how much the relative delay is above its base, seconds.
    excess: f64,
    rate: DeliveryRate,
    pub(super) summary: Summary,
    /// When it is probed next where children are probed one by one, and how much later than that for once.
    pub(super) next_probe: Time,
    pub(super) stagger: Duration,
    /// Which of the nodes above it is told of next.
    pub(super) turn: usize,
    /// Probes since it was heard last.
    pub(super) unanswered: u32,
    /// The packet that its last acknowledgements named first among the missing, and how many of them did.
    nacked: (Seq, u32),
    repairs: VecDeque<Repair>,
    window: Window,
}

/// What a node says of its subtree, and where it stands itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    /// Packets; without bound at a node that has no children.
    pub(super) min_cwnd: f64,
    /// Packets.
    pub(super) max_twnd: f64,
    /// There is room for lower numbers.
    pub(super) limit: Seq,
    /// All below have all lower numbers.
    pub(super) low_mark: Seq,
    /// Receivers in the subtree.
    pub(super) receivers: u32,
    /// All below have the whole stream.
    pub(super) is_complete: bool,
}

/// A packet that is sent again to this child.
#[derive(Debug, Clone, Copy)]
struct Repair {
    number: Seq,
    /// When it was sent last; `None` while it waits for the window.
    sent: Option<Time>,
    /// When it is overdue, from `sent` on.
    timeout: Duration,
    is_repeated: bool,
}

/// Packets that a child acknowledges, per second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DeliveryRate {
    rate: Option<f64>,
    since: Time,
    packets: u64,
}

impl DeliveryRate {
    /// `packets` more are acknowledged.
    pub(super) fn count(&mut self, now: Time, packets: u64) {
        self.packets += packets;
        let elapsed = now.since(self.since);
        // An acknowledgement without news says nothing of the path.
        if elapsed < RATE_SPAN || packets == 0 {
            return;
        }
        let measured = self.packets as f64 / elapsed.as_secs_f64();
        self.rate = Some(self.rate.map_or(measured, |rate| (rate + measured) / 2.0));
        (self.since, self.packets) = (now, 0);
    }

    /// Packets a second, once that is known.
    pub(super) fn value(&self) -> Option<f64> {
        self.rate
    }
}

impl Child {
    /// A child that has nothing from `first` on.
    pub(super) fn new(peer: PeerId, first: Seq, now: Time, config: &Config, packet_size: u64) -> Child {
        Child {
            peer,
            door: None,
            is_receiver: true,
            orphan_of: 0,
            pace: Pace::default(),
            is_cut_off: false,
            start: first,
            beyond: 0,
            rtd: Timeout::new(config.floor),
            rtt: Timeout::new(LEAST_REPAIR_TIMEOUT),
            base_rtd: BaseDelay::new(config.base_of),
            recent: config.queue_of.map(|span| BaseDelay::new(Some(span))),
            slack: config.slack.as_secs_f64(),
            base_rtt: BaseDelay::new(config.base_of),
            excess: 0.0,
            rate: DeliveryRate { since: now, ..DeliveryRate::default() },
            summary: Summary {
                min_cwnd: f64::INFINITY,
                max_twnd: 0.0,
                limit: first,
                low_mark: first,
                receivers: 0,
                is_complete: false,
            },
            next_probe: now,
            stagger: Duration::ZERO,
            turn: 0,
            unanswered: 0,
            nacked: (first, 0),
            repairs: VecDeque::new(),
            window: Window::new(config, packet_size, 1.0),
        }
    }

    pub(super) fn has(&self, number: Seq) -> bool {
        number < self.start || (number.since(self.start) < 64 && self.beyond >> number.since(self.start) & 1 == 1)
    }

    /// Takes what an acknowledgement says has come, up to `next`; gives each number that is news. Whether it is plausible.
    pub(super) fn take(&mut self, now: Time, ack: &Ack, next: Seq, mut news: impl FnMut(Seq)) -> bool {
        let said = self.start.extend(ack.start, 32);
        if said > next {
            return false;
        }
        // A packet that was not sent yet is somebody else's (decision 14).
        let ack_received = ack.received & below(next.value() - said.value());
        let start = said.max(self.start);
        let mut count = 0;
        for number in (self.start.value()..start.value()).map(Seq::new) {
            if !self.has(number) {
                count += 1;
                news(number);
            }
        }
        let known = shifted(self.beyond, start.since(self.start));
        let received = shifted(ack_received, start.since(said));
        self.beyond = known | received;
        self.start = start;
        let mut new = received & !known;
        while new != 0 {
            count += 1;
            news(Seq::new(start.value() + u64::from(new.trailing_zeros())));
            new &= new - 1;
        }
        // What came out of order may close the gap at the front.
        let run = u64::from(self.beyond.trailing_ones());
        self.start = Seq::new(start.value() + run);
        self.beyond = shifted(self.beyond, run);
        self.rate.count(now, count);
        true
    }

    /// Takes what it says of its subtree.
    pub(super) fn note_summary(&mut self, ack: &Ack, has_low_mark: bool) {
        let Summary { limit, low_mark, .. } = self.summary;
        self.summary = Summary {
            min_cwnd: if ack.min_cwnd == u32::MAX { f64::INFINITY } else { f64::from(ack.min_cwnd) / 256.0 },
            max_twnd: f64::from(ack.max_twnd) / 256.0,
            limit: limit.extend(ack.limit, 32).max(limit),
            low_mark: match has_low_mark {
                true => low_mark.extend(ack.low_mark, 32).clamp(low_mark, self.start),
                false => self.start,
            },
            receivers: ack.receivers.into(),
            is_complete: self.summary.is_complete | ack.is_complete,
        };
    }

    /// A relative delay was measured: with, and without the time that the packet waited for its acknowledgement.
    pub(super) fn note_delay(&mut self, now: Time, whole: f64, bare: f64) {
        self.rtd.sample(whole);
        let excess = self.base_rtd.excess(now, bare);
        let least = self.recent.as_mut().map_or(excess, |recent| recent.least(now, excess));
        self.excess = (least - self.slack).max(0.0);
    }

    /// Packets of the flow that wait in queues on the way to this child: Diff × its delivery rate.
    pub(super) fn backlog(&self) -> f64 {
        self.excess * self.rate.value().unwrap_or(0.0)
    }

    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.value()
    }

    /// How many acknowledgements in a row have named the same packet first among the missing.
    pub(super) fn count_nacks(&mut self) -> u32 {
        let (number, count) = self.nacked;
        self.nacked = (self.start, if number == self.start { count + 1 } else { 1 });
        self.nacked.1
    }

    /// What is missing of the packets that an acknowledgement reports on.
    pub(super) fn missing(&self, ack: &Ack) -> impl Iterator<Item = Seq> + use<> {
        let (start, beyond) = (self.start, self.beyond);
        let said = start.extend(ack.start, 32);
        let reported = (said.value() + u64::from(ack.reported)).saturating_sub(start.value()).min(64);
        (0..reported).filter(move |bit| beyond >> bit & 1 == 0).map(move |bit| Seq::new(start.value() + bit))
    }

    /// Whether it has children of its own: its window has a bound then.
    pub(super) fn has_children(&self) -> bool {
        self.summary.min_cwnd.is_finite()
    }

    /// The newest packet that it lacks although it has three later ones (RFC 6675 §2).
    pub(super) fn lost(&self) -> Option<Seq> {
        let mut later = self.beyond;
        (1..LATER_PACKETS).for_each(|_| later = without_highest(later));
        let below = (1_u64.checked_shl(later.checked_ilog2()?).unwrap_or(0)).wrapping_sub(1);
        let missing = !self.beyond & below;
        Some(Seq::new(self.start.value() + u64::from(missing.checked_ilog2()?)))
    }

    /// The first packet that it lacks.
    pub(super) fn start(&self) -> Seq {
        self.start
    }

    /// A round trip was measured.
    pub(super) fn note_round_trip(&mut self, now: Time, round_trip: Duration) {
        self.rtt.sample(round_trip.as_secs_f64());
        self.base_rtt.excess(now, round_trip.as_secs_f64());
    }

    /// Asks for a packet to be sent again, unless that was done within a round trip (§3.1).
    pub(super) fn request(&mut self, now: Time, number: Seq) {
        let round_trip = Duration::from_secs_f64(self.rtt.average().unwrap_or(FIRST_ROUND_TRIP).max(0.0));
        let timeout = self.repair_timeout();
        match self.repairs.iter_mut().find(|repair| repair.number == number) {
            None => self.repairs.push_back(Repair { number, sent: None, timeout, is_repeated: false }),
            Some(repair) if repair.sent.is_some_and(|sent| now >= sent + round_trip) => {
                (repair.sent, repair.is_repeated) = (None, true);
            }
            Some(_) => {}
        }
    }

    /// Asks for the packets that it lacks first, up to `next`.
    pub(super) fn request_ahead(&mut self, now: Time, next: Seq) {
        let end = next.value().min(self.start.value() + MOST_AHEAD);
        let lacking = (self.start.value()..end).map(Seq::new).filter(|number| !self.has(*number));
        let lacking: Vec<Seq> = lacking.collect();
        lacking.into_iter().for_each(|number| self.request(now, number));
    }

    /// Whether a packet is being sent again, so that its own timer is that of the repair (§3.5).
    pub(super) fn is_repairing(&self, number: Seq) -> bool {
        self.repairs.iter().any(|repair| repair.number == number)
    }

    /// RTO_RTT.
    fn repair_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.rtt.value().unwrap_or(FIRST_ROUND_TRIP).max(1e-3))
    }

    /// Drops the repairs of what has come; they open the window.
    pub(super) fn settle_repairs(&mut self, now: Time, config: &Config) {
        let (mut repairs, next) = (core::mem::take(&mut self.repairs), self.newest_repair());
        repairs.retain(|repair| {
            let is_done = self.has(repair.number);
            if let (true, Some(sent)) = (is_done, repair.sent) {
                let delay = now.since(sent).as_secs_f64();
                let excess = if repair.is_repeated { 0.0 } else { self.base_rtt.excess(now, delay) };
                let base = (delay - excess).max(1e-6);
                // Vegas (Brakmo et al.): what the window could carry, less what it does.
                let backlog = self.window.size() * excess / (base + excess);
                let round_trip = self.rtt.average().unwrap_or(FIRST_ROUND_TRIP);
                self.window
                    .on_acknowledged(config, &Acknowledged { now, number: repair.number, next, backlog, round_trip });
            }
            !is_done
        });
        self.repairs = repairs;
    }

    fn newest_repair(&self) -> Seq {
        self.repairs.iter().map(|repair| repair.number.next()).max().unwrap_or(self.start)
    }

    /// Sends what the window allows of what has `is_here`: each goes to `send`.
    pub(super) fn send_repairs(
        &mut self,
        now: Time,
        config: &Config,
        is_here: impl Fn(Seq) -> bool,
        mut send: impl FnMut(Seq),
    ) {
        let next = self.newest_repair();
        for repair in &mut self.repairs {
            if repair.sent.is_some_and(|sent| sent + repair.timeout <= now) {
                self.window.on_timeout(config, repair.number, next);
                (repair.sent, repair.is_repeated) = (None, true);
                repair.timeout = (2 * repair.timeout).min(MOST_REPAIR_TIMEOUT);
            }
        }
        let on_way = self.repairs.iter().filter(|repair| repair.sent.is_some()).count();
        let room = (self.window.size() as usize).saturating_sub(on_way);
        let waiting = self.repairs.iter_mut().filter(|repair| repair.sent.is_none() && is_here(repair.number));
        for repair in waiting.take(room) {
            repair.sent = Some(now);
            send(repair.number);
        }
    }

    /// When the next repair is overdue.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.repairs.iter().filter_map(|repair| Some(repair.sent? + repair.timeout)).min()
    }
}

fn without_highest(bits: u64) -> u64 {
    bits.checked_ilog2().map_or(0, |highest| bits & !(1 << highest))
}

/// Without the lowest `by` bits.
fn shifted(bits: u64, by: u64) -> u64 {
    bits.checked_shr(u32::try_from(by).unwrap_or(u32::MAX)).unwrap_or(0)
}

/// As many of the lowest bits.
fn below(count: u64) -> u64 {
    1_u64.checked_shl(u32::try_from(count).unwrap_or(u32::MAX)).map_or(u64::MAX, |bit| bit - 1)
}

/// Repairs at a time of a child that catches up.
const MOST_AHEAD: u64 = 64;
/// As many packets have overtaken one that is lost (RFC 6675 §2: DupThresh).
const LATER_PACKETS: u32 = 3;
/// Over how long a delivery rate is measured: several acknowledgements.
const RATE_SPAN: Duration = Duration::from_millis(100);
/// A round trip until one is measured, seconds (RFC 6298 §2.1).
const FIRST_ROUND_TRIP: f64 = 1.0;
/// A time-out of repairs is at least this far above the average round trip.
const LEAST_REPAIR_TIMEOUT: Duration = Duration::from_millis(10);
const MOST_REPAIR_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Habitat;

    /// The newest loss of a child that has everything below 10, and of what follows the packets whose bit is set.
    fn lost(beyond: u64) -> Option<Seq> {
        let config = Config::refined(Habitat::Lab);
        let mut child = Child::new(PeerId(1), Seq::new(10), Time::ZERO, &config, 1000);
        child.beyond = beyond;
        child.lost()
    }

    #[test]
    fn a_packet_is_lost_once_three_later_ones_are_there() {
        assert_eq!(lost(0), None);
        assert_eq!(lost(0b110), None);
        assert_eq!(lost(0b1110), Some(Seq::new(10)));
        assert_eq!(lost(0b1_1010_1110), Some(Seq::new(14)));
        assert_eq!(lost(u64::MAX << 1), Some(Seq::new(10)));
        assert_eq!(lost(7 << 61), Some(Seq::new(70)));
    }

    #[test]
    fn one_packet_that_comes_late_is_no_queue_where_the_least_delay_counts() {
        let excess = |queue_of: Option<Duration>, delays: &[f64]| {
            let config = Config { queue_of, slack: Duration::ZERO, ..Config::refined(Habitat::Lab) };
            let mut child = Child::new(PeerId(1), Seq::new(0), Time::ZERO, &config, 1000);
            for (millis, delay) in (0..).step_by(4).zip(delays) {
                child.note_delay(Time::from_millis(millis), *delay, *delay);
            }
            child.excess
        };
        let span = Some(Duration::from_millis(20));
        let (late, queue) = ([0.25, 0.25, 0.25, 0.75], [0.25, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75]);
        assert_eq!([excess(None, &late), excess(span, &late)], [0.5, 0.0]);
        assert_eq!([excess(None, &queue), excess(span, &queue)], [0.5, 0.5]);
    }
}
