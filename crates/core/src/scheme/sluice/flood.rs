//! A receiver's side of networks that send it what nobody here asked for: whether its path is full whatever it leaves.
//!
//! A switch that does not snoop sends every channel to every port. On a port that is slower than the ladder's top no leave helps.

use alloc::collections::VecDeque;
use core::time::Duration;

use weir_units::{Rate, Time, math};

use super::arrivals::Counts;

/// Whether the path has been full for seconds on end.
///
/// It is full while the queue stands as high as it ever did, and while much is lost although channels were given up or there are none to
/// give up. One slot is forgiven: when its host wakes the sender late, the queue falls for so long. A TCP's queue falls now and then,
/// and for longer, and a path that has become slower loses no more once the leaves have acted. What stays is a switch that floods, or
/// other traffic that gives way to nobody. The receiver cannot tell which; the sender finds out, by sending less for a while.
///
/// Where a queue is kept short (CoDel), and for who came when it was full already, there is no queue to see, and at the lowest level less is lost than
/// at others. What was lost in all of the last seconds tells there.
#[derive(Debug)]
pub(super) struct Flood {
    /// For how long the path must have been full.
    patience: Duration,
    /// When it last had been full for so long.
    flooded: Option<Time>,
    /// When channels were given up last.
    left: Option<Time>,
    full: Option<Full>,
    lately: Lately,
    cut: Option<Cut>,
    /// The latest verdict on a cut was that the network floods, so another flood is told sooner.
    is_known: bool,
}

/// The sender withholds levels since the receiver reported a flood.
#[derive(Debug, Clone, Copy)]
struct Cut {
    at: Time,
    /// So little is sent that a flood's queue must be gone.
    is_test: bool,
    /// The part that did not come before it, if that is what told of the flood.
    missing_before: Option<f64>,
    /// For how long the queue must stand then to be other traffic's.
    patience: Duration,
    /// Whether the path was empty after it, and when that was known.
    verdict: Option<(bool, Time)>,
}

/// What a slot that has ended tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotSeen {
    pub(super) now: Time,
    /// Of all channels, and of the base channel.
    pub(super) all: Counts,
    pub(super) base: Counts,
    /// Packets that the receiver's level is sent in a second.
    pub(super) sent: f64,
    /// More than [`Flood::much_loss`] of the last second was lost, beyond chance.
    pub(super) has_lost_much: bool,
    /// The receiver has but the lowest level.
    pub(super) is_lowest: bool,
    /// The queue was as long as it ever was; half of that is enough where the path is known to be flooded.
    pub(super) is_queue_full: bool,
}

/// The path has been full for a while.
#[derive(Debug, Clone, Copy)]
struct Full {
    since: Time,
    base: Counts,
    /// It was not in the last slot.
    is_interrupted: bool,
    /// It has been for long enough, and that was told.
    is_told: bool,
    /// What part did not come, if that tells and not the queue.
    missing: Option<f64>,
}

/// What came and what was lost in the last [`PATIENCE`], as far as the receiver has had one level.
#[derive(Debug, Default)]
struct Lately {
    slots: VecDeque<(Time, Counts)>,
    since: Option<Time>,
}

impl Lately {
    fn on_slot(&mut self, now: Time, counts: Counts) {
        self.since.get_or_insert(now);
        self.slots.push_back((now, counts));
        while self.slots.front().is_some_and(|(at, _)| now.since(*at) > PATIENCE) {
            self.slots.pop_front();
        }
    }

    fn sum(&self) -> Counts {
        self.slots.iter().fold(Counts::default(), |sum, (_, counts)| sum.and(*counts))
    }

    /// The part of what was `sent`, in packets a second, that did not come. A channel of which next to nothing comes does not show what is lost.
    fn part_missing(&self, sent: f64) -> f64 {
        let counts = self.sum();
        let expected = sent * PATIENCE.as_secs_f64();
        counts.part_lost().max(1.0 - counts.packets as f64 / expected.max(1.0))
    }

    /// Whether it is as long as it can be.
    fn is_whole(&self, now: Time) -> bool {
        self.since.is_some_and(|since| now.since(since) >= PATIENCE)
    }
}

impl Default for Flood {
    fn default() -> Flood {
        let lately = Lately::default();
        Flood { patience: PATIENCE, flooded: None, left: None, full: None, lately, cut: None, is_known: false }
    }
}

impl Flood {
    /// The receiver goes to another level; by giving up channels, if it `leaves`.
    pub(super) fn on_level(&mut self, now: Time, leaves: bool) {
        self.lately = Lately::default();
        if leaves {
            self.left = Some(now);
        }
    }

