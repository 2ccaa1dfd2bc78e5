//! RAP's source and sink on a path of a delay and a list of losses: what the paper's §III says must be seen from outside.

mod rap_path;

use std::time::Duration;

use rap_path::{Path, pace_of};
use weir_core::observation::{PaceCause, PayloadFate};
use weir_units::{Rate, Time};

fn secs(s: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(s)
}

#[test]
fn without_loss_the_rate_grows_by_one_packet_a_round_trip_in_every_round_trip() {
    let mut path = Path::new(&[("start_up", "additive")]);
    path.offer(u64::MAX);
    path.run_until(secs(3.05));
    // The first packet's answer comes after 100 ms; from then on 1, 2, 3 … packets go in each 100 ms.
    let steps = path.paces(PaceCause::Step);
    assert_eq!(steps.len(), 29);
    let wanted = |n: usize| Rate::from_packets_per_sec(10.0 * (n + 2) as f64, path.packet_size());
    for (n, (_, pace)) in steps.iter().enumerate() {
        assert!(pace.rate.bps().abs_diff(wanted(n).bps()) <= wanted(n).bps() / 1000, "step {n}: {pace:?}");
    }
}

#[test]
fn the_start_up_doubles_until_the_first_loss_and_never_again() {
    let mut path = Path::new(&[]);
    path.lose(|sent| sent.number == 100);
    path.offer(u64::MAX);
    path.run_until(secs(3.0));
    assert_eq!(path.lost(), 1, "the loss did not happen");
    let loss = path.paces(PaceCause::Loss)[0].0;
    let doublings = path.paces(PaceCause::StartUp);
    assert!(doublings.len() >= 5 && doublings.iter().all(|(at, _)| *at < loss));
    assert!(path.paces(PaceCause::Step).iter().all(|(at, _)| *at > loss));
}

#[test]
fn the_first_round_trip_of_which_the_time_is_known_has_as_many_packets_as_it_is_to_begin_with() {
    for (packets, wanted) in [("1", [1, 2, 4]), ("10", [10, 20, 40])] {
        let mut path = Path::new(&[("start_packets", packets)]);
        path.offer(u64::MAX);
        path.run_until(secs(0.55));
        let start = path.paces(PaceCause::Start);
        let doublings = path.paces(PaceCause::StartUp);
        let rates: Vec<Rate> = start.iter().chain(&doublings).take(3).map(|(_, pace)| pace.rate).collect();
        let of = |packets: u32| Rate::from_packets_per_sec(10.0 * f64::from(packets), path.packet_size());
        for (rate, packets) in rates.iter().zip(wanted) {
            assert!(rate.bps().abs_diff(of(packets).bps()) <= rate.bps() / 1000, "{rates:?}");
        }
        assert_eq!(rates.len(), 3);
    }
}

#[test]
fn a_loss_halves_the_rate_once_however_many_of_the_cluster_are_lost() {
    let mut path = Path::new(&[("start_up", "additive")]);
    path.lose(|sent| (200..208).contains(&sent.number) && sent.number % 2 == 0);
    path.offer(u64::MAX);
    path.run_until(secs(4.0));
    assert_eq!(path.lost(), 4, "the losses did not happen");
    let losses = path.paces(PaceCause::Loss);
    assert_eq!(losses.len(), 1, "{losses:?}");
    let before = pace_of(&path, |at| at < losses[0].0);
    assert!(losses[0].1.rate.bps().abs_diff(before.rate.bps() / 2) <= 1);
    assert!(path.paces(PaceCause::Timeout).is_empty());
}

#[test]
fn the_next_congestion_after_the_cluster_halves_the_rate_again() {
    let mut path = Path::new(&[("start_up", "additive")]);
    path.lose(|sent| sent.number == 200 || sent.number == 260);
    path.offer(u64::MAX);
    path.run_until(secs(6.0));
    assert_eq!((path.lost(), path.paces(PaceCause::Loss).len()), (2, 2));
}

#[test]
fn single_lost_answers_cost_nothing() {
    let mut path = Path::new(&[("start_up", "additive")]);
    path.lose_answers(|number| number % 3 == 0);
    path.offer(u64::MAX);
    path.run_until(secs(5.0));
    assert!(path.lost_answers() > 100, "the losses did not happen");
    assert!(path.paces(PaceCause::Loss).is_empty() && path.paces(PaceCause::Timeout).is_empty());
}

