//! Serves a stream to all who ask for it, each at the rate that its own path allows, until it ends. `weir send live` does, and
//! `weir send media --unicast`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weir_core::observation::Observation;
use weir_core::registry::{Habitat, Scheme, Setting, Stream};
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

use super::content::{Content, Next};
use super::events::{LiveEnd, LiveSenderEvent, SendProgress, SendStart, ViewerChange, ViewerProgress};
use super::feed::Feed;
use super::input::{LONGEST_WAIT, Pacing, Source};
use super::viewers::{self, Given, Viewer, Viewers};
use crate::args::SendLive;
use crate::events::{Role, Trouble};
use crate::exit::{Exit, Failure};
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::{key, session};

/// How a stream is served, whatever it holds.
#[derive(Debug)]
pub(crate) struct Service {
    /// Where viewers ask.
    pub(crate) listen: SocketAddr,
    /// How many are served at a time.
    pub(crate) viewers: u16,
    /// Congestion control.
    pub(crate) scheme: &'static Scheme,
    pub(crate) settings: Vec<Setting>,
    /// How long after the sender got it the stream is given out.
    pub(crate) latency: Duration,
    /// The sender's key, if the stream is encrypted.
    pub(crate) identity: Option<SecretKey>,
    /// A viewer that has not answered for this long is gone.
    pub(crate) silence: Duration,
    /// Where packets are written to.
    pub(crate) capture: Option<PathBuf>,
    /// What is sent, for people.
    pub(crate) input: String,
    /// It goes on until it is interrupted.
    pub(crate) is_endless: bool,
}

impl Service {
    /// Bytes that a seal adds to each packet.
    fn sealed(&self) -> usize {
        sealed(self.identity.is_some())
    }
}

/// Bytes that a seal adds to each packet, if there is one.
pub(crate) fn sealed(is_encrypted: bool) -> usize {
    if is_encrypted { PAIR_OVERHEAD } else { 0 }
}

/// `weir send live`: paces an input to all who ask for it, until the input ends.
pub fn run(args: &SendLive, observer: &mut dyn Observer<LiveSenderEvent>) -> Result<Exit, Failure> {
    if args.pace.is_some() && args.input.is_endless() {
        let text = "--pace is for files and standard input; what another program sends goes as it comes";
        return Err(Failure::new(Exit::Usage, text.to_owned()));
    }
    let settings = settings(args);
    // A bad setting is told before the input is opened.
    check(args.cc, &settings, args.packet_size)?;
    let rtp_len = if args.latency.is_zero() { Rtp::LEN } else { Rtp::LEN_WITH_ORIGIN };
    let headers = header_len(Ipv6Addr::UNSPECIFIED.into()) as usize + rtp_len + sealed(args.encrypt);
    let room = usize::from(args.packet_size) - headers;
    let random = u32::from_be_bytes(session::random()?);
    let pacing = args.pace.map_or(Pacing::OwnClock, Pacing::Rate);
    let longest_wait = if args.latency.is_zero() { LONGEST_WAIT } else { args.latency };
    let source = Source::open(&args.input, room, args.payload_type, random, pacing, longest_wait)
        .map_err(Failure::of(Exit::Files, format!("cannot read {}", args.input)))?;
    let service = Service {
        listen: args.unicast,
        viewers: args.viewers,
        scheme: args.cc,
        settings,
        latency: args.latency,
        identity: args.encrypt.then(|| key::secret(args.key.as_deref())).transpose()?,
        silence: args.silence,
        capture: args.output.pcap.clone(),
        input: args.input.to_string(),
        is_endless: args.input.is_endless(),
    };
    serve(&service, Feed::new(source, rtp_len, longest_wait), observer)
}

/// The settings of the scheme: the user's, and what a stream wants. What goes again for a while is the scheme's, and the latency says for
/// how long.
fn settings(args: &SendLive) -> Vec<Setting> {
    let latency = format!("{}ms", args.latency.as_millis());
    let mut wanted = Vec::new();
    if !args.latency.is_zero() {
        wanted.push((REPAIR, latency.as_str()));
    }
    if args.input.is_endless() {
        wanted.push(QUEUED_LOSSES);
    }
    with_wanted(&args.cc_set, &wanted)
}

