//! When a receiver changes its level. Knows nothing of packets.

use core::time::Duration;

use weir_units::{Bytes, Rate, Time};

use super::bars::Bars;
use super::burst::Verdict;
use super::climb::Carried;
use super::config::Config;
use super::cycle::Burst;
use super::demand;
use super::flows::{AGREEING, Flows};
use super::others::Others;
use super::own_queue::OwnQueue;
use super::part::Part;
use crate::layers::Ladder;
use crate::observation::LevelCause;

/// What a receiver knows at the end of a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) now: Time,
    pub(super) level: usize,
    /// The highest level that it may have.
    pub(super) most: usize,
    /// What came since the level changed, in the last second.
    pub(super) arrived: Rate,
    /// The rate at which the path has delivered what was sent in the last cycle. It is less than what was sent while a queue grows.
    pub(super) delivered: Rate,
    /// Whether so much of it was lost that the rate is far beyond the path's.
    pub(super) has_lost_much: bool,
    /// Whether notably more is lost since the level changed than before.
    pub(super) loses_more: bool,
    /// Whether the queue is empty, and whether it is full.
    pub(super) is_empty: bool,
    pub(super) is_full: bool,
    /// Whether the cycle that ends with this slot had a slot with an empty queue.
    pub(super) was_empty_in_cycle: bool,
    /// Whether this is the last slot before the burst that stands for the next level.
    pub(super) ends_cycle: bool,
    /// What the burst for the next level told, if there was a whole one that told something.
    pub(super) verdict: Option<Verdict>,
    /// A packet's time at the receiver's rate.
    pub(super) packet_time: Duration,
    /// Whether a loss event began in the slot.
    pub(super) loss_event: bool,
    /// When the latest one began, and the mean time between them.
    pub(super) latest_loss_event: Option<Time>,
    pub(super) mean_interval: Option<Duration>,
    /// When a queue stood last.
    pub(super) latest_queue: Option<Time>,
    /// And when one of a millisecond or more did, which is less than a slow receiver's packets wait for each other.
    pub(super) latest_short_queue: Option<Time>,
    /// How long the latest packets waited.
    pub(super) queue: Duration,
    /// Whether other flows have kept a queue in the last seconds.
    pub(super) is_contended: bool,
    /// The rate of a TCP in the receiver's place.
    pub(super) share: Rate,
    /// And the one to which it would go from there.
    pub(super) settled: Rate,
    /// Whether a leave is still to act.
    pub(super) is_pending: bool,
}

impl Seen {
    /// Whether the latest congestion is over: its loss event is three mean intervals ago, or no queue has stood since for longer than a TCP
    /// leaves one empty. A receiver that was hit by few events would wait longer than one that was hit by many, and find no room any more.
    fn is_over_congestion(&self) -> bool {
        let Some(lost) = self.latest_loss_event else { return true };
        let pause = self.mean_interval.unwrap_or_default() * 3;
        self.now.since(lost) >= pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE) || self.has_been_without(self.latest_queue)
    }

    /// Whether since the latest loss event this queue has not stood for longer than a TCP leaves one empty.
    fn has_been_without(&self, queue: Option<Time>) -> bool {
        let Some(lost) = self.latest_loss_event else { return false };
        self.now.since(queue.map_or(lost, |stood| stood.max(lost))) >= LONGEST_EMPTY
    }
}

/// What to do.
pub(super) type Change = Option<(usize, LevelCause)>;

/// The rules, and what they remember.
#[derive(Debug)]
pub(super) struct Rules {
    hold: Duration,
    trial: Duration,
    ladder: Ladder,
    /// Where receivers begin. Below it start-up bursts have too few packets to tell.
    first: usize,
    /// The receiver looks for its rate.
    is_starting: bool,
    /// In the start: how many slots have ended since the level changed.
    idle: u32,
    /// Since when no start-up burst has come that the path carried.
    overfull: Option<Time>,
    /// Levels in a row that were joined one by one since the start was over, none of them too much.
    climbed: u32,
    /// The start was cut short: a loss event has come since, or it went as far as one flow was seen to get.
    was_cut_short: bool,
    /// When the level changed last.
    changed: Time,
    /// A join that may still turn out to be too much.
    trying: Option<Trying>,
    /// Bursts in a row that fitted.
    fitted: u32,
    /// Receivers behind the same bottleneck that have more.
    others: Others,
    flows: Flows,
    /// What it takes of the next step.
    part: Part,
    /// Levels that were too much.
    bars: Bars,
    /// When the level was raised last to follow others.
    followed: Option<Time>,
    own_queue: OwnQueue,
    /// In the start, next to others: when the rate was raised last.
    raised: Option<Time>,
    /// When a start-up burst had a level joined, and which: the latest.
    started: Option<(Time, usize)>,
}

