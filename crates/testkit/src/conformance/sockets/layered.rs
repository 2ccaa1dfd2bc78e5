//! A layered session on real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::time::Duration;

use weir_core::Observation;
use weir_net::clock::Clock;
use weir_net::description::{Control, Description};
use weir_net::receiver::{Application, LinkInFront, Receiver, ReceiverConfig, ReceiverStatistics};
use weir_net::sender::{Payload, Sender, SenderApplication, SenderConfig, SenderStatistics};
use weir_net::{InterfaceChoice, NetError};
use weir_units::Time;
use weir_wire::alc::Content;
use weir_wire::fec::{PayloadId, RAPTORQ};

use super::{Parties, TICK, Times, go_first, wait_until};
use crate::conformance::{Case, Host, PACKET_SIZE, Record, session};
use crate::netns::Network;

/// Starts the session's sender, and a receiver on every host.
pub(super) fn start(case: &Case, ladder_kbps: (u64, u64), network: &Network, times: Times) -> Parties {
    let description = describe(case, ladder_kbps, network);
    let receivers = case.scenario.hosts.iter().enumerate().map(|(index, host)| {
        let (description, host) = (description.clone(), *host);
        network.receiver(index).spawn(move || receive(&description, &host, times))
    });
    let hosts = receivers.collect();
    Parties { sender: network.sender().spawn(move || send(&description, times)), hosts }
}

fn describe(case: &Case, ladder_kbps: (u64, u64), network: &Network) -> Description {
    let session = session(ladder_kbps);
    let channels = case.scheme.channels(&session, &[]).expect("defaults are valid").len();
    let probe = SocketAddr::new(network.sender().ipv4().into(), 5005);
    let base = SocketAddr::new(Ipv4Addr::new(239, 255, 0, 1).into(), 5004);
    Description {
        name: case.scenario.name.to_owned(),
        tsi: 7,
        flute_version: 2,
        source: None,
        channels: Description::channels_from(base, channels).expect("there are groups enough"),
        ttl: 1,
        control: Some(Control {
            scheme: case.scheme.name.to_owned(),
            settings: Vec::new(),
            ladder: session.ladder,
            form: session.form,
            packet_size: session.packet_size,
        }),
        symbol_size: None,
        public_key: None,
        receipt: None,
        probe: case.scheme.probes().then_some(probe),
    }
}

/// Runs the sender; how late it was at worst.
fn send(description: &Description, times: Times) -> Duration {
    go_first();
    let endpoint = description.sender_endpoint().expect("defaults are valid").expect("it has congestion control");
    let config = SenderConfig { interface: interface(), tick: TICK, ..SenderConfig::default() };
    let sender = Sender::new(description, endpoint, &config).expect("a sender's socket");
    wait_until(times.zero);
    let statistics = sender.run(&mut Filler::new(description), &mut Until(times.end));
    statistics.expect("the sender runs to the end").worst_lateness
}

/// Runs a receiver; what became of it, and how late it was at worst.
fn receive(description: &Description, host: &Host, times: Times) -> (Record, Duration) {
    go_first();
    let endpoint = description.receiver_endpoint().expect("defaults are valid");
    let link = host.path().map(|config| LinkInFront { config, seed: 1 });
    let config = ReceiverConfig { interface: interface(), tick: TICK, link, ..ReceiverConfig::default() };
    let receiver = Receiver::new(description, endpoint, &config).expect("a receiver's sockets");
    wait_until(times.at(host.joins));
    let end = host.leaves.map_or(times.end, |second| times.at(second));
    let mut watch = Watch::new(times, end);
    let statistics = receiver.run(&mut watch).expect("the receiver runs to the end");
    assert_eq!(statistics.host_dropped, 0, "this machine was too busy to tell anything: {statistics:?}");
    (watch.record, watch.lateness)
}

fn interface() -> InterfaceChoice {
    InterfaceChoice::Name("e0".to_owned())
}

/// Symbols without content.
struct Filler {
    symbol: Vec<u8>,
    next: u32,
}

impl Filler {
    /// Symbols that fill the packets of the session.
    fn new(description: &Description) -> Filler {
        let headers = IP_AND_UDP + description.profile().overhead(false) as u64;
        Filler { symbol: vec![0; (PACKET_SIZE - headers) as usize], next: 0 }
    }
}

impl Payload for Filler {
    fn next(&mut self, _channel: u16) -> Option<(Content, &[u8])> {
        let payload_id = PayloadId { block: 0, symbol: self.next };
        self.next = (self.next + 1) % SYMBOLS;
        Some((Content { toi: 1, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None }, &self.symbol))
    }
}

/// Ends a sender.
struct Until(Time);

impl SenderApplication for Until {
    fn tick(&mut self, now: Time, _statistics: &SenderStatistics) -> ControlFlow<()> {
        if now >= self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Writes down what a receiver tells and gets, and ends it.
struct Watch {
    clock: Clock,
    times: Times,
    end: Time,
    record: Record,
    ticked: Option<Time>,
    lateness: Duration,
}

impl Watch {
    fn new(times: Times, end: Time) -> Watch {
        Watch { clock: Clock::new(), times, end, record: Record::default(), ticked: None, lateness: Duration::ZERO }
    }
}

impl Application for Watch {
    fn deliver(&mut self, _content: &Content, _symbol: &[u8]) {
        self.record.delivered.push((self.times.in_scenario(self.clock.now()), PACKET_SIZE));
    }

    fn batch_end(&mut self) {}

    fn observe(&mut self, now: Time, observation: &Observation) {
        self.record.observations.push((self.times.in_scenario(now), *observation));
    }

    fn tick(&mut self, now: Time) -> ControlFlow<()> {
        let late = self.ticked.map_or(Duration::ZERO, |ticked| now.since(ticked).saturating_sub(TICK + REST));
        self.lateness = self.lateness.max(late);
        self.ticked = Some(now);
        if now >= self.end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn statistics(&mut self, _now: Time, _statistics: &ReceiverStatistics) {}

    fn problem(&mut self, _now: Time, problem: &NetError) {
        panic!("nothing stands in the way of a receiver in a namespace: {problem}");
    }
}

/// How long a receiver's driver rests between reads, during which no tick comes.
const REST: Duration = Duration::from_millis(5);

/// IPv4's and UDP's headers.
const IP_AND_UDP: u64 = 28;

/// Symbol numbers have 24 bits (RFC 6330, §4.4.2).
const SYMBOLS: u32 = 1 << 24;
