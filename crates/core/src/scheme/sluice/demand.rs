//! How much of the ladder anybody wants: receivers tell their levels, and the sender sends no more than the highest of them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Rate, Time};
use weir_wire::probe::{self, Wanted};

use super::announce::MOST_TOLD;
use super::cycle::{self, SLOT, START_UP_BURST, START_UP_PART, START_UP_PARTS};
use super::flows;
use crate::layers::Ladder;
use crate::observation::Audience;
use crate::probing::Interval;

/// The sender's side: what receivers have told.
///
/// While no receiver is heard, the sender sends only the levels that a receiver can use at first; a receiver that joins reports what it wants.
/// At the start of a session receivers may be present before their first reports arrive, so for 0.4 s the sender opens the ladder as fast as a
/// starting receiver can climb. In a group so large that each receiver reports seldom, the sender sends the whole ladder.
#[derive(Debug)]
pub(super) struct Demand {
    ladder: Ladder,
    receivers: BTreeMap<u32, Report>,
    /// The level to which a receiver has moved last, and how many folded bursts it is still owed.
    fresh: (usize, u32),
    /// When somebody was heard last; `None` if that is long ago.
    heard: Option<Time>,
    packet_size: Bytes,
    /// When the session began.
    begun: Time,
    /// Levels that are worth sending, and what all who want the highest want of the next step, in eighths.
    levels: usize,
    part: u8,
    /// Whether these are what receivers have told, or what is sent to nobody; not so in a large group.
    are_few: bool,
}

/// What a receiver has told: the level that it wants, how many eighths of the step above, and when.
#[derive(Debug, Clone, Copy)]
struct Report {
    level: usize,
    part: u8,
    at: Time,
}

impl Demand {
    pub(super) fn new(ladder: &Ladder, packet_size: Bytes) -> Demand {
        Demand {
            ladder: ladder.clone(),
            receivers: BTreeMap::new(),
            fresh: (0, 0),
            heard: None,
            packet_size,
            begun: Time::ZERO,
            levels: ladder.levels(),
            part: 0,
            are_few: true,
        }
    }

    /// The levels that are worth sending.
    pub(super) const fn levels(&self) -> usize {
        self.levels
    }

    /// How many eighths of the step above these levels are worth sending as well.
    pub(super) const fn part(&self) -> u8 {
        self.part
    }

    /// The levels that receivers have, lowest first. What the wire cannot say is left out. `None` if levels are not known.
    pub(super) fn known(&self) -> Option<Vec<usize>> {
        let levels: BTreeSet<usize> = self.wanted().collect();
        self.is_followed().then(|| levels.into_iter().filter(|level| *level <= MOST_TOLD).collect())
    }

    /// The level that is still owed a folded burst. Without one a receiver that has just moved to it cannot tell what one flow gets.
    pub(super) fn owed(&self) -> Option<usize> {
        let (level, owed) = self.fresh;
        (owed > 0).then_some(level)
    }

    /// A cycle begins that has a folded burst for this level.
    pub(super) fn on_folded(&mut self, folded: usize) {
        let (level, owed) = &mut self.fresh;
        if *level == folded {
            *owed = owed.saturating_sub(1);
        }
    }

    /// Whether some path may get what its receiver does not want while these levels are sent. It may where the receivers are not known.
    pub(super) fn is_unwanted(&self, sent: usize) -> bool {
        let lowest = self.wanted().min().filter(|_| self.is_followed());
        lowest.is_none_or(|wanted| sent > wanted)
    }

    /// The receivers that are heard. `None` if they are too many.
    pub(super) fn audience(&self) -> Option<Audience> {
        let rate = |level: Option<usize>| level.map_or(Rate::ZERO, |level| self.ladder.level_rate(level));
        let (lowest, highest) = (rate(self.wanted().min()), rate(self.wanted().max()));
        self.are_few.then_some(Audience { receivers: self.receivers.len() as u64, lowest, highest })
    }

    pub(super) fn on_start(&mut self, now: Time) {
        self.begun = now;
        self.levels = self.opened(now, 1);
    }

