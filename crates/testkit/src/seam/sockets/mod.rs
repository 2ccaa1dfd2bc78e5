//! Runs a scenario on real sockets over the loopback, in real time.
//!
//! Every party is a tenant with a socket of its own. Those that start together are tenants of one host, on one thread.

mod application;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use weir_link::LinkConfig;
use weir_net::clock::Clock;
use weir_net::description::Description;
use weir_net::host::{Host, LinkInFront, Tenant, TenantConfig};
use weir_net::profile::ExperimentalProfile;
use weir_net::socket::{SendConfig, UnicastSocket};
use weir_net::{Interface, InterfaceChoice};
use weir_units::Time;

use super::{Account, Log, Outcome, Party, Scenario, Session, Setup};
use crate::real_time::{go_first, wait_until};
use application::Application;

/// Runs a scenario; again, a few times, if this machine did not keep time.
pub fn run(scenario: &Scenario) -> Outcome {
    for _ in 1..ATTEMPTS {
        let (outcome, lateness) = run_once((scenario.setup)());
        if lateness <= LATENESS {
            return outcome;
        }
        eprintln!("{}: this machine was {lateness:?} late; once more", scenario.name);
    }
    run_once((scenario.setup)()).0
}

/// What came of it, and how late a tenant was at worst with what was due.
fn run_once(setup: Setup) -> (Outcome, Duration) {
    let Setup { parties, sessions, lasts } = setup;
    let logs: Vec<Log> = parties.iter().map(|party| party.endpoint.log()).collect();
    let start = Clock::new().now() + HEAD_START;
    let is_over = AtomicBool::new(false);
    let mut together: BTreeMap<Time, Vec<Member<'_>>> = BTreeMap::new();
    for (party, tenant, details) in tenants(parties, &sessions) {
        let starts = start + details.starts;
        let application = Application::new(&details, start, &is_over);
        together.entry(starts).or_default().push(Member { party, tenant, application });
    }
    let mut accounts: Vec<Account> = logs.iter().map(|_| Account::default()).collect();
    let mut worst_lateness = Duration::ZERO;
    thread::scope(|scope| {
        let run_group = |(starts, members)| scope.spawn(move || run_together(starts, members));
        let groups: Vec<_> = together.into_iter().map(run_group).collect();
        wait_until(start + lasts);
        // Before anybody hears of another's end.
        let seen = logs.iter().map(Log::seen);
        accounts.iter_mut().zip(seen).for_each(|(account, seen)| account.seen = seen);
        is_over.store(true, Ordering::Relaxed);
        for (party, given, lateness) in groups.into_iter().flat_map(|group| group.join().expect("its thread runs")) {
            worst_lateness = worst_lateness.max(lateness);
            accounts[party] = Account { seen: std::mem::take(&mut accounts[party].seen), ..given };
        }
    });
    (Outcome { parties: accounts, slack: SLACK }, worst_lateness)
}

/// A tenant of a host.
struct Member<'a> {
    party: usize,
    tenant: Tenant<ExperimentalProfile>,
    application: Application<'a>,
}

/// Runs tenants in one host; by party what its application tells, and how late it was at worst.
fn run_together(starts: Time, members: Vec<Member<'_>>) -> Vec<(usize, Account, Duration)> {
    go_first();
    let (mut tenants, mut applications) = (Vec::new(), Vec::new());
    for Member { party, tenant, application } in members {
        tenants.push(tenant);
        applications.push((party, application));
    }
    let mut host = Host::new();
    for (tenant, (_, application)) in tenants.into_iter().zip(&mut applications) {
        host.add(tenant, application);
    }
    wait_until(starts);
    let ended = host.run();
    let accounts = applications.into_iter().zip(ended).map(|((party, application), ended)| {
        let statistics = ended.expect("scenarios want what can be done");
        let (account, lateness) = application.end();
        (party, account, lateness.max(statistics.worst_lateness))
    });
    accounts.collect()
}

/// What is left of a party once its tenant is made.
#[derive(Debug, Clone, Copy)]
struct Details {
    starts: Duration,
    stops: Option<Duration>,
    offers: Option<u64>,
    reads: Option<super::Reads>,
}

/// How a party reaches one that it knows.
#[derive(Debug, Clone, Copy)]
enum Acquaintance {
    /// Without a handshake: they know each other, or the other remembers nobody.
    Known(SocketAddr),
    /// The other takes it as a peer.
    Contact(SocketAddr),
}

