//! MTCP where no multicast leads from the sender to a site: the node above sends the data, and an agent there sends it on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::tree::{Notes, Plan, Site, build, fig_9};
use weir_core::Header;
use weir_core::Observation;
use weir_core::observation::TreeReport;
use weir_sim::traffic::Supply;
use weir_sim::{Address, AgentId, Body, Monitor, Packet};
use weir_units::Time;

#[test]
fn an_agent_on_an_island_gets_each_packet_once_and_sends_it_on_to_its_network() {
    let (site, watch) = run(&island(&[AGENT]), 1);
    assert_whole(&site, &watch, &[AGENT]);
    let [agent, behind] = [AGENT, BEHIND].map(|number| site.members[number - 1]);
    assert_eq!(watch.reports(agent), [TreeReport::CutOff { forwards: true }]);
    let heard = watch.multicast[&(agent, behind)];
    assert!(heard as f64 > 0.95 * PAYLOADS as f64, "{heard} packets were sent on");
    let unicast = watch.unicast.values().sum::<u64>();
    assert!((unicast as f64) < 1.1 * PAYLOADS as f64, "{unicast} packets went to one member each");
}

#[test]
fn receivers_on_an_island_without_an_agent_get_everything_one_by_one() {
    let (site, watch) = run(&island(&[]), 1);
    assert_whole(&site, &watch, &[]);
    for member in &site.members[AGENT - 1..] {
        assert_eq!(watch.reports(*member), [TreeReport::CutOff { forwards: false }]);
        let unicast = watch.unicast[member];
        assert!(((PAYLOADS as f64)..1.1 * PAYLOADS as f64).contains(&(unicast as f64)), "{unicast} packets");
    }
    assert!(watch.multicast.keys().all(|(from, _)| *from == site.sender), "receivers send nothing on");
}

#[test]
fn of_two_agents_on_an_island_one_sends_on() {
    for seed in 1..=20 {
        let (site, watch) = run(&island(&[AGENT, BEHIND]), seed);
        assert_whole(&site, &watch, &[AGENT, BEHIND]);
        let listener = site.members[3];
        let sent = |number: usize| watch.multicast.get(&(site.members[number - 1], listener)).map_or(0, |sent| *sent);
        let (most, least) = (sent(AGENT).max(sent(BEHIND)), sent(AGENT).min(sent(BEHIND)));
        assert!(most as f64 > 0.9 * PAYLOADS as f64, "seed {seed}: one sent {most}");
        assert!((least as f64) < 0.05 * PAYLOADS as f64, "seed {seed}: the other one sent {least}");
    }
}

#[test]
fn an_agent_that_multicast_reaches_sends_nothing_on() {
    let (site, watch) = run(&Plan { islands: Vec::new(), ..island(&[AGENT]) }, 1);
    assert_whole(&site, &watch, &[AGENT]);
    assert_eq!(watch.reports(site.members[AGENT - 1]), []);
    assert!(watch.multicast.keys().all(|(from, _)| *from == site.sender), "multicast leads everywhere");
}

/// A receiver next to the sender, and a site behind a link that routes no multicast, with three members on it. The tree builds
/// itself.
fn island(agents: &[usize]) -> Plan {
    Plan {
        link: "rate=4M,delay=10ms,buffer=30p",
        up: vec![0, 0, 2, 2],
        above: vec![0; 4],
        islands: vec![2],
        hosts: Some("rate=10M,delay=1ms,buffer=50p,loss=0.5%"),
        agents: agents.iter().copied().collect::<BTreeSet<usize>>(),
        supply: Supply::AtOnce(PAYLOADS),
        builds_itself: true,
        ..fig_9(4, false)
    }
    .set("receivers", &(4 - agents.len()).to_string())
}

fn run(plan: &Plan, seed: u64) -> (Site, Watch) {
    let (mut site, mut watch) = (build(plan, seed), Watch::default());
    site.net.run_until(Time::ZERO + Duration::from_secs(120), &mut watch);
    (site, watch)
}

fn assert_whole(site: &Site, watch: &Watch, agents: &[usize]) {
    let notes = &watch.notes;
    assert!(notes.complete.contains_key(&site.sender), "the sender knows that everyone has everything");
    for (member, number) in site.members.iter().zip(1..).filter(|(_, number)| !agents.contains(number)) {
        assert_eq!(notes.delivered.get(member), Some(&PAYLOADS), "member {number}");
    }
}

/// What each member gets, and by which way.
#[derive(Default)]
struct Watch {
    notes: Notes,
    /// By who sent it and who got it: data to the channel.
    multicast: BTreeMap<(AgentId, AgentId), u64>,
    /// By who got it: data to that member alone.
    unicast: BTreeMap<AgentId, u64>,
}

impl Watch {
    /// What a member says of the way that data takes.
    fn reports(&self, member: AgentId) -> Vec<TreeReport> {
        let own = self.notes.tree.iter().filter(|(_, who, _)| *who == member).map(|(.., report)| *report);
        own.filter(|report| matches!(report, TreeReport::CutOff { .. } | TreeReport::Multicast)).collect()
    }
}

impl Monitor for Watch {
    fn arrive(&mut self, _now: Time, agent: AgentId, packet: &Packet) {
        let Body::Endpoint(Header::TreeData(_)) = packet.body else { return };
        let count = match packet.to {
            Address::Channel(..) => self.multicast.entry((packet.source, agent)).or_default(),
            Address::Agent(_) => self.unicast.entry(agent).or_default(),
        };
        *count += 1;
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, number: Option<u64>) {
        self.notes.deliver(now, agent, bytes, number);
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        self.notes.complete(now, agent);
    }

    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        self.notes.observe(now, agent, observation);
    }
}

/// The member on the first node of the island, and one on the next.
const AGENT: usize = 2;
const BEHIND: usize = 3;
const PAYLOADS: u64 = 4_000;
