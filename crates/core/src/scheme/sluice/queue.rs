//! Whether a queue stands on the path: the least queuing delay of each slot, outside bursts.

use core::time::Duration;

use super::cycle::CYCLE;
use super::own_losses::Met;

/// The least delays of the last slots.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    /// The newest first; slots without a packet outside bursts are left out.
    seen: [Option<Slot>; SLOTS],
    left: LeftByBurst,
    /// The least of the slot that is under way.
    current: Option<Duration>,
    /// The longest delays of the last two spans of [`SPAN`] slots, and how many slots the newer one has.
    longest: [Duration; 2],
    slots: u32,
    /// The longest queues that stood for [`LATELY`] slots on end, in the same spans.
    highest: [Duration; 2],
    /// The longest delay of each of the last cycles, the newest first.
    longest_of_cycle: [Option<Duration>; CYCLES],
    /// The least delay of each of the last cycles, the newest first, since the latest loss event.
    least_of_cycle: [Option<Duration>; FLAT_CYCLES],
    /// The least delays of any packet in the last slots, the newest first; before them the slot that is under way.
    least_of_any: [Option<Duration>; 1 + GONE],
}

/// What a slot saw.
#[derive(Debug, Clone, Copy)]
struct Slot {
    least: Duration,
    /// It is what a burst for the next level has left.
    is_of_burst: bool,
}

/// What is left of the queue of the latest burst for the next level.
#[derive(Debug, Clone, Copy, Default)]
enum LeftByBurst {
    /// Nothing: it is gone, or others' queue stood before.
    #[default]
    Nothing,
    /// No slot has ended since.
    Unknown,
    /// So much, in the last slot.
    Seen(Duration),
}

impl LeftByBurst {
    /// What of it is left if the next slot saw this least delay.
    fn after(self, least: Duration) -> LeftByBurst {
        match self {
            LeftByBurst::Unknown => LeftByBurst::Seen(least),
            LeftByBurst::Seen(before) if least < before.mul_f64(FALL) => LeftByBurst::Seen(least),
            LeftByBurst::Seen(_) | LeftByBurst::Nothing => LeftByBurst::Nothing,
        }
    }
}

impl Queue {
    /// A packet outside bursts waited so long.
    pub(super) fn on_packet(&mut self, waited: Duration) {
        self.current = Some(self.current.map_or(waited, |least| least.min(waited)));
    }

    /// A packet, of a burst or not, waited so long.
    pub(super) fn on_any_packet(&mut self, waited: Duration) {
        self.longest[0] = self.longest[0].max(waited);
        let of_cycle = self.longest_of_cycle[0].get_or_insert_default();
        *of_cycle = waited.max(*of_cycle);
        let of_any = self.least_of_any[0].get_or_insert(waited);
        *of_any = waited.min(*of_any);
    }

    /// A slot ends, with or without a burst for the next level. Nothing stood before the burst if its slot saw less than `threshold`.
    pub(super) fn on_slot(&mut self, has_burst: bool, threshold: Duration) {
        self.slots += 1;
        if self.least_of_any[0].is_some() {
            self.least_of_any.rotate_right(1);
            self.least_of_any[0] = None;
        }
        if self.slots.is_multiple_of(CYCLE as u32) && self.longest_of_cycle[0].is_some() {
            self.longest_of_cycle.rotate_right(1);
            self.longest_of_cycle[0] = None;
        }
        if self.slots == SPAN {
            (self.slots, self.longest) = (0, [Duration::ZERO, self.longest[0]]);
            self.highest = [Duration::ZERO, self.highest[0]];
        }
        if let Some(least) = self.current.take() {
            self.left = self.left.after(least);
            self.seen.rotate_right(1);
            self.seen[0] = Some(Slot { least, is_of_burst: matches!(self.left, LeftByBurst::Seen(_)) });
        }
        if self.slots.is_multiple_of(CYCLE as u32) {
            self.least_of_cycle.rotate_right(1);
            self.least_of_cycle[0] = (self.least().count() >= CYCLE as usize).then(|| self.least_of(CYCLE as usize));
        }
        if has_burst {
            self.left = if self.newest() < threshold { LeftByBurst::Unknown } else { LeftByBurst::Nothing };
        }
        if self.seen[LATELY - 1].is_some() {
            self.highest[0] = self.highest[0].max(self.least_of(LATELY));
        }
    }

