use super::*;

mod starts;

fn ladder() -> Ladder {
    Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.15).expect("valid")
}

/// Receivers begin at level 12 (1191 kbit/s).
const SIZE: Bytes = Bytes::new(1500);

/// At level 20 (3643 kbit/s) on an empty path, at a time in milliseconds.
fn seen(millis: u64) -> Seen {
    Seen {
        now: Time::from_millis(millis),
        level: 20,
        most: ladder().levels(),
        arrived: ladder().level_rate(20),
        delivered: ladder().level_rate(20),
        has_lost_much: false,
        loses_more: false,
        is_empty: true,
        is_full: false,
        was_empty_in_cycle: true,
        ends_cycle: false,
        verdict: None,
        packet_time: Duration::from_millis(3),
        loss_event: false,
        latest_loss_event: None,
        mean_interval: None,
        latest_queue: None,
        latest_short_queue: None,
        queue: Duration::ZERO,
        is_contended: false,
        share: Rate::from_mbps(100),
        settled: Rate::from_mbps(100),
        is_pending: false,
    }
}

fn rules() -> Rules {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    rules.end_start();
    rules
}

/// A burst at a rate, in Mbit/s, that makes the queue grow by `slope`.
fn burst(kind: Burst, mbps: f64, slope: f64) -> Option<Verdict> {
    let rate = Rate::from_bps((mbps * 1e6) as u64);
    Some(Verdict {
        kind,
        limit: None,
        rate,
        length: Duration::from_millis(100),
        slope,
        packets: 100.0,
        expected: 100.0,
        own_loss: 0.05,
        after: None,
    })
}

/// A start-up burst that came whole.
fn carried(mbps: f64) -> Carried {
    Carried { rate: Rate::from_bps((mbps * 1e6) as u64), is_full: false }
}

fn fitting(millis: u64) -> Seen {
    Seen { verdict: burst(Burst::NextLevel, 4.3, 0.0), ..seen(millis) }
}

#[test]
fn a_join_on_trial_that_fills_the_queue_is_taken_back_and_ends_the_start() {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    assert!(rules.on_burst(&fitting(60_000)).is_some() && rules.is_starting());
    rules.on_change(Time::from_millis(60_000));
    let full = |millis| Seen { level: 21, is_empty: false, is_full: true, was_empty_in_cycle: false, ..seen(millis) };
    assert_eq!(rules.on_slot(&full(61_100)), None, "the queue is its own");
    let ends_cycle = Seen { ends_cycle: true, ..full(61_500) };
    assert_eq!(rules.on_slot(&ends_cycle), Some((20, LevelCause::Drop)));
    rules.on_change(Time::from_millis(61_500));
    assert!(!rules.is_starting());
    assert_eq!(rules.on_slot(&Seen { level: 20, ..full(62_600) }), None, "what is left of it, too");
}

#[test]
fn who_is_below_others_goes_there_and_past_no_level_that_is_left_alone() {
    let limited = |slope| burst(Burst::NextLevel, 4.3, slope).map(|verdict| Verdict { limit: Some(29), ..verdict });
    let mut rules = rules();
    let mut at = |millis: u64, level: usize, verdict| {
        rules.on_burst(&Seen { level, verdict, ..seen(millis) }).map(|(level, _)| level)
    };
    let whole = burst(Burst::NextLevel, 4.3, 0.15);
    assert_eq!([at(60_000, 20, whole), at(61_600, 20, whole), at(62_400, 20, limited(0.0))], [None, None, Some(21)]);
    assert_eq!(at(63_200, 21, whole), Some(23));
    assert_eq!(rules.take_back(Time::from_millis(64_000), 23), Some((21, LevelCause::Drop)));
    let mut at =
        |millis: u64, verdict| rules.on_burst(&Seen { level: 21, verdict, ..seen(millis) }).map(|(level, _)| level);
    assert_eq!(at(64_800, whole), None, "it does not know of others any more");
    assert_eq!(at(65_600, limited(0.0)), Some(22));
    assert_eq!(at(66_400, whole), Some(22), "23 was too much");
}

#[test]
fn the_next_level_is_joined_when_its_burst_fits_once_and_after_losses_twice() {
    assert_eq!(rules().on_burst(&fitting(10_000)), Some((21, LevelCause::Add)));
    let lost = |millis| Seen { latest_loss_event: Some(Time::from_secs(1)), ..fitting(millis) };
    let mut rules = rules();
    assert_eq!(rules.on_burst(&lost(10_000)), None);
    let grows = Seen { verdict: burst(Burst::NextLevel, 4.3, 0.1), ..lost(10_800) };
    assert_eq!(rules.on_burst(&grows), None);
    assert_eq!(rules.on_burst(&lost(11_600)), None, "not twice in a row");
    assert_eq!(rules.on_burst(&lost(12_400)), Some((21, LevelCause::Add)));
}

