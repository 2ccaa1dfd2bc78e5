//! Round-trip probes between the two ends of a session on the loopback, and what hosts that mean no good can do with them.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::{Counting, config, session, tenant_config};
use weir_core::Observation;
use weir_core::layers::Ladder;
use weir_core::registry::Setting;
use weir_net::Description;
use weir_net::description::Control;
use weir_net::host::{Application, Delivery, Host, LinkInFront, Progress, Statistics, TenantConfig};
use weir_net::session::{self, SessionConfig};
use weir_units::{Random, Rate, Time};
use weir_wire::alc::Content;
use weir_wire::probe::{Kind, LEN, Probe};

/// A session of STAIR that answers probes at this address.
fn stair(control_address: SocketAddr, settings: &[(&str, &str)]) -> Description {
    probed("stair", control_address, settings)
}

/// The same of any scheme that probes.
fn probed(scheme: &str, control_address: SocketAddr, settings: &[(&str, &str)]) -> Description {
    let plain = session(1, true);
    let settings = settings.iter().map(|(key, value)| Setting { key: (*key).into(), value: (*value).into() });
    let control = plain.control.map(|control| Control {
        scheme: scheme.to_owned(),
        settings: settings.collect(),
        ladder: Ladder::geometric(Rate::from_mbps(1), Rate::from_mbps(2), 2.0).expect("two rates"),
        ..control
    });
    let channels = control.as_ref().and_then(|control| control.channel_rates().ok()).expect("valid settings").len();
    Description {
        channels: Description::channels_from(plain.channels[0], channels).expect("groups enough"),
        control,
        control_address: Some(control_address),
        ..plain
    }
}

/// A port of the loopback that is free at the moment.
fn free_port() -> SocketAddr {
    host().local_addr().expect("it is bound")
}

fn host() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("not zero");
    socket
}

fn send_for(description: &Description, span: Duration) -> JoinHandle<Statistics> {
    let endpoint = description
        .sender_endpoint(Random::new(1, "sender"))
        .expect("valid settings")
        .expect("it has congestion control");
    let sender = session::sender(description, endpoint, &config()).expect("a sender");
    std::thread::spawn(move || Host::run_one(sender, &mut Counting::for_all_of(span)).expect("it runs"))
}

/// What a receiver measures until it is over.
struct Watch {
    span: Duration,
    start: Option<Time>,
    round_trips: Vec<Duration>,
    delivered: u64,
}

impl Application<Content> for Watch {
    fn deliver(&mut self, _now: Time, _delivery: Delivery<'_, Content>) {
        self.delivered += 1;
    }

    fn observe(&mut self, _now: Time, observation: &Observation) {
        if let Observation::RoundTrip(round_trip) = observation {
            self.round_trips.push(*round_trip);
        }
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        let start = *self.start.get_or_insert(now);
        if now.since(start) < self.span { Progress::Continue } else { Progress::Stop }
    }
}

fn receive_for(description: &Description, span: Duration, config: &SessionConfig) -> (Watch, Statistics) {
    let endpoint = description.receiver_endpoint(Random::new(1, "receiver")).expect("valid settings");
    let receiver = session::receiver(description, endpoint, config).expect("a receiver");
    let mut watch = Watch { span, start: None, round_trips: Vec::new(), delivered: 0 };
    let statistics = Host::run_one(receiver, &mut watch).expect("it runs");
    (watch, statistics)
}

/// The answer to a message, if one comes within the time-out of `asking`.
fn ask(asking: &UdpSocket, control: SocketAddr, message: &[u8]) -> Option<(Vec<u8>, SocketAddr)> {
    asking.send_to(message, control).expect("the loopback takes it");
    let mut answer = [0; 64];
    asking.recv_from(&mut answer).ok().map(|(len, from)| (answer[..len].to_vec(), from))
}

