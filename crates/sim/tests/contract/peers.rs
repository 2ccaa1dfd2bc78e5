//! Whom an endpoint knows by which number, who is of unverified origin, and when peers come and go.

use crate::scripted::{Scripted, Seen, link, packet, session, to_peer};
use weir_core::{Action, Destination, Event, Origin, PeerId};
use weir_sim::{EndpointConfig, Membership, Network, NodeId, Times, topology};
use weir_units::Time;

/// A node in the middle, and three behind links of 10 ms around it.
fn star() -> (Network, NodeId, [NodeId; 3]) {
    let mut net = Network::new(1);
    net.send_through_the_wire(true);
    let middle = net.add_node();
    let around = [(); 3].map(|()| topology::add_host(&mut net, middle, &link("delay=10ms")));
    (net, middle, around)
}

fn from(peer: u32, tag: u8) -> Seen {
    Seen::Packet(Origin::Peer(PeerId(peer)), packet(tag))
}

fn until(stop: u64) -> EndpointConfig {
    EndpointConfig { times: Times { start: Time::ZERO, stop: Some(Time::from_millis(stop)) }, ..Default::default() }
}

fn accepting() -> EndpointConfig {
    EndpointConfig { accepts_peers: true, ..EndpointConfig::default() }
}

fn run(mut net: Network) {
    net.run_until(Time::from_secs(5), &mut ());
}

#[test]
fn the_sender_is_a_receivers_first_peer_and_replies_to_receivers_that_it_does_not_know() {
    let (mut net, middle, around) = star();
    let id = net.add_session(middle, session(1, Membership::default())).expect("a channel");
    let replying = Scripted::default().on(|event| match event {
        Event::Packet { packet, .. } => vec![Action::send(Destination::Reply, **packet)],
        _ => vec![],
    });
    let at_sender = replying.log();
    net.add_sender(id, replying.boxed(), EndpointConfig::default());
    let logs = [1, 2].map(|tag| {
        let asking = Scripted::default().at(u64::from(tag), to_peer(0, tag));
        let log = asking.log();
        net.add_receiver(id, around[usize::from(tag)], asking.boxed(), EndpointConfig::default()).expect("a way");
        log
    });
    run(net);
    let asked = [1, 2].map(|tag| Seen::Packet(Origin::Unverified, packet(tag)));
    assert_eq!(at_sender.events(), asked);
    assert_eq!(
        logs.map(|log| log.all()),
        [1, 2].map(|tag| vec![(Time::from_millis(20 + u64::from(tag)), from(0, tag))])
    );
}

#[test]
fn an_agent_that_is_accepted_has_its_number_from_before_its_first_packet_until_its_goodbye() {
    let (mut net, middle, around) = star();
    let host = Scripted::default().at(250, to_peer(2, 9));
    let log = host.log();
    let flow = net.add_flow();
    let host = net.add_peer(middle, flow, host.boxed(), accepting());
    let callers = [1, 2, 3].map(|tag| {
        let caller = Scripted::default().at(10 * u64::from(tag), to_peer(0, tag)).at(80, to_peer(0, tag));
        let log = caller.log();
        let node = around[usize::from(tag) - 1];
        let agent = net.add_peer(node, flow, caller.boxed(), until(100 * u64::from(tag)));
        net.introduce(agent, host).expect("a way");
        (agent, log)
    });
    assert_eq!(net.introduce(host, callers[0].0), Ok(PeerId(0)), "the host knows the first of them from the start");
    run(net);
    let (up, down) = (|peer| Seen::PeerUp(PeerId(peer)), |peer| Seen::PeerDown(PeerId(peer)));
    let expected = [
        from(0, 1),
        up(1),
        from(1, 2),
        up(2),
        from(2, 3),
        from(0, 1),
        from(1, 2),
        from(2, 3),
        down(0),
        down(1),
        down(2),
    ];
    assert_eq!(log.events(), expected);
    let gone = log.all().into_iter().filter(|(_, seen)| matches!(seen, Seen::PeerDown(_)));
    assert_eq!(gone.map(|(at, _)| at).collect::<Vec<_>>(), [100, 200, 300].map(Time::from_millis));
    assert_eq!(callers.map(|(_, log)| log.packets()), [vec![], vec![], vec![(260, 9)]], "the third has number 2");
}

#[test]
fn who_accepts_nobody_sees_strangers_as_unverified_and_never_hears_of_their_end() {
    let (mut net, middle, around) = star();
    let (host, caller) = (Scripted::default(), Scripted::default().at(1, to_peer(0, 1)));
    let log = host.log();
    let flow = net.add_flow();
    let host = net.add_peer(middle, flow, host.boxed(), EndpointConfig::default());
    let caller = net.add_peer(around[0], flow, caller.boxed(), until(100));
    net.introduce(caller, host).expect("a way");
    run(net);
    assert_eq!(log.events(), [Seen::Packet(Origin::Unverified, packet(1))]);
}

#[test]
fn a_goodbye_comes_behind_all_that_was_sent_before_it() {
    let (mut net, _, around) = star();
    // Three packets of 100 bytes take 300 ms over a slow link.
    net.add_link(around[0], around[1], &link("rate=8k,delay=0ms,buffer=10p"));
    let talking = (1..=3).fold(Scripted::default(), |talking, tag| talking.at(0, to_peer(0, tag)));
    let listening = Scripted::default();
    let log = listening.log();
    let flow = net.add_flow();
    let talking = net.add_peer(around[0], flow, talking.boxed(), until(1));
    let listening = net.add_peer(around[1], flow, listening.boxed(), accepting());
    net.introduce(talking, listening).expect("a way");
    run(net);
    assert_eq!(log.events(), [Seen::PeerUp(PeerId(0)), from(0, 1), from(0, 2), from(0, 3), Seen::PeerDown(PeerId(0))]);
    assert_eq!(log.all()[3].0, Time::from_millis(300));
    assert!((300..302).contains(&(log.all()[4].0.as_micros() / 1000)));
}

#[test]
fn a_peer_from_the_configuration_that_stops_before_the_endpoint_starts_is_gone_at_its_start() {
    let (mut net, middle, around) = star();
    let late = Scripted::default();
    let log = late.log();
    let flow = net.add_flow();
    let start = EndpointConfig { times: Times::from(Time::from_secs(1)), ..EndpointConfig::default() };
    let late = net.add_peer(middle, flow, late.boxed(), start);
    let early = net.add_peer(around[0], flow, Scripted::default().boxed(), until(100));
    net.introduce(late, early).expect("a way");
    net.introduce(early, late).expect("a way");
    run(net);
    assert_eq!(log.all(), [(Time::from_secs(1), Seen::PeerDown(PeerId(0)))]);
}
