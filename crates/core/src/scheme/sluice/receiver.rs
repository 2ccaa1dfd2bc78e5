//! The receiver: measures what bursts (`bursts.rs`), losses (`losses.rs`), floods (`floods.rs`) and the queue tell, has the rules decide, and
//! tells the sender (`reports.rs`).

mod bursts;
mod floods;
mod losses;
mod reports;

use alloc::boxed::Box;
use core::time::Duration;

use weir_units::{Bytes, Random, Rate, Time};
use weir_wire::{Layered, Probe, probe};

use self::bursts::StartUpClock;
use super::announce::{self, Announced, Announcement};
use super::arrivals::{Arrivals, Counts};
use super::burst::{Measuring, Verdict};
use super::climb::Climb;
use super::config::Config;
use super::cycle::{self, CYCLE, SLOT, Shown};
use super::demand::{self, Reporter};
use super::flood::Flood;
use super::host::HostLimit;
use super::lossy_path::LossyPath;
use super::own_losses::OwnLosses;
use super::place::Place;
use super::queue::{LEAST_QUEUE, Queue};
use super::rules::{Change, Rules, Seen};
use super::share::Share;
use super::starts::Starts;
use crate::definition::Session;
use crate::endpoint::{Action, Allotment, Endpoint, Event, Header, Origin, Packet};
use crate::estimate::{DelaySample, DelayWindow, QueuingDelay};
use crate::layers::Ladder;
use crate::membership::{
    Fall, HostDrops, LONGEST_LEAVE, Leaves, Memberships, Received, Rejoin, Work, WorkDone, is_too_much,
};
use crate::observation::{LevelCause, Observation, SlotReport, Wish};
use crate::outbox::Outbox;
use crate::probing::{self, Probing, SENDER};

/// A receiver of sluice.
#[derive(Debug)]
pub struct Receiver {
    state: State,
    ladder: Ladder,
    packet_size: Bytes,
    slot_bits: u32,
    config: Config,
    memberships: Memberships,
    /// By channel, how long a packet takes at its rate.
    packet_times: Box<[Duration]>,
    leaves: Leaves,
    /// When a queue stood last, and when one of [`LEAST_QUEUE`] or more did.
    queue_stood: Option<Time>,
    short_queue_stood: Option<Time>,
    /// When a queue of [`LEAST_QUEUE`] or more stood last that no burst had left; at first, when the receiver started.
    others_queue_stood: Time,
    starts: Starts,
    host: HostDrops,
    work: Work,
    host_limit: HostLimit,
    delay: QueuingDelay,
    probing: Probing,
    reporter: Reporter,
    /// The least round trip of the empty path that was measured.
    round_trip: Option<Duration>,
    queue: Queue,
    own_losses: OwnLosses,
    lossy_path: LossyPath,
    share: Share,
    rules: Rules,
    flood: Flood,
    announced: Announced,
    /// Levels that the sender withholds.
    withheld: usize,
    /// When a ceiling took levels from the receiver, and the one that it had.
    before_ceiling: Option<(Time, usize)>,
    /// To whom this cycle's burst shows the next level; `None` until the cycle has announced it.
    shown: Option<Shown>,
    level: usize,
    /// Until when it stays a member of channels above that, after a leave for the host's sake.
    surplus_until: Time,
    /// Whether it was starting when it looked last.
    was_starting: bool,
    /// The level that it told in its start last; 0 if it has told that the start is over.
    told_start: usize,
    /// The latest start-up burst.
    start_up: Option<StartUpClock>,
    place: Place,
    slot: Slot,
    /// The start-up burst and the other one that are under way.
    climb: Option<Climb>,
    measuring: Option<Measuring>,
    /// The least timestamp difference when they began, microseconds: what somebody forges in a burst must not change what it tells.
    least_before: i64,
    /// What came of the slots that have ended.
    arrivals: Arrivals,
    allotment: Option<Allotment>,
    actions: Outbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Finished,
}

/// The slot under way.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    begun: Time,
    counts: Counts,
    /// Those of the base channel.
    base: Counts,
    /// Sum of the delays of packets outside bursts, and their number.
    waited: (Duration, u32),
    /// A burst was in it.
    has_burst: bool,
    /// A loss event began.
    loss_event: bool,
}