#[test]
fn who_asks_gets_their_own_clock_back_and_nothing_else_does() {
    let control = free_port();
    let description = stair(control, &[]);
    let sending = send_for(&description, Duration::from_secs(3));
    let (asking, probe) = (host(), Probe { kind: Kind::Probe, clock_micros: 0xfeed_beef });
    let echo = Probe { kind: Kind::Echo, ..probe }.encode(description.tsi).to_vec();
    assert_eq!(ask(&asking, control, &probe.encode(description.tsi)), Some((echo, control)));

    asking.set_read_timeout(Some(Duration::from_millis(50))).expect("not zero");
    let mut strange: Vec<Vec<u8>> = (0..LEN).map(|len| probe.encode(description.tsi)[..len].to_vec()).collect();
    strange.push([&probe.encode(description.tsi)[..], &[0]].concat());
    strange.push(probe.encode(description.tsi + 1).to_vec());
    strange.push(Probe { kind: Kind::Echo, ..probe }.encode(description.tsi).to_vec());
    strange.push(vec![0xff; 1_400]);
    let count = strange.len() as u64;
    strange.iter().for_each(|message| assert_eq!(ask(&asking, control, message), None, "{message:?}"));
    let sent = sending.join().expect("no panic");
    // The endpoint is told of the probe and of the echo, which it does not answer.
    assert_eq!((sent.control_received, sent.control_sent, sent.ignored.foreign), (2, 1, count - 1));
}

