//! The receiver: joins and leaves what its rate and its round-trip time ask for.

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Random, Rate, Time};
use weir_wire::{CciForm, Layered, Probe, probe};

use super::account::Account;
use super::ahead::Latencies;
use super::config::{Config, RttMethod};
use super::following::{Following, Recycle};
use super::layout::Layout;
use super::sawtooth::{Loss, Sawtooth};
use crate::definition::Session;
use crate::endpoint::{Action, Allotment, Endpoint, Event, Header, Origin, Packet};
use crate::estimate::{DelayWindow, QueuingDelay};
use crate::layers::LayerSet;
use crate::membership::{
    Fall, HostDrops, Leaves, Memberships, Received, Reordering, Work, is_too_much, was_sent_since,
};
use crate::observation::{LevelCause, Observation, SlotReport, Wish};
use crate::outbox::Outbox;
use crate::probing::{self, Interval, Probing, SENDER};

/// A receiver of STAIR or FGLM.
///
/// Its rate is a number of units, which the static layers make. A period ends when the stair that it follows recycles; in
/// FGLM, which has none, when as much time has passed as a stair would have taken.
#[derive(Debug)]
pub struct Receiver {
    state: State,
    form: CciForm,
    packet_size: Bytes,
    /// A missing packet counts as lost after this number of later packets of its channel.
    packets_to_tell_loss: u32,
    layout: Layout,
    channels: Vec<Channel>,
    memberships: Memberships,
    leaves: Leaves,
    host: HostDrops,
    work: Work,
    sawtooth: Sawtooth,
    following: Following,
    probing: Probing,
    rtt_method: RttMethod,
    latencies: Latencies,
    /// For telling what was sent before a join, or before a decrease.
    delay: QueuingDelay,
    account: Account,
    /// What was joined before the first packet may have waited for the sender, which tells nothing of how long joins take.
    first_packet: Option<Time>,
    /// When the period began.
    period_begun: Time,
    /// What is still to be done ahead of the period's end.
    ahead: Ahead,
    /// In slow start: when the rate doubles next, if packets come until then.
    next_step: Time,
    heard_since_step: bool,
    next_look: Time,
    is_managed: bool,
    actions: Outbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Finished,
}

/// How far a receiver is with what it does before a period ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ahead {
    joined: bool,
    left: bool,
}

#[derive(Debug)]
struct Channel {
    packet_time: Duration,
    since_decrease: SinceDecrease,
}

/// A channel's packets in a row that were sent after the network had heard of a decrease.
#[derive(Debug, Clone, Copy, Default)]
struct SinceDecrease {
    decrease: Option<Time>,
    packets: u32,
}

impl SinceDecrease {
    /// A packet came. `latest` is the latest decrease, `is_after` whether it was sent after that.
    fn on_packet(&mut self, latest: Option<Time>, is_after: bool) {
        let before = if self.decrease == latest { self.packets } else { 0 };
        *self = SinceDecrease { decrease: latest, packets: if is_after { before.saturating_add(1) } else { 0 } };
    }

    /// Whether one of the last `packets` packets was sent before.
    fn is_answered(&self, packets: u32) -> bool {
        self.decrease.is_some() && self.packets < packets
    }
}

