use super::*;

const INTERVAL: Duration = Duration::from_secs(1);

fn ladder() -> Ladder {
    Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.15).expect("valid")
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Asserts that this part of the ladder's top is sent, to within a step.
fn assert_sent(ceiling: &Ceiling, part: f64) {
    let [sent, top] = [ceiling.rate(), ladder().level_rate(ladder().levels())].map(|rate| rate.bps() as f64);
    assert!((part / 1.16..=part * 1.15).contains(&(sent / top)), "{} and not {part}", sent / top);
}

/// A ceiling that tests since 5 s whether a path that carries this part is empty when less is sent.
fn tested(carried: f64) -> Ceiling {
    let mut ceiling = Ceiling::new(&ladder());
    assert_eq!(report(&mut ceiling, 4_000, carried), None, "one report says nothing");
    assert_eq!(cause(report(&mut ceiling, 5_000, carried)), Some(CeilingCause::Test));
    ceiling
}

/// A ceiling that has been cut to what carries this part, at 7 s.
fn cut(carried: f64) -> Ceiling {
    let mut ceiling = tested(carried);
    assert_eq!(cause(judge(&mut ceiling, 7_000, true)), Some(CeilingCause::Flooded));
    ceiling
}

/// The first receiver reports that its path carries this part.
fn report(ceiling: &mut Ceiling, millis: u64, carried: f64) -> Change {
    ceiling.on_report(at(millis), 1, carried, INTERVAL)
}

/// And judges the present ceiling.
fn judge(ceiling: &mut Ceiling, millis: u64, is_empty: bool) -> Change {
    judge_as(ceiling, millis, 1, is_empty)
}

fn judge_as(ceiling: &mut Ceiling, millis: u64, receiver: u32, is_empty: bool) -> Change {
    let withheld = ceiling.withheld() as u16;
    ceiling.on_verdict(at(millis), Verdict { receiver, withheld, is_empty }, usize::MAX)
}

fn cause(change: Change) -> Option<CeilingCause> {
    change.map(|(_, cause)| cause)
}

/// Time passes while all that the ceiling lets through is sent.
fn pass(ceiling: &mut Ceiling, now: Time) -> Option<CeilingCause> {
    cause(ceiling.on_time(now, ceiling.levels()))
}

#[test]
fn a_test_sends_half_of_what_arrived_at_the_receiver_that_has_least() {
    let mut ceiling = tested(0.5);
    assert_sent(&ceiling, 0.5 * 0.5 / 2.0);
    assert_eq!(cause(report(&mut ceiling, 5_900, 0.2)), Some(CeilingCause::Test));
    assert_sent(&ceiling, 0.2 * 0.2 / 2.0);
    assert_eq!(report(&mut ceiling, 5_950, 0.5), None);
    assert_eq!(report(&mut ceiling, 6_500, 0.1), None, "it may be of before");
    assert_eq!(cause(judge(&mut ceiling, 7_000, true)), Some(CeilingCause::Flooded));
    assert_sent(&ceiling, 0.9 * 0.2);
    assert_eq!(ceiling.withheld(), ladder().levels() - ceiling.levels());
}

#[test]
fn where_the_path_is_full_in_the_test_too_all_is_sent_again_and_its_receiver_not_heard_for_five_minutes() {
    let mut ceiling = tested(0.1);
    assert_eq!(cause(judge(&mut ceiling, 8_000, false)), Some(CeilingCause::Futile));
    assert_eq!(ceiling.withheld(), 0);
    for millis in [307_000, 308_000] {
        assert_eq!(report(&mut ceiling, millis, 0.1), None, "at {millis} ms");
    }
    assert_eq!(cause(report(&mut ceiling, 309_000, 0.1)), Some(CeilingCause::Test));
}

#[test]
fn a_flood_is_found_next_to_a_receiver_whose_path_others_fill_whoever_judges_first() {
    let both = || {
        let mut ceiling = tested(0.2);
        ceiling.on_report(at(5_500), 2, 0.1, INTERVAL);
        assert_sent(&ceiling, 0.1 * 0.1 / 2.0);
        ceiling
    };
    let mut ceiling = both();
    assert_eq!(judge_as(&mut ceiling, 7_000, 2, false), None, "the other one has not judged");
    assert_eq!(cause(judge_as(&mut ceiling, 8_000, 1, true)), Some(CeilingCause::Flooded));
    assert_sent(&ceiling, 0.9 * 0.2);
    for millis in [10_000, 11_000, 12_000] {
        assert_eq!(ceiling.on_report(at(millis), 2, 0.5, INTERVAL), None);
    }
    assert_eq!(cause(report(&mut ceiling, 13_000, 0.5)), Some(CeilingCause::Flooded), "the first one is heard");
    let mut ceiling = both();
    assert_eq!(cause(judge_as(&mut ceiling, 7_000, 1, true)), Some(CeilingCause::Flooded));
    assert_sent(&ceiling, 0.9 * 0.2);
    for millis in [10_000, 11_000] {
        ceiling.on_report(at(millis), 2, 0.5, INTERVAL);
    }
    assert_sent(&ceiling, 0.9 * 0.2 * 0.5 * 0.5 / 2.0);
    assert_eq!(cause(judge_as(&mut ceiling, 13_000, 2, false)), Some(CeilingCause::Futile));
    assert_sent(&ceiling, 0.9 * 0.2);
}

