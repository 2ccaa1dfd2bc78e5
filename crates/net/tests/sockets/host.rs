//! Several tenants on one thread and one host.

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::common::script::{Notes, PATIENCE, at_start, datagram, listen, numbered, script, tenant};
use crate::common::{Beacon, Counting, Ledger, Taker, config, session, tenant_config};
use weir_core::{Action, ChannelId, Destination, Endpoint, Event, PeerId};
use weir_net::clock::Clock;
use weir_net::host::{Application, Delivery, Host, Progress, Statistics, Tenant, TenantConfig};
use weir_net::{Description, Impossible, NetError};
use weir_units::Time;
use weir_wire::alc::Content;

/// A sender and two receivers of a session, with one more tenant that wants this when it starts.
fn session_and(description: &Description, more: Action) -> (Vec<Ledger>, Vec<Result<Statistics, NetError>>) {
    let beacon = Box::new(Beacon::new(2, 20, 20).after_a_join(description));
    let sender = weir_net::session::sender(description, beacon, &config()).expect("a sender");
    let receiver = || weir_net::session::receiver(description, Some(Box::new(Taker::new(0..2))), &config());
    let (mut counting, mut notes) = (Counting::within(PATIENCE), Notes::default());
    let mut ledgers = vec![Ledger::new(description), Ledger::new(description)];
    let mut host = Host::new();
    host.add(sender, &mut counting);
    host.add(tenant(at_start(&[more])).0, &mut notes);
    for ledger in &mut ledgers {
        host.add(receiver().expect("a receiver"), ledger);
    }
    let outcomes = host.run();
    (ledgers, outcomes)
}

fn assert_whole(ledgers: &[Ledger], sender: &Statistics, receivers: [&Statistics; 2]) {
    assert_eq!(sender.sent.packets, 800 + 2 * 6, "and six closing packets on each channel");
    for (ledger, receiver) in ledgers.iter().zip(receivers) {
        assert_eq!((ledger.of_channel(0).len(), ledger.of_channel(1).len(), ledger.wrong), (400, 400, 0));
        assert_eq!((receiver.delivered, receiver.host_dropped, receiver.ignored.total()), (800, 0, 0));
        assert!(ledger.is_closed);
    }
}