impl Receiver {
    /// A receiver of `session`.
    pub(super) fn new(session: &Session, layout: Layout, config: Config, random: Random) -> Receiver {
        let rates = layout.lowest_rates(session.packet_size);
        let channel =
            |rate: Rate| Channel { packet_time: session.packet_size / rate, since_decrease: SinceDecrease::default() };
        let channels = rates.iter().copied().map(channel).collect();
        Receiver {
            state: State::Idle,
            form: session.form,
            packet_size: session.packet_size,
            packets_to_tell_loss: config.reorder_packets.max(1) as u32,
            channels,
            memberships: Memberships::new(rates, session.packet_size, session.form, |_| {
                Reordering::fixed(config.reorder_packets)
            }),
            leaves: Leaves::new(config.leave_wait, Fall::Eighth),
            host: HostDrops::default(),
            work: Work::default(),
            sawtooth: Sawtooth::new(layout.hybrid.clone(), config.decrease, config.start_up),
            following: Following::new(layout.stairs.clone(), config.stair_rule, session.form.slot_bits()),
            probing: Probing::new(config.initial_rtt, random),
            rtt_method: config.rtt_method,
            latencies: Latencies::new(config.join_latency, config.leave_latency),
            delay: QueuingDelay::new(DELAY_GAIN, DELAY_GAIN, DelayWindow::Moving(DELAY_WINDOW)),
            account: Account::default(),
            layout,
            first_packet: None,
            period_begun: Time::ZERO,
            ahead: Ahead::default(),
            next_step: Time::ZERO,
            heard_since_step: false,
            next_look: Time::ZERO,
            is_managed: false,
            actions: Outbox::default(),
        }
    }

    fn on_start(&mut self, now: Time) {
        self.state = State::Running;
        self.account.begin(now);
        if self.rtt_method != RttMethod::Fixed {
            self.probing.start(now, Interval::LEAST.span());
        }
        self.following.start(self.rtt_for_stair());
        self.begin_period(now);
        self.begin_step(now);
        self.next_look = now + LOOK;
        self.change(now, Some(LevelCause::Start));
    }

    /// The round-trip time by which the stair is chosen. The shortest one only falls, so that no stair is chosen twice.
    fn rtt_for_stair(&self) -> Duration {
        if self.rtt_method == RttMethod::Least { self.probing.least_rtt() } else { self.probing.rtt() }
    }

    fn on_finish(&mut self, now: Time) {
        if self.state == State::Running {
            self.report(now);
        }
        self.state = State::Finished;
        self.following.stop();
        self.probing.stop();
        let members = self.members();
        members.iter().for_each(|channel| self.leave(channel));
        if !members.is_empty() {
            let (level, rate) = (0, Rate::ZERO);
            self.actions.push(Action::Observe(Observation::Level { level, rate, cause: LevelCause::Finish }));
        }
    }

    fn on_packet(&mut self, now: Time, from: Origin, packet: &Packet) {
        match (packet.header, from) {
            (Header::Layered(header), _) if self.is_plausible(from, &header) => self.on_data(now, &header),
            (Header::Probe(Probe { kind: probe::Kind::Echo, clock_micros }), Origin::Peer(SENDER)) => {
                if let Some(sample) = self.probing.on_echo(now, clock_micros) {
                    self.actions.push(Action::Observe(Observation::RoundTrip(sample)));
                }
            }
            _ => {}
        }
    }

    /// Whether the fields are within their ranges, and the packet came on the channel that it names.
    fn is_plausible(&self, from: Origin, header: &Layered) -> bool {
        u32::from(header.slot) >> self.form.slot_bits() == 0 && self.memberships.is_plausible(from, header)
    }

    fn on_data(&mut self, now: Time, header: &Layered) {
        let number = usize::from(header.channel);
        let decreased = self.sawtooth.decreased();
        let is_after =
            decreased.is_none_or(|at| was_sent_since(&self.delay, at + self.guard(), now, header.clock_micros));
        let received = self.memberships.on_packet(now, header, &mut self.delay);
        self.delay.on_packet(now, header.channel, header.clock_micros);
        self.leaves.on_queue(now, self.delay.short_term());
        self.first_packet.get_or_insert(now);
        let Some(received) = received else { return };
        self.channels[number].since_decrease.on_packet(decreased, is_after);
        self.actions.deliver(None);
        self.account.on_packet();
        match received {
            Received::Stray => return,
            Received::SentBefore => {}
            Received::Measured { missing, answers_join } => {
                if let Some(joined) = answers_join.filter(|joined| self.first_packet < Some(*joined)) {
                    self.latencies.on_joined(now.since(joined), self.channels[number].packet_time);
                }
                self.on_missing(now, number, missing);
            }
        }
        self.heard_since_step = true;
        match self.layout.stair(number) {
            Some(stair) => self.on_stair(now, stair, header.slot),
            None => self.probing.on_interval(Interval::from_wire(header.slot)),
        }
    }

