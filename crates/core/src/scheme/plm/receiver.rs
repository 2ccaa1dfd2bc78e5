//! The receiver: reads its share from bursts, and takes the layers that fit in.

use core::time::Duration;

use weir_units::{Bytes, Rate, Time};
use weir_wire::{CciForm, Layered};

use super::config::{Config, Estimator};
use super::premise::{Advice, Period, Premise};
use super::rules::LossRule;
use crate::definition::Session;
use crate::endpoint::{Action, Allotment, Endpoint, Event, Header, Origin, Packet};
use crate::estimate::{Bursts, DelaySample, DelayWindow, Estimates, InBurst, QueuingDelay};
use crate::layers::Ladder;
use crate::membership::{Fall, HostDrops, Leaves, Memberships, Received, Rejoin, Reordering, Work, is_too_much};
use crate::observation::{LevelCause, Observation, SlotReport, Wish};
use crate::outbox::Outbox;

/// A receiver of PLM.
#[derive(Debug)]
pub struct Receiver {
    state: State,
    ladder: Ladder,
    form: CciForm,
    packet_size: Bytes,
    config: Config,
    memberships: Memberships,
    leaves: Leaves,
    host: HostDrops,
    work: Work,
    delay: QueuingDelay,
    level: usize,
    bursts: Bursts,
    estimates: Estimates,
    /// When the estimates are judged next, if there are enough.
    check_at: Option<Time>,
    /// The least estimate of the last check; less, if one since then has cost layers.
    judged: Option<Rate>,
    loss: LossRule,
    /// When the last packet came, since the session was joined.
    heard: Option<Time>,
    rejoin_at: Option<Time>,
    premise: Premise,
    allotment: Option<Allotment>,
    totals: Totals,
    slot: Slot,
    actions: Outbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Finished,
}

/// What came of the session since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    packets: u64,
    bytes: u64,
    lost: u64,
}

/// The time between two reports.
#[derive(Debug, Clone, Copy)]
struct Slot {
    begun: Time,
    ends: Time,
    before: Totals,
    /// The level did not change.
    is_steady: bool,
    /// The least queuing delay of a packet, microseconds.
    standing: Option<i64>,
    /// The least estimate.
    estimate: Option<Rate>,
}

impl Receiver {
    /// A receiver of `session`.
    pub fn new(session: &Session, config: Config) -> Receiver {
        let ladder = session.ladder.clone();
        let levels = ladder.levels();
        let rates = ladder.channel_rates();
        let bursts = match config.estimator {
            Estimator::Pairs => Bursts::pairs(levels),
            Estimator::Trains => Bursts::trains(levels, config.resolution),
        };
        Receiver {
            state: State::Idle,
            memberships: Memberships::new(rates, session.packet_size, session.form, |_| {
                Reordering::fixed(config.reorder_packets)
            }),
            leaves: Leaves::new(config.leave_wait, Fall::Eighth),
            host: HostDrops::default(),
            work: Work::default(),
            delay: QueuingDelay::new(DELAY_GAIN, DELAY_GAIN, DelayWindow::Moving(DELAY_WINDOW)),
            level: 0,
            bursts,
            estimates: Estimates::default(),
            check_at: None,
            judged: None,
            loss: LossRule::new(config.loss, config.blind),
            heard: None,
            rejoin_at: None,
            premise: Premise::new(levels, burst_periods(&ladder, session.packet_size, &config)),
            allotment: None,
            totals: Totals::default(),
            slot: Slot::begin(Time::ZERO, Totals::default(), config.check),
            actions: Outbox::default(),
            form: session.form,
            packet_size: session.packet_size,
            ladder,
            config,
        }
    }

    fn on_start(&mut self, now: Time) {
        self.state = State::Running;
        self.slot = Slot::begin(now, self.totals, self.config.check);
        self.go_to(now, 1, LevelCause::Start);
    }

    fn on_finish(&mut self, now: Time) {
        self.state = State::Finished;
        self.go_to(now, 0, LevelCause::Finish);
    }

    fn on_packet(&mut self, now: Time, from: Origin, packet: &Packet) {
        let Header::Layered(header) = packet.header else { return };
        let is_slot = u32::from(header.slot) >> self.form.slot_bits() == 0;
        if !is_slot || !self.memberships.is_plausible(from, &header) {
            return;
        }
        let received = self.memberships.on_packet(now, &header, &mut self.delay);
        let sample = self.delay.on_packet(now, header.channel, header.clock_micros);
        let Some(received) = received else { return };
        self.actions.deliver(None);
        if received == Received::Stray {
            return;
        }
        self.heard = Some(now);
        self.totals.packets += 1;
        self.totals.bytes += packet.size.count();
        self.on_delay(now, sample);
        if let Received::Measured { missing, .. } = received {
            self.on_missing(now, missing);
        }
        if let Some(share) = self.share(now, &header) {
            self.on_share(now, share);
        }
    }

