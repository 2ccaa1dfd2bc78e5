//! A session on real sockets, over the loopback: no privileges, no network.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::common::{Beacon, Counting, Ledger, config, loopback, receive, send, session, tenant_config};
use weir_net::host::{Host, TenantConfig};
use weir_net::session::{self, SessionConfig};
use weir_net::socket::{ReceiveConfig, SendConfig};
use weir_net::{Interface, InterfaceChoice};

#[test]
fn what_a_sender_sends_arrives_once_and_in_full() {
    let description = session(3, true);
    let sending = send(&description, Beacon::new(3, 50, 20), &config());
    let (ledger, statistics) = receive(&description, 0..3, &config());
    let sent = sending.join().expect("no panic");
    assert_eq!(sent.sent.packets, 3_000 + 3 * 6, "and six closing packets a channel");
    assert_eq!((statistics.received.packets, statistics.delivered, statistics.host_dropped), (3_000, 3_000, 0));
    for channel in 0..3 {
        assert_eq!(ledger.of_channel(channel), (0..1_000).collect::<Vec<_>>());
        assert_eq!(sent.channels[usize::from(channel)].packets, 1_006);
    }
    assert_eq!((ledger.wrong, ledger.problems.len(), ledger.is_closed), (0, 0, true));
    // 28 bytes of IP and UDP, 28 of ALC, 1000 of symbol; closing packets have no symbol.
    assert_eq!(statistics.received.bytes.count(), 3_000 * 1_056);
    assert_eq!(statistics.ignored.total(), 0);
}

#[test]
fn the_same_arrives_without_offload() {
    let description = session(1, true);
    let socket = SendConfig { offload: false, ..SendConfig::default() };
    let sockets = ReceiveConfig { offload: false, ..ReceiveConfig::default() };
    let config = SessionConfig { socket, tenant: TenantConfig { sockets, ..tenant_config() }, ..config() };
    let sending = send(&description, Beacon::new(1, 100, 5), &config);
    let (ledger, _) = receive(&description, [0], &config);
    assert_eq!(sending.join().expect("no panic").sent.packets, 506);
    assert_eq!(ledger.of_channel(0), (0..500).collect::<Vec<_>>());
}

#[test]
fn channels_over_several_sockets_bring_no_packet_twice() {
    let description = session(45, true);
    let sending = send(&description, Beacon::new(45, 3, 20), &config());
    let (ledger, statistics) = receive(&description, 0..45, &config());
    sending.join().expect("no panic");
    assert_eq!(statistics.received.packets, 45 * 60);
    assert!(ledger.seen.values().all(|times| *times == 1));
    assert_eq!((ledger.problems, statistics.ignored.foreign), (Vec::new(), 0));
}

#[test]
fn groups_that_only_another_program_joined_do_not_arrive() {
    let description = session(2, true);
    let other = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    let SocketAddr::V4(second) = description.channels[1] else { panic!("the session is IPv4") };
    other.join_multicast_v4(second.ip(), &Ipv4Addr::LOCALHOST).expect("a membership");
    let sending = send(&description, Beacon::new(2, 10, 10), &config());
    let (ledger, statistics) = receive(&description, [0], &config());
    let sent = sending.join().expect("no panic");
    assert_eq!(sent.channels[1].packets, 106, "the second channel was sent");
    assert_eq!((ledger.of_channel(0).len(), ledger.of_channel(1).len()), (100, 0));
    assert_eq!(statistics.ignored.foreign, 0, "the kernel kept the other group away");
}

#[test]
fn more_memberships_than_the_kernel_allows_name_the_sysctl() {
    let description = session(25, true);
    let sockets = ReceiveConfig { memberships_per_socket: 25, ..ReceiveConfig::default() };
    let limit = std::fs::read_to_string("/proc/sys/net/ipv4/igmp_max_memberships").expect("Linux has it");
    if limit.trim() != "20" {
        eprintln!("SKIPPED: this host allows {} memberships a socket", limit.trim());
        return;
    }
    let config = SessionConfig { tenant: TenantConfig { sockets, ..tenant_config() }, ..config() };
    let (ledger, statistics) = receive(&description, 0..25, &config);
    assert_eq!(statistics.failed_memberships, 5 + 5, "five joins, and the leaves of what was not joined");
    assert!(ledger.problems[0].contains("sysctl -w net.ipv4.igmp_max_memberships"), "{}", ledger.problems[0]);
}

#[test]
fn a_session_of_one_source_takes_only_that_source() {
    for (source, packets) in [(Ipv4Addr::LOCALHOST, 100), (Ipv4Addr::new(127, 0, 0, 2), 0)] {
        let description = weir_net::Description { source: Some(source.into()), ..session(2, true) };
        let sending = send(&description, Beacon::new(2, 10, 10), &config());
        let (ledger, statistics) = receive(&description, 0..2, &config());
        sending.join().expect("no panic");
        assert_eq!(ledger.of_channel(0).len(), packets, "from {source}");
        assert_eq!((ledger.problems, statistics.ignored.foreign), (Vec::new(), 0), "the kernel sorted it out");
    }
}

