//! Whatever an endpoint wants and cannot have is an error of its run.

use std::net::{Ipv4Addr, UdpSocket};

use crate::common::script::{Notes, at_start, datagram, numbered, script, tenant};
use crate::common::{Counting, config, session};
use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet, PeerId};
use weir_net::host::Host;
use weir_net::{Impossible, NetError};
use weir_units::Bytes;
use weir_wire::Probe;
use weir_wire::probe::Kind;

const PEER: Destination = Destination::Peer(PeerId(0));

/// How the run of a tenant ends that has one peer, and a host that is no peer has sent it a packet with `payload`.
fn outcome(endpoint: Box<dyn Endpoint>, payload: &[u8]) -> NetError {
    let (mut tenant, local) = tenant(endpoint);
    let (peer, stranger) = (socket(), socket());
    tenant.add_peer(0, peer.local_addr().expect("it is bound"));
    stranger.send_to(&datagram(1, payload), local).expect("the loopback takes it");
    Host::run_one(tenant, &mut Notes::default()).expect_err("it cannot be done")
}

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback")
}

fn assert_impossible(error: &NetError, expected: Impossible) {
    assert!(matches!(error, NetError::Impossible(found) if *found == expected), "{error} is not {expected:?}");
    assert!(error.to_string().starts_with("this is an error in Weir, please report it: the "), "{error}");
}

/// Wants this when the session starts.
fn refuses(action: Action, expected: Impossible) {
    assert_impossible(&outcome(at_start(&[action]), b""), expected);
}

/// Wants this when the packet of the stranger has come.
fn refuses_at_a_packet(action: &Action, payload: &[u8], expected: Impossible) {
    let action = action.clone();
    let endpoint = script(move |_, event, plan| {
        if matches!(event, Event::Packet { .. }) {
            plan.actions.push_back(action.clone());
        }
    });
    assert_impossible(&outcome(endpoint, payload), expected);
}

#[test]
fn to_send_to_a_peer_that_never_was() {
    let peer = PeerId(1);
    refuses(Action::send(Destination::Peer(peer), numbered(1)), Impossible::NoPeer { peer });
}

#[test]
fn to_send_to_a_channel_that_the_tenant_does_not_send_to() {
    let to = Destination::Channel(ChannelId(0));
    refuses(Action::send(to, numbered(1)), Impossible::NoOutput { to });
}

#[test]
fn to_reply_when_nobody_has_asked() {
    refuses(Action::send(Destination::Reply, numbered(1)), Impossible::NobodyToReplyTo);
}

#[test]
fn to_reply_with_more_than_was_asked() {
    let longer = Packet { size: numbered(1).size + Bytes::new(1), ..numbered(1) };
    refuses_at_a_packet(&Action::send(Destination::Reply, longer), b"", Impossible::LongReply);
}

#[test]
fn to_send_deliver_or_repeat_a_payload_that_is_not_kept() {
    let expected = Impossible::NotKept { number: 5 };
    refuses(Action::send_kept(PEER, numbered(1), 5), expected);
    refuses(Action::DeliverKept { number: 5 }, expected);
}

#[test]
fn to_take_a_payload_that_nobody_offered() {
    refuses(Action::Take { number: 1 }, Impossible::NothingOffered);
}

#[test]
fn to_take_a_payload_under_the_number_of_another() {
    let endpoint = at_start(&[Action::Take { number: 1 }, Action::Take { number: 1 }]);
    let error = Host::run_one(tenant(endpoint).0, &mut Notes::with_payloads(&[3, 3])).expect_err("it cannot be done");
    assert_impossible(&error, Impossible::IsKept { number: 1 });
}

#[test]
fn to_deliver_or_keep_the_payload_of_no_packet() {
    for action in [Action::Deliver { number: None }, Action::Keep { number: 1 }] {
        refuses(action, Impossible::NoPayload);
    }
}

/// Anybody can send a packet whose header promises a payload that does not follow.
#[test]
fn a_packet_that_ends_with_its_header_has_an_empty_payload() {
    let endpoint = script(|_, event, plan| {
        if matches!(event, Event::Packet { .. }) {
            plan.actions.extend([Action::Deliver { number: None }, Action::Keep { number: 1 }]);
            plan.actions.extend([Action::DeliverKept { number: 1 }, Action::Complete]);
        }
    });
    let (tenant, local) = tenant(endpoint);
    socket().send_to(&datagram(1, b""), local).expect("the loopback takes it");
    let mut notes = Notes::default();
    Host::run_one(tenant, &mut notes).expect("a stranger does not end a run");
    assert_eq!(notes.delivered, [b"", b""]);
}

#[test]
fn to_send_a_header_that_the_session_s_packets_do_not_carry() {
    let header = Header::Probe(Probe { kind: Kind::Probe, clock_micros: 1 });
    refuses(Action::send(PEER, Packet { header, ..numbered(1) }), Impossible::Header { header });
}

#[test]
fn to_join_or_leave_a_channel_that_the_tenant_does_not_have_or_does_not_receive_from() {
    let channel = ChannelId(9);
    for action in [Action::Join(channel), Action::Leave(channel)] {
        let error = outcome(at_start(&[action]), b"");
        assert!(matches!(error, NetError::UnknownChannel { channels: 0, .. }), "{error}");
    }
    let join = at_start(&[Action::Join(ChannelId(0))]);
    let sender = weir_net::session::sender(&session(1, true), join, &config()).expect("a sender");
    let error =
        Host::run_one(sender, &mut Counting::within(crate::common::script::PATIENCE)).expect_err("it only sends");
    assert!(matches!(error, NetError::UnknownChannel { channels: 1, .. }), "{error}");
}

#[test]
fn what_can_be_done_is_done() {
    let endpoint = script(|_, event, plan| match event {
        Event::Packet { .. } => {
            let reply = Action::send(Destination::Reply, numbered(2));
            let deliver = Action::Deliver { number: Some(1) };
            plan.actions.extend([Action::Keep { number: 1 }, deliver, Action::DeliverKept { number: 1 }, reply]);
            plan.actions.push_back(Action::Complete);
        }
        Event::Start => plan.actions.extend([Action::Take { number: 0 }, Action::send_kept(PEER, numbered(1), 0)]),
        _ => {}
    });
    let (mut tenant, local) = tenant(endpoint);
    let (peer, stranger) = (socket(), socket());
    tenant.add_peer(0, peer.local_addr().expect("it is bound"));
    stranger.send_to(&datagram(1, b"question"), local).expect("the loopback takes it");
    let mut notes = Notes::with_payloads(&[3]);
    let statistics = Host::run_one(tenant, &mut notes).expect("all of it can be done");
    assert_eq!(notes.delivered, [b"question", b"question"]);
    let mut message = [0; 100];
    assert_eq!(peer.recv(&mut message).map(|len| message[..len].to_vec()).ok(), Some(datagram(1, &[0x5a; 3])));
    assert_eq!(stranger.recv(&mut message).map(|len| message[..len].to_vec()).ok(), Some(datagram(2, b"")));
    assert_eq!((statistics.sent.packets, statistics.control_sent, statistics.delivered), (1, 1, 2));
}