impl Receiver {
    /// A receiver of `session`.
    pub fn new(session: &Session, config: Config, mut random: Random) -> Receiver {
        let ladder = session.ladder.clone();
        let reordering = |rate| config.reordering(rate, session.packet_size);
        Receiver {
            state: State::Idle,
            memberships: Memberships::new(ladder.channel_rates(), session.packet_size, session.form, reordering),
            packet_times: ladder.channel_rates().map(|rate| session.packet_size / rate).collect(),
            leaves: Leaves::new(LONGEST_LEAVE, Fall::Half).after_the_queue(),
            queue_stood: None,
            short_queue_stood: None,
            others_queue_stood: Time::ZERO,
            starts: Starts::default(),
            host: HostDrops::default(),
            work: Work::default(),
            host_limit: HostLimit::new(),
            delay: QueuingDelay::new(1.0, 1.0, DelayWindow::Moving(DELAY_WINDOW)),
            reporter: Reporter::new(random.bits() as u32),
            probing: Probing::new(config.round_trip, random),
            round_trip: None,
            queue: Queue::default(),
            own_losses: OwnLosses::default(),
            lossy_path: LossyPath::default(),
            share: Share::new(config.round_trip),
            rules: Rules::new(&config, &ladder, session.packet_size),
            flood: Flood::default(),
            announced: Announced::default(),
            withheld: 0,
            before_ceiling: None,
            shown: None,
            level: 0,
            surplus_until: Time::ZERO,
            was_starting: true,
            told_start: 0,
            start_up: None,
            place: Place::default(),
            slot: Slot::default(),
            climb: None,
            measuring: None,
            least_before: 0,
            arrivals: Arrivals::default(),
            allotment: None,
            actions: Outbox::default(),
            packet_size: session.packet_size,
            slot_bits: session.form.slot_bits(),
            ladder,
            config,
        }
    }

    fn on_start(&mut self, now: Time) {
        self.state = State::Running;
        self.slot.begun = now;
        self.others_queue_stood = now;
        let level = demand::first_level(&self.ladder, self.packet_size);
        self.go_to(now, level.min(self.most()), LevelCause::Start);
        self.tell_wants(now);
    }

    fn on_finish(&mut self, now: Time) {
        self.state = State::Finished;
        self.probing.stop();
        self.go_to(now, 0, LevelCause::Finish);
        self.tell_wants(now);
    }

    fn on_packet(&mut self, now: Time, from: Origin, packet: &Packet) {
        match packet.header {
            Header::Layered(header) if self.is_plausible(from, &header) => self.on_data(now, &header, packet.size),
            Header::Probe(Probe { kind: probe::Kind::Echo, clock_micros }) if from == Origin::Peer(SENDER) => {
                if let Some(sample) = self.probing.on_echo(now, clock_micros) {
                    self.on_round_trip(sample);
                }
            }
            _ => {}
        }
    }

    /// Whether the fields are within their ranges, and the packet came on the channel that it names.
    fn is_plausible(&self, from: Origin, header: &Layered) -> bool {
        u32::from(header.slot) >> self.slot_bits == 0 && self.memberships.is_plausible(from, header)
    }

    /// An echo measured a round trip, the queue on its way included.
    fn on_round_trip(&mut self, sample: Duration) {
        self.actions.push(Action::Observe(Observation::RoundTrip(sample)));
        let empty = sample.saturating_sub(self.delay.short_term()).max(SHORTEST_ROUND_TRIP);
        let least = self.round_trip.map_or(empty, |least| least.min(empty));
        self.round_trip = Some(least);
        self.share.set_round_trip(least);
    }

    fn on_data(&mut self, now: Time, header: &Layered, size: Bytes) {
        let Some(received) = self.memberships.on_packet(now, header, &mut self.delay) else { return };
        if let Received::Measured { missing, .. } = received {
            let sample = self.delay.on_packet(now, header.channel, header.clock_micros);
            // Whose clock is not believed tells neither of slots nor of bursts.
            if sample != DelaySample::Ignored {
                self.begin_slot_of(now, header);
                self.end_bursts(now, header.clock_micros as u32);
                self.begin_start_up_burst(now, header);
                self.tell_what_came(header);
                self.measure(now, header, sample);
            }
            self.count_lost(now, header, missing);
        }
        self.slot.counts.packets += 1;
        self.slot.counts.bytes += size;
        self.slot.base.packets += u64::from(header.channel == 0);
        self.actions.deliver(None);
    }

