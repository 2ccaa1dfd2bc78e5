//! A receiver's side of networks that send it what nobody here asked for: whether its path is full whatever it leaves.
//!
//! A switch that does not snoop sends every channel to every port. On a port that is slower than the ladder's top no leave helps.

use alloc::collections::VecDeque;
use core::time::Duration;

use weir_units::{Rate, Time, math};

use super::apart::Apart;
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
    /// When a packet came or was told to be lost last, and until when losses may be those of an outage.
    heard: Option<Time>,
    outage_until: Option<Time>,
    apart: Apart,
    cut: Option<Cut>,
    /// The latest verdict on a cut was that the network floods, so another flood is told sooner.
    is_known: bool,
    /// And a share in each channel was what had told of it: neither a queue nor losses tell of another.
    is_known_by_share: bool,
}

/// The sender withholds levels since the receiver reported a flood.
#[derive(Debug, Clone, Copy)]
struct Cut {
    at: Time,
    /// So little is sent that a flood's queue must be gone.
    is_test: bool,
    /// What told of the flood.
    by: By,
    /// For how long the queue must stand then to be other traffic's.
    patience: Duration,
    /// Whether the path was empty after it, and when that was known.
    verdict: Option<(bool, Time)>,
}

/// What a slot that has ended tells of the latest cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutSeen {
    pub(super) has_no_queue: bool,
    /// The part of the last second's packets that was lost.
    pub(super) part_lost: f64,
    /// Where channels queue apart, one flow gets the next level now.
    pub(super) has_larger_share: bool,
}

/// What a new ceiling has the sender do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sends {
    More,
    Less,
    /// So little that a flood must be gone.
    Little,
}

/// What there is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// The path has been full for long enough.
    Full,
    /// The receiver gets a flow's share in each channel.
    Share,
}

/// What tells of a flood, and so of its end.
#[derive(Debug, Clone, Copy)]
enum By {
    /// A queue.
    Queue,
    /// Losses: the part that did not come.
    Missing(f64),
    /// A flow's share in each channel.
    Share,
}