#[test]
fn nothing_is_joined_by_a_burst_while_a_queue_stands_or_soon_after_congestion() {
    assert_eq!(rules().on_burst(&Seen { is_empty: false, ..fitting(10_000) }), None);
    assert_eq!(rules().on_burst(&Seen { is_pending: true, ..fitting(10_000) }), None);
    let recent = Some(Time::from_millis(7_500));
    let mut rules = rules();
    let tries = [10_000, 10_400, 10_600]
        .map(|millis| rules.on_burst(&Seen { latest_loss_event: recent, ..fitting(millis) }).is_some());
    assert_eq!(tries, [false, false, true], "three seconds after the loss event at the earliest");
}

#[test]
fn rare_loss_events_hold_a_receiver_back_for_long_only_while_queues_stand() {
    let fits_after = |millis: u64, stood: u64| {
        let seen = |millis| Seen {
            latest_loss_event: Some(Time::from_secs(10)),
            mean_interval: Some(Duration::from_secs(60)),
            latest_queue: Some(Time::from_millis(stood)),
            ..fitting(millis)
        };
        let mut rules = rules();
        rules.on_burst(&seen(millis - 800));
        rules.on_burst(&seen(millis)).is_some()
    };
    assert!(!fits_after(19_900, 9_000) && fits_after(20_000, 9_000), "ten seconds after the loss event");
    assert!(!fits_after(24_900, 15_000) && fits_after(25_000, 15_000), "ten seconds after the queue");
    assert!(fits_after(70_000, 69_000), "a minute is enough in any case");
}

#[test]
fn a_join_that_leaves_a_queue_is_taken_back_and_not_repeated_for_longer_each_time() {
    let mut rules = rules();
    let (mut now, mut waited) = (10_000, [0; 3]);
    for wait in &mut waited {
        let from = now;
        while rules.on_burst(&fitting(now)).is_none() {
            now += 800;
        }
        *wait = now - from;
        rules.on_change(Time::from_millis(now));
        let standing = |millis| Seen { level: 21, was_empty_in_cycle: false, ends_cycle: true, ..seen(millis) };
        assert_eq!(rules.on_slot(&standing(now + 800)), None, "not before the cycle is over");
        assert_eq!(rules.on_slot(&standing(now + 1_600)), Some((20, LevelCause::Drop)));
        now += 1_600;
        rules.on_change(Time::from_millis(now));
    }
    assert!(waited[0] == 0 && (9_200..10_800).contains(&waited[1]) && (29_200..30_800).contains(&waited[2]));
}

#[test]
fn a_join_stays_when_its_trial_is_over() {
    let mut rules = rules();
    rules.on_burst(&fitting(10_000));
    assert!(rules.is_trying(Time::from_millis(17_999)) && !rules.is_trying(Time::from_secs(18)));
    let standing = Seen { level: 21, was_empty_in_cycle: false, ends_cycle: true, ..seen(18_100) };
    assert_eq!(rules.on_slot(&standing), None);
}

/// A full queue of this many milliseconds, at level 20, while the path delivers this part of its rate.
fn queue(millis: u64, waits: u64, part: f64) -> Seen {
    let delivered = ladder().level_rate(20).scale(part);
    Seen { is_empty: false, is_full: true, queue: Duration::from_millis(waits), delivered, ..seen(millis) }
}

#[test]
fn nobody_is_followed_into_a_queue_that_is_the_receivers_own() {
    let level = |change: Change| change.map(|(level, _)| level);
    assert_eq!(level(rules().on_slot(&queue(9_000, 200, 0.9))), Some(21));
    assert_eq!(level(rules().on_slot(&queue(9_000, 200, 0.7))), None);
    assert_eq!(level(rules().on_slot(&queue(9_000, 20, 0.7))), Some(21), "it has not grown for a cycle");
}

#[test]
fn a_long_queue_that_following_others_has_made_is_left_and_stays_the_receivers_own_until_it_is_gone() {
    let level = |change: Change| change.map(|(level, _)| level);
    let mut rules = rules();
    let follows = Seen { level: 19, ..queue(9_000, 200, 0.9) };
    assert_eq!(level(rules.on_slot(&follows)), Some(20));
    rules.on_change(Time::from_millis(9_000));
    assert_eq!(level(rules.on_slot(&queue(13_900, 1_200, 0.7))), None, "others may still make room");
    assert_eq!(level(rules.on_slot(&queue(14_000, 1_200, 0.7))), Some(17));
    rules.on_change(Time::from_millis(14_000));
    let falls = |rules: &mut Rules, millis, waits| {
        level(rules.on_slot(&Seen { level: 17, delivered: ladder().level_rate(18), ..queue(millis, waits, 1.0) }))
    };
    assert_eq!([20_000, 29_000].map(|millis| falls(&mut rules, millis, 1_300 - millis / 100)), [None, None]);
    assert_eq!(falls(&mut rules, 38_900, 1_010), None);
    assert_eq!(falls(&mut rules, 39_000, 1_010), Some(18), "it has fallen no further for ten seconds");
}

