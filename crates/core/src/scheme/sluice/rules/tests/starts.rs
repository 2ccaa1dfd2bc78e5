//! Where a receiver begins, how it finds its rate, and when it looks for it again.

use super::*;

#[test]
fn in_the_start_a_receiver_takes_most_of_what_a_burst_is_carried_until_one_is_not() {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    // 14.6 · 0.93 = 13.6; level 29 is 12.8.
    assert_eq!(rules.on_start_up_burst(&seen(500), carried(14.6)), Some((29, LevelCause::SlowStart)));
    assert!(rules.is_starting());
    let queue = Seen { is_empty: false, ..seen(500) };
    assert_eq!(rules.on_start_up_burst(&queue, carried(14.6)), None, "with a queue a burst tells of others");
    let full = Carried { is_full: true, ..carried(20.0) };
    let at = |level, millis| Seen { level, ..seen(millis) };
    // 20 · 0.93 = 18.6; level 31 is 17.0.
    assert_eq!(rules.on_start_up_burst(&at(29, 600), full), Some((31, LevelCause::SlowStart)));
    assert!(rules.is_starting(), "one burst may be late for another reason");
    assert_eq!(rules.on_start_up_burst(&at(31, 650), full), None);
    assert!(rules.is_starting(), "so may be one right after it");
    assert_eq!(rules.on_start_up_burst(&at(31, 660), carried(18.0)), None, "a weak burst says nothing");
    assert_eq!(rules.on_start_up_burst(&at(31, 700), full), None);
    assert!(!rules.is_starting());
    rules.start_again();
    rules.on_start_up_burst(&at(31, 800), full);
    rules.on_start_up_burst(&at(31, 850), carried(24.0));
    rules.on_start_up_burst(&at(32, 900), full);
    assert!(rules.is_starting(), "between them one has passed");
}

#[test]
fn a_start_that_was_over_too_soon_goes_on_when_two_levels_fit_without_a_loss() {
    for (lost, goes_on) in [(None, true), (Some(Time::from_secs(1)), false)] {
        let mut rules = rules();
        let mut joined = 0;
        for slot in 0..8 {
            let seen = Seen { latest_loss_event: lost, ..fitting(10_000 + 800 * slot) };
            if rules.on_burst(&seen).is_some() {
                joined += 1;
                rules.on_change(seen.now);
            }
            assert_eq!(rules.is_starting(), goes_on && joined >= 2);
        }
        assert!(joined >= 3);
    }
}

#[test]
fn when_others_have_gone_and_there_is_room_a_receiver_starts_again() {
    let starts_after = |millis: u64, stood: u64, bursts: u64| {
        let mut rules = rules();
        rules.on_slot(&Seen { loss_event: true, ..seen(10_000) });
        let later = |millis| Seen {
            latest_loss_event: Some(Time::from_secs(10)),
            mean_interval: Some(Duration::from_secs(60)),
            latest_queue: Some(Time::from_millis(millis)),
            latest_short_queue: Some(Time::from_millis(stood)),
            ..fitting(millis)
        };
        (0..bursts).for_each(|burst| _ = rules.on_burst(&later(12_000 + 800 * burst)));
        rules.on_slot(&later(millis));
        rules.is_starting()
    };
    assert!(!starts_after(24_900, 15_000, 2) && starts_after(25_000, 15_000, 2), "ten seconds after any queue");
    assert!(!starts_after(19_900, 9_000, 2) && starts_after(20_000, 9_000, 2), "ten seconds after the loss event");
    assert!(!starts_after(60_000, 9_000, 1), "one burst that fits may be chance");
}

#[test]
fn a_level_that_was_too_much_next_to_others_keeps_nobody_from_starting_again_when_they_have_gone() {
    let starts = |is_contended: bool| {
        let mut rules = rules();
        rules.on_slot(&Seen { loss_event: true, ..seen(1_000) });
        let mut at = 10_000;
        let later = |millis, stood| Seen {
            latest_loss_event: Some(Time::from_secs(1)),
            latest_short_queue: Some(Time::from_millis(stood)),
            is_contended,
            ..fitting(millis)
        };
        // Level 21 is too much twice, so that it is left alone for thirty seconds.
        for _ in 0..2 {
            while rules.on_burst(&later(at, at)).is_none() {
                at += 800;
            }
            rules.on_change(Time::from_millis(at));
            assert!(rules.take_back(Time::from_millis(at), 21).is_some());
        }
        let begun = [9_100, 9_900, 10_000].map(|since| {
            rules.on_burst(&later(at + since, at));
            rules.on_slot(&later(at + since, at));
            rules.is_starting()
        });
        assert_eq!(begun[..2], [false, false], "something stood less than ten seconds ago");
        begun[2]
    };
    assert!(starts(true) && !starts(false));
}

#[test]
fn a_start_ends_the_trial_that_came_before_it() {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    assert!(rules.on_burst(&fitting(10_000)).is_some() && rules.is_trying(Time::from_millis(10_100)));
    let seen = Seen { level: 21, ..seen(10_100) };
    assert!(rules.on_start_up_burst(&seen, carried(16.8)).is_some_and(|(level, _)| level > 28));
    assert!(!rules.is_trying(Time::from_millis(10_200)), "a loss would cost all that the start has brought");
}

