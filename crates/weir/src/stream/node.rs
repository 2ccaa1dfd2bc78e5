//! What the sender and the members of a stream have in common: their account, and what they tell of it.

use std::net::SocketAddr;

use weir_core::observation::{Observation, WindowReport};
use weir_core::registry::{self, Build, Stream, Tree};
use weir_core::{Endpoint, PeerId};
use weir_net::clock::Clock;
use weir_net::host::{Departure, PeerChange, Progress, Statistics};
use weir_net::tree::Door;
use weir_units::{Bytes, Time};

use super::address::StreamAddress;
use super::events::{PeerStanding, StreamEnd, StreamEvent, StreamProgress};
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
    /// The node above has this number, if there is one.
    above: Option<PeerId>,
    pub(super) members: u64,
    report: Option<WindowReport>,
    pub(super) is_complete: bool,
    pub(super) outcome: Option<Exit>,
}

impl<'a> Node<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer<StreamEvent>, has_above: bool) -> Node<'a> {
        let now = Clock::new().now();
        Node {
            observer,
            is_unheard: false,
            started: now,
            shown: now,
            shown_bytes: 0,
            above: has_above.then_some(PeerId(0)),
            members: 0,
            report: None,
            is_complete: false,
            outcome: None,
        }
    }

    /// Notes how it stands with another node. Whether that is the node above, which is gone.
    pub(super) fn peer(&mut self, now: Time, peer: PeerId, address: SocketAddr, change: PeerChange) -> bool {
        let is_above = self.above == Some(peer);
        let what = match change {
            PeerChange::Up | PeerChange::Reached => "up",
            PeerChange::Unanswered { .. } => "unanswered",
            PeerChange::Busy => "busy",
            PeerChange::Down(Departure::Bye) => "bye",
            PeerChange::Down(Departure::Complete) => "finished",
            PeerChange::Down(Departure::Stopped | Departure::Declined) => "stopped",
            PeerChange::Down(Departure::Silent) => "silent",
            PeerChange::Down(Departure::Refused) => "refused",
        };
        match change {
            PeerChange::Up if !is_above => self.members += 1,
            PeerChange::Down(_) if !is_above => self.members -= 1,
            _ => {}
        }
        let standing = PeerStanding { t_s: self.t_s(now), peer: address.to_string(), is_above, what: what.to_owned() };
        self.show(&StreamEvent::Peer(standing));
        is_above && matches!(change, PeerChange::Down(_))
    }

    pub(super) fn observe(&mut self, observation: &Observation) {
        if let Observation::Window(report) = observation {
            self.report = Some(*report);
        }
    }

    /// Shows how it stands, if that is due. Says whether the user or the outcome ends the run.
    pub(super) fn tick(&mut self, now: Time, stream_bytes: u64) -> Progress {
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            let rate = Bytes::new(stream_bytes - self.shown_bytes).per(now.since(self.shown));
            (self.shown, self.shown_bytes) = (now, stream_bytes);
            let report = self.report.filter(|report| report.children > 0);
            let progress = StreamProgress {
                t_s: self.t_s(now),
                stream_bytes,
                rate_bps: rate.bps(),
                members: self.members,
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

    /// Shows how it ended.
    pub(super) fn end(
        mut self,
        exit: Exit,
        stream_bytes: u64,
        blake3: Option<blake3::Hash>,
        statistics: &Statistics,
    ) -> Exit {
        if let Some(error) = statistics.last_refusal {
            let refused = statistics.refused;
            self.trouble(format!("the system refused {refused} packets: {error}"), None);
        }
        let end = StreamEnd {
            t_s: self.t_s(Clock::new().now()),
            complete: self.is_complete,
            stream_bytes,
            blake3: blake3.map(|hash| hash.to_hex().to_string()),
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
    more: &[(&str, u64)],
) -> Result<Box<dyn Endpoint>, Failure> {
    let refused = |error| Failure::new(Exit::Usage, format!("{error}; `weir schemes` lists settings"));
    let tree = registry::find("mtcp").and_then(registry::Scheme::tree).map_err(refused)?;
    let more = more.iter().map(|(key, value)| registry::Setting { key: (*key).to_owned(), value: value.to_string() });
    let settings: Vec<_> = address.settings.iter().cloned().chain(more).collect();
    choose(&tree)(&address.stream(), &settings, session::random_stream("member")?).map_err(refused)
}

/// Where a node takes members.
pub(super) fn door(listen: SocketAddr) -> Result<Door, Failure> {
    Ok(Door { listen, secret: session::random()?, most: MOST_MEMBERS })
}

/// Below one node.
const MOST_MEMBERS: usize = 64;
