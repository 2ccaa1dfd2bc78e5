//! `weir recv stream://…` and `weir agent`: members of a tree. An agent has nobody to give the stream to.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use weir_core::{Observation, PeerId};
use weir_net::host::{Application, Delivery, Host, LinkInFront, PeerChange, Progress, Statistics, TenantConfig};
use weir_net::session::SessionConfig;
use weir_net::socket::SendConfig;
use weir_net::tree;
use weir_object::keys::PublicKey;
use weir_units::Time;

use super::address::{StreamAddress, resolve};
use super::events::{StreamEvent, StreamStart};
use super::node::{Node, door, party, tenant};
use super::seal::{Content, Tally, Verdict, unwrap};
use super::spool::Spool;
use crate::args::{Agent, Recv};
use crate::events::Role;
use crate::exit::{Exit, Failure};
use crate::observer::Observer;
use crate::{session, trust};

/// Receives a stream and writes it out in order.
pub fn receive(
    args: &Recv,
    address: &StreamAddress,
    observer: &mut dyn Observer<StreamEvent>,
) -> Result<Exit, Failure> {
    let path = args.out.as_deref().filter(|path| *path != Path::new("-"));
    let usage = |text: &str| Err(Failure::new(Exit::Usage, text));
    if args.output.json && path.is_none() {
        return usage("with --json standard output has the events; send the stream elsewhere with --out");
    }
    if args.sdp.is_some() || args.any_sender {
        return usage("a stream over a tree takes neither --sdp nor --any-sender");
    }
    let name = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
    // Before anything is written over.
    let key = trust::of_stream(args, address)?;
    let out = open(path, args.overwrite).map_err(|error| {
        let advice = if error.kind() == io::ErrorKind::AlreadyExists { "; --overwrite replaces it" } else { "" };
        Failure::new(Exit::Files, format!("cannot write to {name}: {error}{advice}"))
    })?;
    to_file(args, address, key, out, &name, observer)
}

/// Receives a stream that `key` has to have sealed into this file, which may be the end of a pipe, and which people call `name`.
pub(super) fn to_file(
    args: &Recv,
    address: &StreamAddress,
    key: Option<PublicKey>,
    out: File,
    name: &str,
    observer: &mut dyn Observer<StreamEvent>,
) -> Result<Exit, Failure> {
    let seed = u64::from_be_bytes(session::random()?);
    let link = args.link.clone().map(|config| LinkInFront { config, seed });
    // The bytes themselves may be on standard output.
    let room = (args.memory.count() / u64::from(address.packet_size)).max(2);
    let member = Membership {
        address,
        key,
        via: args.via.as_deref(),
        iface: args.iface.as_deref(),
        listen: None,
        takes_members: !args.leaf,
        forwards: false,
        ttl: 1,
        from_now: args.from_now,
        idle_timeout: args.idle_timeout.unwrap_or(IDLE_TIMEOUT),
        tenant: TenantConfig { link, tick: Duration::from_millis(5), ..tenant(address) },
        capture: args.output.pcap.clone(),
        duration: args.duration,
    };
    member.run(observer, Some((name.to_owned(), Spool::start(out, room))))
}

/// Serves members of a stream without being one of its receivers.
pub fn serve(args: &Agent, observer: &mut dyn Observer<StreamEvent>) -> Result<Exit, Failure> {
    let member = Membership {
        address: &args.stream,
        key: args.stream.sender_key,
        via: args.via.as_deref(),
        iface: args.iface.as_deref(),
        listen: args.listen,
        takes_members: true,
        forwards: !args.no_forward,
        ttl: args.ttl,
        from_now: false,
        idle_timeout: args.idle_timeout,
        tenant: tenant(&args.stream),
        capture: args.output.pcap.clone(),
        duration: None,
    };
    member.run(observer, None)
}

fn open(path: Option<&Path>, overwrite: bool) -> io::Result<File> {
    match path {
        None => Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
        Some(path) if overwrite || path.metadata().is_ok_and(|metadata| !metadata.is_file()) => File::create(path),
        Some(path) => File::create_new(path),
    }
}

