//! The receiver: measures, asks the model, adds and drops channels.

use core::time::Duration;

use weir_units::{Bytes, Rate, Time};
use weir_wire::Layered;

use super::closing::Closing;
use super::config::{Config, FirstInterval, Model, StepTest, Synchronisation};
use super::controller::Controller;
use super::giving_up::GivingUp;
use super::slots::SlotClock;
use super::slow_start::ArrivalTest;
use super::subscription::{Subscription, SustainedLevel};
use crate::definition::Session;
use crate::endpoint::{Action, Allotment, Endpoint, Event, Header, Origin, Packet};
use crate::estimate::{DelaySample, LossEvents, QueuingDelay};
use crate::membership::{Fall, HostDrops, Leaves, Memberships, Received, Reordering, Work};
use crate::observation::{LevelCause, Observation};
use crate::outbox::Outbox;

/// A receiver of AVMRC, RMRC or VMRC (AVMRC §3, §4.1).
///
/// Its clock is the driver's time, which need not agree with the sender's.
///
/// What every packet needs lies together, in five lines of the cache: with many receivers in one simulation, a packet costs
/// what it takes to fetch its receiver from memory. It begins at the end of `losses` and ends with the beginning of
/// `rules`; what lies around it is needed at the ends of slots.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Receiver {
    pub(super) session: Session,
    /// When the slot began that is being measured.
    pub(super) slot_begun: Time,
    pub(super) controller: Controller,
    pub(super) sustained: SustainedLevel,
    pub(super) losses: LossEvents,
    state: State,
    pub(super) memberships: Memberships,
    pub(super) counts: Counts,
    pub(super) host: HostDrops,
    pub(super) actions: Outbox,
    pub(super) slots: SlotClock,
    pub(super) delay: QueuingDelay,
    pub(super) rules: Subscription,
    pub(super) closing: Closing,
    pub(super) leaves: Leaves,
    pub(super) giving_up: GivingUp,
    pub(super) work: Work,
    pub(super) arrival: ArrivalTest,
    pub(super) config: Config,
    /// What a manager allots, if there is one.
    pub(super) allotment: Option<Allotment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Finished,
}

/// What came in the current slot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Of subscribed channels.
    pub(super) measured: u64,
    pub(super) lost: u64,
    pub(super) received: u64,
    pub(super) bytes: Bytes,
}

impl Receiver {
    /// A receiver of `session`.
    pub fn new(session: &Session, config: Config) -> Receiver {
        let levels = session.ladder.levels();
        let rates = session.ladder.channel_rates();
        let window = match config.synchronisation {
            Synchronisation::Weak => QUARTER_SLOT,
            Synchronisation::None => WHOLE_SLOT,
        };
        Receiver {
            state: State::Idle,
            memberships: Memberships::new(rates, session.packet_size, session.form, |_| {
                Reordering::fixed(config.reorder_packets)
            }),
            slots: SlotClock::new(config.synchronisation, config.tau, session.form.slot_bits()),
            slot_begun: Time::ZERO,
            delay: QueuingDelay::new(config.short_gain, config.long_gain, config.delay_window),
            losses: LossEvents::new(config.tau),
            arrival: ArrivalTest::new(config.slow_start_share, config.tau, window),
            controller: Controller::new(session, &config),
            rules: Subscription::new(&config, levels),
            sustained: SustainedLevel::new(&config, levels),
            leaves: Leaves::new(config.leave_wait, Fall::Half),
            giving_up: GivingUp::default(),
            host: HostDrops::default(),
            work: Work::default(),
            closing: Closing::default(),
            counts: Counts::default(),
            actions: Outbox::default(),
            session: session.clone(),
            config,
            allotment: None,
        }
    }

    /// The subscription level: 0 before the start and after the end.
    pub fn level(&self) -> usize {
        self.rules.level()
    }

    fn on_start(&mut self, now: Time) {
        self.state = State::Running;
        self.slots.start(now);
        self.slot_begun = now;
        let first = self.packets_in_aggressiveness(self.config.initial_packets);
        self.begin_slow_start(now, first);
    }

    /// The rate of `packets` packets in R.
    fn packets_in_aggressiveness(&self, packets: f64) -> Rate {
        Rate::from_packets_per_sec(packets / self.config.aggressiveness.as_secs_f64(), self.session.packet_size)
    }

