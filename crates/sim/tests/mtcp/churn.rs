//! MTCP while nodes of its tree leave and die: no survivor loses a payload, and the stream comes to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::tree::{Notes, Plan, build, fig_9};
use weir_core::observation::TreeReport;
use weir_link::LinkConfig;
use weir_sim::AgentId;
use weir_sim::traffic::Supply;
use weir_units::{Random, Time};

#[test]
fn no_survivor_loses_a_payload_when_nodes_leave_and_die() {
    let failed: Vec<String> = (1..=SEEDS).filter_map(|seed| run(seed, "yes", false).err()).collect();
    assert!(failed.is_empty(), "{} of {SEEDS} runs failed: {failed:#?}", failed.len());
}

#[test]
fn no_survivor_loses_a_payload_when_nodes_of_a_tree_that_builds_itself_leave_and_die() {
    let failed: Vec<String> = (1..=SEEDS).filter_map(|seed| run(seed, "yes", true).err()).collect();
    assert!(failed.is_empty(), "{} of {SEEDS} runs failed: {failed:#?}", failed.len());
}

#[test]
fn without_the_low_mark_survivors_lose_payloads() {
    let failed = (1..=SEEDS / 10).filter(|seed| run(*seed, "no", false).is_err()).count();
    assert!(failed > 0, "the low mark is not needed for these runs");
}

/// A run in which some members leave and some die. What went wrong, if anything did.
fn run(seed: u64, low_mark: &str, builds_itself: bool) -> Result<(), String> {
    let mut random = Random::new(seed, "churn");
    let members = 12 + (random.bits() % 20) as usize;
    let mut plan = Plan {
        link: "rate=4M,delay=10ms,buffer=30p",
        hosts: Some("rate=4M,delay=1ms,buffer=30p,loss=1%"),
        supply: Supply::AtOnce(PAYLOADS),
        knows_all_above: true,
        ..fig_9(members, false)
    };
    // Deep trees, whose agents matter.
    plan.above = (1..=members).map(|number| (number - 1) / 2).collect();
    plan = plan.set("low_mark", low_mark).set("buffer", "200");
    if builds_itself {
        // Small nodes make deep trees.
        plan = Plan { builds_itself, ..plan.set("fan_out", "3").set("receivers", &members.to_string()) };
    }
    // A tree that builds itself takes its time.
    let first = if builds_itself { 6_000 } else { 1_500 };
    let moment = |random: &mut Random| Time::from_millis(first + random.bits() % 8_000);
    let mut dead: BTreeSet<usize> = BTreeSet::new();
    for _ in 0..3 {
        let number = 1 + (random.bits() % members as u64) as usize;
        if dead.insert(number) && random.bits().is_multiple_of(2) {
            plan.leave.insert(number, moment(&mut random));
        }
    }
    let mut site = build(&plan, seed);
    let cut: LinkConfig = "rate=4M,delay=1ms,loss=100%".parse().expect("a link");
    for number in dead.iter().filter(|number| !plan.leave.contains_key(number)) {
        let at = moment(&mut random);
        let router = site.routers[*number];
        for (from, to) in [(router, site.nodes[*number]), (site.nodes[*number], router)] {
            let link = site.net.link_between(from, to).expect("its link");
            site.net.change_link(at, link, &cut);
        }
    }
    let mut notes = Notes::default();
    while !notes.complete.contains_key(&site.sender) && site.net.now() < Time::ZERO + LASTS {
        site.net.run_until(site.net.now() + Duration::from_secs(5), &mut notes);
    }
    if !notes.complete.contains_key(&site.sender) {
        return Err(format!("seed {seed}: the sender is not done; dead {dead:?}"));
    }
    for number in (1..=members).filter(|number| !dead.contains(number)) {
        let agent = site.members[number - 1];
        let got = notes.delivered.get(&agent).copied().unwrap_or_default();
        if got != PAYLOADS || !notes.complete.contains_key(&agent) {
            return Err(format!("seed {seed}: member {number} of {members} has {got}; dead {dead:?}"));
        }
        if builds_itself && !says_that_it_has_a_node(&notes, agent) {
            return Err(format!("seed {seed}: member {number} of {members} seems to look for a node still"));
        }
    }
    Ok(())
}

/// Whether what a member told last of its place, before it was complete, is that it has one.
fn says_that_it_has_a_node(notes: &Notes, agent: AgentId) -> bool {
    let told = notes.tree.iter().filter(|(at, who, _)| *who == agent && *at <= notes.complete[&agent]);
    let mut of_place = told.filter(|(.., report)| {
        !matches!(report, TreeReport::Below { .. } | TreeReport::CutOff { .. } | TreeReport::Multicast)
    });
    matches!(of_place.next_back(), Some((.., TreeReport::Attached { .. })))
}

const SEEDS: u64 = 60;
const PAYLOADS: u64 = 4_000;
const LASTS: Duration = Duration::from_secs(180);