#[test]
fn a_sender_and_two_receivers_of_a_session_share_a_host() {
    let (ledgers, outcomes) = session_and(&session(2, true), Action::Complete);
    let [Ok(sender), Ok(_), Ok(first), Ok(second)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_whole(&ledgers, sender, [first, second]);
}

#[test]
fn a_tenant_whose_run_fails_does_not_end_the_others() {
    let peer = PeerId(9);
    let (ledgers, outcomes) = session_and(&session(2, true), Action::send(Destination::Peer(peer), numbered(1)));
    let [Ok(sender), Err(error), Ok(first), Ok(second)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(matches!(error, NetError::Impossible(Impossible::NoPeer { peer: PeerId(9) })), "{error}");
    assert_whole(&ledgers, sender, [first, second]);
}

/// Ends when a port is free, or at the end of patience.
struct Waits {
    port: u16,
    is_free: bool,
    ticks: u32,
}

impl Application<()> for Waits {
    fn tick(&mut self, _now: Time, _statistics: &Statistics) -> Progress {
        self.ticks += 1;
        self.is_free = UdpSocket::bind((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        if self.is_free || self.ticks > 50 { Progress::Stop } else { Progress::Continue }
    }
}

#[test]
fn the_sockets_of_a_tenant_whose_run_is_over_are_closed_while_others_go_on() {
    for last in [Action::Complete, Action::Take { number: 0 }] {
        let (over, at) = tenant(at_start(&[last]));
        let mut waits = Waits { port: at.port(), is_free: false, ticks: 0 };
        let mut notes = Notes::default();
        let mut host = Host::new();
        host.add(over, &mut notes);
        host.add(tenant(at_start(&[])).0, &mut waits);
        host.run();
        assert!(waits.is_free);
    }
}

/// Is busy for a while with everything that comes.
struct Dawdles(Notes);

impl Application<()> for Dawdles {
    fn deliver(&mut self, _now: Time, _delivery: Delivery<'_, ()>) {
        std::thread::sleep(Duration::from_millis(300));
    }

    fn complete(&mut self, now: Time) {
        self.0.complete(now);
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.0.tick(now, statistics)
    }
}

#[test]
fn a_slow_tenant_does_not_change_the_arrival_times_of_another() {
    let mut left = 2;
    let (slow, at) = tenant(script(move |_, event, plan| {
        if matches!(event, Event::Packet { .. }) {
            left -= 1;
            plan.actions.push_back(Action::Deliver { number: None });
            plan.actions.extend((left == 0).then_some(Action::Complete));
        }
    }));
    let (tell, told) = channel();
    let mut left = 2;
    let endpoint = script(move |now, event, plan| {
        if matches!(event, Event::Packet { .. }) {
            left -= 1;
            tell.send(now).expect("the test listens");
            plan.actions.extend((left == 0).then_some(Action::Complete));
        }
    });
    let mut prompt = Tenant::new(&tenant_config()).with_endpoint(endpoint);
    let sockets = [listen(&mut prompt), listen(&mut prompt)];
    let sending = std::thread::spawn(move || {
        let (socket, clock) = (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket"), Clock::new());
        let send = |to: SocketAddr| socket.send_to(&datagram(1, b"x"), to).expect("the loopback takes it");
        std::thread::sleep(Duration::from_millis(100));
        send(at);
        std::thread::sleep(Duration::from_millis(20));
        // Both are there when the first is done with, and the slow tenant's comes first.
        send(at);
        send(sockets[0]);
        std::thread::sleep(Duration::from_millis(350));
        // So this one comes while the slow tenant is busy with its second, to a socket that had nothing.
        let sent = clock.now();
        send(sockets[1]);
        sent
    });
    let (mut dawdles, mut notes) = (Dawdles(Notes::default()), Notes::default());
    let mut host = Host::new();
    host.add(slow, &mut dawdles);
    host.add(prompt, &mut notes);
    host.run().into_iter().for_each(|outcome| drop(outcome.expect("it runs")));
    let sent = sending.join().expect("no panic");
    let last = told.iter().last().expect("two came");
    assert!(last.since(sent) < Duration::from_millis(100), "{:?} late", last.since(sent));
}

/// Has some payloads at a time, and more as they are taken.
struct Refills {
    left: u64,
    notes: Notes,
}

impl Application<()> for Refills {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<((), &[u8])> {
        self.left = self.left.checked_sub(1)?;
        Some(((), b"payload"))
    }

    fn waiting(&self) -> Option<u64> {
        Some(self.left.min(10))
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }

    fn complete(&mut self, now: Time) {
        self.notes.complete(now);
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.notes.tick(now, statistics)
    }
}

#[test]
fn payloads_and_their_end_are_offered_when_they_are_there_and_not_at_the_next_tick() {
    let endpoint = script(|_, event, plan| match event {
        Event::Offer { packets } => {
            let send = Action::send_fresh(Destination::Peer(PeerId(0)), numbered(1));
            plan.actions.extend((0..packets).map(|_| send.clone()));
        }
        Event::End => plan.actions.push_back(Action::Complete),
        _ => {}
    });
    let slow = TenantConfig { tick: Duration::from_secs(1), ..tenant_config() };
    let mut tenant = Tenant::new(&slow).with_endpoint(endpoint);
    listen(&mut tenant);
    let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    tenant.add_peer(0, sink.local_addr().expect("it is bound"));
    let begin = Instant::now();
    let statistics = Host::run_one(tenant, &mut Refills { left: 35, notes: Notes::default() }).expect("it runs");
    assert_eq!((statistics.sent.packets, statistics.starved), (35, 0));
    assert!(begin.elapsed() < Duration::from_millis(800), "{:?}", begin.elapsed());
}

/// Wants a tick at once, from the moment at which it has stopped.
struct Impatient {
    has_stopped: bool,
    asked: Cell<u32>,
    time: Counting,
}

impl Application<weir_wire::alc::Content> for Impatient {
    fn deadline(&self) -> Option<Time> {
        self.asked.set(self.asked.get() + 1);
        self.has_stopped.then_some(Time::ZERO)
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        let progress = self.time.tick(now, statistics);
        self.has_stopped = progress == Progress::Stop;
        progress
    }
}

#[test]
fn a_tenant_says_goodbye_over_half_a_second_and_sleeps_in_between() {
    let sender = weir_net::session::sender(&session(1, true), at_start(&[]), &config()).expect("a sender");
    let time = Counting::within(Duration::from_millis(20));
    let mut impatient = Impatient { has_stopped: false, asked: Cell::new(0), time };
    let started = Instant::now();
    let statistics = Host::run_one(sender, &mut impatient).expect("it runs");
    assert!(started.elapsed() >= Duration::from_millis(500), "a tenant that changes channels meanwhile hears of it");
    assert_eq!(statistics.sent.packets, 6, "closing packets");
    assert!(impatient.asked.get() < 100, "asked {} times", impatient.asked.get());
}

#[test]
fn a_kept_payload_that_is_delivered_later_is_a_batch_of_its_own() {
    let endpoint = script(|now, event, plan| match event {
        Event::Packet { .. } => {
            plan.actions.extend([Action::Keep { number: 1 }, Action::Deliver { number: Some(1) }]);
            plan.due = Some(now + Duration::from_millis(200));
        }
        Event::Deadline => {
            plan.actions.push_back(Action::DeliverKept { number: 1 });
            plan.actions.push_back(Action::Complete);
        }
        _ => {}
    });
    let (tenant, at) = tenant(endpoint);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.send_to(&datagram(1, b"x"), at).expect("the loopback takes it");
    let mut notes = Notes::default();
    Host::run_one(tenant, &mut notes).expect("it runs");
    assert_eq!(notes.batches, [1, 2, 2], "after each delivery, and at the end of the run");
}

/// Once something has come it wants nothing for [`Resting::REST`], and then all that comes until the sender ends.
struct Resting {
    ledger: Ledger,
    rests_since: Option<Time>,
    /// Packets that came before it rested.
    before: usize,
    /// Packets that came while it did.
    meanwhile: usize,
    begun_again: u32,
}

impl Resting {
    const REST: Duration = Duration::from_millis(300);

    fn rests(&self, now: Time) -> bool {
        self.rests_since.is_some_and(|since| now.since(since) < Resting::REST)
    }
}

impl Application<Content> for Resting {
    fn deliver(&mut self, now: Time, delivery: Delivery<'_, Content>) {
        self.ledger.deliver(now, delivery);
    }

    fn begin_again(&mut self, _now: Time) -> Option<Box<dyn Endpoint>> {
        self.meanwhile = self.ledger.seen.len() - self.before;
        self.begun_again += 1;
        Some(Box::new(Taker::new(0..2)))
    }

    fn closed(&mut self, now: Time, session: usize) {
        self.ledger.closed(now, session);
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        if self.rests_since.is_none() && !self.ledger.seen.is_empty() {
            (self.rests_since, self.before) = (Some(now), self.ledger.seen.len());
        }
        if self.rests(now) { Progress::Rest } else { self.ledger.tick(now, statistics) }
    }
}

#[test]
fn an_application_that_rests_gets_nothing_and_takes_what_comes_once_it_goes_on() {
    let description = session(2, true);
    let beacon = Box::new(Beacon::new(2, 1, 200).after_a_join(&description));
    let sender = weir_net::session::sender(&description, beacon, &config()).expect("a sender");
    let receiver = weir_net::session::receiver(&description, Some(Box::new(Taker::new(0..2))), &config());
    let ledger = Ledger::new(&description);
    let mut resting = Resting { ledger, rests_since: None, before: 0, meanwhile: 0, begun_again: 0 };
    let mut counting = Counting::within(PATIENCE);
    let mut host = Host::new();
    host.add(sender, &mut counting);
    host.add(receiver.expect("a receiver"), &mut resting);
    let outcomes = host.run();
    let sent = outcomes[0].as_ref().expect("it runs").sent.packets;
    assert_eq!(sent, 400 + 2 * 6);
    // A round of the beacon is 5 ms, so that at least 300 ms of a second are missed, and the rest is not.
    let seen = resting.ledger.seen.len();
    assert_eq!((resting.begun_again, resting.meanwhile, resting.ledger.wrong), (1, 0, 0));
    assert!(resting.before > 0 && seen > resting.before + 50 && seen < 400 - 50, "{} then {seen}", resting.before);
    assert!(resting.ledger.is_closed);
}
