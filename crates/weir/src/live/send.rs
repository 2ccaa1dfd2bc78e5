//! `weir send live`: paces an input to all who ask for it, each at the rate that its own path allows, until the input ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use weir_core::observation::Observation;
use weir_core::registry::{Habitat, Setting, Stream};
use weir_core::{Endpoint, PeerId};
use weir_net::NetError;
use weir_net::clock::Clock;
use weir_net::host::{Application, Departure, Host, PeerChange, Progress, Statistics, Tenant};
use weir_net::live::{self, LiveConfig};
use weir_net::profile::RtpProfile;
use weir_net::seal::{Identity, PAIR_OVERHEAD, PairConfig};
use weir_net::socket::header_len;
use weir_object::keys::SecretKey;
use weir_units::{Bytes, Random, Time};
use weir_wire::rtcp::congestion;
use weir_wire::rtcp::handshake::Terms;
use weir_wire::rtp::Rtp;

use super::events::{LiveEnd, LiveSenderEvent, SendProgress, SendStart, ViewerChange, ViewerProgress};
use super::feed::Feed;
use super::input::{LONGEST_WAIT, Pacing, Source, Supply};
use super::viewers::{self, Given, Viewer, Viewers};
use crate::args::SendLive;
use crate::events::{Role, Trouble};
use crate::exit::{Exit, Failure};
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::{key, session};

/// Paces an input to all who ask for it, each at the rate that its own path allows, until the input ends.
pub fn run(args: &SendLive, observer: &mut dyn Observer<LiveSenderEvent>) -> Result<Exit, Failure> {
    // A bad setting is told before anybody comes.
    let packet_size = Bytes::new(u64::from(args.packet_size));
    let stream = stream(packet_size, Ipv4Addr::UNSPECIFIED.into());
    let settings = settings(args);
    args.cc.check_stream(&stream, &settings).map_err(|error| {
        Failure::new(Exit::Usage, format!("{error}; `weir schemes` lists schemes and their settings"))
    })?;
    let headers = header_len(Ipv6Addr::UNSPECIFIED.into()) as usize + header(args) + sealed(args);
    let room = usize::from(args.packet_size) - headers;
    let random = u32::from_be_bytes(session::random()?);
    if args.pace.is_some() && args.input.is_endless() {
        let text = "--pace is for files and standard input; what another program sends goes as it comes";
        return Err(Failure::new(Exit::Usage, text.to_owned()));
    }
    let pacing = args.pace.map_or(Pacing::OwnClock, Pacing::Rate);
    let longest_wait = if args.latency.is_zero() { LONGEST_WAIT } else { args.latency };
    let source = Source::open(&args.input, room, args.payload_type, random, pacing, longest_wait)
        .map_err(Failure::of(Exit::Files, format!("cannot read {}", args.input)))?;
    let identity = args.encrypt.then(|| key::secret(args.key.as_deref())).transpose()?;
    let tenant = listen(args, identity.as_ref())?;
    let clock = Clock::new();
    let mut run = LiveSender {
        args,
        settings,
        observer,
        is_unheard: false,
        is_pace_told: false,
        random: session::random_stream("viewers")?,
        feed: Feed::new(source, longest_wait),
        started: clock.now(),
        shown: clock.now(),
        shown_bytes: 0,
        viewers: Viewers::new(),
        given: Given::default(),
        backoffs_before: 0,
        finished: 0,
        last_departure: None,
        outcome: None,
    };
    run.show(&LiveSenderEvent::Start(SendStart {
        role: Role::Sender,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scheme: args.cc.name.to_owned(),
        address: tenant.unicast_local(0).map_or_else(String::new, |address| address.to_string()),
        input: args.input.to_string(),
        key: identity.map(|key| key.public().to_string()),
    }));
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    Ok(run.end(clock.now(), &statistics))
}

/// The settings of the scheme. What goes again for a while is the scheme's, and the latency says for how long.
fn settings(args: &SendLive) -> Vec<Setting> {
    let mut settings = args.cc_set.clone();
    if !args.latency.is_zero() && settings.iter().all(|setting| setting.key != REPAIR) {
        settings.push(Setting { key: REPAIR.to_owned(), value: format!("{}ms", args.latency.as_millis()) });
    }
    settings
}

/// Bytes of each packet's header.
fn header(args: &SendLive) -> usize {
    if args.latency.is_zero() { Rtp::LEN } else { Rtp::LEN_WITH_ORIGIN }
}

/// Bytes that a seal adds to each packet.
fn sealed(args: &SendLive) -> usize {
    if args.encrypt { PAIR_OVERHEAD } else { 0 }
}