    /// A receiver has told what it wants. Whether other levels are worth sending now.
    pub(super) fn on_report(&mut self, now: Time, wanted: Wanted, interval: Interval) -> bool {
        self.heard = Some(now);
        if wanted.level == 0 {
            self.receivers.remove(&wanted.receiver);
        } else if self.receivers.len() < MOST_RECEIVERS || self.receivers.contains_key(&wanted.receiver) {
            let level = usize::from(wanted.level).min(self.ladder.levels());
            let report = Report { level, part: wanted.eighths, at: now };
            if self.receivers.insert(wanted.receiver, report).is_none_or(|before| before.level != level) {
                self.fresh = (level, flows::AGREEING);
            }
        }
        self.look(now, interval)
    }

    /// Time passes. Whether other levels are worth sending now.
    pub(super) fn on_time(&mut self, now: Time, interval: Interval) -> bool {
        let remembered = interval.span() * REMEMBERED_INTERVALS;
        self.receivers.retain(|_, report| now.since(report.at) < remembered);
        self.heard = self.heard.filter(|at| now.since(*at) < remembered);
        self.look(now, interval)
    }

    fn look(&mut self, now: Time, interval: Interval) -> bool {
        let highest = self.wanted().max();
        self.are_few = interval <= LONGEST_FOLLOWED && self.receivers.len() < MOST_RECEIVERS;
        let levels = if self.are_few { highest.unwrap_or_else(|| self.opened(now, 1)) } else { self.ladder.levels() };
        let of_highest = self.receivers.values().filter(|report| report.level == levels);
        self.part = of_highest.map(|report| report.part).min().filter(|_| self.is_followed()).unwrap_or(0);
        core::mem::replace(&mut self.levels, levels) != levels
    }

    /// The highest level that a receiver may have by now of which nothing has been heard.
    pub(super) fn opened_before(&self, now: Time) -> usize {
        self.opened(now, 0)
    }

    /// The highest level that a receiver can reach `more` parts of a slot from now. It may have begun with the session, if that has just begun; else
    /// it begins now.
    fn opened(&self, now: Time, more: u32) -> usize {
        let since = now.since(self.begun);
        let parts = if self.heard.is_none() && since < OPENS_FOR { parts_of(since) } else { 0 };
        highest_within(&self.ladder, climbed(first_rate(self.packet_size), parts + more))
    }

    /// Whether what is sent is what receivers have told.
    fn is_followed(&self) -> bool {
        self.are_few && self.heard.is_some()
    }

    /// The levels that receivers want.
    fn wanted(&self) -> impl Iterator<Item = usize> {
        self.receivers.values().map(|report| report.level)
    }

    /// The level that this receiver wants.
    pub(super) fn wanted_by(&self, receiver: u32) -> Option<usize> {
        self.receivers.get(&receiver).map(|report| report.level)
    }
}

/// The receiver's side: when it tells what it wants.
///
/// It reports each change at once, unless the group is so large that nobody is followed. As reports get lost, it repeats each one, first after a slot and then less
/// and less often, down to the regular interval.
#[derive(Debug)]
pub(super) struct Reporter {
    receiver: u32,
    /// The level and the eighths that it told last.
    told: (u16, u8),
    /// Roughly how long it waits before it repeats the report.
    pause: Duration,
    next: Option<Time>,
}

impl Reporter {
    /// Reports of the receiver with this number, which should be another than that of any other.
    pub(super) fn new(receiver: u32) -> Reporter {
        Reporter { receiver: receiver & probe::MOST_RECEIVER, told: (0, 0), pause: FIRST_PAUSE, next: None }
    }

