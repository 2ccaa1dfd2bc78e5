//! MTCP's tree builds itself: newcomers find the nearest node, come late, and are waited for no longer than the operator allows.

use std::time::Duration;

use crate::tree::{Notes, Plan, Site, build, fig_9};
use weir_core::observation::{Standing, TreeReport};
use weir_core::registry::Setting;
use weir_link::LinkConfig;
use weir_sim::AgentId;
use weir_sim::traffic::{ReaderConfig, Supply, WhenFull};
use weir_units::Time;

#[test]
fn a_hundred_members_find_nodes_of_no_more_than_sixteen_children_and_all_get_everything() {
    let (site, notes) = run(&found(100).set("receivers", "100"), 1, 240);
    assert_eq!(whole(&notes), 100, "everyone has everything");
    assert!(notes.complete.contains_key(&site.sender), "the sender knows");
    let levels: Vec<u8> = attached(&notes).map(|(_, level)| level).collect();
    assert!(levels.iter().any(|level| *level > 1), "one node does not take a hundred");
    assert!(levels.len() < 110, "few look again: {}", levels.len());
    let most = notes.reports.iter().map(|(_, _, report)| report.children).max();
    assert!(most <= Some(16), "{most:?} children");
}

#[test]
fn a_stream_begins_soon_although_reports_of_receivers_are_lost() {
    let hosts = Some("rate=4M,delay=1ms,buffer=30p,loss=10%");
    let begun = |seed: u64| {
        let plan = Plan { hosts, ..found(21) }.set("receivers", "21").set("fan_out", "3");
        let (_, notes) = run(&plan, seed, 12);
        !notes.delivered.is_empty()
    };
    let late: Vec<u64> = (1..=50).filter(|seed| !begun(*seed)).collect();
    assert!(late.is_empty(), "no data in 12 s with seeds {late:?}");
}

#[test]
fn a_member_takes_the_nearest_node_and_not_the_sender() {
    // A chain of routers with one member on each; the last comes when the others are there.
    let mut plan = Plan { link: "rate=10M,delay=30ms,buffer=50p", up: vec![0, 1, 2], above: vec![0; 3], ..found(3) };
    plan.come.insert(3, Time::from_secs(2));
    let (site, notes) = run(&plan.set("receivers", "3"), 1, 60);
    let levels: Vec<(AgentId, u8)> = attached(&notes).collect();
    assert_eq!(levels.last(), Some(&(site.members[2], 2)), "60 ms and a level are less than 120 ms and none");
    assert_eq!(whole(&notes), 3, "everyone has everything");
}

#[test]
fn a_member_that_is_cut_off_for_ten_seconds_finds_its_node_again_and_gets_everything() {
    let host = "rate=4M,delay=1ms,buffer=30p";
    let plan = Plan { hosts: Some(host), ..found(10) }.set("receivers", "10").set("buffer", "200");
    let (mut site, mut notes) = (build(&plan, 1), Notes::default());
    let [cut, mended]: [LinkConfig; 2] =
        [format!("{host},loss=100%"), host.to_owned()].map(|link| link.parse().expect("a link"));
    for (from, to) in [(site.routers[LATE], site.nodes[LATE]), (site.nodes[LATE], site.routers[LATE])] {
        let link = site.net.link_between(from, to).expect("its link");
        site.net.change_link(Time::from_secs(3), link, &cut);
        site.net.change_link(Time::from_secs(13), link, &mended);
    }
    site.net.run_until(Time::from_secs(120), &mut notes);
    let reports = notes.tree.iter().filter(|(at, who, _)| *who == site.members[LATE - 1] && *at > Time::from_secs(3));
    assert!(reports.clone().any(|(.., report)| *report == TreeReport::Seeking), "it was cut off for too short a time");
    assert_eq!(whole(&notes), 10, "everyone has everything");
}

#[test]
fn who_comes_late_gets_the_start_where_it_is_kept_and_takes_part_without_stopping_the_others() {
    let plan = late(&[("history", "2000")], &[]);
    let (site, notes) = run(&plan, 1, 120);
    let late = site.members[LATE - 1];
    let (catches_up, joins) = (
        notes.tree.iter().position(|(_, _, report)| is_below(report, Standing::CatchingUp)),
        notes.tree.iter().rposition(|(_, _, report)| is_below(report, Standing::Child)),
    );
    assert!(catches_up.is_some() && catches_up < joins, "it catches up first: {:?}", notes.tree);
    assert_eq!(notes.delivered[&late], PAYLOADS);
    assert_eq!(whole(&notes), 10, "everyone has everything");
    let (_, without) = run(&Plan { come: [(LATE, Time::from_secs(500))].into(), ..plan }, 1, 120);
    let [with, without] = [&notes, &without].map(|notes| notes.complete[&site.members[0]].as_micros() as f64);
    assert!(with < 1.1 * without, "the others had everything after {with} µs and not {without}");
}