    fn on_delay(&mut self, now: Time, sample: DelaySample) {
        if let (DelaySample::Taken(tsd), Some(least)) = (sample, self.delay.minimum()) {
            let queued = tsd.0 - least.0;
            self.leaves.on_queue(now, as_span(queued));
            self.slot.standing = Some(self.slot.standing.map_or(queued, |standing| standing.min(queued)));
        }
    }

    fn on_missing(&mut self, now: Time, missing: u64) {
        let lost = self.host.attribute(missing);
        if lost == 0 {
            return;
        }
        self.totals.lost += lost;
        self.leaves.on_loss(now);
        self.actions.push(Action::Observe(Observation::LossEvent));
        let costs = self.loss.on_loss(now, self.totals.packets, self.totals.lost);
        // Where the premise is tested, loss that estimates do not explain is judged by the slot.
        if costs && !self.config.test_premise {
            self.give_up_one(now);
        }
    }

    /// What a packet's burst tells of the flow's share of the path.
    fn share(&mut self, now: Time, header: &Layered) -> Option<Rate> {
        let Layered { signal, slot, sequence, channel, .. } = *header;
        let packet = InBurst { is_first: signal, following: slot, sequence };
        self.bursts.on_packet(now, usize::from(channel), packet, self.packet_size, self.totals.bytes)
    }

    /// Gives up at once what a share does not carry; takes more when it is time to (ns-2's `make_estimate`).
    fn on_share(&mut self, now: Time, share: Rate) {
        self.actions.push(Action::Observe(Observation::Share(share)));
        self.slot.estimate = Some(self.slot.estimate.map_or(share, |least| least.min(share)));
        if !self.premise.is_trusted(now) {
            return;
        }
        self.estimates.add(share);
        let within = self.levels_within(share).max(self.lowest());
        if within < self.level {
            self.judged = Some(self.judged.map_or(share, |judged| judged.min(share)));
            self.wish(within, share, self.estimates.mean());
            self.begin_check(now);
            return self.go_to(now, within, LevelCause::Drop);
        }
        let check_at = *self.check_at.get_or_insert(now + self.config.check);
        if check_at <= now && self.estimates.count() >= self.config.least_estimates {
            self.check(now);
        }
    }

    fn begin_check(&mut self, now: Time) {
        self.estimates = Estimates::default();
        self.check_at = Some(now + self.config.check);
    }

    /// Goes to the level that the least estimate carries (ns-2's `choose_layer`).
    fn check(&mut self, now: Time) {
        let (Some(least), mean) = (self.estimates.least(), self.estimates.mean()) else { return };
        self.judged = Some(least);
        self.begin_check(now);
        self.loss.forget();
        let within = self.levels_within(least).max(self.lowest());
        self.wish(within, least, mean);
        self.follow(now, within);
    }

    /// Goes to a level as far as that is allotted.
    fn follow(&mut self, now: Time, level: usize) {
        let to = level.min(self.most());
        let cause = if to > self.level { LevelCause::Add } else { LevelCause::Drop };
        self.go_to(now, to, cause);
    }

    /// How many levels a share carries, as it counts here.
    fn levels_within(&self, share: Rate) -> usize {
        let counts = self.allotment.map_or(share, |allotment| allotment.of(share));
        self.ladder.levels_below(counts)
    }

    /// The lowest level that it goes to by itself. Under a manager base layers are kept (decision 12).
    fn lowest(&self) -> usize {
        usize::from(self.config.protect_base || self.allotment.is_some())
    }

    /// The highest level that it may have.
    fn most(&self) -> usize {
        self.allotment.map_or(usize::MAX, |allotment| allotment.level.max(1)).min(self.ladder.levels())
    }

    fn wish(&mut self, level: usize, share: Rate, at_most: Option<Rate>) {
        self.tell(Wish { level, share, tries: false, at_most });
    }

    /// Without estimates the receiver tries one layer at a time.
    fn try_wish(&mut self, level: usize) {
        self.tell(Wish { level, share: self.ladder.level_rate(self.level), tries: true, at_most: None });
    }

    fn tell(&mut self, wish: Wish) {
        if self.allotment.is_some() {
            self.actions.push(Action::Observe(Observation::Wish(wish)));
        }
    }

