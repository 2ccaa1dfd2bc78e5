//! What every flavour does on a path, and what CUBIC and BBR promise of themselves.

use std::time::Duration;

use crate::path::{Path, lossy, run, solo};
use proptest::prelude::*;
use weir_sim::tcp::{Config, Flavour};
use weir_units::{Random, Time};

fn today(flavour: Flavour) -> Config {
    Config { delayed_ack: None, ..Config::today(flavour) }
}

/// 10 Mbit/s, 40 ms round trip, a buffer of two bandwidth–delay products.
fn megabits(config: Config) -> Path {
    let back = "rate=10M,delay=20ms,buffer=1000000p";
    Path::new(config, &["rate=10M,delay=20ms,buffer=66p"], &[back], 0.0, 1)
}

#[test]
fn every_flavour_fills_a_link_that_it_has_to_itself() {
    for flavour in Flavour::ALL {
        let mut path = megabits(today(flavour));
        let goodput = run(&mut path, 60).goodput;
        let share = goodput * 1500.0 * 8.0 / 10e6;
        // Tahoe empties the pipe at each loss; BBR keeps it small for 0.2 s in 10.
        let least = if flavour == Flavour::Tahoe { 0.85 } else { 0.93 };
        assert!((least..=1.0).contains(&share), "{}: {share}", flavour.name());
    }
}

#[test]
fn a_finite_transfer_arrives_whole_and_the_sender_is_silent_after_it() {
    for flavour in Flavour::ALL {
        for loss in [0.0, 0.05, 0.3] {
            let mut path = lossy(Config { supply: Some(500), ..today(flavour) }, loss, 7);
            path.sender.close();
            path.start(Time::ZERO);
            path.run(Time::from_secs(20_000), |_, _| {});
            let name = flavour.name();
            assert_eq!((path.sender.acknowledged(), path.sink.in_order()), (500, 500), "{name} at {loss}");
            assert!(path.sender.is_finished() && path.sender.deadline().is_none(), "{name} at {loss}");
            assert_eq!(path.lost > 0, loss > 0.0);
        }
    }
}

#[test]
fn the_window_limit_is_kept() {
    for flavour in Flavour::ALL {
        let mut path = lossy(Config { max_window: 8, ..today(flavour) }, 0.0, 1);
        let goodput = run(&mut path, 30).goodput;
        // Eight segments of 1500 bytes a round trip of 101.24 ms.
        let most = 8.0 / 0.10124;
        assert!((0.9 * most..=1.001 * most).contains(&goodput), "{}: {goodput} of {most}", flavour.name());
    }
}

#[test]
fn with_delayed_acknowledgements_half_as_many_are_sent() {
    let delayed = Some(Duration::from_millis(100));
    let mut path = megabits(Config { delayed_ack: delayed, ..today(Flavour::NewReno) });
    run(&mut path, 30);
    let ratio = path.sender.counters().acks as f64 / path.sink.received() as f64;
    assert!((0.5..0.6).contains(&ratio), "{ratio}");
}

#[test]
fn an_overhead_delays_each_burst_and_keeps_the_order() {
    let overhead = Duration::from_millis(10);
    let mut path = lossy(Config { overhead, max_window: 8, ..Config::ns2(Flavour::NewReno) }, 0.0, 1);
    let goodput = run(&mut path, 30).goodput;
    // On average 5 ms later a round trip, with nothing lost and nothing sent again.
    assert_eq!(path.sender.counters().retransmitted, 0);
    let undelayed = 8.0 / 0.100832;
    assert!(goodput < 0.97 * undelayed && goodput > 0.88 * undelayed, "{goodput} of {undelayed}");
}

#[test]
fn more_data_may_come_later_and_is_sent_at_once() {
    let mut path = lossy(Config { supply: Some(3), ..Config::ns2(Flavour::NewReno) }, 0.0, 1);
    path.start(Time::ZERO);
    path.run(Time::from_secs(1), |_, _| {});
    assert!(path.sender.is_idle() && path.sender.deadline().is_none());
    let mut sent = Vec::new();
    path.sender.supply(Time::from_secs(2), 10, &mut |segment| sent.push(segment.seq));
    assert_eq!(sent, [3, 4], "after a silence the window is the initial one");
}

