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

/// Packets that the sender sends together wait for each other, up to 5 ms where the link is nearly full. One of a hundred of those that wait the longest is
/// lost, too, a hundred a second. The bursts of the start, which made a longer queue, are forgotten after twenty seconds.
#[test]
fn one_percent_of_random_loss_costs_little_more_than_that_at_half_a_gigabit() {
    let mut net = Network::new(1);
    let link = "rate=550M,delay=0.1ms,buffer=100ms,loss=1%";
    let (root, host, bottleneck) = super::link(&mut net, link, Duration::from_micros(100));
    super::session(&mut net, (root, host), Rate::from_mbps(500), 1.15, &[]);
    let mut seen = Seen { since: Time::from_secs(20), ..Seen::default() };
    net.run_until(Time::from_secs(40), &mut seen);
    assert!(net.link_counters(bottleneck).lost > 2_000, "{:?}", net.link_counters(bottleneck));
    let part = seen.delivered as f64 * 8.0 / (20.0 * 500e6);
    assert!(part > 0.9 && seen.loss_events == 0, "{part} of the link, {} loss events", seen.loss_events);
}
