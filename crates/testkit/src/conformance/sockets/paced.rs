//! Paced streams on real sockets: a source for each host, all on one thread of the sender's host, and a sink on every host.

use std::net::SocketAddr;
use std::time::Duration;

use weir_core::registry::Scheme;
use weir_core::{ChannelId, Endpoint, Observation, PeerId};
use weir_net::host::{Application, Delivery, Host as NetHost, LinkInFront, PeerChange, Progress, Statistics};
use weir_net::live::{self, LiveConfig};
use weir_units::{Random, Time};
use weir_wire::rtcp::handshake::Terms;
use weir_wire::rtp::Rtp;

use super::watch::Watch;
use super::{IP_AND_UDP, Parties, TICK, Times};
use crate::conformance::{Case, Host, PACKET_SIZE, Record, stream};
use crate::netns::Network;
use crate::real_time::{go_first, wait_until};

/// Starts the sources, and a sink on every host.
pub(super) fn start(case: &Case, network: &Network, times: Times) -> Parties {
    let Case { scenario, scheme } = *case;
    let listens = |index: usize| SocketAddr::new(network.sender().ipv4().into(), FIRST_PORT + index as u16);
    let addresses: Vec<SocketAddr> = (0..scenario.hosts.len()).map(listens).collect();
    let sinks = scenario.hosts.iter().enumerate().map(|(index, host)| {
        let source = addresses[index];
        network.receiver(index).spawn(move || receive(scheme, source, host, times))
    });
    let hosts = sinks.collect();
    Parties { sender: network.sender().spawn(move || send(scheme, &addresses, scenario.hosts, times)), hosts }
}

#[derive(Debug, Clone, Copy)]
enum Role {
    Source,
    Sink,
}

/// An end of a stream, whose scheme has its defaults.
fn endpoint(scheme: &Scheme, role: Role) -> Box<dyn Endpoint> {
    let random = Random::new(1, &format!("{role:?}"));
    let built = match role {
        Role::Source => scheme.source(&stream(), &[], random),
        Role::Sink => scheme.sink(&stream(), &[], random),
    };
    built.expect("defaults are valid")
}

/// Runs all sources; by host what its source told, and how late any of them was at worst.
fn send(scheme: &'static Scheme, listen: &[SocketAddr], hosts: &[Host], times: Times) -> (Vec<Record>, Duration) {
    go_first();
    let mut supplies: Vec<Supply> = hosts.iter().map(|host| Supply::new(scheme, host, times)).collect();
    let mut net_host = NetHost::new();
    for (supply, address) in supplies.iter_mut().zip(listen) {
        net_host.add(live::source(*address, SECRET, 1, &config(None)).expect("a source's socket"), supply);
    }
    wait_until(times.zero);
    let ended = net_host.run().into_iter().map(|ended| ended.expect("the source runs to the end").worst_lateness);
    let worst_lateness = ended.max().unwrap_or_default();
    (supplies.into_iter().map(|supply| supply.record).collect(), worst_lateness)
}

/// Runs a sink; what became of it, and how late it was at worst.
fn receive(scheme: &'static Scheme, source: SocketAddr, host: &Host, times: Times) -> (Record, Duration) {
    go_first();
    let link = host.path().map(|config| LinkInFront { config, seed: 1 });
    let sink = live::sink(source, SSRC, &config(link)).expect("a sink's socket");
    wait_until(times.zero);
    let mut viewing = Viewing { scheme, watch: Watch::new(times, times.end), is_over: false };
    let statistics = NetHost::run_one(sink, &mut viewing).expect("the sink runs to the end");
    viewing.watch.end(&statistics)
}

fn config(link: Option<LinkInFront>) -> LiveConfig {
    let mut config = LiveConfig::default();
    (config.tenant.tick, config.tenant.link) = (TICK, link);
    config
}

/// A source's application: payloads without content, from the second at which its host joins to the one at which it leaves.
#[derive(Debug)]
struct Supply {
    scheme: &'static Scheme,
    times: Times,
    start: Time,
    end: Time,
    has_started: bool,
    payload: Vec<u8>,
    record: Record,
}

impl Supply {
    /// Payloads that fill the packets of a stream.
    fn new(scheme: &'static Scheme, host: &Host, times: Times) -> Supply {
        Supply {
            scheme,
            times,
            start: times.at(host.joins),
            end: host.leaves.map_or(times.end, |second| times.at(second)),
            has_started: false,
            payload: vec![0; (PACKET_SIZE - IP_AND_UDP) as usize - Rtp::LEN],
            record: Record::default(),
        }
    }
}

impl Application<Rtp> for Supply {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<(Rtp, &[u8])> {
        Some((Rtp::default(), &self.payload))
    }

    fn waiting(&self) -> Option<u64> {
        Some(if self.has_started { u64::MAX } else { 0 })
    }

    fn terms(&self, _peer: SocketAddr) -> Option<Terms> {
        Terms::new(0, PACKET_SIZE as u16, self.scheme.name)
    }

    fn open(&mut self, _now: Time, _peer: SocketAddr, _terms: &Terms) -> Option<Box<dyn Endpoint>> {
        Some(endpoint(self.scheme, Role::Source))
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        self.record.observations.push((self.times.in_scenario(now), *observation));
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        self.has_started = now >= self.start;
        if now >= self.end { Progress::Stop } else { Progress::Continue }
    }
}

/// A sink's application.
#[derive(Debug)]
struct Viewing {
    scheme: &'static Scheme,
    watch: Watch,
    /// The source has said goodbye.
    is_over: bool,
}

impl Application<Rtp> for Viewing {
    fn open(&mut self, _now: Time, _peer: SocketAddr, terms: &Terms) -> Option<Box<dyn Endpoint>> {
        assert_eq!(terms.scheme(), Some(self.scheme.name), "the source says which scheme it uses");
        Some(endpoint(self.scheme, Role::Sink))
    }

    fn peer(&mut self, _now: Time, _peer: PeerId, _address: SocketAddr, change: PeerChange) {
        self.is_over |= matches!(change, PeerChange::Down(_));
    }

    fn deliver(&mut self, now: Time, _delivery: Delivery<'_, Rtp>) {
        self.watch.deliver(now);
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        self.watch.observe(now, observation);
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        let progress = self.watch.tick(now);
        if self.is_over { Progress::Stop } else { progress }
    }
}

/// The first source listens here, the others on the ports that follow.
const FIRST_PORT: u16 = 5004;

/// Nobody else is on these networks, so that nothing needs to be secret.
const SECRET: [u8; 32] = [7; 32];
const SSRC: u32 = 7;
