//! The receiver: measures, asks the model, adds and drops channels.

use alloc::boxed::Box;
use core::time::Duration;
use weir_units::{Bytes, Rate, Time};
use weir_wire::Layered;

use super::closing::Closing;
use super::config::{Config, FirstInterval, Model, Synchronisation};
use super::controller::Controller;
use super::host::HostDrops;
use super::leaving::Leaving;
use super::slots::SlotClock;
use super::slow_start::ArrivalTest;
use super::subscription::{Subscription, SustainedLevel};
use crate::definition::Session;
use crate::endpoint::{Action, ChannelId, Endpoint, Event, Header, Origin, Packet};
use crate::estimate::{Arrival, DelaySample, LossEvents, QueuingDelay, SequenceTracker};
use crate::observation::{LevelCause, Observation};
use crate::outbox::Outbox;
use crate::scheme::silence::Silence;

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
    pub(super) losses: LossEvents,
    state: State,
    pub(super) channels: Box<[Channel]>,
    pub(super) counts: Counts,
    pub(super) host: HostDrops,
    pub(super) actions: Outbox,
    pub(super) slots: SlotClock,
    pub(super) delay: QueuingDelay,
    pub(super) rules: Subscription,
    pub(super) sustained: SustainedLevel,
    pub(super) closing: Closing,
    pub(super) leaving: Leaving,
    pub(super) arrival: ArrivalTest,
    pub(super) config: Config,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Finished,
}

