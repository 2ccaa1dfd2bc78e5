//! A receiver's side of networks that send it what nobody here asked for: whether its path is full whatever it leaves.
//!
//! A switch that does not snoop sends every channel to every port. On a port that is slower than the ladder's top no leave helps.

use core::time::Duration;

use weir_units::{Rate, Time, math};

use super::arrivals::Counts;

/// Whether the path has been full for seconds on end.
///
/// It is full while the queue stands as high as it ever did, and while much is lost although channels were given up or there are none to
/// give up. One slot is forgiven: when its host wakes the sender late, the queue falls for so long. A TCP's queue falls now and then,
/// and for longer, and a path that has become slower loses no more once the leaves have acted. What stays is a switch that floods, or
/// other traffic that gives way to nobody. The receiver cannot tell which; the sender finds out, by sending less for a while.
#[derive(Debug)]
pub(super) struct Flood {
    /// For how long the path must have been full.
    patience: Duration,
    /// When it last had been full for so long.
    flooded: Option<Time>,
    /// When channels were given up last.
    left: Option<Time>,
    full: Option<Full>,
    cut: Option<Cut>,
    /// The latest verdict on a cut was that the network floods, so another flood is told sooner.
    is_known: bool,
}

/// The sender withholds levels since the receiver reported a flood.
#[derive(Debug, Clone, Copy)]
struct Cut {
    at: Time,
    /// For how long the queue must stand then to be other traffic's.
    patience: Duration,
    /// Whether the path was empty after it, and when that was known.
    verdict: Option<(bool, Time)>,
}

/// What a slot that has ended tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotSeen {
    pub(super) now: Time,
    /// Of the base channel.
    pub(super) base: Counts,
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
}

impl Default for Flood {
    fn default() -> Flood {
        Flood { patience: PATIENCE, flooded: None, left: None, full: None, cut: None, is_known: false }
    }
}

impl Flood {
    /// Channels were given up.
    pub(super) fn on_leave(&mut self, now: Time) {
        self.left = Some(now);
    }

    /// The sender sends more channels, or fewer: what was counted says nothing any more. If it `sends_more`, a path that it is known to have filled
    /// before is told sooner. The longest queue that stood was this long.
    pub(super) fn on_ceiling(&mut self, now: Time, sends_more: bool, queue: Duration) {
        let is_cut = !sends_more && self.was_flooded(now);
        self.cut = is_cut.then(|| Cut { at: now, patience: PROOF + queue * 2, verdict: None });
        self.full = None;
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
        let has_left = self.left.is_some_and(|at| seen.now.since(at) <= PATIENCE + SECOND);
        let is_in_vain = seen.has_lost_much && (has_left || seen.is_lowest);
        let is_full = is_in_vain || seen.is_queue_full;
        if !is_full && self.full.is_none_or(|full| full.is_interrupted) {
            self.full = None;
            return false;
        }
        let begun = Full { since: seen.now, base: Counts::default(), is_interrupted: false };
        let full = self.full.get_or_insert(begun);
        full.is_interrupted = !is_full;
        // At first the queue still takes what is too much.
        if seen.now.since(full.since) >= SECOND {
            full.base = full.base.and(seen.base);
        }
        let is_flooded = self.is_flooded(seen.now);
        let is_new = is_flooded && self.flooded < self.full.map(|full| full.since);
        if is_flooded {
            self.flooded = Some(seen.now);
        }
        is_new
    }

    /// Whether the path has been full for long enough.
    pub(super) fn is_flooded(&self, now: Time) -> bool {
        self.full.is_some_and(|full| now.since(full.since) >= self.patience)
    }

    /// A slot has ended, with an empty path or not. What is known since then of the sender's cut: whether it has emptied the path. Where a queue still stands
    /// after it, other traffic keeps it up.
    pub(super) fn judge_cut(&mut self, now: Time, is_empty: bool) -> Option<bool> {
        let cut = self.cut.as_mut().filter(|cut| cut.verdict.is_none())?;
        let is_over = is_empty || now.since(cut.at) >= cut.patience;
        if !is_over {
            return None;
        }
        cut.verdict = Some((is_empty, now));
        self.is_known = is_empty;
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
            base: Counts { packets, lost, ..Counts::default() },
            has_lost_much: lost * 10 > packets,
            is_lowest: false,
            is_queue_full: false,
        }
    }

    /// Slots of a receiver that leaves at 1 s, from then until `until` milliseconds.
    fn slots(until: u64, slot: impl Fn(u64) -> SlotSeen) -> Flood {
        let mut flood = Flood::default();
        flood.on_leave(Time::from_secs(1));
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
        assert_eq!([told(1_000, 9_000, 5), told(9_000, 9_300, 0), told(9_300, 20_000, 5)], [1, 0, 1]);
    }

    #[test]
    fn under_a_new_ceiling_all_begins_again() {
        let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
        flood.on_ceiling(Time::from_millis(6_000), false, QUEUE);
        flood.on_slot(&seen(6_100, 1, 9));
        assert_eq!((per_cent(&flood, 10_000), per_cent(&flood, 10_600)), (None, Some(14.0)));
        assert_eq!(flood.judge_cut(Time::from_millis(6_000), true), Some(true));
        flood.on_ceiling(Time::from_millis(6_000), true, QUEUE);
        flood.on_slot(&seen(6_100, 1, 9));
        assert_eq!((per_cent(&flood, 7_500), per_cent(&flood, 7_600)), (None, Some(14.0)));
    }

    /// When a cut at `cut` milliseconds is judged, and how, if the path is empty from `empty` on.
    fn judged(flood: &mut Flood, cut: u64, empty: u64) -> Vec<(u64, bool)> {
        flood.on_ceiling(Time::from_millis(cut), false, QUEUE);
        let judge = |millis: u64| Some((millis, flood.judge_cut(Time::from_millis(millis), millis >= empty)?));
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
        flood.on_ceiling(Time::from_millis(7_500), true, QUEUE);
        assert_eq!(verdicts(&flood), [None; 4]);
    }

    #[test]
    fn a_path_that_a_cut_did_not_empty_is_not_known_to_be_flooded() {
        for (empty, is_known) in [(7_000, true), (20_000, false)] {
            let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
            judged(&mut flood, 6_000, empty);
            flood.on_ceiling(Time::from_millis(8_500), true, QUEUE);
            assert_eq!(flood.is_known(), is_known);
        }
    }
}
