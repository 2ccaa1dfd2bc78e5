//! A tenant: what takes part in one session, or in several under one manager.
//!
//! It is put together from sessions with their channels, unicast sockets and peers, and an endpoint, or none where the application
//! makes one for each peer that comes: each of these has its own deadlines, kept payloads and offers. Then a [`super::Host`] runs it for an application.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use weir_capture::Capture;
use weir_core::{ChannelId, Endpoint, Locator};

use super::link::{LinkInFront, ModelledLink};
use super::outgoing::Outgoing;
use super::party::Calls;
use super::peers::Peers;
use super::statistics::{Amount, Statistics};
use crate::clock::Clock;
use crate::error::{NetError, Result};
use crate::handshake::Secret;
use crate::handshake::admission::Admission;
use crate::interface::Interface;
use crate::profile::Profile;
use crate::seal::{ControlKey, Opener, PairConfig, Sealer};
use crate::socket::{Capabilities, Input, Output, ReceiveConfig, SendConfig, UnicastSocket, Way, address_at, locator};

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
    /// What checks the packets of its channels before anything else.
    pub(super) opener: Option<Opener>,
    /// What checks the messages of its unicast sockets.
    pub(super) key: Option<ControlKey>,
}

impl<P: Profile> Sessions<P> {
    /// The session of a channel. Channels of the tenant only.
    #[inline]
    pub(super) fn of_channel(&self, channel: ChannelId) -> &Session<P> {
        &self.all[self.of(Way::Channel(channel))]
    }

    /// The number of the session that a way belongs to.
    pub(super) fn of(&self, way: Way) -> usize {
        match way {
            // Sessions without channels may stand between those that have some.
            Way::Channel(ChannelId(channel)) => {
                let found = self.all.iter().position(|session| session.channels.contains(&channel));
                found.expect("every channel of a tenant is of one of its sessions")
            }
            Way::Unicast(socket) => self.unicasts[socket],
        }
    }

    /// How long the tenant may rest after a read that brought little.
    pub(super) fn rest(&self) -> Duration {
        self.all.iter().map(|session| session.profile.handling().rest).min().unwrap_or_default()
    }

    /// The session of this number.
    pub(super) fn get_mut(&mut self, session: usize) -> &mut Session<P> {
        &mut self.all[session]
    }

    pub(super) fn of_unicast(&self, socket: usize) -> &Session<P> {
        &self.all[self.unicasts[socket]]
    }
}

