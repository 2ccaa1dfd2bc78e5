//! A receiver on a script: literal times, packets made by hand.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::observation::{LevelCause, SlotReport};
use weir_core::registry::{self, Habitat, Session, Setting};
use weir_core::{Action, ChannelId, Endpoint, Event, Header, Observation, Origin, Packet};
use weir_units::{Bytes, Ecn, Random, Rate, Time};
use weir_wire::{CciForm, Layered};

/// A receiver and the sender's side of its packets: one packet a channel every 10 ms, with no queue.
struct Script {
    receiver: Box<dyn Endpoint>,
    now: Time,
    sequences: [u32; 9],
    sender_clock_offset: u64,
    sender_slot_offset: u64,
    log: Vec<Action>,
}

impl Script {
    fn new(habitat: Habitat, settings: &[(&str, &str)]) -> Script {
        let session = Session {
            ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("valid"),
            packet_size: Bytes::new(1000),
            form: CciForm::Short,
            habitat,
        };
        let settings: Vec<Setting> =
            settings.iter().map(|(key, value)| Setting { key: (*key).into(), value: (*value).into() }).collect();
        let scheme = registry::find("avmrc").expect("registered");
        let mut script = Script {
            receiver: scheme.receiver(&session, &settings, Random::new(1, "receiver")).expect("valid settings"),
            now: Time::from_millis(1_000),
            sequences: [0; 9],
            sender_clock_offset: 5_000_000_000,
            sender_slot_offset: 0,
            log: Vec::new(),
        };
        script.does(Event::Start);
        script
    }

    fn does(&mut self, event: Event<'_>) {
        self.receiver.handle(self.now, event);
        while let Some(action) = self.receiver.poll(self.now) {
            self.log.push(action);
        }
    }

    /// What was wanted since the last call.
    fn taken(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.log)
    }

    fn packet(&mut self, channel: u16) {
        let slot = self.now.as_nanos() / 100_000_000 + self.sender_slot_offset;
        let header = Layered {
            signal: slot.is_multiple_of(20),
            slot: (slot % 128) as u16,
            channel,
            sequence: self.sequences[usize::from(channel)] & 0xffff,
            clock_micros: self.now.as_micros() + self.sender_clock_offset,
        };
        self.sequences[usize::from(channel)] += 1;
        let packet = Packet { header: Header::Layered(header), size: Bytes::new(1000), ecn: Ecn::NotEct };
        self.does(Event::Packet { from: Origin::Channel(ChannelId(channel)), packet: &packet });
    }

    /// `millis` pass, with a packet of each of `channels` every 10 ms.
    fn pass(&mut self, millis: u64, channels: std::ops::Range<u16>) {
        for _ in 0..millis / 10 {
            self.now += Duration::from_millis(10);
            while self.receiver.deadline().is_some_and(|at| at <= self.now) {
                self.does(Event::Deadline);
            }
            channels.clone().for_each(|channel| self.packet(channel));
        }
    }
}

fn levels(actions: &[Action]) -> Vec<(usize, LevelCause)> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Observe(Observation::Level { level, cause, .. }) => Some((*level, *cause)),
            _ => None,
        })
        .collect()
}

fn reports(actions: &[Action]) -> Vec<SlotReport> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Observe(Observation::Slot(report)) => Some(*report),
            _ => None,
        })
        .collect()
}

fn count(actions: &[Action], wanted: &Action) -> usize {
    actions.iter().filter(|action| *action == wanted).count()
}

#[test]
fn slow_start_on_an_empty_path_reaches_the_top_a_channel_at_a_time() {
    let mut script = Script::new(Habitat::Lab, &[]);
    script.pass(2_000, 0..9);
    let reached = levels(&script.taken());
    assert_eq!(reached[0], (1, LevelCause::Start));
    assert_eq!(reached[1..], (2..=9).map(|level| (level, LevelCause::SlowStart)).collect::<Vec<_>>());
}

#[test]
fn a_loss_ends_slow_start_with_a_drop() {
    let mut script = Script::new(Habitat::Lab, &[]);
    script.pass(450, 0..9);
    let before = levels(&script.taken()).last().expect("it has started").0;
    assert!(before > 1);
    script.sequences[0] += 1;
    script.pass(10, 0..9);
    let actions = script.taken();
    assert_eq!(levels(&actions), [(before - 1, LevelCause::SlowStartEnd)]);
    assert_eq!(count(&actions, &Action::Observe(Observation::LossEvent)), 1);
    assert_eq!(count(&actions, &Action::Leave(ChannelId(before as u16 - 1))), 1);
}

