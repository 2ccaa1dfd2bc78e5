//! STAIR with its defaults for real networks, in virtual time: on an idle path with a deep buffer, where a round trip swings
//! between next to nothing and a full queue.

use std::time::Duration;

use weir_core::Observation;
use weir_core::layers::Ladder;
use weir_core::observation::LevelCause;
use weir_core::registry::{self, Habitat, OfferedRates, Session};
use weir_testkit::dumbbell::{Dumbbell, Member, Plan, Record};
use weir_units::{Bytes, Time};
use weir_wire::CciForm;

const JOINS: Time = Time::from_millis(1_337);

fn run_for(link: &str, decrease: &str, seconds: u64) -> Dumbbell {
    run_with_leaves(Duration::from_millis(4), link, decrease, seconds)
}

fn run_with_leaves(leave_latency: Duration, link: &str, decrease: &str, seconds: u64) -> Dumbbell {
    let scheme = registry::find("stair").expect("it is registered");
    let OfferedRates { low, high, ratio } = scheme.rates().expect("it is layered");
    let session = Session {
        ladder: Ladder::geometric(low, high, ratio).expect("valid"),
        packet_size: Bytes::new(1456),
        form: CciForm::Short,
        habitat: Habitat::Sockets,
    };
    let plan = Plan {
        receivers: vec![Member { joins: JOINS, delay: Duration::ZERO, clock_ahead: Duration::from_millis(777) }],
        sender_jitter: Duration::from_millis(1),
        join_latency: Duration::from_millis(4),
        leave_latency,
        ..Plan::new(scheme, session, link.parse().expect("a valid link"))
    };
    let mut run = Dumbbell::new(plan.with("decrease", decrease));
    run.run_until(JOINS + Duration::from_secs(seconds));
    run
}

fn levels(record: &Record) -> Vec<(Time, usize, LevelCause)> {
    let of = |(at, observation): &(Time, Observation)| match observation {
        Observation::Level { level, cause, .. } => Some((*at, *level, *cause)),
        _ => None,
    };
    record.observations.iter().filter_map(of).collect()
}

#[test]
fn what_was_lost_before_a_decrease_does_not_lower_the_rate_once_more() {
    for decrease in DECREASES {
        let run = run_for("rate=20M,delay=1ms,buffer=100ms", decrease, 60);
        let levels = levels(run.record(0));
        let steady = levels.iter().filter(|(at, ..)| *at > JOINS + Duration::from_secs(5));
        let drops: Vec<Time> = steady.filter(|(.., cause)| *cause == LevelCause::Drop).map(|(at, ..)| *at).collect();
        assert!(drops.len() >= 3, "{decrease}: the impairment must strike: {levels:?}");
        // From half of the link's rate to all of it are at least nine stair periods of 291 ms.
        let apart = drops.windows(2).map(|pair| pair[1].since(pair[0])).min().expect("there are several");
        assert!(apart > Duration::from_secs(2), "{decrease}: {apart:?} apart: {levels:?}");
    }
}

#[test]
fn an_overload_lowers_the_rate_once_though_leaves_take_two_seconds_and_what_still_comes_is_withheld() {
    for (link, mbps) in [("rate=32M", 32), ("rate=100M", 100)] {
        let run = run_with_leaves(Duration::from_secs(2), &format!("{link},delay=1ms,buffer=100ms"), "period-end", 60);
        let levels = levels(run.record(0));
        let lower = levels.iter().filter(|(.., cause)| matches!(cause, LevelCause::Drop | LevelCause::SlowStartEnd));
        let lower: Vec<(Time, usize)> = lower.map(|(at, level, _)| (*at, *level)).collect();
        assert!(run.link_counters().dropped > 0 && lower.len() > 1, "{link}: the impairment must strike: {levels:?}");
        let apart = lower.windows(2).map(|pair| pair[1].0.since(pair[0].0)).min();
        assert!(apart > Some(Duration::from_secs(2)), "{link}: {apart:?} apart: {lower:?}");
        let least = lower.iter().map(|(_, level)| *level).min();
        assert!(least >= Some(mbps / 4), "{link}: {lower:?}");
    }
}

#[test]
fn a_receiver_uses_most_of_its_link_from_the_start() {
    for decrease in DECREASES {
        for (link, mbps) in [("rate=2M", 2.0), ("rate=8M", 8.0), ("rate=32M", 32.0), ("rate=100M", 100.0)] {
            let run = run_for(&format!("{link},delay=1ms,buffer=100ms"), decrease, 30);
            let share = run.record(0).mean_bps(JOINS, JOINS + Duration::from_secs(30)) / (mbps * 1e6);
            assert!(share >= 0.67, "{decrease}, {link}: {share}");
        }
    }
}

#[test]
fn slow_start_asks_for_no_more_than_four_times_the_link() {
    for (link, mbps) in [("rate=4M", 4), ("rate=8M", 8), ("rate=20M", 20)] {
        let run = run_for(&format!("{link},delay=1ms,buffer=100ms"), "period-end", 10);
        let levels = levels(run.record(0));
        let start = levels.iter().filter(|(.., cause)| matches!(cause, LevelCause::Start | LevelCause::SlowStart));
        let highest = start.map(|(_, level, _)| *level).max().expect("it starts");
        assert!((mbps / 2..=4 * mbps).contains(&highest), "{link}: {levels:?}");
    }
}

const DECREASES: [&str; 3] = ["period-end", "at-once", "at-once-each-rtt"];
