//! Clocks that step, senders that start again and forged packets, for every scheme: some seconds later the rate is what it is
//! without.
//!
//! What happens to packets happens right before the receiver, so that all that shares the path with them stays as it was.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{Habitat, Parties, SCHEMES, Scheme, Session, Setting, Stream};
use weir_core::{Action, Endpoint, Event, Header, Packet};
use weir_link::LinkConfig;
use weir_sim::topology;
use weir_sim::traffic::Supply;
use weir_sim::{AgentId, EndpointConfig, Membership, Monitor, Network, NodeId, SessionConfig, StreamConfig, Times};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

#[test]
fn a_clock_that_steps_costs_no_scheme_more_than_seconds() {
    let mut shares = Shares::default();
    for scheme in layered() {
        let undisturbed = rate(scheme, Disturbance::None);
        for seconds in [3, -3, 9, -9, 3_600, -3_600] {
            let what = format!("{}: a step of {seconds} s", scheme.name);
            shares.compare(&what, undisturbed, rate(scheme, Disturbance::Steps(seconds * SECOND)));
        }
    }
    shares.assert();
}

#[test]
fn a_clock_that_wraps_costs_no_scheme_anything() {
    let mut shares = Shares::default();
    for scheme in layered() {
        // The field of 32 bits wraps after 71 minutes and 35 s, which is 15 s into the run.
        let config = EndpointConfig { clock_ahead: Duration::from_secs(4_280), ..EndpointConfig::default() };
        let wraps = run(scheme, Disturbance::None, &config, [BEGIN + WAIT, END]);
        shares.compare(&format!("{}: a wrap", scheme.name), rate(scheme, Disturbance::None), wraps);
    }
    shares.assert();
}

/// Crystals are off by up to fifty millionths each.
#[test]
fn clocks_that_drift_apart_by_a_hundred_millionths_cost_no_scheme_its_rate() {
    let mut shares = Shares::default();
    for scheme in layered() {
        let of = |clock_drift_ppm| {
            let config = EndpointConfig { clock_drift_ppm, ..EndpointConfig::default() };
            run(scheme, Disturbance::None, &config, [Time::from_secs(120), Time::from_secs(240)])
        };
        let steady = of(0);
        for ppm in [100, -100] {
            shares.compare(&format!("{}: {ppm} millionths", scheme.name), steady, of(ppm));
        }
    }
    shares.assert();
}

#[test]
fn a_sender_that_starts_again_with_its_clock_set_back_has_its_rate_again() {
    let mut shares = Shares::default();
    for scheme in layered() {
        let undisturbed = rate(scheme, Disturbance::None);
        for millis in [0, 3_000, -3_000, -9_000, -50, -300, -700, -1_000, -1_400] {
            let what = format!("{}: a new start with a clock {millis} ms ahead", scheme.name);
            shares.compare(&what, undisturbed, rate(scheme, Disturbance::StartsAgain(millis * SECOND / 1_000)));
        }
    }
    shares.assert();
}

#[test]
fn forged_clocks_each_tenth_of_a_second_cost_no_scheme_its_rate() {
    let mut shares = Shares::default();
    for scheme in SCHEMES.iter().filter(|scheme| !scheme.is_paced()) {
        let undisturbed = rate(scheme, Disturbance::None);
        for seconds in [9, -9, 3_000] {
            let what = format!("{}: clocks {seconds} s ahead", scheme.name);
            shares.compare(
                &what,
                undisturbed,
                rate(scheme, Disturbance::Forged { clock: seconds * SECOND, ahead: 1, in_a_row: 1 }),
            );
        }
        for millis in [80, 45, 20, 9, 4, -20, -45] {
            let small = Disturbance::Forged { clock: millis * SECOND / 1_000, ahead: 1, in_a_row: 1 };
            shares.compare(&format!("{}: clocks {millis} ms ahead", scheme.name), undisturbed, rate(scheme, small));
        }
        for (millis, in_a_row) in [(45, 2), (45, 3), (45, 5), (9, 2)] {
            let what = format!("{}: {in_a_row} clocks in a row {millis} ms ahead", scheme.name);
            let forged = Disturbance::Forged { clock: millis * SECOND / 1_000, ahead: 1, in_a_row };
            shares.compare(&what, undisturbed, rate(scheme, forged));
        }
    }
    shares.assert();
}

#[test]
fn forged_sequence_numbers_each_tenth_of_a_second_cost_no_scheme_its_rate() {
    let mut shares = Shares::default();
    for scheme in SCHEMES {
        let undisturbed = rate(scheme, Disturbance::None);
        for ahead in [40, 300, 2_000, 9_000] {
            let what = format!("{}: numbers {ahead} ahead", scheme.name);
            shares.compare(&what, undisturbed, rate(scheme, Disturbance::Forged { clock: 0, ahead, in_a_row: 1 }));
        }
    }
    shares.assert();
}

