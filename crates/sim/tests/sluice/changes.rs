//! Paths that change under a session: links that are cut and come back, and routes that become longer.

use std::time::Duration;

use weir_core::Observation;
use weir_link::LinkConfig;
use weir_sim::{AgentId, Monitor, Network};
use weir_units::{Rate, Time};

/// The least queuing delay that a receiver has measured in a slot since a time.
struct Waited {
    since: Time,
    least: Duration,
}

impl Monitor for Waited {
    fn observe(&mut self, now: Time, _agent: AgentId, observation: &Observation) {
        if let Observation::Slot(report) = observation
            && now >= self.since
        {
            self.least = self.least.min(report.queuing_delay[0]);
        }
    }
}

/// A session from 256 kbit/s to 100 Mbit/s to one receiver, alone behind `link`, which is `later` from 40 s to 80 s. Gives what the link has carried
/// in these spans, in Mbit/s, and how long packets have waited in each at least.
fn changed<const N: usize>(link: &str, later: &str, spans: [[u64; 2]; N]) -> [(f64, Duration); N] {
    let mut net = Network::new(1);
    let config = |link: &str| link.parse::<LinkConfig>().expect("a valid link");
    let (root, host, bottleneck) = super::link(&mut net, link, Duration::from_millis(10));
    super::session(&mut net, (root, host), Rate::from_mbps(100), 1.15, &[]);
    net.change_link(Time::from_secs(40), bottleneck, &config(later));
    net.change_link(Time::from_secs(80), bottleneck, &config(link));
    let mut carried = |until: u64, waited: &mut Waited| {
        net.run_until(Time::from_secs(until), waited);
        net.link_counters(bottleneck).delivered_bytes.count()
    };
    spans.map(|[from, to]| {
        let mut waited = Waited { since: Time::from_secs(from), least: Duration::MAX };
        let before = carried(from, &mut waited);
        let mbps = (carried(to, &mut waited) - before) as f64 * 8e-6 / (to - from) as f64;
        (mbps, waited.least)
    })
}

#[test]
fn a_receiver_that_a_cut_took_to_a_slow_level_has_the_link_again_twenty_seconds_later() {
    let [(cut, _), (back, _)] =
        changed("rate=20M,delay=10ms,buffer=267p", "rate=0.35M,delay=10ms,buffer=267p", [[60, 80], [100, 120]]);
    assert!((0.2..0.36).contains(&cut), "{cut} of 0.35 Mbit/s");
    assert!(back > 0.9 * 20.0, "{back} of 20 Mbit/s");
}

#[test]
fn behind_codel_a_cut_to_a_fifth_leaves_nine_tenths_of_that() {
    let codel = |rate| format!("rate={rate}M,delay=10ms,buffer=10000p,queue=codel");
    let [(cut, _)] = changed(&codel(20), &codel(4), [[55, 75]]);
    assert!(cut > 0.9 * 4.0 && cut < 4.01, "{cut} of 4 Mbit/s");
}

#[test]
fn behind_a_fair_queue_a_cut_is_over_thirty_seconds_after_it() {
    let fair = |rate| format!("rate={rate}M,delay=10ms,buffer=10000p,queue=fq_codel");
    let [(cut, _), (back, _)] = changed(&fair(20), &fair(2), [[60, 80], [110, 120]]);
    assert!(cut < 2.01 && back > 0.9 * 20.0, "{cut} of 2 Mbit/s, {back} of 20 Mbit/s");
}

#[test]
fn what_a_longer_route_adds_is_taken_for_a_queue_for_twenty_seconds_at_most() {
    for (longer, added) in [("12ms", 2), ("60ms", 50)] {
        let later = format!("rate=20M,delay={longer},buffer=67p");
        let [(_, before), (_, at_first), (after, waited)] =
            changed("rate=20M,delay=10ms,buffer=67p", &later, [[30, 40], [41, 44], [60, 80]]);
        let added = Duration::from_millis(added);
        assert!(before < added && at_first >= added, "packets waited {before:?} before and {at_first:?} after");
        assert!(
            waited < added && after > 0.95 * 20.0,
            "{after} of 20 Mbit/s, {waited:?} of delay where the way takes {longer}"
        );
    }
}
