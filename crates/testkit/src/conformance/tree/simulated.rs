//! Runs a scenario in the simulator: sender and members around a router.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_core::registry::{Build, Habitat, Setting, Stream};
use weir_core::{Endpoint, Header};
use weir_link::{DropReason, LinkConfig};
use weir_sim::traffic::{ReaderConfig, Supply, WhenFull};
use weir_sim::{
    Address, AgentId, Body, EndpointConfig, LinkId, Membership, Monitor, Network, NodeId, Packet, SessionConfig, Times,
};
use weir_units::{Bytes, Time};
use weir_wire::CciForm;

use super::tapped::{Tap, Tapped};
use super::{BEGIN, BUFFER, Case, Member, MemberOutcome, Outcome, READER_ROOM};

/// Runs a case; the same seed gives the same outcome.
pub fn run(case: &Case, seed: u64) -> Outcome {
    let mut network = Network::new(seed);
    network.send_through_the_wire(true);
    let router = network.add_node();
    let root = network.add_node();
    let free = LinkConfig::default();
    network.connect(router, root, &free, &free);
    let ends = case.scenario.members.iter().map(|member| connect(&mut network, router, case, member));
    let (nodes, links): (Vec<NodeId>, Vec<[LinkId; 2]>) = ends.unzip();
    let taps: Vec<Arc<Tap>> = (0..=nodes.len()).map(|_| Arc::default()).collect();
    let agents = add_parties(&mut network, case, root, &nodes, &taps);
    let members = vec![MemberOutcome::default(); nodes.len()];
    let outcome = Outcome { confirmed: Vec::new(), members, doubled: 0, clocks_ahead: Vec::new() };
    let waiting = links.iter().map(|_| [VecDeque::new(), VecDeque::new()]).collect();
    let mut watch = Watch { case, agents, links, waiting, outcome };
    let mut rest = SILENCE;
    for second in 1..=case.scenario.seconds {
        network.run_until(BEGIN + Duration::from_secs(second), &mut watch);
        // A little longer, for what nobody should say any more.
        rest -= u64::from(watch.is_over());
        if rest == 0 {
            break;
        }
    }
    for (member, links) in watch.outcome.members.iter_mut().zip(&watch.links) {
        member.lost = links.map(|link| network.link_counters(link).lost);
    }
    let clock = |tap: &Arc<Tap>| (tap.start_nanos.load(Ordering::Relaxed) / 1_000_000_000) as i64;
    // The members start when the network does.
    let begin = clock(&taps[0]) - BEGIN.since(Time::ZERO).as_secs() as i64;
    Outcome {
        doubled: taps.iter().map(|tap| tap.doubled.load(Ordering::Relaxed)).sum(),
        clocks_ahead: taps[1..].iter().map(|tap| clock(tap) - begin).collect(),
        ..watch.outcome
    }
}

/// A member's node, and its links: to it, and from it.
fn connect(network: &mut Network, router: NodeId, case: &Case, member: &Member) -> (NodeId, [LinkId; 2]) {
    let link = case.impaired(member.link);
    let node = network.add_node();
    (node, network.connect(router, node, &link, &link))
}

/// The sender and the members, each introduced to the one above it.
fn add_parties(network: &mut Network, case: &Case, root: NodeId, nodes: &[NodeId], taps: &[Arc<Tap>]) -> Vec<AgentId> {
    let scenario = &case.scenario;
    let tree = case.scheme.tree().expect("the list has schemes for trees");
    let config = SessionConfig { channels: 1, form: CciForm::Short, membership: Membership::default() };
    let session = network.add_session(root, config).expect("a channel");
    let sender = endpoint(network, case, 0, tree.sender, &taps[0]);
    let config = EndpointConfig {
        times: Times::from(BEGIN),
        clock_ahead: CLOCKS,
        accepts_peers: true,
        supply: Some(Supply::AtOnce(scenario.payloads)),
        ..EndpointConfig::default()
    };
    let mut agents = vec![network.add_sender(session, sender, config)];
    for ((member, node), number) in scenario.members.iter().zip(nodes).zip(1..) {
        let build = if member.is_agent { tree.agent } else { tree.receiver };
        let party = endpoint(network, case, number, build, &taps[number]);
        let reader = case.slow_reader().filter(|(slow, _)| *slow == number);
        let config = EndpointConfig {
            clock_ahead: Duration::from_secs(CLOCKS.as_secs().saturating_add_signed(case.ahead(number))),
            accepts_peers: true,
            reader: reader.map(|(_, gap)| ReaderConfig {
                capacity: READER_ROOM,
                when_full: WhenFull::Refuses,
                gap,
                pauses: None,
            }),
            ..EndpointConfig::default()
        };
        agents.push(network.add_receiver(session, *node, party, config).expect("a star joins all"));
        network.introduce(agents[number], agents[member.above]).expect("a star joins all");
    }
    agents
}