#[test]
fn a_level_that_a_start_took_and_that_was_too_much_is_left_alone_for_longer_each_time() {
    let mut rules = rules();
    let mut start = |millis| {
        rules.start_again();
        let level = rules.on_start_up_burst(&seen(millis), carried(14.6)).map(|(level, _)| level);
        let (at, arrived) = (level.unwrap_or(20), Rate::from_mbps(13));
        rules.on_slot(&Seen { loss_event: true, level: at, arrived, ..seen(millis + 2_000) });
        level
    };
    assert_eq!([start(500), start(12_400)], [Some(29), Some(28)], "ten seconds after its loss");
    assert_eq!([start(24_500), start(56_400), start(87_000)], [Some(29), Some(28), Some(27)], "thirty the second time");
    let mut rules = self::rules();
    rules.start_again();
    rules.on_start_up_burst(&seen(500), carried(14.6));
    rules.on_slot(&Seen { loss_event: true, level: 29, ..seen(8_500) });
    rules.start_again();
    assert_eq!(
        rules.on_start_up_burst(&seen(9_000), carried(14.6)).map(|(level, _)| level),
        Some(29),
        "for eight seconds it was not too much"
    );
}

#[test]
fn a_start_that_took_more_than_came_through_is_not_repeated_a_little_lower() {
    let mut rules = rules();
    let started = [500, 8_000].map(|millis| {
        rules.start_again();
        let (level, _) = rules.on_start_up_burst(&seen(millis), carried(40.0)).expect("more than it has");
        // Level 27 is 9.7 Mbit/s, level 28 is 11.1.
        rules.on_slot(&Seen { loss_event: true, level, arrived: Rate::from_mbps(10), ..seen(millis + 1_000) });
        level
    });
    assert_eq!(started, [36, 27], "a token bucket lets a burst through, and its rate is 10 Mbit/s");
}

#[test]
fn a_start_in_which_nothing_is_joined_for_two_seconds_is_over() {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    let mut slots = |count: u64| {
        (0..count).for_each(|slot| _ = rules.on_slot(&seen(1_000 + 100 * slot)));
        let is_starting = rules.is_starting();
        rules.on_change(Time::from_secs(3));
        is_starting
    };
    assert_eq!([slots(19), slots(19), slots(20)], [true, true, false], "a join shows that there is more to find");
}

#[test]
fn who_loses_what_a_start_took_goes_below_what_arrives_and_who_had_it_for_long_does_not() {
    let after = |millis: u64| {
        let mut rules = rules();
        rules.start_again();
        rules.on_start_up_burst(&seen(500), carried(14.6));
        // 10 · 0.95 = 9.5; level 26 is 8.4, level 27 is 9.7 and level 29, of which the loss event is, 12.8 Mbit/s.
        let arrived = Rate::from_mbps(10);
        rules.on_slot(&Seen { loss_event: true, level: 29, arrived, ..seen(500 + millis) })
    };
    assert_eq!([after(2_000), after(8_000)], [Some((26, LevelCause::Drop)), None], "a TCP would have 100 Mbit/s");
}

#[test]
fn who_has_started_again_stops_where_a_queue_stands() {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    let queue = Seen { is_empty: false, is_full: true, latest_loss_event: Some(Time::from_secs(1)), ..seen(60_000) };
    assert_eq!(rules.on_slot(&queue), None);
    assert!(!rules.is_starting());
}

#[test]
fn in_the_start_next_to_others_the_rate_goes_up_by_half_in_a_second() {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    let queue = |millis| Seen { is_empty: false, is_full: true, ..seen(millis) };
    assert_eq!(rules.on_slot(&queue(900)), None);
    // 3643 · 1.5 = 5465; level 22 is 4818 and level 23 is 5541.
    assert_eq!(rules.on_slot(&queue(1_000)), Some((22, LevelCause::SlowStart)));
    assert_eq!(rules.on_slot(&queue(1_900)), None);
}

#[test]
fn a_start_that_makes_the_queue_itself_ends_below_what_the_path_delivers() {
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    assert_eq!(rules.on_slot(&queue(1_100, 200, 0.7)), None, "what it joined may still wait");
    assert_eq!(rules.on_slot(&queue(1_200, 200, 0.7)), Some((17, LevelCause::SlowStartEnd)));
    assert!(!rules.is_starting());
    let mut rules = Rules::new(&Config::default(), &ladder(), SIZE);
    assert_eq!(rules.on_slot(&queue(1_200, 200, 0.9)).map(|(level, _)| level), Some(22), "others make room");
}

