//! What somebody's start costs the others of a sluice session: bursts for as long as there is something to look for, and never the answer
//! to losses.

use std::time::Duration;

use weir_core::registry::Setting;
use weir_core::{Header, Observation};
use weir_link::LinkConfig;
use weir_sim::{AgentId, Body, LinkId, Monitor, Network, Packet};
use weir_units::{Rate, Time};

/// When probes asked for start-up bursts, and what the receiver told.
#[derive(Default)]
struct Seen {
    delivered: u64,
    asked: Vec<Time>,
    level: usize,
    /// What that sends, and the most that one did.
    rate: Rate,
    most: Rate,
    loss_events: usize,
}

impl Monitor for Seen {
    fn deliver(&mut self, _now: Time, _agent: AgentId, bytes: u64, _number: Option<u64>) {
        self.delivered += bytes;
    }

    fn arrive(&mut self, now: Time, _agent: AgentId, packet: &Packet) {
        if matches!(packet.body, Body::Endpoint(Header::Probe(probe)) if probe.starts().is_some_and(|starting| starting.level > 0))
        {
            self.asked.push(now);
        }
    }

    fn observe(&mut self, _now: Time, _agent: AgentId, observation: &Observation) {
        match observation {
            Observation::Level { level, rate, .. } => {
                (self.level, self.rate, self.most) = (*level, *rate, self.most.max(*rate));
            }
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

/// How long after a session's beginning its receiver has a level of `mbps`.
fn time_to(mbps: f64, link: &str) -> Duration {
    let mut net = Network::new(1);
    let delay = link.parse::<LinkConfig>().expect("a valid link").delay;
    let (root, host, _) = super::link(&mut net, link, delay);
    super::session(&mut net, (root, host), Rate::from_mbps(1_000), 1.15, &[]);
    let mut seen = Seen::default();
    let reached = (1..1_000).find(|step| {
        net.run_until(Time::from_millis(10 * step), &mut seen);
        seen.rate.bps() as f64 >= mbps * 1e6
    });
    Duration::from_millis(10 * reached.expect("it is reached within ten seconds"))
}

/// A burst of 20 ms, two periods of the sender, and the path there and back: 35 ms for a step of two to three times. With bursts at fixed times only it was 580 and
/// 380 ms.
#[test]
fn on_a_short_path_a_start_to_a_gigabit_takes_a_third_of_a_second_and_to_a_tenth_of_it_a_fifth() {
    let took = time_to(800.0, "rate=1G,delay=1ms,buffer=10000p");
    assert!(took < Duration::from_millis(400), "{took:?}");
    let took = time_to(85.0, "rate=100M,delay=2ms,buffer=850p");
    assert!(took < Duration::from_millis(250), "{took:?}");
}

/// What it tells is late, but bursts come twice in a slot, and the sender knows how far it may have climbed.
#[test]
fn on_a_long_path_a_start_waits_for_no_report() {
    let took = time_to(85.0, "rate=100M,delay=50ms,buffer=850p");
    assert!(took < Duration::from_millis(600), "{took:?}");
}

/// Reports get lost, too, and the first packets do not show yet how much the path loses by itself. In two or three of a hundred runs the sender did not learn for seconds
/// what the receiver had joined, and in one of four hundred a random loss was taken for an overflow.
#[test]
fn what_a_path_loses_both_ways_delays_no_start_by_half_of_a_file_s_time() {
    let slowest = (1..=120).map(time_to_eight_megabytes).max().expect("a time");
    assert!(slowest < Duration::from_millis(4_800), "{slowest:?} for 8 MB");
}

/// How long 8 MB take on a link of 20 Mbit/s, of which the ladder takes 16, that loses 2 % both ways.
fn time_to_eight_megabytes(seed: u64) -> Duration {
    let way = "rate=20M,delay=20ms,buffer=166p,loss=2%".parse::<LinkConfig>().expect("a valid link");
    let mut net = Network::new(seed);
    let (root, host) = (net.add_node(), net.add_node());
    let there = net.add_link(root, host, &way);
    net.add_link(host, root, &way);
    super::session(&mut net, (root, host), Rate::from_mbps(16), 1.15, &[]);
    let mut seen = Seen::default();
    let step = (1..2_000).find(|step| {
        net.run_until(Time::from_millis(10 * step), &mut seen);
        seen.delivered >= 8_000_000
    });
    assert!(net.link_counters(there).lost > 50, "nothing is lost");
    Duration::from_millis(10 * step.expect("it comes within twenty seconds"))
}

/// A receiver begins with ten packets in 100 ms, which is more than this link carries. Its buffer holds twelve seconds, so nothing is lost to tell the receiver.
#[test]
fn a_receiver_whose_first_level_is_too_much_stays_near_the_link_s_rate_and_loses_nothing() {
    let (mut net, link, _) = up_to(1_000, 1.15, "rate=1M,delay=10ms,buffer=1000p", &[]);
    let mut seen = Seen::default();
    net.run_until(Time::from_secs(60), &mut seen);
    assert!(seen.most.bps() > 1_000_000, "no level was too much");
    let counters = net.link_counters(link);
    let share = seen.delivered as f64 * 8.0 / 60e6;
    assert!(
        seen.most.bps() < 1_500_000 && counters.dropped == 0 && share > 0.85,
        "{:?} {counters:?} {share}",
        seen.most
    );
}

/// A burst is many flows there, of which most do not wait.
#[test]
fn a_start_behind_a_fair_queue_takes_no_more_than_the_link_carries() {
    for mbps in [20, 50, 100] {
        for delay in [5, 20, 80] {
            let link = format!("rate={mbps}M,delay={delay}ms,queue=fq_codel");
            let (mut net, _, _) = up_to(1_000, 1.15, &link, &[]);
            let mut seen = Seen::default();
            net.run_until(Time::from_secs(3), &mut seen);
            let most = seen.most.bps() as f64 / f64::from(mbps) / 1e6;
            assert!((0.8..1.0).contains(&most), "{most} of {link}");
        }
    }
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
