//! Receivers whose paths carry more than their hosts can work off.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::observation::LevelCause;
use weir_core::{Header, Observation};
use weir_sim::traffic::{ReaderConfig, WhenFull};
use weir_sim::{AgentId, Body, EndpointConfig, Monitor, Network, Packet};
use weir_units::{Rate, Time};

/// What came to a host, what its application kept, and how often the receiver left levels for its sake.
#[derive(Default)]
struct Seen {
    slow: Option<AgentId>,
    came: u64,
    kept: u64,
    relieved: u32,
    /// Changes of its level.
    moves: u32,
}

impl Monitor for Seen {
    fn arrive(&mut self, _now: Time, agent: AgentId, packet: &Packet) {
        let is_data = matches!(packet.body, Body::Endpoint(Header::Layered(_)));
        self.came += u64::from(self.slow == Some(agent) && is_data);
    }

    fn deliver(&mut self, _now: Time, agent: AgentId, _bytes: u64, _number: Option<u64>) {
        self.kept += u64::from(self.slow == Some(agent));
    }

    fn observe(&mut self, _now: Time, agent: AgentId, observation: &Observation) {
        let is_move = matches!(observation, Observation::Level { .. });
        self.moves += u32::from(self.slow == Some(agent) && is_move);
        let is_for_host = matches!(observation, Observation::Level { cause: LevelCause::HostDrops, .. });
        self.relieved += u32::from(self.slow == Some(agent) && is_for_host);
    }
}

/// An application that works off 20 Mbit/s, and has room for two seconds of it, behind 100 Mbit/s. Where `others` are, another receiver keeps
/// the sender at the top. Gives which part of its rate the application keeps, and which part of what comes it throws away.
fn behind_a_slow_application(others: bool) -> (f64, f64) {
    let mut net = Network::new(1);
    let (root, host, _) = super::link(&mut net, "rate=100M,delay=10ms,buffer=100p", Duration::from_millis(10));
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.15).expect("a ladder");
    let (id, session) = super::open(&mut net, root, ladder, &[]);
    let packets_per_sec = Rate::from_mbps(20).packets_per_sec(session.packet_size);
    let reader = ReaderConfig {
        capacity: (2.0 * packets_per_sec) as u64,
        when_full: WhenFull::ThrowsAway,
        gap: Duration::from_secs_f64(1.0 / packets_per_sec),
        pauses: None,
    };
    let slow =
        super::join(&mut net, id, &session, host, EndpointConfig { reader: Some(reader), ..Default::default() }, &[]);
    if others {
        super::join(&mut net, id, &session, host, EndpointConfig::default(), &[]);
    }
    let mut seen = Seen { slow: Some(slow), ..Seen::default() };
    net.run_until(Time::from_secs(60), &mut seen);
    assert!(seen.relieved > 0, "the application is never too slow");
    assert!(seen.moves < 30, "{} moves in a minute", seen.moves);
    (seen.kept as f64 / (60.0 * packets_per_sec), (seen.came - seen.kept) as f64 / seen.came as f64)
}

#[test]
fn a_receiver_takes_nine_tenths_of_what_its_application_works_off_and_nothing_is_thrown_away() {
    for others in [false, true] {
        let (kept, thrown_away) = behind_a_slow_application(others);
        assert!(kept > 0.9 && thrown_away < 0.001, "{kept} of its rate, {thrown_away} of what came, others: {others}");
    }
}
