//! MTCP over simulated trees: here ones that are given, whose worst path paces the stream; in `found` ones that build themselves; in
//! `churn` nodes that leave and die; in `islands` sites to which no multicast leads.

mod churn;
mod found;
mod hours;
mod islands;
mod tree;

use std::time::Duration;

use tree::{Notes, Plan, build, fig_9};
use weir_sim::traffic::Supply;
use weir_units::Time;

#[test]
fn clocks_that_are_off_by_a_thousand_seconds_change_nothing() {
    let lossy =
        || Plan { link: "rate=1.5M,delay=10ms,buffer=8p,loss=1%", supply: Supply::AtOnce(3_000), ..fig_9(12, false) };
    let run = |clocks_ahead: fn(usize) -> Duration| run(&Plan { clocks_ahead, ..lossy() }, 1, Time::from_secs(60));
    let equal = run(|_| Duration::from_secs(1_000));
    // Ahead of the sender's by a thousand seconds, behind it by as much, or equal.
    let apart = run(|number| Duration::from_secs([1_000, 2_000, 0][number % 3]));
    assert_eq!(equal.complete.len(), 13, "everyone has everything");
    assert_eq!((&equal.delivered, &equal.complete), (&apart.delivered, &apart.complete));
}

#[test]
fn a_clock_that_wraps_on_the_wire_changes_nothing() {
    // 2^32 µs are 71 minutes and 35 s.
    let plan = |clocks_ahead| Plan { supply: Supply::AtOnce(3_000), clocks_ahead, ..fig_9(6, false) };
    let run = |clocks_ahead| run(&plan(clocks_ahead), 1, Time::from_secs(60));
    let (early, wrapping) = (run(|_| Duration::from_secs(10)), run(|_| Duration::from_secs(4_290)));
    assert_eq!(early.complete.len(), 7, "everyone has everything");
    assert_eq!(early.complete, wrapping.complete);
}

#[test]
fn everyone_gets_everything_over_links_that_lose_and_the_end_is_confirmed() {
    for (seed, rules) in [(1, "refined"), (2, "refined"), (3, "literal")] {
        let plan =
            Plan { link: "rate=1.5M,delay=10ms,buffer=8p,loss=3%", supply: Supply::AtOnce(1_000), ..fig_9(20, false) };
        let mut site = build(&plan.set("rules", rules), seed);
        let mut notes = Notes::default();
        site.net.run_until(Time::from_secs(300), &mut notes);
        let lost: u64 = site.net.links().map(|link| site.net.link_counters(link).lost).sum();
        assert!(lost > 1_000, "the links lost {lost}");
        assert!(site.members.iter().all(|member| notes.delivered.get(member) == Some(&1_000)), "{rules} {seed}");
        let last = site.members.iter().map(|member| notes.complete[member]).max();
        assert!(Some(notes.complete[&site.sender]) >= last, "the sender is done once all are");
    }
}

#[test]
fn the_slowest_path_of_a_deep_tree_paces_all() {
    // Three levels of five; one leaf is behind a tenth of the rate.
    let mut site = build(&fig_9(60, false), 1);
    let slow = site.nodes[60];
    let link = site.net.link_between(site.nodes[(60 - 1) / 5], slow).expect("its link");
    site.net.change_link(Time::ZERO, link, &"rate=150k,delay=10ms,buffer=8p".parse().expect("a link"));
    let mut notes = Notes::default();
    site.net.run_until(Time::from_secs(60), &mut notes);
    let rates = site.members.iter().map(|member| notes.delivered[member] as f64 * 8_000.0 / 59.0);
    let (least, most) = rates.fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    assert!(least > 0.7 * 150e3 && most <= 150e3 * 1.05, "{least} to {most} bit/s");
    let slow = site.net.link_counters(link);
    assert!(slow.dropped * 10 < slow.received, "{} of {} packets were dropped", slow.dropped, slow.received);
}

fn run(plan: &Plan, seed: u64, until: Time) -> Notes {
    let mut site = build(plan, seed);
    let mut notes = Notes::default();
    site.net.run_until(until, &mut notes);
    notes
}
