//! What is said of a packet besides its header: congestion marks, pairs, arrival times, lengths.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::common::script::{Notes, Plan, TSI, datagram, number_of, numbered, script, tenant};
use crate::common::{Counting, Ledger, config, is_joined, loopback, session};
use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet, Payload, PeerId};
use weir_net::host::{Host, Statistics, Tenant};
use weir_net::profile::{AlcProfile, ExperimentalProfile, Profile};
use weir_net::{Impossible, Interface, NetError};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::Layered;

const CHANNEL: ChannelId = ChannelId(0);
const PEER: Destination = Destination::Peer(PeerId(0));

#[test]
fn marks_of_a_layered_session_arrive_at_the_endpoint() {
    let description = session(1, true);
    let port = description.channels[0].port();
    let marks = [Ecn::NotEct, Ecn::Ect, Ecn::Ce];
    let sending = script(move |now, event, plan| match event {
        Event::Deadline if is_joined(port) => {
            for (sequence, ecn) in (0..).zip(marks) {
                let header = Header::Layered(Layered { sequence, ..Layered::default() });
                let packet = Packet { header, size: Bytes::new(1_056), ecn };
                plan.actions.push_back(Action::send_fresh(Destination::Channel(CHANNEL), packet));
            }
        }
        Event::Start | Event::Deadline => plan.due = Some(now + Duration::from_millis(5)),
        _ => {}
    });
    let (tell, told) = channel();
    let receiving = script(move |_, event, plan| match event {
        Event::Start => plan.actions.push_back(Action::Join(CHANNEL)),
        Event::Packet { packet, .. } => tell.send(packet.ecn).expect("the test listens"),
        _ => {}
    });
    let sender = weir_net::session::sender(&description, sending, &config()).expect("a sender");
    let receiver = weir_net::session::receiver(&description, Some(receiving), &config()).expect("a receiver");
    let (mut counting, mut ledger) = (Counting::within(crate::common::script::PATIENCE), Ledger::new(&description));
    let mut host = Host::new();
    host.add(sender, &mut counting);
    host.add(receiver, &mut ledger);
    let outcomes: Vec<Statistics> = host.run().into_iter().map(|outcome| outcome.expect("it runs")).collect();
    assert_eq!(told.iter().collect::<Vec<_>>(), marks);
    assert_eq!(outcomes[1].marked, 1, "only a router's mark counts");
}

/// The account of a tenant that does this once another listens, and when its packets arrived there.
fn sent(actions: Vec<Action>, payloads: &[usize]) -> (Statistics, Vec<(u8, Time)>) {
    let packets = actions.len();
    let sending = script(move |now, event, plan| match event {
        Event::Start => plan.due = Some(now + Duration::from_millis(5)),
        Event::Deadline => plan.actions.extend(actions.iter().cloned().chain([Action::Complete])),
        _ => {}
    });
    let (tell, told) = channel();
    let arrivals = script(move |now, event, plan: &mut Plan| {
        if let Event::Packet { packet, .. } = event {
            tell.send((number_of(packet), now)).expect("the test listens");
            plan.due = Some(now + Duration::from_millis(20));
        } else if event == Event::Deadline {
            plan.actions.push_back(Action::Complete);
        }
    });
    let (mut receiver, to) = tenant(arrivals);
    let (mut sender, from) = tenant(sending);
    sender.add_peer(0, to);
    receiver.add_peer(0, from);
    let (mut source, mut sink) = (Notes::with_payloads(payloads), Notes::default());
    let mut host = Host::new();
    host.add(sender, &mut source);
    host.add(receiver, &mut sink);
    let statistics = host.run().swap_remove(0).expect("it runs");
    (statistics, all(&told, packets))
}

fn all<T>(told: &Receiver<T>, count: usize) -> Vec<T> {
    let all: Vec<T> = told.try_iter().collect();
    assert_eq!(all.len(), count);
    all
}

fn with_next(number: u8) -> Action {
    Action::Send { to: PEER, packet: numbered(number), payload: Payload::Fresh, with_next: true }
}

fn alone(number: u8) -> Action {
    Action::send_fresh(PEER, numbered(number))
}

