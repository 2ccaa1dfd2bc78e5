//! Runs a scenario on real sockets, in real time: every host is a network namespace, its bottleneck a token bucket.
//!
//! The kernel that this is made for can neither delay nor lose packets, so a path's delay and random loss are those of a
//! modelled link between the receiver's sockets and its endpoint, as with `weir recv --link`. Needs root.
//!
//! The threads run at real-time priority where the system allows it: what is measured is protocol and driver, not who else
//! wants the processor. They need a few per cent of one.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::thread::JoinHandle;
use std::time::Duration;

use weir_core::Observation;
use weir_net::clock::{self, Clock};
use weir_net::description::{Control, Description};
use weir_net::receiver::{Application, LinkInFront, Receiver, ReceiverConfig, ReceiverStatistics};
use weir_net::sender::{Payload, Sender, SenderApplication, SenderConfig, SenderStatistics};
use weir_net::{InterfaceChoice, NetError};
use weir_units::{Bytes, Random, Rate, Time};
use weir_wire::alc::Content;
use weir_wire::fec::{PayloadId, RAPTORQ};

use super::{BUFFER, Host, HostOutcome, LEAVE_GRACE, Outcome, PACKET_SIZE, Record, SCHEME, Scenario};
use crate::netns::{Network, TokenBucket};

/// A scenario as it went, and how well this machine kept time.
#[derive(Debug, Clone)]
pub struct Run {
    /// What came of it.
    pub outcome: Outcome,
    /// How late a sender or receiver was at worst with what was due.
    pub worst_lateness: Duration,
}

impl Run {
    /// Whether the machine kept up: later than this, and a sender leaves packets out (decision 5 of AVMRC's page: it makes
    /// four periods of 5 ms good), so that no level has its rate.
    pub fn is_on_time(&self) -> bool {
        self.worst_lateness <= Duration::from_millis(20)
    }
}

/// Runs a scenario between namespaces of its own. Panics if sockets or namespaces cannot be had, or if a host drops packets
/// that the network has delivered: then what was measured is this machine.
pub fn run(scenario: &Scenario) -> Run {
    let hosts = scenario.hosts;
    let network = Network::new().receivers(hosts.len()).build();
    for (index, host) in hosts.iter().enumerate() {
        network.set_link(index, Some(token_bucket(host.rates_kbps[0].1)));
    }
    let description = describe(scenario);
    let zero = Clock::new().now() + HEAD_START;
    let (sent_to, end) = (description.clone(), zero + (scenario.end().since(Time::ZERO)));
    let sender = network.sender().spawn(move || send(&sent_to, zero, end));
    let receivers: Vec<JoinHandle<(Record, Duration)>> = (hosts.iter().enumerate())
        .map(|(index, host)| {
            let (description, host) = (description.clone(), *host);
            let random = Random::new(1, &format!("receiver {index}"));
            network.receiver(index).spawn(move || receive(&description, random, &host, zero, end))
        })
        .collect();
    let silence = direct(scenario, &network, zero);
    let mut worst_lateness = sender.join().expect("the sender runs").worst_lateness;
    let mut outcome = Outcome { hosts: Vec::new() };
    for (receiver, after_leave) in receivers.into_iter().zip(silence) {
        let (record, lateness) = receiver.join().expect("the receiver runs");
        worst_lateness = worst_lateness.max(lateness);
        outcome.hosts.push(HostOutcome { record, after_leave });
    }
    Run { outcome, worst_lateness }
}

/// Changes links and reads counters when it is time; by host what came over its link after it had left.
fn direct(scenario: &Scenario, network: &Network, zero: Time) -> Vec<Option<Bytes>> {
    let mut steps: Vec<(Time, usize, Option<u64>)> = Vec::new();
    for (index, host) in scenario.hosts.iter().enumerate() {
        let changes = host.rates_kbps[1..].iter();
        steps.extend(changes.map(|(at, kbps)| (Time::from_secs(*at), index, Some(*kbps))));
        steps.extend(host.leaves.map(|at| (Time::from_secs(at) + LEAVE_GRACE, index, None)));
    }
    steps.sort_unstable();
    let came = |index: usize| Bytes::new(network.traffic(network.receiver(index)).received_bytes);
    let mut silence = vec![None; scenario.hosts.len()];
    for (at, index, kbps) in steps {
        wait_until(zero + at.since(Time::ZERO));
        match kbps {
            Some(kbps) => network.change_link(index, token_bucket(kbps)),
            None => silence[index] = Some(came(index)),
        }
    }
    // A little before the end, when the sender says that it closes the session.
    wait_until(zero + (scenario.end().since(Time::ZERO) - TICK));
    silence.iter().enumerate().map(|(index, then)| then.map(|then| came(index).saturating_sub(then))).collect()
}

