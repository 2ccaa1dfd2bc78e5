//! Runs a scenario on real sockets, in real time: sender and members are namespaces on a bridge. Needs root.
//!
//! The kernel that this is made for can neither delay nor lose packets, so each party's link is a modelled one between its
//! sockets and its endpoint. The link from a member is that to the node above it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_core::ChannelId;
use weir_core::registry::{Build, Habitat, Setting, Stream};
use weir_net::clock::Clock;
use weir_net::host::{Application, Delivery, Host as NetHost, LinkInFront, Progress, Statistics, TenantConfig};
use weir_net::session::SessionConfig;
use weir_net::tree::{self, Door, TreeSession};
use weir_net::{InterfaceChoice, NetError};
use weir_units::{Bytes, Random, Time};

use super::tapped::{Tap, Tapped};
use super::{BUFFER, Case, Member, MemberOutcome, Outcome, READER_ROOM};
use crate::netns::{Host, Network};
use crate::real_time::wait_until;

/// Runs a case between namespaces of its own. Panics if sockets or namespaces cannot be had.
pub fn run(case: &Case) -> Outcome {
    let members = case.scenario.members;
    let network = Network::new().receivers(members.len()).build();
    let zero = Clock::new().now() + HEAD_START;
    let receivers = members.iter().filter(|member| !member.is_agent).count();
    let end = zero + Duration::from_secs(case.scenario.seconds);
    let times = Times { zero, end, waits_for: Arc::new(AtomicUsize::new(1 + receivers)) };
    let taps: Vec<Arc<Tap>> = (0..=members.len()).map(|_| Arc::default()).collect();
    let parties: Vec<JoinHandle<Told>> = (0..=members.len())
        .map(|number| {
            let host = if number == 0 { network.sender() } else { network.receiver(number - 1) };
            let party = Party::new(case, &network, number, &taps[number], times.clone());
            host.spawn(move || party.run())
        })
        .collect();
    let told: Vec<Told> = parties.into_iter().map(|party| party.join().expect("it runs to the end")).collect();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let outcome_of = |(member, number): (&Member, usize)| MemberOutcome {
        delivered: told[number].delivered.clone(),
        complete: told[number].complete.clone(),
        lost: [number, member.above].map(|number| told[number].lost),
        overtaken: [number, member.above].map(|number| read(&taps[number].overtaken)),
        repaired: read(&taps[number].repaired),
        misdirected: 0,
    };
    let ahead = |tap: &Arc<Tap>| (read(&tap.start_nanos) as i64 - read(&tap.driver_nanos) as i64) / 1_000_000_000;
    Outcome {
        confirmed: told[0].complete.iter().map(|(at, _)| *at).collect(),
        members: members.iter().zip(1..).map(outcome_of).collect(),
        doubled: taps.iter().map(|tap| read(&tap.doubled)).sum(),
        clocks_ahead: taps[1..].iter().map(ahead).collect(),
    }
}

/// When a run begins and ends, by the system's clock.
#[derive(Debug, Clone)]
struct Times {
    zero: Time,
    end: Time,
    /// How many parties have still to say that they are complete.
    waits_for: Arc<AtomicUsize>,
}

/// A party before it runs.
struct Party {
    build: Build<Stream>,
    settings: Vec<Setting>,
    number: usize,
    config: SessionConfig,
    /// Where it takes members, if it does.
    door: Option<Door>,
    /// Where it looks for a place; the sender needs none.
    above: Option<SocketAddr>,
    is_agent: bool,
    share: f64,
    ahead: i64,
    tap: Arc<Tap>,
    application: Account,
}

impl Party {
    fn new(case: &Case, network: &Network, number: usize, tap: &Arc<Tap>, times: Times) -> Party {
        let scenario = &case.scenario;
        let scheme = case.scheme.tree().expect("the list has schemes for trees");
        let member = number.checked_sub(1).map(|index| scenario.members[index]);
        let host =
            |number: usize| -> &Host { if number == 0 { network.sender() } else { network.receiver(number - 1) } };
        let listens = |number: usize| SocketAddr::new(host(number).ipv4().into(), PORT);
        let takes_members = member.is_none_or(|member| member.is_agent);
        let link = case.impaired(member.map_or(SENDER_LINK, |member| member.link));
        let tenant = TenantConfig {
            tick: TICK,
            link: Some(LinkInFront { config: link, seed: number as u64 }),
            ..TenantConfig::default()
        };
        let reader = case.slow_reader().filter(|(slow, _)| *slow == number).map(|(_, gap)| gap);
        let is_receiver = member.is_some_and(|member| !member.is_agent);
        let receivers = scenario.members.iter().filter(|member| !member.is_agent).count() as u64;
        let mut settings = vec![("receivers", receivers)];
        settings.extend(case.slow_reader().map(|_| ("buffer", BUFFER)));
        let settings = settings.into_iter();
        Party {
            build: member.map_or(scheme.sender, |member| if member.is_agent { scheme.agent } else { scheme.receiver }),
            settings: settings.map(|(key, value)| Setting { key: key.to_owned(), value: value.to_string() }).collect(),
            number,
            config: SessionConfig {
                interface: InterfaceChoice::Name(host(number).interface().to_owned()),
                tenant,
                ..SessionConfig::default()
            },
            door: takes_members.then(|| Door { listen: listens(number), secret: [number as u8; 32], most: 16 }),
            above: member.map(|member| listens(member.above)),
            is_agent: member.is_some_and(|member| member.is_agent),
            share: case.doubled_share(),
            ahead: if number == 0 { 0 } else { case.ahead(number) },
            tap: Arc::clone(tap),
            application: Account {
                offers: if number == 0 { scenario.payloads } else { 0 },
                taken: 0,
                payload: Vec::new(),
                counts: number == 0 || is_receiver,
                reader,
                now: times.zero,
                over_since: None,
                told: Told::default(),
                times,
            },
        }
    }

