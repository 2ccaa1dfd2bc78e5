use super::super::config::StartUp;
use super::*;
use crate::definition::Habitat;
use crate::endpoint::Origin;
use crate::probing::PROBE_SIZE;
use weir_wire::probe;

const SIZE: Bytes = Bytes::new(1484);

fn ladder() -> Ladder {
    Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(50), 1.15).expect("valid")
}

fn sender(start_up: StartUp) -> Sender {
    let session = Session { ladder: ladder(), packet_size: SIZE, form: CciForm::Short, habitat: Habitat::Sockets };
    Sender::new(&session, &Config { start_up, offer: Offer::All, ..Config::default() })
}

/// A sender that sends what receivers want.
fn wanted_sender() -> Sender {
    let session = Session { ladder: ladder(), packet_size: SIZE, form: CciForm::Short, habitat: Habitat::Sockets };
    Sender::new(&session, &Config::default())
}

/// A receiver tells what it wants.
fn tell(sender: &mut Sender, millis: u64, wanted: Wanted) {
    let packet = Packet { header: Header::Probe(Probe::wanted(wanted)), size: PROBE_SIZE, ecn: Ecn::NotEct };
    sender.handle(Time::from_millis(millis), Event::Packet { from: Origin::Unverified, packet: &packet });
}

fn emitted(sender: &mut Sender, now: Time, event: Event<'_>) -> Vec<(Time, Layered)> {
    sender.handle(now, event);
    let actions = core::iter::from_fn(|| sender.poll(now));
    let layered = actions.filter_map(|action| match action {
        Action::Send { packet: Packet { header: Header::Layered(layered), .. }, .. } => Some((now, layered)),
        _ => None,
    });
    layered.collect()
}

fn sent(sender: &mut Sender, until: Time) -> Vec<(Time, Layered)> {
    let mut all = match sender.start {
        None => emitted(sender, Time::ZERO, Event::Start),
        Some(_) => Vec::new(),
    };
    while let Some(at) = sender.deadline().filter(|at| *at < until) {
        all.extend(emitted(sender, at, Event::Deadline));
    }
    all
}

/// Packets of a level in a span, over what its rate sends in that time.
fn share(sent: &[(Time, Layered)], level: usize, from: u64, to: u64) -> f64 {
    let span = Time::from_millis(from)..Time::from_millis(to);
    let of_level = |(at, layered): &&(Time, Layered)| span.contains(at) && usize::from(layered.channel) < level;
    let expected = ladder().level_rate(level).packets_per_sec(SIZE) * (to - from) as f64 / 1e3;
    sent.iter().filter(of_level).count() as f64 / expected
}

#[test]
fn every_level_has_its_rate_over_a_cycle_and_numbers_without_a_gap() {
    for start_up in [StartUp::Never, StartUp::Always] {
        let sent = sent(&mut sender(start_up), Time::from_secs(16));
        for level in 1..=ladder().levels() {
            let share = share(&sent, level, 0, 16_000);
            assert!((share - 1.0).abs() < 0.02, "{start_up:?}, level {level}: {share}");
        }
        let numbers = sent.iter().filter(|(_, layered)| layered.channel == 5).map(|(_, layered)| layered.sequence);
        assert!(numbers.enumerate().all(|(count, number)| number == count as u32));
    }
}

#[test]
fn in_the_last_slot_of_a_cycle_each_level_up_to_the_limit_sees_the_next_one_to_within_three_packets() {
    let sent = sent(&mut sender(StartUp::Never), Time::from_secs(8));
    for level in 1..ladder().levels() {
        let rate = ladder().level_rate(level);
        let length = cycle::next_level_length(rate, SIZE).as_millis() as u64;
        for cycle in 0..10 {
            let begins = cycle * 800 + 700;
            let seen = share(&sent, level, begins, begins + length);
            let shown = cycle::shown(cycle, ladder().levels());
            // Above the limit it is a slot as any other.
            let off = if matches!(shown, Shown::UpTo(limit) if level > limit) { 3.5 } else { 3.0 };
            let burst = cycle::next_level_rate(&ladder(), level, 1.03, shown);
            let wanted = burst.bps() as f64 / rate.bps() as f64;
            let packets = rate.packets_per_sec(SIZE) * length as f64 / 1e3;
            assert!((seen - wanted).abs() * packets < off, "level {level}, cycle {cycle}: {seen} and not {wanted}");
        }
    }
    let in_bursts = sent.iter().filter(|(_, layered)| layered.signal);
    assert!(in_bursts.clone().count() > 100 && in_bursts.clone().all(|(_, layered)| layered.slot == 7));
}