/// The user's settings, and those that he did not give.
pub(crate) fn with_wanted(given: &[Setting], wanted: &[(&str, &str)]) -> Vec<Setting> {
    let missing = wanted.iter().filter(|(key, _)| given.iter().all(|setting| setting.key != *key));
    let missing = missing.map(|(key, value)| Setting { key: (*key).to_owned(), value: (*value).to_owned() });
    given.iter().cloned().chain(missing).collect()
}

/// Checks the settings of a scheme before anybody comes.
pub(crate) fn check(scheme: &Scheme, settings: &[Setting], packet_size: u16) -> Result<(), Failure> {
    let stream = stream(Bytes::new(packet_size.into()), Ipv4Addr::UNSPECIFIED.into());
    scheme
        .check_stream(&stream, settings)
        .map_err(|error| Failure::new(Exit::Usage, format!("{error}; `weir schemes` lists schemes and their settings")))
}

/// Serves a stream until it ends.
pub(crate) fn serve(
    service: &Service,
    content: impl Content,
    observer: &mut dyn Observer<LiveSenderEvent>,
) -> Result<Exit, Failure> {
    let tenant = listen(service)?;
    let clock = Clock::new();
    let mut run = LiveSender {
        service,
        observer,
        is_unheard: false,
        random: session::random_stream("viewers")?,
        content,
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
        scheme: service.scheme.name.to_owned(),
        address: tenant.unicast_local(0).map_or_else(String::new, |address| address.to_string()),
        input: service.input.clone(),
        key: service.identity.as_ref().map(|key| key.public().to_string()),
    }));
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    Ok(run.end(clock.now(), &statistics))
}

fn listen(service: &Service) -> Result<Tenant<RtpProfile>, Failure> {
    let mut config = LiveConfig { capture: service.capture.clone(), ..LiveConfig::default() };
    if let Some(key) = &service.identity {
        let identity = Identity { public: key.public().to_bytes(), agreement: key.agreement() };
        config.keys = Some(PairConfig { secret: session::random()?, identity: Some(identity), expected: None });
    }
    config.tenant.silence = service.silence;
    let secret = session::random()?;
    let failed = Failure::of(Exit::Network, "cannot wait for viewers");
    let most = usize::from(service.viewers);
    match live::source(service.listen, secret, most, &config) {
        // A host without IPv6 has IPv4 at least.
        Err(NetError::Socket { .. }) if service.listen.ip() == Ipv6Addr::UNSPECIFIED => {
            let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), service.listen.port());
            live::source(any, secret, most, &config).map_err(failed)
        }
        outcome => outcome.map_err(failed),
    }
}

/// What congestion control has to know of a stream to a viewer.
pub(crate) fn stream(packet_size: Bytes, viewer: IpAddr) -> Stream {
    let feedback_size = Bytes::new(header_len(viewer) + congestion::MAX_LEN as u64);
    Stream { packet_size, feedback_size, habitat: Habitat::Sockets }
}

/// A running sender.
struct LiveSender<'a, C> {
    service: &'a Service,
    observer: &'a mut dyn Observer<LiveSenderEvent>,
    /// The observer wants no more.
    is_unheard: bool,
    /// Seeds the endpoint of each viewer.
    random: Random,
    content: C,
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

