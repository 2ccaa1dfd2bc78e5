//! Sluice with its defaults, in virtual time: links, leaves and impairments that its users meet.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_testkit::dumbbell::{Dumbbell, Member, Plan};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

const JOINS: Time = Time::from_millis(1_337);

/// A receiver behind a link whose switch keeps sending for two seconds after a leave.
fn plan(link: &str) -> Plan {
    let session = Session {
        ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(1000), 1.15).expect("valid"),
        packet_size: Bytes::new(1484),
        form: CciForm::Long,
        habitat: Habitat::Sockets,
    };
    let scheme = registry::find("sluice").expect("it is registered");
    Plan {
        receivers: vec![Member { joins: JOINS, delay: Duration::ZERO, clock_ahead: Duration::from_millis(777) }],
        sender_jitter: Duration::from_millis(1),
        leave_latency: Duration::from_secs(2),
        ..Plan::new(scheme, session, link.parse().expect("a valid link"))
    }
}

/// What comes in a span of seconds after the join, over the link's rate; and which part of it is lost.
fn share_and_loss(plan: Plan, link_mbps: f64, from: u64, to: u64) -> (f64, f64) {
    let mut run = Dumbbell::new(plan);
    let [from, to] = [from, to].map(|seconds| JOINS + Duration::from_secs(seconds));
    run.run_until(to);
    let [came, lost] = [run.record(0).delivered_packets(from, to), run.record(0).lost_packets(from, to)];
    let loss = lost as f64 / (came + lost).max(1) as f64;
    (run.record(0).mean_bps(from, to) / (link_mbps * 1e6), loss)
}

#[test]
fn a_receiver_has_most_of_its_link_within_a_second_and_loses_next_to_nothing() {
    // The steps of the ladder are 15 %: of a link of 10 Mbit/s it can have 97 %, of one of 100 Mbit/s 91 %.
    for link in [2.0, 10.0, 32.0, 100.0] {
        for delay in [0, 20, 80] {
            let text = format!("rate={link}M,delay={delay}ms,buffer=100ms");
            let (early, _) = share_and_loss(plan(&text), link, 2, 5);
            let (late, loss) = share_and_loss(plan(&text), link, 5, 30);
            assert!(early >= 0.7, "{link} Mbit/s, {delay} ms: {early} of the link in 2 to 5 s");
            assert!(late >= 0.8, "{link} Mbit/s, {delay} ms: {late} of the link");
            assert!(loss < 0.01, "{link} Mbit/s, {delay} ms: lost {loss}");
        }
    }
}

#[test]
fn how_long_a_leave_takes_makes_no_difference_to_a_lone_receiver() {
    for link in [8.0, 32.0] {
        let text = format!("rate={link}M,delay=1ms,buffer=100ms");
        let shares = [0, 3].map(|seconds| {
            let leave_latency = Duration::from_secs(seconds);
            share_and_loss(Plan { leave_latency, ..plan(&text) }, link, 0, 30).0
        });
        assert!((shares[0] - shares[1]).abs() < 0.05, "{link} Mbit/s: {shares:?}");
    }
}

#[test]
fn two_per_cent_of_random_loss_on_a_lan_cost_little_more_than_what_is_lost() {
    for link in [16.0, 100.0] {
        let text = |loss: &str| format!("rate={link}M,delay=100us,buffer=100ms{loss}");
        let (clean, _) = share_and_loss(plan(&text("")), link, 5, 35);
        let (lossy, loss) = share_and_loss(plan(&text(",loss=2%")), link, 5, 35);
        assert!(loss > 0.015, "the impairment must strike: {loss}");
        assert!(lossy >= 0.85 * clean, "{link} Mbit/s: {lossy} instead of {clean}");
    }
}

#[test]
fn a_cut_in_capacity_is_given_way_to_and_its_end_is_found() {
    let link = |mbps: u64| format!("rate={mbps}M,delay=5ms,buffer=100ms").parse().expect("a valid link");
    let mut run = Dumbbell::new(plan("rate=32M,delay=5ms,buffer=100ms"));
    for (until, mbps) in [(20, 8), (40, 32)] {
        run.run_until(Time::from_secs(until));
        run.change_link(&link(mbps));
    }
    run.run_until(Time::from_secs(70));
    let mbps = |from, to| run.record(0).mean_bps(Time::from_secs(from), Time::from_secs(to)) / 1e6;
    let (before, within, after) = (mbps(10, 20), mbps(28, 40), mbps(55, 70));
    assert!(before > 24.0, "{before} Mbit/s of 32");
    assert!((5.0..8.1).contains(&within), "{within} Mbit/s of 8");
    assert!(after > 22.0, "{after} Mbit/s of 32");
}