#[test]
fn reordering_by_less_than_three_packets_is_no_loss() {
    let mut path = Path::new(&[("start_up", "additive")]);
    // At the rates reached, two packets overtake one that takes 1.5 gaps longer.
    path.delay(|sent, gap| if sent.number % 10 == 0 { gap.mul_f64(1.5) } else { Duration::ZERO });
    path.offer(u64::MAX);
    path.run_until(secs(5.0));
    assert!(path.overtaken() > 20, "nothing was reordered");
    assert!(path.paces(PaceCause::Loss).is_empty());
    assert_eq!(path.delivered(), path.arrived(), "late packets are delivered too");
}

#[test]
fn a_silent_path_is_probed_at_the_floor_and_used_again_when_it_answers() {
    let mut path = Path::new(&[("min_rate", "800bit/s")]);
    path.lose(|sent| (3.0..30.0).contains(&sent.at.as_secs_f64()));
    path.offer(u64::MAX);
    path.run_until(secs(40.0));
    assert!(path.lost() > 10, "the path was never silent");
    let silence = path.paces(PaceCause::Silence);
    assert_eq!(silence.len(), 1, "{silence:?}");
    assert_eq!(silence[0].1.rate, Rate::from_bps(800));
    let probes = path.sent_between(silence[0].0, secs(30.0));
    assert!((20..=30).contains(&probes), "{probes} probes in 27 s at one a second");
    let resumed = path.paces(PaceCause::Resumed);
    assert_eq!(resumed.len(), 1);
    assert!(resumed[0].0 < secs(31.5), "{resumed:?}");
    let before = pace_of(&path, |at| at < secs(3.0)).rate;
    assert!(pace_of(&path, |at| at < secs(40.0)).rate >= before.scale(0.5), "the rate did not come back");
}

#[test]
fn a_time_out_is_looked_for_before_a_packet_is_sent_and_backs_off() {
    let mut path = Path::new(&[("start_up", "additive")]);
    path.lose(|sent| (2.0..2.5).contains(&sent.at.as_secs_f64()));
    path.offer(u64::MAX);
    path.run_until(secs(6.0));
    let timeouts = path.paces(PaceCause::Timeout);
    assert!(!timeouts.is_empty(), "nothing was overdue");
    assert!(path.paces(PaceCause::Silence).is_empty());
    assert!(timeouts.iter().all(|(at, _)| path.sent_between(Time::ZERO, *at) > 10));
}

#[test]
fn a_mark_counts_as_a_loss_where_marks_are_understood() {
    for (setting, wanted) in [("yes", 1), ("no", 0)] {
        let mut path = Path::new(&[("start_up", "additive"), ("ecn", setting)]);
        path.mark(|sent| (200..205).contains(&sent.number));
        path.offer(u64::MAX);
        path.run_until(secs(4.0));
        assert_eq!(path.marked(), 5 * wanted, "only packets that know ECN can be marked");
        assert_eq!(path.paces(PaceCause::Mark).len(), wanted);
        assert_eq!(path.lost(), 0);
    }
}

#[test]
fn the_rate_does_not_grow_when_the_application_has_less_to_send() {
    let mut path = Path::new(&[]);
    path.offer_every(Duration::from_millis(20));
    path.run_until(secs(20.0));
    assert!(!path.paces(PaceCause::ApplicationLimited).is_empty());
    let rate = pace_of(&path, |_| true).rate.packets_per_sec(path.packet_size());
    assert!((50.0..=200.0).contains(&rate), "{rate} packets/s allowed for 50 used");
    let sent = path.sent_between(secs(10.0), secs(20.0));
    assert!((499..=501).contains(&sent), "{sent} packets sent of 500 offered");
}