/// A packet touches one line of the cache here, from the tracker's end to the silence's beginning; the tracker's window only
/// if it is late or begins another word of it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Channel {
    tracker: SequenceTracker,
    pub(super) joined: Time,
    /// The sender's clock on the first measured packet since the join, in microseconds modulo 2^32, as delays are.
    pub(super) first_clock: Option<u32>,
    silence: Silence,
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
        let channel = |channel: usize| Channel {
            tracker: SequenceTracker::new(session.form.sequence_bits(), config.reorder_packets),
            silence: Silence::new(session.ladder.channel_rate(channel), session.packet_size),
            joined: Time::ZERO,
            first_clock: None,
        };
        let window = match config.synchronisation {
            Synchronisation::Weak => QUARTER_SLOT,
            Synchronisation::None => WHOLE_SLOT,
        };
        Receiver {
            state: State::Idle,
            channels: (0..levels).map(channel).collect(),
            slots: SlotClock::new(config.synchronisation, config.tau, session.form.slot_bits()),
            slot_begun: Time::ZERO,
            delay: QueuingDelay::new(config.short_gain, config.long_gain, config.delay_window),
            losses: LossEvents::new(config.tau),
            arrival: ArrivalTest::new(config.slow_start_share, config.tau, window),
            controller: Controller::new(session, &config),
            rules: Subscription::new(&config, levels),
            sustained: SustainedLevel::new(&config, levels),
            leaving: Leaving::new(config.leave_wait, config.tau),
            host: HostDrops::default(),
            closing: Closing::default(),
            counts: Counts::default(),
            actions: Outbox::default(),
            session: session.clone(),
            config,
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
        while !self.rules.is_top() && self.session.ladder.level_rate(self.rules.level() + 1) <= rate {
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
            if self.rules.is_top() || self.session.ladder.level_rate(self.rules.level()) >= enough {
                break;
            }
        }
        self.end_slow_start_at_the_top(now);
    }

    /// The paper's slow start is over when it reaches the top. A step of several channels is judged there too
    /// (decision 20).
    fn end_slow_start_at_the_top(&mut self, now: Time) {
        if self.rules.is_top() && !self.config.confirm_steps {
            self.end_slow_start(now, false);
        }
    }

    fn on_finish(&mut self) {
        self.state = State::Finished;
        if self.rules.level() == 0 {
            return;
        }
        while self.rules.level() > 0 {
            let channel = self.rules.drop_one();
            self.actions.push(Action::Leave(ChannelId(channel as u16)));
        }
        self.observe_level(LevelCause::Finish);
    }

    fn on_packet(&mut self, now: Time, from: Origin, packet: &Packet) {
        let Header::Layered(header) = packet.header else { return };
        if !self.is_plausible(from, &header) {
            return;
        }
        let subscribed = usize::from(header.channel) < self.rules.level();
        let measured = subscribed && self.is_of_this_membership(now, &header);
        let channel = &mut self.channels[usize::from(header.channel)];
        let missing = match channel.tracker.on_packet(header.sequence, measured) {
            Arrival::New { lost } => lost,
            Arrival::Duplicate | Arrival::OutOfPlace => return,
        };
        if subscribed {
            channel.silence.on_heard(now);
        } else {
            self.leaving.on_stray(now);
        }
        if measured {
            channel.first_clock.get_or_insert(header.clock_micros as u32);
            let ended = self.slots.on_packet(now, header.slot);
            if ended > 0 {
                let next = self.delay.difference(now, header.clock_micros);
                self.on_slots_end(now, ended, header.signal, next);
            }
            self.measure(now, &header, missing);
        }
        self.counts.received += 1;
        self.counts.bytes += packet.size;
        self.actions.deliver();
    }

    /// Whether the fields are within their ranges, and the packet came on the channel that it names.
    fn is_plausible(&self, from: Origin, header: &Layered) -> bool {
        from == Origin::Channel(ChannelId(header.channel))
            && self.slots.is_number(header.slot)
            && self
                .channels
                .get(usize::from(header.channel))
                .is_some_and(|channel| channel.tracker.is_number(header.sequence))
    }

    /// Whether the packet was sent since the channel was joined. One that was sent before, and stood in a queue while the
    /// channel was left and joined again, is followed by a gap that is no loss. A clock that jumps says nothing about when.
    fn is_of_this_membership(&self, now: Time, header: &Layered) -> bool {
        let joined = self.channels[usize::from(header.channel)].joined;
        let past_empty_path = self.delay.micros_past_empty_path(now, header.clock_micros, joined);
        self.delay.difference(now, header.clock_micros).is_none() || past_empty_path.is_none_or(|micros| micros <= 0)
    }

    /// Takes a packet of a subscribed channel into the estimates.
    fn measure(&mut self, now: Time, header: &Layered, missing: u64) {
        match self.delay.on_packet(now, header.clock_micros) {
            DelaySample::Taken(tsd) if self.rules.tests_arrival() => self.arrival.on_packet(now, tsd),
            DelaySample::Taken(_) | DelaySample::Ignored => {}
            DelaySample::Restarted(tsd) => {
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
        let answered = self.leaving.is_pending(now);
        if self.losses.on_loss(now, answered) {
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
        self.actions.push(Action::Join(ChannelId(number as u16)));
        let channel = &mut self.channels[number];
        channel.silence.on_join(now);
        channel.on_join(now);
        self.observe_level(cause);
    }

    pub(super) fn drop_channel(&mut self, now: Time, cause: LevelCause) {
        let number = self.rules.drop_one();
        self.leaving.on_leave(now);
        self.actions.push(Action::Leave(ChannelId(number as u16)));
        self.observe_level(cause);
    }

    /// Joins channels once more that should bring packets and do not. Where the base layer is silent it alone is asked
    /// for: then it is the sender, or the path, and not one channel.
    pub(super) fn rejoin_silent_channels(&mut self, now: Time) {
        let asked_for = if self.channels[0].silence.is_silent(now) { 1 } else { self.rules.level() };
        for (number, channel) in self.channels[..asked_for].iter_mut().enumerate() {
            if channel.silence.wants_rejoin(now) {
                channel.on_join(now);
                self.actions.push(Action::Leave(ChannelId(number as u16)));
                self.actions.push(Action::Join(ChannelId(number as u16)));
            }
        }
    }

    fn observe_level(&mut self, cause: LevelCause) {
        let level = self.rules.level();
        let rate = self.session.ladder.level_rate(level);
        self.actions.push(Action::Observe(Observation::Level { level, rate, cause }));
    }
}

impl Channel {
    /// What was missed before a join is no loss.
    fn on_join(&mut self, now: Time) {
        self.tracker.begin();
        self.joined = now;
        self.first_clock = None;
    }
}

impl Endpoint for Receiver {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match (self.state, event) {
            (State::Idle, Event::Start) => self.on_start(now),
            (State::Running, Event::Packet { from, packet }) => self.on_packet(now, from, packet),
            (State::Running, Event::Deadline) => self.on_time(now),
            (State::Running, Event::HostDropped { packets }) => self.host.on_dropped(packets),
            (State::Idle | State::Running, Event::Finish) => self.on_finish(),
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

    /// The tracker's window.
    const SEEN_BYTES: usize = 128;

    #[test]
    fn what_a_packet_needs_lies_in_five_lines_of_the_cache_and_one_of_its_channel() {
        let line = |offset: usize| offset / 64;
        let begins = offset_of!(Receiver, losses) + size_of::<LossEvents>() - size_of::<f64>();
        let ends = offset_of!(Receiver, rules) + size_of::<[usize; 2]>();
        assert_eq!(line(ends - 1) - line(begins) + 1, 5);
        assert_eq!(offset_of!(Channel, silence) + size_of::<Time>() - SEEN_BYTES, 64);
        assert_eq!(size_of::<Channel>(), 256);
    }
}