    /// Begins slow start: level 1, or the highest level of at most `rate`.
    fn begin_slow_start(&mut self, now: Time, rate: Rate) {
        self.add_channel(now, LevelCause::Start);
        while self.rules.may_go_on() && self.session.ladder.level_rate(self.rules.level() + 1) <= rate {
            self.add_channel(now, LevelCause::Start);
        }
        self.rules.begin_step(1);
        self.end_slow_start_at_the_top(now);
    }

    /// Takes one step of slow start: the fewest channels that multiply the rate by the growth asked for.
    pub(super) fn step_slow_start(&mut self, now: Time) {
        let confirmed = self.rules.level();
        let enough = self.session.ladder.level_rate(confirmed).scale(self.config.slow_start_growth);
        self.rules.begin_step(confirmed);
        loop {
            self.add_channel(now, LevelCause::SlowStart);
            if !self.rules.may_go_on() || self.session.ladder.level_rate(self.rules.level()) >= enough {
                break;
            }
        }
        self.end_slow_start_at_the_top(now);
    }

    /// The paper's slow start is over when it reaches the top. A step of several channels is judged there too
    /// (decision 20).
    fn end_slow_start_at_the_top(&mut self, now: Time) {
        if self.rules.is_top() && self.config.step_test != StepTest::Whole {
            self.end_slow_start(now, false);
        }
    }

    fn on_finish(&mut self, now: Time) {
        self.state = State::Finished;
        if self.rules.level() == 0 {
            return;
        }
        while self.rules.level() > 0 {
            self.leave_highest(now);
        }
        self.observe_level(LevelCause::Finish);
    }

    fn on_packet(&mut self, now: Time, from: Origin, packet: &Packet) {
        let Header::Layered(header) = packet.header else { return };
        if !self.is_plausible(from, &header) {
            return;
        }
        match self.memberships.on_packet(now, &header, &mut self.delay) {
            Some(Received::Measured { missing, .. }) => {
                let ended = self.slots.on_packet(now, header.slot);
                if ended > 0 {
                    let next = self.delay.difference(now, header.clock_micros);
                    self.on_slots_end(now, ended, header.signal, next);
                }
                self.measure(now, &header, missing);
            }
            Some(Received::SentBefore | Received::Stray) => {}
            None => return,
        }
        self.counts.received += 1;
        self.counts.bytes += packet.size;
        self.actions.deliver(None);
    }

    /// Whether the fields are within their ranges, and the packet came on the channel that it names.
    fn is_plausible(&self, from: Origin, header: &Layered) -> bool {
        self.slots.is_number(header.slot) && self.memberships.is_plausible(from, header)
    }

    /// Takes a packet of a subscribed channel into the estimates.
    fn measure(&mut self, now: Time, header: &Layered, missing: u64) {
        match self.delay.on_packet(now, header.channel, header.clock_micros) {
            DelaySample::Taken(tsd) if self.rules.tests_arrival() => self.arrival.on_packet(now, tsd),
            DelaySample::Taken(_) | DelaySample::Ignored => {}
            DelaySample::Restarted(tsd) => {
                self.memberships.on_clock_restart(header.clock_micros);
                self.slots.forget();
                self.arrival.forget();
                self.arrival.on_packet(now, tsd);
            }
        }
        self.counts.measured += 1;
        let lost = self.host.attribute(missing);
        if lost > 0 {
            self.on_loss(now, lost);
        }
        self.losses.on_received();
    }

    fn on_loss(&mut self, now: Time, lost: u64) {
        self.counts.lost += lost;
        let had_history = self.losses.intervals().is_known();
        self.leaves.on_loss(now);
        if self.losses.on_loss(now, self.leaves.is_pending(now)) {
            self.actions.push(Action::Observe(Observation::LossEvent));
            self.closing.end();
            self.sustained.on_loss_event(self.rules.level(), self.rules.slot());
            if !had_history && self.config.first_interval == FirstInterval::Seeded {
                let kept = self.rules.level().saturating_sub(1).max(1);
                let implied = self.implied_loss_interval(kept, self.delay.short_term());
                let counted = self.losses.intervals().newest().unwrap_or(0.0);
                self.losses.intervals_mut().seed(implied.max(counted));
                let delay = self.delay.short_term();
                self.controller.seed_beta(delay, self.losses.intervals(), self.sustained.level());
            }
        }
        if self.rules.is_slow_start() {
            self.end_slow_start(now, true);
        }
    }

