//! A tenant: what takes part in one session, or in several under one manager.
//!
//! It is put together from an application, an endpoint (or one for each peer that comes), sessions with their channels, unicast
//! sockets, and peers; then a [`super::Host`] runs it.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags};
use weir_capture::Capture;
use weir_core::{ChannelId, Endpoint, Event, Header, Origin, PeerId};
use weir_units::{Ecn, Time};

use super::application::{Application, Progress};
use super::link::{LinkInFront, ModelledLink};
use super::outgoing::{Outgoing, Target};
use super::party::{Datagram, Party, Surroundings};
use super::peers::{Departure, Peers};
use super::{Run, Statistics};
use crate::clock::{self, Clock};
use crate::error::NetError;
use crate::handshake::Secret;
use crate::handshake::admission::Admission;
use crate::interface::Interface;
use crate::profile::{Found, Profile, Sender};
use crate::socket::{Arrival, Capabilities, Input, Output, ReceiveConfig, SendConfig, UnicastSocket, Way};

/// How to run a tenant.
#[derive(Debug, Clone)]
pub struct TenantConfig {
    /// The sockets that receive.
    pub sockets: ReceiveConfig,
    /// How often the application is called.
    pub tick: Duration,
    /// A peer that says nothing for this long is gone.
    pub silence: Duration,
    /// A modelled link between the sockets and the endpoint.
    pub link: Option<LinkInFront>,
}

impl Default for TenantConfig {
    /// A tick of 100 ms, a silence of 10 s, no link.
    fn default() -> TenantConfig {
        TenantConfig {
            sockets: ReceiveConfig::default(),
            tick: Duration::from_millis(100),
            silence: Duration::from_secs(10),
            link: None,
        }
    }
}

/// The sessions of a tenant, and what belongs to which.
#[derive(Debug)]
pub(super) struct Sessions<P> {
    all: Vec<Session<P>>,
    /// By unicast socket: its session.
    unicasts: Vec<usize>,
}

/// A session: how its packets look, and the channels that it has among the tenant's.
#[derive(Debug)]
pub(super) struct Session<P> {
    pub(super) profile: P,
    pub(super) channels: Range<u16>,
}

impl<P: Profile> Sessions<P> {
    /// The session of a channel. Channels of the tenant only.
    #[inline]
    pub(super) fn of_channel(&self, ChannelId(channel): ChannelId) -> &Session<P> {
        let has = |session: &&Session<P>| session.channels.contains(&channel);
        self.all.iter().find(has).expect("every channel of a tenant is of one of its sessions")
    }

    pub(super) fn of_unicast(&self, socket: usize) -> &Session<P> {
        &self.all[self.unicasts[socket]]
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Tenant<'a, P: Profile, A> {
    party: Party<'a, P, A>,
    input: Input,
    sessions: Sessions<P>,
    link: Option<ModelledLink>,
    clock: Clock,
    tick: Duration,
    next_tick: Time,
    rests_until: Time,
    /// What the application reads from can be read.
    is_application_ready: bool,
    closing: Option<Closing>,
}

/// A tenant that says goodbye.
#[derive(Debug, Clone, Copy)]
struct Closing {
    /// Packets that close the session, still to be sent on each channel.
    rounds: usize,
    next: Time,
}

impl<'a, P: Profile, A: Application<P::Label>> Tenant<'a, P, A> {
    /// A tenant without sessions. Its application makes an endpoint for each peer that comes, unless one is given with
    /// [`Tenant::with_endpoint`].
    pub fn new(application: &'a mut A, config: &TenantConfig) -> Tenant<'a, P, A> {
        let clock = Clock::new();
        Tenant {
            party: Party::new(application, Peers::new(config.silence), Outgoing::new(clock)),
            input: Input::new(&config.sockets),
            sessions: Sessions { all: Vec::new(), unicasts: Vec::new() },
            link: config.link.as_ref().map(ModelledLink::new),
            clock,
            tick: config.tick,
            next_tick: Time::ZERO,
            rests_until: Time::ZERO,
            is_application_ready: false,
            closing: None,
        }
    }

    /// Writes down all that is sent and received.
    pub fn record(&mut self, capture: Capture) {
        self.party.outgoing.capture = Some(capture);
    }

    /// One endpoint for the whole run.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: Box<dyn Endpoint>) -> Self {
        self.party.endpoint = Some(endpoint);
        self.party.is_per_peer = false;
        self
    }

