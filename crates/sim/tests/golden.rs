//! Digests of whole traces: the same on every machine, in every build, whatever else changes.
//!
//! A digest that changes means that runs come out otherwise than before. If that is meant, the message of the failed test
//! has the new one. Every scheme of the registry has a digest of its own; that of a new one is in the message, too.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use weir_core::Endpoint;
use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Parties, SCHEMES, Scheme, Session, Setting, Stream, Tree};
use weir_link::{DropReason, LinkConfig};
use weir_sim::tcp::{self, Flavour};
use weir_sim::topology::{self, Dumbbell};
use weir_sim::trace::Trace;
use weir_sim::traffic::{Distribution, HttpConfig, Pattern, Supply, UdpConfig};
use weir_sim::{
    AgentId, EndpointConfig, FlowId, LinkId, Membership, Monitor, Network, NodeId, Packet, SessionConfig, StreamConfig,
    Times,
};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

#[test]
fn everything_at_once_over_drop_tail_comes_out_as_ever() {
    assert_eq!(everything("rate=10M,delay=20ms,buffer=50p"), "56030b3db3af0ea7");
}

#[test]
fn everything_at_once_over_red_comes_out_as_ever() {
    assert_eq!(everything("rate=10M,delay=20ms,buffer=100p,queue=red(min=10,max=40,maxp=0.1)"), "d6544ed6df8ae30a");
}

#[test]
fn everything_at_once_over_fair_queues_with_bursts_of_loss_and_jitter_comes_out_as_ever() {
    let bottleneck =
        "rate=10M,delay=20ms,buffer=100p,queue=fq_codel,loss=gilbert(enter=1%,leave=25%),jitter=normal(2ms)";
    assert_eq!(everything(bottleneck), "9c98637bde342278");
}

#[test]
fn every_scheme_comes_out_as_ever() {
    let digests = SCHEMES.iter().map(|scheme| (scheme.name, next_to_a_tcp(scheme)));
    let found: Vec<(&str, String)> = digests.collect();
    let is_known = |(name, digest): &(&str, String)| DIGESTS.contains(&(name, digest.as_str()));
    let lines = found.iter().map(|(name, digest)| format!("    ({name:?}, {digest:?}),\n")).collect::<String>();
    assert!(found.iter().all(is_known), "if this is meant, write down in DIGESTS:\n{lines}");
    assert_eq!(DIGESTS.len(), found.len(), "DIGESTS has a scheme that is not in the registry any more");
}

/// By scheme, what [`next_to_a_tcp`] gives.
const DIGESTS: &[(&str, &str)] = &[
    ("avmrc", "e535a32eb2ba5cd8"),
    ("rmrc", "d79af72557624086"),
    ("vmrc", "00468241cbaf06b8"),
    ("mtcp", "b0d47ed187cb37f8"),
    ("plm", "9bd4edc5e87ce765"),
    ("rap", "a817cecf30d23112"),
    ("sluice", "e9e5926d3a60ee91"),
    ("stair", "0cd997188f93c17e"),
    ("fglm", "33b082e94dd6d140"),
];

/// The digest of a session or a stream that shares a link of 4 Mbit/s with a TCP. Receivers of a session are behind unequal
/// links of their own, and members of a tree behind links that lose packets both ways.
fn next_to_a_tcp(scheme: &Scheme) -> String {
    let mut net = Network::new(1);
    let bottleneck = link("rate=4M,delay=10ms,buffer=25p");
    let bell = topology::dumbbell(&mut net, &bottleneck, &bottleneck);
    let access = link("rate=100M,delay=1ms,buffer=1000p");
    let source = topology::add_host(&mut net, bell.left, &access);
    let (flow, lossy) = match scheme.parties {
        Parties::Layered(_) => (add_session(&mut net, scheme, source, &bell), Vec::new()),
        Parties::Paced(_) => (add_stream(&mut net, scheme, source, &bell), Vec::new()),
        Parties::Tree(tree) => add_tree(&mut net, scheme, tree, source, &bell),
    };
    let from = topology::add_host(&mut net, bell.left, &access);
    let to = topology::add_host(&mut net, bell.right, &access);
    let config = tcp::Config { max_window: 64, ..tcp::Config::ns2(Flavour::ALL[0]) };
    net.add_tcp(from, to, config, Times::from(Time::from_secs(2))).expect("a way");
    digest(net, Some(flow), &lossy)
}