#[derive(Debug, Clone, Copy)]
struct Trying {
    since: Time,
    /// The level to go back to.
    back: usize,
    /// Other flows kept a queue shortly before.
    contended: bool,
}

impl Rules {
    pub(super) fn new(config: &Config, ladder: &Ladder, packet_size: Bytes) -> Rules {
        Rules {
            hold: config.hold,
            trial: config.trial,
            ladder: ladder.clone(),
            first: demand::first_level(ladder, packet_size),
            is_starting: true,
            idle: 0,
            overfull: None,
            climbed: 0,
            was_cut_short: false,
            changed: Time::ZERO,
            trying: None,
            fitted: 0,
            others: Others::default(),
            flows: Flows::default(),
            part: Part::new(config),
            bars: Bars::new(ladder.levels(), config.back_off),
            followed: None,
            own_queue: OwnQueue::default(),
            raised: None,
            started: None,
        }
    }

    /// Whether the receiver still looks for its rate.
    pub(super) const fn is_starting(&self) -> bool {
        self.is_starting
    }

    /// Whether the latest join is on trial, so that a loss is its fault.
    pub(super) fn is_trying(&self, now: Time) -> bool {
        self.trying.is_some_and(|trying| now.since(trying.since) < self.trial)
    }

    /// The part of the next step that the receiver wants, in eighths.
    pub(super) const fn part(&self) -> u8 {
        self.part.eighths()
    }

    /// A packet was lost to congestion. If a part of the next step was on trial, that is taken back. Whether one was.
    pub(super) fn take_back_part(&mut self, now: Time) -> bool {
        let is_trying = self.part.is_on_trial();
        if is_trying {
            self.part.take_back(now);
        }
        is_trying
    }

    /// A packet was lost while a join was on trial: the join is taken back, and the level left alone for a while.
    pub(super) fn take_back(&mut self, now: Time, level: usize) -> Change {
        let trying = self.trying.take()?;
        // The queue that it leaves is nobody else's.
        self.end_start();
        self.bars.bar(now, level, trying.contended);
        self.fitted = 0;
        self.others.forget();
        Some((trying.back, LevelCause::Drop))
    }

    /// A packet was lost in the start, and nobody else's queue stood there, or less arrives than is sent: the last step was too much for the path.
    pub(super) fn overshot(&mut self, level: usize, arrived: Rate) -> Change {
        self.end_start();
        let within = self.highest_within(arrived.scale(DRAINING));
        (within < level).then_some((within, LevelCause::SlowStartEnd))
    }

    /// The level has changed, by these rules or a manager's.
    pub(super) fn on_change(&mut self, now: Time) {
        self.changed = now;
        (self.fitted, self.idle) = (0, 0);
        self.flows.on_change();
        self.part.forget();
    }

    /// The start is over: the path is full, or others share it.
    pub(super) fn end_start(&mut self) {
        self.is_starting = false;
        self.overfull = None;
        self.climbed = 0;
    }

    /// The receiver looks for its rate again.
    pub(super) fn start_again(&mut self) {
        (self.is_starting, self.idle, self.overfull) = (true, 0, None);
        self.part.forget();
    }

    /// Whether the receiver has what one flow gets where channels queue apart.
    pub(super) fn is_held_apart(&self, now: Time) -> bool {
        !self.is_starting && self.flows.are_apart(now) && self.flows.share().is_some()
    }

    /// What one flow gets is measured again.
    pub(super) fn measure_share(&mut self) {
        self.flows.count_again();
    }

    /// Whether one flow gets what folded bursts have shown since [`Rules::measure_share`].
    pub(super) fn has_larger_share(&self) -> bool {
        self.flows.fit()
    }

    /// The flows that the path was shared with have gone: the receiver looks for its rate as on a path that it does not know.
    pub(super) fn start_afresh(&mut self) {
        self.flows = Flows::default();
        self.start_again();
    }