fn layered() -> impl Iterator<Item = &'static Scheme> {
    SCHEMES.iter().copied().filter(|scheme| scheme.is_layered())
}

/// What happens to a receiver's packets from ten seconds on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Disturbance {
    None,
    /// The sender's clock goes on by so many microseconds.
    Steps(i64),
    /// Nothing comes for two seconds; then the sequence numbers begin again, and the clock has stepped.
    StartsAgain(i64),
    /// Each tenth of a second a packet is followed by others of its channel with a wrong clock and numbers so far ahead of its own.
    Forged {
        clock: i64,
        ahead: u32,
        in_a_row: u32,
    },
}

/// A receiver, and what happens to its packets.
#[derive(Debug)]
struct Disturbed {
    receiver: Box<dyn Endpoint>,
    what: Disturbance,
    actions: VecDeque<Action>,
    next_forgery: Time,
    /// By channel: the first number of the sender that has started again.
    first: BTreeMap<u16, u32>,
}

impl Disturbed {
    fn boxed(receiver: Box<dyn Endpoint>, what: Disturbance) -> Box<dyn Endpoint> {
        let (actions, first) = (VecDeque::new(), BTreeMap::new());
        Box::new(Disturbed { receiver, what, actions, next_forgery: BEGIN, first })
    }

    /// What the receiver wants; without deliveries, of a forged packet.
    fn collect(&mut self, now: Time, is_forged: bool) {
        while let Some(action) = self.receiver.poll(now) {
            if !(is_forged && matches!(action, Action::Deliver { number: None })) {
                self.actions.push_back(action);
            }
        }
    }

    /// A packet as it comes; `None` if it does not.
    fn changed(&mut self, now: Time, packet: &Packet) -> Option<Packet> {
        let mut packet = *packet;
        if now < BEGIN {
            return Some(packet);
        }
        match (self.what, &mut packet.header) {
            (Disturbance::Steps(step), Header::Layered(layered)) => {
                layered.clock_micros = layered.clock_micros.wrapping_add_signed(step);
            }
            (Disturbance::StartsAgain(step), Header::Layered(layered)) => {
                if now < BEGIN + Duration::from_secs(2) {
                    return None;
                }
                let first = *self.first.entry(layered.channel).or_insert(layered.sequence);
                layered.sequence = layered.sequence.wrapping_sub(first) & 0xffff;
                layered.clock_micros = layered.clock_micros.wrapping_add_signed(step);
            }
            _ => {}
        }
        Some(packet)
    }

    /// The packets that somebody else sends after this one.
    fn forged(&mut self, now: Time, packet: Packet) -> Vec<Packet> {
        let Disturbance::Forged { clock, ahead, in_a_row } = self.what else { return Vec::new() };
        if now < self.next_forgery {
            return Vec::new();
        }
        let forged: Vec<Packet> = (ahead..ahead + in_a_row).filter_map(|ahead| forge(packet, clock, ahead)).collect();
        if !forged.is_empty() {
            self.next_forgery = now + Duration::from_millis(100);
        }
        forged
    }
}

/// This packet with another clock and number; `None` of one that nobody forges.
fn forge(mut packet: Packet, clock: i64, ahead: u32) -> Option<Packet> {
    match &mut packet.header {
        Header::Layered(layered) => {
            layered.sequence = layered.sequence.wrapping_add(ahead) & 0xffff;
            layered.clock_micros = layered.clock_micros.wrapping_add_signed(clock);
        }
        Header::TreeData(data) if !data.is_repair => {
            data.number = data.number.wrapping_add(ahead);
            data.sent_micros = data.sent_micros.wrapping_add(clock as u32);
        }
        Header::Paced(paced) => paced.sequence = paced.sequence.wrapping_add(ahead as u16),
        _ => return None,
    }
    Some(packet)
}

impl Endpoint for Disturbed {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        let Event::Packet { from, packet } = event else {
            self.receiver.handle(now, event);
            return self.collect(now, false);
        };
        let Some(packet) = self.changed(now, packet) else { return };
        self.receiver.handle(now, Event::Packet { from, packet: &packet });
        self.collect(now, false);
        for packet in self.forged(now, packet) {
            self.receiver.handle(now, Event::Packet { from, packet: &packet });
            self.collect(now, true);
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        self.receiver.deadline()
    }
}

/// What is delivered from some time on.
#[derive(Debug)]
struct Delivered {
    from: Time,
    bytes: Bytes,
}

impl Monitor for Delivered {
    fn deliver(&mut self, now: Time, _agent: AgentId, bytes: u64, _number: Option<u64>) {
        if now >= self.from {
            self.bytes += Bytes::new(bytes);
        }
    }
}

/// Shares of an undisturbed rate; what has less than most of it.
#[derive(Debug, Default)]
struct Shares {
    low: Vec<String>,
}