#[test]
fn of_two_floods_the_one_that_carries_less_decides() {
    let mut ceiling = tested(0.2);
    let withheld = {
        ceiling.on_report(at(5_500), 2, 0.1, INTERVAL);
        ceiling.withheld() as u16
    };
    judge_as(&mut ceiling, 7_000, 1, true);
    let verdict = Verdict { receiver: 2, withheld, is_empty: true };
    assert_eq!(ceiling.on_verdict(at(7_100), Verdict { withheld: withheld - 1, ..verdict }, usize::MAX), None);
    assert_eq!(cause(ceiling.on_verdict(at(7_200), verdict, usize::MAX)), Some(CeilingCause::Flooded));
    assert_sent(&ceiling, 0.9 * 0.1);
}

#[test]
fn a_verdict_of_a_receiver_that_has_not_reported_changes_nothing() {
    let mut ceiling = tested(0.2);
    assert_eq!([true, false].map(|is_empty| judge_as(&mut ceiling, 7_000, 2, is_empty)), [None, None]);
    assert_eq!(cause(judge_as(&mut ceiling, 7_100, 1, true)), Some(CeilingCause::Flooded));
}

#[test]
fn where_nobody_judges_for_six_seconds_all_is_sent_again() {
    let mut ceiling = tested(0.1);
    assert_eq!(pass(&mut ceiling, at(10_900)), None);
    assert_eq!(pass(&mut ceiling, at(11_000)), Some(CeilingCause::Futile));
    assert_eq!(ceiling.withheld(), 0);
    assert_eq!(judge(&mut ceiling, 11_100, true), None, "it is too late");
    let mut others = |millis, receiver| ceiling.on_report(at(millis), receiver, 0.1, INTERVAL).is_some();
    assert_eq!([others(309_900, 2), others(310_900, 2), others(311_900, 2)], [false; 3], "nobody is heard");
    assert!(others(312_900, 3));
}

#[test]
fn a_cut_that_did_not_suffice_is_followed_by_another_of_half_at_most_and_after_eight_seconds_by_a_test() {
    let mut ceiling = cut(0.2);
    assert_eq!(report(&mut ceiling, 8_900, 0.7), None, "it may be of before");
    assert_eq!(cause(report(&mut ceiling, 9_000, 0.7)), Some(CeilingCause::Flooded));
    assert_sent(&ceiling, 0.9 * 0.2 / 1.15 * 0.9 * 0.7);
    let mut ceiling = cut(0.2);
    assert_eq!(cause(report(&mut ceiling, 9_000, 0.1)), Some(CeilingCause::Flooded));
    assert_sent(&ceiling, 0.9 * 0.2 / 1.15 * 0.5);
    assert_eq!(report(&mut ceiling, 15_000, 0.7), None);
    assert_eq!(cause(report(&mut ceiling, 16_000, 0.7)), Some(CeilingCause::Test));
}

#[test]
fn a_test_in_vain_under_a_ceiling_leaves_that_as_it_was_for_five_minutes() {
    let mut ceiling = cut(0.2);
    let carried = ceiling.levels();
    report(&mut ceiling, 15_000, 0.7);
    report(&mut ceiling, 16_000, 0.7);
    assert_eq!(cause(judge(&mut ceiling, 18_000, false)), Some(CeilingCause::Futile));
    assert_eq!(ceiling.levels(), carried);
    assert_eq!(pass(&mut ceiling, at(317_900)), None);
    assert_eq!(pass(&mut ceiling, at(318_000)), Some(CeilingCause::Trial));
}

#[test]
fn more_is_tried_after_seven_seconds_and_if_it_is_too_much_after_twice_that() {
    let mut ceiling = cut(0.1);
    let carried = ceiling.levels();
    assert_eq!(pass(&mut ceiling, at(13_900)), None);
    assert_eq!(pass(&mut ceiling, at(14_000)), Some(CeilingCause::Trial));
    assert_sent(&ceiling, 2.0 * 0.9 * 0.1 / 1.15);
    assert_eq!(cause(report(&mut ceiling, 16_000, 0.6)), Some(CeilingCause::Flooded));
    assert_eq!(ceiling.levels(), carried);
    assert_eq!(pass(&mut ceiling, at(29_900)), None);
    assert_eq!(pass(&mut ceiling, at(30_000)), Some(CeilingCause::Trial));
}