    /// A slot has ended.
    pub(super) fn on_slot(&mut self, seen: &Seen) -> Change {
        if self.trying.is_some_and(|trying| seen.now.since(trying.since) >= self.trial) {
            self.trying = None;
        }
        self.part.on_time(seen.now);
        self.own_queue.on_slot(seen, self.rate(seen.level));
        self.idle += 1;
        if self.is_starting && self.idle >= LONGEST_IDLE {
            self.end_start();
        }
        if seen.loss_event {
            self.part.forget();
            return self.on_loss_event(seen);
        }
        if seen.is_pending {
            return None;
        }
        if self.gives_up_part(seen) {
            return None;
        }
        if seen.ends_cycle && self.is_trial_too_much(seen) {
            return self.take_back(seen.now, seen.level);
        }
        if self.has_just_started(seen) && self.own_queue.stands(seen, self.rate(seen.level)) {
            self.bar_start(seen, seen.delivered);
            return self.overshot(seen.level, seen.delivered);
        }
        if self.is_alone_again(seen) {
            self.was_cut_short = false;
            self.bars.lift_contended();
            self.start_again();
        }
        if self.is_starting { self.start(seen) } else { self.follow(seen) }
    }

    /// Takes a part of a step back that filled the queue, and gives one up next to others that do. Whether there was one.
    fn gives_up_part(&mut self, seen: &Seen) -> bool {
        let has_stood = seen.ends_cycle && !seen.was_empty_in_cycle;
        let (part, is_trying) = (self.part(), self.part.has_been_on_trial_for(seen.now, A_CYCLE));
        if is_trying && (has_stood || seen.is_full || seen.ends_cycle && seen.loses_more) {
            self.part.take_back(seen.now);
        } else if has_stood && !self.part.is_on_trial() {
            self.part.forget();
        }
        self.part() < part
    }

    /// Whether the flows that shared the path seem to have ended: a higher level fits, and since the latest loss event not even a short
    /// queue has stood for longer than a TCP leaves one empty.
    fn is_alone_again(&self, seen: &Seen) -> bool {
        let above = seen.level + 1;
        let may_join = above <= seen.most && !self.bars.hold_uncontended(seen.now, above);
        let has_room = self.was_cut_short && (self.fitted >= AGREEING || self.climbed > 0)
            || !self.is_starting && self.climbed >= AGREEING;
        let flows_let = self.flows.let_start(seen.now) && self.flows.let_join(seen.now, self.rate(above));
        has_room && may_join && flows_let && seen.has_been_without(seen.latest_short_queue)
    }

    /// Whether the queue has stood since the join on trial, or more is lost. Behind a fair queue the channel that is too much waits
    /// and is lost alone.
    fn is_trial_too_much(&self, seen: &Seen) -> bool {
        let tried_long_enough = |trying: Trying| seen.now.since(trying.since) >= A_CYCLE;
        self.trying.is_some_and(tried_long_enough) && (!seen.was_empty_in_cycle || seen.loses_more)
    }

    /// A burst is over.
    pub(super) fn on_burst(&mut self, seen: &Seen) -> Change {
        let verdict = seen.verdict.filter(|_| !seen.is_pending)?;
        match verdict.kind {
            Burst::Folded => self.on_folded_burst(seen, &verdict),
            Burst::NextLevel => {
                let change = self.probe(seen, &verdict);
                // Where channels queue apart, bursts in all of them do not tell what one flow gets.
                if change.is_none() && !self.flows.are_apart(seen.now) {
                    self.fit_part(seen, &verdict);
                }
                change
            }
        }
    }

    /// Less, where channels queue apart and one flow gets less.
    fn on_folded_burst(&mut self, seen: &Seen, verdict: &Verdict) -> Change {
        self.flows.on_burst(seen.now, verdict, seen.packet_time);
        let Some(share) = self.flows.share().filter(|share| *share < self.rate(seen.level).scale(LEAVE_SHARE)) else {
            self.fit_part(seen, verdict);
            return None;
        };
        self.end_start();
        Some((self.highest_within(share.scale(LAND_SHARE)).min(seen.level - 1), LevelCause::Drop))
    }

    /// A start-up burst is over. It tells what the path carries, where nothing stood before it.
    pub(super) fn on_start_up_burst(&mut self, seen: &Seen, carried: Carried) -> Change {
        if !self.is_starting || !seen.is_empty || seen.is_pending {
            return None;
        }
        if carried.is_full {
            // It may have been late for another reason: hosts and radio links stall now and then.
            let since = *self.overfull.get_or_insert(seen.now);
            if seen.now.since(since) >= LONGEST_STALL {
                self.end_start();
            }
        } else if carried.rate >= self.rate(seen.level).scale(TELLING) {
            self.overfull = None;
        }
        self.go_on(seen, self.highest_within(carried.rate.scale(START_SHARE)))
    }