    /// The receiver's number.
    pub(super) const fn receiver(&self) -> u32 {
        self.receiver
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// The next report is due then.
    pub(super) fn tell_again(&mut self, at: Option<Time>) {
        self.next = at;
    }

    /// The report to send now, if one is due, from a receiver that wants this level and this many eighths of the next step. `turn` is a random number between 0
    /// and 1.
    pub(super) fn on_wants(
        &mut self,
        now: Time,
        (level, eighths): (usize, u8),
        interval: Interval,
        turn: f64,
    ) -> Option<Wanted> {
        let level = level.min(usize::from(Wanted::MOST_LEVEL)) as u16;
        let is_due = self.next.is_some_and(|next| next <= now);
        let is_told_at_once = interval <= LONGEST_FOLLOWED || level == 0;
        let is_news = (level, eighths) != self.told && is_told_at_once;
        if !is_due && !is_news {
            return None;
        }
        self.told = (level, eighths);
        let regular = interval.span() * REPORT_INTERVALS;
        self.pause = if is_news { FIRST_PAUSE } else { self.pause * LONGER_PAUSE }.min(regular);
        self.next = (level > 0).then(|| now + self.pause.mul_f64(0.5 + turn));
        Some(Wanted { receiver: self.receiver, level, eighths })
    }
}

/// The level that a receiver wants that starts and is at this level: the sender hears of it half a `round_trip` after its join, and what it
/// sends is there half a round trip later. Until then the receiver climbs, after each burst.
pub(super) fn wanted_in_start(ladder: &Ladder, level: usize, round_trip: Duration) -> usize {
    let parts = parts_of(round_trip + START_UP_BURST);
    highest_within(ladder, climbed(ladder.level_rate(level), parts)).max(level)
}

/// The whole parts of slots in this time.
fn parts_of(span: Duration) -> u32 {
    (span.as_millis() / START_UP_PART.as_millis()).min(MOST_PARTS) as u32
}

/// The rate that a starting receiver can reach from `rate` within this many parts, counted from the beginning of a slot. A slow receiver sees
/// one burst per slot, a fast one a burst in every part.
fn climbed(mut rate: Rate, mut parts: u32) -> Rate {
    while parts > 0 {
        rate = rate.scale(if rate <= cycle::SLOW { 4.0 } else { 2.0 });
        parts = parts.saturating_sub(if rate <= cycle::SLOW { START_UP_PARTS } else { 1 });
    }
    rate
}

fn highest_within(ladder: &Ladder, rate: Rate) -> usize {
    ladder.rates().partition_point(|of| *of <= rate).max(1)
}

/// The level at which receivers begin.
pub(super) fn first_level(ladder: &Ladder, packet_size: Bytes) -> usize {
    highest_within(ladder, first_rate(packet_size))
}

/// And its rate, at most: ten packets in a slot (RFC 6928's initial window, over 100 ms).
fn first_rate(packet_size: Bytes) -> Rate {
    Rate::from_packets_per_sec(FIRST_PACKETS / SLOT.as_secs_f64(), packet_size)
}

const FIRST_PACKETS: f64 = 10.0;
/// For so long a receiver that is there from the beginning may not have been heard: half a round trip by way of a geostationary satellite, and until
/// a report that was lost is repeated. By then it has sent 8 MB at most.
const OPENS_FOR: Duration = Duration::from_millis(400);
/// By then any ladder is open.
const MOST_PARTS: u128 = 120;
/// A receiver reports once in this many probe intervals, give or take half.
const REPORT_INTERVALS: u32 = 4;
/// A report is repeated after this long, give or take half, so that a lost one delays what was joined by no more.
const FIRST_PAUSE: Duration = SLOT;
/// Each pause is longer than the one before by this factor.
const LONGER_PAUSE: u32 = 4;
/// A receiver that has not reported for this many probe intervals has gone, or at least three of its reports were lost.
const REMEMBERED_INTERVALS: u32 = 20;
/// At longer intervals a receiver that has climbed would be heard too late, or too many would tell at once.
pub(super) const LONGEST_FOLLOWED: Interval = Interval::from_octaves(2);
/// More than are followed. Somebody who makes up receivers has all sent.
const MOST_RECEIVERS: usize = 2_000;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const SIZE: Bytes = Bytes::new(1484);
    const SHORT: Interval = Interval::LEAST;

    fn ladder() -> Ladder {
        Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(1000), 1.15).expect("valid")
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn demand() -> Demand {
        let mut demand = Demand::new(&ladder(), SIZE);
        demand.on_start(Time::ZERO);
        demand
    }

    fn mbps(demand: &Demand) -> f64 {
        ladder().level_rate(demand.levels()).bps() as f64 / 1e6
    }

    fn tell(demand: &mut Demand, millis: u64, receiver: u32, level: u16) {
        demand.on_report(at(millis), Wanted { receiver, level, eighths: 0 }, SHORT);
    }