    /// Adds a session with these channels; gives their numbers for the endpoint. With `sends`, packets can be sent to them.
    pub fn add_session(
        &mut self,
        profile: P,
        interface: &Interface,
        channels: &[SocketAddr],
        source: Option<IpAddr>,
        receives: bool,
        sends: Option<&SendConfig>,
    ) -> Result<Range<u16>, NetError> {
        let group = channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?.ip();
        let coalesces = profile.handling().coalesces;
        let output = sends.map(|config| {
            let config = SendConfig { offload: config.offload && coalesces, ..config.clone() };
            Output::to_channels(interface, group, &config)
        });
        let ttl = sends.map_or(1, |config| config.ttl);
        self.party.outgoing.add_channels(interface.index, channels, ttl, output.transpose()?);
        let numbers = self.input.add_channels(interface, channels, source, receives)?;
        self.party.statistics.channels.resize(usize::from(numbers.end), super::Amount::default());
        self.sessions.all.push(Session { profile, channels: numbers.clone() });
        Ok(numbers)
    }

    /// Adds a session without channels.
    pub fn add_unicast_session(&mut self, profile: P) {
        self.sessions.all.push(Session { profile, channels: 0..0 });
    }

    /// Adds a unicast socket to the session added last; gives its number.
    pub fn add_unicast(&mut self, socket: UnicastSocket) -> Result<usize, NetError> {
        let session = self.sessions.all.len().checked_sub(1);
        let session = session.ok_or(NetError::Channels("a unicast socket belongs to a session"))?;
        let coalesces = self.sessions.all[session].profile.handling().coalesces;
        self.party.outgoing.add_unicast(socket.output(coalesces)?);
        self.sessions.unicasts.push(session);
        self.input.add_unicast(socket)
    }

    /// Adds a peer that is reached without a handshake.
    pub fn add_peer(&mut self, socket: usize, address: SocketAddr) {
        self.party.peers.add_known(socket, address);
    }

    /// Adds a peer to contact when the run begins; the session starts when it has answered. `ssrc` is this host's.
    pub fn add_contact(&mut self, socket: usize, address: SocketAddr, ssrc: u32) {
        self.party.peers.add_contact(socket, address, ssrc, self.clock.now());
    }

    /// Takes up to `most` peers at a time that prove their address.
    pub fn admit(&mut self, secret: Secret, most: usize) {
        self.party.peers.admit(Admission::new(secret), most);
    }

    /// The address that packets to channels come from.
    pub fn local(&self) -> Option<SocketAddr> {
        self.party.outgoing.groups().first().map(Output::local)
    }

    /// The address of a unicast socket.
    pub fn unicast_local(&self, socket: usize) -> Option<SocketAddr> {
        self.party.outgoing.unicast(socket).map(Output::local)
    }

    /// What the system grants for receiving.
    pub fn capabilities(&self) -> Capabilities {
        self.input.capabilities()
    }

    /// Runs the application's tick.
    fn tick(&mut self, now: Time) -> Result<(), NetError> {
        self.next_tick = now + self.tick;
        let statistics = &mut self.party.statistics;
        statistics.link_dropped = self.link.as_ref().map_or(0, ModelledLink::dropped);
        statistics.turned_away = self.party.peers.turned_away;
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        match self.party.application.tick(now, statistics) {
            Progress::Continue => {}
            Progress::Finish => self.party.finish(now, &around)?,
            Progress::Stop => {
                self.party.finish(now, &around)?;
                self.party.peers.leave_all(now, Departure::Stopped);
                self.closing = Some(Closing { rounds: CLOSE_ROUNDS, next: now });
            }
        }
        while let Some(message) = self.party.application.next_message(now) {
            let Some((socket, to)) = self.party.peers.address(PeerId(0)) else { break };
            self.party.outgoing.message(socket, to, &message, &mut self.party.statistics)?;
        }
        Ok(())
    }