impl<P> Session<P> {
    fn new(profile: P, channels: Range<u16>) -> Session<P> {
        Session { profile, channels, opener: None, key: None }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Tenant<P: Profile> {
    pub(super) clock: Clock,
    pub(super) tick: Duration,
    pub(super) endpoint: Option<Box<dyn Endpoint>>,
    pub(super) sessions: Sessions<P>,
    pub(super) calls: Option<Calls>,
    pub(super) reachable_at: Option<Locator>,
    pub(super) peers: Peers<P::Association>,
    pub(super) input: Input,
    pub(super) outgoing: Outgoing,
    pub(super) link: Option<ModelledLink>,
    pub(super) statistics: Statistics,
}

impl<P: Profile> Tenant<P> {
    /// A tenant without sessions. Its application makes an endpoint for each peer that comes, unless one is given with
    /// [`Tenant::with_endpoint`].
    pub fn new(config: &TenantConfig) -> Tenant<P> {
        let clock = Clock::new();
        Tenant {
            clock,
            tick: config.tick,
            endpoint: None,
            sessions: Sessions { all: Vec::new(), unicasts: Vec::new() },
            calls: None,
            reachable_at: None,
            peers: Peers::new(config.silence),
            input: Input::new(&config.sockets),
            outgoing: Outgoing::new(clock),
            link: config.link.as_ref().map(ModelledLink::new),
            statistics: Statistics::default(),
        }
    }

    /// One endpoint for the whole run.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: Box<dyn Endpoint>) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Writes down all that is sent and received.
    pub fn record(&mut self, capture: Capture) {
        self.outgoing.recorder.capture = Some(capture);
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
    ) -> Result<Range<u16>> {
        let group = channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?.ip();
        let coalesces = profile.handling().coalesces;
        let output = sends.map(|config| {
            let config = SendConfig { offload: config.offload && coalesces, ..config.clone() };
            Output::to_channels(interface, group, &config)
        });
        let ttl = sends.map_or(1, |config| config.ttl);
        self.outgoing.add_channels(interface.index, channels, ttl, output.transpose()?);
        let numbers = self.input.add_channels(interface, channels, source, coalesces, receives)?;
        self.statistics.channels.resize(usize::from(numbers.end), Amount::default());
        self.sessions.all.push(Session::new(profile, numbers.clone()));
        self.statistics.sessions.resize(self.sessions.all.len(), Amount::default());
        Ok(numbers)
    }

    /// Only packets of `sender` count on these channels, whether the network tells senders apart or not.
    pub fn take_only_from(&mut self, channels: Range<u16>, sender: IpAddr) {
        self.input.take_only_from(channels, sender);
    }

    /// Adds a session without channels.
    pub fn add_unicast_session(&mut self, profile: P) {
        self.sessions.all.push(Session::new(profile, 0..0));
    }

    /// Adds a unicast socket to the session added last; gives its number.
    pub fn add_unicast(&mut self, socket: UnicastSocket) -> Result<usize> {
        let session = self.sessions.all.len().checked_sub(1);
        let session = session.ok_or(NetError::Channels("a unicast socket belongs to a session"))?;
        let coalesces = self.sessions.all[session].profile.handling().coalesces;
        self.outgoing.add_unicast(socket.output(coalesces)?);
        self.sessions.unicasts.push(session);
        Ok(self.input.add_unicast(socket, coalesces))
    }

    /// Seals what is sent to the channels of a session: 0 is the one added first.
    pub fn seal(&mut self, session: usize, sealer: Sealer) {
        self.outgoing.seal(self.sessions.all[session].channels.start, sealer);
    }

    /// Takes of the channels of a session only what this opens.
    pub fn open(&mut self, session: usize, opener: Opener) {
        self.sessions.all[session].opener = Some(opener);
    }

    /// Tags what goes through the unicast sockets of a session, and takes only what is tagged.
    pub fn tag(&mut self, session: usize, key: &ControlKey) {
        for (socket, _) in self.sessions.unicasts.iter().enumerate().filter(|(_, of)| **of == session) {
            self.outgoing.tag(socket, key.clone());
        }
        self.sessions.all[session].key = Some(key.clone());
    }

    /// Adds a peer that is reached without a handshake.
    pub fn add_peer(&mut self, socket: usize, address: SocketAddr) {
        self.peers.add_known(socket, address);
    }

    /// Adds a peer that exists, and whose address nobody knows. What is sent to it is refused and counted.
    pub fn add_unreachable_peer(&mut self) {
        self.peers.add_unreachable();
    }

    /// Adds a peer to contact when the run begins; the session starts when it has answered. `ssrc` is this host's.
    pub fn add_contact(&mut self, socket: usize, address: SocketAddr, ssrc: u32) {
        self.peers.add_contact(socket, address, ssrc, self.clock.now());
    }

    /// The endpoint may contact others, through this socket. `ssrc` is this host's.
    pub fn call_through(&mut self, socket: usize, interface: &Interface, ssrc: u32) {
        self.calls = Some(Calls { socket, interface: interface.index, ssrc });
    }

    /// The endpoint is told that others can contact it at this address of a socket of its own.
    pub fn reachable_at(&mut self, address: SocketAddr) {
        self.reachable_at = Some(locator(address));
    }

    /// Where others can contact it, as its endpoint is told.
    pub fn reachable(&self) -> Option<SocketAddr> {
        self.reachable_at.map(address_at)
    }

    /// Takes up to `most` peers at a time that prove their address.
    pub fn admit(&mut self, secret: Secret, most: usize) {
        self.peers.admit(Admission::new(secret), most);
    }

    /// Shares keys with peers, and seals what goes to them and comes from them, where the stream is encrypted.
    pub fn share_keys(&mut self, own: PairConfig) {
        self.peers.share_keys(own);
    }

    /// The address that packets to channels come from.
    pub fn local(&self) -> Option<SocketAddr> {
        self.outgoing.group().map(Output::local)
    }

    /// The address of a unicast socket.
    pub fn unicast_local(&self, socket: usize) -> Option<SocketAddr> {
        self.outgoing.unicast(socket).map(Output::local)
    }

    /// What the system grants for receiving.
    pub fn capabilities(&self) -> Capabilities {
        self.input.capabilities()
    }
}
