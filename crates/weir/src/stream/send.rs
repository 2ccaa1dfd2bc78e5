//! `weir send stream`: sends bytes in order to all members of a tree, and ends when all have them.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use weir_core::registry::Setting;
use weir_core::{ChannelId, Observation, PeerId};
use weir_net::groups;
use weir_net::host::{Application, Host, PeerChange, Progress, Statistics};
use weir_net::session::SessionConfig;
use weir_net::socket::SendConfig;
use weir_net::{Interface, tree};
use weir_object::keys::SecretKey;
use weir_units::{Time, show_span};

use super::address::StreamAddress;
use super::events::{StreamEvent, StreamStart};
use super::node::{EVICT_AFTER, Node, door, party, tenant};
use super::seal::{Tally, wrap};
use crate::args::SendStream;
use crate::events::Role;
use crate::exit::{Exit, Failure};
use crate::live::{LONGEST_WAIT, Pacing, Source, Supply};
use crate::observer::Observer;
use crate::unsent::Unsent;
use crate::{key, session};

/// Sends bytes in order to all members of a tree, until all have them.
pub fn run(args: &SendStream, observer: &mut dyn Observer<StreamEvent>) -> Result<Exit, Failure> {
    if args.input.is_endless() {
        return Err(Failure::new(
            Exit::Usage,
            "a stream is made of bytes: datagrams can be sent with `weir send live`",
        ));
    }
    let open = |room: usize| Source::open(&args.input, room, None, 0, Pacing::None, LONGEST_WAIT);
    from(args, open, &args.input.to_string(), observer)
}

/// The same, with the bytes of this file, which may be the end of a pipe.
pub(super) fn from_file(
    args: &SendStream,
    file: File,
    observer: &mut dyn Observer<StreamEvent>,
) -> Result<Exit, Failure> {
    from(args, |room| Ok(Source::of_file(file, room)), "a pipe", observer)
}

fn from(
    args: &SendStream,
    open: impl FnOnce(usize) -> io::Result<Source>,
    input: &str,
    observer: &mut dyn Observer<StreamEvent>,
) -> Result<Exit, Failure> {
    let network = |error| Failure::of(Exit::Network, "cannot send")(error);
    // A stream has no description that could name its one source.
    groups::check(args.to.ip(), false).map_err(Failure::of(Exit::Usage, "cannot send a stream"))?;
    let choice = session::interface_choice(args.iface.as_deref());
    let interface = Interface::choose(&choice, args.to.ip()).map_err(network)?;
    let local = interface.source_address(args.to.ip()).map_err(network)?;
    let port = args.to.port().checked_add(1).unwrap_or(1024);
    let listen = args.listen.unwrap_or(SocketAddr::new(local, port));
    let secret = key::secret(args.key.as_deref())?;
    let address = StreamAddress {
        sender: SocketAddr::new(if listen.ip().is_unspecified() { local } else { listen.ip() }, listen.port())
            .to_string(),
        channel: args.to,
        tsi: args.tsi.map_or_else(|| session::random().map(|bytes| u16::from_be_bytes(bytes).max(1)), Ok)?,
        packet_size: session::packet_size(args.packet_size, interface.mtu()),
        sender_key: Some(secret.public()),
        settings: settings(args),
    };
    let endpoint = party(&address, |tree| tree.sender, &own_settings(args, address.packet_size))?;
    let source = open(address.payload_len()).map_err(Failure::of(Exit::Files, format!("cannot read {input}")))?;
    let config = SessionConfig {
        interface: choice,
        socket: SendConfig { ttl: args.ttl, ..SendConfig::default() },
        tenant: tenant(&address),
        capture: args.output.pcap.clone(),
    };
    let tenant = tree::sender(&address.session(), door(listen)?, endpoint, &config).map_err(network)?;
    let mut node = Node::new(observer, None);
    node.show(&StreamEvent::Start(StreamStart {
        role: Role::Sender,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        stream: address.to_string(),
        listens: Some(address.sender.clone()),
        above: None,
        bytes: Some(input.to_owned()),
    }));
    key::exposed(args.key.as_deref()).into_iter().for_each(|told| node.trouble(told, None));
    let seal = Some((secret, address.tsi));
    let unsent = Unsent::new(interface, args.to.ip());
    let mut run = Sending { node, source, tally: Tally::new(), seal, payload: Vec::new(), unsent };
    let statistics = Host::run_one(tenant, &mut run).map_err(network)?;
    Ok(run.end(&statistics, input))
}

/// What all members need to know of how the stream is sent.
fn settings(args: &SendStream) -> Vec<Setting> {
    let evict_after =
        (args.evict_after != EVICT_AFTER).then(|| ("evict_after", show_span(args.evict_after).to_string()));
    let min_rate = args.min_rate.map(|rate| ("min_rate", rate.exact().to_string()));
    let set = |(key, value): (&str, String)| Setting { key: key.to_owned(), value };
    let policy = [min_rate, evict_after].into_iter().flatten().map(set);
    args.cc_set.iter().cloned().chain(policy).collect()
}

/// What only the sender needs to know.
fn own_settings(args: &SendStream, packet_size: u16) -> Vec<(&'static str, String)> {
    let kept = args.keep.map(|size| size.count() / u64::from(packet_size));
    let history = kept.map(|packets| ("history", packets.to_string()));
    history.into_iter().chain([("receivers", args.receivers.to_string())]).collect()
}

/// A running sender.
struct Sending<'a> {
    node: Node<'a>,
    source: Source,
    tally: Tally,
    /// What it takes to seal the stream; `None` once that is done.
    seal: Option<(SecretKey, u16)>,
    payload: Vec<u8>,
    unsent: Unsent,
}

impl Application<()> for Sending<'_> {
    fn payload(&mut self, now: Time, _channel: Option<ChannelId>) -> Option<((), &[u8])> {
        match self.source.next(now) {
            Some((_, bytes)) => {
                self.tally.add(bytes);
                wrap(bytes, &mut self.payload);
            }
            None => {
                let (key, tsi) = self.seal.take_if(|_| self.source.is_over())?;
                self.tally.seal(&key, tsi, &mut self.payload);
            }
        }
        Some(((), &self.payload))
    }

    fn waiting(&self) -> Option<u64> {
        let seals = self.seal.is_some() && self.source.is_over();
        Some(self.source.waiting() + u64::from(seals))
    }

    fn is_over(&self) -> bool {
        self.source.is_over()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.source.readable()
    }

    fn read(&mut self, now: Time) {
        self.source.fill(now);
    }

    fn peer(&mut self, now: Time, peer: PeerId, address: SocketAddr, change: PeerChange) {
        self.node.peer(now, peer, address, change);
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        self.node.observe(now, observation);
    }

    fn complete(&mut self, _now: Time) {
        self.node.is_complete = true;
        self.node.outcome.get_or_insert(Exit::Done);
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        if let Some(message) = self.unsent.on_time(now, statistics) {
            self.node.trouble(message, None);
        }
        self.node.tick(now, self.tally.bytes())
    }
}

impl Sending<'_> {
    fn end(mut self, statistics: &Statistics, input: &str) -> Exit {
        let mut exit = self.node.outcome.unwrap_or(Exit::Done);
        if let Some(error) = self.source.failure() {
            exit = Exit::Files;
            self.node.trouble(format!("cannot read {input} any further: {error}"), Some(exit));
        }
        self.node.end(exit, Some(&self.tally), None, statistics)
    }
}
