//! The toy on real sockets: five parties on one thread, over the loopback.

mod toy_stream;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use toy_stream::{Done, Guest, LATE, LEAVE, LOSS, Outcome, PAYLOADS, Plan, REST, STREAM, check};
use weir_core::registry::{Build, Stream};
use weir_core::{ChannelId, PeerId};
use weir_link::{LinkConfig, Loss};
use weir_net::clock::{self, Clock};
use weir_net::host::{
    Application, Delivery, Host, LinkInFront, PeerChange, Progress, Statistics, Tenant, TenantConfig,
};
use weir_net::profile::ExperimentalProfile;
use weir_net::socket::{SendConfig, UnicastSocket};
use weir_net::{Interface, InterfaceChoice};
use weir_testkit::toy::TOY;
use weir_units::{Random, Time};

#[test]
fn every_receiver_gets_everything_in_order_whatever_is_lost() {
    check(&LOSS, &run(&LOSS));
}

#[test]
fn the_sender_stops_while_a_receiver_has_no_room_and_goes_on_afterwards() {
    check(&REST, &run(&REST));
}

#[test]
fn a_receiver_that_leaves_holds_nobody_back() {
    check(&LEAVE, &run(&LEAVE));
}

#[test]
fn a_receiver_that_comes_late_gets_what_is_still_stored_and_all_that_follows() {
    check(&LATE, &run(&LATE));
}

/// All parties on one thread; but a receiver that comes late has a thread of its own.
fn run(plan: &Plan) -> Outcome {
    let shared =
        Shared { guests: plan.receivers.iter().filter(|guest| guest.joins.is_none()).count(), ..Shared::new() };
    let network = Network::new(plan.loss);
    let (sender, root) = network.sender();
    let (agent, above) = network.agent(root);
    let mut offering = Offering { shared: &shared, taken: 0, payload: Vec::new(), is_complete: false };
    let mut storing = Storing { shared: &shared, present: 0, is_complete: false };
    let mut reading = [0, 1, 2].map(|number| Reading::new(&shared, number, plan.receivers[number]));
    let lost = thread::scope(|scope| {
        let mut host = Host::new();
        host.add(sender, &mut offering);
        host.add(agent, &mut storing);
        let (late, soon): (Vec<_>, Vec<_>) = reading.iter_mut().partition(|reading| reading.guest.joins.is_some());
        for reading in soon {
            host.add(network.receiver(above, reading.number), reading);
        }
        let late = late.into_iter().map(|reading| {
            let (network, shared) = (&network, &shared);
            scope.spawn(move || {
                shared.wait_for(reading.guest.joins.unwrap_or_default());
                Host::run_one(network.receiver(above, reading.number), reading)
            })
        });
        let late: Vec<_> = late.collect();
        let mut outcomes = host.run();
        outcomes.extend(late.into_iter().map(|thread| thread.join().expect("no panic")));
        outcomes.into_iter().map(|outcome| outcome.expect("it runs").link_dropped).collect::<Vec<u64>>()
    });
    let log = std::mem::take(&mut *shared.log.lock().unwrap_or_else(PoisonError::into_inner));
    let begun = *shared.begun.get().expect("the receivers came");
    Outcome { begun, log, lost: lost.try_into().expect("five parties") }
}

/// What makes the parties' tenants.
struct Network {
    interface: Interface,
    group: SocketAddr,
    loss: f64,
}