    /// Slow start is over; `too_far` if its last step was one too many, and is taken back (AVMRC §3.4).
    pub(super) fn end_slow_start(&mut self, now: Time, too_far: bool) {
        self.rules.end_slow_start();
        let tried = self.rules.level();
        while too_far && self.rules.level() > self.rules.step_begin() {
            self.drop_channel(now, LevelCause::SlowStartEnd);
        }
        self.rules.forget_drops_below(tried);
        if self.config.model == Model::Reno && !self.losses.intervals().is_known() {
            let interval = self.implied_loss_interval(self.rules.level(), self.delay.long_term());
            self.losses.intervals_mut().seed(interval);
        }
    }

    /// The loss interval at which the model gives the rate of `level` at this queuing delay.
    fn implied_loss_interval(&self, level: usize, delay: Duration) -> f64 {
        let rate = self.session.ladder.level_rate(level).packets_per_sec(self.session.packet_size);
        self.controller.implied_loss_interval(rate, delay)
    }

    pub(super) fn add_channel(&mut self, now: Time, cause: LevelCause) {
        let number = self.rules.add();
        self.sustained.on_add(self.rules.level(), self.rules.slot());
        self.memberships.join(now, number, &mut self.actions);
        self.observe_level(cause);
    }

    pub(super) fn drop_channel(&mut self, now: Time, cause: LevelCause) {
        self.leave_highest(now);
        self.observe_level(cause);
    }

    fn leave_highest(&mut self, now: Time) {
        self.giving_up.on_drop(now);
        let number = self.rules.drop_one();
        self.memberships.leave(number, &mut self.actions);
        if self.rules.level() > 0 {
            let packet_time = self.session.packet_size / self.session.ladder.level_rate(self.rules.level());
            self.leaves.on_leave(now, self.delay.short_term(), packet_time);
        }
    }

    /// A manager says what the receiver may have. A level that it had to give up was not too much for the path, so that its model
    /// learns nothing from that.
    fn on_allot(&mut self, now: Time, allotment: Allotment) {
        self.allotment = Some(allotment);
        self.rules.set_most(allotment.level);
        if self.state != State::Running {
            return;
        }
        let before = self.rules.level();
        while self.rules.level() > allotment.level.max(1) {
            self.leave_highest(now);
        }
        if self.rules.level() < before {
            self.rules.forget_drops_below(before + 1);
            self.observe_level(LevelCause::Allotted);
        }
    }

    /// Whether the channels that are left will still be too much when those given up have stopped (decision 7).
    pub(super) fn gave_up_too_little(&self, now: Time) -> bool {
        self.giving_up.was_too_little(now, &self.session.ladder, self.rules.level(), self.leaves.latency())
    }

    fn observe_level(&mut self, cause: LevelCause) {
        let level = self.rules.level();
        let rate = self.session.ladder.level_rate(level);
        self.actions.push(Action::Observe(Observation::Level { level, rate, cause }));
    }
}

impl Endpoint for Receiver {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match (self.state, event) {
            (State::Idle, Event::Start) => self.on_start(now),
            (State::Running, Event::Packet { from, packet }) => self.on_packet(now, from, packet),
            (State::Running, Event::Deadline) => self.on_time(now),
            (State::Running, Event::HostDropped { packets }) => self.host.on_dropped(now, packets),
            (State::Running, Event::Backlog(backlog)) => self.work.on_backlog(backlog),
            (_, Event::Allot(allotment)) => self.on_allot(now, allotment),
            (State::Idle | State::Running, Event::Finish) => self.on_finish(now),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop()
    }

    fn deadline(&self) -> Option<Time> {
        (self.state == State::Running).then(|| self.slots.deadline())
    }
}

/// In sixteenths of a slot: how much of it before its end tells the delay there. Without synchronisation a boundary may
/// fall anywhere into a burst, so that only the whole slot is sure to hold the burst's first packet.
const QUARTER_SLOT: u64 = 4;
const WHOLE_SLOT: u64 = 16;

#[cfg(test)]
mod tests {
    use core::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn what_a_packet_needs_lies_in_five_lines_of_the_cache() {
        let line = |offset: usize| offset / 64;
        let begins = offset_of!(Receiver, losses) + size_of::<LossEvents>() - size_of::<f64>();
        let ends = offset_of!(Receiver, rules) + size_of::<[usize; 2]>();
        assert_eq!(line(ends - 1) - line(begins) + 1, 5);
    }
}
