//! Who may send to a channel, which way its packets go, and by which numbers endpoints know channels.

use std::time::Duration;

use crate::scripted::{Log, Scripted, Seen, link, packet, session, tag_of, to_channel};
use weir_core::{Action, ChannelId, Destination, Header, Origin, Packet};
use weir_sim::{AgentId, Body, EndpointConfig, LinkId, Membership, Monitor, Network, NodeId, SessionId, topology};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::Layered;

fn joins(channel: u16) -> Scripted {
    Scripted::default().at(0, Action::Join(ChannelId(channel)))
}

fn receive(net: &mut Network, id: SessionId, node: NodeId, endpoint: Scripted) -> (AgentId, Log) {
    let log = endpoint.log();
    let agent = net.add_receiver(id, node, endpoint.boxed(), EndpointConfig::default()).expect("a way");
    (agent, log)
}

/// A root and two hosts, all 10 ms from a router; the hosts are also joined by a link of 1 ms.
fn triangle(membership: Membership) -> (Network, SessionId, [NodeId; 3]) {
    let mut net = Network::new(1);
    net.send_through_the_wire(true);
    let router = net.add_node();
    let hosts = [(); 3].map(|()| topology::add_host(&mut net, router, &link("delay=10ms")));
    net.connect(hosts[1], hosts[2], &link("delay=1ms"), &link("delay=1ms"));
    let id = net.add_session(hosts[0], session(2, membership)).expect("two channels");
    (net, id, hosts)
}

#[test]
fn a_member_sends_to_a_channel_over_its_own_shortest_routes_and_not_to_itself() {
    let (mut net, id, hosts) = triangle(Membership::default());
    let sender = Scripted::default().at(0, Action::Join(ChannelId(1))).at(100, to_channel(1, 7));
    let at_root = sender.log();
    let root = net.add_sender(id, sender.boxed(), EndpointConfig::default());
    assert_eq!(net.attach(root, id), Ok(ChannelId(0)), "a sender that is to join channels");
    let (_, sending) = receive(&mut net, id, hosts[1], joins(1).at(200, to_channel(1, 8)));
    let (_, neighbour) = receive(&mut net, id, hosts[2], joins(1));
    let (_, elsewhere) = receive(&mut net, id, hosts[2], joins(0));
    net.run_until(Time::from_secs(1), &mut ());
    assert_eq!(at_root.packets(), [(220, 8)]);
    assert_eq!(sending.packets(), [(120, 7)]);
    assert_eq!(neighbour.packets(), [(120, 7), (201, 8)], "the link between the two hosts is the shortest route");
    assert_eq!(elsewhere.packets(), [], "it is a member of another channel");
}

#[test]
fn joins_and_leaves_take_as_long_in_the_tree_of_a_member_as_in_that_of_the_root() {
    let millis = Duration::from_millis;
    let membership =
        Membership { join_latency: millis(100), leave_latency: millis(300), hop_latency: millis(5), stragglers: true };
    let (mut net, id, hosts) = triangle(membership);
    // Both send every 10 ms, from 7 ms on.
    let sending =
        |tag: u8| (0..200).fold(Scripted::default(), |endpoint, tenth| endpoint.at(10 * tenth + 7, to_channel(0, tag)));
    net.add_sender(id, sending(1).boxed(), EndpointConfig::default());
    receive(&mut net, id, hosts[1], sending(2));
    let member = Scripted::default().at(500, Action::Join(ChannelId(0))).at(1000, Action::Leave(ChannelId(0)));
    let (_, log) = receive(&mut net, id, hosts[2], member);
    net.run_until(Time::from_secs(3), &mut ());
    let span = |tag: u8| {
        let times: Vec<u64> = log.packets().into_iter().filter(|(_, of)| *of == tag).map(|(at, _)| at).collect();
        (times[0], times[times.len() - 1])
    };
    // Joined at 500: 100 ms to the router and 5 ms to the root; left at 1000: 300 ms to the router. From the root 20 ms.
    assert_eq!(span(1), (627, 1307));
    // The member's first router is the sender's host itself, 1 ms away.
    assert_eq!(span(2), (608, 1298));
}

#[test]
fn a_join_that_no_router_has_heard_of_is_not_in_effect_in_a_tree_that_is_made_meanwhile() {
    let membership = Membership { join_latency: Duration::from_millis(500), ..Membership::default() };
    let (mut net, id, hosts) = triangle(membership);
    let sending = (1..100).fold(Scripted::default(), |endpoint, tenth| endpoint.at(10 * tenth, to_channel(0, 1)));
    receive(&mut net, id, hosts[1], sending);
    let leaving = joins(0).at(800, Action::Leave(ChannelId(0)));
    let (_, log) = receive(&mut net, id, hosts[2], leaving);
    net.run_until(Time::from_secs(2), &mut ());
    let packets = log.packets();
    assert_eq!((packets[0].0, packets[packets.len() - 1].0), (511, 791), "the tree was made at 10 ms");
}