fn listen(args: &SendLive, identity: Option<&SecretKey>) -> Result<Tenant<RtpProfile>, Failure> {
    let mut config = LiveConfig { capture: args.output.pcap.clone(), ..LiveConfig::default() };
    if let Some(key) = identity {
        let identity = Identity { public: key.public().to_bytes(), agreement: key.agreement() };
        config.keys = Some(PairConfig { secret: session::random()?, identity: Some(identity), expected: None });
    }
    config.tenant.silence = args.silence;
    let secret = session::random()?;
    let failed = Failure::of(Exit::Network, "cannot wait for viewers");
    let most = usize::from(args.viewers);
    match live::source(args.unicast, secret, most, &config) {
        // A host without IPv6 has IPv4 at least.
        Err(NetError::Socket { .. }) if args.unicast.ip() == Ipv6Addr::UNSPECIFIED => {
            let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), args.unicast.port());
            live::source(any, secret, most, &config).map_err(failed)
        }
        outcome => outcome.map_err(failed),
    }
}

fn stream(packet_size: Bytes, viewer: IpAddr) -> Stream {
    let feedback_size = Bytes::new(header_len(viewer) + congestion::MAX_LEN as u64);
    Stream { packet_size, feedback_size, habitat: Habitat::Sockets }
}

/// A running sender.
struct LiveSender<'a> {
    args: &'a SendLive,
    /// Of the scheme.
    settings: Vec<Setting>,
    observer: &'a mut dyn Observer<LiveSenderEvent>,
    /// The observer wants no more.
    is_unheard: bool,
    /// The user knows whether the input goes by a clock of its own.
    is_pace_told: bool,
    /// Seeds the endpoint of each viewer.
    random: Random,
    feed: Feed,
    started: Time,
    shown: Time,
    shown_bytes: u64,
    viewers: Viewers,
    /// To all viewers, also those that have gone.
    given: Given,
    /// Back-offs of viewers that have gone.
    backoffs_before: u64,
    /// Viewers that have got everything to the end.
    finished: u64,
    /// How the last viewer left.
    last_departure: Option<Departure>,
    outcome: Option<Exit>,
}

impl Application<Rtp> for LiveSender<'_> {
    fn payload_for(&mut self, now: Time, viewer: PeerId) -> Option<(Rtp, Arc<[u8]>)> {
        let (header, payload) = self.feed.next(now, viewer)?;
        self.given.note(&payload);
        if let Some(viewer) = self.viewers.get_mut(&viewer) {
            viewer.note_given(&payload);
        }
        Some((header, payload))
    }

    fn waiting_for(&self, viewer: PeerId) -> Option<u64> {
        Some(self.feed.waiting(viewer))
    }

    fn is_over(&self) -> bool {
        self.feed.is_over()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.feed.readable()
    }

    fn read(&mut self, now: Time) {
        self.feed.fill(now);
    }

    fn terms(&self, viewer: SocketAddr) -> Option<Terms> {
        let size = u16::try_from(self.packet_size(viewer.ip()).count()).unwrap_or(u16::MAX);
        let latency_ms = u16::try_from(self.args.latency.as_millis()).unwrap_or(u16::MAX);
        let terms = Terms::new(self.feed.source().payload_type()?, size, self.args.cc.name).unwrap_or_default();
        Some(Terms { latency_ms, ..terms })
    }

    fn open(&mut self, _now: Time, viewer: SocketAddr, _terms: &Terms) -> Option<Box<dyn Endpoint>> {
        let stream = stream(self.packet_size(viewer.ip()), viewer.ip());
        let random = Random::new(self.random.bits(), "source");
        let endpoint = self.args.cc.source(&stream, &self.settings, random);
        Some(endpoint.expect("the same settings were good at the start"))
    }

    fn peer(&mut self, now: Time, peer: PeerId, address: SocketAddr, change: PeerChange) {
        let what = match change {
            PeerChange::Up => {
                let (packet_size, payload_len) = (self.packet_size(address.ip()), self.feed.source().payload_len());
                self.viewers.insert(peer, Viewer::new(address, packet_size, payload_len));
                self.feed.add(peer);
                "came"
            }
            PeerChange::Down(why) => {
                self.backoffs_before += self.viewers.remove(&peer).map_or(0, |viewer| viewer.backoffs());
                self.feed.remove(peer);
                self.finished += u64::from(why == Departure::Complete);
                self.last_departure = Some(why);
                word(why)
            }
            PeerChange::Reached
            | PeerChange::Unanswered { .. }
            | PeerChange::OtherKey(_)
            | PeerChange::Busy
            | PeerChange::Later => return,
        };
        let viewers = self.viewers.len() as u64;
        let event = ViewerChange { t_s: self.t_s(now), viewer: address.to_string(), what: what.to_owned(), viewers };
        self.show(&LiveSenderEvent::Viewer(event));
    }

    fn observe_peer(&mut self, now: Time, viewer: PeerId, observation: &Observation) {
        if let (Observation::Pace(report), Some(viewer)) = (observation, self.viewers.get_mut(&viewer)) {
            viewer.on_pace(now, report);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.feed.next_due()
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.feed.turn(now);
        if self.feed.source().lacks_clock() && !std::mem::replace(&mut self.is_pace_told, true) {
            let message = format!(
                "{} has no clock that can be read, as an MPEG transport stream has: it goes as fast as the path allows; --pace RATE holds it to a rate",
                self.args.input
            );
            self.trouble(now, message, None);
        }
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        if self.outcome.is_none() && self.observer.is_interrupted() {
            // An input without an end is ended so.
            self.outcome = Some(if self.args.input.is_endless() { Exit::Done } else { Exit::Interrupted });
        }
        // Who has gone before the end is not waited for once another viewer has got everything.
        let is_left = self.finished == 0 && self.feed.waiting_in_all() > 0;
        let is_sent = self.viewers.is_empty() && self.feed.is_over() && !is_left;
        if self.outcome.is_some() || self.is_unheard || is_sent { Progress::Stop } else { Progress::Continue }
    }
}

