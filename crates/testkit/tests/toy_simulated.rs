//! The toy in the simulator.

mod toy_stream;

use std::time::Duration;

use toy_stream::{Done, Guest, LATE, LEAVE, LOSS, Outcome, PAYLOADS, Plan, REST, Reads, STREAM, check};
use weir_core::registry::{Build, Stream};
use weir_link::{LinkConfig, Loss};
use weir_sim::traffic::{Distribution, Pauses, ReaderConfig, Supply, WhenFull};
use weir_sim::{
    AgentId, Body, EndpointConfig, LinkId, Membership, Monitor, Network, Packet, SessionConfig, Times, topology,
};
use weir_testkit::toy::{Message, TOY};
use weir_units::{Random, Time};
use weir_wire::CciForm;

#[test]
fn every_receiver_gets_everything_in_order_whatever_is_lost() {
    (1..=SEEDS).for_each(|seed| check(&LOSS, &run(&LOSS, seed)));
}

#[test]
fn the_sender_stops_while_a_receiver_has_no_room_and_goes_on_afterwards() {
    (1..=SEEDS).for_each(|seed| check(&REST, &run(&REST, seed)));
}

#[test]
fn a_receiver_that_leaves_holds_nobody_back() {
    (1..=SEEDS).for_each(|seed| check(&LEAVE, &run(&LEAVE, seed)));
}

#[test]
fn a_receiver_that_comes_late_gets_what_is_still_stored_and_all_that_follows() {
    (1..=SEEDS).for_each(|seed| check(&LATE, &run(&LATE, seed)));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(run(&LOSS, 7), run(&LOSS, 7));
    assert_ne!(run(&LOSS, 7).log, run(&LOSS, 8).log);
}

/// Sender, agent and receivers around a router, each behind a link that loses packets in both directions.
fn run(plan: &Plan, seed: u64) -> Outcome {
    let mut net = Network::new(seed);
    net.send_through_the_wire(true);
    let router = net.add_node();
    let link = LinkConfig { delay: Duration::from_millis(2), loss: Loss::Random(plan.loss), ..LinkConfig::default() };
    let hosts = [(); 5].map(|()| topology::add_host(&mut net, router, &link));
    let config = SessionConfig { channels: 1, form: CciForm::Short, membership: Membership::default() };
    let session = net.add_session(hosts[0], config).expect("a channel");
    let tree = TOY.tree().expect("it is a tree");
    let build = |build: Build<Stream>| build(&STREAM, &[], Random::new(seed, "toy")).expect("no settings");
    let sending = EndpointConfig {
        times: Times::from(BEGIN),
        accepts_peers: true,
        supply: Some(Supply::AtOnce(PAYLOADS)),
        ..EndpointConfig::default()
    };
    let sender = net.add_sender(session, build(tree.sender), sending);
    let accepting = EndpointConfig { accepts_peers: true, ..EndpointConfig::default() };
    let agent = net.add_receiver(session, hosts[1], build(tree.agent), accepting).expect("a way");
    net.introduce(agent, sender).expect("a way");
    let receivers = [0, 1, 2].map(|number| {
        let config = receiving(&plan.receivers[number]);
        let receiver = net.add_receiver(session, hosts[2 + number], build(tree.receiver), config).expect("a way");
        net.introduce(receiver, agent).expect("a way");
        receiver
    });
    let uplink = net.link_between(hosts[0], router).expect("a link");
    let mut notes = Notes { agent, receivers, uplink, next: 0, log: Vec::new() };
    net.run_until(Time::from_secs(30), &mut notes);
    let lost = hosts.map(|host| net.link_counters(net.link_between(router, host).expect("a link")).lost);
    Outcome { begun: BEGIN, log: notes.log, lost }
}

fn receiving(guest: &Guest) -> EndpointConfig {
    let reader = guest.reads.map(|Reads { capacity, for_so_long, then_rests }| {
        let [reads, rests] = [for_so_long, then_rests].map(|span| Distribution::Fixed(span.as_secs_f64()));
        ReaderConfig {
            capacity,
            when_full: WhenFull::Refuses,
            gap: Duration::ZERO,
            pauses: Some(Pauses { reads, rests }),
        }
    });
    let start = guest.joins.map_or(Time::ZERO, |joins| BEGIN + joins);
    let times = Times { start, stop: guest.leaves.map(|leaves| BEGIN + leaves) };
    EndpointConfig { times, reader, ..EndpointConfig::default() }
}

/// Runs of each plan.
const SEEDS: u64 = 8;
/// When the stream begins.
const BEGIN: Time = Time::from_millis(500);

/// Writes down what the simulator does.
struct Notes {
    agent: AgentId,
    receivers: [AgentId; 3],
    uplink: LinkId,
    /// The number that the sender has not sent.
    next: u64,
    log: Vec<(Time, Done)>,
}

impl Notes {
    fn receiver(&self, agent: AgentId) -> Option<usize> {
        self.receivers.iter().position(|receiver| *receiver == agent)
    }
}

impl Monitor for Notes {
    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, number: Option<u64>) {
        assert_eq!(bytes, STREAM.packet_size.count(), "what is delivered came in a packet with a payload");
        let number = number.expect("the toy numbers payloads");
        self.log.extend(self.receiver(agent).map(|receiver| (now, Done::Delivered(receiver, number))));
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        let done = match self.receiver(agent) {
            Some(receiver) => Done::Complete(receiver),
            None if agent == self.agent => Done::AgentComplete,
            None => Done::SenderComplete,
        };
        self.log.push((now, done));
    }

    /// The simulator takes payloads from an application without a word: the first packet with a number tells.
    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        let Body::Endpoint(header) = packet.body else { return };
        let Some(Message::Payload { number }) = Message::of(&header) else { return };
        if link == self.uplink && number >= self.next {
            self.next = number + 1;
            self.log.push((now, Done::Took(number)));
        }
    }
}