    /// A loss event began.
    pub(super) fn on_loss_event(&mut self) {
        self.least_of_cycle = [None; FLAT_CYCLES];
    }

    /// By how much the path without queue has become longer. The same least delay in each of the last cycles, and nothing lost, is no queue: one
    /// into which less goes than comes out is soon gone, and one into which more goes grows and overflows.
    pub(super) fn flat(&self) -> Option<Duration> {
        let [least, most] = [Duration::min, Duration::max].map(|choose| {
            let first = self.least_of_cycle[0]?;
            self.least_of_cycle.iter().try_fold(first, |chosen, of| of.map(|of| choose(chosen, of)))
        });
        least.zip(most).filter(|(least, most)| *least >= LEAST_QUEUE && *most - *least <= FLAT).map(|(least, _)| least)
    }

    /// The least delay of the last slot that had one.
    pub(super) fn newest(&self) -> Duration {
        self.least().next().unwrap_or_default()
    }

    /// The least delay of the last `slots` slots.
    pub(super) fn least_of(&self, slots: usize) -> Duration {
        self.least().take(slots).min().unwrap_or_default()
    }

    /// Nothing stands: the last slot saw an empty path, and so did half of the last ten.
    pub(super) fn is_empty(&self, threshold: Duration) -> bool {
        self.newest() < threshold && self.standing(SLOTS, threshold) <= SLOTS / 2
    }

    /// A queue has stood for most of the last second.
    pub(super) fn is_full(&self, threshold: Duration) -> bool {
        self.standing(SLOTS, threshold) >= SLOTS * 7 / 10
    }

    /// A queue has stood of late, so that a loss may be its overflow.
    pub(super) fn stood_lately(&self, threshold: Duration) -> bool {
        self.standing(LATELY, threshold) * 2 >= LATELY
    }

    /// The same of a queue that no burst has left.
    pub(super) fn stood_lately_without_burst(&self, threshold: Duration) -> bool {
        let others = self.seen.iter().flatten().filter(|slot| !slot.is_of_burst).map(|slot| slot.least);
        count(others.take(LATELY), threshold) * 2 >= LATELY
    }

    /// θ: who waits for as long waits in a queue. That is a packet and a half at the rate that the receiver has, as that is what its
    /// own packets may make each other wait; but where queues are short, half of the longest that there was; and no less
    /// than what clocks and hosts vary by.
    pub(super) fn threshold(&self, packet_time: Duration) -> Duration {
        (packet_time * 3 / 2).min(self.longest() / 2).max(LEAST_QUEUE)
    }

    /// The queue that packets met which waited this long. It is about to overflow if it is nearly as long as the longest of the last ten seconds.
    pub(super) fn met(&self, waited: Duration) -> Met {
        match waited {
            _ if waited < LEAST_QUEUE => Met::NoQueue,
            _ if waited < self.longest().mul_f64(NEARLY) => Met::Queue,
            _ => Met::Overflow,
        }
    }

    /// Whether the queue was in all of the last slot about as long as it ever stood, and nearly as long as it became in half of the last
    /// cycles. That is so where a path gets more than it carries. Bursts, which come in nearly every cycle, show that a queue is a short one.
    /// A host that sends or reads late also delays packets, but only in some cycles.
    pub(super) fn is_as_long_as_ever(&self) -> bool {
        let highest = self.longest_standing().max(self.least_of(LATELY));
        highest >= LEAST_FULL && self.newest() >= (highest * 7 / 8).max(self.usual_longest() * 3 / 4)
    }

    /// Whether hardly anything of the longest queue that stood has for half a second, bursts included: where somebody starts, every slot has some. A BBR that
    /// measures its round trip empties its queue for a fifth.
    pub(super) fn has_gone(&self) -> bool {
        let little = (self.longest_standing() / 4).max(LEAST_QUEUE);
        self.least_of_any[1..].iter().all(|least| least.is_some_and(|least| least < little))
    }

    /// The longest queue that stood.
    pub(super) fn longest_standing(&self) -> Duration {
        self.highest[0].max(self.highest[1])
    }

    /// Whether the queue was in all of the last slot at least half as long as it ever stood.
    pub(super) fn is_long(&self) -> bool {
        let longest = self.longest_standing();
        longest >= LEAST_FULL && self.newest() >= longest / 2
    }