#[test]
fn a_mark_halves_the_window_once_a_round_trip_and_loses_nothing() {
    let mut random = Random::new(1, "marks");
    for flavour in [Flavour::NewReno, Flavour::Sack, Flavour::Cubic] {
        let config = Config { ecn: true, ..Config::ns2(flavour) };
        let mut sender = weir_sim::tcp::Sender::new(config, Random::new(1, "sender"));
        let mut sink = weir_sim::tcp::Sink::new(&config);
        let (mut flying, mut now, mut marks) = (Vec::new(), Time::ZERO, 0);
        sender.start(now, &mut |segment| flying.push(segment));
        for _ in 0..200 {
            now += Duration::from_millis(100);
            let mut acks = Vec::new();
            for segment in std::mem::take(&mut flying) {
                assert!(segment.ecn_capable);
                let mark = random.chance(0.01);
                marks += u64::from(mark);
                sink.receive(now, &segment, mark, &mut |ack| acks.push(ack));
            }
            for ack in acks {
                sender.receive(now, &ack, &mut |segment| flying.push(segment));
            }
        }
        let counters = sender.counters();
        assert!(marks > 20 && counters.ecn_reductions > 10, "{marks} marks, {counters:?}");
        assert!(counters.ecn_reductions <= marks, "{marks} marks, {counters:?}");
        assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
        // Reno's and CUBIC's windows at a mark in a hundred are about twelve segments.
        assert!((4.0..40.0).contains(&sender.cwnd()), "{}: {}", flavour.name(), sender.cwnd());
    }
}

#[test]
fn a_host_of_today_that_asks_for_marks_loses_nothing_behind_a_codel_that_marks() {
    for flavour in [Flavour::Reno, Flavour::Cubic] {
        let drops = |ecn| {
            let back = "rate=10M,delay=20ms,buffer=1000000p";
            let there = "rate=10M,delay=20ms,buffer=1000p,queue=codel(ecn=yes)";
            let mut path = Path::new(Config { ecn, ..Config::today(flavour) }, &[there], &[back], 0.0, 1);
            let share = run(&mut path, 60).goodput * 1500.0 * 8.0 / 10e6;
            assert!(share > 0.8, "{}: {share}", flavour.name());
            (path.dropped(), path.sender.counters().ecn_reductions)
        };
        let (dropped, reductions) = drops(true);
        assert!(dropped == 0 && reductions > 10, "{}: {dropped} drops, {reductions} reductions", flavour.name());
        let (dropped, reductions) = drops(false);
        assert!(dropped > 10 && reductions == 0, "{}: {dropped} drops, {reductions} reductions", flavour.name());
    }
}

#[test]
fn cubic_takes_more_than_reno_of_a_long_fat_path() {
    // 100 Mbit/s, 200 ms, a loss in ten thousand: Reno's average window is 122 segments, and CUBIC's, by RFC 9438 Eq. 6,
    // 1.054 · 0.2^(3/4) / 0.0001^(3/4) = 315.
    let goodput = |flavour| {
        let link = "rate=100M,delay=100ms,buffer=10000p";
        let goodput = |seed| run(&mut Path::new(today(flavour), &[link], &[link], 1e-4, seed), 300).goodput;
        (1..=3).map(goodput).sum::<f64>() / 3.0
    };
    let ratio = goodput(Flavour::Cubic) / goodput(Flavour::Sack);
    assert!((1.8..4.0).contains(&ratio), "{ratio}");
}

/// In slow start two segments go out for each one that the link has let through, so half of the window waits; paced ones leave at the window's rate.
#[test]
fn a_paced_slow_start_fits_in_a_queue_that_an_unpaced_one_overflows() {
    for flavour in [Flavour::Reno, Flavour::Cubic] {
        let dropped = |paced| {
            // 10 Mbit/s and 80 ms: 66 segments, and the window stays below half of that.
            let config = Config { paced, initial_window: 4, max_window: 30, ..today(flavour) };
            let back = "rate=10M,delay=40ms,buffer=1000000p";
            let mut path = Path::new(config, &["rate=10M,delay=40ms,buffer=8p"], &[back], 0.0, 1);
            run(&mut path, 10);
            path.dropped()
        };
        assert!(dropped(false) > 0, "{} without a pacer", flavour.name());
        assert_eq!(dropped(true), 0, "{} with one", flavour.name());
    }
}

