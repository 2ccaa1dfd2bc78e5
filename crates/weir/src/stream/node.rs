//! What the sender and the members of a stream have in common: their account, and what they tell of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use weir_core::observation::{Observation, Standing, TreeReport, WindowReport};
use weir_core::registry::{self, Build, Stream, Tree};
use weir_core::{Endpoint, PeerId};
use weir_net::clock::Clock;
use weir_net::host::{Departure, PeerChange, Progress, Statistics, TenantConfig};
use weir_net::tree::Door;
use weir_units::{Bytes, Time, parse_span};

use super::address::StreamAddress;
use super::events::{PeerStanding, Place, StreamEnd, StreamEvent, StreamProgress};
use super::seal::{Tally, Verdict};
use crate::events::Trouble;
use crate::exit::{Exit, Failure};
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::session;

/// A node while it runs.
pub(super) struct Node<'a> {
    observer: &'a mut dyn Observer<StreamEvent>,
    /// The observer wants no more.
    is_unheard: bool,
    started: Time,
    shown: Time,
    shown_bytes: u64,
    /// The nodes that are there, by number: members below, the node above, and those that were asked.
    addresses: BTreeMap<PeerId, SocketAddr>,
    below: BTreeSet<PeerId>,
    above: Option<(PeerId, u8)>,
    /// It has had no node above since then; `None` while it has one, or needs none.
    seeks_since: Option<Time>,
    idle_timeout: Duration,
    report: Option<WindowReport>,
    pub(super) is_complete: bool,
    pub(super) outcome: Option<Exit>,
}

impl<'a> Node<'a> {
    /// A member gives up when it has had no node above for `idle_timeout`; the sender needs none.
    pub(super) fn new(observer: &'a mut dyn Observer<StreamEvent>, idle_timeout: Option<Duration>) -> Node<'a> {
        let now = Clock::new().now();
        Node {
            observer,
            is_unheard: false,
            started: now,
            shown: now,
            shown_bytes: 0,
            addresses: BTreeMap::new(),
            below: BTreeSet::new(),
            above: None,
            seeks_since: idle_timeout.map(|_| now),
            idle_timeout: idle_timeout.unwrap_or_default(),
            report: None,
            is_complete: false,
            outcome: None,
        }
    }

    /// Notes how it stands with another node.
    pub(super) fn peer(&mut self, now: Time, peer: PeerId, address: SocketAddr, change: PeerChange) {
        let what = match change {
            PeerChange::Up | PeerChange::Reached => {
                self.addresses.insert(peer, address);
                return;
            }
            PeerChange::Unanswered { .. } => "unanswered",
            PeerChange::Busy | PeerChange::Later => "busy",
            // Members of a tree share no keys.
            PeerChange::OtherKey(_) => return,
            PeerChange::Down(why) => return self.gone(now, peer, address, why),
        };
        self.show_peer(now, address, true, what);
    }

    /// Another node has gone. If it is the sender, the stream is over.
    fn gone(&mut self, now: Time, peer: PeerId, address: SocketAddr, why: Departure) {
        self.addresses.remove(&peer);
        let what = match why {
            Departure::Bye => "bye",
            Departure::Complete => "finished",
            Departure::Stopped | Departure::Declined => "stopped",
            Departure::Silent | Departure::Forgotten => "silent",
            Departure::Refused => "refused",
        };
        if self.below.remove(&peer) {
            self.show_peer(now, address, false, what);
        }
        let Some((_, level)) = self.above.filter(|(above, _)| *above == peer) else { return };
        self.show_peer(now, address, true, what);
        let is_over = (level == 1 && why == Departure::Bye) || (self.is_complete && self.below.is_empty());
        if is_over {
            let exit = if self.is_complete { Exit::Done } else { Exit::Incomplete };
            self.outcome.get_or_insert(exit);
        }
    }

    fn show_peer(&mut self, now: Time, address: SocketAddr, is_above: bool, what: &str) {
        let standing = PeerStanding { t_s: self.t_s(now), peer: address.to_string(), is_above, what: what.to_owned() };
        self.show(&StreamEvent::Peer(standing));
    }

    pub(super) fn observe(&mut self, now: Time, observation: &Observation) {
        match observation {
            Observation::Window(report) => self.report = Some(*report),
            Observation::Tree(report) => self.on_tree(now, *report),
            _ => {}
        }
    }

    /// The tree has changed next to this node.
    fn on_tree(&mut self, now: Time, report: TreeReport) {
        let what = match report {
            TreeReport::Below { peer, standing } => return self.on_below(now, peer, standing),
            TreeReport::Attached { above, level, catches_up } => {
                (self.above, self.seeks_since) = (Some((above, level)), None);
                if catches_up { "catching_up" } else { "member" }
            }
            TreeReport::Seeking => {
                (self.above, self.seeks_since) = (None, Some(now));
                if self.is_complete && self.below.is_empty() {
                    return;
                }
                "seeking"
            }
            TreeReport::CutOff { forwards: true } => "forwarding",
            TreeReport::CutOff { forwards: false } => "cut_off",
            TreeReport::Multicast => "reached",
            TreeReport::Out(standing) => {
                self.above = None;
                self.outcome.get_or_insert(Exit::Incomplete);
                word(standing)
            }
        };
        let above = self.above.and_then(|(above, _)| self.addresses.get(&above)).map(SocketAddr::to_string);
        let level = self.above.map(|(_, level)| level);
        self.show(&StreamEvent::Place(Place { t_s: self.t_s(now), what: what.to_owned(), above, level }));
    }

    fn on_below(&mut self, now: Time, peer: PeerId, standing: Standing) {
        match standing {
            Standing::Child | Standing::CatchingUp => self.below.insert(peer),
            Standing::Stranger | Standing::TooSlow | Standing::TooLate => self.below.remove(&peer),
        };
        if let Some(address) = self.addresses.get(&peer).copied() {
            self.show_peer(now, address, false, word(standing));
        }
    }

    /// Gives up if it has had no node above for too long. A node that has everything and nobody below needs none.
    fn look_above(&mut self, now: Time) {
        if self.is_complete && self.below.is_empty() && self.seeks_since.is_some() {
            self.outcome.get_or_insert(Exit::Done);
        } else if self.outcome.is_none() && self.seeks_since.is_some_and(|since| now.since(since) >= self.idle_timeout)
        {
            self.trouble(format!("no node has taken this one for {:.0?}", self.idle_timeout), Some(Exit::Incomplete));
            self.outcome = Some(Exit::Incomplete);
        }
    }

    /// Shows how it stands, if that is due. Says whether the user or the outcome ends the run.
    pub(super) fn tick(&mut self, now: Time, stream_bytes: u64) -> Progress {
        self.look_above(now);
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            let rate = Bytes::new(stream_bytes - self.shown_bytes).per(now.since(self.shown));
            (self.shown, self.shown_bytes) = (now, stream_bytes);
            let report = self.report.filter(|report| report.children > 0);
            let progress = StreamProgress {
                t_s: self.t_s(now),
                stream_bytes,
                rate_bps: rate.bps(),
                members: self.below.len() as u64,
                window_packets: report.map(|report| report.window_packets),
                transit_packets: report.map(|report| report.transit_packets),
                round_trip_ms: report.and_then(|report| Some(report.round_trip?.as_secs_f64() * 1e3)),
            };
            self.show(&StreamEvent::Progress(progress));
        }
        if self.outcome.is_none() && self.observer.is_interrupted() {
            self.outcome = Some(Exit::Interrupted);
        }
        if self.outcome.is_some() || self.is_unheard { Progress::Stop } else { Progress::Continue }
    }

