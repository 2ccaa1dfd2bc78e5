//! A sluice session next to TCPs. Behind a fair queue, which takes each channel of a session for a flow of its own, it has about as much as one flow.

use std::time::Duration;

use weir_core::Observation;
use weir_core::layers::Ladder;
use weir_core::observation::CeilingCause;
use weir_link::LinkConfig;
use weir_sim::tcp::{Config, Flavour};
use weir_sim::{AgentId, EndpointConfig, Monitor, Network, TcpConnection, Times};
use weir_units::{Rate, Time};

/// Rates in kbit/s from 40 s to 100 s of a session, and of the TCPs of today next to it on a link of 10 Mbit/s.
fn rates(tcps: usize) -> (f64, Vec<f64>) {
    let mut net = Network::new(1);
    net.split_sessions_by_channel();
    let link = "rate=10M,delay=20ms,buffer=10000p,queue=fq_codel";
    let (root, host, bottleneck) = super::link(&mut net, link, Duration::from_millis(20));
    super::session(&mut net, (root, host), Rate::from_mbps(100), 1.15, &[]);
    let tcp = Config::today(Flavour::Cubic);
    let tcps: Vec<TcpConnection> = (0..tcps)
        .map(|number| {
            let start = Times::from(Time::from_millis(137 * number as u64));
            net.add_tcp(root, host, tcp, start).expect("a way")
        })
        .collect();
    let carried = |net: &Network| {
        let bytes = |flow: &TcpConnection| net.tcp(flow.sender).acknowledged() * tcp.segment_size.count();
        let acknowledged: Vec<u64> = tcps.iter().map(bytes).collect();
        (net.link_counters(bottleneck).delivered_bytes.count(), acknowledged)
    };
    net.run_until(Time::from_secs(40), &mut ());
    let before = carried(&net);
    net.run_until(Time::from_secs(100), &mut ());
    let after = carried(&net);
    let kbps = |after: u64, before: u64| (after - before) as f64 * 8e-3 / 60.0;
    let of_tcps: Vec<f64> = after.1.iter().zip(&before.1).map(|(after, before)| kbps(*after, *before)).collect();
    (kbps(after.0, before.0) - of_tcps.iter().sum::<f64>(), of_tcps)
}

#[test]
fn next_to_four_cubics_it_has_what_one_of_five_flows_has() {
    let (session, tcps) = rates(4);
    assert!((1_340.0..=3_000.0).contains(&session), "{session} kbit/s, and {tcps:?}");
    assert!(tcps.iter().all(|tcp| (1_500.0..2_500.0).contains(tcp)), "{tcps:?}");
}

#[test]
fn alone_it_has_nearly_all() {
    let (session, _) = rates(0);
    assert!(session > 9_000.0, "{session} kbit/s");
}

/// How often a receiver told of a flood and its sender withheld levels for one, and how many channels the receiver joined and left after a minute.
#[derive(Default)]
struct Told {
    floods: usize,
    cuts: usize,
    /// How often they were given back because that had not helped.
    futile: usize,
    level: usize,
    moves: usize,
}

impl Monitor for Told {
    fn observe(&mut self, now: Time, _agent: AgentId, observation: &Observation) {
        match observation {
            Observation::Flooded { .. } => self.floods += 1,
            Observation::Ceiling { cause: CeilingCause::Test | CeilingCause::Flooded, .. } => self.cuts += 1,
            Observation::Ceiling { cause: CeilingCause::Futile, .. } => self.futile += 1,
            Observation::Level { level, .. } => {
                let before = std::mem::replace(&mut self.level, *level);
                self.moves += if now > Time::from_secs(60) { level.abs_diff(before) } else { 0 };
            }
            _ => {}
        }
    }
}

/// A session to one receiver behind this link, next to BBRs. Gives what is told in three minutes, and the rate in Mbit/s from one minute on.
fn next_to_bbrs(bbrs: usize, link: &str, delay: Duration) -> (Told, f64) {
    let mut net = Network::new(1);
    let (root, host, bottleneck) = super::link(&mut net, link, delay);
    super::session(&mut net, (root, host), Rate::from_mbps(1_000), 1.15, &[]);
    let bbr = Config::today(Flavour::Bbr);
    let start = |number: usize| Times::from(Time::from_millis(500 + 137 * number as u64));
    let bbrs: Vec<TcpConnection> =
        (0..bbrs).map(|number| net.add_tcp(root, host, bbr, start(number)).expect("a way")).collect();
    let of_session = |net: &Network| {
        let of_bbrs: u64 = bbrs.iter().map(|flow| net.tcp(flow.sender).acknowledged()).sum();
        net.link_counters(bottleneck).delivered_bytes.count() - of_bbrs * bbr.segment_size.count()
    };
    let mut told = Told::default();
    net.run_until(Time::from_secs(60), &mut told);
    let before = of_session(&net);
    net.run_until(Time::from_secs(180), &mut told);
    let rate = (of_session(&net) - before) as f64 * 8e-6 / 120.0;
    (told, rate)
}

/// A BBR keeps a queue of four bandwidth-delay products nearly full, which looks like a flood.
#[test]
fn a_flood_that_is_a_bbr_s_queue_makes_nobody_start_again_and_again() {
    let (told, _) = next_to_bbrs(1, "rate=2M,delay=80ms,buffer=107p", Duration::from_millis(80));
    assert!(told.floods > 0, "nothing looks like a flood");
    assert!(told.moves as f64 <= 0.4 * 120.0, "{} moves in two minutes", told.moves);
}

#[test]
fn where_nothing_is_sent_but_what_its_receiver_wants_a_queue_of_bbrs_has_no_level_withheld() {
    let (told, rate) = next_to_bbrs(4, "rate=50M,delay=5ms,buffer=166p", Duration::from_millis(5));
    assert!(told.floods > 0, "nothing looks like a flood");
    assert_eq!(told.cuts, 0, "{rate} Mbit/s");
    assert!(rate > 5.0, "{rate} of 50 Mbit/s, of which one of five flows has 10");
}

/// The sender sends much that the first receiver does not want, so it tests, and finds that the BBRs' queue does not fall.
#[test]
fn where_bbrs_fill_one_receiver_s_path_another_one_keeps_a_link_of_its_own_but_for_tests() {
    const DELAY: Duration = Duration::from_millis(5);
    let mut net = Network::new(1);
    let (root, host, _) = super::link(&mut net, "rate=50M,delay=5ms,buffer=166p", DELAY);
    let other = net.add_node();
    let own = net.add_link(root, other, &"rate=200M,delay=5ms,buffer=10000p".parse().expect("a valid link"));
    net.add_link(other, root, &LinkConfig { delay: DELAY, ..LinkConfig::default() });
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(1_000), 1.15).expect("a ladder");
    let (id, session) = super::open(&mut net, root, ladder, &[]);
    for host in [host, other] {
        super::join(&mut net, id, &session, host, EndpointConfig::default(), &[]);
    }
    for number in 0..4 {
        let start = Times::from(Time::from_millis(500 + 137 * number));
        net.add_tcp(root, host, Config::today(Flavour::Bbr), start).expect("a way");
    }
    let mut told = Told::default();
    net.run_until(Time::from_secs(30), &mut told);
    let before = net.link_counters(own).delivered_bytes.count();
    net.run_until(Time::from_secs(120), &mut told);
    let rate = (net.link_counters(own).delivered_bytes.count() - before) as f64 * 8e-6 / 90.0;
    assert!(told.futile > 0, "nothing was tested: {} reports", told.floods);
    // Alone it has 182.
    assert!(rate >= 170.0, "{rate} of 200 Mbit/s");
}
