//! What a packet can say of a session without any symbol: numbers, clocks and that it is over. From a stranger, under the sender's
//! address and under his own.
//!
//! Needs root; see `weir_testkit::netns::require_root`.

use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Duration;

use weir_testkit::netns::{Air, Delivery, Network, Stranger, pause, require_root};
use weir_units::{Bytes, Rate};

/// All sessions run side by side, each on a network of its own, so that the undisturbed one has the same machine.
#[test]
fn forged_numbers_and_clocks_cost_no_session_its_rate() {
    if !require_root() {
        return;
    }
    let attacks: [(&str, &str, Attack); 5] = [
        ("undisturbed", "avmrc", |_| {}),
        ("two forged numbers a second", "avmrc", |air| displace(air, 500, 0, SECOND / 2)),
        ("two forged numbers a second", "sluice", |air| displace(air, 500, 0, SECOND / 2)),
        ("a clock 9 s ahead each second", "avmrc", |air| displace(air, 1, 9_000_000, SECOND)),
        ("a clock 9 s ahead each second", "sluice", |air| displace(air, 1, 9_000_000, SECOND)),
    ];
    let networks: Vec<Network> = attacks.iter().map(|_| network()).collect();
    let under_attack: Vec<(Stranger, Delivery)> = attacks
        .iter()
        .zip(&networks)
        .map(|((_, scheme, attack), network)| {
            let stranger = Stranger::start(network.receiver(1), GROUP, *attack);
            let words = ["--rates", "2M..16M", "--cc", *scheme];
            (stranger, Delivery::start(network, Path::new(WEIR), FILE, words))
        })
        .collect();
    let mut plain = None;
    for ((name, scheme, _), (stranger, delivery)) in attacks.iter().zip(under_attack) {
        let done = delivery.verified(0, MINUTE);
        let forged = stranger.stop();
        let (took, received, lost) = (done.seconds(), done.count("received_packets"), done.count("lost_packets"));
        let times = took / *plain.get_or_insert(took);
        eprintln!(
            "{name} ({scheme}): {times:.2} times the undisturbed time, {forged} forged; {lost} packets lost, {received} received"
        );
        assert!(forged > 0 || *name == "undisturbed", "{name} never struck");
        assert!(lost * 10 <= received, "{name} ({scheme}): {lost} packets lost and {received} received");
        assert!(times <= 1.5 * ROOM, "{name} ({scheme}): {times:.2} times the undisturbed time");
    }
}

/// Review §4.6: one packet says that the session is over, and goes on being wrong.
#[test]
fn a_session_that_somebody_else_has_closed_goes_on_after_a_pause() {
    if !require_root() {
        return;
    }
    let network = network();
    let stranger = Stranger::start(network.receiver(1), GROUP, |air| {
        if let Some(heard) = air.hear_symbol(|_| true) {
            air.say_as(heard.from(), &heard.closing());
        }
    });
    let delivery = Delivery::start(&network, Path::new(WEIR), FILE, ["--rates", "2M..16M"]);
    assert_eq!(stranger.done(), 1);
    assert!(weir_testkit::netns::eventually(MINUTE, || delivery.received_bytes(0) > 0), "data comes after it");
    delivery.sender.suspend();
    // A receiver takes a session for over that was closed and is silent for ten seconds.
    pause(Duration::from_secs(12));
    assert!(!delivery.receivers[0].has_ended(), "{}", delivery.receivers[0].wait(MINUTE).told());
    delivery.sender.resume();
    delivery.verified(0, MINUTE);
}

#[test]
fn what_comes_under_another_address_than_the_sender_s_is_not_taken() {
    if !require_root() {
        return;
    }
    let network = network();
    let stranger = Stranger::start(network.receiver(1), GROUP, |air| {
        while let Some(heard) = air.hear_symbol(|_| true) {
            air.say(&heard.displaced(7, 9_000_000));
            air.say(&heard.closing());
            air.pause(Duration::from_millis(20));
        }
    });
    let delivery = Delivery::start(&network, Path::new(WEIR), FILE, ["--rates", "2M..16M"]);
    let description = std::fs::read_to_string(delivery.description()).expect("it was described");
    assert!(!description.contains("source-filter") && description.contains("weir-control"), "{description}");
    let done = delivery.verified(0, MINUTE);
    let (forged, ignored) = (stranger.stop(), done.count("ignored_packets"));
    eprintln!("{ignored} of {forged} packets were ignored");
    assert!(ignored > 10 && ignored <= forged, "{ignored} of {forged}");
}

/// What a stranger does.
type Attack = fn(&mut Air);

/// Sends packets that it hears again under the sender's address, with other numbers and clocks.
fn displace(air: &mut Air, ahead: u32, clock_micros: i64, each: Duration) {
    while let Some(heard) = air.hear_last_symbol(|content| content.toi != 0) {
        air.say_as(heard.from(), &heard.displaced(ahead, clock_micros));
        air.pause(each);
    }
}

/// A receiver behind 16 Mbit/s, and next to it the host of a stranger.
fn network() -> Network {
    Network::new().links([Rate::from_mbps(16)]).receivers(1).build()
}

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const GROUP: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::new(239, 255, 0, 1), 5004);
const FILE: Bytes = Bytes::new(8_000_000);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// On a machine that does other things at the same time.
const ROOM: f64 = 3.0;