/// Passes time until slow start takes a step, with packets of `channels` only.
fn pass_until_step(script: &mut Script, channels: std::ops::Range<u16>) {
    for _ in 0..100 {
        script.pass(10, channels.clone());
        if levels(&script.taken()).iter().any(|(_, cause)| *cause == LevelCause::SlowStart) {
            return;
        }
    }
    panic!("slow start took no step in a second");
}

#[test]
fn in_the_laboratory_slow_start_adds_a_channel_a_slot_before_the_last_one_is_heard() {
    for (confirm_steps, reached) in [("no", 5), ("half", 2)] {
        let mut script = Script::new(Habitat::Lab, &[("confirm_steps", confirm_steps)]);
        script.pass(450, 0..1);
        assert_eq!(levels(&script.taken()).last(), Some(&(reached, LevelCause::SlowStart)), "{confirm_steps}");
    }
}

#[test]
fn a_step_is_judged_by_half_a_slot_or_on_sockets_by_a_whole_one_of_all_its_channels() {
    for (habitat, confirm_steps, first, judged_by_most_of_a_slot) in
        [(Habitat::Lab, "half", 1, true), (Habitat::Sockets, "yes", 3, false)]
    {
        let mut script = Script::new(habitat, &[("confirm_steps", confirm_steps)]);
        pass_until_step(&mut script, 0..first);
        script.pass(20, 0..first);
        script.pass(80, 0..9);
        let steps = levels(&script.taken());
        assert_eq!(!steps.is_empty(), judged_by_most_of_a_slot, "{habitat:?}: {steps:?}");
        script.pass(100, 0..9);
        assert!(!levels(&script.taken()).is_empty(), "{habitat:?}: a whole slot has passed");
    }
}

/// A receiver on sockets whose slow start has just gone from level 7 to the top.
fn at_the_top() -> Script {
    let mut script = Script::new(Habitat::Sockets, &[]);
    for level in [3, 5, 7] {
        pass_until_step(&mut script, 0..level);
    }
    script
}

#[test]
fn a_step_to_the_top_that_is_too_much_is_taken_back() {
    let mut script = at_the_top();
    // Everything is 20 ms later: a fifth of a slot.
    script.sender_clock_offset -= 20_000;
    script.pass(100, 0..9);
    assert_eq!(levels(&script.taken()), [(8, LevelCause::SlowStartEnd), (7, LevelCause::SlowStartEnd)]);
}

#[test]
fn a_step_to_the_top_that_arrives_ends_slow_start() {
    let mut script = at_the_top();
    script.pass(1_000, 0..9);
    let actions = script.taken();
    assert_eq!(levels(&actions), []);
    assert!(reports(&actions).last().is_some_and(|report| report.target_rate.is_some()));
}

/// Clocks on the wire repeat after 71 minutes, and half of that is the future.
#[test]
fn losses_on_channels_that_were_joined_long_ago_count() {
    for minutes in [20, 37, 60, 73] {
        let mut script = at_the_top();
        for _ in 0..minutes * 600 {
            script.now += Duration::from_millis(90);
            script.pass(10, 0..9);
        }
        script.taken();
        script.sequences[0] += 1;
        script.pass(2_000, 0..9);
        let events = count(&script.taken(), &Action::Observe(Observation::LossEvent));
        assert!(events > 0, "after {minutes} minutes");
    }
}

#[test]
fn losses_within_tau_are_one_event_and_later_ones_another() {
    let mut script = Script::new(Habitat::Lab, &[]);
    script.pass(1_000, 0..9);
    script.taken();
    for wait in [20, 50, 60] {
        script.sequences[0] += 2;
        script.pass(wait, 0..1);
    }
    let actions = script.taken();
    assert_eq!(count(&actions, &Action::Observe(Observation::LossEvent)), 1);
    script.sequences[0] += 2;
    script.pass(100, 0..1);
    let actions = script.taken();
    assert_eq!(count(&actions, &Action::Observe(Observation::LossEvent)), 1);
}

#[test]
fn packets_that_the_host_dropped_are_not_the_network_s() {
    let mut script = Script::new(Habitat::Sockets, &[]);
    script.pass(1_000, 0..9);
    script.taken();
    script.does(Event::HostDropped { packets: 3 });
    script.sequences[0] += 3;
    script.pass(150, 0..9);
    let actions = script.taken();
    assert_eq!(count(&actions, &Action::Observe(Observation::LossEvent)), 0);
    assert_eq!(reports(&actions).iter().map(|report| report.host_dropped_packets).sum::<u64>(), 3);
    assert_eq!(reports(&actions).iter().map(|report| report.lost_packets).sum::<u64>(), 0);
}