#[test]
fn an_endpoint_of_two_sessions_knows_their_channels_by_consecutive_numbers() {
    let mut net = Network::new(1);
    net.send_through_the_wire(true);
    let (near, far) = (net.add_node(), net.add_node());
    net.connect(near, far, &link("delay=10ms"), &link("delay=10ms"));
    let ids = [2, 3].map(|channels| net.add_session(near, session(channels, Membership::default())).expect("channels"));
    for (number, id) in ids.into_iter().enumerate() {
        let everywhere = (0..2).fold(Scripted::default(), |sender, channel| {
            sender.at(100, to_channel(channel, 10 * number as u8 + channel as u8))
        });
        net.add_sender(id, everywhere.boxed(), EndpointConfig::default());
    }
    let manager = joins(1).at(0, Action::Join(ChannelId(2))).at(200, to_channel(3, 77));
    let (agent, log) = receive(&mut net, ids[0], far, manager);
    assert_eq!((net.attach(agent, ids[1]), net.attach(agent, ids[1])), (Ok(ChannelId(2)), Ok(ChannelId(2))));
    let (_, other) = receive(&mut net, ids[1], far, joins(1));
    net.run_until(Time::from_secs(1), &mut ());
    let from = |channel, tag| Seen::Packet(Origin::Channel(ChannelId(channel)), packet(tag));
    assert_eq!(log.events(), [from(1, 1), from(2, 10)]);
    assert_eq!(other.packets(), [(110, 11), (200, 77)], "channel 3 of the manager is channel 1 of the second session");
}

#[test]
fn a_congestion_mark_on_a_layered_packet_reaches_the_endpoint() {
    let mut net = Network::new(1);
    net.send_through_the_wire(true);
    let (near, far) = (net.add_node(), net.add_node());
    net.add_link(near, far, &link("rate=100k,buffer=100p,queue=codel(ecn=yes)"));
    let id = net.add_session(near, session(1, Membership::default())).expect("a channel");
    // 160 kbit/s over 100.
    let sending = (0..200).fold(Scripted::default(), |sender, number| {
        let header = Header::Layered(Layered { sequence: number, ..Layered::default() });
        let packet = Packet { header, size: Bytes::new(200), ecn: Ecn::Ect };
        sender.at(10 + 10 * u64::from(number), Action::send_fresh(Destination::Channel(ChannelId(0)), packet))
    });
    net.add_sender(id, sending.boxed(), EndpointConfig::default());
    let (_, log) = receive(&mut net, id, far, joins(0));
    net.run_until(Time::from_secs(5), &mut ());
    let marks = |mark| {
        let is_so = |seen: &Seen| matches!(seen, Seen::Packet(_, packet) if packet.ecn == mark);
        log.events().into_iter().filter(is_so).count()
    };
    assert!(marks(Ecn::Ce) > 50 && marks(Ecn::Ect) > 50, "{} and {}", marks(Ecn::Ce), marks(Ecn::Ect));
    assert_eq!(marks(Ecn::Ce) + marks(Ecn::Ect), 200, "a queue that marks drops none");
}

/// The tags of packets in the order in which they come to links, the first two times 10, from 10 ms on.
#[derive(Default)]
struct Entering(Vec<(LinkId, Time, u8)>);

impl Monitor for Entering {
    fn enqueue(&mut self, now: Time, link: LinkId, packet: &weir_sim::Packet) {
        if let Body::Endpoint(header) = packet.body {
            let packet = Packet { header, size: packet.size, ecn: packet.ecn };
            self.0.push((link, now, tag_of(&packet)));
        }
    }
}

#[test]
fn two_packets_sent_as_a_pair_enter_the_first_link_back_to_back() {
    let mut net = Network::new(1);
    let (near, far) = (net.add_node(), net.add_node());
    let first = net.add_link(near, far, &link("rate=1M,buffer=100p"));
    for number in 0..3 {
        let id = net.add_session(near, session(1, Membership::default())).expect("a channel");
        let pair = |tag: u8, with_next| match to_channel(0, tag) {
            Action::Send { to, packet, payload, .. } => Action::Send { to, packet, payload, with_next },
            other => other,
        };
        let sender = Scripted::default().at(10, pair(2 * number, true)).at(10, pair(2 * number + 1, false));
        net.add_sender(id, sender.boxed(), EndpointConfig::default());
        receive(&mut net, id, far, joins(0));
    }
    let mut entering = Entering::default();
    net.run_until(Time::from_secs(1), &mut entering);
    assert_eq!(entering.0, [0, 1, 2, 3, 4, 5].map(|tag| (first, Time::from_millis(10), tag)));
}