impl Shares {
    fn compare(&mut self, what: &str, undisturbed: Rate, disturbed: Rate) {
        let share = disturbed.bps() as f64 / undisturbed.bps() as f64;
        eprintln!("{what}: {share:.2} of {undisturbed}");
        if share < MOST {
            self.low.push(format!("{what}: {disturbed} and not {undisturbed}"));
        }
    }

    fn assert(self) {
        assert!(self.low.is_empty(), "{:#?}", self.low);
    }
}

/// What a receiver gets ten seconds after the disturbance has begun, and later.
fn rate(scheme: &Scheme, what: Disturbance) -> Rate {
    run(scheme, what, &EndpointConfig::default(), [BEGIN + WAIT, END])
}

/// What one receiver gets in this time, alone behind 10 Mbit/s.
fn run(scheme: &Scheme, what: Disturbance, of_sender: &EndpointConfig, [from_time, until]: [Time; 2]) -> Rate {
    let mut net = Network::new(1);
    net.send_through_the_wire(true);
    let link: LinkConfig = "rate=10M,delay=10ms,buffer=80p".parse().expect("a valid link");
    let bell = topology::dumbbell(&mut net, &link, &link);
    let access: LinkConfig = "rate=100M,delay=1ms,buffer=1000p".parse().expect("a valid link");
    let [from, to] = [bell.left, bell.right].map(|side| topology::add_host(&mut net, side, &access));
    match scheme.parties {
        Parties::Layered(_) => add_session(&mut net, scheme, from, to, what, of_sender),
        Parties::Paced(_) => add_stream(&mut net, scheme, from, to, what),
        Parties::Tree(_) => add_tree(&mut net, scheme, from, to, what),
    }
    let mut delivered = Delivered { from: from_time, bytes: Bytes::ZERO };
    net.run_until(until, &mut delivered);
    delivered.bytes.per(until.since(from_time))
}

fn add_session(
    net: &mut Network,
    scheme: &Scheme,
    from: NodeId,
    to: NodeId,
    what: Disturbance,
    of_sender: &EndpointConfig,
) {
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(20), 1.25).expect("a ladder");
    let session = Session { ladder, packet_size: Bytes::new(1456), form: CciForm::Short, habitat: Habitat::Sockets };
    let channels = scheme.channels(&session, &[]).expect("defaults are valid").len();
    let config = SessionConfig { channels, form: session.form, membership: Membership::default() };
    let id = net.add_session(from, config).expect("a few channels");
    let sender = scheme.sender(&session, &[], net.random_for("sender")).expect("defaults are valid");
    net.add_sender(id, sender, *of_sender);
    let receiver = scheme.receiver(&session, &[], net.random_for("receiver")).expect("defaults are valid");
    net.add_receiver(id, to, Disturbed::boxed(receiver, what), EndpointConfig::default()).expect("a way");
}

fn add_stream(net: &mut Network, scheme: &Scheme, from: NodeId, to: NodeId, what: Disturbance) {
    let source = scheme.source(&STREAM, &[], net.random_for("source")).expect("defaults are valid");
    let sink = scheme.sink(&STREAM, &[], net.random_for("sink")).expect("defaults are valid");
    let config = StreamConfig { times: Times::default(), lateness: Duration::ZERO, supply: Supply::Endless };
    net.add_stream(from, to, source, Disturbed::boxed(sink, what), config).expect("a way");
}

fn add_tree(net: &mut Network, scheme: &Scheme, from: NodeId, to: NodeId, what: Disturbance) {
    let tree = scheme.tree().expect("it is a tree");
    let config = SessionConfig { channels: 1, form: CciForm::Short, membership: Membership::default() };
    let session = net.add_session(from, config).expect("a channel");
    let children = [Setting { key: "children".to_owned(), value: "1".to_owned() }];
    let sender = (tree.sender)(&STREAM, &children, net.random_for("sender")).expect("good settings");
    let config = EndpointConfig { accepts_peers: true, ..EndpointConfig::default() };
    let sender = net.add_sender(session, sender, EndpointConfig { supply: Some(Supply::Endless), ..config });
    let receiver = (tree.receiver)(&STREAM, &[], net.random_for("receiver")).expect("good settings");
    let receiver = net.add_receiver(session, to, Disturbed::boxed(receiver, what), config).expect("a way");
    net.introduce(receiver, sender).expect("a way");
}

const STREAM: Stream =
    Stream { packet_size: Bytes::new(1456), feedback_size: Bytes::new(72), habitat: Habitat::Sockets };
/// Of the rate: what it varies by from one run to another is below that.
const MOST: f64 = 0.85;
const BEGIN: Time = Time::from_secs(10);
const WAIT: Duration = Duration::from_secs(10);
const END: Time = Time::from_secs(40);
/// In microseconds.
const SECOND: i64 = 1_000_000;