    fn on_stair(&mut self, now: Time, stair: usize, period: u16) {
        match self.following.on_packet(stair, period) {
            Some(Recycle::Pace(period)) => {
                self.following.change(period, self.rtt_for_stair());
                self.end_period(now);
            }
            Some(Recycle::Slower) => {
                let is_of_before = self.channels[self.layout.fixed + stair].since_decrease.is_answered(1);
                let answered = is_of_before || self.leaves.is_pending(now);
                let cause = self.sawtooth.on_slower_recycle(answered);
                self.change(now, cause);
            }
            None => {}
        }
    }

    /// Packets of a channel are missing: some between those that tell and the one before them.
    fn on_missing(&mut self, now: Time, number: usize, missing: u64) {
        let lost = self.host.attribute(missing);
        if lost == 0 {
            return;
        }
        self.account.on_lost(lost);
        self.leaves.on_loss(now);
        let is_of_before = self.channels[number].since_decrease.is_answered(self.packets_to_tell_loss + 1);
        let answered = is_of_before || self.leaves.is_pending(now);
        let loss = self.sawtooth.on_loss(now, answered);
        if loss != Loss::Known {
            self.actions.push(Action::Observe(Observation::LossEvent));
        }
        if let Loss::Decreased(cause) = loss {
            self.change(now, Some(cause));
        }
    }

    /// The host threw packets away. Slow start would double what the host cannot take, so it ends at the first, as at a loss
    /// (decision 12).
    fn on_host_dropped(&mut self, now: Time, packets: u64) {
        self.host.on_dropped(now, packets);
        if self.sawtooth.is_slow_start() {
            self.relieve_host(now);
        }
    }

    /// A manager says what the receiver may have. The lowest rate is always allowed.
    fn on_allot(&mut self, now: Time, allotment: Allotment) {
        self.is_managed = true;
        let most = u64::try_from(allotment.level).unwrap_or(u64::MAX);
        if self.sawtooth.set_most(most) && self.state == State::Running {
            self.change(now, Some(LevelCause::Allotted));
        }
    }

    /// Tells a manager that the receiver would go on, as nothing is lost. It knows no share but the rate that it has.
    fn wish(&mut self) {
        if self.is_managed {
            let level = |units: u64| usize::try_from(units).unwrap_or(usize::MAX);
            let units = self.sawtooth.units();
            let wish = Wish { level: level(units + 1), share: self.layout.of_units(units), tries: true, at_most: None };
            self.actions.push(Action::Observe(Observation::Wish(wish)));
        }
    }

    fn relieve_host(&mut self, now: Time) {
        let cause = self.sawtooth.on_host_overrun(now);
        self.change(now, cause);
    }

    /// For how long after a decrease what is sent may be of before: a round trip, and as long as leaves take if the user has said
    /// it. If not, the losses of a leave are known by [`Leaves::is_pending`].
    fn guard(&self) -> Duration {
        self.probing.rtt() + self.latencies.told_leave()
    }

    fn end_period(&mut self, now: Time) {
        if !self.sawtooth.is_slow_start() {
            self.wish();
        }
        let cause = self.sawtooth.on_period_end(now, !self.leaves.is_pending(now));
        self.begin_period(now);
        self.change(now, cause);
    }

    fn begin_period(&mut self, now: Time) {
        self.period_begun = now;
        self.ahead = Ahead::default();
    }