/// A session with receivers behind links of 600 kbit/s, 2 and 100 Mbit/s, who come one after the other.
fn add_session(net: &mut Network, scheme: &Scheme, root: NodeId, bell: &Dumbbell) -> FlowId {
    let channels = scheme.channels(&session(), &[]).expect("defaults are valid").len();
    let config = SessionConfig { channels, form: session().form, membership: Membership::default() };
    let id = net.add_session(root, config).expect("schemes have 1 to 256 channels");
    let lateness = Duration::from_millis(1);
    let config = EndpointConfig { lateness, ..EndpointConfig::default() };
    let sender = endpoint(net, scheme, Role::Sender, "sender");
    let sender = net.add_sender(id, sender, config);
    for (number, rate) in (0..).zip(["600k", "2M", "100M"]) {
        let host = topology::add_host(net, bell.right, &link(&format!("rate={rate},delay=5ms,buffer=20p")));
        let times = Times::from(Time::from_millis(700 * number));
        let config = EndpointConfig { times, clock_ahead: Duration::from_secs(number), ..EndpointConfig::default() };
        let receiver = endpoint(net, scheme, Role::Receiver, &format!("receiver {number}"));
        net.add_receiver(id, host, receiver, config).expect("a way");
    }
    net.flow_of(sender)
}

fn add_stream(net: &mut Network, scheme: &Scheme, from: NodeId, bell: &Dumbbell) -> FlowId {
    let to = topology::add_host(net, bell.right, &link("rate=100M,delay=1ms,buffer=1000p"));
    let source = endpoint(net, scheme, Role::Source, "source");
    let sink = endpoint(net, scheme, Role::Sink, "sink");
    let lateness = Duration::from_millis(1);
    let config = StreamConfig { times: Times::default(), lateness, supply: Supply::Endless };
    net.add_stream(from, to, source, sink, config).expect("a way").flow
}

/// A stream without end to an agent and three receivers below it; also the links that lose packets.
fn add_tree(net: &mut Network, scheme: &Scheme, tree: Tree, root: NodeId, bell: &Dumbbell) -> (FlowId, Vec<LinkId>) {
    let config = SessionConfig { channels: 1, form: CciForm::Short, membership: Membership::default() };
    let session = net.add_session(root, config).expect("a channel");
    // IP and UDP headers and a report.
    let stream = Stream { feedback_size: Bytes::new(72), ..STREAM };
    let (names, mut lossy) = (["sender", "agent", "receiver 1", "receiver 2", "receiver 3"], Vec::new());
    let mut members: Vec<AgentId> = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let (build, children) = match number {
            0 => (tree.sender, 1),
            1 => (tree.agent, 3),
            _ => (tree.receiver, 0),
        };
        let party = build(&stream, &of_node(scheme, children), net.random_for(name)).expect("good settings");
        let config = EndpointConfig {
            times: Times::from(Time::from_millis(100 * (names.len() - number) as u64)),
            clock_ahead: Duration::from_secs(number as u64),
            lateness: Duration::from_millis(1),
            accepts_peers: true,
            supply: (number == 0).then_some(Supply::Endless),
            ..EndpointConfig::default()
        };
        if number == 0 {
            members.push(net.add_sender(session, party, config));
            continue;
        }
        let access = link(&format!("rate={number}M,delay=5ms,buffer=20p,loss=2%"));
        let host = topology::add_host(net, bell.right, &access);
        let ways = [(bell.right, host), (host, bell.right)];
        lossy.extend(ways.map(|(from, to)| net.link_between(from, to).expect("a link")));
        let member = net.add_receiver(session, host, party, config).expect("a way");
        net.introduce(member, members[number.min(2) - 1]).expect("a way");
        members.push(member);
    }
    (net.flow_of(members[0]), lossy)
}

/// The settings of a member of a tree with this number of children.
fn of_node(scheme: &Scheme, children: usize) -> Vec<Setting> {
    let waits = scheme.settings().into_iter().filter(|setting| setting.key == "children");
    waits.map(|setting| Setting { key: setting.key.to_owned(), value: children.to_string() }).collect()
}