    /// The start goes on at the highest level that the receiver may have, up to `most`.
    fn go_on(&mut self, seen: &Seen, most: usize) -> Change {
        let may_join =
            |level: &usize| !self.is_barred(seen, *level) && self.flows.let_join(seen.now, self.rate(*level));
        let level = (seen.level + 1..=most).take_while(may_join).last()?;
        // What is lost from here on is no trial's fault: the receiver would go back to the level before that.
        self.trying = None;
        self.started = Some((seen.now, level));
        if !self.flows.let_join(seen.now, self.rate(level + 1)) {
            // While somebody starts, no folded burst shows whether one flow gets more.
            self.end_start();
            self.was_cut_short = true;
        }
        Some((level, LevelCause::SlowStart))
    }

    /// The start without start-up bursts. Below the level where receivers begin they tell nothing, so the receiver goes there. Where a queue
    /// stands that others keep up, it goes up by half in a second until a packet is lost, as a TCP's slow start would, only slower.
    fn start(&mut self, seen: &Seen) -> Change {
        if seen.level < self.first && seen.is_empty {
            return self.go_on(seen, self.first);
        }
        // A queue since a join on trial is that join's.
        let is_others = seen.is_full && self.trying.is_none();
        if is_others && seen.latest_loss_event.is_some() {
            self.end_start();
            return None;
        }
        if is_others && seen.now.since(self.raised.unwrap_or(self.changed)) >= Duration::from_secs(1) + seen.queue {
            if self.own_queue.stands(seen, self.rate(seen.level)) {
                return self.overshot(seen.level, seen.delivered);
            }
            self.raised = Some(seen.now);
            let level = self.highest_within(self.rate(seen.level).scale(1.5));
            return self.up(seen, level.max(seen.level + 1), LevelCause::SlowStart);
        }
        None
    }

    /// The next level, where its burst fitted, nothing stands, and the last congestion is long ago.
    fn probe(&mut self, seen: &Seen, verdict: &Verdict) -> Change {
        let fits = verdict.fits(seen.packet_time) && seen.is_empty;
        self.fitted = if fits { self.fitted + 1 } else { 0 };
        self.others.on_burst(verdict, fits, seen.packet_time);
        let is_below_others = seen.is_empty && self.others.have_more_than(seen.level);
        if !seen.is_over_congestion()
            || self.is_barred(seen, seen.level + 1)
            || !self.flows.let_join(seen.now, self.rate(seen.level + 1))
            || !is_below_others && self.fitted < bursts_needed(seen)
        {
            return None;
        }
        self.trying = Some(Trying { since: seen.now, back: seen.level, contended: seen.is_contended });
        if is_below_others {
            let most = self.others.stride_from(seen.level);
            let allowed = (seen.level + 1..=most).take_while(|level| !self.is_barred(seen, *level));
            return allowed.last().map(|level| (level, LevelCause::Add));
        }
        self.climbed += 1;
        if self.climbed >= AGREEING && seen.latest_loss_event.is_none() && !self.flows.are_apart(seen.now) {
            // There is room for more than a step or two: the start was over too soon.
            self.start_again();
        }
        Some((seen.level + 1, LevelCause::Add))
    }

    /// As much of the next step as fits, where all of it does not. It grows where the step might be joined.
    fn fit_part(&mut self, seen: &Seen, verdict: &Verdict) {
        let above = seen.level + 1;
        if self.is_starting || verdict.fits(seen.packet_time) || above > self.ladder.levels() {
            return;
        }
        let levels = [seen.level, above].map(|level| self.rate(level));
        let may_grow = seen.is_empty && seen.is_over_congestion() && above <= seen.most && self.trying.is_none();
        self.part.on_burst(seen.now, verdict.carried_by_slope(), levels, may_grow.then(|| bursts_needed(seen)));
    }

    /// Whether the receiver may not have the level, or it was too much a short while ago, or there is none.
    fn is_barred(&self, seen: &Seen, level: usize) -> bool {
        level > seen.most || self.bars.hold(seen.now, level)
    }

