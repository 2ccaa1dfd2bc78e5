//! The conformance scenarios in the simulator, with every scheme of the registry.

use std::collections::BTreeSet;

use weir_core::registry::SCHEMES;
use weir_testkit::conformance::{Case, Host, NO_LIMIT_KBPS, Scenario, cases, simulated, tree};

#[test]
fn every_scheme_has_scenarios() {
    let schemes = cases().map(|case| case.scheme).chain(tree::cases().map(|case| case.scheme));
    let tested: BTreeSet<&str> = schemes.map(|scheme| scheme.name).collect();
    assert!(SCHEMES.iter().all(|scheme| tested.contains(scheme.name)), "only {tested:?}");
}

#[test]
fn every_scenario_holds_in_the_simulator_with_every_scheme() {
    for case in cases() {
        for seed in 1..=3 {
            case.assert_claims(&simulated::run(&case, seed), &format!("simulated, seed {seed}"));
        }
    }
}

#[test]
fn a_scenario_without_one_of_its_impairments_does_not_hold() {
    for case in cases() {
        for (index, host) in case.scenario.hosts.iter().enumerate() {
            for (what, host) in without_one_impairment(&case, host) {
                let mut hosts = case.scenario.hosts.to_vec();
                hosts[index] = host;
                let scenario = Box::leak(Box::new(Scenario { hosts: hosts.leak(), ..*case.scenario }));
                let changed = Case { scenario, ..case };
                assert!(!changed.holds(&simulated::run(&changed, 1)), "{case}: nothing tells of {what}");
            }
        }
    }
}

/// The host without each thing that is done to it.
fn without_one_impairment(case: &Case, host: &Host) -> Vec<(&'static str, Host)> {
    let top_kbps = case.scenario.traffic.top_kbps().unwrap_or(NO_LIMIT_KBPS);
    let mut hosts = Vec::new();
    if host.rates_kbps[0].1 < top_kbps {
        hosts.push(("the link's rate", Host { rates_kbps: &[(0, NO_LIMIT_KBPS)], ..*host }));
    }
    for number in 1..host.rates_kbps.len() {
        let rates_kbps = &host.rates_kbps[..number];
        hosts.push(("a change of the link", Host { rates_kbps, ..*host }));
    }
    if host.delay_ms > 0 {
        hosts.push(("the delay", Host { delay_ms: 0, ..*host }));
    }
    if host.loss > 0.0 {
        hosts.push(("the loss", Host { loss: 0.0, ..*host }));
    }
    if host.joins > 0 {
        hosts.push(("the late join", Host { joins: 0, ..*host }));
    }
    if host.leaves.is_some() {
        hosts.push(("the leave", Host { leaves: None, ..*host }));
    }
    hosts
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    for case in cases().filter(|case| case.scenario.hosts.iter().any(|host| host.loss > 0.0)) {
        let run = |seed| {
            let outcome = simulated::run(&case, seed);
            outcome.hosts.into_iter().map(|host| host.record.observations).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1), "{case}");
        assert_ne!(run(1), run(2), "{case}");
    }
}

#[test]
fn every_scenario_for_trees_holds_in_the_simulator_with_every_scheme() {
    for case in tree::cases() {
        for seed in 1..=3 {
            case.assert_holds(&tree::simulated::run(&case, seed), &format!("simulated, seed {seed}"));
        }
    }
}

#[test]
fn a_scenario_for_trees_without_one_of_its_impairments_does_not_hold() {
    for case in tree::cases() {
        for removed in case.scenario.impairments {
            let left = case.scenario.impairments.iter().filter(|impairment| *impairment != removed).copied();
            let impairments = left.collect::<Vec<_>>().leak();
            let changed = tree::Case { scenario: tree::Scenario { impairments, ..case.scenario }, ..case };
            let broken = case.broken(&tree::simulated::run(&changed, 1));
            assert!(!broken.is_empty(), "{case}: nothing tells of {removed:?}");
        }
    }
}

#[test]
fn clocks_that_differ_change_nothing_over_a_tree() {
    let has_clocks = |case: &tree::Case| !case.scenario.clocks_ahead.is_empty();
    assert!(tree::cases().any(|case| has_clocks(&case)));
    for case in tree::cases().filter(has_clocks) {
        let same = tree::Case { scenario: tree::Scenario { clocks_ahead: &[], ..case.scenario }, ..case };
        for seed in 1..=3 {
            let (apart, together) = (tree::simulated::run(&case, seed), tree::simulated::run(&same, seed));
            assert_ne!(apart.clocks_ahead, together.clocks_ahead);
            assert_eq!((apart.confirmed, apart.members), (together.confirmed, together.members), "{case}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_over_a_tree() {
    for case in tree::cases().filter(|case| !case.scenario.impairments.is_empty()) {
        assert_eq!(tree::simulated::run(&case, 1), tree::simulated::run(&case, 1), "{case}");
        assert_ne!(tree::simulated::run(&case, 1), tree::simulated::run(&case, 2), "{case}");
    }
}