    /// How long a period is: the stair's, or in FGLM what a stair for just this round-trip time would have (§4.4).
    fn period(&self) -> Duration {
        match self.following.pace() {
            Some(stair) => stair.period(),
            None => {
                let rtt = self.probing.rtt().as_secs_f64();
                let packets_a_second = self.layout.unit.packets_per_sec(self.packet_size);
                Duration::from_secs_f64((packets_a_second * rtt * rtt).clamp(1e-3, 3600.0))
            }
        }
    }

    /// When the period is over even if no stair says so. A stair may be silent, or its mark lost.
    fn period_end(&self) -> Time {
        match self.following.pace() {
            Some(stair) => self.period_begun + stair.period() * 3 / 2,
            None => self.period_begun + self.period(),
        }
    }

    /// When the joins, or the leaves, that the period's end will need are to be made.
    fn ahead_at(&self, latency: Duration, done: bool) -> Option<Time> {
        let period = self.period();
        let wanted = !latency.is_zero() && !done && self.sawtooth.expected().is_some();
        wanted.then(|| self.period_begun + period.saturating_sub(latency.min(period / 2)))
    }

    fn join_at(&self) -> Option<Time> {
        self.ahead_at(self.latencies.join(), self.ahead.joined)
    }

    fn leave_at(&self) -> Option<Time> {
        self.ahead_at(self.latencies.leave(&self.leaves), self.ahead.left)
    }

    fn on_time(&mut self, now: Time) {
        if let Some(probe) = self.probing.on_time(now) {
            self.actions.push(probing::ask(probe));
        }
        if self.sawtooth.is_slow_start() && self.next_step <= now {
            self.step(now);
        }
        if self.period_end() <= now {
            self.end_period(now);
        }
        self.prepare(now);
        if self.next_look <= now {
            self.next_look = now + LOOK;
            self.look(now);
        }
    }

    fn look(&mut self, now: Time) {
        let report = self.report(now);
        let just_decreased = self.sawtooth.decreased().is_some_and(|at| now.since(at) < DECREASE_ACTS_WITHIN);
        let is_too_much = self.work.on_slot(report.received_packets)
            || is_too_much(report.host_dropped_packets, report.received_packets);
        if is_too_much && !just_decreased {
            self.relieve_host(now);
        }
        self.memberships.rejoin_silent(now, self.layout.rejoin(), &mut self.actions);
    }

    fn report(&mut self, now: Time) -> SlotReport {
        let level = usize::try_from(self.sawtooth.units()).unwrap_or(usize::MAX);
        self.delay.on_slot();
        let host_dropped = self.host.take(now, HOST_MEMORY);
        let report = self.account.report(now, level, host_dropped, self.packet_size, &self.delay);
        self.actions.push(Action::Observe(Observation::Slot(report)));
        report
    }

    /// A round-trip time of slow start is over. It goes on with the next when every layer of this one has come (decision 3).
    fn step(&mut self, now: Time) {
        let went_well = core::mem::take(&mut self.heard_since_step) && self.has_heard_all();
        self.begin_step(now);
        if !went_well {
            return;
        }
        if self.delay.short_term() > (self.probing.least_rtt() / 8).clamp(LEAST_QUEUE, MOST_QUEUE) {
            let cause = self.sawtooth.end_slow_start(now);
            self.change(now, Some(cause));
        } else if self.sawtooth.double() {
            self.change(now, Some(LevelCause::SlowStart));
        }
    }

    /// Whether every static layer has brought a packet since it was joined.
    fn has_heard_all(&self) -> bool {
        let mut fixed = self.memberships.members().filter(|channel| self.layout.stair(*channel).is_none());
        fixed.all(|channel| self.memberships.of(channel).is_heard())
    }

    fn begin_step(&mut self, now: Time) {
        self.next_step = now + self.probing.rtt() + self.latencies.join();
    }