#[test]
fn who_starts_again_below_where_receivers_begin_goes_there_on_an_empty_path_and_past_no_level_that_it_may_not_have() {
    let begins = |of: Seen| {
        let mut rules = rules();
        rules.start_again();
        rules.on_slot(&of)
    };
    let slow = Seen { level: 3, packet_time: Duration::from_millis(35), ..seen(20_000) };
    assert_eq!(begins(slow), Some((12, LevelCause::SlowStart)));
    assert_eq!(begins(Seen { most: 7, ..slow }), Some((7, LevelCause::SlowStart)));
    assert_eq!(begins(Seen { is_empty: false, ..slow }), None);
    assert_eq!(begins(Seen { level: 12, ..slow }), None);
    assert_eq!(rules().on_slot(&slow), None, "its start is over");
}

#[test]
fn what_a_start_took_and_makes_a_queue_grow_is_taken_back_before_anything_is_lost() {
    let mut rules = rules();
    rules.start_again();
    let level = rules.on_start_up_burst(&seen(20_000), carried(14.6)).map(|(level, _)| level);
    assert_eq!(level, Some(29));
    let grows = |millis| Seen {
        level: 29,
        delivered: Rate::from_mbps(9),
        queue: Duration::from_millis(200),
        is_empty: false,
        ..seen(millis)
    };
    // 9 · 0.95 = 8.55; level 26 is 8.4 Mbit/s.
    assert_eq!(rules.on_slot(&grows(21_500)), Some((26, LevelCause::SlowStartEnd)));
    rules.on_change(Time::from_millis(21_500));
    rules.start_again();
    let again = rules.on_start_up_burst(&Seen { level: 26, ..seen(22_000) }, carried(14.6));
    assert_eq!(again, None, "level 27 is left alone");
    let mut long_ago = self::rules();
    long_ago.start_again();
    long_ago.on_start_up_burst(&seen(20_000), carried(14.6));
    assert_eq!(long_ago.on_slot(&grows(28_500)), None, "for eight seconds it was not too much");
}

/// Rules of a receiver that has lost something at 1 s and has seen no queue since, and what it knows so much later.
fn undisturbed() -> (Rules, impl Fn(u64) -> Seen) {
    let mut rules = rules();
    rules.on_slot(&Seen { loss_event: true, ..seen(1_000) });
    (rules, |millis| Seen { latest_loss_event: Some(Time::from_secs(1)), ..fitting(millis) })
}

#[test]
fn two_levels_that_were_joined_one_by_one_let_a_receiver_start_again_that_has_lost_nothing_since_its_last_start() {
    let (mut rules, later) = undisturbed();
    rules.on_burst(&later(10_000));
    rules.on_burst(&later(11_000));
    rules.on_slot(&later(11_100));
    assert!(rules.is_starting(), "ten seconds after the loss, with room for another level");
    rules.end_start();
    rules.on_change(Time::from_secs(12));
    let joined = |rules: &mut Rules, millis: u64| {
        rules.on_burst(&later(millis));
        assert!(rules.on_burst(&later(millis + 800)).is_some());
        rules.on_change(Time::from_millis(millis + 800));
        rules.on_slot(&later(millis + 900));
        rules.is_starting()
    };
    assert!(!joined(&mut rules, 20_000), "one may be what the start has left");
    assert!(joined(&mut rules, 23_200));
    (1..=20).for_each(|slot| _ = rules.on_slot(&later(24_100 + 100 * slot)));
    assert!(!rules.is_starting(), "nothing more was found");
}

#[test]
fn where_channels_queue_apart_a_start_ends_with_what_one_flow_was_seen_to_get_and_goes_on_when_it_gets_more() {
    let (mut rules, later) = undisturbed();
    let folded = |rules: &mut Rules, millis, mbps, slope| {
        let verdict = burst(Burst::Folded, mbps, slope).map(|verdict| Verdict { after: Some(0.0), ..verdict });
        rules.on_burst(&Seen { verdict, ..later(millis) });
    };
    folded(&mut rules, 9_000, 4.3, 0.2);
    let try_start = |rules: &mut Rules, millis: u64, level| {
        let at = |millis| Seen { level, ..later(millis) };
        rules.on_burst(&at(millis));
        rules.on_burst(&at(millis + 800));
        rules.on_slot(&at(millis + 900));
        let taken = rules.is_starting().then(|| rules.on_start_up_burst(&at(millis + 1_000), carried(40.0)));
        assert!(!rules.is_starting());
        rules.on_change(Time::from_millis(millis + 1_000));
        taken.flatten().map(|(level, _)| level)
    };
    assert_eq!(try_start(&mut rules, 12_000, 20), None, "more than that was too much for one flow");
    folded(&mut rules, 13_000, 4.3, 0.0);
    folded(&mut rules, 13_500, 4.3, 0.0);
    // 4.3 · 1.3 = 5.59; level 23 is 5.54 Mbit/s.
    assert_eq!(try_start(&mut rules, 14_000, 20), Some(23));
    assert_eq!(try_start(&mut rules, 16_000, 23), None, "nothing has shown more");
    folded(&mut rules, 18_000, 6.6, 0.0);
    // 6.6 · 1.3 = 8.58; level 26 is 8.43 Mbit/s.
    assert_eq!(try_start(&mut rules, 19_000, 23), Some(26));
}