#[test]
fn at_a_loss_event_a_receiver_goes_below_what_the_path_delivers() {
    let event = |part| Seen { loss_event: true, ..queue(9_000, 200, part) };
    assert_eq!(rules().on_slot(&event(0.61)), Some((16, LevelCause::Drop)));
    assert_eq!(rules().on_slot(&event(0.9)), None);
}

#[test]
fn who_has_more_than_one_flow_gets_goes_there_after_two_bursts_and_joins_nothing_until_one_fits() {
    let mut rules = rules();
    let mut folded = |millis, slope, level| {
        let verdict = burst(Burst::Folded, 4.3, slope).map(|verdict| Verdict { after: Some(0.0), ..verdict });
        rules.on_burst(&Seen { verdict, level, ..seen(millis) })
    };
    // 4.3 Mbit/s in a queue that grows as fast again: one flow gets 2150 kbit/s. 2150 · 1.118 = 2404; level 17 is 2395.
    assert_eq!([folded(10_000, 1.0, 20), folded(16_400, 1.0, 20)], [None, Some((17, LevelCause::Drop))]);
    assert_eq!(folded(22_800, 0.3, 20), None, "3308 kbit/s are more than 0.8 of level 20");
    assert_eq!(rules.on_burst(&fitting(24_000)), None, "as many channels it would fit");
    let lost = Seen { latest_loss_event: Some(Time::from_millis(23_900)), ..seen(24_200) };
    assert!(self::rules().on_slot(&lost).is_some(), "in a queue for all a TCP with such losses would have more");
    assert_eq!(rules.on_slot(&lost), None);
    let verdict = burst(Burst::Folded, 4.3, 0.0);
    assert_eq!(rules.on_burst(&Seen { verdict, ..seen(29_200) }), None);
    assert_eq!(rules.on_burst(&fitting(30_000)), Some((21, LevelCause::Add)));
}

#[test]
fn a_loss_event_costs_what_a_tcp_would_not_have_and_half_at_most() {
    let event = |kbps| Seen { loss_event: true, share: Rate::from_kbps(kbps), ..seen(10_000) };
    assert_eq!(rules().on_slot(&event(2_920)), None, "0.8 of 3643 is 2914");
    // 2900 · 1.118 = 3242; level 19 is 3168.
    assert_eq!(rules().on_slot(&event(2_900)), Some((19, LevelCause::Drop)));
    // Half of 3643 is 1821; level 15 is 1811.
    assert_eq!(rules().on_slot(&event(300)), Some((15, LevelCause::Drop)));
    assert_eq!(rules().on_slot(&Seen { is_pending: true, ..event(300) }), None, "it has been answered");
    let arrived = Rate::from_kbps(1_500);
    // 1500 · 0.95 = 1425; level 13 is 1370.
    assert_eq!(rules().on_slot(&Seen { has_lost_much: true, arrived, ..event(9_000) }), Some((13, LevelCause::Drop)));
}

#[test]
fn where_a_queue_stands_a_receiver_goes_where_a_tcp_would_settle_in_steps() {
    let full = |millis, kbps| Seen { is_full: true, is_empty: false, settled: Rate::from_kbps(kbps), ..seen(millis) };
    let mut rules = rules();
    rules.on_change(Time::from_secs(6));
    assert_eq!(rules.on_slot(&full(10_900, 50_000)), None, "a level is held for five seconds");
    // 3643 · 1.3 = 4736; level 21 is 4190 and level 22 is 4818.
    assert_eq!(rules.on_slot(&full(11_000, 50_000)), Some((21, LevelCause::Add)));
    assert_eq!(rules.on_slot(&full(11_000, 5_000)), None, "1.2 · 4190 is 5028");
    assert_eq!(rules.on_slot(&Seen { is_full: false, ..full(11_000, 50_000) }), None, "bursts tell where none stands");
}

/// A burst of 4.3 Mbit/s for level 21 (4190 kbit/s) of which the path carries that much.
fn carries(kbps: f64, millis: u64) -> Seen {
    Seen { verdict: burst(Burst::NextLevel, 4.3, 4_300.0 / kbps - 1.0), ..seen(millis) }
}

