//! Random operations on a receiver against a shadow account of its subscription, checked after each operation.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::observation::LevelCause;
use weir_core::registry::{self, Habitat, Session, Setting};
use weir_core::{Action, ChannelId, Endpoint, Event, Header, Observation, Origin, Packet};
use weir_units::{Bytes, Ecn, Random, Rate, Time};
use weir_wire::{CciForm, Layered};

const LEVELS: usize = 9;

fn session(habitat: Habitat) -> Session {
    Session {
        ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("valid"),
        packet_size: Bytes::new(1000),
        form: CciForm::Short,
        habitat,
    }
}

/// A receiver, what it should be subscribed to, and a sender whose packets may be late, lost or doubled.
struct Model {
    receiver: Box<dyn Endpoint>,
    now: Time,
    joined: BTreeSet<u16>,
    level: usize,
    finished: bool,
    /// Slots that the receiver has reported, and the last one with an add.
    slots: u64,
    slot_of_last_add: Option<u64>,
    /// Of the sender.
    slot: u64,
    sequences: [u32; LEVELS],
    start_up_slots: u64,
    adds: u64,
    drops: u64,
}

/// What one call produced.
#[derive(Default)]
struct Outcome {
    delivered: u32,
    levels: Vec<LevelCause>,
}

impl Model {
    fn new(scheme: &str, habitat: Habitat, settings: &[Setting]) -> Model {
        let scheme = registry::find(scheme).expect("registered");
        let mut model = Model {
            receiver: scheme.receiver(&session(habitat), settings, Random::new(1, "receiver")).expect("valid settings"),
            now: Time::from_millis(5),
            joined: BTreeSet::new(),
            level: 0,
            finished: false,
            slots: 0,
            slot_of_last_add: None,
            slot: 0,
            sequences: [0; LEVELS],
            start_up_slots: 60,
            adds: 0,
            drops: 0,
        };
        let outcome = model.does(Event::Start);
        assert!(model.level >= 1 && outcome.levels.iter().all(|cause| *cause == LevelCause::Start));
        model
    }

    /// One event, everything that follows from it, and the invariants.
    fn does(&mut self, event: Event<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.receiver.handle(self.now, event);
        while let Some(action) = self.receiver.poll(self.now) {
            assert!(!self.finished, "{action:?} after the end");
            match action {
                Action::Join(ChannelId(channel)) => {
                    assert!(self.joined.insert(channel), "channel {channel} was a member already");
                }
                Action::Leave(ChannelId(channel)) => {
                    assert!(self.joined.remove(&channel), "channel {channel} was no member");
                }
                Action::Deliver { .. } => outcome.delivered += 1,
                Action::Observe(Observation::Level { level, rate, cause }) => {
                    assert_eq!(rate, session(Habitat::Lab).ladder.level_rate(level));
                    match cause {
                        LevelCause::SlowStart | LevelCause::Add | LevelCause::Start => {
                            assert_eq!(level, self.level + 1);
                        }
                        LevelCause::Finish => assert_eq!(level, 0),
                        _ => assert_eq!(level + 1, self.level, "{cause:?}"),
                    }
                    self.level = level;
                    outcome.levels.push(cause);
                }
                Action::Observe(Observation::Slot(report)) => {
                    self.slots += 1;
                    assert_eq!(report.level, self.level);
                    let rates = report.loss_event_rate.into_iter().flatten();
                    rates.for_each(|rate| assert!(rate > 0.0 && rate <= 1.0, "loss event rate {rate}"));
                    let beta = report.vegas_beta_packets.unwrap_or(4.0);
                    assert!((2.0..=88.0).contains(&beta), "β is {beta}");
                }
                Action::Observe(_) => {}
                other => panic!("a receiver does not ask for {other:?}"),
            }
        }
        // Slow start may take several channels in a step, where it is configured to.
        let steps = outcome.levels.contains(&LevelCause::SlowStart);
        let adds = outcome.levels.iter().filter(|cause| **cause == LevelCause::Add).count() + usize::from(steps);
        if adds > 0 {
            assert_eq!(adds, 1, "more than one channel added at once");
            assert_ne!(self.slot_of_last_add, Some(self.slots), "two adds in slot {}", self.slots);
            self.slot_of_last_add = Some(self.slots);
            self.adds += 1;
        }
        self.drops += outcome.levels.iter().filter(|cause| **cause == LevelCause::Drop).count() as u64;
        let expected: BTreeSet<u16> = (0..self.level as u16).collect();
        assert_eq!(self.joined, expected, "membership does not match level {}", self.level);
        assert!(self.finished || self.level >= 1, "the base layer is never given up");
        if let (false, Some(deadline)) = (self.finished, self.receiver.deadline()) {
            assert!(deadline > self.now, "the receiver wants to be called again at once");
        }
        outcome
    }

    fn packet(&mut self, channel: u16, transit: Duration) -> Packet {
        let sequence = self.sequences[usize::from(channel)] & 0xffff;
        self.sequences[usize::from(channel)] += 1;
        let header = Layered {
            signal: self.slot.is_multiple_of(20),
            slot: (self.slot & 0x7f) as u16,
            channel,
            sequence,
            clock_micros: (self.now - transit).as_micros() + 7_000_000_000,
        };
        Packet { header: Header::Layered(header), size: Bytes::new(1000), ecn: Ecn::NotEct }
    }