/// Video: bursts of many round trips that use all that is allowed, and pauses between them.
#[test]
fn bursts_of_an_application_save_up_no_more_than_twice_what_it_uses() {
    let allowed = |validate| {
        let mut path = Path::new(&[("validate", validate)]);
        for burst in 0..120 {
            path.offer(60);
            path.run_until(secs(0.5 * f64::from(burst + 1)));
        }
        let sent = path.sent_between(secs(20.0), secs(60.0));
        assert!((4_700..=4_800).contains(&sent), "{sent} packets sent of 4800 offered");
        pace_of(&path, |_| true).rate.packets_per_sec(path.packet_size())
    };
    let (bounded, free) = (allowed("yes"), allowed("no"));
    assert!((130.0..=250.0).contains(&bounded), "{bounded} packets/s allowed for 120 used");
    assert!(free > 1.5 * bounded, "{free} packets/s without the bound");
}

#[test]
fn a_back_off_of_a_stream_that_has_just_begun_takes_half_of_what_it_used_so_far() {
    let mut path = Path::new(&[("start_packets", "10")]);
    path.lose(|sent| sent.number == 90);
    // Pictures of 20 packets, ten a second.
    for picture in 0..8 {
        path.offer(20);
        path.run_until(secs(0.1 * f64::from(picture + 1)));
    }
    assert_eq!(path.lost(), 1, "the loss did not happen");
    let (at, pace) = path.paces(PaceCause::Loss)[0];
    let allowed = pace.rate.packets_per_sec(path.packet_size());
    assert!(at < secs(0.8) && (150.0..=250.0).contains(&allowed), "{allowed} packets/s at {at:?}: 200 go");
}

#[test]
fn congestion_halves_what_was_used_and_not_what_was_allowed() {
    let mut path = Path::new(&[]);
    path.lose(|sent| (20.0..20.2).contains(&sent.at.as_secs_f64()));
    path.offer_every(Duration::from_millis(20));
    path.run_until(secs(22.0));
    assert!(path.lost() > 3, "the losses did not happen");
    let backoffs = [path.paces(PaceCause::Loss), path.paces(PaceCause::Timeout)].concat();
    let after = backoffs.iter().map(|(_, pace)| pace.rate.packets_per_sec(path.packet_size())).next();
    assert!(after.is_some_and(|after| (24.0..=55.0).contains(&after)), "{after:?} packets/s after 50 used");
}

#[test]
fn after_idling_the_rate_begins_low_and_doubles_back_to_what_it_was() {
    let mut path = Path::new(&[("start_up", "additive")]);
    path.offer(500);
    path.run_until(secs(60.0));
    let before = pace_of(&path, |_| true).rate;
    path.offer(u64::MAX);
    path.run_until(secs(60.25));
    let begun = pace_of(&path, |_| true).rate;
    assert!(begun < before.scale(0.5), "{begun} after {before}");
    path.run_until(secs(62.0));
    assert!(pace_of(&path, |_| true).rate >= before);
    assert!(!path.paces(PaceCause::StartUp).is_empty());
}

#[test]
fn floor_and_ceiling_hold() {
    let mut path = Path::new(&[("max_rate", "160k")]);
    path.offer(u64::MAX);
    path.run_until(secs(10.0));
    let sent = path.sent_between(secs(8.0), secs(10.0));
    assert!((398..=402).contains(&sent), "{sent} packets in 2 s at 200 a second");
}

#[test]
fn with_fine_grain_a_rising_round_trip_slows_the_source_before_any_loss() {
    let rate_while_rising = |fine: &str| {
        let mut path = Path::new(&[("start_up", "additive"), ("fine_grain", fine), ("max_rate", "80k")]);
        path.delay(|sent, _| if sent.at > secs(10.0) { Duration::from_millis(100) } else { Duration::ZERO });
        path.offer(u64::MAX);
        path.run_until(secs(12.0));
        path.sent_between(secs(10.3), secs(10.8))
    };
    let (with, without) = (rate_while_rising("yes"), rate_while_rising("no"));
    assert!(with * 10 < without * 8, "{with} packets with fine grain, {without} without");
}

#[test]
fn a_stream_is_complete_once_when_its_last_packet_is_acknowledged() {
    let mut path = Path::new(&[]);
    path.offer(20);
    path.run_until(secs(30.0));
    assert!(path.completed().is_empty(), "more may come");
    path.end();
    path.run_until(secs(40.0));
    assert_eq!((path.delivered(), path.completed()), (20, &[secs(30.0)][..]));
}

