//! What somebody's start costs the others of a sluice session: bursts for as long as there is something to look for, and never the answer
//! to losses.

use std::time::Duration;

use weir_core::registry::Setting;
use weir_core::{Header, Observation};
use weir_link::LinkConfig;
use weir_sim::{AgentId, Body, LinkId, Monitor, Network, Packet};
use weir_units::{Rate, Time};
use weir_wire::probe::Kind;

/// When probes asked for start-up bursts, and what the receiver told.
#[derive(Default)]
struct Seen {
    delivered: u64,
    asked: Vec<Time>,
    level: usize,
    loss_events: usize,
}

impl Monitor for Seen {
    fn deliver(&mut self, _now: Time, _agent: AgentId, bytes: u64, _number: Option<u64>) {
        self.delivered += bytes;
    }

    fn arrive(&mut self, now: Time, _agent: AgentId, packet: &Packet) {
        if matches!(packet.body, Body::Endpoint(Header::Probe(probe)) if probe.kind == Kind::StartUp) {
            self.asked.push(now);
        }
    }

    fn observe(&mut self, _now: Time, _agent: AgentId, observation: &Observation) {
        match observation {
            Observation::Level { level, .. } => self.level = *level,
            Observation::LossEvent => self.loss_events += 1,
            _ => {}
        }
    }
}

/// A session of up to 10 Mbit/s to a receiver behind one link.
fn behind(link: &str, settings: &[Setting]) -> (Network, LinkId, usize) {
    up_to(10, 1.5, link, settings)
}

/// A session from 256 kbit/s up to `mbps`, in steps of `ratio`, to a receiver behind one link.
fn up_to(mbps: u64, ratio: f64, link: &str, settings: &[Setting]) -> (Network, LinkId, usize) {
    let mut net = Network::new(1);
    let (root, host, bottleneck) = super::link(&mut net, link, Duration::from_millis(10));
    let levels = super::session(&mut net, (root, host), Rate::from_mbps(mbps), ratio, settings);
    (net, bottleneck, levels)
}

/// A burst of twice 60 Mbit/s overflows a queue of 12 ms. It tells all the same that the path carries 100.
#[test]
fn what_a_burst_loses_ends_the_start_and_takes_nothing_back() {
    let (mut net, link, _) = up_to(1_000, 1.15, "rate=100M,delay=10ms,buffer=100p", &[]);
    let mut seen = Seen::default();
    net.run_until(Time::from_secs(2), &mut seen);
    assert!(net.link_counters(link).dropped > 0, "the queue is too long for this test");
    let seconds = seen.delivered as f64 * 8.0 / 100e6;
    assert!(seconds > 1.2, "in 2 s as much came as the link carries in {seconds} s");
}

/// The path loses 1 % by itself, and start-up bursts of twice 90 Mbit/s lose far more in a queue of 12 ms. Both are no congestion.
#[test]
fn what_start_up_bursts_lose_on_a_path_that_loses_packets_takes_no_level() {
    let (mut net, link, _) = up_to(1_000, 1.15, "rate=100M,delay=10ms,buffer=100p,loss=1%", &[]);
    let mut seen = Seen::default();
    net.run_until(Time::from_secs(10), &mut seen);
    assert!(net.link_counters(link).dropped > 0, "the queue is too long for this test");
    assert!(seen.loss_events == 0 && seen.delivered as f64 * 8.0 > 0.8 * 10.0 * 100e6, "{} bytes", seen.delivered);
}

/// A level of 9.69 Mbit/s is on trial on a link of 10, which loses 1 % by itself. Each burst for the level above is too much, and leaves a queue for
/// two or three slots.
#[test]
fn what_a_path_loses_after_a_burst_for_the_next_level_takes_no_level_back() {
    let (mut net, link, _) = up_to(1_000, 1.15, "rate=10M,delay=20ms,buffer=133p,loss=1%", &[]);
    let mut seen = Seen::default();
    net.run_until(Time::from_secs(30), &mut seen);
    assert!(net.link_counters(link).lost > 100, "the path loses nothing");
    let before = seen.delivered;
    net.run_until(Time::from_secs(60), &mut seen);
    let share = (seen.delivered - before) as f64 * 8.0 / (30.0 * 10e6);
    assert!(share > 0.9, "{share} of the link");
}

/// Slots of 100 ms: three from 1 Mbit/s to 34, as slow levels see a burst a slot, and another three to 900 Mbit/s, as fast ones see two.
#[test]
fn on_a_short_path_a_start_to_a_gigabit_takes_less_than_a_second() {
    let (mut net, _, _) = up_to(1_000, 1.15, "rate=1G,delay=1ms,buffer=10000p", &[]);
    let mut seen = Seen::default();
    net.run_until(Time::from_millis(900), &mut seen);
    let before = seen.delivered;
    net.run_until(Time::from_millis(1_000), &mut seen);
    let rate = (seen.delivered - before) as f64 * 8.0 / 0.1 / 1e6;
    assert!(rate > 800.0, "{rate} Mbit/s after a second");
}

#[test]
fn who_has_the_whole_ladder_asks_for_no_more_start_up_bursts() {
    let (mut net, _, levels) = behind("rate=100M,delay=10ms,buffer=100p", &[]);
    let mut seen = Seen::default();
    net.run_until(Time::from_secs(60), &mut seen);
    assert_eq!(seen.level, levels);
    assert!(seen.asked.iter().all(|at| *at < Time::from_secs(2)), "{:?}", seen.asked);
}

/// As where a stranger says once a second that he starts.
#[test]
fn start_up_bursts_without_an_end_keep_nobody_from_the_answer_to_losses() {
    let always = Setting { key: "start_up".to_owned(), value: "always".to_owned() };
    let (mut net, link, levels) = behind("rate=8M,delay=10ms,buffer=100p", &[always]);
    let narrow: LinkConfig = "rate=1500k,delay=10ms,buffer=52p".parse().expect("a valid link");
    net.change_link(Time::from_secs(20), link, &narrow);
    let mut seen = Seen::default();
    net.run_until(Time::from_secs(20), &mut seen);
    assert!((levels - 2..levels).contains(&seen.level) && seen.loss_events == 0, "{}", seen.level);
    net.run_until(Time::from_secs(30), &mut seen);
    assert!(seen.loss_events > 0);
    let [before, after] = [30, 60].map(|until| {
        net.run_until(Time::from_secs(until), &mut seen);
        net.link_counters(link)
    });
    let lost = (after.dropped - before.dropped) as f64 / (after.received - before.received) as f64;
    assert!(lost < 0.1, "{lost} of what is sent is lost, at level {}", seen.level);
}