    /// The sender sends more channels, or fewer: what was counted says nothing any more. If it `sends_more`, a path that it is known to have filled
    /// before is told sooner. If it sends fewer, that `is_test` if a flood must be gone then. The longest queue that stood was this long.
    pub(super) fn on_ceiling(&mut self, now: Time, sends_more: bool, is_test: bool, queue: Duration) {
        let is_cut = !sends_more && self.was_flooded(now);
        let missing_before = self.full.and_then(|full| full.missing);
        self.cut = is_cut.then(|| Cut { at: now, is_test, missing_before, patience: PROOF + queue * 2, verdict: None });
        (self.full, self.lately) = (None, Lately::default());
        self.patience = if sends_more && self.is_known { KNOWN_PATIENCE } else { PATIENCE };
    }

    /// Whether a cut has shown that the network floods.
    pub(super) const fn is_known(&self) -> bool {
        self.is_known
    }

    /// From which part of the packets on a loss is too much.
    pub(super) fn much_loss(&self) -> f64 {
        if self.is_known { KNOWN_MUCH_LOSS } else { MUCH_LOSS }
    }

    /// A slot has ended. Whether the path has been full for long enough, since this slot.
    pub(super) fn on_slot(&mut self, seen: &SlotSeen) -> bool {
        // Silence tells nothing: where hardly anything gets through, most slots are silent.
        if seen.all.packets + seen.all.lost > 0 {
            self.lately.on_slot(seen.now, seen.all);
            self.look_at_path(seen);
        }
        if !self.is_flooded(seen.now) {
            return false;
        }
        self.flooded = Some(seen.now);
        self.full.as_mut().is_some_and(|full| !core::mem::replace(&mut full.is_told, true))
    }

    /// Whether the path is full in this slot, or was in all of the last ones.
    fn look_at_path(&mut self, seen: &SlotSeen) {
        let has_left = self.left.is_some_and(|at| seen.now.since(at) <= PATIENCE + SECOND);
        let is_in_vain = seen.has_lost_much && (has_left || seen.is_lowest);
        let loses_on = seen.is_lowest && self.lately.sum().have_lost(LASTING_LOSS, DEVIATIONS);
        let missing = self.lately.part_missing(seen.sent);
        let was_in_vain = self.lately.is_whole(seen.now) && (loses_on || missing >= STARVING);
        let is_full = is_in_vain || was_in_vain || seen.is_queue_full;
        if !is_full && self.full.is_none_or(|full| full.is_interrupted) {
            self.full = None;
            return;
        }
        let begun =
            Full { since: seen.now, base: Counts::default(), is_interrupted: false, is_told: false, missing: None };
        let full = self.full.get_or_insert(begun);
        full.is_interrupted = !is_full;
        full.missing = ((is_in_vain || was_in_vain) && !seen.is_queue_full).then_some(missing);
        if was_in_vain {
            full.since = full.since.min(seen.now - PATIENCE);
            if seen.is_lowest {
                full.base = self.lately.sum();
            }
        }
        // At first the queue still takes what is too much.
        if seen.now.since(full.since) >= SECOND && !(was_in_vain && seen.is_lowest) {
            full.base = full.base.and(seen.base);
        }
    }

    /// Whether the path has been full for long enough.
    pub(super) fn is_flooded(&self, now: Time) -> bool {
        self.full.is_some_and(|full| now.since(full.since) >= self.patience)
    }

    /// A slot has ended, with or without a queue, and this is what came in the last second. What is known since then of the sender's cut: whether it has
    /// emptied the path. Where a queue still stands after it, other traffic keeps it up; and where as much is lost as before, the path loses it by itself.
    pub(super) fn judge_cut(&mut self, now: Time, has_no_queue: bool, second: Counts) -> Option<bool> {
        let cut = self.cut.as_mut().filter(|cut| cut.verdict.is_none())?;
        let loses_less = cut.missing_before.is_none_or(|before| second.part_lost() <= before * LEFT);
        let is_empty = has_no_queue && loses_less;
        let is_over = is_empty || now.since(cut.at) >= cut.patience;
        if !is_over {
            return None;
        }
        cut.verdict = Some((is_empty, now));
        // What is sent after a cut that is no test may still fill the path.
        if is_empty || cut.is_test {
            self.is_known = is_empty;
        }
        Some(is_empty)
    }

    /// Whether the sender's latest cut has emptied the path, for as long as that is worth telling.
    pub(super) fn verdict(&self, now: Time) -> Option<bool> {
        let (is_empty, _) = self.cut?.verdict.filter(|(_, at)| now.since(*at) <= TOLD)?;
        Some(is_empty)
    }