    /// Ends the slots before the one that the packet is of.
    fn begin_slot_of(&mut self, now: Time, header: &Layered) {
        let (place, clock) = (announce::place(header.slot), header.clock_micros as u32);
        if !self.place.is_ahead(place, clock) {
            return;
        }
        if let Some(current) = self.place.in_cycle() {
            self.end_slot(now, current);
        } else if self.probing.deadline().is_none() {
            self.on_first_slot(now);
        }
        if self.place.in_cycle().is_some_and(|before| place < before) {
            self.shown = None;
        }
        self.place.begin(place, clock);
        self.begin_slots_burst(header, place);
        match self.announced.on_slot(header.slot) {
            Some(Announcement::Interval(interval)) => self.probing.on_interval(interval),
            Some(Announcement::Withheld(levels)) => self.on_withheld(now, levels),
            Some(Announcement::Shown(shown)) => self.shown = Some(shown),
            None => {}
        }
    }

    /// The sender is there. The receiver reports to it now anyway, so a probe adds little, and the sender learns sooner how many receivers
    /// there are.
    fn on_first_slot(&mut self, now: Time) {
        self.probe_within(now, Duration::ZERO);
        // What it told before, the sender may not have been there to hear.
        self.reporter.tell_again(self.probing.deadline());
    }

    fn probe_soon(&mut self, now: Time) {
        self.probe_within(now, self.probing.interval().span() / 4);
    }

    fn probe_within(&mut self, now: Time, span: Duration) {
        if self.config.probes {
            self.probing.start(now, span);
        }
    }

    /// Follows what stands, and whether a leave has acted on it.
    fn look_at_queue(&mut self, now: Time, has_burst: bool) {
        self.queue.on_slot(has_burst, self.threshold());
        self.own_losses.on_slot();
        if let Some(longer) = self.queue.flat() {
            self.on_longer_path(longer);
        }
        self.leaves.on_queue(now, self.queue.newest());
        if self.queue.stood_lately(self.threshold()) {
            self.queue_stood = Some(now);
        }
        if self.queue.stood_lately(LEAST_QUEUE) {
            self.short_queue_stood = Some(now);
        }
        if self.queue.stood_lately_without_burst(LEAST_QUEUE) {
            self.others_queue_stood = now;
        }
    }

    /// What seemed to be a queue is the path: it is longer, or slower, than it was.
    fn on_longer_path(&mut self, by: Duration) {
        self.delay.on_longer_path(by);
        self.queue = Queue::default();
        (self.queue_stood, self.short_queue_stood) = (None, None);
        (self.climb, self.measuring) = (None, None);
    }

    fn end_slot(&mut self, now: Time, place: u16) {
        let slot = core::mem::replace(&mut self.slot, Slot { begun: now, ..Slot::default() });
        self.arrivals.on_slot(Counts { took: now.since(slot.begun), ..slot.counts });
        if slot.loss_event {
            self.queue.on_loss_event();
        }
        self.look_at_queue(now, slot.has_burst && cycle::shows_next_level(u64::from(place)));
        self.look_for_flood(now, slot.counts, slot.base);
        self.judge_cut(now);
        if slot.waited.1 > 0 {
            self.share.on_queue(self.queue.newest(), slot.waited.0 / slot.waited.1);
        }
        let seen = Seen { loss_event: slot.loss_event, ..self.seen(now, Some(place), None) };
        let host_dropped = self.host.take(now, HOST_MEMORY);
        self.report(&slot, now, host_dropped, seen.share);
        self.wish(&seen);
        if let Some(level) = self.relieve_host(now, host_dropped, slot.counts.packets) {
            self.rules.end_start();
            return self.change(now, Some((level, LevelCause::HostDrops)));
        }
        let part = self.rules.part();
        let change = self.rules.on_slot(&seen);
        if self.rules.part() < part {
            self.on_less_of_step(now);
        }
        self.change(now, change);
        self.memberships.rejoin_silent(now, Rejoin::BaseFirst, &mut self.actions);
    }

    /// The level to go to, where the host does not keep up.
    fn relieve_host(&mut self, now: Time, dropped: u64, received: u64) -> Option<usize> {
        if self.work.on_slot(received) {
            let WorkDone { payloads, slots } = self.work.done()?;
            let done = Bytes::new(self.packet_size.count().saturating_mul(payloads));
            return self.host_limit.on_too_much(now, &self.ladder, self.level, done.per(SLOT * slots));
        }
        if self.work.done().is_none() {
            self.host_limit.on_enough(now, &self.ladder, self.level);
        }
        (is_too_much(dropped, received) && self.level > 1).then(|| self.level - 1)
    }