#[test]
fn bbr_fills_the_link_and_keeps_the_queue_below_two_bandwidth_delay_products() {
    // 10 Mbit/s and 40 ms: 33 segments; the queue could hold thirty times that.
    let back = "rate=10M,delay=20ms,buffer=1000000p";
    let mut path = Path::new(today(Flavour::Bbr), &["rate=10M,delay=20ms,buffer=1000p"], &[back], 0.0, 1);
    path.start(Time::ZERO);
    let settled = Time::from_secs(5);
    path.run(settled, |_, _| {});
    let before = path.sender.acknowledged();
    let (mut longest, mut shortest) = (Duration::ZERO, Duration::MAX);
    path.run(Time::from_secs(65), |_, sender| {
        longest = longest.max(sender.srtt());
        shortest = shortest.min(sender.srtt());
    });
    let share = (path.sender.acknowledged() - before) as f64 * 1500.0 * 8.0 / 60.0 / 10e6;
    assert!(share > 0.95, "{share}");
    assert!(longest < Duration::from_millis(40 * 3), "{longest:?}");
    assert!(shortest < Duration::from_millis(46), "now and then the queue is emptied: {shortest:?}");
    assert_eq!(path.dropped(), 0);
}

#[test]
fn bbr_survives_a_loss_of_a_hundredth() {
    for seed in 1..=3 {
        let mut path = lossy(Config { timestamps: true, initial_window: 10, ..Config::ns2(Flavour::Bbr) }, 0.01, seed);
        let share = run(&mut path, 100).goodput / 1250.0;
        assert!(share > 0.9, "{share}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for flavour in Flavour::ALL {
        let run = |seed| {
            let mut path = solo(Config { overhead: Duration::from_millis(1), ..Config::ns2(flavour) }, seed);
            run(&mut path, 20);
            (path.sender.counters(), path.sender.cwnd().to_bits())
        };
        assert_eq!(run(3), run(3), "{}", flavour.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn whatever_the_network_does_all_data_arrives(
        flavour in 0..Flavour::ALL.len(), seed in 0u64..1000, packets in 1u64..400, loss in 0.0f64..0.4, reorder in 0.0f64..0.5,
        delayed in any::<bool>(), window in 1u32..200,
    ) {
        // A network that loses, delays, repeats and reorders, in both directions.
        let flavour = Flavour::ALL[flavour];
        let delayed_ack = delayed.then(|| Duration::from_millis(100));
        let config = Config { supply: Some(packets), delayed_ack, max_window: window, ..Config::ns2(flavour) };
        let mut sender = weir_sim::tcp::Sender::new(config, Random::new(seed, "sender"));
        let mut sink = weir_sim::tcp::Sink::new(&config);
        let mut random = Random::new(seed, "network");
        let mut flying: Vec<(Time, u64, weir_sim::tcp::Segment)> = Vec::new();
        let (mut order, mut now, mut steps) = (0, Time::ZERO, 0);
        let mut out = Vec::new();
        sender.start(now, &mut |segment| out.push(segment));
        loop {
            for segment in out.drain(..) {
                while !random.chance(loss) {
                    let late = if random.chance(reorder) { random.below(80) } else { 0 };
                    order += 1;
                    flying.push((now + Duration::from_millis(20 + late), order, segment));
                    if !random.chance(0.02) {
                        break;
                    }
                }
            }
            let first = flying.iter().map(|(at, order, _)| (*at, *order)).min();
            let timers = [sender.deadline(), sink.deadline(), first.map(|(at, _)| at)];
            let Some(next) = timers.into_iter().flatten().min() else { break };
            prop_assert!(next >= now, "time went back");
            now = next;
            if let Some(first) = first.filter(|(at, _)| *at <= now) {
                let index = flying.iter().position(|(at, order, _)| (*at, *order) == first).expect("it is the first");
                let (_, _, segment) = flying.swap_remove(index);
                match segment.kind {
                    weir_sim::tcp::Kind::Data => sink.receive(now, &segment, false, &mut |segment| out.push(segment)),
                    weir_sim::tcp::Kind::Ack => sender.receive(now, &segment, &mut |segment| out.push(segment)),
                }
            } else {
                sender.expire(now, &mut |segment| out.push(segment));
                sink.expire(now, &mut |segment| out.push(segment));
            }
            prop_assert!(sender.acknowledged() <= sink.in_order());
            prop_assert!(sender.cwnd() >= 1.0 || flavour == Flavour::Vegas, "{}", sender.cwnd());
            prop_assert!(sender.cwnd().is_finite());
            steps += 1;
            prop_assert!(steps < 2_000_000, "no end");
        }
        prop_assert_eq!((sink.in_order(), sender.acknowledged()), (packets, packets));
    }
}