#[test]
fn of_a_step_that_does_not_fit_a_receiver_takes_the_part_that_does_and_gives_it_up_with_the_level() {
    let mut rules = rules();
    // 3960 / 1.03 = 3845, which is 2.9 eighths of the way from 3643 to 4190.
    assert_eq!((rules.on_burst(&carries(3_960.0, 10_000)), rules.part()), (None, 2));
    rules.on_change(Time::from_secs(11));
    assert_eq!(rules.part(), 0);
    let mut starting = Rules::new(&Config::default(), &ladder(), SIZE);
    assert_eq!((starting.on_burst(&carries(3_960.0, 10_000)), starting.part()), (None, 0), "a start goes on by itself");
}

#[test]
fn a_part_of_a_step_grows_only_where_the_step_might_be_joined() {
    let part = |seen: Seen| {
        let mut rules = rules();
        rules.on_burst(&seen);
        rules.part()
    };
    let carries = carries(3_960.0, 10_000);
    assert_eq!(part(Seen { is_empty: false, ..carries }), 0, "a queue stands");
    assert_eq!(part(Seen { is_pending: true, ..carries }), 0);
    assert_eq!(part(Seen { most: 20, ..carries }), 0, "it may not have the next level");
    let lost = |millis| Seen { latest_loss_event: Some(Time::from_secs(1)), now: Time::from_millis(millis), ..carries };
    assert_eq!(part(Seen { latest_loss_event: Some(Time::from_secs(8)), ..carries }), 0, "soon after congestion");
    let mut rules = rules();
    let parts = [10_000, 10_800].map(|millis| {
        rules.on_burst(&lost(millis));
        rules.part()
    });
    assert_eq!(parts, [0, 2], "after losses two bursts have to agree");
}

#[test]
fn a_part_of_a_step_that_fills_the_queue_or_costs_a_packet_is_taken_back_and_left_alone() {
    let queue = |millis| Seen { was_empty_in_cycle: false, ends_cycle: true, ..seen(millis) };
    let part_at = |rules: &mut Rules, millis| {
        rules.on_burst(&carries(3_960.0, millis));
        rules.part()
    };
    let mut rules = rules();
    assert_eq!(part_at(&mut rules, 10_000), 2);
    assert_eq!((rules.on_slot(&queue(10_800)), rules.part()), (None, 2), "a cycle has to show it");
    assert_eq!((rules.on_slot(&queue(11_600)), rules.part()), (None, 0));
    assert_eq!([part_at(&mut rules, 21_500), part_at(&mut rules, 21_600)], [0, 2]);
    assert!(rules.take_back_part(Time::from_secs(40)) && rules.part() == 0);
    assert!(!rules.take_back_part(Time::from_secs(41)), "there is nothing to give up any more");
    assert_eq!([part_at(&mut rules, 69_900), part_at(&mut rules, 70_000)], [0, 2], "for longer each time");
    rules.on_slot(&seen(78_000));
    assert!(!rules.take_back_part(Time::from_secs(78)), "it was not too much for eight seconds");
    assert_eq!((rules.on_slot(&queue(78_400)), rules.part()), (None, 0), "others have come");
    assert_eq!(part_at(&mut rules, 79_200), 2, "which is no fault of the part");
    rules.on_slot(&Seen { loss_event: true, ..seen(80_000) });
    assert_eq!(rules.part(), 0);
}

#[test]
fn the_queue_of_a_part_on_trial_is_nobody_else_s() {
    let mut rules = rules();
    rules.on_burst(&carries(3_960.0, 10_000));
    let full = |millis| Seen { is_full: true, is_empty: false, ..seen(millis) };
    assert_eq!((rules.on_slot(&full(10_800)), rules.part()), (None, 2), "a TCP would have more");
    assert_eq!((rules.on_slot(&full(10_900)), rules.part()), (None, 0), "a cycle has shown whose it is");
}

#[test]
fn where_channels_queue_apart_the_part_of_a_step_is_what_one_flow_gets() {
    let mut rules = rules();
    let folded = burst(Burst::Folded, 4.3, 4_300.0 / 3_960.0 - 1.0);
    let apart = folded.map(|verdict| Verdict { after: Some(0.0), ..verdict });
    rules.on_burst(&Seen { verdict: apart, ..seen(10_000) });
    assert_eq!(rules.part(), 2);
    rules.on_burst(&carries(4_190.0, 10_800));
    rules.on_burst(&carries(4_190.0, 11_600));
    assert_eq!(rules.part(), 2, "as many channels more would fit");
}