    /// What there is to know; at the end of the slot in this `place` of the cycle, if one ends.
    fn seen(&self, now: Time, place: Option<u16>, verdict: Option<Verdict>) -> Seen {
        let threshold = self.threshold();
        Seen {
            now,
            level: self.level,
            most: self.most(),
            arrived: self.arrivals.rate_since_change(),
            delivered: self.arrivals.delivered(CYCLE as usize),
            has_lost_much: self.has_lost_outside_bursts(self.config.own_loss + MUCH_MORE),
            loses_more: self.arrivals.lose_more(),
            is_empty: self.queue.is_empty(threshold),
            is_full: self.queue.is_full(threshold),
            was_empty_in_cycle: self.queue.least_of(CYCLE as usize - 1) < threshold,
            ends_cycle: place.is_some_and(|place| u64::from(place) == CYCLE - 2),
            verdict,
            packet_time: self.packet_size / self.rate(),
            loss_event: false,
            latest_loss_event: self.share.latest(),
            mean_interval: self.share.mean_interval(),
            latest_queue: self.queue_stood,
            latest_short_queue: self.short_queue_stood,
            queue: self.queue.newest(),
            is_contended: now.since(self.others_queue_stood) < CONTENDED_FOR,
            share: self.counts_as(self.share.rate(self.packet_size)),
            settled: self.counts_as(self.share.settled_rate(self.rate(), self.packet_size)),
            is_pending: self.leaves.is_pending(now),
        }
    }

    /// What a share counts as, under a manager.
    fn counts_as(&self, share: Rate) -> Rate {
        self.allotment.map_or(share, |allotment| allotment.of(share))
    }

    fn change(&mut self, now: Time, change: Change) {
        if let Some((level, cause)) = change {
            self.go_to(now, level.min(self.most()), cause);
        }
        self.tell_of_start(now);
        self.tell_wants(now);
    }

    /// Joins or leaves what lies between.
    fn go_to(&mut self, now: Time, level: usize, cause: LevelCause) {
        if level == self.level {
            return;
        }
        let leaves = level < self.level;
        if self.level > 0 && level > 0 {
            let [before, after] = [self.level, level].map(|level| self.ladder.level_rate(level).bps() as f64);
            self.share.on_rate_change(after / before);
        }
        self.level = level;
        while self.memberships.count() < level {
            self.memberships.join(now, self.memberships.count(), &mut self.actions);
        }
        if cause == LevelCause::HostDrops {
            self.surplus_until = now + self.round_trip.unwrap_or(self.config.round_trip) + LAST_PACKETS;
        } else {
            self.leave_surplus();
        }
        if leaves && level > 0 {
            let packet_time = self.packet_size / self.ladder.level_rate(level);
            self.leaves.on_leave(now, self.queue.newest(), packet_time);
        }
        self.flood.on_level(now, leaves && level > 0);
        if level == self.ladder.levels() {
            // There is nothing left to look for, and start-up bursts cost others a queue.
            self.rules.end_start();
        }
        (self.climb, self.measuring) = (None, None);
        self.arrivals.on_rate_change();
        self.work.measure_again();
        self.rules.on_change(now);
        let rate = self.ladder.level_rate(level);
        self.actions.push(Action::Observe(Observation::Level { level, rate, cause }));
    }

    /// A part of the next step is not wanted any more. That takes effect as a leave does: what the queue still costs has been answered.
    fn on_less_of_step(&mut self, now: Time) {
        self.leaves.on_leave(now, self.queue.newest(), self.packet_size / self.rate());
    }

    /// Leaves the channels that it does not want. For the host's sake that is only when the sender has heard of it: what it has sent until
    /// then would be missing, and the path carries it.
    fn leave_surplus(&mut self) {
        while self.memberships.count() > self.level {
            self.memberships.leave(self.memberships.count() - 1, &mut self.actions);
        }
    }

    fn rate(&self) -> Rate {
        self.ladder.level_rate(self.level)
    }

    fn threshold(&self) -> Duration {
        self.queue.threshold(self.packet_size / self.rate())
    }

    /// The highest level that it may have.
    fn most(&self) -> usize {
        let sent = self.ladder.levels().saturating_sub(self.withheld).max(1);
        self.allotment.map_or(usize::MAX, |allotment| allotment.level.max(1)).min(sent).min(self.host_limit.levels())
    }

