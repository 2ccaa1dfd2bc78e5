//! Runs a scenario on real sockets, in real time: every host is a network namespace, its bottleneck a token bucket.
//!
//! The kernel that this is made for can neither delay nor lose packets, so a path's delay and random loss are those of a
//! modelled link between the receiver's sockets and its endpoint, as with `weir recv --link`. Needs root.
//!
//! The threads run at real-time priority where the system allows it: what is measured is protocol and driver, not who else
//! wants the processor. They need a few per cent of one.

mod layered;
mod paced;
mod watch;

use std::thread::JoinHandle;
use std::time::Duration;

use weir_net::clock::Clock;
use weir_units::{Bytes, Rate, Time};

use super::{BUFFER, Case, HostOutcome, LEAVE_GRACE, Outcome, PACKET_SIZE, Record, Scenario, Traffic};
use crate::netns::{Network, TokenBucket};
use crate::real_time::wait_until;

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

/// Runs a case between namespaces of its own. Panics if it cannot be run, if sockets or namespaces cannot be had, or if a host
/// drops packets that the network has delivered: then what was measured is this machine.
pub fn run(case: &Case) -> Run {
    let hosts = case.scenario.hosts;
    let network = Network::new().receivers(hosts.len()).build();
    for (index, host) in hosts.iter().enumerate() {
        network.set_link(index, Some(token_bucket(host.rates_kbps[0].1)));
    }
    let zero = Clock::new().now() + HEAD_START;
    let times = Times { zero, end: zero + case.scenario.end().since(Time::ZERO) };
    let parties = match case.scenario.traffic {
        Traffic::Layered { ladder_kbps } => layered::start(case, ladder_kbps, &network, times),
        Traffic::Paced => paced::start(case, &network, times),
    };
    let silence = direct(case.scenario, &network, zero);
    let (sender_told, mut worst_lateness) = parties.sender.join().expect("the sender runs");
    let mut sender_told = sender_told.into_iter();
    let mut outcome = Outcome { hosts: Vec::new() };
    for (host, after_leave) in parties.hosts.into_iter().zip(silence) {
        let (record, lateness) = host.join().expect("the host runs");
        worst_lateness = worst_lateness.max(lateness);
        let record = record.merged(sender_told.next().unwrap_or_default());
        outcome.hosts.push(HostOutcome { record, after_leave });
    }
    Run { outcome, worst_lateness }
}

/// When a run begins and ends, by the system's clock.
#[derive(Debug, Clone, Copy)]
struct Times {
    zero: Time,
    end: Time,
}

/// The threads of a run.
#[derive(Debug)]
struct Parties {
    /// What the sender's host told of each host, if it is for one, and how late it was at worst.
    sender: JoinHandle<(Vec<Record>, Duration)>,
    /// What became of each host, and how late it was at worst.
    hosts: Vec<JoinHandle<(Record, Duration)>>,
}

impl Times {
    /// Second `second` of the scenario, by the system's clock.
    fn at(&self, second: u64) -> Time {
        self.zero + Duration::from_secs(second)
    }

    /// A time of the system's clock, as the scenario counts.
    fn in_scenario(&self, now: Time) -> Time {
        Time::ZERO + now.since(self.zero)
    }
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

/// Namespaces and sockets are there by then.
const HEAD_START: Duration = Duration::from_millis(500);

/// How late a sender or a receiver ends at most.
const TICK: Duration = Duration::from_millis(20);

/// IPv4's and UDP's headers.
const IP_AND_UDP: u64 = 28;

/// What a token bucket counts besides the IP packet.
const ETHERNET_HEADER: u64 = 14;