/// The setting of schemes that send lost packets' content again.
const REPAIR: &str = "repair";

/// How a viewer's departure is called in events.
fn word(why: Departure) -> &'static str {
    match why {
        Departure::Bye => "bye",
        Departure::Complete => "finished",
        Departure::Stopped | Departure::Declined => "stopped",
        Departure::Silent | Departure::Forgotten => "silent",
        Departure::Refused => "refused",
    }
}

impl LiveSender<'_> {
    fn packet_size(&self, viewer: IpAddr) -> Bytes {
        Bytes::new(
            (self.feed.source().payload_len() + header(self.args) + sealed(self.args)) as u64 + header_len(viewer),
        )
    }

    fn progress(&mut self, now: Time, statistics: &Statistics) {
        let sent_bytes = statistics.sent.bytes.count();
        let interval = now.since(self.shown);
        let rate = Bytes::new(sent_bytes - self.shown_bytes).per(interval);
        (self.shown, self.shown_bytes) = (now, sent_bytes);
        let each = viewers::progress(&mut self.viewers, now, interval, statistics, &self.feed);
        let least = |of: fn(&ViewerProgress) -> Option<u64>| each.iter().filter_map(of).min();
        let event = SendProgress {
            t_s: self.t_s(now),
            viewers: each.len() as u64,
            sent_bytes,
            sent_packets: statistics.sent.packets,
            resent_packets: self.given.resent(statistics.sent.packets),
            rate_bps: rate.bps(),
            allowed_bps: least(|viewer| viewer.allowed_bps),
            target_bps: least(|viewer| viewer.target_bps),
            round_trip_ms: each.iter().filter_map(|viewer| viewer.round_trip_ms).reduce(f64::max),
            backoffs: self.backoffs_before + each.iter().map(|viewer| viewer.backoffs).sum::<u64>(),
            waiting: self.feed.waiting_in_all(),
            dropped: self.feed.dropped(),
            each,
        };
        self.show(&LiveSenderEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &Statistics) -> Exit {
        let mut exit = self.outcome.unwrap_or(match self.last_departure {
            Some(Departure::Silent | Departure::Refused) if self.finished == 0 => Exit::Incomplete,
            _ => Exit::Done,
        });
        if let Some(error) = self.feed.source().failure() {
            exit = Exit::Files;
            let message = format!("cannot read {} any further: {error}", self.args.input);
            self.trouble(now, message, Some(exit));
        }
        if self.feed.source().too_large() > 0 {
            let message = format!(
                "{} payloads were not sent, as they are larger than --packet-size {} allows",
                self.feed.source().too_large(),
                self.args.packet_size
            );
            self.trouble(now, message, None);
        }
        if let Some(error) = statistics.last_refusal {
            let refused = statistics.refused;
            let message = format!(
                "the system refused {refused} packets: {error}; if it says that they are too long, try a smaller --packet-size"
            );
            self.trouble(now, message, None);
        }
        let event = LiveEnd {
            t_s: self.t_s(now),
            sent_bytes: statistics.sent.bytes.count(),
            sent_packets: statistics.sent.packets,
            resent_packets: self.given.resent(statistics.sent.packets),
            payload_bytes: statistics.sent_payload.count(),
            viewers: statistics.peers,
            dropped: self.feed.dropped(),
            ignored: statistics.ignored.total(),
            turned_away: statistics.turned_away,
            exit_code: exit.code(),
        };
        self.show(&LiveSenderEvent::End(event));
        exit
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&LiveSenderEvent::Error(event));
    }

    fn show(&mut self, event: &LiveSenderEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}