/// A bucket that passes IP packets at this rate: it counts Ethernet's header too.
fn token_bucket(kbps: u64) -> TokenBucket {
    let rate = Rate::from_bps(kbps * 1_000 * (PACKET_SIZE + ETHERNET_HEADER) / PACKET_SIZE);
    TokenBucket { buffer: rate * BUFFER, ..TokenBucket::new(rate) }
}

fn describe(scenario: &Scenario) -> Description {
    let session = scenario.session();
    let base = SocketAddr::new(Ipv4Addr::new(239, 255, 0, 1).into(), 5004);
    Description {
        name: scenario.name.to_owned(),
        tsi: 7,
        flute_version: 2,
        source: None,
        channels: Description::channels_from(base, session.ladder.levels()).expect("there are groups enough"),
        ttl: 1,
        control: Some(Control {
            scheme: SCHEME.to_owned(),
            settings: Vec::new(),
            ladder: session.ladder,
            form: session.form,
            packet_size: session.packet_size,
        }),
        symbol_size: None,
        public_key: None,
        receipt: None,
        probe: None,
    }
}

fn send(description: &Description, zero: Time, end: Time) -> SenderStatistics {
    go_first();
    let endpoint = description
        .sender_endpoint(Random::new(1, "sender"))
        .expect("defaults are valid")
        .expect("it has congestion control");
    let config = SenderConfig { interface: interface(), tick: TICK, ..SenderConfig::default() };
    let sender = Sender::new(description, endpoint, &config).expect("a sender's socket");
    wait_until(zero);
    sender.run(&mut Filler::new(description), &mut Until(end)).expect("the sender runs to the end")
}

/// What became of a receiver, and how late it was at worst.
fn receive(description: &Description, random: Random, host: &Host, zero: Time, end: Time) -> (Record, Duration) {
    go_first();
    let endpoint = description.receiver_endpoint(random).expect("defaults are valid");
    let link = host.path().map(|config| LinkInFront { config, seed: 1 });
    let config = ReceiverConfig { interface: interface(), tick: TICK, link, ..ReceiverConfig::default() };
    let receiver = Receiver::new(description, endpoint, &config).expect("a receiver's sockets");
    let second = |second: u64| zero + Duration::from_secs(second);
    wait_until(second(host.joins));
    let end = host.leaves.map_or(end, second);
    let mut watch =
        Watch { clock: Clock::new(), zero, end, record: Record::default(), ticked: None, lateness: Duration::ZERO };
    let statistics = receiver.run(&mut watch).expect("the receiver runs to the end");
    assert_eq!(statistics.host_dropped, 0, "this machine was too busy to tell anything: {statistics:?}");
    (watch.record, watch.lateness)
}

/// Gives this thread real-time priority, if it may have it.
fn go_first() {
    let thread = nix::unistd::gettid().to_string();
    let done = std::process::Command::new("chrt").args(["--rr", "--pid", "1", &thread]).output();
    if !done.is_ok_and(|done| done.status.success()) {
        eprintln!("no real-time priority here: other work on this machine can spoil the measurement");
    }
}

fn interface() -> InterfaceChoice {
    InterfaceChoice::Name("e0".to_owned())
}

fn wait_until(time: Time) {
    // A signal may end a wait early.
    while Clock::new().now() < time {
        clock::wait(&mut [], time).expect("waiting needs nothing");
    }
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
    zero: Time,
    end: Time,
    record: Record,
    ticked: Option<Time>,
    lateness: Duration,
}

impl Watch {
    /// As the scenario counts time.
    fn scenario_time(&self, now: Time) -> Time {
        Time::ZERO + now.since(self.zero)
    }
}

impl Application for Watch {
    fn deliver(&mut self, _content: &Content, _symbol: &[u8]) {
        self.record.delivered.push((self.scenario_time(self.clock.now()), PACKET_SIZE));
    }

    fn batch_end(&mut self) {}

    fn observe(&mut self, now: Time, observation: &Observation) {
        self.record.observations.push((self.scenario_time(now), *observation));
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

/// Namespaces and sockets are there by then.
const HEAD_START: Duration = Duration::from_millis(500);

/// How late a sender or a receiver ends at most.
const TICK: Duration = Duration::from_millis(20);

/// How long a receiver's driver rests between reads, during which no tick comes.
const REST: Duration = Duration::from_millis(5);

/// What a token bucket counts beside the IP packet.
const ETHERNET_HEADER: u64 = 14;

/// IPv4's and UDP's headers.
const IP_AND_UDP: u64 = 28;

/// Symbol numbers have 24 bits (RFC 6330, §4.4.2).
const SYMBOLS: u32 = 1 << 24;
