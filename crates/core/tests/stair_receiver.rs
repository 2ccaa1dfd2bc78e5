//! A receiver of STAIR on sockets, fed by hand: how slow start goes and ends, and which losses lower the rate.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::observation::{LevelCause, SlotReport};
use weir_core::registry::{self, Habitat, Session, Setting};
use weir_core::{Action, ChannelId, Endpoint, Event, Header, Observation, Origin, Packet};
use weir_units::{Bytes, Ecn, Random, Rate, Time};
use weir_wire::{CciForm, Layered};

const PACKET: Bytes = Bytes::new(1456);
const RTT: Duration = Duration::from_millis(100);
/// Each channel that it is a member of brings a packet so often.
const TICK: Duration = Duration::from_millis(5);
const QUEUE: Duration = Duration::from_millis(50);

/// The receiver, a path to it, and what it did.
struct Tested {
    receiver: Box<dyn Endpoint>,
    joined: BTreeSet<u16>,
    /// Every join, in order.
    joins: Vec<u16>,
    levels: Vec<(Time, usize, LevelCause)>,
    loss_events: usize,
    reports: Vec<SlotReport>,
    now: Time,
    /// The sequence number of all channels.
    sequence: u32,
}

impl Tested {
    fn new(decrease: &str) -> Tested {
        let ladder = Ladder::geometric(Rate::from_mbps(1), Rate::from_mbps(100), 1.2).expect("valid");
        let session = Session { ladder, packet_size: PACKET, form: CciForm::Clocked, habitat: Habitat::Sockets };
        let settings = [("rtt", "fixed"), ("initial_rtt", "100ms"), ("decrease", decrease)];
        let settings = settings.map(|(key, value)| Setting { key: key.into(), value: value.into() });
        let receiver =
            registry::find("stair").and_then(|scheme| scheme.receiver(&session, &settings, Random::new(1, "receiver")));
        let receiver = receiver.expect("valid settings");
        let now = Time::from_secs(100);
        let mut tested = Tested {
            receiver,
            joined: BTreeSet::new(),
            joins: Vec::new(),
            levels: Vec::new(),
            loss_events: 0,
            reports: Vec::new(),
            now,
            sequence: 0,
        };
        tested.does(Event::Start);
        tested
    }

    fn does(&mut self, event: Event<'_>) {
        self.receiver.handle(self.now, event);
        while let Some(action) = self.receiver.poll(self.now) {
            match action {
                Action::Join(ChannelId(channel)) => {
                    assert!(self.joined.insert(channel));
                    self.joins.push(channel);
                }
                Action::Leave(ChannelId(channel)) => assert!(self.joined.remove(&channel)),
                Action::Observe(Observation::Level { level, cause, .. }) => self.levels.push((self.now, level, cause)),
                Action::Observe(Observation::Slot(report)) => self.reports.push(report),
                Action::Observe(Observation::LossEvent) => self.loss_events += 1,
                _ => {}
            }
        }
    }

    /// Lets time pass without a packet.
    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.receiver.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.does(Event::Deadline);
        }
        self.now = end;
    }

    /// Each channel brings a packet that was sent so long ago.
    fn tick(&mut self, queue: Duration) {
        self.wait(TICK);
        self.sequence += 1;
        for channel in self.joined.clone() {
            self.packet(channel, queue);
        }
    }

    /// A channel brings a packet that was sent so long ago.
    fn packet(&mut self, channel: u16, queue: Duration) {
        let clock_micros = (self.now.as_nanos() - queue.as_nanos() as u64) / 1_000;
        let layered = Layered { signal: false, slot: 0, channel, sequence: self.sequence & 0xffff, clock_micros };
        let packet = Packet { header: Header::Layered(layered), size: PACKET, ecn: Ecn::NotEct };
        self.does(Event::Packet { from: Origin::Channel(ChannelId(channel)), packet: &packet });
    }

    fn ticks(&mut self, span: Duration, queue: Duration) {
        (0..span.as_nanos() / TICK.as_nanos()).for_each(|_| self.tick(queue));
    }

    /// Every channel loses a packet.
    fn lose(&mut self) {
        self.sequence += 1;
    }

    fn level(&self) -> usize {
        self.levels.last().expect("it has started").1
    }

    fn changes(&self, wanted: LevelCause) -> usize {
        self.levels.iter().filter(|(_, _, cause)| *cause == wanted).count()
    }

    fn drops(&self) -> usize {
        self.changes(LevelCause::Drop)
    }

    /// One that climbed by slow start to where a queue ended it, and has a queue again.
    fn behind_a_queue() -> Tested {
        let mut tested = Tested::new("at-once-each-rtt");
        tested.ticks(RTT * 9 / 2, Duration::ZERO);
        tested.ticks(RTT, QUEUE);
        tested.ticks(RTT * 3, Duration::ZERO);
        assert_eq!(tested.changes(LevelCause::SlowStartEnd), 1);
        tested.ticks(RTT, QUEUE);
        tested
    }

    /// One whose rate a loss has lowered less than a round trip ago.
    fn just_decreased() -> Tested {
        let mut tested = Tested::behind_a_queue();
        tested.lose();
        tested.ticks(RTT / 5, QUEUE);
        assert_eq!(tested.drops(), 1, "{:?}", tested.levels);
        tested
    }
}

#[test]
fn slow_start_doubles_each_round_trip_however_long_the_receiver_was_there_before_the_sender() {
    let mut tested = Tested::new("period-end");
    tested.wait(Duration::from_secs(3));
    assert_eq!(tested.level(), 1, "nothing has come");
    tested.ticks(RTT * 9 / 2, Duration::ZERO);
    assert_eq!(tested.level(), 16, "{:?}", tested.levels);
}

