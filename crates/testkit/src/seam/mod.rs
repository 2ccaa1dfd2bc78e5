//! The promises of the contract between endpoints and drivers (`weir_core::endpoint`), one by one: small scripted endpoints,
//! and what must come of them on every driver.
//!
//! A [`Scenario`] is data that any driver can set up: who runs on which host, who knows whom, which sessions and channels there
//! are, what applications supply and read. A driver runs it and gives an [`Outcome`], and the same code judges it. Not here:
//! schemes, whose scenarios are in [`conformance`](crate::conformance), and how fast anything is.

mod arrivals;
mod channels;
mod ecn;
mod payloads;
mod peers;
mod ranges;
mod replies;
mod script;
pub mod simulated;
pub mod sockets;

use std::time::Duration;

use weir_link::LinkConfig;

pub use script::{HEADER_SIZE, Log, Script, Seen};

/// A promise, and how to see that it is kept.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The promise.
    pub name: &'static str,
    /// Who is there.
    pub setup: fn() -> Setup,
    /// Panics if the promise was not kept.
    pub check: fn(&Outcome),
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    peers::PEERS_LAST,
    peers::CONTACTED,
    replies::STRANGERS_GET_REPLIES,
    channels::EVERYBODY_SENDS,
    ranges::CHANNELS_FOLLOW_ONE_ANOTHER,
    payloads::SENT_AGAIN_AND_IN_ORDER,
    payloads::ROOM_IS_TOLD,
    payloads::DELIVERED_AT_ONCE,
    payloads::SUPPLY_WITHOUT_END,
    arrivals::PAIRS_ARE_SPREAD,
    ecn::MARKS_ARRIVE,
];

/// Parties, each on a host of its own, and the sessions that they are in.
#[derive(Debug)]
pub struct Setup {
    /// The parties. Others name them by their places.
    pub parties: Vec<Party>,
    /// The sessions. Parties name them by their places.
    pub sessions: Vec<Session>,
    /// When the run ends, from its start.
    pub lasts: Duration,
}

/// An endpoint, its host and its applications.
#[derive(Debug)]
pub struct Party {
    /// What it does. Its headers are experimental ones.
    pub endpoint: Script,
    /// When it starts, from the start of the run.
    pub starts: Duration,
    /// When it is told to finish, from the start of the run.
    pub stops: Option<Duration>,
    /// The parties that it knows from its configuration: peers 0 and on.
    pub knows: Vec<usize>,
    /// Whether parties that know it become its peers while it runs. To others they are of unverified origin.
    pub accepts_peers: bool,
    /// The sessions that it is in, in the order of their channels.
    pub sessions: Vec<usize>,
    /// How many payloads its application offers at the start, before it says that this is the end; `u64::MAX` is a supply
    /// without end. Without, it always has something to send and says nothing of it. The payload of place n carries n, where
    /// payloads have bytes.
    pub offers: Option<u64>,
    /// How its application reads. Without, it has room for everything and says nothing of it.
    pub reads: Option<Reads>,
    /// What packets pass on their way to its host.
    pub link: LinkConfig,
}

/// How an application reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Payloads that it has room for.
    pub capacity: u64,
    /// From one payload that it reads to the next.
    pub gap: Duration,
}

/// A multicast session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// How many channels it has.
    pub channels: u16,
    /// The party on whose host it is rooted.
    pub root: usize,
}

/// What came of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// By party.
    pub parties: Vec<Account>,
    /// By how much arrival times may be off on this driver.
    pub slack: Duration,
}

/// What came of a party. Times count from its own start.
#[derive(Debug, Default)]
pub struct Account {
    /// What happened to its endpoint.
    pub seen: Vec<(Duration, Seen)>,
    /// What its application was given.
    pub given: Vec<Given>,
    /// How often its endpoint said that it has done what its application wanted.
    pub complete: usize,
}

/// A payload that an application was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// When.
    pub at: Duration,
    /// The number that the endpoint gave it.
    pub number: Option<u64>,
    /// Its place among those that were offered, if payloads have bytes on this driver.
    pub place: Option<u64>,
}

impl Scenario {
    /// Has a driver run it, and judges what comes of it.
    pub fn hold(&self, run: impl FnOnce(Setup) -> Outcome) {
        self.judge(&run((self.setup)()));
    }

    /// Panics if the promise was not kept, or if time went back for an endpoint, which is promised in every scenario.
    pub fn judge(&self, outcome: &Outcome) {
        for account in &outcome.parties {
            assert!(account.seen.is_sorted_by_key(|(at, _)| *at), "time goes back: {:?}", account.seen);
        }
        (self.check)(outcome);
    }
}

impl Party {
    /// A party that starts at once and stays, knows nobody, is in no session, and is behind a perfect link.
    pub fn new(endpoint: Script) -> Party {
        Party {
            endpoint,
            starts: Duration::ZERO,
            stops: None,
            knows: Vec::new(),
            accepts_peers: false,
            sessions: Vec::new(),
            offers: None,
            reads: None,
            link: LinkConfig::default(),
        }
    }

    /// The same, with peers from its configuration.
    #[must_use]
    pub fn that_knows(mut self, parties: &[usize]) -> Party {
        self.knows = parties.to_vec();
        self
    }

    /// The same, in these sessions.
    #[must_use]
    pub fn in_sessions(mut self, sessions: &[usize]) -> Party {
        self.sessions = sessions.to_vec();
        self
    }
}

/// So many milliseconds.
const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