/// When the periods began in which packets of start-up bursts were sent, in milliseconds.
fn start_up_bursts(sent: &[(Time, Layered)]) -> Vec<u64> {
    let in_bursts = sent.iter().filter(|(_, layered)| layered.signal && layered.slot & 7 != 7);
    let mut times: Vec<_> = in_bursts.map(|(at, _)| at.as_micros() / 5_000 * 5).collect();
    times.dedup();
    times
}

fn report(sender: &mut Sender, millis: u64, report: Probe) {
    let packet = Packet { header: Header::Probe(report), size: PROBE_SIZE, ecn: Ecn::NotEct };
    sender.handle(Time::from_millis(millis), Event::Packet { from: Origin::Unverified, packet: &packet });
}

#[test]
fn who_cannot_tell_has_start_up_bursts_in_the_first_seconds_twice_in_a_slot() {
    let mut sender = sender(StartUp::Asked);
    let bursts = start_up_bursts(&sent(&mut sender, Time::from_millis(1_500)));
    assert_eq!(bursts[..8], [0, 5, 10, 15, 50, 55, 60, 65]);
    assert_eq!(start_up_bursts(&sent(&mut sender, Time::from_secs(5))), []);
    report(&mut sender, 5_010, Probe { kind: probe::Kind::Probe, clock_micros: 7 });
    assert_eq!(start_up_bursts(&sent(&mut sender, Time::from_secs(6))), [], "who only measures needs none");
}

#[test]
fn a_ladder_of_one_rate_has_no_start_up_bursts() {
    let ladder = Ladder::from_rates([Rate::from_mbps(50)].into()).expect("one rate");
    let session = Session { ladder, packet_size: SIZE, form: CciForm::Short, habitat: Habitat::Sockets };
    let mut sender = Sender::new(&session, &Config { start_up: StartUp::Always, ..Config::default() });
    let sent = sent(&mut sender, Time::from_secs(2));
    assert!(sent.len() > 8_000, "{}", sent.len());
    assert_eq!(start_up_bursts(&sent), []);
}

#[test]
fn who_tells_what_it_has_in_its_start_has_a_burst_at_once_until_it_tells_that_the_start_is_over() {
    let mut sender = sender(StartUp::Asked);
    sent(&mut sender, Time::from_millis(8_031));
    let tell = |sender: &mut Sender, millis, level| {
        report(sender, millis, Probe::starting(Starting { receiver: 3, level }));
    };
    tell(&mut sender, 8_031, 11);
    let first = sent(&mut sender, Time::from_millis(8_066));
    assert_eq!(start_up_bursts(&first), [8_035, 8_040, 8_045, 8_050]);
    let seen = share(&first, 11, 8_035, 8_055);
    assert!((seen / 4.0 - 1.0).abs() < 0.15, "{seen} of the rate");
    // All that it had is due to send less, and what it has joined makes up for that.
    tell(&mut sender, 8_066, 20);
    let second = sent(&mut sender, Time::from_millis(8_150));
    assert_eq!(start_up_bursts(&second), [8_070, 8_075, 8_080, 8_085]);
    let seen = share(&second, 20, 8_070, 8_090);
    assert!((2.5..3.3).contains(&seen), "{seen} of the rate");
    // A receiver that tells no more has others, as its level may be joined by now.
    let third = start_up_bursts(&sent(&mut sender, Time::from_millis(8_200)));
    assert!(third.first().is_some_and(|at| (8_150..8_175).contains(at)), "{third:?}");
    tell(&mut sender, 8_200, 0);
    assert_eq!(start_up_bursts(&sent(&mut sender, Time::from_secs(12))), []);
}