#[test]
fn rubbish_and_other_sessions_are_counted_and_harm_nothing() {
    let description = session(2, true);
    let other = weir_net::Description { tsi: 999, ..description.clone() };
    let sending = send(&description, Beacon::new(2, 10, 10), &config());
    let other_sending = send(&other, Beacon::new(2, 10, 10), &config());
    let rubbish = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let socket = socket2::SockRef::from(&rubbish);
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).expect("the loopback");
    let to = description.channels[0];
    let port = to.port();
    let shooting = std::thread::spawn(move || {
        while !crate::common::is_joined(port) {
            std::thread::sleep(Duration::from_millis(5));
        }
        for len in 0..100_usize {
            rubbish.send_to(&vec![0x10; len], to).expect("it is sent");
        }
        rubbish.send_to(b"not to a group", (Ipv4Addr::LOCALHOST, port)).expect("it is sent");
    });
    let (ledger, statistics) = receive(&description, 0..2, &config());
    for thread in [sending, other_sending] {
        thread.join().expect("no panic");
    }
    shooting.join().expect("no panic");
    assert_eq!((ledger.of_channel(0).len(), ledger.of_channel(1).len(), ledger.wrong), (100, 100, 0));
    assert!(statistics.ignored.foreign > 200, "the other session: {statistics:?}");
    assert!(statistics.ignored.undecodable + statistics.ignored.foreign >= 300, "{statistics:?}");
}

#[test]
fn a_session_without_congestion_control_brings_everything() {
    let description = session(2, true);
    let plain = weir_net::Description { control: None, ..description.clone() };
    let sending = send(&description, Beacon::new(2, 10, 10), &config());
    let receiver = session::receiver(&plain, None, &config()).expect("a receiver");
    let mut ledger = Ledger::new(&description);
    let statistics = Host::run_one(receiver, &mut ledger).expect("it runs");
    sending.join().expect("no panic");
    assert_eq!((statistics.delivered, ledger.seen.len()), (200, 200));
}

#[test]
fn ipv6_channels_work_where_the_host_routes_them() {
    let Some(interface) = ipv6_interface() else {
        eprintln!("SKIPPED: no interface of this host sends and receives IPv6 multicast");
        return;
    };
    let interface = InterfaceChoice::Name(interface.name);
    let own = Interface::choose(&interface, session(1, false).channels[0].ip()).expect("it was just found");
    let source = own.source_address(session(1, false).channels[0].ip()).expect("it has IPv6");
    for source in [None, Some(source), Some("2001:db8::77".parse().expect("an address"))] {
        let description = weir_net::Description { source, ..session(2, false) };
        let config = SessionConfig { interface: interface.clone(), ..config() };
        let sending = send(&description, Beacon::new(2, 10, 10), &config);
        let (ledger, statistics) = receive(&description, 0..2, &config);
        sending.join().expect("no panic");
        let expected = if source == Some("2001:db8::77".parse().expect("an address")) { 0 } else { 200 };
        assert_eq!((ledger.seen.len(), ledger.problems), (expected, Vec::new()), "source {source:?}");
        assert_eq!(statistics.received.bytes.count(), expected as u64 * 1_076);
    }
}

/// An interface over which this host gets its own IPv6 multicast.
fn ipv6_interface() -> Option<Interface> {
    let candidates = Interface::all().ok()?;
    candidates.into_iter().find(|interface| {
        let group: SocketAddr = "[ff12::77]:9".parse().expect("an address");
        interface.is_up
            && interface.source_address(group.ip()).is_ok()
            && UdpSocket::bind("[::]:0").is_ok_and(|socket| {
                let socket = socket2::SockRef::from(&socket);
                socket.set_multicast_if_v6(interface.index).is_ok()
                    && socket.join_multicast_v6(&"ff12::77".parse().expect("an address"), interface.index).is_ok()
                    && socket.send_to(b"x", &group.into()).is_ok()
            })
    })
}

#[test]
fn what_the_user_can_mend_is_said_so() {
    let description = session(1, true);
    let elsewhere = SessionConfig { interface: "wan7".parse().expect("a name"), ..config() };
    let error = session::sender(&description, Box::new(Beacon::new(1, 1, 1)), &elsewhere).expect_err("none such");
    assert!(error.to_string().starts_with(r#"there is no interface "wan7"; this host has "#), "{error}");

    let ipv6_only = session(1, false);
    let other = Interface::all().expect("a list").into_iter().find(|one| one.addresses.is_empty());
    if let Some(other) = other.filter(|other| other.is_up) {
        let config = SessionConfig { interface: InterfaceChoice::Name(other.name), ..config() };
        let error = session::receiver(&ipv6_only, None, &config).expect_err("no address");
        assert!(error.to_string().contains("has no IPv6 address"), "{error}");
    }

    let mut unicast = session(1, true);
    unicast.channels[0].set_ip(Ipv4Addr::LOCALHOST.into());
    let error = session::receiver(&unicast, None, &config()).expect_err("not a group");
    assert!(error.to_string().contains("multicast groups"), "{error}");
}

#[test]
fn a_sender_with_nothing_to_say_ends_when_told() {
    let description = session(1, true);
    let sender = session::sender(&description, Box::new(Beacon::new(1, 1, 0)), &config()).expect("a sender");
    assert_eq!(sender.local().map(|local| local.ip()), Some(Ipv4Addr::LOCALHOST.into()), "it sends from lo");
    assert!(matches!(loopback(), InterfaceChoice::Name(_)));
    let statistics = Host::run_one(sender, &mut Counting::within(Duration::from_millis(30))).expect("it runs");
    assert_eq!(statistics.refused, 0);
}