/// The unspecified address of the same family.
fn unspecified(like: SocketAddr) -> IpAddr {
    match like {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// A member that no node takes for this long gives up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How to take part.
struct Membership<'a> {
    address: &'a StreamAddress,
    /// Who has to have sealed the stream.
    key: Option<PublicKey>,
    via: Option<&'a str>,
    iface: Option<&'a str>,
    /// Where it takes members, if it does; without, anywhere.
    listen: Option<SocketAddr>,
    takes_members: bool,
    /// Whether it sends on to the group where no multicast leads to it, and how far.
    forwards: bool,
    ttl: u8,
    from_now: bool,
    idle_timeout: Duration,
    tenant: TenantConfig,
    capture: Option<std::path::PathBuf>,
    duration: Option<Duration>,
}

impl Membership<'_> {
    fn run(self, observer: &mut dyn Observer<StreamEvent>, out: Option<(String, Spool)>) -> Result<Exit, Failure> {
        let network = |error| Failure::of(Exit::Network, "cannot take part")(error);
        let above = self.via.unwrap_or(&self.address.sender);
        let at = resolve(above, self.address.channel)?;
        let role = if out.is_some() { Role::Receiver } else { Role::Agent };
        let endpoint = match role {
            Role::Receiver if self.from_now => {
                party(self.address, |tree| tree.receiver, &[("from_now", "yes".to_owned())])?
            }
            Role::Receiver => party(self.address, |tree| tree.receiver, &[])?,
            _ if self.forwards => party(self.address, |tree| tree.agent, &[])?,
            _ => party(self.address, |tree| tree.agent, &[("forwards", "no".to_owned())])?,
        };
        let config = SessionConfig {
            interface: session::interface_choice(self.iface),
            socket: SendConfig { ttl: self.ttl, ..SendConfig::default() },
            tenant: self.tenant,
            capture: self.capture,
        };
        let ssrc = u32::from_be_bytes(session::random()?);
        let anywhere = SocketAddr::new(unspecified(self.address.channel), 0);
        let door = self.takes_members.then(|| door(self.listen.unwrap_or(anywhere))).transpose()?;
        let session = self.address.session();
        let tenant = match door.filter(|_| role == Role::Agent) {
            Some(door) => tree::agent(&session, at, ssrc, door, endpoint, &config),
            None => tree::receiver(&session, at, ssrc, door, endpoint, &config),
        };
        let tenant = tenant.map_err(network)?;
        let listens = tenant.reachable().map(|address| address.to_string());
        let mut node = Node::new(observer, Some(self.idle_timeout));
        node.show(&StreamEvent::Start(StreamStart {
            role,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            stream: self.address.to_string(),
            listens,
            above: Some(above.to_owned()),
            bytes: out.as_ref().map(|(name, _)| name.clone()),
        }));
        let ends = self.duration.map(|duration| weir_net::clock::Clock::new().now() + duration);
        let trust = Trust { key: self.key, tsi: self.address.tsi, is_tail: self.from_now };
        let mut run = Taking { node, out, ends, tally: Tally::new(), trust, verdict: Verdict::Open };
        let statistics = Host::run_one(tenant, &mut run).map_err(network)?;
        Ok(run.end(&statistics))
    }
}

/// A running member.
struct Taking<'a> {
    node: Node<'a>,
    /// Where the bytes go, and how people call that; an agent has none.
    out: Option<(String, Spool)>,
    ends: Option<Time>,
    tally: Tally,
    trust: Trust,
    verdict: Verdict,
}

/// What a receiver holds the stream's seal to.
struct Trust {
    key: Option<PublicKey>,
    tsi: u16,
    /// The beginning was not wanted.
    is_tail: bool,
}

impl Application<()> for Taking<'_> {
    fn deliver(&mut self, _now: Time, delivery: Delivery<'_, ()>) {
        match unwrap(delivery.payload) {
            Content::Bytes(bytes) if self.verdict == Verdict::Open => {
                self.tally.add(bytes);
                if let Some((_, spool)) = &mut self.out {
                    spool.put(bytes);
                }
            }
            Content::Seal(seal) if self.verdict == Verdict::Open => {
                let Trust { key, tsi, is_tail } = &self.trust;
                self.verdict = self.tally.verdict(seal, key.as_ref(), *tsi, *is_tail);
            }
            // Nothing follows a seal.
            Content::Bytes(_) | Content::Seal(_) | Content::Unknown => self.verdict = Verdict::Bad,
        }
    }

    fn batch_end(&mut self) {
        if let Some((_, spool)) = &mut self.out {
            spool.flush();
        }
    }

    fn room(&self) -> Option<u64> {
        self.out.as_ref().map(|(_, spool)| spool.room())
    }

    fn peer(&mut self, now: Time, peer: PeerId, address: SocketAddr, change: PeerChange) {
        self.node.peer(now, peer, address, change);
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        self.node.observe(now, observation);
    }

    fn complete(&mut self, _now: Time) {
        // It stays until the node above says goodbye: its last acknowledgement may be lost.
        self.node.is_complete = true;
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        if self.out.as_ref().is_some_and(|(_, spool)| spool.has_failed()) {
            self.node.outcome.get_or_insert(Exit::Files);
        }
        if self.ends.is_some_and(|at| at <= now) {
            self.node.outcome.get_or_insert(Exit::Incomplete);
        }
        let bytes = if self.out.is_some() { self.tally.bytes() } else { statistics.received.bytes.count() };
        self.node.tick(now, bytes)
    }
}

impl Taking<'_> {
    fn end(mut self, statistics: &Statistics) -> Exit {
        let mut exit = self.node.outcome.unwrap_or(Exit::Done);
        let Some((name, mut spool)) = self.out else {
            return self.node.end(exit, None, None, statistics);
        };
        if let Err(error) = spool.finish() {
            exit = Exit::Files;
            self.node.trouble(format!("cannot write to {name}: {error}"), Some(exit));
        }
        if exit == Exit::Incomplete {
            self.node
                .trouble("not all of it has come; what is there is the beginning, without gaps".to_owned(), Some(exit));
        }
        let is_unsealed = self.verdict == Verdict::Open && self.trust.key.is_some();
        if self.node.is_complete && (self.verdict == Verdict::Bad || is_unsealed) {
            exit = Exit::Unverified;
            let text = "what has come is not what the sender has sealed: do not use it";
            self.node.trouble(text.to_owned(), Some(exit));
        }
        self.node.end(exit, Some(&self.tally), Some(self.verdict), statistics)
    }
}