#[test]
fn a_host_that_drops_more_than_a_twentieth_gives_up_one_channel_in_n_drop_slots() {
    let mut script = Script::new(Habitat::Sockets, &[]);
    script.pass(3_000, 0..9);
    script.taken();
    for _ in 0..15 {
        script.does(Event::HostDropped { packets: 20 });
        script.pass(100, 0..9);
    }
    let changes = levels(&script.taken());
    assert_eq!(changes, [(8, LevelCause::HostDrops)]);
}

#[test]
fn packets_of_channels_that_are_not_subscribed_are_delivered_and_not_measured() {
    let mut script = Script::new(Habitat::Lab, &[]);
    script.packet(8);
    script.sequences[8] += 50;
    script.packet(8);
    let actions = script.taken();
    assert_eq!(count(&actions, &Action::Deliver { number: None }), 2);
    assert_eq!(count(&actions, &Action::Observe(Observation::LossEvent)), 0);
    assert!(reports(&actions).is_empty(), "they end no slot either");
}

#[test]
fn a_silent_base_channel_is_joined_again_and_the_others_are_not() {
    let mut script = Script::new(Habitat::Sockets, &[]);
    script.pass(1_000, 0..9);
    script.taken();
    script.pass(8_000, 0..0);
    let actions = script.taken();
    let base = Action::Join(ChannelId(0));
    assert!((3..=4).contains(&count(&actions, &base)), "after 1, 2 and 4 more seconds: {}", count(&actions, &base));
    assert_eq!(actions.iter().filter(|action| matches!(action, Action::Join(_))).count(), count(&actions, &base));
    assert!(levels(&actions).is_empty(), "silence alone changes no level");
}

#[test]
fn a_channel_whose_join_was_lost_is_joined_again() {
    let mut script = Script::new(Habitat::Lab, &[("confirm_steps", "half")]);
    script.pass(2_500, 0..1);
    let actions = script.taken();
    assert_eq!(levels(&actions).last(), Some(&(2, LevelCause::SlowStart)));
    assert!(count(&actions, &Action::Join(ChannelId(1))) >= 2);
    script.pass(1_000, 0..9);
    assert!(levels(&script.taken()).len() > 2, "once it brings packets, slow start goes on");
}

#[test]
fn a_sender_that_starts_again_is_followed() {
    let mut script = Script::new(Habitat::Sockets, &[]);
    script.pass(3_000, 0..9);
    script.taken();
    script.sequences = [7; 9];
    script.sender_clock_offset = 900_000_000_000;
    script.sender_slot_offset = 77;
    script.pass(3_000, 0..9);
    let actions = script.taken();
    assert!(levels(&actions).is_empty(), "{:?}", levels(&actions));
    assert_eq!(count(&actions, &Action::Observe(Observation::LossEvent)), 0);
    let delivered = count(&actions, &Action::Deliver { number: None });
    assert!(delivered >= 2_700 - 9 * 8, "all but the first few of each channel are delivered: {delivered}");
    assert!(reports(&actions).len() >= 28, "slots go on: {}", reports(&actions).len());
    let last = reports(&actions).pop().expect("there are reports");
    assert_eq!(last.queuing_delay, [Duration::ZERO; 2]);
}

#[test]
fn rubbish_is_ignored() {
    let mut script = Script::new(Habitat::Lab, &[]);
    let good = Layered { signal: true, slot: 1, channel: 0, sequence: 1, clock_micros: 9 };
    for (channel, header) in [
        (1, good),
        (0, Layered { slot: 128, ..good }),
        (0, Layered { sequence: 65_536, ..good }),
        (9, Layered { channel: 9, ..good }),
        (300, Layered { channel: 300, ..good }),
    ] {
        let packet = Packet { header: Header::Layered(header), size: Bytes::new(1000), ecn: Ecn::NotEct };
        script.taken();
        script.does(Event::Packet { from: Origin::Channel(ChannelId(channel)), packet: &packet });
        assert_eq!(script.taken(), [], "{header:?} on channel {channel}");
    }
}

#[test]
fn nothing_happens_before_the_start_or_after_the_end() {
    let mut script = Script::new(Habitat::Lab, &[]);
    script.pass(500, 0..9);
    script.taken();
    script.does(Event::Finish);
    let actions = script.taken();
    assert_eq!(levels(&actions), [(0, LevelCause::Finish)]);
    assert!(actions.iter().filter(|action| matches!(action, Action::Leave(_))).count() >= 2);
    script.pass(500, 0..9);
    script.does(Event::Start);
    script.does(Event::Finish);
    assert_eq!(script.taken(), []);
    assert_eq!(script.receiver.deadline(), None);
}