#[test]
fn a_trial_lasts_five_seconds_from_when_receivers_take_what_it_lets_through() {
    let mut ceiling = cut(0.1);
    assert_eq!(pass(&mut ceiling, at(14_000)), Some(CeilingCause::Trial));
    for tenth in 141..200 {
        assert_eq!(ceiling.on_time(at(tenth * 100), ceiling.levels() - 1), None);
    }
    assert_eq!(pass(&mut ceiling, at(24_800)), None);
    assert_eq!(pass(&mut ceiling, at(24_900)), Some(CeilingCause::Trial));
}

#[test]
fn where_nobody_reports_any_more_all_is_sent_again() {
    let mut ceiling = cut(0.1);
    (0..1_000).for_each(|tenth| _ = pass(&mut ceiling, at(7_000 + tenth * 100)));
    assert_eq!(ceiling.withheld(), 0);
}

#[test]
fn one_report_changes_nothing_nor_do_several_at_once_or_long_after_each_other_or_a_verdict_without_a_test() {
    let mut ceiling = Ceiling::new(&ladder());
    for millis in [5_000, 5_000, 5_490, 7_500, 9_501] {
        assert_eq!(report(&mut ceiling, millis, 0.1), None, "at {millis} ms");
        assert_eq!(judge(&mut ceiling, millis, true), None, "at {millis} ms");
    }
    assert!(report(&mut ceiling, 11_501, 0.3).is_some());
    assert_sent(&ceiling, 0.3 * 0.3 / 2.0);
}

/// The first receiver, which wants this level, gets a flow's share in each channel; all levels are sent that the ceiling allows.
fn share(ceiling: &mut Ceiling, millis: u64, wanted: usize) -> Change {
    let sent = ceiling.levels();
    ceiling.on_share(at(millis), 1, wanted, sent, INTERVAL)
}

/// A ceiling that tests since 5 s whether flows that it sends are what the share is of.
fn tested_share(wanted: usize) -> Ceiling {
    let mut ceiling = Ceiling::new(&ladder());
    assert_eq!(share(&mut ceiling, 4_000, wanted), None, "one report says nothing");
    assert_eq!(cause(share(&mut ceiling, 5_000, wanted)), Some(CeilingCause::Test));
    ceiling
}

#[test]
fn a_share_is_tested_with_twice_of_what_the_receiver_has_if_four_times_as_much_is_sent() {
    let ceiling = tested_share(20);
    let [had, sent] = [20, ceiling.levels()].map(|level| ladder().level_rate(level).bps() as f64);
    assert!((1.7..=2.0).contains(&(sent / had)), "{}", sent / had);
    assert_eq!(ceiling.tests_share_of(), Some((20, ceiling.levels())));
    let mut ceiling = Ceiling::new(&ladder());
    let below = ladder().levels() - 9;
    assert_eq!([4_000, 5_000].map(|millis| share(&mut ceiling, millis, below)), [None; 2], "the top is 3.5 times that");
}

#[test]
fn where_the_share_grows_in_the_test_what_was_tested_stays_and_twice_that_is_tried() {
    let mut ceiling = tested_share(20);
    let tested = ceiling.levels();
    assert_eq!(cause(judge(&mut ceiling, 8_000, true)), Some(CeilingCause::Flooded));
    assert_eq!((ceiling.levels(), ceiling.tests_share_of()), (tested, None));
    assert_eq!(cause(ceiling.on_time(at(15_000), usize::MAX)), Some(CeilingCause::Trial));
    assert!(share(&mut ceiling, 16_000, tested).is_none(), "it has what it had");
    assert_eq!(cause(share(&mut ceiling, 17_000, tested - 4)), Some(CeilingCause::Flooded), "it has fallen");
    assert_eq!(ceiling.levels(), tested);
}

#[test]
fn where_it_does_not_no_share_of_anybody_is_tested_for_five_minutes_and_then_for_ten() {
    let mut ceiling = tested_share(20);
    assert_eq!(cause(judge(&mut ceiling, 10_000, false)), Some(CeilingCause::Futile));
    assert_eq!(ceiling.withheld(), 0);
    let sent = ceiling.levels();
    let mut test = |from: u64| {
        let reports = [from, from + 1_000].map(|millis| ceiling.on_share(at(millis), 2, 20, sent, INTERVAL));
        let is_tested = reports[1].is_some();
        if is_tested {
            assert_eq!(cause(judge_as(&mut ceiling, from + 5_000, 2, false)), Some(CeilingCause::Futile));
        }
        is_tested
    };
    assert_eq!([test(200_000), test(310_000), test(800_000), test(920_000)], [false, true, false, true]);
}

#[test]
fn reports_that_cannot_be_change_nothing() {
    let mut ceiling = Ceiling::new(&ladder());
    for part in [f64::NAN, -0.1, 7.0] {
        for millis in [5_000, 6_000] {
            assert_eq!(report(&mut ceiling, millis, part), None);
        }
    }
    assert_eq!(tested(0.0).levels(), 1, "nothing is carried");
}
