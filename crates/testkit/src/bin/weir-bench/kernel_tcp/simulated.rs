//! The simulated side of a case.

use std::time::Duration;

use weir_sim::tcp::{Config, Flavour};
use weir_sim::{Network, Times};
use weir_units::{Random, Time};

use super::{Bottleneck, Outcome, SAMPLE, WARM_UP};

/// A run for each seed.
pub(super) fn run(bottleneck: &Bottleneck, controls: &[&str], span: Duration, seeds: u64) -> Vec<Outcome> {
    (1..=seeds).map(|seed| run_once(bottleneck, controls, span, seed)).collect()
}

fn run_once(bottleneck: &Bottleneck, controls: &[&str], span: Duration, seed: u64) -> Outcome {
    let mut net = Network::new(seed);
    let (from, to) = (net.add_node(), net.add_node());
    let [there, back] = bottleneck.links();
    let [link, _] = net.connect(from, to, &there, &back);
    let mut random = Random::new(seed, "start of a connection");
    let [segment_size, ack_size] = bottleneck.sizes();
    let mut flows = Vec::new();
    for control in controls {
        let config = Config { segment_size, ack_size, ..Config::today(flavour(control)) };
        let start = Time::from_nanos((random.unit() * 1e8) as u64);
        flows.push(net.add_tcp(from, to, config, Times::from(start)).expect("the hosts are joined"));
    }
    let acknowledged =
        |net: &Network| -> Vec<u64> { flows.iter().map(|flow| net.tcp(flow.sender).acknowledged()).collect() };
    let begin = Time::ZERO + WARM_UP;
    net.run_until(begin, &mut ());
    let (before, dropped_before) = (acknowledged(&net), net.link_counters(link).dropped);
    let samples = span.as_millis() / SAMPLE.as_millis();
    let mut waiting = 0.0;
    for sample in 1..=samples {
        net.run_until(begin + SAMPLE * sample as u32, &mut ());
        waiting += net.waiting(link) as f64;
    }
    let after = acknowledged(&net);
    let mut outcome = Outcome {
        queue_ms: bottleneck.queue_ms(waiting / samples as f64),
        drops: (net.link_counters(link).dropped - dropped_before) as f64 / span.as_secs_f64(),
        ..Outcome::default()
    };
    for (place, (before, after)) in outcome.goodput.iter_mut().zip(before.iter().zip(&after)) {
        *place = (after - before) as f64 * PAYLOAD_BITS / 1e6 / span.as_secs_f64();
    }
    outcome
}

fn flavour(control: &str) -> Flavour {
    Flavour::ALL.into_iter().find(|flavour| flavour.name() == control).expect("the cases are of these")
}

/// Of a segment of 1500 bytes with timestamps.
const PAYLOAD_BITS: f64 = 1448.0 * 8.0;