/// The digest of a dumbbell with an AVMRC session of three receivers, a TCP of every flavour, a user of the web and a source
/// of bursts.
fn everything(bottleneck: &str) -> String {
    let mut net = Network::new(1);
    let bottleneck = link(bottleneck);
    let bell = topology::dumbbell(&mut net, &bottleneck, &bottleneck);
    let access = |delay: u64| link(&format!("rate=100M,delay={delay}ms,buffer=1000p"));
    let source = topology::add_host(&mut net, bell.left, &access(1));
    let config =
        SessionConfig { channels: session().ladder.levels(), form: session().form, membership: Membership::default() };
    let id = net.add_session(source, config).expect("nine channels");
    let scheme = registry::find("avmrc").expect("AVMRC is registered");
    let lateness = Duration::from_millis(1);
    let config = EndpointConfig { lateness, ..EndpointConfig::default() };
    let sender = endpoint(&net, scheme, Role::Sender, "sender");
    net.add_sender(id, sender, config);
    for number in 0..3 {
        let host = topology::add_host(&mut net, bell.right, &access(5 + 20 * number));
        let times = Times::from(Time::from_millis(700 * number));
        let config = EndpointConfig { times, clock_ahead: Duration::from_secs(number), ..EndpointConfig::default() };
        let receiver = endpoint(&net, scheme, Role::Receiver, &format!("receiver {number}"));
        net.add_receiver(id, host, receiver, config).expect("a way");
    }
    // Sack1 came later than the digests.
    for (number, flavour) in Flavour::ALL.into_iter().filter(|flavour| *flavour != Flavour::Sack1).enumerate() {
        let from = topology::add_host(&mut net, bell.left, &access(2));
        let to = topology::add_host(&mut net, bell.right, &access(3 + number as u64));
        let config = tcp::Config { max_window: 64, ..tcp::Config::ns2(flavour) };
        let start = Times::from(Time::from_millis(100 * number as u64));
        net.add_tcp(from, to, config, start).expect("a way");
        net.add_http(from, to, HttpConfig::avmrc(config), start).expect("a way");
    }
    let (from, to) = (source, topology::add_host(&mut net, bell.right, &access(1)));
    let on = Distribution::Exponential { mean: 0.5 };
    let pattern = Pattern::OnOff { on, off: Distribution::Pareto { mean: 1.0, shape: 1.5 } };
    let bursts = UdpConfig { packet_size: Bytes::new(500), rate: Rate::from_mbps(1), pattern };
    net.add_datagrams(from, to, bursts, Times::default()).expect("a way");
    digest(net, None, &[])
}

fn session() -> Session {
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("nine rates");
    Session { ladder, packet_size: Bytes::new(1000), form: CciForm::Short, habitat: Habitat::Lab }
}

const STREAM: Stream = Stream { packet_size: Bytes::new(1000), feedback_size: Bytes::new(40), habitat: Habitat::Lab };

#[derive(Debug, Clone, Copy)]
enum Role {
    Sender,
    Receiver,
    Source,
    Sink,
}

/// A party of a scheme with its defaults.
fn endpoint(net: &Network, scheme: &Scheme, role: Role, name: &str) -> Box<dyn Endpoint> {
    let random = net.random_for(name);
    let built = match role {
        Role::Sender => scheme.sender(&session(), &[], random),
        Role::Receiver => scheme.receiver(&session(), &[], random),
        Role::Source => scheme.source(&STREAM, &[], random),
        Role::Sink => scheme.sink(&STREAM, &[], random),
    };
    built.expect("defaults are valid")
}

/// The digest of ten seconds. Queues must have dropped packets, of `flow` if one is named, and each of the links that are
/// `lossy` must have lost some.
fn digest(mut net: Network, flow: Option<FlowId>, lossy: &[LinkId]) -> String {
    let mut watch = (Trace::new(BufWriter::new(Digest(blake3::Hasher::new()))), Drops { flow, count: 0 });
    net.run_until(Time::from_secs(10), &mut watch);
    let (trace, drops) = watch;
    assert!(
        drops.count > 0,
        "the network is too wide for a digest to tell much: no queue dropped a packet of {flow:?}"
    );
    let lost: Vec<u64> = lossy.iter().map(|link| net.link_counters(*link).lost).collect();
    assert!(!lost.contains(&0), "a link lost nothing: {lost:?}");
    let out = trace.finish().expect("a digest takes everything");
    let hash = out.into_inner().map_err(|_| "flush").expect("a digest takes everything").0.finalize();
    hash.to_hex()[..16].to_owned()
}

/// Takes a trace in and keeps its digest only.
struct Digest(blake3::Hasher);

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts what queues drop.
struct Drops {
    flow: Option<FlowId>,
    count: u64,
}

impl Monitor for Drops {
    fn drop(&mut self, _at: Time, _link: LinkId, packet: &Packet, reason: DropReason) {
        let is_meant = self.flow.is_none_or(|flow| packet.flow == flow);
        self.count += u64::from(is_meant && reason != DropReason::Lost);
    }
}

fn link(text: &str) -> LinkConfig {
    text.parse().expect("a valid link")
}