/// A party that waits for those below it, as a scheme can that has the setting.
fn endpoint(network: &Network, case: &Case, number: usize, build: Build<Stream>, tap: &Arc<Tap>) -> Box<dyn Endpoint> {
    let below = case.scenario.members.iter().filter(|member| member.above == number).count();
    let mut wanted = vec![("children", below as u64)];
    wanted.extend(case.slow_reader().map(|_| ("buffer", BUFFER)));
    let known = case.scheme.settings();
    wanted.retain(|(key, _)| known.iter().any(|setting| setting.key == *key));
    let settings = wanted.into_iter().map(|(key, value)| Setting { key: key.to_owned(), value: value.to_string() });
    let settings: Vec<Setting> = settings.collect();
    let random = network.random_for(&format!("party {number}"));
    let party = build(&STREAM, &settings, random).expect("good settings");
    let random = network.random_for(&format!("doubling {number}"));
    Box::new(Tapped::new(party, case.doubled_share(), random, tap))
}

/// Writes down what happens.
struct Watch<'a> {
    case: &'a Case,
    /// The sender, and the members.
    agents: Vec<AgentId>,
    /// To each member, and from it.
    links: Vec<[LinkId; 2]>,
    /// What is on these.
    waiting: Vec<[VecDeque<Header>; 2]>,
    outcome: Outcome,
}

impl Watch<'_> {
    fn is_over(&self) -> bool {
        let mut members = self.case.scenario.members.iter().zip(&self.outcome.members);
        let is_complete = |(member, what): (&Member, &MemberOutcome)| member.is_agent || !what.complete.is_empty();
        !self.outcome.confirmed.is_empty() && members.all(is_complete)
    }

    /// The member that an agent is, from 0 on.
    fn place(&self, agent: AgentId) -> Option<usize> {
        self.agents.iter().position(|known| *known == agent)?.checked_sub(1)
    }

    /// The member whose link it is, and whether it is the one from there.
    fn end_of(&self, link: LinkId) -> Option<(usize, usize)> {
        let ways = |(member, links): (usize, &[LinkId; 2])| Some((member, links.iter().position(|way| *way == link)?));
        self.links.iter().enumerate().find_map(ways)
    }

    /// A member has sent a packet.
    fn note_sent(&mut self, member: usize, packet: &Packet) {
        let Address::Agent(to) = packet.to else { return };
        let members = self.case.scenario.members;
        let to = self.agents.iter().position(|known| *known == to);
        let is_below = to.and_then(|to| members.get(to.checked_sub(1)?)).is_some_and(|to| to.above == member + 1);
        let what = &mut self.outcome.members[member];
        what.repaired += u64::from(is_below && packet.size == STREAM.packet_size);
        what.misdirected += u64::from(!is_below && to != Some(members[member].above));
    }
}

impl Monitor for Watch<'_> {
    fn deliver(&mut self, _now: Time, agent: AgentId, _bytes: u64, number: Option<u64>) {
        let member = self.place(agent).expect("members deliver");
        self.outcome.members[member].delivered.push(number.expect("the payloads of a stream have numbers"));
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        let at = now.since(BEGIN);
        match self.place(agent) {
            None => self.outcome.confirmed.push(at),
            Some(member) => {
                let what = &mut self.outcome.members[member];
                what.complete.push((at, what.delivered.len()));
            }
        }
    }

    fn enqueue(&mut self, _now: Time, link: LinkId, packet: &Packet) {
        let (Some((member, way)), Body::Endpoint(header)) = (self.end_of(link), packet.body) else { return };
        self.waiting[member][way].push_back(header);
        if way == 1 {
            self.note_sent(member, packet);
        }
    }

    fn drop(&mut self, _at: Time, link: LinkId, packet: &Packet, _reason: DropReason) {
        let (Some((member, way)), Body::Endpoint(header)) = (self.end_of(link), packet.body) else { return };
        let waiting = &mut self.waiting[member][way];
        waiting.iter().position(|other| *other == header).and_then(|place| waiting.remove(place));
    }

    fn dequeue(&mut self, _now: Time, link: LinkId, packet: &Packet) {
        let (Some((member, way)), Body::Endpoint(header)) = (self.end_of(link), packet.body) else { return };
        let waiting = &mut self.waiting[member][way];
        let place = waiting.iter().position(|other| *other == header).expect("what comes out went in");
        waiting.remove(place);
        self.outcome.members[member].overtaken[way] += place as u64;
    }
}

const STREAM: Stream =
    // IP and UDP headers; a report of MTCP's has 44 bytes besides.
    Stream { packet_size: Bytes::new(1000), feedback_size: Bytes::new(72), habitat: Habitat::Lab };
/// What the sender's clock shows when the network's shows zero: no clock is behind that.
const CLOCKS: Duration = Duration::from_secs(1_000);
/// Seconds to go on when all is over.
const SILENCE: u64 = 3;
