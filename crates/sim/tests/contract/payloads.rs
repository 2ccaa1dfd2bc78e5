//! Payloads by number: taken, kept, sent again, released and delivered; and the room for them.

use std::time::Duration;

use crate::scripted::{Given, Log, Scripted, Seen, link, packet, tag_of, to_peer};
use weir_core::{Action, Destination, Event, PeerId};
use weir_sim::traffic::{Pattern, ReaderConfig, Supply, UdpConfig, WhenFull};
use weir_sim::{AgentId, EndpointConfig, Network, Times, topology};
use weir_units::{Bytes, Rate, Time};

/// Two endpoints that know each other, 10 ms apart.
fn pair(from: Scripted, to: Scripted, at_from: EndpointConfig, at_to: EndpointConfig) -> (Network, [AgentId; 2]) {
    let mut net = Network::new(1);
    net.send_through_the_wire(true);
    let near = net.add_node();
    let far = topology::add_host(&mut net, near, &link("delay=10ms"));
    let flow = net.add_flow();
    let agents = [(near, from, at_from), (far, to, at_to)]
        .map(|(node, endpoint, config)| net.add_peer(node, flow, endpoint.boxed(), config));
    net.introduce(agents[0], agents[1]).expect("a way");
    net.introduce(agents[1], agents[0]).expect("a way");
    (net, agents)
}

fn run(net: &mut Network) -> Given {
    let mut given = Given::default();
    net.run_until(Time::from_secs(20), &mut given);
    given
}

fn supply(supply: Supply) -> EndpointConfig {
    EndpointConfig { supply: Some(supply), ..EndpointConfig::default() }
}

fn kept(number: u8) -> Action {
    Action::send_kept(Destination::Peer(PeerId(0)), packet(number), u64::from(number))
}

#[test]
fn payloads_that_are_taken_are_sent_again_and_delivered_in_order_out_of_what_the_receiver_keeps() {
    let take = |number| Action::Take { number };
    let sender = Scripted::default().at(1, take(1)).at(1, take(2)).at(1, kept(2));
    let sender =
        sender.at(100, kept(1)).at(200, kept(1)).at(300, Action::Release { below: 3 }).at(300, Action::Complete);
    // Keeps what comes, and delivers the second when the first has come.
    let receiver = Scripted::default().on(|event| match event {
        Event::Packet { packet, .. } if tag_of(packet) == 2 => vec![Action::Keep { number: 2 }],
        Event::Packet { .. } => vec![Action::Deliver { number: Some(1) }, Action::DeliverKept { number: 2 }],
        _ => vec![],
    });
    let (mut net, [from, to]) = pair(sender, receiver, supply(Supply::AtOnce(2)), EndpointConfig::default());
    let given = run(&mut net);
    assert_eq!(given.payloads, [(110, to, Some(1)), (110, to, Some(2)), (210, to, Some(1)), (210, to, Some(2))]);
    assert_eq!(given.complete, [(300, from)]);
}

#[test]
fn an_application_says_that_it_has_ended_behind_its_last_offer() {
    let source = UdpConfig { packet_size: Bytes::new(100), rate: Rate::from_kbps(80), pattern: Pattern::Constant };
    let sender = Scripted::default();
    let log = sender.log();
    let offers = supply(Supply::Payloads { source, count: Some(3) });
    let (mut net, _) = pair(sender, Scripted::default(), offers, EndpointConfig::default());
    run(&mut net);
    let offers = [0, 10, 20].map(|at| (Time::from_millis(at), Seen::Offer(1)));
    assert_eq!(log.all(), [&offers[..], &[(Time::from_millis(20), Seen::End)]].concat());
}

/// Sends `count` packets at once to an endpoint whose application reads one every 100 ms and has room for 4.
fn crowd(count: u8, receiver: Scripted) -> (Log, Given) {
    let log = receiver.log();
    let sender = (1..=count).fold(Scripted::default(), |sender, tag| sender.at(0, to_peer(0, tag)));
    let reader =
        ReaderConfig { capacity: 4, when_full: WhenFull::Refuses, gap: Duration::from_millis(100), pauses: None };
    let config = EndpointConfig { reader: Some(reader), ..EndpointConfig::default() };
    let (mut net, _) = pair(sender, receiver, EndpointConfig::default(), config);
    (log, run(&mut net))
}

