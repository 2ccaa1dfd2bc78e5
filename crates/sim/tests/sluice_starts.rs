//! What somebody's start costs the others of a sluice session: bursts for as long as there is something to look for, and never the answer
//! to losses.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session, Setting};
use weir_core::{Header, Observation};
use weir_link::LinkConfig;
use weir_sim::{AgentId, Body, EndpointConfig, LinkId, Membership, Monitor, Network, Packet, SessionConfig};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;
use weir_wire::probe::Kind;

/// When probes asked for start-up bursts, and what the receiver told.
#[derive(Default)]
struct Seen {
    asked: Vec<Time>,
    level: usize,
    loss_events: usize,
}

impl Monitor for Seen {
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
fn session(link: &str, settings: &[Setting]) -> (Network, LinkId, usize) {
    let mut net = Network::new(1);
    let (root, host) = (net.add_node(), net.add_node());
    let bottleneck = net.add_link(root, host, &link.parse::<LinkConfig>().expect("a valid link"));
    net.add_link(host, root, &LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() });
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(10), 1.5).expect("a ladder");
    let levels = ladder.levels();
    let session = Session { ladder, packet_size: Bytes::new(1456), form: CciForm::Short, habitat: Habitat::Sockets };
    let scheme = registry::find("sluice").expect("registered");
    let channels = scheme.channels(&session, settings).expect("good settings").len();
    let config = SessionConfig { channels, form: session.form, membership: Membership::default() };
    let id = net.add_session(root, config).expect("a few channels");
    let sender = scheme.sender(&session, settings, net.random_for("sender")).expect("good settings");
    net.add_sender(id, sender, EndpointConfig { accepts_peers: true, ..EndpointConfig::default() });
    let receiver = scheme.receiver(&session, &[], net.random_for("receiver")).expect("good settings");
    net.add_receiver(id, host, receiver, EndpointConfig::default()).expect("a way");
    (net, bottleneck, levels)
}

#[test]
fn who_has_the_whole_ladder_asks_for_no_more_start_up_bursts() {
    let (mut net, _, levels) = session("rate=100M,delay=10ms,buffer=100p", &[]);
    let mut seen = Seen::default();
    net.run_until(Time::from_secs(60), &mut seen);
    assert_eq!(seen.level, levels);
    assert!(seen.asked.iter().all(|at| *at < Time::from_secs(2)), "{:?}", seen.asked);
}

/// As where a stranger says once a second that he starts.
#[test]
fn start_up_bursts_without_an_end_keep_nobody_from_the_answer_to_losses() {
    let always = Setting { key: "start_up".to_owned(), value: "always".to_owned() };
    let (mut net, link, levels) = session("rate=8M,delay=10ms,buffer=100p", &[always]);
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