    /// Tells the members of all channels, a few times, that the session ends.
    fn close(&mut self, now: Time) -> Result<(), NetError> {
        let Some(closing) = self.closing.as_mut().filter(|closing| closing.rounds > 0 && closing.next <= now) else {
            return Ok(());
        };
        *closing = Closing { rounds: closing.rounds - 1, next: now + CLOSE_INTERVAL };
        let sessions = &self.sessions;
        let write = |channel: usize, last: Option<&Header>, ntp_micros, out: &mut [u8]| {
            let session = sessions.of_channel(ChannelId(channel as u16));
            session.profile.close(channel as u16 - session.channels.start, last, ntp_micros, out)
        };
        if !self.party.outgoing.close(write, &mut self.party.statistics)? {
            closing.rounds = 0;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.closing.is_some_and(|closing| closing.rounds == 0) && !self.party.peers.is_anybody_there()
    }

    /// Reads what is there, and gives it to the endpoint in its order, with deadlines between. Whether little was there.
    fn read(&mut self) -> Result<bool, NetError> {
        for refused in self.input.refusals() {
            self.party.peers.on_refused(self.clock.now(), refused);
        }
        let reading = self.input.receive(&self.clock)?;
        for number in 0..self.input.arrivals().len() {
            let arrival = self.input.arrivals()[number];
            self.advance(arrival.time)?;
            if arrival.dropped_before > 0 {
                self.party.statistics.host_dropped += arrival.dropped_before;
                let event = Event::HostDropped { packets: arrival.dropped_before };
                let around = Surroundings { input: &self.input, sessions: &self.sessions };
                self.party.event(arrival.time, event, None, &around)?;
            }
            self.take(&arrival)?;
        }
        if let Some(now) = reading.complete_until {
            self.advance(now)?;
        }
        let little = self.input.capabilities().buffer.granted.count() / QUIET_SHARE;
        Ok(reading.complete_until.is_some() && reading.bytes as u64 <= little)
    }

    /// Takes the packets of one read: to the endpoint, or into the modelled link.
    fn take(&mut self, arrival: &Arrival) -> Result<(), NetError> {
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        for packet in self.input.packets(arrival) {
            let Arrival { time, way, from, ecn, .. } = *arrival;
            let Some(way) = way else {
                self.party.statistics.ignored.foreign += 1;
                continue;
            };
            let is_dropped = match &mut self.link {
                Some(link) => !link.offer(time, way, from, ecn, packet),
                None => {
                    take_in(&mut self.party, Coming { at: time, way, from, ecn, bytes: packet }, &around)?;
                    false
                }
            };
            if self.party.outgoing.capture.is_some() {
                record(&mut self.party.outgoing, &self.clock, arrival, way, packet, is_dropped)?;
            }
        }
        Ok(())
    }

    /// Lets everything happen that happens until `until`: packets come out of the link, deadlines pass.
    ///
    /// A deadline is told as late as the order of events allows: at the time of what comes next, or now. So an endpoint knows
    /// how late it is.
    fn advance(&mut self, until: Time) -> Result<(), NetError> {
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        for _ in 0..MAX_STEPS {
            let departure = self.link.as_ref().and_then(ModelledLink::next_departure).filter(|at| *at <= until);
            let due = self.party.endpoint.as_ref().and_then(Endpoint::deadline).filter(|at| *at <= until);
            match (departure, due) {
                (Some(departure), due) if due.is_none_or(|due| departure <= due) => {
                    let Some(link) = &mut self.link else { return Ok(()) };
                    let Some(out) = link.release(departure) else { continue };
                    let coming =
                        Coming { at: departure, way: out.way, from: out.from, ecn: out.ecn, bytes: &out.packet };
                    take_in(&mut self.party, coming, &around)?;
                    link.recycle(out);
                }
                (departure, Some(due)) => {
                    let told = departure.unwrap_or(until);
                    self.party.statistics.note_lateness(due, told);
                    self.party.event(told, Event::Deadline, None, &around)?;
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

/// A packet that comes to the endpoint.
#[derive(Debug, Clone, Copy)]
struct Coming<'d> {
    at: Time,
    way: Way,
    from: SocketAddr,
    ecn: Ecn,
    bytes: &'d [u8],
}

/// Reads a packet with the profile of its session, and gives the party what it says.
#[inline]
fn take_in<P: Profile, A: Application<P::Label>>(
    party: &mut Party<'_, P, A>,
    coming: Coming<'_>,
    around: &Surroundings<'_, P>,
) -> Result<(), NetError> {
    let Coming { at, way, from, ecn, bytes } = coming;
    let (session, origin, socket, sender) = match way {
        Way::Channel(channel) => {
            if !around.input.is_source(channel, from.ip()) {
                party.statistics.ignored.foreign += 1;
                return Ok(());
            }
            let session = around.sessions.of_channel(channel);
            (session, Origin::Channel(channel), 0, Sender::Channel(channel.0 - session.channels.start))
        }
        Way::Unicast(socket) => {
            let peer = party.peers.find(from);
            let association = peer.and_then(|peer| party.peers.association(peer));
            let origin = peer.map_or(Origin::Unverified, Origin::Peer);
            let sender = association.map_or(Sender::Unassociated, Sender::Peer);
            (around.sessions.of_unicast(socket), origin, socket, sender)
        }
    };
    let datagram = Datagram { at, origin, socket, from, ecn, bytes };
    let mut result = Ok(());
    session.profile.decode(bytes, sender, |found: Found<'_, P::Label>| {
        if result.is_ok() {
            result = party.on_found(datagram, found, around);
        }
    });
    result
}

/// Writes down a packet that came.
fn record(
    outgoing: &mut Outgoing,
    clock: &Clock,
    arrival: &Arrival,
    way: Way,
    packet: &[u8],
    is_dropped: bool,
) -> Result<(), NetError> {
    let target = match way {
        Way::Channel(channel) => Target::Channel(usize::from(channel.0)),
        Way::Unicast(socket) => Target::Unicast(socket, arrival.from),
    };
    let (shown, capture) = (outgoing.shown(target), &mut outgoing.capture);
    let (Some((to, ttl)), Some(capture)) = (shown, capture) else { return Ok(()) };
    let unix_nanos = arrival.stamp_nanos.unwrap_or_else(|| clock.unix_nanos(arrival.time));
    let comment = is_dropped.then_some(DROPPED);
    Ok(capture.record(&weir_capture::Datagram { unix_nanos, from: arrival.from, to, ttl, payload: packet, comment })?)
}

impl<P: Profile, A: Application<P::Label>> Run for Tenant<'_, P, A> {
    fn start(&mut self, now: Time) -> Result<(), NetError> {
        self.next_tick = now;
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        self.party.start(now, &around)
    }

    fn due(&self) -> Option<Time> {
        if self.is_over() {
            return None;
        }
        let departure = self.link.as_ref().and_then(ModelledLink::next_departure).map(|at| at + LINK_PATIENCE);
        let endpoint = self.party.endpoint.as_ref().and_then(Endpoint::deadline);
        let closing = self.closing.filter(|closing| closing.rounds > 0).map(|closing| closing.next);
        let tick = self.closing.is_none().then_some(self.next_tick);
        let others =
            [departure, endpoint, closing, tick, self.party.peers.deadline(), self.party.application.deadline()];
        Some(others.into_iter().flatten().min().unwrap_or(Time::ZERO))
    }

    fn rests_until(&self) -> Time {
        self.rests_until
    }

    fn waiting<'s>(&'s self, into: &mut Vec<PollFd<'s>>) {
        into.extend(self.input.waiting());
        into.extend(self.party.application.readable().map(clock::readable));
    }

    fn set_ready(&mut self, found: &[PollFlags]) {
        let (sockets, application) = found.split_at(found.len().min(self.input.sockets()));
        self.input.set_ready(sockets.iter().copied());
        self.is_application_ready = application.first().is_some_and(|flags| !flags.is_empty());
    }

    fn round(&mut self) -> Result<(), NetError> {
        let now = self.clock.now();
        if std::mem::take(&mut self.is_application_ready) {
            self.party.application.read(now);
        }
        let received = self.party.statistics.received.packets;
        let is_quiet = self.read()?;
        if self.party.statistics.received.packets > received {
            self.party.application.batch_end();
        }
        let now = self.clock.now();
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        self.party.peers.on_time(now);
        self.party.on_news(now, &around)?;
        self.party.offer(now, &around)?;
        let is_application_due = self.party.application.deadline().is_some_and(|at| at <= now);
        if self.closing.is_none() && (now >= self.next_tick || is_application_due || self.party.has_changed()) {
            self.tick(now)?;
        }
        self.close(now)?;
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        self.party.on_news(now, &around)?;
        let rest = self.sessions.all.iter().map(|session| session.profile.handling().rest).min();
        let rest = rest.filter(|_| is_quiet && self.input.has_channels()).unwrap_or_default();
        self.rests_until = if rest.is_zero() { Time::ZERO } else { self.clock.now() + rest };
        Ok(())
    }

    fn end(&mut self) -> Result<Statistics, NetError> {
        self.party.application.batch_end();
        let statistics = &mut self.party.statistics;
        statistics.link_dropped = self.link.as_ref().map_or(0, ModelledLink::dropped);
        statistics.turned_away = self.party.peers.turned_away;
        if let Some(capture) = &mut self.party.outgoing.capture {
            capture.flush()?;
        }
        Ok(self.party.statistics.clone())
    }
}

/// What a capture says of a packet that goes no further.
const DROPPED: &str = "dropped by the emulated link";
/// What comes out of the modelled link does so at its own time, so that a call for it may be this late.
const LINK_PATIENCE: Duration = Duration::from_millis(5);
/// A read of less than this share of a socket's buffer was little: what comes during a rest fits easily.
const QUIET_SHARE: u64 = 16;
/// Departures and deadlines in one go, lest an endpoint that asks for the same time again and again stops the host.
const MAX_STEPS: usize = 100_000;
/// A closing packet may be lost, so there are several.
const CLOSE_ROUNDS: usize = 3;
const CLOSE_INTERVAL: Duration = Duration::from_millis(20);