    #[test]
    fn a_sender_that_hears_nobody_opens_its_ladder_for_a_moment_and_then_sends_little() {
        let mut demand = demand();
        // 1.1872 Mbit/s by four, by four again, and then by two twice in a slot.
        for (millis, wanted) in [(0, 4.75), (100, 19.0), (200, 76.0), (350, 608.0), (400, 4.75), (3_600_000, 4.75)] {
            demand.on_time(at(millis), SHORT);
            let opened = mbps(&demand) / wanted;
            assert!((0.86..=1.0).contains(&opened), "{opened} of {wanted} Mbit/s after {millis} ms");
            assert_eq!(demand.audience().map(|audience| audience.receivers), Some(0));
        }
    }

    #[test]
    fn the_highest_receiver_has_its_level() {
        let mut demand = demand();
        tell(&mut demand, 1_000, 1, 30);
        tell(&mut demand, 1_000, 2, 20);
        assert_eq!(demand.levels(), 30);
        tell(&mut demand, 2_000, 2, 31);
        assert_eq!(demand.levels(), 31);
        tell(&mut demand, 2_100, 2, 19);
        assert_eq!(demand.levels(), 30);
        tell(&mut demand, 2_100, 1, Wanted::MOST_LEVEL);
        assert_eq!(demand.levels(), ladder().levels(), "there is nothing above");
    }

    #[test]
    fn who_leaves_or_is_not_heard_for_twenty_intervals_wants_nothing() {
        let mut demand = demand();
        tell(&mut demand, 1_000, 1, 40);
        tell(&mut demand, 2_000, 2, 30);
        tell(&mut demand, 3_000, 1, 0);
        assert_eq!(demand.levels(), 30);
        assert!(!demand.on_time(at(21_900), SHORT));
        assert!(demand.on_time(at(22_000), SHORT));
        assert!((4.0..=4.75).contains(&mbps(&demand)), "{}", mbps(&demand));
    }

    #[test]
    fn whoever_comes_to_a_sender_that_hears_nobody_has_its_level_at_once() {
        let mut demand = demand();
        tell(&mut demand, 1_000, 1, 40);
        tell(&mut demand, 2_000, 1, 0);
        demand.on_time(Time::from_secs(3_600), SHORT);
        assert!((4.0..=4.75).contains(&mbps(&demand)), "{}", mbps(&demand));
        tell(&mut demand, 3_600_100, 4, 20);
        assert_eq!(demand.levels(), 20);
    }

    #[test]
    fn the_levels_that_receivers_have_are_known_while_few_are_heard() {
        let mut demand = demand();
        assert_eq!(demand.known(), None, "nobody was heard");
        tell(&mut demand, 1_000, 1, 30);
        assert_eq!(demand.known(), Some(vec![30]));
        for (receiver, level) in [(2, 30), (3, 12), (4, 20)] {
            tell(&mut demand, 1_000, receiver, level);
        }
        assert_eq!(demand.known(), Some(vec![12, 20, 30]));
        let rate = |level| ladder().level_rate(level);
        assert_eq!(demand.audience(), Some(Audience { receivers: 4, lowest: rate(12), highest: rate(30) }));
        demand.on_time(at(1_100), Interval::from_octaves(3));
        assert_eq!((demand.known(), demand.audience()), (None, None), "nobody is followed");
    }

    #[test]
    fn a_level_to_which_somebody_comes_is_owed_two_folded_bursts() {
        let mut demand = demand();
        assert_eq!(demand.owed(), None);
        tell(&mut demand, 0, 1, 20);
        demand.on_folded(19);
        demand.on_folded(20);
        assert_eq!(demand.owed(), Some(20));
        tell(&mut demand, 4_000, 1, 20);
        demand.on_folded(20);
        assert_eq!(demand.owed(), None, "to tell a level again is nothing new");
        tell(&mut demand, 5_000, 1, 18);
        assert_eq!(demand.owed(), Some(18));
    }

    #[test]
    fn a_large_group_gets_all_and_so_does_one_that_somebody_makes_up() {
        let mut demand = demand();
        tell(&mut demand, 1_000, 1, 3);
        assert!(demand.on_time(at(1_100), Interval::from_octaves(3)));
        assert_eq!(demand.levels(), ladder().levels());
        assert!(demand.on_time(at(1_200), Interval::from_octaves(2)));
        assert_eq!(demand.levels(), 3);
        (0..5_000).for_each(|number| tell(&mut demand, 1_300, number, 1));
        assert_eq!(demand.levels(), ladder().levels());
        assert!(demand.receivers.len() <= MOST_RECEIVERS);
    }

