//! A receiver of STAIR on sockets, fed by hand: how slow start goes and ends, and which losses lower the rate.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::observation::LevelCause;
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
    levels: Vec<(Time, usize, LevelCause)>,
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
        let mut tested = Tested { receiver, joined: BTreeSet::new(), levels: Vec::new(), now, sequence: 0 };
        tested.does(Event::Start);
        tested
    }

    fn does(&mut self, event: Event<'_>) {
        self.receiver.handle(self.now, event);
        while let Some(action) = self.receiver.poll(self.now) {
            match action {
                Action::Join(ChannelId(channel)) => assert!(self.joined.insert(channel)),
                Action::Leave(ChannelId(channel)) => assert!(self.joined.remove(&channel)),
                Action::Observe(Observation::Level { level, cause, .. }) => self.levels.push((self.now, level, cause)),
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
        let clock_micros = (self.now.as_nanos() - queue.as_nanos() as u64) / 1_000;
        for channel in self.joined.clone() {
            let layered = Layered { signal: false, slot: 0, channel, sequence: self.sequence & 0xffff, clock_micros };
            let packet = Packet { header: Header::Layered(layered), size: PACKET, ecn: Ecn::NotEct };
            self.does(Event::Packet { from: Origin::Channel(ChannelId(channel)), packet: &packet });
        }
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

    fn drops(&self) -> usize {
        self.levels.iter().filter(|(_, _, cause)| *cause == LevelCause::Drop).count()
    }

    /// One that climbed by slow start to where a queue ended it, and has a queue again.
    fn behind_a_queue() -> Tested {
        let mut tested = Tested::new("at-once-each-rtt");
        tested.ticks(RTT * 9 / 2, Duration::ZERO);
        tested.ticks(RTT, QUEUE);
        tested.ticks(RTT, Duration::ZERO);
        assert_eq!(tested.levels.iter().filter(|(_, _, cause)| *cause == LevelCause::SlowStartEnd).count(), 1);
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
    tested.lose();
    tested.ticks(RTT, Duration::ZERO);
    assert_eq!(tested.drops(), 2, "this one was");
}
