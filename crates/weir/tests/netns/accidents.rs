//! What a packet can say of a session without any symbol: numbers, clocks, that it is over, and to its sender what receivers want. From a
//! stranger, under the sender's address and under his own.
//!
//! Needs root; see `weir_testkit::netns::require_root`.

use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Duration;

use weir_testkit::netns::{Air, Delivery, Network, Session, Stranger, pause, require_root};
use weir_units::{Bytes, Rate};
use weir_wire::Probe;
use weir_wire::probe::{Flooded, Starting, Wanted};

use super::{MINUTE, WEIR};

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

/// Messages to the sender's control port. Where nothing is sealed, a stranger who says again and again that the network floods has the sender
/// send little for seconds, until it hears no more of that; what he says once changes nothing. Seven sessions run side by side, so each is slow.
#[test]
fn forged_reports_of_floods_wishes_and_starts_cost_no_session_its_rate() {
    if !require_root() {
        return;
    }
    let plain: &[&str] = &[];
    let group: &[&str] = &["--authenticate", "group"];
    let attacks: [(&str, &[&str], Attack, f64); 7] = [
        ("undisturbed", plain, |_| {}, 1.0),
        ("one report of a flood", plain, |air| report(air, 1, floods), 1.5),
        ("ten reports of floods a second", plain, |air| report(air, u32::MAX, floods), 6.0),
        ("ten reports of floods a second, sealed", group, |air| report(air, u32::MAX, floods), 1.5),
        ("ten low wishes a second", plain, |air| report(air, u32::MAX, |receiver| wants(receiver, 1)), 1.5),
        ("ten leaves a second", plain, |air| report(air, u32::MAX, |receiver| wants(receiver, 0)), 1.5),
        ("ten starts a second", plain, |air| report(air, u32::MAX, starts), 1.5),
    ];
    let networks: Vec<Network> = attacks.iter().map(|_| network_of(Rate::from_mbps(8))).collect();
    let under_attack: Vec<(Delivery, Stranger)> = attacks
        .iter()
        .zip(&networks)
        .map(|((_, words, forge, _), network)| {
            let words = ["--rates", "1M..8M", "--cc", "sluice"].iter().chain(*words);
            let delivery = Delivery::start(network, Path::new(WEIR), HALF, words.copied());
            let forge = *forge;
            let stranger = Stranger::start(network.receiver(1), delivery.control(), move |air| {
                air.pause(SECOND);
                forge(air);
            });
            (delivery, stranger)
        })
        .collect();
    let mut undisturbed = None;
    let mut slow = Vec::new();
    for ((name, _, _, most), (delivery, stranger)) in attacks.iter().zip(under_attack) {
        let took = delivery.verified(0, MINUTE).seconds();
        let forged = stranger.stop();
        let times = took / *undisturbed.get_or_insert(took);
        eprintln!("{name}: {times:.2} times the undisturbed time, {forged} reports");
        assert!(forged > 0 || *name == "undisturbed", "{name} never struck");
        if times > *most {
            slow.push(format!("{name}: {times:.2} times the undisturbed time"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

fn floods(receiver: u32) -> Probe {
    Probe::flooded(Flooded { receiver, carried: Some(0.0) })
}

fn starts(receiver: u32) -> Probe {
    Probe::starting(Starting { receiver, level: Starting::MOST_LEVEL })
}

fn wants(receiver: u32, level: u16) -> Probe {
    Probe::wanted(Wanted { receiver, level, eighths: 0 })
}

/// Sends up to `reports` forged reports, ten a second.
fn report(air: &mut Air, reports: u32, forged: fn(u32) -> Probe) {
    for number in 0..reports {
        if air.is_over() {
            return;
        }
        air.say(&forged(number).encode(Session::DEFAULT.1));
        air.pause(SECOND / 10);
    }
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
    network_of(Rate::from_mbps(16))
}

/// A receiver behind a link, and a stranger.
fn network_of(link: Rate) -> Network {
    Network::new().links([link]).receivers(1).build()
}

const GROUP: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::new(239, 255, 0, 1), 5004);
const FILE: Bytes = Bytes::new(8_000_000);
const HALF: Bytes = Bytes::new(4_000_000);
const SECOND: Duration = Duration::from_secs(1);
/// On a machine that does other things at the same time.
const ROOM: f64 = 3.0;