    fn on_allot(&mut self, now: Time, allotment: Allotment) {
        self.allotment = Some(allotment);
        if self.state != State::Running || self.rejoin_at.is_some() {
            return;
        }
        if self.level > self.most() {
            return self.go_to(now, self.most(), LevelCause::Allotted);
        }
        if let Some(judged) = self.judged.filter(|_| self.premise.is_trusted(now)) {
            let within = self.levels_within(judged).max(self.lowest());
            self.follow(now, within);
        }
    }

    fn give_up_one(&mut self, now: Time) {
        let below = self.level.saturating_sub(1).max(self.lowest());
        self.go_to(now, below.min(self.level), LevelCause::Drop);
    }

    /// Joins or leaves what lies between; a session that is left is joined again later.
    fn go_to(&mut self, now: Time, level: usize, cause: LevelCause) {
        if level == self.level {
            return;
        }
        while self.level < level {
            self.memberships.join(now, self.level, &mut self.actions);
            self.level += 1;
        }
        let leaves = self.level > level;
        while self.level > level {
            self.level -= 1;
            self.memberships.leave(self.level, &mut self.actions);
        }
        if leaves && level > 0 {
            let packet_time = self.packet_size / self.ladder.level_rate(level);
            self.leaves.on_leave(now, self.delay.short_term(), packet_time);
        }
        self.slot.is_steady = false;
        if level == 0 {
            self.heard = None;
            self.rejoin_at = (cause != LevelCause::Finish).then_some(now + self.config.rejoin);
        }
        let rate = self.ladder.level_rate(level);
        self.actions.push(Action::Observe(Observation::Level { level, rate, cause }));
    }

    fn on_time(&mut self, now: Time) {
        if self.rejoin_at.is_some_and(|at| at <= now) {
            self.rejoin_at = None;
            self.go_to(now, 1, LevelCause::Add);
        }
        if self.silent_at().is_some_and(|at| at <= now) && self.loss.take(now) {
            self.give_up_one(now);
        }
        if self.slot.ends <= now {
            self.end_slot(now);
        }
    }

    /// When so much time will have passed without a packet that it costs a layer.
    fn silent_at(&self) -> Option<Time> {
        let burst = self.packet_size / self.ladder.level_rate(1) * self.config.burst_packets as u32;
        let at = self.heard? + self.config.silence?.max(burst * MISSED_BURSTS);
        (self.level > self.lowest()).then_some(at.max(self.loss.blind_until()))
    }

    fn end_slot(&mut self, now: Time) {
        let slot = core::mem::replace(&mut self.slot, Slot::begin(now, self.totals, self.config.check));
        let report = self.report(now, &slot);
        self.actions.push(Action::Observe(Observation::Slot(report)));
        self.memberships.rejoin_silent(now, Rejoin::BaseFirst, &mut self.actions);
        let is_too_much = self.work.on_slot(report.received_packets)
            || is_too_much(report.host_dropped_packets, report.received_packets);
        if is_too_much && self.level > 1 {
            return self.go_to(now, self.level - 1, LevelCause::HostDrops);
        }
        let is_settled = slot.is_steady && !self.leaves.is_pending(now);
        if self.config.test_premise && is_settled && self.level > 0 && report.received_packets > 0 {
            self.test_premise(now, &slot, &report);
        }
    }

    fn report(&mut self, now: Time, slot: &Slot) -> SlotReport {
        let bytes = Bytes::new(self.totals.bytes - slot.before.bytes);
        self.delay.on_slot();
        SlotReport {
            level: self.level,
            received_rate: bytes.per(now.since(slot.begun)),
            received_packets: self.totals.packets - slot.before.packets,
            lost_packets: self.totals.lost - slot.before.lost,
            host_dropped_packets: self.host.take(now, HOST_MEMORY),
            queuing_delay: [self.delay.short_term(), self.delay.long_term()],
            loss_event_rate: None,
            target_rate: slot.estimate.map(|estimate| [estimate; 2]),
            vegas_beta_packets: None,
        }
    }

    fn test_premise(&mut self, now: Time, slot: &Slot, report: &SlotReport) {
        let was_trusted = self.premise.is_trusted(now);
        let advice = self.premise.on_period(
            now,
            Period {
                level: self.level,
                estimated: slot.estimate.map(|share| self.levels_within(share)),
                arrived: self.ladder.levels_below(report.received_rate),
                received: report.received_packets,
                lost: report.lost_packets,
                standing: slot.standing.map_or(Duration::ZERO, as_span),
            },
        );
        let is_trusted = self.premise.is_trusted(now);
        if was_trusted != is_trusted {
            self.actions.push(Action::Observe(Observation::FairQueued(is_trusted)));
            self.begin_check(now);
        }
        match advice {
            Advice::Estimates | Advice::Stay => {}
            Advice::Up => {
                self.try_wish(self.level + 1);
                if self.level < self.most() {
                    self.go_to(now, self.level + 1, LevelCause::Add);
                }
            }
            Advice::Down(level) => {
                self.try_wish(level);
                self.go_to(now, level.min(self.level), LevelCause::Drop);
            }
        }
    }
}