    fn on_allot(&mut self, now: Time, allotment: Allotment) {
        self.allotment = Some(allotment);
        if self.state == State::Running && self.level > self.most() {
            self.go_to(now, self.most(), LevelCause::Allotted);
        }
    }

    /// Tells a manager what the receiver would take.
    fn wish(&mut self, seen: &Seen) {
        if self.allotment.is_none() {
            return;
        }
        let above = (self.level + 1).min(self.ladder.levels());
        let wish = Wish { level: above, share: seen.share, tries: !self.share.has_lost(), at_most: None };
        self.actions.push(Action::Observe(Observation::Wish(wish)));
    }

    fn report(&mut self, slot: &Slot, now: Time, host_dropped_packets: u64, share: Rate) {
        let intervals = self.share.intervals();
        let rates = intervals.short_term_rate().zip(intervals.long_term_rate());
        let report = SlotReport {
            level: self.level,
            received_rate: slot.counts.bytes.per(now.since(slot.begun)),
            received_packets: slot.counts.packets,
            lost_packets: slot.counts.lost,
            host_dropped_packets,
            queuing_delay: [self.queue.newest(), self.share.queuing_delay()],
            loss_event_rate: rates.map(<[f64; 2]>::from),
            target_rate: Some([share; 2]),
            vegas_beta_packets: None,
        };
        self.actions.push(Action::Observe(Observation::Slot(report)));
    }

    fn on_time(&mut self, now: Time) {
        if let Some(asked) = self.probing.on_time(now) {
            self.actions.push(probing::ask(asked));
            if self.rules.is_starting() {
                self.tell_start(self.level);
            }
            let receiver = self.reporter.receiver();
            let carried = self.carried(now);
            if carried.is_some() || self.flood.tells_share() {
                self.actions.push(probing::report(probe::Flooded { receiver, carried }));
            }
            if let Some(is_empty) = self.flood.verdict(now) {
                let withheld = self.withheld as u16;
                self.actions.push(probing::judge(probe::Verdict { receiver, withheld, is_empty }));
            }
        }
        if self.climb.is_some_and(|climb| climb.deadline() <= now) {
            self.end_climb(now);
        }
        if self.reporter.deadline().is_some_and(|at| at <= now) {
            self.tell_wants(now);
        }
        if self.surplus_deadline().is_some_and(|at| at <= now) {
            self.leave_surplus();
        }
        if now >= self.slot_deadline() {
            match self.place.in_cycle() {
                // In silence the receiver's own clock goes on.
                Some(place) => {
                    self.end_slot(now, place);
                    self.place.pass();
                }
                None => {
                    self.slot.begun = now;
                    self.memberships.rejoin_silent(now, Rejoin::BaseFirst, &mut self.actions);
                }
            }
        }
    }

    fn surplus_deadline(&self) -> Option<Time> {
        (self.memberships.count() > self.level).then_some(self.surplus_until)
    }

    /// When the receiver's own clock ends the slot: a queue that grows by two slots within one is beyond what happens.
    fn slot_deadline(&self) -> Time {
        self.slot.begun + SLOT * SILENT_SLOTS
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
        if self.state != State::Running {
            return None;
        }
        let climb = self.climb.map(|climb| climb.deadline());
        let others = [self.probing.deadline(), self.reporter.deadline(), self.surplus_deadline(), climb];
        others.into_iter().flatten().chain([self.slot_deadline()]).min()
    }
}

/// The empty path is remembered for so long.
const DELAY_WINDOW: Duration = Duration::from_secs(600);
const SHORTEST_ROUND_TRIP: Duration = Duration::from_micros(100);
/// So much more loss than what the path's own may be is no matter of shares.
const MUCH_MORE: f64 = 0.05;
const SILENT_SLOTS: u32 = 3;
/// A packet that the host dropped is missed within this time, or was not of this session.
const HOST_MEMORY: Duration = Duration::from_secs(1);
/// From when a sender hears what a receiver wants until the last packet of what it does not has come, the time on the way left out: a period of
/// the sender, and what hosts hold.
const LAST_PACKETS: Duration = Duration::from_millis(50);
/// Other flows count as gone when no queue has stood for this long. A queue of the receiver's own failed trial is older when it tries again, as the back-off is
/// twice as long.
const CONTENDED_FOR: Duration = Duration::from_secs(5);
const A_SECOND: Duration = Duration::from_secs(1);