    /// Whether there is something to report.
    pub(super) fn has_to_tell(&self, now: Time) -> bool {
        self.is_flooded(now) || self.verdict(now).is_some()
    }

    /// Whether it was of late, so that a ceiling of which the receiver hears now is for that.
    fn was_flooded(&self, now: Time) -> bool {
        self.flooded.is_some_and(|at| now.since(at) <= LATE_ANNOUNCEMENT)
    }

    /// If the path is full whatever the receiver leaves, the part of what is `sent` that gets through, as far as can be told by a
    /// receiver to which `arrived`.
    ///
    /// The path carries at least what arrives, and hardly more than the part of the base channel that does: that channel comes first in each
    /// of the sender's periods, when a queue has room most often. The geometric mean of the two halves what is unknown.
    pub(super) fn carried(&self, now: Time, arrived: Rate, sent: Rate) -> Option<f64> {
        let full = self.full.filter(|_| self.is_flooded(now))?;
        let least = (arrived.bps() as f64 / sent.bps().max(1) as f64).min(1.0);
        let most = (1.0 - full.base.part_lost()).max(least);
        Some(math::sqrt(least * most))
    }
}

/// Leaves act within 3.5 s, and a second after that nothing of what they were made for is among the last second's losses.
const PATIENCE: Duration = Duration::from_millis(4_500);
/// Where a leave is not what is waited for, this is longer than a burst of a TCP's slow start.
const KNOWN_PATIENCE: Duration = Duration::from_millis(1_500);
/// More than a BBR in a short buffer makes others lose, up to a sixth.
const MUCH_LOSS: f64 = 0.25;
/// Where a switch has flooded once, less tells.
const KNOWN_MUCH_LOSS: f64 = 0.1;
/// At the lowest level, in all of [`PATIENCE`]: behind a flooded port with CoDel or FQ-CoDel the base channel loses 0.28.
const LASTING_LOSS: f64 = 1.0 / 6.0;
/// At any level. A receiver leaves long before so much is missing for so long, if enough comes to tell.
const STARVING: f64 = 0.75;
/// What is beyond chance, in standard deviations.
const DEVIATIONS: f64 = 2.0;
/// A path that was flooded loses no more than this part of what it lost, once the flood is gone.
const LEFT: f64 = 0.25;
/// So long, and twice as long as the queue was, after a cut the queue of a flood is gone: a second to hear of the cut and one to see it.
const PROOF: Duration = Duration::from_millis(1_500);
/// A verdict is told for so long, as it may get lost.
const TOLD: Duration = Duration::from_secs(4);
/// A ceiling is known so long after it has begun to act: some cycles.
const LATE_ANNOUNCEMENT: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const SENT: Rate = Rate::from_mbps(100);
    const QUEUE: Duration = Duration::from_millis(250);

    fn seen(millis: u64, packets: u64, lost: u64) -> SlotSeen {
        SlotSeen {
            now: Time::from_millis(millis),
            all: Counts { packets, lost, ..Counts::default() },
            base: Counts { packets, lost, ..Counts::default() },
            sent: (packets + lost) as f64 * 10.0,
            has_lost_much: lost * 10 > packets,
            is_lowest: false,
            is_queue_full: false,
        }
    }

    /// Slots of a receiver that leaves at 1 s, from then until `until` milliseconds.
    fn slots(until: u64, slot: impl Fn(u64) -> SlotSeen) -> Flood {
        let mut flood = Flood::default();
        flood.on_level(Time::from_secs(1), true);
        (1_000..=until).step_by(100).for_each(|millis| _ = flood.on_slot(&slot(millis)));
        flood
    }

    fn per_cent(flood: &Flood, millis: u64) -> Option<f64> {
        flood.carried(Time::from_millis(millis), Rate::from_mbps(2), SENT).map(|part| (part * 100.0).round())
    }

    #[test]
    fn losses_that_go_on_four_and_a_half_seconds_after_a_leave_are_a_flood_s_and_tell_what_is_carried() {
        let flood = slots(6_000, |millis| seen(millis, 1, 9));
        assert_eq!((per_cent(&flood, 5_400), per_cent(&flood, 5_500)), (None, Some(4.0)), "between 2 and 10 %");
    }

    #[test]
    fn a_queue_as_long_as_ever_is_one_too() {
        let flood = slots(6_000, |millis| SlotSeen { is_queue_full: true, ..seen(millis, 10, 0) });
        assert_eq!((per_cent(&flood, 5_400), per_cent(&flood, 5_500)), (None, Some(14.0)), "between 2 and 100 %");
    }

    #[test]
    fn a_leave_that_acts_within_its_time_and_a_queue_that_falls_are_none() {
        let flood = slots(6_000, |millis| seen(millis, 10, if millis < 4_500 { 9 } else { 0 }));
        assert_eq!(per_cent(&flood, 9_000), None);
        let flood = slots(6_000, |millis| SlotSeen { is_queue_full: millis % 1_000 >= 200, ..seen(millis, 10, 0) });
        assert_eq!(per_cent(&flood, 6_000), None);
    }

    #[test]
    fn a_queue_that_falls_for_one_slot_at_a_time_is_one_still() {
        let flood = slots(6_000, |millis| SlotSeen { is_queue_full: millis % 200 == 0, ..seen(millis, 10, 0) });
        assert_eq!(per_cent(&flood, 5_500), Some(14.0));
    }

    #[test]
    fn losses_without_a_leave_are_the_path_s_own_but_at_the_lowest_level() {
        let mut flood = Flood::default();
        (10..80).for_each(|tenth| _ = flood.on_slot(&seen(tenth * 100, 5, 5)));
        assert_eq!(per_cent(&flood, 8_000), None);
        (80..140).for_each(|tenth| _ = flood.on_slot(&SlotSeen { is_lowest: true, ..seen(tenth * 100, 5, 5) }));
        assert_eq!(per_cent(&flood, 14_000), Some(10.0), "between 2 and 50 %");
    }

    #[test]
    fn each_flood_is_told_once() {
        let mut flood = Flood::default();
        let mut told = |from: u64, until: u64, lost: u64| {
            (from..until)
                .step_by(100)
                .filter(|millis| flood.on_slot(&SlotSeen { is_lowest: true, ..seen(*millis, 5, lost) }))
                .count()
        };
        assert_eq!([told(1_000, 9_000, 5), told(9_000, 14_000, 0), told(14_000, 24_000, 5)], [1, 0, 1]);
    }

    #[test]
    fn under_a_new_ceiling_all_begins_again() {
        let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
        flood.on_ceiling(Time::from_millis(6_000), false, true, QUEUE);
        flood.on_slot(&seen(6_100, 1, 9));
        assert_eq!((per_cent(&flood, 10_000), per_cent(&flood, 10_600)), (None, Some(14.0)));
        assert_eq!(flood.judge_cut(Time::from_millis(6_000), true, Counts::default()), Some(true));
        flood.on_ceiling(Time::from_millis(6_000), true, false, QUEUE);
        flood.on_slot(&seen(6_100, 1, 9));
        assert_eq!((per_cent(&flood, 7_500), per_cent(&flood, 7_600)), (None, Some(14.0)));
    }

    /// When a cut at `cut` milliseconds is judged, and how, if the path is empty from `empty` on.
    fn judged(flood: &mut Flood, cut: u64, empty: u64) -> Vec<(u64, bool)> {
        flood.on_ceiling(Time::from_millis(cut), false, true, QUEUE);
        let judge = |millis: u64| {
            Some((millis, flood.judge_cut(Time::from_millis(millis), millis >= empty, Counts::default())?))
        };
        (cut..cut + 20_000).step_by(100).filter_map(judge).collect()
    }

    #[test]
    fn a_cut_is_judged_once_when_the_path_is_empty_or_a_second_and_a_half_and_twice_the_queue_later() {
        let flooded = || slots(6_000, |millis| seen(millis, 1, 9));
        assert_eq!(judged(&mut flooded(), 6_000, 7_900), [(7_900, true)]);
        assert_eq!(judged(&mut flooded(), 6_000, 8_100), [(8_000, false)], "others keep the queue up");
        assert_eq!(judged(&mut flooded(), 11_100, 11_100), [], "the ceiling is for something else");
    }

    #[test]
    fn a_verdict_is_told_for_four_seconds_or_until_the_ceiling_is_another() {
        let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
        judged(&mut flood, 6_000, 7_000);
        let verdicts =
            |flood: &Flood| [6_900, 7_000, 11_000, 11_100].map(|millis| flood.verdict(Time::from_millis(millis)));
        assert_eq!(verdicts(&flood)[1..], [Some(true), Some(true), None]);
        flood.on_ceiling(Time::from_millis(7_500), true, false, QUEUE);
        assert_eq!(verdicts(&flood), [None; 4]);
    }

    #[test]
    fn a_path_that_a_cut_did_not_empty_is_not_known_to_be_flooded() {
        for (empty, is_known) in [(7_000, true), (20_000, false)] {
            let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
            judged(&mut flood, 6_000, empty);
            flood.on_ceiling(Time::from_millis(8_500), true, false, QUEUE);
            assert_eq!(flood.is_known(), is_known);
        }
    }
}
