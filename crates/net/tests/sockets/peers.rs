//! Peers last: who they are, when they come and go, and what comes from them in between.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::script::{Notes, datagram, listen, number_of, numbered, script, tenant};
use crate::common::stranger::Stranger;
use weir_core::{Action, Destination, Endpoint, Event, Origin, PeerId};
use weir_net::host::{Host, Statistics, Tenant, TenantConfig};
use weir_net::profile::ExperimentalProfile;
use weir_net::socket::UnicastSocket;
use weir_wire::rtcp;

/// What an endpoint was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Start,
    Up(u32),
    Packet(u32, u8),
    Unverified(u8),
    Down(u32),
}

/// Ends the run of a tenant that [`listener`] made.
const STOP: u8 = 255;

/// An endpoint that tells all that it is told, and sends a packet to a peer that has gone.
fn listener(tell: Sender<Told>) -> Box<dyn Endpoint> {
    script(move |_, event, plan| {
        let told = match event {
            Event::Start => Told::Start,
            Event::PeerUp(PeerId(peer)) => Told::Up(peer),
            Event::PeerDown(peer) => {
                plan.actions.push_back(Action::send(Destination::Peer(peer), numbered(1)));
                Told::Down(peer.0)
            }
            Event::Packet { packet, .. } if number_of(packet) == STOP => {
                return plan.actions.push_back(Action::Complete);
            }
            Event::Packet { from: Origin::Peer(PeerId(peer)), packet } => Told::Packet(peer, number_of(packet)),
            Event::Packet { packet, .. } => Told::Unverified(number_of(packet)),
            _ => return,
        };
        tell.send(told).expect("the test listens");
    })
}

/// A tenant that takes up to four peers, in a thread of its own.
struct Server {
    port: u16,
    told: Receiver<Told>,
    thread: JoinHandle<Statistics>,
}

impl Server {
    fn new(silence: Duration) -> Server {
        let (tell, told) = channel();
        let config = TenantConfig { silence, ..crate::common::tenant_config() };
        let mut tenant = Tenant::new(&config).with_endpoint(listener(tell));
        let port = listen(&mut tenant).port();
        tenant.admit([9; 32], 4);
        let thread = std::thread::spawn(move || Host::run_one(tenant, &mut Notes::default()).expect("it runs"));
        Server { port, told, thread }
    }

    /// Somebody who has become a peer.
    fn client(&self, ssrc: u32) -> Stranger {
        let mut client = Stranger::new(self.port);
        client.ssrc = ssrc;
        client.meet();
        client
    }

    /// Ends it: all that its endpoint was told, and its account.
    fn stop(self) -> (Vec<Told>, Statistics) {
        Stranger::new(self.port).send(&datagram(STOP, b""));
        let statistics = self.thread.join().expect("no panic");
        (self.told.iter().collect(), statistics)
    }
}

#[test]
fn a_peer_keeps_its_name_and_the_next_client_gets_the_next() {
    let server = Server::new(Duration::from_secs(10));
    let first = server.client(1);
    first.send(&datagram(10, b""));
    let second = server.client(2);
    second.send(&datagram(20, b""));
    first.send(&datagram(11, b""));
    second.say_bye(second.ssrc);
    // The goodbye is answered, so what follows comes later.
    assert!(second.receive().is_some_and(|answer| rtcp::is_rtcp(&answer)));
    second.send(&datagram(21, b""));
    first.send(&datagram(12, b""));
    let third = server.client(3);
    third.send(&datagram(30, b""));
    let (told, statistics) = server.stop();
    let (up, packet) = ([Told::Up(0), Told::Up(1), Told::Up(2)], Told::Packet);
    let expected = [Told::Start, up[0], packet(0, 10), up[1], packet(1, 20), packet(0, 11), Told::Down(1)];
    assert_eq!(told[..7], expected);
    assert_eq!(told[7..], [Told::Unverified(21), packet(0, 12), up[2], packet(2, 30)]);
    assert_eq!((statistics.peers, statistics.refused), (3, 1), "what was sent to the departed peer went nowhere");
}

#[test]
fn a_peer_that_stays_is_known_by_the_same_numbers_after_another_has_left() {
    let server = Server::new(Duration::from_secs(10));
    let mut stays = Stranger::new(server.port);
    let start = stays.start();
    let alive = stays.receive().expect("an answer");
    let leaves = server.client(2);
    leaves.say_bye(leaves.ssrc);
    assert!(leaves.receive().is_some(), "the goodbye is answered");
    stays.send(&start.encode());
    assert_eq!(stays.receive(), Some(alive));
    server.stop();
}

#[test]
fn a_peer_that_falls_silent_is_gone_and_nothing_more_comes_from_it_or_goes_to_it() {
    let server = Server::new(Duration::from_millis(300));
    let client = server.client(1);
    client.send(&datagram(10, b""));
    // The first thing that comes is the goodbye, said while the server waits for an answer to it.
    let goodbye = std::iter::repeat_with(|| client.receive()).take(10).flatten().next().expect("a goodbye");
    assert!(rtcp::is_rtcp(&goodbye), "{goodbye:?}");
    client.send(&datagram(11, b""));
    let (told, statistics) = server.stop();
    let told: Vec<Told> = told.into_iter().filter(|told| *told != Told::Unverified(11)).collect();
    assert_eq!(told, [Told::Start, Told::Up(0), Told::Packet(0, 10), Told::Down(0)]);
    assert_eq!(statistics.refused, 1, "what was sent to the departed peer went nowhere");
}

#[test]
fn a_client_that_came_before_the_session_started_is_told_when_it_does() {
    // The tenant waits for a server that is not there yet.
    let socket = UnicastSocket::listen((std::net::Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    let at = socket.local();
    let (tell, told) = channel();
    let (mut waiting, local) = tenant(listener(tell));
    waiting.admit([9; 32], 4);
    waiting.add_contact(0, at, 77);
    let thread = std::thread::spawn(move || Host::run_one(waiting, &mut Notes::default()).expect("it runs"));
    let mut client = Stranger::new(local.port());
    client.meet();
    client.send(&datagram(10, b""));
    let mut server: Tenant<ExperimentalProfile> =
        Tenant::new(&crate::common::tenant_config()).with_endpoint(script(|_, event, plan| {
            if matches!(event, Event::PeerUp(_)) {
                plan.actions.push_back(Action::Complete);
            }
        }));
    server.add_unicast_session(ExperimentalProfile { tsi: crate::common::script::TSI });
    server.add_unicast(socket).expect("a session");
    server.admit([8; 32], 1);
    Host::run_one(server, &mut Notes::default()).expect("it runs");
    client.send(&datagram(11, b""));
    Stranger::new(local.port()).send(&datagram(STOP, b""));
    thread.join().expect("no panic");
    let told: Vec<Told> = told.iter().filter(|told| *told != Told::Down(0)).collect();
    assert_eq!(told, [Told::Start, Told::Up(1), Told::Packet(1, 11)], "10 came before the session");
}