impl<C: Content> Application<Rtp> for LiveSender<'_, C> {
    fn payload_for(&mut self, now: Time, viewer: PeerId) -> Option<(Rtp, Arc<[u8]>)> {
        let Next { header, payload, is_again } = self.content.next(now, viewer)?;
        if !is_again {
            self.given.note(&payload);
            self.viewers.get_mut(&viewer).into_iter().for_each(|viewer| viewer.note_given(&payload));
        }
        Some((header, payload))
    }

    fn waiting_for(&self, viewer: PeerId) -> Option<u64> {
        Some(self.content.waiting(viewer))
    }

    fn is_over(&self) -> bool {
        self.content.is_over()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.content.readable()
    }

    fn read(&mut self, now: Time) {
        self.content.read(now);
    }

    fn terms(&self, viewer: SocketAddr) -> Option<Terms> {
        let size = u16::try_from(self.packet_size(viewer.ip()).count()).unwrap_or(u16::MAX);
        let latency_ms = u16::try_from(self.service.latency.as_millis()).unwrap_or(u16::MAX);
        let terms = Terms::new(self.content.payload_type()?, size, self.service.scheme.name).unwrap_or_default();
        Some(Terms { latency_ms, pictures: self.content.pictures(), ..terms })
    }

    fn open(&mut self, _now: Time, viewer: SocketAddr, _terms: &Terms) -> Option<Box<dyn Endpoint>> {
        let stream = stream(self.packet_size(viewer.ip()), viewer.ip());
        let random = Random::new(self.random.bits(), "source");
        let endpoint = self.service.scheme.source(&stream, &self.service.settings, random);
        Some(endpoint.expect("the same settings were good at the start"))
    }

    fn peer(&mut self, now: Time, peer: PeerId, address: SocketAddr, change: PeerChange) {
        let what = match change {
            PeerChange::Up => {
                let (packet_size, payload_len) = (self.packet_size(address.ip()), self.content.payload_len());
                self.viewers.insert(peer, Viewer::new(address, packet_size, payload_len));
                self.content.add(now, peer, packet_size);
                "came"
            }
            PeerChange::Down(why) => {
                self.backoffs_before += self.viewers.remove(&peer).map_or(0, |viewer| viewer.backoffs());
                self.content.remove(peer);
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
        self.content.observe(now, viewer, observation);
        if let (Observation::Pace(report), Some(viewer)) = (observation, self.viewers.get_mut(&viewer)) {
            viewer.on_pace(now, report);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.content.next_due()
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.content.turn(now);
        for message in self.content.told() {
            self.trouble(now, message, None);
        }
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        if self.outcome.is_none() && self.observer.is_interrupted() {
            // An input without an end is ended so.
            self.outcome = Some(if self.service.is_endless { Exit::Done } else { Exit::Interrupted });
        }
        // A viewer that has gone before the end is not waited for once another viewer has got everything.
        let is_left = self.finished == 0 && self.content.waiting_in_all() > 0;
        let is_sent = self.viewers.is_empty() && self.content.is_over() && !is_left;
        if self.outcome.is_some() || self.is_unheard || is_sent { Progress::Stop } else { Progress::Continue }
    }
}

/// The setting of schemes that send lost packets' content again.
const REPAIR: &str = "repair";
/// RAP's. What an encoder makes has a rate of its own, and takes no more of a path that only loses packets of its own (decision 23 of
/// docs/papers/rap.md).
pub(crate) const QUEUED_LOSSES: (&str, &str) = ("losses", "queued");

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

impl<C: Content> LiveSender<'_, C> {
    fn packet_size(&self, viewer: IpAddr) -> Bytes {
        Bytes::new(
            (self.content.payload_len() + self.content.header_len() + self.service.sealed()) as u64
                + header_len(viewer),
        )
    }

    fn progress(&mut self, now: Time, statistics: &Statistics) {
        let sent_bytes = statistics.sent.bytes.count();
        let interval = now.since(self.shown);
        let rate = Bytes::new(sent_bytes - self.shown_bytes).per(interval);
        (self.shown, self.shown_bytes) = (now, sent_bytes);
        let each = viewers::progress(&mut self.viewers, now, interval, statistics, &self.content);
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
            waiting: self.content.waiting_in_all(),
            dropped: self.content.dropped(),
            each,
        };
        self.show(&LiveSenderEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &Statistics) -> Exit {
        let mut exit = self.outcome.unwrap_or(match self.last_departure {
            Some(Departure::Silent | Departure::Refused) if self.finished == 0 => Exit::Incomplete,
            _ => Exit::Done,
        });
        for message in self.content.told() {
            self.trouble(now, message, None);
        }
        if let Some(error) = self.content.failure() {
            exit = Exit::Files;
            let message = format!("cannot read {} any further: {error}", self.service.input);
            self.trouble(now, message, Some(exit));
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
            dropped: self.content.dropped(),
            ignored: statistics.ignored.total(),
            turned_away: statistics.turned_away,
            backoffs: self.backoffs_before + self.viewers.values().map(Viewer::backoffs).sum::<u64>(),
            layer_changes: self.content.layer_changes(),
            base_underflows: self.content.underflows(),
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