#[test]
fn who_comes_late_begins_where_the_stream_is_if_it_wants_to_and_is_told_if_it_cannot() {
    let (site, mut notes) = (build(&late(&[], &[("from_now", "yes")]), 1), Notes::default());
    notes.late.insert(site.members[LATE - 1]);
    let mut site = site;
    site.net.run_until(Time::from_secs(120), &mut notes);
    assert_eq!(whole(&notes), 10, "everyone has the last payload");
    assert!(notes.complete.contains_key(&site.sender), "the sender knows");
    let (site, notes) = run(&late(&[], &[]), 1, 120);
    let told = notes
        .tree
        .iter()
        .any(|(_, agent, report)| *agent == site.members[LATE - 1] && *report == TreeReport::Out(Standing::TooLate));
    assert!(told && !notes.delivered.contains_key(&site.members[LATE - 1]), "nobody keeps the start");
    assert_eq!(whole(&notes), 9, "the others have everything");
}

#[test]
fn the_stream_waits_for_a_slow_member_only_as_long_as_the_operator_says() {
    let mut plan = found(6).set("receivers", "6").set("buffer", "100");
    // 5 packets a second of 40 kbit/s.
    plan.readers.insert(
        6,
        ReaderConfig { capacity: 10, when_full: WhenFull::Refuses, gap: Duration::from_millis(200), pauses: None },
    );
    let limited = plan.clone().set("min_rate", "200k").set("evict_after", "6s");
    let [(site, held), (_, free)] = [plan, limited].map(|plan| run(&plan, 1, 100));
    assert_eq!(whole(&held), 0, "everyone waits for the slow one");
    assert_eq!(whole(&free), 5, "the others have everything");
    assert!(free.complete.contains_key(&site.sender), "and the sender is done");
    let out = |report: &TreeReport| matches!(report, TreeReport::Out(Standing::TooLate | Standing::TooSlow));
    let told = free.tree.iter().any(|(_, agent, report)| *agent == site.members[5] && out(report));
    assert!(told && free.tree.iter().any(|(_, _, report)| is_below(report, Standing::CatchingUp)), "both sides know");
}

/// The network of Fig. 9 with members that find the tree.
fn found(receivers: usize) -> Plan {
    Plan { supply: Supply::AtOnce(PAYLOADS), builds_itself: true, ..fig_9(receivers, false) }
}

/// Ten members, one of which joins when a third of the stream has been sent; `sender` and `own` are the settings of the sender and of that member.
fn late(sender: &[(&str, &str)], own: &[(&str, &str)]) -> Plan {
    let settings = |list: &[(&str, &str)]| -> Vec<Setting> {
        list.iter().map(|(key, value)| Setting { key: (*key).to_owned(), value: (*value).to_owned() }).collect()
    };
    let mut plan = found(10).set("receivers", "9").set("buffer", "200");
    plan.come.insert(LATE, Time::from_secs(3));
    plan.own_settings.insert(0, settings(sender));
    plan.own_settings.insert(LATE, settings(own));
    plan
}

fn run(plan: &Plan, seed: u64, seconds: u64) -> (Site, Notes) {
    let mut site = build(plan, seed);
    let mut notes = Notes::default();
    while !notes.complete.contains_key(&site.sender) && site.net.now() < Time::from_secs(seconds) {
        site.net.run_until(site.net.now() + Duration::from_secs(1), &mut notes);
    }
    (site, notes)
}

/// Members that have everything.
fn whole(notes: &Notes) -> usize {
    notes.delivered.values().filter(|next| **next == PAYLOADS).count()
}

/// Which members found a node, and their level.
fn attached(notes: &Notes) -> impl Iterator<Item = (AgentId, u8)> + '_ {
    notes.tree.iter().filter_map(|(_, agent, report)| match report {
        TreeReport::Attached { level, .. } => Some((*agent, *level)),
        _ => None,
    })
}

fn is_below(report: &TreeReport, wanted: Standing) -> bool {
    matches!(report, TreeReport::Below { standing, .. } if *standing == wanted)
}

/// The late member has a link of its own from the sender.
const LATE: usize = 5;
const PAYLOADS: u64 = 1_000;