#[test]
fn bursts_that_nobody_asks_for_go_as_far_as_who_starts_may_have_climbed() {
    let mut sender = wanted_sender();
    sent(&mut sender, Time::from_millis(10));
    tell(&mut sender, 10, Wanted { receiver: 1, level: 25, eighths: 0 });
    sent(&mut sender, Time::from_millis(3_000));
    tell(&mut sender, 3_000, Wanted { receiver: 1, level: 25, eighths: 0 });
    tell(&mut sender, 3_001, Wanted { receiver: 2, level: 16, eighths: 0 });
    report(&mut sender, 3_001, Probe::starting(Starting { receiver: 2, level: 11 }));
    let asked = sent(&mut sender, Time::from_millis(3_050));
    assert!(share(&asked, 11, 3_005, 3_025) > 3.0 && share(&asked, 25, 3_005, 3_025) < 1.5);
    let regular = sent(&mut sender, Time::from_millis(3_300));
    assert_eq!(start_up_bursts(&regular)[..4], [3_050, 3_055, 3_060, 3_065]);
    let sends = |level| share(&regular, level, 3_050, 3_070) * ladder().level_rate(level).bps() as f64;
    let above = (sends(25) - sends(16)) / (ladder().level_rate(25).bps() - ladder().level_rate(16).bps()) as f64;
    assert!(share(&regular, 16, 3_050, 3_070) > 1.5, "{}", share(&regular, 16, 3_050, 3_070));
    assert!((0.7..1.3).contains(&above), "levels 17 to 25 have their rates as ever: {above}");
}

#[test]
fn reports_of_starts_make_nobody_probe_seldom() {
    let mut sender = wanted_sender();
    sent(&mut sender, Time::from_millis(100));
    let before = sender.announcement.interval();
    for step in 0..6 {
        for receiver in 0..50 {
            let level = 10 + step as u16;
            report(&mut sender, 100 + 20 * step, Probe::starting(Starting { receiver, level }));
        }
        sent(&mut sender, Time::from_millis(120 + 20 * step));
    }
    assert_eq!(sender.announcement.interval(), before);
}

#[test]
fn bursts_that_a_receiver_asks_for_leave_each_level_its_rate_and_the_next_levels_burst_alone() {
    let mut sender = sender(StartUp::Asked);
    let mut all = sent(&mut sender, Time::from_secs(2));
    for step in 0..200 {
        let level = [11, 20, 27, 33][step as usize % 4];
        report(&mut sender, 2_000 + step * 40, Probe::starting(Starting { receiver: 3, level }));
        all.extend(sent(&mut sender, Time::from_millis(2_040 + step * 40)));
    }
    assert!(start_up_bursts(&all).iter().filter(|at| **at > 2_000).count() > 200);
    for level in 1..=ladder().levels() {
        let share = share(&all, level, 2_400, 10_000);
        assert!((share - 1.0).abs() < 0.05, "level {level}: {share}");
    }
    let of_bursts = |at: &u64| at % 800 < 700;
    assert!(start_up_bursts(&all).iter().all(of_bursts));
}

#[test]
fn what_nobody_wants_is_not_sent_and_who_wants_more_has_it_in_the_next_period() {
    let mut sender = wanted_sender();
    let highest = |sent: &[(Time, Layered)]| sent.iter().map(|(_, layered)| layered.channel).max();
    let opened = sent(&mut sender, Time::from_millis(100));
    assert!(highest(&opened) < Some(25), "{:?}", highest(&opened));
    tell(&mut sender, 100, Wanted { receiver: 1, level: 12, eighths: 0 });
    let all = sent(&mut sender, Time::from_secs(9));
    assert_eq!(highest(&all), Some(11));
    assert!((share(&all, 12, 1_000, 9_000) - 1.0).abs() < 0.02, "{}", share(&all, 12, 1_000, 9_000));
    let withheld = |layered: &Layered| layered.slot & 7 == 2 && layered.slot >> 3 != 0;
    assert!(!all.iter().any(|(_, layered)| withheld(layered)), "receivers need not hear of it");
    tell(&mut sender, 9_000, Wanted { receiver: 1, level: 20, eighths: 0 });
    assert_eq!(highest(&sent(&mut sender, Time::from_millis(9_050))), Some(19));
}