    /// The median of the last cycles' longest delays.
    fn usual_longest(&self) -> Duration {
        let mut longest = self.longest_of_cycle;
        longest.sort_unstable();
        let unknown = longest.partition_point(Option::is_none);
        longest[unknown..].get((CYCLES - unknown) / 2).copied().flatten().unwrap_or_default()
    }

    fn longest(&self) -> Duration {
        self.longest[0].max(self.longest[1])
    }

    /// The least delays of the last slots, the newest first.
    fn least(&self) -> impl Iterator<Item = Duration> {
        self.seen.iter().flatten().map(|slot| slot.least)
    }

    /// Of the last slots, in how many every packet waited that long.
    fn standing(&self, slots: usize, threshold: Duration) -> usize {
        count(self.least().take(slots), threshold)
    }
}

/// How many of these are that long.
fn count(least: impl Iterator<Item = Duration>, threshold: Duration) -> usize {
    least.filter(|least| *least >= threshold).count()
}

/// A queue that is shorter may be that of a host.
const LEAST_FULL: Duration = Duration::from_millis(3);
/// A second.
const SLOTS: usize = 10;
const NEARLY: f64 = 0.7;
/// The cycle after a burst sends what the burst sent too much less, so that its queue is gone when the cycle's seven other slots are over. It falls by
/// a seventh in one of them, or faster; half of that is left to chance.
const FALL: f64 = 13.0 / 14.0;
/// Ten seconds.
const SPAN: u32 = 100;
const LATELY: usize = 4;
const GONE: usize = 5;
/// About five seconds.
const FLAT_CYCLES: usize = 6;
/// Hosts and clocks vary by less, and the least delay in a queue by more.
const FLAT: Duration = Duration::from_micros(250);
/// About ten seconds.
const CYCLES: usize = 13;
/// Clocks and hosts vary by less.
pub(super) const LEAST_QUEUE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const THRESHOLD: Duration = Duration::from_millis(1);

    fn after(slots: &[u64]) -> Queue {
        let mut queue = Queue::default();
        for millis in slots {
            queue.on_packet(Duration::from_millis(millis + 7));
            queue.on_packet(Duration::from_millis(*millis));
            queue.on_slot(false, THRESHOLD);
        }
        queue
    }

    #[test]
    fn a_queue_is_empty_when_half_of_a_second_s_slots_and_the_last_one_are() {
        assert!(after(&[]).is_empty(THRESHOLD));
        assert!(after(&[9, 9, 9, 9, 9, 0, 0, 0, 0, 0]).is_empty(THRESHOLD));
        assert!(!after(&[9, 9, 9, 9, 9, 9, 0, 0, 0, 0]).is_empty(THRESHOLD));
        assert!(!after(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).is_empty(THRESHOLD));
    }

    #[test]
    fn a_queue_has_gone_when_hardly_anything_of_the_longest_stands_for_half_a_second_bursts_included() {
        let has_gone = |slots: &[u64]| {
            let mut queue = after(&[40; 6]);
            for millis in slots {
                // There may be no packet outside bursts.
                queue.on_any_packet(Duration::from_millis(*millis));
                queue.on_slot(false, THRESHOLD);
            }
            queue.has_gone()
        };
        assert!(has_gone(&[9, 9, 9, 9, 9]));
        assert!(!has_gone(&[9, 9, 9, 9]));
        assert!(!has_gone(&[9, 10, 9, 9, 9]));
        assert!(has_gone(&[10, 9, 9, 9, 9, 9]));
    }

    #[test]
    fn the_same_least_delay_for_five_seconds_without_a_loss_event_is_the_path() {
        let flat = |slots: &[u64]| after(slots).flat();
        let cycles = |millis: &[u64]| millis.iter().flat_map(|millis| [*millis; CYCLE as usize]).collect::<Vec<_>>();
        assert_eq!(flat(&cycles(&[9; FLAT_CYCLES])), Some(Duration::from_millis(9)));
        assert_eq!(flat(&cycles(&[9; FLAT_CYCLES - 1])), None);
        assert_eq!(flat(&cycles(&[0; FLAT_CYCLES])), None, "as it was");
        assert_eq!(flat(&cycles(&[9, 9, 9, 10, 9, 9])), None, "a queue varies");
        let mut queue = after(&cycles(&[9; FLAT_CYCLES]));
        queue.on_loss_event();
        assert_eq!(queue.flat(), None, "a full queue does not");
    }

    #[test]
    fn a_queue_is_long_when_it_is_half_as_long_as_ever_and_no_host_s() {
        assert!(after(&[40, 40, 40, 40, 20]).is_long());
        assert!(!after(&[40, 40, 40, 40, 19]).is_long());
        assert!(!after(&[2, 2, 2, 2, 2]).is_long());
    }

    #[test]
    fn a_queue_is_full_when_it_stood_in_seven_of_ten_slots() {
        assert!(after(&[0, 9, 9, 0, 9, 9, 0, 9, 9, 9]).is_full(THRESHOLD));
        assert!(!after(&[0, 9, 9, 0, 9, 9, 0, 9, 0, 9]).is_full(THRESHOLD));
        assert!(after(&[0, 0, 0, 9, 0, 9, 0]).stood_lately(THRESHOLD));
        assert!(!after(&[9, 9, 9, 9, 0, 9, 0, 0]).stood_lately(THRESHOLD));
    }

    /// A burst comes in the last slot of a cycle; these are the slots before and after it.
    fn around_burst(before: &[u64], after: &[u64]) -> Queue {
        let mut queue = Queue::default();
        for (number, millis) in before.iter().chain(after).enumerate() {
            queue.on_packet(Duration::from_millis(*millis));
            queue.on_slot(number + 1 == before.len(), THRESHOLD);
        }
        queue
    }

    #[test]
    fn a_queue_that_falls_after_a_burst_is_the_burst_s() {
        assert!(!around_burst(&[0, 0, 0, 0], &[9, 7, 5, 2]).stood_lately_without_burst(THRESHOLD));
        assert!(
            !around_burst(&[0, 0, 0, 0], &[9, 7, 0, 9]).stood_lately_without_burst(THRESHOLD),
            "one slot is not enough"
        );
        assert!(around_burst(&[0, 0, 0, 0], &[9, 7, 7, 7]).stood_lately_without_burst(THRESHOLD), "it falls no more");
        assert!(around_burst(&[0, 0, 0, 0], &[9, 7, 8, 7]).stood_lately_without_burst(THRESHOLD), "it grows again");
        assert!(around_burst(&[0, 0, 9, 9], &[9, 7, 5]).stood_lately_without_burst(THRESHOLD), "it was there before");
    }

    #[test]
    fn a_packet_that_the_host_read_late_makes_no_queue_look_shorter() {
        let mut queue = after(&[104, 90, 90, 90, 90]);
        queue.on_any_packet(Duration::from_millis(104));
        queue.on_packet(Duration::from_millis(79));
        queue.on_slot(false, THRESHOLD);
        assert!(queue.is_as_long_as_ever());
        queue.on_packet(Duration::from_millis(78));
        queue.on_slot(false, THRESHOLD);
        assert!(!queue.is_as_long_as_ever());
    }

    #[test]
    fn a_queue_that_bursts_make_longer_is_not_as_long_as_ever() {
        let mut queue = after(&[20; 10]);
        queue.on_any_packet(Duration::from_millis(27));
        assert!(!queue.is_as_long_as_ever());
    }

    #[test]
    fn a_host_that_stops_in_fewer_than_half_of_the_cycles_makes_no_queue_look_shorter() {
        let with_stops = |stops: fn(u64) -> bool| {
            let mut queue = Queue::default();
            for slot in 0..200 {
                let late = if slot % CYCLE == 3 && stops(slot / CYCLE) { 100 } else { 0 };
                queue.on_any_packet(Duration::from_millis(95 + late));
                queue.on_packet(Duration::from_millis(90));
                queue.on_slot(false, THRESHOLD);
            }
            queue.is_as_long_as_ever()
        };
        assert!(with_stops(|cycle| cycle % 7 == 0));
        assert!(with_stops(|cycle| cycle % 5 < 2));
        assert!(!with_stops(|cycle| cycle % 5 < 4), "these are bursts");
    }

    #[test]
    fn slots_without_a_packet_say_nothing() {
        let mut queue = after(&[9]);
        queue.on_slot(false, THRESHOLD);
        assert_eq!(queue.newest(), Duration::from_millis(9));
    }
}