impl Network {
    fn new(loss: f64) -> Network {
        static NUMBER: AtomicU16 = AtomicU16::new(0);
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed) as u8;
        let ip = IpAddr::V4(Ipv4Addr::new(239, high, low, number));
        let interface = Interface::choose(&InterfaceChoice::Address(HOST), ip).expect("the loopback");
        Network { interface, group: SocketAddr::new(ip, 15_004), loss }
    }

    /// A tenant that runs this party behind a link that loses packets, as a member of the session.
    fn tenant(&self, build: Build<Stream>, receives: bool, seed: u64) -> Tenant<ExperimentalProfile> {
        let config = LinkConfig { loss: Loss::Random(self.loss), ..LinkConfig::default() };
        let link = Some(LinkInFront { config, seed });
        let config = TenantConfig { tick: Duration::from_millis(10), link, ..TenantConfig::default() };
        let mut tenant =
            Tenant::new(&config).with_endpoint(build(&STREAM, &[], Random::new(seed, "toy")).expect("no settings"));
        let (profile, sends) = (ExperimentalProfile { tsi: 1 }, SendConfig::default());
        let sends = (!receives).then_some(&sends);
        tenant.add_session(profile, &self.interface, &[self.group], None, receives, sends).expect("a session");
        tenant
    }

    /// The sender, and where the agent finds it.
    fn sender(&self) -> (Tenant<ExperimentalProfile>, SocketAddr) {
        let mut sender = self.tenant(TOY.tree().expect("it is a tree").sender, false, 1);
        let address = listen(&mut sender);
        sender.admit([1; 32], 1);
        (sender, address)
    }

    /// The agent, and where receivers find it.
    fn agent(&self, root: SocketAddr) -> (Tenant<ExperimentalProfile>, SocketAddr) {
        let mut agent = self.tenant(TOY.tree().expect("it is a tree").agent, true, 2);
        contact(&mut agent, root, 100);
        let address = listen(&mut agent);
        agent.admit([2; 32], 8);
        (agent, address)
    }

    fn receiver(&self, agent: SocketAddr, number: usize) -> Tenant<ExperimentalProfile> {
        let mut receiver = self.tenant(TOY.tree().expect("it is a tree").receiver, true, 3 + number as u64);
        contact(&mut receiver, agent, 200 + number as u32);
        receiver
    }
}

fn listen(tenant: &mut Tenant<ExperimentalProfile>) -> SocketAddr {
    let socket = UnicastSocket::listen(SocketAddr::new(HOST, 0)).expect("a port of the loopback");
    let socket = tenant.add_unicast(socket).expect("a socket");
    tenant.unicast_local(socket).expect("it was added")
}

fn contact(tenant: &mut Tenant<ExperimentalProfile>, to: SocketAddr, ssrc: u32) {
    let socket = tenant.add_unicast(UnicastSocket::connect(to).expect("a socket")).expect("a socket");
    tenant.add_contact(socket, to, ssrc);
}

/// What the applications know of each other.
struct Shared {
    log: Mutex<Vec<(Time, Done)>>,
    /// Receivers for which the stream waits, and those that the agent knows.
    guests: usize,
    known: AtomicUsize,
    begun: OnceLock<Time>,
    /// When a run has failed.
    patience: Time,
}

impl Shared {
    fn new() -> Shared {
        let patience = Clock::new().now() + Duration::from_secs(60);
        let (log, known, begun) = (Mutex::default(), AtomicUsize::new(0), OnceLock::new());
        Shared { log, guests: 0, known, begun, patience }
    }

    fn note(&self, now: Time, done: Done) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push((now, done));
    }

    /// How long the stream has been going on.
    fn since_begin(&self, now: Time) -> Option<Duration> {
        self.begun.get().map(|begun| now.since(*begun))
    }

    /// Waits until the stream has been going on for so long.
    fn wait_for(&self, span: Duration) {
        while self.since_begin(Clock::new().now()).is_none_or(|since| since < span) {
            clock::wait(&mut [], Clock::new().now() + Duration::from_millis(5)).expect("waiting needs nothing");
        }
    }

    fn stop_if(&self, is_over: bool, now: Time) -> Progress {
        if is_over || now > self.patience { Progress::Stop } else { Progress::Continue }
    }
}

/// The sender's application: has all payloads from when the receivers are there.
struct Offering<'a> {
    shared: &'a Shared,
    taken: u64,
    payload: Vec<u8>,
    is_complete: bool,
}

