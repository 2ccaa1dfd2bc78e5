//! A layered session on real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use weir_core::{ChannelId, Endpoint, Observation};
use weir_net::description::{Control, Description, Sealing};
use weir_net::host::{Application, Delivery, Host as NetHost, LinkInFront, Progress, Statistics, TenantConfig};
use weir_net::session::{self, SessionConfig};
use weir_net::{InterfaceChoice, NetError};
use weir_units::{Random, Time};
use weir_wire::alc::Content;
use weir_wire::fec::{PayloadId, RAPTORQ};

use super::watch::Watch;
use super::{IP_AND_UDP, Parties, TICK, Times};
use crate::conformance::{Case, Host, PACKET_SIZE, Record};
use crate::netns::Network;
use crate::real_time::{go_first, wait_until};

/// Starts the session's sender, and a receiver on every host.
pub(super) fn start(case: &Case, ladder_kbps: (u64, u64), network: &Network, times: Times) -> Parties {
    let description = describe(case, ladder_kbps, network);
    let receivers = case.scenario.hosts.iter().enumerate().map(|(index, host)| {
        let (description, host) = (description.clone(), *host);
        network.receiver(index).spawn(move || receive(&description, &host, times))
    });
    let hosts = receivers.collect();
    Parties { sender: network.sender().spawn(move || (Vec::new(), send(&description, times))), hosts }
}

fn describe(case: &Case, ladder_kbps: (u64, u64), network: &Network) -> Description {
    let session = crate::conformance::session(ladder_kbps);
    let channels = case.scheme.channels(&session, &[]).expect("defaults are valid").len();
    let control = SocketAddr::new(network.sender().ipv4().into(), 5005);
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
        epoch: None,
        expires: None,
        control_address: case.scheme.probes().then_some(control),
        receipt_key: None,
        priority: None,
        sessions: None,
        sealing: Sealing::default(),
        media: None,
    }
}

#[derive(Debug, Clone, Copy)]
enum Role {
    Sender,
    Receiver,
}

/// A party of the session, whose scheme has its defaults.
fn endpoint(description: &Description, role: Role, random: Random) -> Box<dyn Endpoint> {
    let built = match role {
        Role::Sender => description.sender_endpoint(random),
        Role::Receiver => description.receiver_endpoint(random),
    };
    built.expect("defaults are valid").expect("it has congestion control")
}

/// Runs the sender; how late it was at worst.
fn send(description: &Description, times: Times) -> Duration {
    go_first();
    let sender =
        session::sender(description, endpoint(description, Role::Sender, Random::new(1, "sender")), &config(None));
    let sender = sender.expect("a sender's sockets");
    wait_until(times.zero);
    let statistics = NetHost::run_one(sender, &mut Filler::new(description, times.end));
    statistics.expect("the sender runs to the end").worst_lateness
}

/// Runs a receiver; what became of it, and how late it was at worst.
fn receive(description: &Description, host: &Host, times: Times) -> (Record, Duration) {
    go_first();
    let config = config(host.path().map(|config| LinkInFront { config, seed: 1 }));
    let random = Random::new(host.joins, &format!("receiver behind {:?} kbit/s", host.rates_kbps));
    let endpoint = endpoint(description, Role::Receiver, random);
    let receiver = session::receiver(description, Some(endpoint), &config);
    let receiver = receiver.expect("a receiver's sockets");
    wait_until(times.at(host.joins));
    let end = host.leaves.map_or(times.end, |second| times.at(second));
    let mut receiving = Receiving(Watch::new(times, end));
    let statistics = NetHost::run_one(receiver, &mut receiving).expect("the receiver runs to the end");
    receiving.0.end(&statistics)
}

fn config(link: Option<LinkInFront>) -> SessionConfig {
    let tenant = TenantConfig { tick: TICK, link, ..TenantConfig::default() };
    SessionConfig { interface: InterfaceChoice::Name("e0".to_owned()), tenant, ..SessionConfig::default() }
}

/// The sender's application: symbols without content, until the end.
#[derive(Debug)]
struct Filler {
    symbol: Vec<u8>,
    next: u32,
    end: Time,
}

impl Filler {
    /// Symbols that fill the packets of the session.
    fn new(description: &Description, end: Time) -> Filler {
        let headers = IP_AND_UDP + description.profile().overhead(false) as u64;
        Filler { symbol: vec![0; (PACKET_SIZE - headers) as usize], next: 0, end }
    }
}

impl Application<Content> for Filler {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<(Content, &[u8])> {
        let payload_id = PayloadId { block: 0, symbol: self.next };
        self.next = (self.next + 1) % SYMBOLS;
        Some((Content { toi: 1, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None, ask: None }, &self.symbol))
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        if now >= self.end { Progress::Stop } else { Progress::Continue }
    }
}

/// A receiver's application.
#[derive(Debug)]
struct Receiving(Watch);

impl Application<Content> for Receiving {
    fn deliver(&mut self, now: Time, _delivery: Delivery<'_, Content>) {
        self.0.deliver(now);
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        self.0.observe(now, observation);
    }

    fn problem(&mut self, _now: Time, problem: &NetError) {
        panic!("nothing stands in the way of a receiver in a namespace: {problem}");
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        self.0.tick(now)
    }
}

/// Symbol numbers have 24 bits (RFC 6330, §4.4.2).
const SYMBOLS: u32 = 1 << 24;
