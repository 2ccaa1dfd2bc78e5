//! Scenarios that run in the simulator and on real sockets, with the same claims about what comes of them.
//!
//! The same endpoints with the same settings go through [`simulated::run`] in virtual time and through [`sockets::run`]
//! between network namespaces, behind token buckets of the kernel. Both give an [`Outcome`], and the same code judges it.
//! So each driver tests the other. The bands are those of the protocol's arithmetic, which each scenario tells.
//!
//! Streams over a tree have scenarios of their own, in [`tree`].
//!
//! Not here: the papers' experiments, which need other traffic, and files, which are tested with the program itself.

mod claim;
mod scenarios;
pub mod simulated;
pub mod sockets;
pub mod tree;

use std::fmt;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{Habitat, SCHEMES, Scheme, Session, Stream};
use weir_link::{Buffer, LinkConfig, Loss};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

pub use crate::record::Record;
pub use claim::{Claim, Finding, Span};

/// A sender, hosts behind links of their own, and what is claimed of them. Times are seconds from the sender's start.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The claim in short.
    pub name: &'static str,
    /// What goes to the hosts.
    pub traffic: Traffic,
    /// The hosts.
    pub hosts: &'static [Host],
    /// How long it lasts.
    pub seconds: u64,
    /// What must hold whatever the scheme.
    pub claims: &'static [Claim],
    /// What must hold besides for some schemes, by arithmetic of their own.
    pub own_claims: &'static [OwnClaims],
}

/// What goes to the hosts, and so which schemes can carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// A layered session of which every host is a receiver.
    Layered {
        /// Lowest and highest rate of the ladder, kbit/s; the ratio is 1.5.
        ladder_kbps: (u64, u64),
    },
    /// A paced stream to each host, which always has something to send.
    Paced,
}

/// Claims that hold for some schemes only.
#[derive(Debug, Clone, Copy)]
pub struct OwnClaims {
    /// The schemes' names.
    pub schemes: &'static [&'static str],
    /// What must hold.
    pub claims: &'static [Claim],
}

/// A scenario with a scheme that can carry its traffic.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// The scheme.
    pub scheme: &'static Scheme,
}

/// Every scenario with every scheme of the registry that can carry its traffic.
pub fn cases() -> impl Iterator<Item = Case> {
    let with_all = |scenario: &'static Scenario| SCHEMES.iter().map(move |scheme| Case { scenario, scheme });
    let scenarios = scenarios::layered::SCENARIOS.iter().chain(scenarios::paced::SCENARIOS);
    scenarios.flat_map(with_all).filter(|case| case.scenario.traffic.suits(case.scheme))
}

/// A receiver's host and its link.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// When its receiver starts.
    pub joins: u64,
    /// When its receiver finishes, if before the end.
    pub leaves: Option<u64>,
    /// The link's rate, kbit/s: from which second on it is what. The first is from 0 on.
    pub rates_kbps: &'static [(u64, u64)],
    /// One-way propagation delay, ms.
    pub delay_ms: u64,
    /// Share of the packets that are lost at random.
    pub loss: f64,
}

/// What came of a scenario.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// By host.
    pub hosts: Vec<HostOutcome>,
}

/// What came of a host.
#[derive(Debug, Clone, Default)]
pub struct HostOutcome {
    /// What its receiver told and got.
    pub record: Record,
    /// What came over its link from [`LEAVE_GRACE`] after its receiver finished to the end.
    pub after_leave: Option<Bytes>,
}

impl Case {
    /// Asserts every claim. Panics with all that do not hold; `run` says what gave the outcome.
    pub fn assert_claims(&self, outcome: &Outcome, run: &str) {
        let broken: Vec<String> =
            self.findings(outcome).iter().filter(|finding| !finding.holds).map(Finding::to_string).collect();
        assert!(broken.is_empty(), "{self}, {run}:\n{}", broken.join("\n"));
    }

    /// Whether every claim holds.
    pub fn holds(&self, outcome: &Outcome) -> bool {
        self.findings(outcome).iter().all(|finding| finding.holds)
    }

    /// What was found for each claim.
    pub fn findings(&self, outcome: &Outcome) -> Vec<Finding> {
        self.claims().map(|claim| claim.judge(self.scenario, outcome)).collect()
    }

    fn claims(&self) -> impl Iterator<Item = Claim> {
        let own = self.scenario.own_claims.iter().filter(|own| own.schemes.contains(&self.scheme.name));
        self.scenario.claims.iter().chain(own.flat_map(|own| own.claims)).copied()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.scheme.name, self.scenario.name)
    }
}

impl Scenario {
    fn end(&self) -> Time {
        Time::from_secs(self.seconds)
    }
}

impl Traffic {
    /// Whether the scheme can carry it.
    fn suits(self, scheme: &Scheme) -> bool {
        match self {
            Traffic::Layered { .. } => scheme.is_layered(),
            Traffic::Paced => scheme.is_paced(),
        }
    }

    /// The most that a host can get, kbit/s; `None` for as much as its link carries.
    pub fn top_kbps(self) -> Option<u64> {
        match self {
            Traffic::Layered { ladder_kbps: (_, high) } => Some(high),
            Traffic::Paced => None,
        }
    }
}

impl Host {
    /// From second 0 on, at this rate, with neither delay nor loss.
    pub const fn at(rates_kbps: &'static [(u64, u64)]) -> Host {
        Host { joins: 0, leaves: None, rates_kbps, delay_ms: 0, loss: 0.0 }
    }

    /// The bottleneck at a rate.
    fn bottleneck(kbps: u64) -> LinkConfig {
        LinkConfig { rate: Some(Rate::from_kbps(kbps)), buffer: Buffer::Span(BUFFER), ..LinkConfig::default() }
    }

    /// What comes after the bottleneck; `None` if nothing happens there.
    fn path(&self) -> Option<LinkConfig> {
        let loss = if self.loss > 0.0 { Loss::Random(self.loss) } else { Loss::None };
        let delay = Duration::from_millis(self.delay_ms);
        (self.delay_ms > 0 || self.loss > 0.0).then(|| LinkConfig { delay, loss, ..LinkConfig::default() })
    }
}

/// The rate of a link that limits nobody, kbit/s.
pub const NO_LIMIT_KBPS: u64 = 100_000;

/// When what was on its way at a leave is gone.
pub const LEAVE_GRACE: Duration = Duration::from_secs(1);

/// Every link's buffer: four times the queue of τ = 100 ms that AVMRC aims at, so that there is room for the trial of a level
/// even if a busy host hears late what becomes of it.
const BUFFER: Duration = Duration::from_millis(400);

/// IP, UDP and ALC headers, and a symbol of 1400 bytes.
const PACKET_SIZE: u64 = 1456;

/// IP and UDP headers, and RTP congestion control feedback on 16 packets.
const FEEDBACK_SIZE: u64 = 80;

/// What a session's parties agree on.
fn session(ladder_kbps: (u64, u64)) -> Session {
    let (low, high) = (Rate::from_kbps(ladder_kbps.0), Rate::from_kbps(ladder_kbps.1));
    Session {
        ladder: Ladder::geometric(low, high, 1.5).expect("the list has usable ladders"),
        packet_size: Bytes::new(PACKET_SIZE),
        form: CciForm::Short,
        habitat: Habitat::Sockets,
    }
}

/// What a stream's parties agree on.
fn stream() -> Stream {
    let (packet_size, feedback_size) = (Bytes::new(PACKET_SIZE), Bytes::new(FEEDBACK_SIZE));
    Stream { packet_size, feedback_size, habitat: Habitat::Sockets }
}