#[test]
fn a_pair_goes_out_in_one_system_call_of_its_own_and_each_packet_has_its_own_arrival_time() {
    let (statistics, arrivals) = sent(vec![alone(0), with_next(1), alone(2)], &[500; 3]);
    assert_eq!((statistics.sent.packets, statistics.batches), (3, 2), "the packet before the pair goes first");
    let numbers: Vec<u8> = arrivals.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert!(arrivals.windows(2).all(|pair| pair[0].1 < pair[1].1), "{arrivals:?}");
}

#[test]
fn each_pair_of_several_has_a_system_call_of_its_own() {
    let pairs = vec![with_next(0), alone(1), with_next(2), alone(3)];
    let (statistics, _) = sent(pairs, &[500; 4]);
    assert_eq!((statistics.sent.packets, statistics.batches), (4, 2));
}

#[test]
fn what_is_due_together_goes_out_in_one_system_call() {
    let (statistics, _) = sent(vec![alone(0), alone(1), alone(2)], &[500; 3]);
    assert_eq!((statistics.sent.packets, statistics.batches), (3, 1));
    assert_eq!(statistics.sent.bytes.count(), 3 * (28 + 24 + 500));
    assert_eq!(statistics.sent_payload.count(), 3 * 500);
}

#[test]
fn data_and_headers_without_payload_are_counted_apart_though_they_go_together() {
    let header = Action::send(PEER, numbered(1));
    let (statistics, _) = sent(vec![alone(0), header.clone(), header, alone(2)], &[500, 500]);
    assert_eq!((statistics.sent.packets, statistics.control_sent), (2, 2));
    assert_eq!(statistics.sent_payload.count(), 1_000);
}

#[test]
fn packets_that_need_their_own_times_never_come_in_one_read_whatever_the_configuration_says() {
    let offers_offload = crate::common::tenant_config();
    assert!(offers_offload.sockets.offload);
    let interface = Interface::choose(&loopback(), Ipv4Addr::new(239, 0, 0, 1).into()).expect("the loopback");
    let channels = &session(1, true).channels;
    let mut coalescing = Tenant::new(&offers_offload);
    coalescing.add_session(AlcProfile::new(1, None), &interface, channels, None, true, None).expect("a socket");
    let mut apart = Tenant::new(&offers_offload);
    let profile = ExperimentalProfile { tsi: TSI };
    assert!(!profile.handling().coalesces);
    apart.add_session(profile, &interface, channels, None, true, None).expect("a socket");
    assert_eq!((coalescing.capabilities().offload, apart.capabilities().offload), (true, false));
}

/// How a run ends whose endpoint answers a stranger's packet, with a header and one fresh payload, as if it had `size`.
fn answered(size: Bytes, payload: usize, question: &[u8]) -> (Result<Statistics, NetError>, UdpSocket) {
    let endpoint: Box<dyn Endpoint> = script(move |_, event, plan| {
        if matches!(event, Event::Packet { .. }) {
            let packet = Packet { size, ..numbered(2) };
            plan.actions.extend([Action::send_fresh(Destination::Reply, packet), Action::Complete]);
        }
    });
    let (tenant, local) = tenant(endpoint);
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    stranger.set_read_timeout(Some(Duration::from_millis(200))).expect("not zero");
    stranger.send_to(question, local).expect("the loopback takes it");
    (Host::run_one(tenant, &mut Notes::with_payloads(&[payload])), stranger)
}

#[test]
fn a_reply_longer_than_its_question_is_refused_whatever_the_endpoint_says_of_its_size() {
    let question = datagram(1, &[0; 50]);
    let size = numbered(1).size + Bytes::new(50);
    let mut message = [0; 100];
    let (outcome, stranger) = answered(size, 50, &question);
    assert!(outcome.is_ok() && stranger.recv(&mut message).is_ok_and(|len| len == question.len()));
    for (size, payload) in [(size + Bytes::new(1), 50), (size, 51), (Bytes::ZERO, 51)] {
        let (outcome, stranger) = answered(size, payload, &question);
        assert!(matches!(outcome, Err(NetError::Impossible(Impossible::LongReply))), "{outcome:?}");
        assert!(stranger.recv(&mut message).is_err(), "nothing was sent");
    }
}