    fn step(&mut self, random: &mut Random) {
        self.now += Duration::from_micros(random.below(4_000));
        while self.receiver.deadline().is_some_and(|at| at <= self.now) {
            self.does(Event::Deadline);
        }
        let channel = random.below(LEVELS as u64) as u16;
        match random.below(1000) {
            0..20 => self.slot += 1,
            20..25 => self.sequences[usize::from(channel)] += random.below(4) as u32,
            25..27 => drop(self.does(Event::HostDropped { packets: random.below(5) })),
            27..28 => self.now += Duration::from_millis(random.below(3_000)),
            _ => self.receive(channel, random),
        }
    }

    fn receive(&mut self, channel: u16, random: &mut Random) {
        let queue = if self.level > 5 { random.below(150) } else { random.below(3) };
        let packet = self.packet(channel, Duration::from_millis(5 + queue));
        let Header::Layered(header) = packet.header else { unreachable!("layered packets are made above") };
        let from = Origin::Channel(ChannelId(channel));
        let outcome = self.does(Event::Packet { from, packet: &packet });
        assert!(outcome.delivered <= 1, "one packet, one payload");
        if self.slots > self.start_up_slots && outcome.levels.contains(&LevelCause::Add) {
            assert!(header.signal, "added in slot {} although it is not signalled", header.slot);
        }
        if random.chance(0.05) {
            assert_eq!(self.does(Event::Packet { from, packet: &packet }).delivered, 0, "a duplicate was delivered");
        }
    }
}

#[test]
fn the_subscription_follows_the_rules_whatever_happens() {
    for (scheme, habitat, start_up_slots) in [
        ("avmrc", Habitat::Lab, 60),
        ("avmrc", Habitat::Sockets, u64::MAX),
        ("rmrc", Habitat::Lab, 60),
        ("vmrc", Habitat::Lab, 60),
    ] {
        let (mut adds, mut drops) = (0, 0);
        for seed in 0..20 {
            let mut random = Random::new(seed, "operations");
            let mut model = Model::new(scheme, habitat, &[]);
            model.start_up_slots = start_up_slots;
            (0..20_000).for_each(|_| model.step(&mut random));
            (adds, drops) = (adds + model.adds, drops + model.drops);
            model.receiver.handle(model.now, Event::Finish);
            let left = std::iter::from_fn(|| model.receiver.poll(model.now))
                .filter(|action| matches!(action, Action::Leave(_)))
                .count();
            assert_eq!(left, model.joined.len(), "the end leaves everything");
            assert_eq!(model.receiver.deadline(), None);
            model.finished = true;
            model.step(&mut random);
        }
        assert!(adds > 50 && drops > 20, "{scheme}: the operations must move the level: {adds} adds, {drops} drops");
    }
}

#[test]
fn without_synchronisation_adds_keep_to_slots_of_the_receiver_s_own() {
    let settings = [Setting { key: "sync".into(), value: "none".into() }];
    for seed in 0..10 {
        let mut random = Random::new(seed, "operations");
        let mut model = Model::new("avmrc", Habitat::Lab, &settings);
        model.start_up_slots = u64::MAX;
        (0..20_000).for_each(|_| model.step(&mut random));
    }
}

#[test]
fn settings_are_read_and_refused_with_what_would_be_accepted() {
    let build = |key: &str, value: &str| {
        let settings = [Setting { key: key.into(), value: value.into() }];
        let scheme = registry::find("avmrc").expect("registered");
        let sender = scheme.sender(&session(Habitat::Lab), &settings, Random::new(1, "sender")).map(drop);
        assert_eq!(sender, scheme.receiver(&session(Habitat::Lab), &settings, Random::new(1, "receiver")).map(drop));
        sender.map_err(|error| error.to_string())
    };
    for (key, value) in [
        ("tau", "200ms"),
        ("n_add", "10"),
        ("gamma_drop", "0.25"),
        ("r", "50ms"),
        ("beta_max", "sustained"),
        ("sync", "none"),
        ("rtt", "fixed"),
        ("rtt", "measured"),
        ("initial_rtt", "80ms"),
        ("period", "1ms"),
        ("delay_window", "all"),
        ("delay_window", "10m"),
        ("reorder", "3"),
        ("leave_wait", "0"),
        ("confirm_steps", "no"),
        ("confirm_steps", "half"),
    ] {
        assert_eq!(build(key, value), Ok(()), "{key}={value}");
    }
    assert_eq!(build("tau", "100"), Err("setting tau=100: expected a span from 10ms to 10s".into()));
    assert_eq!(build("sync", "strong"), Err("setting sync=strong: expected weak or none".into()));
    assert_eq!(build("n_add", "0"), Err("setting n_add=0: expected a whole number from 1 to 1000000".into()));
    assert_eq!(build("taw", "1s"), Err("avmrc has no setting \"taw\"".into()));
}
