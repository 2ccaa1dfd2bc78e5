//! A stream over a tree on real sockets: a sender, an agent, and receivers below both.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use weir_core::registry::{Build, Habitat, Scheme, Setting, Stream, find};
use weir_core::{ChannelId, Endpoint, PeerId};
use weir_link::{LinkConfig, Loss};
use weir_net::InterfaceChoice;
use weir_net::clock::Clock;
use weir_net::host::{
    Application, Delivery, Host, LinkInFront, PeerChange, Progress, Statistics, Tenant, TenantConfig,
};
use weir_net::profile::MtcpProfile;
use weir_net::session::SessionConfig;
use weir_net::tree::{self, Door, TreeSession};
use weir_units::{Bytes, Random, Time};

#[test]
fn every_member_gets_every_byte_in_order_over_links_that_lose() {
    let outcome = run(2_000, 0.02, None);
    // To the sender only acknowledgements come, and fewer.
    assert!(outcome.lost[1..].iter().all(|lost| *lost > 20), "the links lost {:?}", outcome.lost);
    assert_eq!(outcome.right, [2_000; 3]);
}

#[test]
fn the_sender_waits_for_a_receiver_that_does_not_read() {
    let outcome = run(1_500, 0.0, Some(Duration::from_secs(2)));
    assert_eq!(outcome.right, [1_500; 3]);
    assert!(outcome.took > Duration::from_secs(2), "it took {:?}", outcome.took);
    let most = PAUSE_AFTER + BUFFER;
    assert!((PAUSE_AFTER..=most).contains(&outcome.taken_in_pause), "{} were taken", outcome.taken_in_pause);
}

/// What came of a run.
struct Outcome {
    /// By receiver: payloads in their order and with the right bytes.
    right: [u64; 3],
    /// By member, the sender first: packets that its link lost.
    lost: Vec<u64>,
    took: Duration,
    /// Payloads that the sender had taken when the pause ended.
    taken_in_pause: u64,
}

/// Sends `payloads` to a receiver below the sender and to two below an agent. With `pause` the last one reads 100 payloads,
/// and no more for so long.
fn run(payloads: u64, loss: f64, pause: Option<Duration>) -> Outcome {
    let network = Network::new(loss);
    let tree = find("mtcp").and_then(Scheme::tree).expect("it is a tree");
    let (root, at_root) = network.open(tree.sender, 1, None);
    let (agent, at_agent) = network.open(tree.agent, 2, Some(at_root));
    let receivers = [(at_root, 3), (at_agent, 4), (at_agent, 5)];
    let receivers = receivers.map(|(above, seed)| network.receiver(tree.receiver, seed, above));
    let begun = Clock::new().now();
    let pause_until = begun + pause.unwrap_or_default();
    let mut source =
        Source { payloads, taken: 0, payload: Vec::new(), is_complete: false, pause_until, taken_in_pause: 0 };
    let mut storing = Storing { is_complete: false };
    let mut sinks =
        [begun, begun, pause_until].map(|pause_until| Sink { right: 0, pause_until, now: begun, is_complete: false });
    let mut host = Host::new();
    host.add(root, &mut source);
    host.add(agent, &mut storing);
    receivers.into_iter().zip(&mut sinks).for_each(|(receiver, sink)| host.add(receiver, sink));
    let lost = host.run().into_iter().map(|outcome| outcome.expect("it runs").link_dropped).collect();
    let right = sinks.each_ref().map(|sink| if sink.is_complete { sink.right } else { 0 });
    Outcome { right, lost, took: Clock::new().now().since(begun), taken_in_pause: source.taken_in_pause }
}

/// What makes the parties' tenants.
struct Network {
    session: TreeSession,
    loss: f64,
}

impl Network {
    fn new(loss: f64) -> Network {
        static NUMBER: AtomicU8 = AtomicU8::new(1);
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let group = Ipv4Addr::new(239, high, low, NUMBER.fetch_add(1, Ordering::Relaxed));
        Network { session: TreeSession { tsi: 9, channel: SocketAddr::new(group.into(), 15_006) }, loss }
    }

