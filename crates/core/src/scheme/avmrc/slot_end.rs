//! What a receiver does at the end of each slot.

use core::time::Duration;

use weir_units::{Rate, Time};

use super::config::{StepTest, Synchronisation};
use super::receiver::{Counts, Receiver};
use super::slow_start::jitter;
use super::subscription::{Change, bps};
use crate::endpoint::Action;
use crate::estimate::TimestampDifference;
use crate::membership::{Membership, Rejoin, is_too_much};
use crate::observation::{LevelCause, Observation, SlotReport, Wish};

impl Receiver {
    /// The deadline has come: the receiver's own clock may end a slot.
    pub(super) fn on_time(&mut self, now: Time) {
        let ended = self.slots.on_time(now);
        if ended > 0 {
            self.on_slots_end(now, ended, false, None);
        }
    }

    /// `ended` slots have ended; `next` is the TSD of the first packet of the one that begins, if a packet began it, and
    /// `signal` what that packet says about adds.
    pub(super) fn on_slots_end(&mut self, now: Time, ended: u64, signal: bool, next: Option<TimestampDifference>) {
        self.leaves.on_queue(now, self.delay.short_term());
        // What is measured while a leave is pending is of the level that was left (decision 7).
        let counting = if self.leaves.is_pending(now) { 0 } else { ended.min(MOST_SLOTS_AT_ONCE) };
        for _ in 0..counting {
            self.delay.on_slot();
            self.controller.on_slot(self.delay.long_term(), self.losses.intervals(), self.sustained.level());
        }
        let before = self.rules.slot();
        self.rules.on_slots(ended);
        self.sustained.on_slot(self.rules.level(), self.rules.slot());
        let targets = (!self.rules.is_slow_start()).then(|| self.targets());
        self.wish(targets);
        let host_dropped = self.host.take(now, self.config.tau * HOST_MEMORY_SLOTS);
        self.report(now, host_dropped, targets);
        let counts = core::mem::take(&mut self.counts);
        self.giving_up.on_slot(counts.bytes.per(now.since(self.slot_begun)));
        let may_add = match self.config.synchronisation {
            Synchronisation::Weak => signal,
            Synchronisation::None => self.rules.slot() / self.config.n_add > before / self.config.n_add,
        };
        let arrived = self.rate_arrived(now, ended, next, counts);
        if self.work.on_slot(counts.received) || is_too_much(host_dropped, counts.received) {
            self.on_host_overrun(now);
        } else if self.rules.is_slow_start() {
            self.continue_slow_start(now, arrived);
        } else if counts.measured > 0 {
            let may_add = self.permits_add(may_add, arrived);
            self.follow_targets(now, targets.unwrap_or([Rate::ZERO; 2]), may_add);
        }
        self.memberships.rejoin_silent(now, Rejoin::BaseFirst, &mut self.actions);
        self.slot_begun = now;
    }

    fn report(&mut self, now: Time, host_dropped_packets: u64, target_rate: Option<[Rate; 2]>) {
        let intervals = self.losses.intervals();
        let report = SlotReport {
            level: self.rules.level(),
            received_rate: self.counts.bytes.per(now.since(self.slot_begun)),
            received_packets: self.counts.received,
            lost_packets: self.counts.lost,
            host_dropped_packets,
            queuing_delay: [self.delay.short_term(), self.delay.long_term()],
            loss_event_rate: intervals.short_term_rate().zip(intervals.long_term_rate()).map(<[f64; 2]>::from),
            target_rate,
            vegas_beta_packets: self.controller.beta_packets(),
        };
        self.actions.push(Action::Observe(Observation::Slot(report)));
    }

    /// Slow start's test for the slots that have ended; `None` if it cannot be made.
    fn rate_arrived(
        &mut self,
        now: Time,
        ended: u64,
        next: Option<TimestampDifference>,
        counts: Counts,
    ) -> Option<bool> {
        let jitter = self.jitter();
        self.arrival.on_slots_end(now, ended, next, [counts.measured, counts.lost], jitter)
    }

    /// By how much delay may vary although nothing is wrong.
    fn jitter(&self) -> Duration {
        let rate = self.session.ladder.level_rate(self.rules.level());
        jitter(self.config.jitter_packets, self.session.packet_size, rate)
    }

    fn continue_slow_start(&mut self, now: Time, arrived: Option<bool>) {
        match arrived {
            Some(true) => self.go_on_with_slow_start(now),
            Some(false) => {
                self.end_slow_start(now, true);
                if self.rules.confirms_startup() {
                    self.closing.begin();
                }
            }
            _ => {}
        }
    }

    /// Slow start's test has passed. It speaks of a channel that was in effect from the first half of the slot on, or from its
    /// beginning where a step waits for that (decisions 13, 20).
    fn go_on_with_slow_start(&mut self, now: Time) {
        let whole = self.config.step_test == StepTest::Whole;
        let may_miss = if whole { Duration::ZERO } else { self.config.tau / 2 };
        let level = self.rules.level();
        if self.is_in_effect(self.newest(), may_miss) {
            self.sustained.on_confirmed(level);
        } else if self.config.step_test != StepTest::Last {
            return;
        } else if level > 1 && self.is_in_effect(self.memberships.of(level - 2), may_miss) {
            self.sustained.on_confirmed(level - 1);
        }
        if self.rules.is_top() {
            self.end_slow_start(now, false);
        } else if self.rules.may_go_on() {
            self.step_slow_start(now);
        }
    }