    #[test]
    fn a_receiver_tells_of_a_change_at_once_and_soon_again_and_else_every_four_intervals_or_so() {
        let mut reporter = Reporter::new(1);
        let mut tells = |millis: u64, level| reporter.on_wants(at(millis), (level, 0), SHORT, 0.5).is_some();
        let mut told = |from: u64, to: u64, level| -> Vec<u64> {
            (from..to).step_by(50).filter(|millis| tells(*millis, level)).map(|millis| millis - from).collect()
        };
        assert_eq!(told(0, 12_000, 9), [0, 100, 500, 2_100, 6_100, 10_100]);
        assert_eq!(told(12_000, 12_400, 15), [0, 100]);
        assert_eq!(told(12_400, 13_000, 14), [0, 100, 500]);
    }

    #[test]
    fn where_nobody_is_followed_a_receiver_tells_of_no_change_but_that_it_leaves() {
        let mut reporter = Reporter::new(u32::MAX);
        let mut tells =
            |millis: u64, level, interval| reporter.on_wants(at(millis), (level, 0), interval, 0.5).is_some();
        assert!(tells(4_000, 14, SHORT) && tells(4_100, 14, SHORT));
        let long = Interval::from_octaves(3);
        assert!(!tells(4_400, 16, long), "nobody is followed");
        assert!(tells(4_500, 0, long), "it leaves");
        reporter.tell_again(Some(at(5_000)));
        let named = reporter.on_wants(at(5_000), (1, 0), long, 0.0);
        assert_eq!(named, Some(Wanted { receiver: probe::MOST_RECEIVER, level: 1, eighths: 0 }));
    }

    #[test]
    fn something_is_unwanted_where_more_than_what_the_lowest_wants_is_sent_or_nobody_is_known() {
        let mut demand = demand();
        assert!(demand.is_unwanted(1));
        tell(&mut demand, 1_000, 1, 30);
        assert!(!demand.is_unwanted(30));
        tell(&mut demand, 1_000, 2, 29);
        assert!(demand.is_unwanted(30));
        assert!(!demand.is_unwanted(29), "that is withheld");
    }

    #[test]
    fn in_the_start_a_receiver_wants_what_it_may_climb_to_within_a_round_trip() {
        let of = |mbps: u64, millis| {
            let level = highest_within(&ladder(), Rate::from_mbps(mbps));
            let wanted = wanted_in_start(&ladder(), level, Duration::from_millis(millis));
            let times = ladder().level_rate(wanted).bps() as f64 / ladder().level_rate(level).bps() as f64;
            weir_units::math::log2(times).round()
        };
        assert_eq!([of(50, 1), of(50, 29), of(50, 30), of(50, 80), of(50, 130)], [0.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            (of(5, 29), of(5, 100), of(600, 300)),
            (0.0, 3.0, 1.0),
            "slow ones climb by four, and none beyond the top"
        );
    }

    #[test]
    fn the_part_of_the_next_step_is_what_all_that_want_the_highest_level_want_of_it() {
        let mut demand = demand();
        let mut part = |millis, receiver, level, eighths| {
            demand.on_report(at(millis), Wanted { receiver, level, eighths }, SHORT);
            demand.part()
        };
        assert_eq!([part(1_000, 1, 30, 5), part(1_000, 2, 30, 3), part(1_000, 3, 20, 0)], [5, 3, 3]);
        assert_eq!([part(1_100, 2, 31, 0), part(1_200, 2, 0, 0)], [0, 5]);
        demand.on_time(at(1_300), Interval::from_octaves(3));
        assert_eq!(demand.part(), 0, "nobody is followed");
    }

    #[test]
    fn a_receiver_tells_of_another_part_at_once() {
        let mut reporter = Reporter::new(1);
        let mut tells = |millis: u64, wanted| reporter.on_wants(at(millis), wanted, SHORT, 0.5).is_some();
        assert_eq!(
            [tells(0, (9, 0)), tells(50, (9, 3)), tells(100, (9, 3)), tells(110, (9, 0))],
            [true, true, false, true]
        );
    }
}