impl Application<()> for Offering<'_> {
    fn payload(&mut self, now: Time, _channel: Option<ChannelId>) -> Option<((), &[u8])> {
        if self.taken == PAYLOADS {
            return None;
        }
        self.payload = payload(self.taken);
        self.shared.note(now, Done::Took(self.taken));
        self.taken += 1;
        Some(((), &self.payload))
    }

    fn waiting(&self) -> Option<u64> {
        Some(self.shared.begun.get().map_or(0, |_| PAYLOADS - self.taken))
    }

    fn is_over(&self) -> bool {
        self.shared.begun.get().is_some()
    }

    fn complete(&mut self, now: Time) {
        self.is_complete = true;
        self.shared.note(now, Done::SenderComplete);
    }

    fn tick(&mut self, now: Time, _: &Statistics) -> Progress {
        if self.shared.known.load(Ordering::Relaxed) >= self.shared.guests {
            self.shared.begun.get_or_init(|| now);
        }
        self.shared.stop_if(self.is_complete, now)
    }
}

/// The agent's: stays until everybody has left.
struct Storing<'a> {
    shared: &'a Shared,
    present: usize,
    is_complete: bool,
}

impl Application<()> for Storing<'_> {
    fn peer(&mut self, _now: Time, peer: PeerId, _address: SocketAddr, change: PeerChange) {
        match change {
            PeerChange::Up => {
                self.present += 1;
                self.shared.known.fetch_add(usize::from(peer != PeerId(0)), Ordering::Relaxed);
            }
            PeerChange::Down(_) => self.present -= 1,
            PeerChange::Reached
            | PeerChange::Busy
            | PeerChange::Later
            | PeerChange::OtherKey(_)
            | PeerChange::Unanswered { .. } => {}
        }
    }

    fn complete(&mut self, now: Time) {
        self.is_complete = true;
        self.shared.note(now, Done::AgentComplete);
    }

    fn tick(&mut self, now: Time, _: &Statistics) -> Progress {
        self.shared.stop_if(self.is_complete && self.present == 0, now)
    }
}

/// A receiver's: reads as its plan says, and checks every byte.
struct Reading<'a> {
    shared: &'a Shared,
    number: usize,
    guest: Guest,
    unread: u64,
    is_complete: bool,
}

impl<'a> Reading<'a> {
    fn new(shared: &'a Shared, number: usize, guest: Guest) -> Reading<'a> {
        Reading { shared, number, guest, unread: 0, is_complete: false }
    }

    fn is_reading(&self, since: Duration) -> bool {
        self.guest.reads.is_none_or(|reads| {
            let turn = (reads.for_so_long + reads.then_rests).as_nanos();
            since.as_nanos() % turn < reads.for_so_long.as_nanos()
        })
    }
}

impl Application<()> for Reading<'_> {
    fn deliver(&mut self, now: Time, delivery: Delivery<'_, ()>) {
        let number = delivery.number.expect("the toy numbers payloads");
        assert!(delivery.payload == payload(number), "payload {number} came otherwise than it went");
        self.unread += 1;
        assert!(self.guest.reads.is_none_or(|reads| self.unread <= reads.capacity), "there is no room for {number}");
        self.shared.note(now, Done::Delivered(self.number, number));
    }

    fn room(&self) -> Option<u64> {
        self.guest.reads.map(|reads| reads.capacity - self.unread)
    }

    fn complete(&mut self, now: Time) {
        self.is_complete = true;
        self.shared.note(now, Done::Complete(self.number));
    }

    fn tick(&mut self, now: Time, _: &Statistics) -> Progress {
        let since = self.shared.since_begin(now).unwrap_or_default();
        if self.is_reading(since) {
            self.unread = 0;
        }
        self.shared.stop_if(self.is_complete || self.guest.leaves.is_some_and(|leaves| since >= leaves), now)
    }
}

/// The bytes of a payload.
fn payload(number: u64) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend((8..1_000).map(|place: u64| (place * 31 + number * 7) as u8));
    bytes
}

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