    fn run(self) -> Told {
        let Party { config, number, mut application, .. } = self;
        let random = |what: &str| Random::new(number as u64, what);
        let endpoint = (self.build)(&STREAM, &self.settings, random("party")).expect("good settings");
        let endpoint = Tapped::new(endpoint, self.share, random("doubling"), &self.tap).set_ahead(self.ahead);
        let endpoint = Box::new(endpoint);
        let ssrc = number as u32;
        let tenant = match (self.above, self.door) {
            (None, door) => tree::sender(&SESSION, door.expect("it takes members"), endpoint, &config),
            (Some(above), Some(door)) if self.is_agent => tree::agent(&SESSION, above, ssrc, door, endpoint, &config),
            (Some(above), door) => tree::receiver(&SESSION, above, ssrc, door, endpoint, &config),
        };
        let tenant = tenant.expect("a namespace has sockets");
        wait_until(application.times.zero);
        let statistics = NetHost::run_one(tenant, &mut application).expect("it runs to the end");
        Told { lost: statistics.link_dropped, ..application.told }
    }
}

/// What a party told.
#[derive(Debug, Clone, Default)]
struct Told {
    delivered: Vec<u64>,
    complete: Vec<(Duration, usize)>,
    lost: u64,
}

/// The application of any party: it offers payloads, or reads them.
#[derive(Debug)]
struct Account {
    offers: u64,
    taken: u64,
    payload: Vec<u8>,
    /// The run waits for it to be complete.
    counts: bool,
    /// From one payload to the next, if it reads slowly.
    reader: Option<Duration>,
    now: Time,
    /// Everybody has been complete since then.
    over_since: Option<Time>,
    told: Told,
    times: Times,
}

impl Application<()> for Account {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<((), &[u8])> {
        self.payload = payload(self.taken);
        self.taken += 1;
        Some(((), &self.payload))
    }

    fn waiting(&self) -> Option<u64> {
        (self.offers > 0).then(|| self.offers - self.taken)
    }

    fn is_over(&self) -> bool {
        true
    }

    fn deliver(&mut self, _now: Time, delivery: Delivery<'_, ()>) {
        let number = delivery.number.expect("the payloads of a stream have numbers");
        assert!(delivery.payload == payload(number), "payload {number} has come as it was sent");
        self.told.delivered.push(number);
    }

    fn room(&self) -> Option<u64> {
        let gap = self.reader?;
        // Read payloads make room, one after each gap.
        let read = self.now.since(self.times.zero).as_nanos() / gap.as_nanos();
        Some((READER_ROOM + read as u64).saturating_sub(self.told.delivered.len() as u64).min(READER_ROOM))
    }

    fn complete(&mut self, now: Time) {
        self.told.complete.push((now.since(self.times.zero), self.told.delivered.len()));
        if self.counts {
            self.times.waits_for.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn problem(&mut self, _now: Time, problem: &NetError) {
        panic!("nothing stands in the way in a namespace: {problem}");
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        self.now = now;
        if self.times.waits_for.load(Ordering::Relaxed) == 0 {
            self.over_since.get_or_insert(now);
        }
        // A little longer, for what nobody should say any more.
        let is_over = self.over_since.is_some_and(|since| now.since(since) >= SILENCE) || now >= self.times.end;
        if is_over { Progress::Stop } else { Progress::Continue }
    }
}

/// Payload `number`, which no other is like.
fn payload(number: u64) -> Vec<u8> {
    let mut random = Random::new(number, "payload");
    (0..PAYLOAD / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

const SESSION: TreeSession =
    TreeSession { tsi: 7, channel: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 0, 1)), 5004) };
/// Bytes of a payload.
const PAYLOAD: u64 = 952;
const STREAM: Stream = Stream {
    // IP, UDP and MTCP headers.
    packet_size: Bytes::new(PAYLOAD + 42),
    feedback_size: Bytes::new(72),
    habitat: Habitat::Sockets,
};
/// Where nodes take members.
const PORT: u16 = 5005;
/// To the sender come acknowledgements only.
const SENDER_LINK: &str = "rate=100M,delay=1ms,buffer=1000p";
/// Namespaces and sockets are there by then.
const HEAD_START: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(5);
const SILENCE: Duration = Duration::from_secs(1);