    /// More, where a queue stands and a TCP would have more; where channels queue apart, no more than one flow was seen to get.
    fn follow(&mut self, seen: &Seen) -> Change {
        let share = seen.settled;
        let shared = seen.is_full || seen.latest_loss_event.is_some_and(|at| seen.now.since(at) < self.hold);
        // A queue since a part on trial is that part's.
        if !shared || self.part.is_on_trial() || seen.now.since(self.changed) < self.hold {
            return None;
        }
        if self.own_queue.stands(seen, self.rate(seen.level)) {
            // The last join was to follow others, but they made no room, and the queue has grown long.
            let within = self.highest_within(seen.delivered.scale(DRAINING));
            let was_too_much = self.followed == Some(self.changed) && self.own_queue.is_long() && within < seen.level;
            return was_too_much.then_some((within, LevelCause::Drop));
        }
        if share < self.rate(seen.level + 1).scale(JOIN_SHARE) {
            return None;
        }
        let most = share.scale(1.0 / JOIN_SHARE).min(self.rate(seen.level).scale(MOST_UP));
        let level = self.highest_within(most).max(seen.level + 1).min(self.ladder.levels());
        let change = self.up(seen, level, LevelCause::Add).filter(|_| self.flows.let_join(seen.now, self.rate(level)));
        if change.is_some() {
            self.followed = Some(seen.now);
        }
        change
    }

    /// Whether the level is what a start took a short while ago. Where receivers begin nothing has shown what the path carries, and a short burst may
    /// pass where the rate does not, as through a token bucket.
    fn has_just_started(&self, seen: &Seen) -> bool {
        self.started.is_some_and(|(at, level)| level == seen.level && seen.now.since(at) < self.trial)
    }

    /// A start took more than the path carries. The level above what `came` through is too much for later starts as well. Barring only the level that this
    /// one took would let them stop right below it.
    fn bar_start(&mut self, seen: &Seen, came: Rate) {
        self.bars.bar(seen.now, seen.level.min(self.highest_within(came) + 1), false);
    }

    /// Less, where a TCP would have less.
    fn on_loss_event(&mut self, seen: &Seen) -> Change {
        self.end_start();
        self.was_cut_short = true;
        self.fitted = 0;
        let start_took_too_much = self.has_just_started(seen);
        self.started = None;
        if start_took_too_much {
            self.bar_start(seen, seen.arrived);
        }
        if seen.is_pending {
            return None;
        }
        let rate = self.rate(seen.level);
        let mut most = rate;
        if seen.share < rate.scale(LEAVE_SHARE) {
            most = seen.share.scale(LAND_SHARE).max(rate.scale(0.5));
        }
        if seen.has_lost_much || start_took_too_much {
            most = most.min(seen.arrived.scale(DRAINING));
        }
        if self.own_queue.stands(seen, rate) {
            most = most.min(seen.delivered.scale(DRAINING));
        }
        let level = self.highest_within(most).min(seen.level);
        (level < seen.level).then_some((level, LevelCause::Drop))
    }

    fn up(&self, seen: &Seen, level: usize, cause: LevelCause) -> Change {
        let level = level.min(self.ladder.levels());
        (level > seen.level).then_some((level, cause))
    }

    fn rate(&self, level: usize) -> Rate {
        self.ladder.level_rate(level)
    }

    /// The highest level of at most this rate; the lowest one is always allowed.
    fn highest_within(&self, rate: Rate) -> usize {
        self.ladder.rates().partition_point(|of| *of <= rate).max(1)
    }
}

/// How many bursts in a row have to agree on what fits.
const fn bursts_needed(seen: &Seen) -> u32 {
    if seen.latest_loss_event.is_some() { AGREEING } else { 1 }
}

/// Whatever makes bursts late for so long is the path: two slots' bursts are further apart.
const LONGEST_STALL: Duration = Duration::from_millis(80);
/// A start ends after this many slots without a join, even if no queue has shown that the path is full.
const LONGEST_IDLE: u32 = 20;
/// What a burst shows beyond that is notably more than the receiver has.
const TELLING: f64 = 1.3;
/// In the start a receiver takes so much of what a burst says that the path carries.
const START_SHARE: f64 = 0.93;
/// Joins need a share that much above the level, so that it is not left again.
const JOIN_SHARE: f64 = 1.2;
/// A level is left when the share is below that part of it, for one of the share over √0.8.
const LEAVE_SHARE: f64 = 0.8;
const LAND_SHARE: f64 = 1.118;
/// A receiver that has too much goes to this part of what arrives, so that the queue drains.
const DRAINING: f64 = 0.95;
/// One join takes no more than that times the rate.
const MOST_UP: f64 = 1.3;
/// After congestion the next level is tried after three mean times between loss events, within these bounds.
const SHORTEST_PAUSE: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A TCP that has halved leaves its queue empty for less: CUBIC's K is 8 s for 670 packets, which are 50 Mbit/s and 160 ms.
pub(super) const LONGEST_EMPTY: Duration = Duration::from_secs(10);
/// A cycle, and a slot for the join to act.
const A_CYCLE: Duration = Duration::from_millis(900);

#[cfg(test)]
mod tests;