    /// Whether a channel may be added in this slot, which is one of the n_add-th if `is_adding_slot`.
    ///
    /// In the start-up phase it may in every slot. On real networks it asks there for what slow start asks for, for a
    /// short queue, and outside adding slots not for a channel just dropped: the queue that an add too many has left is no
    /// reason for the next (decision 10).
    fn permits_add(&self, is_adding_slot: bool, arrived: Option<bool>) -> bool {
        if !self.rules.is_startup() || !self.rules.confirms_startup() {
            return is_adding_slot || self.rules.is_startup();
        }
        arrived == Some(true)
            && !self.closing.is_open()
            && (is_adding_slot || !self.rules.is_next_just_dropped())
            && self.is_in_effect(self.newest(), Duration::ZERO)
            && self.delay.short_term() <= self.config.tau / 10 + self.jitter()
    }

    fn follow_targets(&mut self, now: Time, targets: [Rate; 2], may_add: bool) {
        // Its congestion is not to be answered again (decision 7).
        let is_leave_pending = self.leaves.is_pending(now);
        if is_leave_pending && self.rules.level() > 1 && self.gave_up_too_little(now) {
            return self.drop_channel(now, LevelCause::Drop);
        }
        if !is_leave_pending
            && self.closing.on_slot(self.delay.short_term(), self.config.tau / 20 + self.jitter())
            && self.rules.level() > 1
        {
            return self.drop_channel(now, LevelCause::SlowStartEnd);
        }
        match self.rules.judge(&self.session.ladder, self.counts_as(targets).map(bps), may_add) {
            Change::Add if self.newest().is_heard() && self.rules.may_go_on() => self.add_channel(now, LevelCause::Add),
            Change::Drop if !is_leave_pending => self.drop_channel(now, LevelCause::Drop),
            _ => {}
        }
    }

    /// What target rates count as, under a manager.
    fn counts_as(&self, targets: [Rate; 2]) -> [Rate; 2] {
        self.allotment.map_or(targets, |allotment| targets.map(|target| allotment.of(target)))
    }

    /// Tells a manager what the rules would do. In slow start they would go on.
    fn wish(&mut self, targets: Option<[Rate; 2]>) {
        if self.allotment.is_none() {
            return;
        }
        let (ladder, level) = (&self.session.ladder, self.rules.level());
        let wish = match targets {
            None => {
                let above = (level + 1).min(ladder.levels());
                Wish { level: above, share: ladder.level_rate(above), tries: true, at_most: None }
            }
            Some(targets) => {
                let counts = self.counts_as(targets).map(bps);
                let wished = match self.rules.judge(ladder, counts, false) {
                    Change::Drop => level - 1,
                    Change::Stay | Change::Add => self.rules.carried(ladder, counts).max(level),
                };
                Wish { level: wished, share: targets[0].min(targets[1]), tries: false, at_most: None }
            }
        };
        self.actions.push(Action::Observe(Observation::Wish(wish)));
    }

    fn on_host_overrun(&mut self, now: Time) {
        if self.rules.judge_host_drops() {
            self.drop_channel(now, LevelCause::HostDrops);
        }
        if self.rules.is_slow_start() {
            self.end_slow_start(now, false);
        }
    }

    /// Whether a channel's packets were there from the beginning of the slot that is being measured, but for `within`.
    fn is_in_effect(&self, channel: &Membership, within: Duration) -> bool {
        let Some(clock) = channel.first_clock().map(u64::from) else { return false };
        // The clock of a packet that long ago could be taken for one that is yet to come.
        if self.slot_begun.since(channel.joined()) > LONG_AGO {
            return true;
        }
        let past_empty_path = self.delay.micros_past_empty_path(self.slot_begun, clock, self.slot_begun);
        past_empty_path.is_some_and(|micros| micros >= -(within.as_micros() as i64))
    }

    fn newest(&self) -> &Membership {
        self.memberships.of(self.rules.level() - 1)
    }

    fn targets(&self) -> [Rate; 2] {
        let delays = [self.delay.short_term(), self.delay.long_term()];
        let targets = self.controller.targets(delays, self.losses.intervals());
        targets.map(|packets| Rate::from_packets_per_sec(packets, self.session.packet_size))
    }
}

/// A channel that was joined so long ago and has brought packets has done so for longer than any slot takes.
const LONG_AGO: Duration = Duration::from_secs(600);
/// A gap that shows later than this many slots after a drop by the host has another cause.
const HOST_MEMORY_SLOTS: u32 = 10;
/// After a long silence the averages do not move any further.
const MOST_SLOTS_AT_ONCE: u64 = 200;