    fn config(&self, seed: u64) -> SessionConfig {
        let link = LinkConfig { loss: Loss::Random(self.loss), ..LinkConfig::default() };
        let link = Some(LinkInFront { config: link, seed });
        let tenant = TenantConfig { tick: Duration::from_millis(5), link, ..TenantConfig::default() };
        SessionConfig { interface: InterfaceChoice::Address(HOST), tenant, ..SessionConfig::default() }
    }

    /// A node with two members below it, and where these find it.
    fn open(&self, build: Build<Stream>, seed: u8, above: Option<SocketAddr>) -> (Tenant<MtcpProfile>, SocketAddr) {
        let door = Door { listen: SocketAddr::new(HOST, 0), secret: [seed; 32], most: 8 };
        let (endpoint, config) = (endpoint(build, seed.into()), self.config(seed.into()));
        let tenant = match above {
            None => tree::sender(&self.session, door, endpoint, &config),
            Some(above) => tree::agent(&self.session, above, seed.into(), door, endpoint, &config),
        };
        let tenant = tenant.expect("sockets");
        let listens = tenant.unicast_local(usize::from(above.is_some())).expect("it listens");
        (tenant, listens)
    }

    fn receiver(&self, build: Build<Stream>, seed: u8, above: SocketAddr) -> Tenant<MtcpProfile> {
        let (endpoint, config) = (endpoint(build, seed.into()), self.config(seed.into()));
        tree::receiver(&self.session, above, seed.into(), None, endpoint, &config).expect("sockets")
    }
}

fn endpoint(build: Build<Stream>, seed: u64) -> Box<dyn Endpoint> {
    let stream = Stream { packet_size: Bytes::new(1042), feedback_size: Bytes::new(72), habitat: Habitat::Sockets };
    let settings = [("receivers", 3), ("buffer", BUFFER)];
    let settings = settings.map(|(key, value)| Setting { key: key.to_owned(), value: value.to_string() });
    build(&stream, &settings, Random::new(seed, "tree")).expect("good settings")
}

fn payload(number: u64) -> Vec<u8> {
    let mut random = Random::new(number, "payload");
    (0..125).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// The sender's application.
struct Source {
    payloads: u64,
    taken: u64,
    payload: Vec<u8>,
    is_complete: bool,
    pause_until: Time,
    taken_in_pause: u64,
}

impl Application<()> for Source {
    fn payload(&mut self, now: Time, _channel: Option<ChannelId>) -> Option<((), &[u8])> {
        self.payload = payload(self.taken);
        self.taken += 1;
        if now < self.pause_until {
            self.taken_in_pause = self.taken;
        }
        Some(((), &self.payload))
    }

    fn waiting(&self) -> Option<u64> {
        Some(self.payloads - self.taken)
    }

    fn is_over(&self) -> bool {
        true
    }

    fn complete(&mut self, _now: Time) {
        self.is_complete = true;
    }

    fn tick(&mut self, _now: Time, _: &Statistics) -> Progress {
        if self.is_complete { Progress::Stop } else { Progress::Continue }
    }
}

/// The agent's.
struct Storing {
    is_complete: bool,
}

impl Application<()> for Storing {
    fn peer(&mut self, _now: Time, peer: PeerId, _address: SocketAddr, change: PeerChange) {
        self.is_complete |= peer == PeerId(0) && matches!(change, PeerChange::Down(_));
    }

    fn tick(&mut self, _now: Time, _: &Statistics) -> Progress {
        if self.is_complete { Progress::Stop } else { Progress::Continue }
    }
}

/// A receiver's.
struct Sink {
    right: u64,
    pause_until: Time,
    now: Time,
    is_complete: bool,
}

impl Application<()> for Sink {
    fn deliver(&mut self, _now: Time, delivery: Delivery<'_, ()>) {
        if delivery.number == Some(self.right) && delivery.payload == payload(self.right) {
            self.right += 1;
        }
    }

    fn room(&self) -> Option<u64> {
        let is_paused = self.now < self.pause_until;
        Some(if is_paused { PAUSE_AFTER.saturating_sub(self.right) } else { 64 })
    }

    fn complete(&mut self, _now: Time) {
        self.is_complete = true;
    }

    fn tick(&mut self, now: Time, _: &Statistics) -> Progress {
        self.now = now;
        if self.is_complete { Progress::Stop } else { Progress::Continue }
    }
}

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Packets that each node keeps.
const BUFFER: u64 = 200;
const PAUSE_AFTER: u64 = 100;