#[test]
fn an_endpoint_that_heeds_the_room_of_its_application_delivers_all_that_it_keeps() {
    // Keeps everything, and delivers as far as there is room.
    let (mut came, mut next, mut room) = (0, 1, 0);
    let receiver = Scripted::default().on(move |event| {
        let mut actions = Vec::new();
        match event {
            Event::Packet { packet, .. } => {
                came += 1;
                actions.push(Action::Keep { number: u64::from(tag_of(packet)) });
            }
            Event::Room { payloads } => room = *payloads,
            _ => {}
        }
        while room > 0 && next <= came {
            actions.push(Action::DeliverKept { number: next });
            (next, room) = (next + 1, room - 1);
        }
        actions
    });
    let (log, given) = crowd(8, receiver);
    let times: Vec<(u64, Option<u64>)> = given.payloads.iter().map(|(at, _, number)| (*at, *number)).collect();
    let expected = [(10, 1), (10, 2), (10, 3), (10, 4), (10, 5), (110, 6), (210, 7), (310, 8)];
    assert_eq!(times, expected.map(|(at, number)| (at, Some(number))));
    assert_eq!(log.all()[0], (Time::ZERO, Seen::Room(4)), "an application tells its room at the start");
}

#[test]
#[should_panic(expected = "the application has no room: Deliver { number: None }")]
fn a_delivery_beyond_the_room_ends_the_run() {
    let careless = Scripted::default().on(|event| match event {
        Event::Packet { .. } => vec![Action::Deliver { number: None }],
        _ => vec![],
    });
    crowd(5, careless);
}

/// How a run ends in which an endpoint wants this after 100 ms, or with the packet that comes after 10 ms.
fn ends(at_start: &[Action], on_packet: &[Action]) -> String {
    let wanting = at_start.iter().fold(Scripted::default(), |wanting, action| wanting.at(100, action.clone()));
    let on_packet = on_packet.to_vec();
    let wanting = wanting.on(move |event| match event {
        Event::Packet { .. } => on_packet.clone(),
        _ => vec![],
    });
    let (sender, times) = (Scripted::default().at(0, to_peer(0, 1)), Times::default());
    let config = EndpointConfig { times, ..supply(Supply::AtOnce(1)) };
    let (mut net, _) = pair(sender, wanting, EndpointConfig::default(), config);
    let run = std::panic::AssertUnwindSafe(move || run(&mut net));
    let panic = std::panic::catch_unwind(run).expect_err("the run ends");
    *panic.downcast::<String>().expect("panics have messages")
}

#[test]
fn what_cannot_be_done_ends_the_run_with_agent_time_and_action() {
    let take = |number| Action::Take { number };
    let fresh = Action::send_fresh(Destination::Peer(PeerId(0)), packet(1));
    let reply = Action::send(Destination::Reply, packet(1));
    let cases: [(Vec<Action>, &str); 11] = [
        (vec![to_peer(1, 1)], "it has no such peer"),
        (vec![kept(5)], "no payload is kept under this number"),
        (vec![Action::DeliverKept { number: 5 }], "no payload is kept under this number"),
        (vec![take(1), Action::Release { below: 2 }, kept(1)], "no payload is kept under this number"),
        (vec![take(1), take(1)], "a payload is kept under this number"),
        (vec![take(1), take(2)], "the application offers nothing"),
        (vec![take(1), fresh], "the application offers nothing"),
        (vec![Action::Deliver { number: None }], "no packet is being handled"),
        (vec![Action::Keep { number: 1 }], "no packet is being handled"),
        (vec![reply.clone()], "no packet is being handled"),
        (vec![Action::Join(weir_core::ChannelId(0))], "its sessions have no such channel"),
    ];
    for (actions, why) in cases {
        let (message, last) = (ends(&actions, &[]), &actions[actions.len() - 1]);
        let expected = format!("the endpoint of agent 1 wants at 0.100000000s what cannot be done: {why}: {last:?}");
        assert_eq!(message, expected);
    }
    let at_packet = ends(&[], &[reply]);
    assert!(at_packet.contains("at 0.010000000s") && at_packet.contains("not of an unverified origin"), "{at_packet}");
}

#[test]
#[should_panic(expected = "a reply is not longer than the packet that it answers")]
fn a_reply_that_is_longer_than_its_question_ends_the_run() {
    let mut net = Network::new(1);
    let node = net.add_node();
    let flow = net.add_flow();
    let replying = Scripted::default().on(|event| match event {
        Event::Packet { packet, .. } => {
            let longer = weir_core::Packet { size: packet.size + Bytes::new(1), ..**packet };
            vec![Action::send(Destination::Reply, longer)]
        }
        _ => vec![],
    });
    let replying = net.add_peer(node, flow, replying.boxed(), EndpointConfig::default());
    let asking = net.add_peer(node, flow, Scripted::default().at(0, to_peer(0, 1)).boxed(), EndpointConfig::default());
    net.introduce(asking, replying).expect("a way");
    run(&mut net);
}
