//! Sessions over simulated networks: who gets what, when, and that a run repeats itself.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_link::LinkConfig;
use weir_sim::trace::Trace;
use weir_sim::{AgentId, EndpointConfig, LinkId, Membership, Network, SessionConfig, Times, topology};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

struct Run {
    net: Network,
    bottleneck: LinkId,
    receivers: Vec<AgentId>,
}

/// An AVMRC session of the paper's nine channels over a dumbbell of 3 Mbit/s to receivers at different distances.
fn dumbbell(seed: u64, receivers: usize, membership: Membership) -> Run {
    let link = |text: &str| text.parse::<LinkConfig>().expect("a valid link");
    let mut net = Network::new(seed);
    let bottleneck = link("rate=3M,delay=10ms,buffer=80p");
    let bell = topology::dumbbell(&mut net, &bottleneck, &bottleneck);
    let source = topology::add_host(&mut net, bell.left, &link("rate=100M,delay=1ms,buffer=1000p"));
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("nine rates");
    let parts = Session { ladder, packet_size: Bytes::new(1000), form: CciForm::Short, habitat: Habitat::Lab };
    let config = SessionConfig { channels: 9, form: CciForm::Short, membership };
    let session = net.add_session(source, config).expect("nine channels");
    let scheme = registry::find("avmrc").expect("AVMRC is registered");
    let lateness = Duration::from_millis(1);
    let sender = scheme.sender(&parts, &[], net.random_for("sender")).expect("defaults are valid");
    net.add_sender(session, sender, EndpointConfig { lateness, ..EndpointConfig::default() });
    let receivers = (0..receivers).map(|number| {
        let access = link(&format!("rate=100M,delay={}ms,buffer=1000p", 5 + 7 * number));
        let host = topology::add_host(&mut net, bell.right, &access);
        let receiver =
            scheme.receiver(&parts, &[], net.random_for(&format!("receiver {number}"))).expect("defaults are valid");
        let start = Time::from_millis(300 * number as u64);
        net.add_receiver(
            session,
            host,
            receiver,
            EndpointConfig { times: Times::from(start), ..EndpointConfig::default() },
        )
        .expect("a way")
    });
    let receivers = receivers.collect();
    Run { net, bottleneck: bell.forward, receivers }
}

fn trace(mut run: Run, seconds: u64) -> String {
    let mut trace = Trace::new(Vec::new());
    run.net.run_until(Time::from_secs(seconds), &mut trace);
    String::from_utf8(trace.finish().expect("memory takes everything")).expect("lines are text")
}

#[test]
fn receivers_behind_one_bottleneck_get_the_same_and_fill_it_to_the_highest_level_that_fits() {
    let mut run = dumbbell(1, 4, Membership::default());
    run.net.run_until(Time::from_secs(30), &mut ());
    let before: Vec<u64> = run.receivers.iter().map(|receiver| run.net.received(*receiver).bytes.count()).collect();
    run.net.run_until(Time::from_secs(90), &mut ());
    let rates: Vec<f64> = run
        .receivers
        .iter()
        .zip(before)
        .map(|(receiver, before)| (run.net.received(*receiver).bytes.count() - before) as f64 * 8.0 / 60.0)
        .collect();
    // Level 7 of the ladder is 2916 kbit/s; level 8 does not fit.
    for rate in rates {
        assert!((2.7e6..3.0e6).contains(&rate), "{rate} bit/s");
    }
    let counters = run.net.link_counters(run.bottleneck);
    assert!(counters.received > counters.delivered, "slow start must have gone too far for a moment: {counters:?}");
}

#[test]
fn a_run_repeats_itself_event_by_event_and_another_seed_gives_another_run() {
    let first = trace(dumbbell(7, 3, Membership::default()), 10);
    assert!(first.lines().count() > 10_000, "a run of ten seconds has events");
    assert_eq!(first, trace(dumbbell(7, 3, Membership::default()), 10));
    assert_ne!(first, trace(dumbbell(8, 3, Membership::default()), 10));
}

#[test]
fn headers_through_their_encoding_change_nothing() {
    let plain = trace(dumbbell(3, 3, Membership::default()), 20);
    let mut run = dumbbell(3, 3, Membership::default());
    run.net.send_through_the_wire(true);
    assert_eq!(plain, trace(run, 20));
}

#[test]
fn a_run_in_pieces_is_the_same_run() {
    let whole = trace(dumbbell(5, 2, Membership::default()), 8);
    let mut run = dumbbell(5, 2, Membership::default());
    let mut pieces = Trace::new(Vec::new());
    for tenths in 1..=80 {
        run.net.run_until(Time::from_millis(100 * tenths), &mut pieces);
    }
    let pieces = pieces.finish().expect("memory takes everything");
    assert_eq!(whole.as_bytes(), pieces);
}

#[test]
fn a_slow_join_delays_the_first_packet_by_its_latency() {
    let first_packet = |membership| {
        let text = trace(dumbbell(1, 1, membership), 2);
        let line = text.lines().find(|line| line.starts_with("r ")).expect("something arrives").to_owned();
        let time = line.split(' ').nth(1).expect("a time").trim_end_matches('s');
        time.parse::<f64>().expect("seconds")
    };
    let at_once = first_packet(Membership::default());
    let slow = first_packet(Membership { join_latency: Duration::from_millis(500), ..Membership::default() });
    // Bursts come every 100 ms.
    assert!((slow - at_once - 0.5).abs() < 0.11, "{at_once} and {slow}");
}

#[test]
fn after_a_leave_packets_come_for_as_long_as_the_leave_takes() {
    let flood = |leave_latency| {
        let mut run = dumbbell(1, 1, Membership { leave_latency, ..Membership::default() });
        run.net.run_until(Time::from_secs(60), &mut ());
        let counters = run.net.link_counters(run.bottleneck);
        counters.received - counters.delivered
    };
    assert!(flood(Duration::from_secs(2)) > 3 * flood(Duration::ZERO), "levels that were left kept flooding the link");
}