/// In how many check periods there is a burst of the base layer, rounded up.
fn burst_periods(ladder: &Ladder, packet_size: Bytes, config: &Config) -> u32 {
    let spread = packet_size / ladder.level_rate(1) * config.burst_packets as u32 * 2;
    let every = config.burst_every.max(spread).as_nanos();
    u32::try_from(every.div_ceil(config.check.as_nanos().max(1))).unwrap_or(u32::MAX / 4)
}

fn as_span(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0) as u64)
}

impl Slot {
    fn begin(now: Time, before: Totals, length: Duration) -> Slot {
        Slot { begun: now, ends: now + length, before, is_steady: true, standing: None, estimate: None }
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
        [self.rejoin_at, self.silent_at(), Some(self.slot.ends)].into_iter().flatten().min()
    }
}

/// The delay is that of the last packet; the empty path is remembered for so long.
const DELAY_GAIN: f64 = 1.0;
const DELAY_WINDOW: Duration = Duration::from_secs(600);
/// A packet that the host dropped is missed within this time, or was not of this session.
const HOST_MEMORY: Duration = Duration::from_secs(3);
/// Where the base layer sends a burst less often than the silence limit, this many missed bursts count as silence.
const MISSED_BURSTS: u32 = 3;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use weir_units::Ecn;

    use super::*;
    use crate::definition::Habitat;
    use crate::endpoint::ChannelId;

    /// A receiver of the paper's layers, and when it went to which level, in milliseconds.
    struct Tested {
        receiver: Receiver,
        sequence: [u32; 10],
        levels: Vec<(u64, usize)>,
        wishes: Vec<usize>,
    }

    impl Tested {
        fn new(config: Config) -> Tested {
            let ladder = Ladder::from_rates((3..=12).map(|n| Rate::from_kbps(n * 50)).collect()).expect("rising");
            let packet_size = Bytes::new(1024);
            let session = Session { ladder, packet_size, form: CciForm::Short, habitat: Habitat::Lab };
            let receiver = Receiver::new(&session, config);
            Tested { receiver, sequence: [0; 10], levels: Vec::new(), wishes: Vec::new() }
        }

        /// It has started at 0 s.
        fn started(config: Config) -> Tested {
            let mut tested = Tested::new(config);
            tested.tell(0, Event::Start);
            tested
        }

        fn tell(&mut self, micros: u64, event: Event<'_>) {
            let now = Time::from_micros(micros);
            self.receiver.handle(now, event);
            while let Some(action) = self.receiver.poll(now) {
                match action {
                    Action::Observe(Observation::Level { level, .. }) => self.levels.push((micros / 1_000, level)),
                    Action::Observe(Observation::Wish(wish)) => self.wishes.push(wish.level),
                    _ => {}
                }
            }
        }

        /// Deadlines until then.
        fn wait(&mut self, millis: u64) {
            while let Some(at) = self.receiver.deadline().filter(|at| *at <= Time::from_millis(millis)) {
                self.tell(at.as_micros(), Event::Deadline);
            }
        }

        /// A pair of the base layer, whose gap says that the share is so much. `lost` packets are missing before it.
        fn pair(&mut self, millis: u64, kbps: u64, lost: u32) {
            self.wait(millis);
            self.sequence[0] += lost;
            let gap = 1024 * 8 * 1_000 / kbps;
            for (micros, signal) in [(millis * 1_000, true), (millis * 1_000 + gap, false)] {
                let (sequence, clock_micros) = (self.sequence[0], micros);
                let layered = Layered { signal, slot: u16::from(signal), channel: 0, sequence, clock_micros };
                let packet = Packet { header: Header::Layered(layered), size: Bytes::new(1024), ecn: Ecn::NotEct };
                self.tell(micros, Event::Packet { from: Origin::Channel(ChannelId(0)), packet: &packet });
                self.sequence[0] += 1;
            }
        }
    }

    #[test]
    fn a_check_takes_what_the_least_of_three_estimates_of_a_second_carries() {
        let mut tested = Tested::started(Config::new(Habitat::Lab));
        tested.pair(100, 445, 0);
        tested.pair(550, 440, 0);
        tested.pair(1_000, 460, 0);
        assert_eq!(tested.levels, [(0, 1)], "the second is not over");
        tested.pair(1_150, 460, 0);
        assert_eq!(tested.levels, [(0, 1), (1_167, 6)], "440 carries 400");
    }

    #[test]
    fn one_estimate_below_the_subscription_costs_all_layers_that_it_does_not_carry() {
        let mut tested = Tested::started(Config::new(Habitat::Lab));
        [100, 450, 800, 1_150].into_iter().for_each(|at| tested.pair(at, 445, 0));
        tested.pair(1_300, 225, 0);
        assert_eq!(tested.levels[1..], [(1_168, 6), (1_336, 2)]);
        [1_500, 1_850].into_iter().for_each(|at| tested.pair(at, 445, 0));
        tested.pair(2_200, 445, 0);
        assert_eq!(tested.levels.len(), 3, "the second begins again with the drop");
    }

    #[test]
    fn the_base_layer_is_left_for_half_a_minute_unless_it_is_protected() {
        let mut tested = Tested::started(Config::new(Habitat::Lab));
        tested.pair(100, 149, 0);
        tested.wait(40_000);
        assert_eq!(tested.levels, [(0, 1), (154, 0), (30_154, 1)], "149 does not carry 150");
        let mut tested = Tested::started(Config { protect_base: true, ..Config::new(Habitat::Lab) });
        tested.pair(100, 10, 0);
        assert_eq!(tested.levels, [(0, 1)]);
    }

    #[test]
    fn half_a_second_of_silence_costs_a_layer_and_then_another() {
        let mut tested = Tested::started(Config { protect_base: true, ..Config::new(Habitat::Lab) });
        [100, 450, 800, 1_150].into_iter().for_each(|at| tested.pair(at, 260, 0));
        tested.wait(4_000);
        assert_eq!(tested.levels, [(0, 1), (1_181, 3), (1_681, 2), (2_181, 1)]);
        let never = Config { silence: None, ..Config::new(Habitat::Lab) };
        let mut tested = Tested::started(never);
        [100, 450, 800, 1_150].into_iter().for_each(|at| tested.pair(at, 260, 0));
        tested.wait(60_000);
        assert_eq!(tested.levels, [(0, 1), (1_181, 3)]);
    }

    #[test]
    fn much_loss_costs_a_layer() {
        let mut tested = Tested::started(Config { silence: None, ..Config::new(Habitat::Lab) });
        [100, 450, 800, 1_150].into_iter().for_each(|at| tested.pair(at, 260, 0));
        (0..12).for_each(|n| tested.pair(1_300 + n * 60, 260, 1));
        assert_eq!(tested.levels[2..], [(1_600, 2)], "one of three after ten packets");
    }

    #[test]
    fn a_manager_s_allotment_holds_it_back_and_is_left_at_once() {
        let mut tested = Tested::new(Config::new(Habitat::Lab));
        let allot = |level, thousandths| Event::Allot(Allotment { level, thousandths });
        tested.tell(0, allot(2, 1_000));
        tested.tell(0, Event::Start);
        [100, 450, 800, 1_150].into_iter().for_each(|at| tested.pair(at, 445, 0));
        assert_eq!((&tested.levels[..], &tested.wishes[..]), (&[(0, 1), (1_168, 2)][..], &[6][..]));
        tested.tell(1_200_000, allot(9, 1_000));
        assert_eq!(tested.levels.last(), Some(&(1_200, 6)), "the last check counts");
        tested.tell(1_300_000, allot(9, 500));
        assert_eq!(tested.levels.last(), Some(&(1_300, 2)), "half of 445 carries 200");
        tested.tell(1_400_000, allot(0, 1_000));
        assert_eq!(tested.levels.last(), Some(&(1_400, 1)), "the lowest level is always allowed");
    }

    #[test]
    fn where_loss_contradicts_the_estimates_they_do_not_count_for_a_while() {
        let config = Config { test_premise: true, protect_base: true, ..Config::new(Habitat::Lab) };
        let mut tested = Tested::started(config);
        [100, 450, 800, 1_150].into_iter().for_each(|at| tested.pair(at, 445, 0));
        assert_eq!(tested.levels.last(), Some(&(1_168, 6)));
        (0..40).for_each(|n| tested.pair(1_300 + n * 100, 445, 1));
        let (_, level) = *tested.levels.last().expect("levels");
        assert!(level < 3, "a third is lost, and every pair says 445: {:?}", tested.levels);
    }
}