#[test]
fn a_stream_whose_last_packets_are_lost_is_complete_when_their_acknowledgements_are_overdue() {
    let mut path = Path::new(&[]);
    path.lose(|sent| sent.number >= 15);
    path.offer(20);
    path.end();
    path.run_until(secs(30.0));
    assert_eq!((path.delivered(), path.completed().len()), (15, 1));
    assert!(path.completed()[0] < secs(25.0), "{:?}", path.completed());
}

#[test]
fn a_stream_without_a_packet_is_complete_at_its_end() {
    let mut path = Path::new(&[]);
    path.end();
    assert_eq!(path.completed().len(), 1);
}

#[test]
fn settings_that_cannot_be_are_refused_with_what_can() {
    for (key, value, wanted) in [
        ("beta", "1.5", "0.1 to 0.95"),
        ("start_up", "fast", "doubling or additive"),
        ("max_rate", "-3", "such as 500k"),
        ("quirks", "ns3", "none or ns2"),
        ("n_add", "3", "no setting"),
        ("min_rate", "10G", "above max_rate"),
    ] {
        let settings: &[(&str, &str)] =
            if key == "min_rate" { &[("max_rate", "1M"), (key, value)] } else { &[(key, value)] };
        let error = rap_path::source(settings).expect_err("the setting cannot be").to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn with_ns_2_s_quirks_the_first_packets_go_when_ns_2_sends_them() {
    let mut path = Path::new(&[("quirks", "ns2")]);
    path.offer(u64::MAX);
    path.run_until(secs(4.0));
    // A trace of ns-2.35, of the second source of its process, with a round trip of 100 ms.
    let theirs = [0.0, 2.0, 2.525, 3.05, 3.2554, 3.4609, 3.5506, 3.608, 3.6655, 3.7229];
    for (number, at) in theirs.into_iter().enumerate() {
        let sent = path.sent_between(secs(f64::max(at - 0.002, 0.0)), secs(at + 0.002));
        assert_eq!(sent, 1, "ns-2 sends packet {number} at {at} s");
    }
    assert_eq!(path.sent_between(secs(0.0), secs(3.73)), theirs.len());
}

#[test]
fn layers_are_added_until_the_rate_carries_no_more_and_the_base_never_starves() {
    let mut path = Path::new(&[("layers", "40k,40k,40k,40k"), ("repair", "30s"), ("max_rate", "150k")]);
    path.lose(|sent| sent.number % 50 == 49);
    path.offer(u64::MAX);
    path.run_until(secs(60.0));
    let last = path.layers().last().expect("its source looks");
    assert!(path.lost() > 50, "{} packets are lost", path.lost());
    assert!((2..4).contains(&last.layers), "150 kbit/s and losses do not carry 160: {last:?}");
    assert_eq!((last.underflows, last.missing), (0, Duration::ZERO));
}

#[test]
fn a_source_whose_receiver_has_enough_sends_no_more_than_plays() {
    let mut path = Path::new(&[("layers", "40k"), ("max_buffer", "5s")]);
    path.offer(u64::MAX);
    path.run_until(secs(20.0));
    path.run_until(secs(60.0));
    let sent = path.sent_between(secs(20.0), secs(60.0));
    assert!(sent.abs_diff(2_000) <= 2, "{sent} packets of 100 bytes in 40 s, and 40 kbit/s are 50 a second");
    assert_eq!(path.layers().last().map(|report| report.underflows), Some(0));
}

#[test]
fn a_source_that_tells_of_payloads_tells_each_fate_once_and_that_of_the_last_though_nothing_follows() {
    let mut path = Path::new(&[("tell_payloads", "yes")]);
    path.lose(|sent| [5, 18, 19].contains(&sent.number));
    path.offer(20);
    path.run_until(secs(30.0));
    let mut fates = path.fates().to_vec();
    fates.sort_unstable_by_key(|(number, _)| *number);
    let expected = |number: u64| if [5, 18, 19].contains(&number) { PayloadFate::Lost } else { PayloadFate::Arrived };
    assert_eq!(fates, (0..20).map(|number| (number, expected(number))).collect::<Vec<_>>());
}