#[test]
fn a_queue_ends_slow_start_and_takes_the_last_doubling_back() {
    let mut tested = Tested::new("period-end");
    tested.ticks(RTT * 9 / 2, Duration::ZERO);
    let doubled = tested.level();
    tested.ticks(RTT, QUEUE);
    let (_, level, cause) = tested.levels.last().copied().expect("it has started");
    assert_eq!((level, cause), (doubled / 2, LevelCause::SlowStartEnd));
}

#[test]
fn what_was_lost_before_the_network_heard_of_a_decrease_does_not_lower_the_rate_again() {
    let mut tested = Tested::just_decreased();
    tested.lose();
    tested.ticks(RTT / 2, QUEUE);
    assert_eq!(tested.drops(), 1, "{:?}", tested.levels);
}

/// Clocks on the wire repeat after 71 minutes, and half of that is the future.
#[test]
fn a_loss_long_after_the_last_decrease_lowers_the_rate() {
    for minutes in [20, 37, 60, 73] {
        let mut tested = Tested::behind_a_queue();
        for _ in 0..minutes * 60 {
            tested.wait(Duration::from_secs(1) - TICK);
            tested.tick(Duration::ZERO);
        }
        let before = tested.drops();
        tested.lose();
        tested.ticks(RTT, Duration::ZERO);
        assert_eq!(tested.drops(), before + 1, "after {minutes} minutes");
    }
}

#[test]
fn a_loss_that_is_told_after_a_pause_of_the_sender_belongs_to_when_it_happened() {
    let mut tested = Tested::just_decreased();
    tested.lose();
    tested.wait(RTT * 5);
    tested.ticks(RTT, Duration::ZERO);
    assert_eq!(tested.drops(), 1, "what tells of it was sent long after the decrease, but the loss was not");
    tested.ticks(RTT * 2, Duration::ZERO);
    tested.lose();
    tested.ticks(RTT, Duration::ZERO);
    assert_eq!(tested.drops(), 2, "this one was");
}

/// One in slow start that has heard its channels, then nothing until it joined the base layer again.
fn after_a_silence() -> Tested {
    let mut tested = Tested::new("period-end");
    tested.ticks(RTT * 2, Duration::ZERO);
    tested.wait(RTT);
    assert!(tested.joined.len() > 2, "{:?}", tested.joined);
    tested.joins.clear();
    tested.wait(Duration::from_secs(2));
    tested
}

#[test]
fn a_silent_base_layer_is_joined_again_and_the_others_are_not() {
    let mut tested = after_a_silence();
    assert_eq!(tested.joins, [0]);
    tested.wait(Duration::from_secs(2));
    assert_eq!(tested.joins, [0, 0], "two seconds later");
}

#[test]
fn what_was_sent_before_a_silent_channel_was_joined_again_is_followed_by_no_loss() {
    let mut tested = after_a_silence();
    tested.lose();
    tested.packet(0, Duration::from_millis(500));
    for (loss_events, what) in [(0, "what the join brought is no loss"), (1, "what is missing since then is")] {
        tested.lose();
        for _ in 0..10 {
            tested.sequence += 1;
            tested.packet(0, Duration::ZERO);
            tested.wait(TICK);
        }
        assert_eq!(tested.loss_events, loss_events, "{what}");
    }
}

/// Every channel's next packet comes to a host that has no room for it.
fn drop_at_the_host(tested: &mut Tested) -> u64 {
    let packets = tested.joined.len() as u64;
    tested.does(Event::HostDropped { packets });
    tested.lose();
    packets
}

#[test]
fn packets_that_the_host_dropped_are_not_the_network_s() {
    let mut tested = Tested::behind_a_queue();
    tested.reports.clear();
    let dropped = drop_at_the_host(&mut tested);
    tested.ticks(Duration::from_secs(1), Duration::ZERO);
    assert_eq!((tested.loss_events, tested.drops()), (0, 0), "{:?}", tested.levels);
    let told = tested.reports.iter().map(|report| (report.host_dropped_packets, report.lost_packets));
    assert_eq!(told.fold((0, 0), |sum, report| (sum.0 + report.0, sum.1 + report.1)), (dropped, 0));
    tested.lose();
    tested.ticks(RTT, Duration::ZERO);
    assert_eq!((tested.loss_events, tested.drops()), (1, 1), "this one is");
}

#[test]
fn the_first_drop_of_the_host_ends_slow_start() {
    let mut tested = Tested::new("period-end");
    tested.ticks(RTT * 9 / 2, Duration::ZERO);
    let doubled = tested.level();
    drop_at_the_host(&mut tested);
    tested.ticks(RTT * 3, Duration::ZERO);
    let halved = tested.levels.iter().find(|(_, _, cause)| *cause == LevelCause::HostDrops).expect("it falls");
    assert_eq!((halved.1, tested.changes(LevelCause::SlowStart)), (doubled / 2, 4), "{:?}", tested.levels);
    assert_eq!(tested.loss_events, 0);
}

#[test]
fn a_host_that_drops_more_than_a_twentieth_lowers_the_rate_once_in_two_seconds() {
    let mut tested = Tested::behind_a_queue();
    tested.ticks(Duration::from_secs(2), Duration::ZERO);
    let received = tested.reports.last().expect("a report a second").received_packets;
    for (packets, lowered) in [(received / 30, 0), (received / 10, 1), (received / 10, 1), (received / 10, 2)] {
        tested.does(Event::HostDropped { packets });
        tested.ticks(Duration::from_secs(1), Duration::ZERO);
        assert_eq!(tested.changes(LevelCause::HostDrops), lowered, "{:?}", tested.levels);
    }
}