/// By party its tenant.
fn tenants(parties: Vec<Party>, sessions: &[Session]) -> Vec<(usize, Tenant<ExperimentalProfile>, Details)> {
    let listen = |_: &Party| UnicastSocket::listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port of the loopback");
    let sockets: Vec<UnicastSocket> = parties.iter().map(listen).collect();
    let acquaintances: Vec<Vec<Acquaintance>> = (0..parties.len())
        .map(|party| parties[party].knows.iter().map(|known| acquaintance(&parties, party, *known, &sockets)).collect())
        .collect();
    let channels: Vec<Vec<SocketAddr>> = sessions.iter().map(channels).collect();
    let whole = parties.into_iter().zip(sockets).zip(acquaintances).enumerate();
    whole
        .map(|(number, ((party, socket), acquaintances))| {
            let Party { starts, stops, offers, reads, .. } = party;
            let tenant = tenant(number, party, socket, &acquaintances, &channels);
            (number, tenant, Details { starts, stops, offers, reads })
        })
        .collect()
}

fn acquaintance(parties: &[Party], party: usize, known: usize, sockets: &[UnicastSocket]) -> Acquaintance {
    let (other, address) = (&parties[known], sockets[known].local());
    let is_mutual = other.knows.contains(&party);
    if other.accepts_peers && !is_mutual { Acquaintance::Contact(address) } else { Acquaintance::Known(address) }
}

/// Groups of this process, on a port that no other session of it has and that the kernel gives to no other socket.
fn channels(session: &Session) -> Vec<SocketAddr> {
    static SESSIONS: AtomicU16 = AtomicU16::new(0);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let port = FIRST_PORT + SESSIONS.fetch_add(1, Ordering::Relaxed);
    let base = SocketAddr::new(Ipv4Addr::new(239, high, low, 1).into(), port);
    Description::channels_from(base, usize::from(session.channels)).expect("there are groups enough")
}

fn tenant(
    number: usize,
    party: Party,
    socket: UnicastSocket,
    acquaintances: &[Acquaintance],
    channels: &[Vec<SocketAddr>],
) -> Tenant<ExperimentalProfile> {
    let link = (party.link != LinkConfig::default()).then_some(LinkInFront { config: party.link, seed: 1 });
    let config = TenantConfig { link, ..TenantConfig::default() };
    let mut tenant = Tenant::new(&config).with_endpoint(Box::new(party.endpoint));
    for session in party.sessions {
        let interface = InterfaceChoice::Name("lo".to_owned());
        let interface = Interface::choose(&interface, channels[session][0].ip()).expect("every host has a loopback");
        let profile = ExperimentalProfile { tsi: session as u16 };
        let added =
            tenant.add_session(profile, &interface, &channels[session], None, true, Some(&SendConfig::default()));
        added.unwrap_or_else(|error| panic!("no sockets for the channels: {error}"));
    }
    tenant.add_unicast_session(ExperimentalProfile { tsi: UNICAST_TSI });
    let local = socket.local();
    let socket = tenant.add_unicast(socket).expect("it has a session");
    for acquaintance in acquaintances {
        match *acquaintance {
            Acquaintance::Known(address) => tenant.add_peer(socket, address),
            Acquaintance::Contact(address) => tenant.add_contact(socket, address, number as u32),
        }
    }
    let interface = Interface::choose(&InterfaceChoice::Name("lo".to_owned()), Ipv4Addr::LOCALHOST.into());
    tenant.call_through(socket, &interface.expect("every host has a loopback"), number as u32);
    if party.accepts_peers {
        tenant.reachable_at(local);
        tenant.admit([number as u8; 32], MOST_PEERS);
    }
    tenant
}

/// Sockets and threads are there by then, with the priority that they get.
const HEAD_START: Duration = Duration::from_millis(500);
/// What takes no time in the simulator takes this at most on the loopback.
const SLACK: Duration = Duration::from_micros(500);
/// What scripts do in a row they do 10 ms apart at the least. Whoever is later has not kept time.
const LATENESS: Duration = Duration::from_millis(8);
const ATTEMPTS: u32 = 4;
/// Below the ports that Linux gives to sockets that ask for any.
const FIRST_PORT: u16 = 5100;
const UNICAST_TSI: u16 = u16::MAX;
const MOST_PEERS: usize = 8;