/// What a slot that has ended tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotSeen {
    pub(super) now: Time,
    /// Of all channels, and of the base channel.
    pub(super) all: Counts,
    pub(super) base: Counts,
    /// What the receiver got of its rate lately, and how many packets it is sent in a second.
    pub(super) got: Rate,
    pub(super) sent: f64,
    /// More than [`Flood::much_loss`] of the last second was lost, beyond chance.
    pub(super) has_lost_much: bool,
    /// The receiver has but the lowest level.
    pub(super) is_lowest: bool,
    /// Each channel has a queue of its own, and the receiver has what one flow gets there and would have more.
    pub(super) is_held_apart: bool,
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
        Flood {
            patience: PATIENCE,
            flooded: None,
            left: None,
            full: None,
            lately: Lately::default(),
            heard: None,
            outage_until: None,
            apart: Apart::default(),
            cut: None,
            is_known: false,
            is_known_by_share: false,
        }
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

    /// The sender sends more channels, or fewer: what was counted says nothing any more. If it sends more, a path that it is known to have filled
    /// before is told sooner. The longest queue that stood was this long, and the receiver `got` so much.
    pub(super) fn on_ceiling(&mut self, now: Time, sends: Sends, queue: Duration, got: Rate) {
        let sends_more = sends == Sends::More;
        let is_apart = !self.was_flooded(now) && self.apart.tells();
        let by = match self.full.and_then(|full| full.missing) {
            _ if is_apart => By::Share,
            Some(part) => By::Missing(part),
            None => By::Queue,
        };
        let patience = if is_apart { TEST_OF_SHARE } else { PROOF + queue * 2 };
        let is_cut = !sends_more && (is_apart || self.was_flooded(now));
        self.cut =
            is_cut.then_some(Cut { at: now, is_test: is_apart || sends == Sends::Little, by, patience, verdict: None });
        self.apart.on_ceiling((sends_more && self.is_known_by_share).then_some((now, got)));
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

    /// A slot has ended. Whether there is something to tell since this slot.
    pub(super) fn on_slot(&mut self, seen: &SlotSeen) -> Option<News> {
        let is_share = self.apart.on_slot(seen.now, seen.is_held_apart, seen.got);
        // Silence tells nothing: where hardly anything gets through, most slots are silent.
        if seen.all.packets + seen.all.lost > 0 {
            self.look_for_outage(seen.now);
            if self.outage_until.is_none_or(|until| seen.now >= until) {
                self.lately.on_slot(seen.now, seen.all);
                self.look_at_path(seen);
            }
        }
        if self.is_flooded(seen.now) {
            self.flooded = Some(seen.now);
            if self.full.as_mut().is_some_and(|full| !core::mem::replace(&mut full.is_told, true)) {
                return Some(News::Full);
            }
        }
        is_share.then_some(News::Share)
    }

    /// Where little was lost and then nothing came for a second, the path was gone and not full. Channels tell of what was lost meanwhile within the
    /// next second. A flood that leaves so little has lost most of what came before, too.
    fn look_for_outage(&mut self, now: Time) {
        let was_silent = self.heard.replace(now).is_some_and(|at| now.since(at) >= SECOND);
        let before = self.lately.sum();
        if was_silent && before.packets > 0 && before.part_lost() < LASTING_LOSS {
            self.outage_until = Some(now + SECOND);
            (self.full, self.lately) = (None, Lately::default());
        }
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

    /// A slot has ended since the sender's cut. What is known since then: whether it has emptied the path. Where a queue still stands after it, other traffic
    /// keeps it up; where as much is lost as before, the path loses it by itself; and where channels queue apart, one flow gets more than before if those
    /// of the flood are gone.
    pub(super) fn judge_cut(&mut self, now: Time, seen: &CutSeen) -> Option<bool> {
        let cut = self.cut.as_mut().filter(|cut| cut.verdict.is_none())?;
        let is_empty = match cut.by {
            By::Queue => seen.has_no_queue,
            By::Missing(before) => seen.has_no_queue && seen.part_lost <= before * LEFT,
            By::Share => seen.has_larger_share,
        };
        let is_over = is_empty || now.since(cut.at) >= cut.patience;
        if !is_over {
            return None;
        }
        cut.verdict = Some((is_empty, now));
        // What is sent after a cut that is no test may still fill the path.
        if is_empty || cut.is_test {
            self.is_known = is_empty;
            self.is_known_by_share = is_empty && matches!(cut.by, By::Share);
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
        self.is_flooded(now) || self.apart.tells() || self.verdict(now).is_some()
    }

    /// Whether a share in each channel was what told of the latest cut's flood.
    pub(super) fn was_at_share(&self) -> bool {
        self.cut.is_some_and(|cut| matches!(cut.by, By::Share))
    }

    /// Whether to tell that the receiver gets a flow's share where channels queue apart.
    pub(super) const fn tells_share(&self) -> bool {
        self.apart.tells()
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
pub(super) const PATIENCE: Duration = Duration::from_millis(4_500);
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
/// Where channels queue apart each cycle of a test shows whether one flow gets what is sent then, and two bursts in a row have to. Before that the queues of
/// the flood have to drain: 10 000 packets, which FQ-CoDel has room for, take 2.2 s at 54 Mbit/s.
pub(super) const TEST_OF_SHARE: Duration = Duration::from_secs(5);
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
    const EMPTY: CutSeen = CutSeen { has_no_queue: true, part_lost: 0.0, has_larger_share: false };
    const QUEUE: Duration = Duration::from_millis(250);

    fn seen(millis: u64, packets: u64, lost: u64) -> SlotSeen {
        SlotSeen {
            now: Time::from_millis(millis),
            all: Counts { packets, lost, ..Counts::default() },
            base: Counts { packets, lost, ..Counts::default() },
            got: SENT,
            sent: (packets + lost) as f64 * 10.0,
            has_lost_much: lost * 10 > packets,
            is_lowest: false,
            is_held_apart: false,
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

    /// A cable that is pulled for six seconds, and a port of which hardly anything comes.
    #[test]
    fn an_outage_is_no_flood_and_rare_packets_between_many_losses_are() {
        let mut flood = Flood::default();
        let mut told = |millis, packets, lost| flood.on_slot(&SlotSeen { sent: 100.0, ..seen(millis, packets, lost) });
        (0..100).for_each(|tenth| assert_eq!(told(tenth * 100, 10, 0), None));
        // Slow channels tell a little later.
        assert_eq!([told(16_000, 2, 500), told(16_100, 10, 80), told(16_900, 10, 20)], [None; 3]);
        (170..300).for_each(|tenth| assert_eq!(told(tenth * 100, 10, 0), None, "{tenth}"));
        let news: Vec<_> = (300..420).step_by(12).filter_map(|tenth| told(tenth * 100, 1, 19)).collect();
        assert_eq!(news, [News::Full]);
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
                .filter(|millis| flood.on_slot(&SlotSeen { is_lowest: true, ..seen(*millis, 5, lost) }).is_some())
                .count()
        };
        assert_eq!([told(1_000, 9_000, 5), told(9_000, 14_000, 0), told(14_000, 24_000, 5)], [1, 0, 1]);
    }

    #[test]
    fn under_a_new_ceiling_all_begins_again() {
        let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
        flood.on_ceiling(Time::from_millis(6_000), Sends::Little, QUEUE, SENT);
        flood.on_slot(&seen(6_100, 1, 9));
        assert_eq!((per_cent(&flood, 10_000), per_cent(&flood, 10_600)), (None, Some(14.0)));
        assert_eq!(flood.judge_cut(Time::from_millis(6_000), &EMPTY), Some(true));
        flood.on_ceiling(Time::from_millis(6_000), Sends::More, QUEUE, SENT);
        flood.on_slot(&seen(6_100, 1, 9));
        assert_eq!((per_cent(&flood, 7_500), per_cent(&flood, 7_600)), (None, Some(14.0)));
    }

    /// When a cut at `cut` milliseconds is judged, and how, if the path is empty from `empty` on.
    fn judged(flood: &mut Flood, cut: u64, empty: u64) -> Vec<(u64, bool)> {
        flood.on_ceiling(Time::from_millis(cut), Sends::Little, QUEUE, SENT);
        let judge = |millis: u64| {
            Some((
                millis,
                flood.judge_cut(Time::from_millis(millis), &CutSeen { has_no_queue: millis >= empty, ..EMPTY })?,
            ))
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
        flood.on_ceiling(Time::from_millis(7_500), Sends::More, QUEUE, SENT);
        assert_eq!(verdicts(&flood), [None; 4]);
    }

    #[test]
    fn a_path_that_a_cut_did_not_empty_is_not_known_to_be_flooded() {
        for (empty, is_known) in [(7_000, true), (20_000, false)] {
            let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
            judged(&mut flood, 6_000, empty);
            flood.on_ceiling(Time::from_millis(8_500), Sends::More, QUEUE, SENT);
            assert_eq!(flood.is_known(), is_known);
        }
    }

    #[test]
    fn at_the_lowest_level_less_loss_tells_if_it_goes_on_and_at_others_it_is_the_path_s_own() {
        for (is_lowest, told) in [(true, Some(58.0)), (false, None)] {
            let slot = |millis| SlotSeen { is_lowest, has_lost_much: false, ..seen(millis, 7, 3) };
            let mut flood = Flood::default();
            (1_000..=6_000).step_by(100).for_each(|millis| _ = flood.on_slot(&slot(millis)));
            let carried = |millis| flood.carried(Time::from_millis(millis), SENT.scale(0.48), SENT);
            assert_eq!(carried(6_000).map(|part| (part * 100.0).round()), told, "lowest: {is_lowest}");
        }
    }

    #[test]
    fn where_next_to_nothing_comes_for_four_and_a_half_seconds_it_is_a_flood_however_silent_most_slots_are() {
        let told_with = |packets: u64| {
            let mut flood = Flood::default();
            let slot = |millis: u64| SlotSeen {
                sent: 100.0,
                ..seen(millis, u64::from(millis.is_multiple_of(500)) * packets, 0)
            };
            (1_000..=9_000).step_by(100).find(|millis| flood.on_slot(&slot(*millis)) == Some(News::Full))
        };
        assert_eq!(told_with(10), Some(5_500), "a fifth of what is sent");
        assert_eq!(told_with(15), None, "nearly a third");
    }

    #[test]
    fn a_path_that_loses_as_much_after_a_cut_loses_it_by_itself() {
        for (after, verdict) in [(0.25, (9_500, false)), (0.07, (6_100, true))] {
            let mut flood = Flood::default();
            let slot = |millis| SlotSeen { is_lowest: true, has_lost_much: false, ..seen(millis, 7, 3) };
            (1_000..=6_000).step_by(100).for_each(|millis| _ = flood.on_slot(&slot(millis)));
            flood.on_ceiling(Time::from_millis(6_000), Sends::Little, QUEUE * 4, SENT);
            let mut judge = |millis| flood.judge_cut(Time::from_millis(millis), &CutSeen { part_lost: after, ..EMPTY });
            let judged = (6_100..20_000).step_by(100).find_map(|millis| Some((millis, judge(millis)?)));
            assert_eq!(judged, Some(verdict), "{after} of the packets are lost after it");
        }
    }

    #[test]
    fn a_cut_that_is_no_test_makes_nobody_forget_that_the_network_floods() {
        for (sends, is_known) in [(Sends::Less, true), (Sends::Little, false)] {
            let mut flood = slots(6_000, |millis| seen(millis, 1, 9));
            judged(&mut flood, 6_000, 7_000);
            assert!(flood.is_known());
            (7_000..13_000)
                .step_by(100)
                .for_each(|millis| _ = flood.on_slot(&SlotSeen { is_lowest: true, ..seen(millis, 1, 9) }));
            flood.on_ceiling(Time::from_millis(13_000), sends, QUEUE, SENT);
            let full = CutSeen { has_no_queue: false, ..EMPTY };
            assert_eq!(flood.judge_cut(Time::from_millis(15_000), &full), Some(false));
            assert_eq!(flood.is_known(), is_known, "{sends:?}");
        }
    }

    #[test]
    fn where_channels_queue_apart_a_larger_share_shows_the_end_of_a_flood_and_none_in_five_seconds_that_it_was_none() {
        for (larger, verdict) in [(8_000, (8_000, true)), (30_000, (11_000, false))] {
            let mut flood = Flood::default();
            let slot = |millis| SlotSeen { is_held_apart: true, ..seen(millis, 10, 0) };
            let told = (1_000..6_000).step_by(100).find(|millis| flood.on_slot(&slot(*millis)) == Some(News::Share));
            assert_eq!((told, flood.tells_share()), (Some(5_500), true));
            flood.on_ceiling(Time::from_millis(6_000), Sends::Less, QUEUE, SENT);
            assert!(flood.was_at_share() && !flood.tells_share());
            let mut judge = |millis| {
                let seen = CutSeen { has_larger_share: millis >= larger, ..EMPTY };
                Some((millis, flood.judge_cut(Time::from_millis(millis), &seen)?))
            };
            assert_eq!((6_100..20_000).step_by(100).find_map(&mut judge), Some(verdict));
            assert_eq!(flood.is_known(), verdict.1);
        }
    }
}
