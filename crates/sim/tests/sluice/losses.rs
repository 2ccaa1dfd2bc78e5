//! Losses that are the path's own, and cost no rate.

use std::time::Duration;

use weir_core::Observation;
use weir_sim::{AgentId, Monitor, Network};
use weir_units::{Rate, Time};

/// What came since a time, and which losses were taken for congestion.
#[derive(Default)]
struct Seen {
    since: Time,
    delivered: u64,
    loss_events: usize,
}

impl Monitor for Seen {
    fn deliver(&mut self, now: Time, _agent: AgentId, bytes: u64, _number: Option<u64>) {
        self.delivered += if now >= self.since { bytes } else { 0 };
    }

    fn observe(&mut self, _now: Time, _agent: AgentId, observation: &Observation) {
        self.loss_events += usize::from(matches!(observation, Observation::LossEvent));
    }
}

/// The bursts of the start make a longer queue than anything else does; twenty seconds later they are forgotten.
const FORGOTTEN: u64 = 20;

/// A receiver at the top of a ladder that ends just below the link, which loses packets by itself, in twenty seconds: its part of the top rate, and its loss events.
fn below_the_link(top_mbps: u64, link: &str, one_way: Duration) -> (f64, usize) {
    let mut net = Network::new(1);
    let (root, host, bottleneck) = super::link(&mut net, link, one_way);
    super::session(&mut net, (root, host), Rate::from_mbps(top_mbps), 1.15, &[]);
    let mut seen = Seen { since: Time::from_secs(FORGOTTEN), ..Seen::default() };
    net.run_until(Time::from_secs(2 * FORGOTTEN), &mut seen);
    let counters = net.link_counters(bottleneck);
    assert!(counters.lost * 200 > counters.delivered, "{counters:?}");
    let part = seen.delivered as f64 * 8.0 / (FORGOTTEN * top_mbps * 1_000_000) as f64;
    (part, seen.loss_events)
}

/// Packets that the sender sends together wait for each other, up to 5 ms where the link is nearly full. One of a hundred of those that wait the longest is
/// lost, too, a hundred a second.
#[test]
fn one_percent_of_random_loss_costs_little_more_than_that_at_half_a_gigabit() {
    let (part, loss_events) =
        below_the_link(500, "rate=550M,delay=0.1ms,buffer=100ms,loss=1%", Duration::from_micros(100));
    assert!(part > 0.9 && loss_events == 0, "{part} of the top rate, {loss_events} loss events");
}

/// The same at a rate where channels tell of a loss up to 100 ms later.
#[test]
fn two_percent_of_random_loss_cost_little_more_than_that_at_16_mbit_s() {
    let (part, loss_events) = below_the_link(16, "rate=20M,delay=20ms,buffer=100ms,loss=2%", Duration::from_millis(20));
    assert!(part > 0.9 && loss_events == 0, "{part} of the top rate, {loss_events} loss events");
}