    /// Joins and leaves ahead of the period's end as much as takes until then to act.
    fn prepare(&mut self, now: Time) {
        let Some(expected) = self.sawtooth.expected() else { return };
        if self.leaves.is_pending(now) {
            // The rate may not climb at the period's end.
            self.ahead = Ahead { joined: true, left: true };
            return;
        }
        let coming = self.layout.hybrid.set(expected);
        let present = self.layout.hybrid.set(self.sawtooth.units());
        if self.join_at().is_some_and(|at| at <= now) {
            self.ahead.joined = true;
            coming.without(self.members()).iter().for_each(|channel| self.join(now, channel));
        }
        if self.leave_at().is_some_and(|at| at <= now) {
            self.ahead.left = true;
            let leaving = present.without(coming).iter().filter(|channel| self.memberships.of(*channel).is_member());
            leaving.collect::<LayerSet>().iter().for_each(|channel| self.leave(channel));
        }
    }

    /// Becomes a member of exactly what the rate and the stairs ask for; tells the rate if it changed.
    fn change(&mut self, now: Time, cause: Option<LevelCause>) {
        let fixed = self.layout.hybrid.set(self.sawtooth.units());
        let stairs = self.following.followed().iter().map(|stair| self.layout.fixed + stair);
        let wanted = fixed.union(stairs.collect());
        let members = self.members();
        let (leaving, joining) = (members.without(wanted), wanted.without(members));
        leaving.iter().for_each(|channel| self.leave(channel));
        joining.iter().for_each(|channel| self.join(now, channel));
        if let Some(cause) = cause {
            let units = self.sawtooth.units();
            let rate = self.layout.of_units(units);
            if !leaving.is_empty() && is_decrease(cause) {
                self.leaves.on_leave(now, self.delay.short_term(), self.packet_size / rate);
            }
            let level = usize::try_from(units).unwrap_or(usize::MAX);
            self.actions.push(Action::Observe(Observation::Level { level, rate, cause }));
        }
    }

    fn members(&self) -> LayerSet {
        self.memberships.members().collect()
    }

    fn join(&mut self, now: Time, channel: usize) {
        self.memberships.join(now, channel, &mut self.actions);
    }

    fn leave(&mut self, channel: usize) {
        self.memberships.leave(channel, &mut self.actions);
    }
}

/// Whether the rate falls for this reason. Steps up and changes of stair leave channels too.
fn is_decrease(cause: LevelCause) -> bool {
    !matches!(cause, LevelCause::Start | LevelCause::SlowStart | LevelCause::Add)
}

impl Endpoint for Receiver {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match (self.state, event) {
            (State::Idle, Event::Start) => self.on_start(now),
            (State::Running, Event::Packet { from, packet }) => self.on_packet(now, from, packet),
            (State::Running, Event::Deadline) => self.on_time(now),
            (State::Running, Event::HostDropped { packets }) => self.on_host_dropped(now, packets),
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
        if self.state != State::Running {
            return None;
        }
        let step = self.sawtooth.is_slow_start().then_some(self.next_step);
        let others = [self.probing.deadline(), step, self.join_at(), self.leave_at()];
        others.into_iter().flatten().chain([self.period_end(), self.next_look]).min()
    }
}

/// How often silent channels are looked for, and what came is told.
const LOOK: Duration = Duration::from_secs(1);
/// A packet that the host dropped is missed within this time, in which even a stair of half a second sends six, or was not of
/// this session.
const HOST_MEMORY: Duration = Duration::from_secs(3);
/// The host's drops of so soon after a decrease may be of before it acted: routers ask other members first.
const DECREASE_ACTS_WITHIN: Duration = Duration::from_secs(2);
/// The delay is that of the last packet.
const DELAY_GAIN: f64 = 1.0;
/// A queue of an eighth of the round trip ends slow start; so does one of 16 ms, and none below 4 ms does (RFC 9406 §4.2).
const LEAST_QUEUE: Duration = Duration::from_millis(4);
const MOST_QUEUE: Duration = Duration::from_millis(16);
/// Over how long the empty path is remembered.
const DELAY_WINDOW: Duration = Duration::from_secs(600);