    /// Shows how it ended; an agent has seen no bytes of the stream, and a sender has nothing to verify.
    pub(super) fn end(
        mut self,
        exit: Exit,
        tally: Option<&Tally>,
        verdict: Option<Verdict>,
        statistics: &Statistics,
    ) -> Exit {
        if let Some(error) = statistics.last_refusal {
            let refused = statistics.refused;
            self.trouble(format!("the system refused {refused} packets: {error}"), None);
        }
        let end = StreamEnd {
            t_s: self.t_s(Clock::new().now()),
            complete: self.is_complete,
            stream_bytes: tally.map_or(statistics.received.bytes.count(), Tally::bytes),
            blake3: tally.map(|tally| tally.digest().to_hex().to_string()),
            verified: verdict.filter(|_| self.is_complete).map(|verdict| verdict == Verdict::Good),
            sent_packets: statistics.sent.packets,
            received_packets: statistics.received.packets,
            peers: statistics.peers,
            ignored: statistics.ignored.total(),
            exit_code: exit.code(),
        };
        self.show(&StreamEvent::End(end));
        exit
    }

    pub(super) fn trouble(&mut self, message: String, exit: Option<Exit>) {
        let t_s = self.t_s(Clock::new().now());
        self.show(&StreamEvent::Error(Trouble { t_s, message, exit_code: exit.map(Exit::code) }));
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    pub(super) fn show(&mut self, event: &StreamEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}

/// A party of MTCP. A setting that is not accepted is the user's fault.
pub(super) fn party(
    address: &StreamAddress,
    choose: fn(&Tree) -> Build<Stream>,
    more: &[(&str, String)],
) -> Result<Box<dyn Endpoint>, Failure> {
    let refused = |error| Failure::new(Exit::Usage, format!("{error}; `weir schemes` lists settings"));
    let tree = registry::find("mtcp").and_then(registry::Scheme::tree).map_err(refused)?;
    let more = more.iter().map(|(key, value)| registry::Setting { key: (*key).to_owned(), value: value.clone() });
    let settings: Vec<_> = address.settings.iter().cloned().chain(more).collect();
    choose(&tree)(&address.stream(), &settings, session::random_stream("member")?).map_err(refused)
}

/// How to run a node. The protocol, not the host, decides when a peer has been silent for too long.
pub(super) fn tenant(address: &StreamAddress) -> TenantConfig {
    let set = address.settings.iter().rev().find(|setting| setting.key == "evict_after");
    let evict_after = set.and_then(|setting| parse_span(&setting.value).ok()).unwrap_or(EVICT_AFTER);
    TenantConfig { silence: evict_after + Duration::from_secs(10), ..TenantConfig::default() }
}

/// What members assume unless the address says otherwise.
pub(super) const EVICT_AFTER: Duration = Duration::from_secs(60);

/// Where a node takes members.
pub(super) fn door(listen: SocketAddr) -> Result<Door, Failure> {
    Ok(Door { listen, secret: session::random()?, most: MOST_MEMBERS })
}

/// What a node is to another, as events have it.
fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Stranger => "stopped",
        Standing::Child => "joined",
        Standing::CatchingUp => "catching_up",
        Standing::TooSlow => "too_slow",
        Standing::TooLate => "too_late",
    }
}

/// Below one node, those included that only ask.
const MOST_MEMBERS: usize = 64;