#[test]
fn a_flood_of_probes_is_answered_a_hundred_times_a_second_and_data_goes_on() {
    let control = free_port();
    let description = stair(control, &[]);
    let sending = send_for(&description, Duration::from_secs(2));
    let (flooding, probe) = (host(), Probe { kind: Kind::Probe, clock_micros: 1 }.encode(description.tsi));
    for _ in 0..1_000 {
        (0..50).for_each(|_| _ = flooding.send_to(&probe, control));
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = sending.join().expect("no panic");
    assert!(sent.control_received > 5_000, "the flood must strike: {sent:?}");
    // 100 a second for two seconds, and 50 that were saved up.
    assert!((50..=250).contains(&sent.control_sent), "{sent:?}");
    // 2 Mbit/s of static layers, and four stairs that climb towards 1 Mbit/s, of which the slowest have only begun.
    let bits = sent.sent.bytes.count() * 8;
    assert!((5_000_000..9_000_000).contains(&bits), "{bits} bits in two seconds");
}

#[test]
fn a_receiver_measures_its_round_trip_by_the_kernel_s_clock() {
    assert_measures(free_port());
}

#[test]
fn probes_go_over_ipv6_too() {
    let socket = UdpSocket::bind("[::1]:0").expect("the loopback has IPv6");
    let control = socket.local_addr().expect("it is bound");
    drop(socket);
    assert_measures(control);
}

fn assert_measures(control: SocketAddr) {
    let description = stair(control, &[]);
    let sending = send_for(&description, Duration::from_secs(5));
    let (watch, statistics) = receive_for(&description, Duration::from_secs(4), &config());
    let sent = sending.join().expect("no panic");
    assert!(
        statistics.control_sent >= 2 && statistics.control_received == sent.control_sent,
        "{statistics:?} {sent:?}"
    );
    assert_eq!(watch.round_trips.len() as u64, statistics.control_received);
    // The host rests for 5 ms at a time; a busy machine may delay one or the other.
    let least = watch.round_trips.iter().min().expect("some were measured");
    assert!(*least < Duration::from_millis(3), "{:?}", watch.round_trips);
    assert!(watch.delivered > 100, "{} {statistics:?} {sent:?}", watch.delivered);
}

#[test]
fn answers_pass_the_emulated_link_as_data_does() {
    let description = stair(free_port(), &[]);
    let sending = send_for(&description, Duration::from_secs(5));
    let link = LinkInFront { config: "rate=50mbit,delay=40ms".parse().expect("a link"), seed: 1 };
    let config = SessionConfig { tenant: TenantConfig { link: Some(link), ..tenant_config() }, ..config() };
    let (watch, _) = receive_for(&description, Duration::from_secs(4), &config);
    sending.join().expect("no panic");
    assert!(!watch.round_trips.is_empty());
    assert!(watch.round_trips.iter().all(|trip| *trip >= Duration::from_millis(40)), "{:?}", watch.round_trips);
}

#[test]
fn a_receiver_hears_the_control_port_alone_and_its_own_clock_alone() {
    let (control, stranger) = (host(), host());
    let description = stair(control.local_addr().expect("it is bound"), &[]);
    let tsi = description.tsi;
    let answering = std::thread::spawn(move || {
        let mut message = [0; 64];
        let mut turns = 0;
        control.set_read_timeout(Some(Duration::from_secs(3))).expect("not zero");
        while let Ok((len, from)) = control.recv_from(&mut message) {
            let (probe, of) = Probe::decode(&message[..len]).expect("a receiver sends probes");
            assert_eq!((probe.kind, of), (Kind::Probe, tsi));
            let echo = Probe { kind: Kind::Echo, ..probe };
            stranger.send_to(&echo.encode(tsi), from).expect("the loopback takes it");
            let wrong_clock = Probe { clock_micros: probe.clock_micros.wrapping_add(1), ..echo };
            let messages =
                [&message[..len], &echo.encode(tsi)[..LEN - 1], &wrong_clock.encode(tsi), &echo.encode(tsi + 1)];
            messages.iter().for_each(|forged| _ = control.send_to(forged, from));
            turns += 1;
        }
        turns
    });
    let (watch, statistics) = receive_for(&description, Duration::from_secs(4), &config());
    let turns: u64 = answering.join().expect("no panic");
    assert!(turns >= 2 && statistics.control_sent == turns, "{turns} {statistics:?}");
    assert_eq!(watch.round_trips, [], "nothing was an answer to it");
    // The endpoint is told of the probe that comes back and of the wrong clock, and takes neither for an answer; the short
    // one and the other session's are not for it; the stranger's never arrive.
    assert_eq!((statistics.control_received, statistics.ignored.foreign), (2 * turns, 2 * turns));
}

#[test]
fn a_control_port_where_nobody_is_leaves_the_receiver_with_its_assumption() {
    let description = stair(free_port(), &[("initial_rtt", "70ms")]);
    let unanswered = Description { control_address: None, ..description.clone() };
    let sending = send_for(&unanswered, Duration::from_secs(5));
    let (watch, statistics) = receive_for(&description, Duration::from_secs(4), &config());
    sending.join().expect("no panic");
    assert!(statistics.probes_sent >= 2 && statistics.control_received == 0, "{statistics:?}");
    assert_eq!(statistics.probes_sent, statistics.control_sent, "STAIR reports nothing");
    assert!(watch.round_trips.is_empty() && watch.delivered > 100);
}

/// The other headers tell what the receiver wants; nobody answers those, so they do not tell that nobody answers.
#[test]
fn a_receiver_of_sluice_sends_more_than_its_probes() {
    let description = probed("sluice", free_port(), &[]);
    let sending = send_for(&Description { control_address: None, ..description.clone() }, Duration::from_secs(4));
    let (_, statistics) = receive_for(&description, Duration::from_secs(3), &config());
    sending.join().expect("no panic");
    assert!((1..statistics.control_sent).contains(&statistics.probes_sent), "{statistics:?}");
}

#[test]
fn probes_do_not_go_where_the_description_does_not_say() {
    let description = Description { control_address: None, ..stair(free_port(), &[]) };
    let sending = send_for(&description, Duration::from_secs(3));
    let (watch, statistics) = receive_for(&description, Duration::from_secs(2), &config());
    let sent = sending.join().expect("no panic");
    assert_eq!((sent.control_received, statistics.control_sent, statistics.control_received), (0, 0, 0));
    assert!(watch.delivered > 50);
}