#[test]
fn the_topmost_channel_has_the_part_of_the_next_step_that_is_wanted_but_not_in_bursts() {
    let mut sender = wanted_sender();
    sent(&mut sender, Time::from_millis(100));
    tell(&mut sender, 100, Wanted { receiver: 1, level: 12, eighths: 4 });
    let starting = sent(&mut sender, Time::from_millis(1_500));
    assert!((share(&starting, 12, 200, 1_500) - 1.0).abs() < 0.03, "while somebody starts there is none");
    tell(&mut sender, 4_000, Wanted { receiver: 1, level: 12, eighths: 4 });
    let all = sent(&mut sender, Time::from_secs(17));
    assert_eq!(all.iter().map(|(_, layered)| layered.channel).max(), Some(11));
    // Half of 15 %, but in one slot of eight.
    let (below, above) = (share(&all, 11, 2_400, 16_800), share(&all, 12, 2_400, 16_800));
    assert!((above - 1.0 - 0.075 * 7.0 / 8.0).abs() < 0.01, "{above}");
    assert!((0.97..1.01).contains(&below), "{below}: all but the topmost channel lose a little to folded bursts");
    let burst = share(&all, 12, 7_100, 7_200);
    assert!((burst - 1.03 * 1.15).abs() < 0.1, "{burst}");
    tell(&mut sender, 17_000, Wanted { receiver: 2, level: 12, eighths: 0 });
    let all = sent(&mut sender, Time::from_secs(20));
    assert!((share(&all, 12, 17_000, 20_000) - 1.0).abs() < 0.02, "another one at the level wants nothing of it");
}

#[test]
fn the_first_receiver_is_told_of_in_the_period_after_its_report_and_another_one_within_half_a_second() {
    let mut sender = wanted_sender();
    let told = |sender: &mut Sender, until: u64| {
        let mut told = Vec::new();
        while let Some(at) = sender.deadline().filter(|at| *at < Time::from_millis(until)) {
            sender.handle(at, Event::Deadline);
            while let Some(action) = sender.poll(at) {
                if let Action::Observe(Observation::Audience(audience)) = action {
                    told.push((at.as_micros() / 1_000, audience.map(|audience| audience.receivers)));
                }
            }
        }
        told
    };
    sender.handle(Time::ZERO, Event::Start);
    assert_eq!(told(&mut sender, 112), [(5, Some(0))]);
    tell(&mut sender, 112, Wanted { receiver: 1, level: 12, eighths: 0 });
    assert_eq!(told(&mut sender, 130), [(115, Some(1))]);
    tell(&mut sender, 130, Wanted { receiver: 2, level: 12, eighths: 0 });
    assert_eq!(told(&mut sender, 700), [(615, Some(2))]);
}

#[test]
fn the_packets_of_a_period_go_out_over_its_length_at_every_level() {
    let sent = sent(&mut sender(StartUp::Never), Time::from_secs(1));
    for level in [10, 20, 30, ladder().levels()] {
        let in_a_millisecond = |from: u64| {
            let of = |(at, layered): &&(Time, Layered)| {
                at.as_micros() / 1_000 == from && usize::from(layered.channel) < level
            };
            sent.iter().filter(of).count() as f64
        };
        let most = (0..700).map(in_a_millisecond).fold(0.0, f64::max);
        let mean = ladder().level_rate(level).packets_per_sec(SIZE) / 1e3;
        assert!(most <= mean.max(8.0) + 3.0, "level {level}: {most} packets in a millisecond and not {mean}");
    }
}

#[test]
fn a_late_deadline_is_made_up_for_by_four_periods_at_most() {
    let mut sender = sender(StartUp::Never);
    sent(&mut sender, Time::from_millis(100));
    let mut packets = emitted(&mut sender, Time::from_secs(60), Event::Deadline);
    packets.extend(sent(&mut sender, Time::from_micros(60_004_999)));
    let late = packets.len() as f64;
    let periods = late / (Rate::from_mbps(50).packets_per_sec(SIZE) * 5e-3);
    assert!((3.0..5.5).contains(&periods), "{periods} periods");
    assert!(emitted(&mut sender, Time::from_secs(60), Event::Finish).is_empty());
    assert_eq!(sender.deadline(), None);
}
