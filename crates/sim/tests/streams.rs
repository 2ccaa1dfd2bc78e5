//! Paced streams over the simulated network: two endpoints that know each other, and an application with something to send.

use std::time::Duration;

use weir_core::{Action, Destination, Endpoint, Event, Header, Origin, Packet, PeerId};
use weir_link::LinkConfig;
use weir_sim::traffic::{Pattern, Supply, UdpConfig};
use weir_sim::{AgentId, FlowId, Monitor, Network, PacedStream, StreamConfig, Times, topology};
use weir_units::{Bytes, Ecn, Rate, Time};
use weir_wire::{Feedback, Paced};

/// Sends a packet every 10 ms while it has one, and counts the answers.
#[derive(Debug, Default)]
struct Ticking {
    next: Option<Time>,
    offered: u64,
    sequence: u16,
    out: Option<Action>,
}

/// Answers every packet.
#[derive(Debug, Default)]
struct Answering(Option<Action>);

const GAP: Duration = Duration::from_millis(10);

fn to_peer(header: Header, bytes: u64) -> Action {
    let packet = Packet { header, size: Bytes::new(bytes), ecn: Ecn::NotEct };
    Action::send_fresh(Destination::Peer(PeerId(0)), packet)
}

impl Endpoint for Ticking {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start => self.next = Some(now),
            Event::Offer { packets } => self.offered = self.offered.saturating_add(packets),
            Event::Deadline => {
                let due = self.next.filter(|at| *at <= now).expect("an endpoint is woken when it asked for it");
                self.next = Some(due + GAP);
                if self.offered > 0 {
                    self.offered -= 1;
                    self.sequence += 1;
                    self.out = Some(to_peer(Header::Paced(Paced { sequence: self.sequence, payload: None }), 100));
                }
            }
            Event::Finish => self.next = None,
            _ => {}
        }
    }

    fn poll(&mut self, _: Time) -> Option<Action> {
        self.out.take()
    }

    fn deadline(&self) -> Option<Time> {
        self.next
    }
}

impl Endpoint for Answering {
    fn handle(&mut self, _: Time, event: Event<'_>) {
        if let Event::Packet { from, packet: Packet { header: Header::Paced(paced), .. } } = event {
            assert_eq!(from, Origin::Peer(PeerId(0)), "the source is the sink's first correspondent");
            self.0 = Some(to_peer(Header::Feedback(Feedback { newest: paced.sequence, ..Feedback::default() }), 40));
        }
    }

    fn poll(&mut self, _: Time) -> Option<Action> {
        self.0.take()
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// When what reached whom.
#[derive(Default)]
struct Arrivals(Vec<(Time, AgentId, FlowId)>);

impl Monitor for Arrivals {
    fn arrive(&mut self, now: Time, agent: AgentId, packet: &weir_sim::Packet) {
        self.0.push((now, agent, packet.flow));
    }
}

/// A stream over one link of 5 ms.
fn stream(seed: u64, lateness: Duration, supply: Supply) -> (Network, PacedStream) {
    let mut net = Network::new(seed);
    let node = net.add_node();
    let far = topology::add_host(&mut net, node, &"delay=5ms".parse::<LinkConfig>().expect("a valid link"));
    let times = Times { start: Time::from_secs(1), stop: Some(Time::from_secs(3)) };
    let config = StreamConfig { times, lateness, supply };
    let ends = net.add_stream(node, far, Box::<Ticking>::default(), Box::<Answering>::default(), config);
    (net, ends.expect("there is a way"))
}

/// When packets came to the sink.
fn came(seed: u64, lateness: Duration, supply: Supply) -> Vec<Time> {
    let (mut net, ends) = stream(seed, lateness, supply);
    let mut arrivals = Arrivals::default();
    net.run_until(Time::from_secs(5), &mut arrivals);
    let at_sink = arrivals.0.iter().filter(|(_, agent, _)| *agent == ends.sink);
    let answers = arrivals.0.iter().filter(|(_, agent, _)| *agent == ends.source).count();
    assert!(arrivals.0.iter().all(|(_, _, flow)| *flow == ends.flow));
    assert_eq!(at_sink.clone().count(), answers, "every packet is answered");
    at_sink.map(|(at, _, _)| *at).collect()
}

#[test]
fn a_supply_without_end_is_sent_from_start_to_stop_and_every_packet_is_answered() {
    let times = came(1, Duration::ZERO, Supply::Endless);
    assert_eq!((times.len(), times[0], times[199]), (200, Time::from_millis(1005), Time::from_millis(2995)));
}

#[test]
fn an_application_that_has_less_to_send_limits_the_stream() {
    let payloads = |pattern| {
        let source = UdpConfig { packet_size: Bytes::new(100), rate: Rate::from_kbps(16), pattern };
        Supply::Payloads { source, count: None }
    };
    assert_eq!(came(1, Duration::ZERO, payloads(Pattern::Constant)).len(), 40, "a payload every 50 ms");
    let (on, off) = (weir_sim::traffic::Distribution::Fixed(0.2), weir_sim::traffic::Distribution::Fixed(0.8));
    assert_eq!(came(1, Duration::ZERO, payloads(Pattern::OnOff { on, off })).len(), 8, "four payloads a second");
}

#[test]
fn a_late_host_sends_each_packet_late_by_less_than_its_lateness() {
    let most = Duration::from_millis(4);
    let times = came(1, most, Supply::Endless);
    let late = |(i, at): (usize, &Time)| at.since(Time::from_millis(1005 + 10 * i as u64));
    let late: Vec<Duration> = times.iter().enumerate().map(late).collect();
    assert!(late.iter().all(|late| *late <= most));
    let mean = late.iter().sum::<Duration>() / late.len() as u32;
    assert!((1500..2500).contains(&mean.as_micros()), "uniform between nothing and 4 ms: {mean:?}");
}
