//! The conformance scenarios in the simulator.

use weir_testkit::conformance::{Host, SCENARIOS, Scenario, simulated};

#[test]
fn every_scenario_holds_in_the_simulator() {
    for scenario in SCENARIOS {
        for seed in 1..=3 {
            scenario.assert_claims(&simulated::run(scenario, seed), &format!("simulated, seed {seed}"));
        }
    }
}

#[test]
fn a_scenario_without_one_of_its_impairments_does_not_hold() {
    for scenario in SCENARIOS {
        for (index, host) in scenario.hosts.iter().enumerate() {
            for (what, host) in without_one_impairment(scenario, host) {
                let mut hosts = scenario.hosts.to_vec();
                hosts[index] = host;
                let changed = Scenario { hosts: hosts.leak(), ..*scenario };
                let findings = changed.findings(&simulated::run(&changed, 1));
                assert!(findings.iter().any(|finding| !finding.holds), "{}: nothing tells of {what}", scenario.name);
            }
        }
    }
}

/// The host without each thing that is done to it.
fn without_one_impairment(scenario: &Scenario, host: &Host) -> Vec<(&'static str, Host)> {
    let top_kbps = scenario.ladder().rates().last().map_or(0, |rate| rate.bps() / 1_000);
    let mut hosts = Vec::new();
    if host.rates_kbps[0].1 < top_kbps {
        hosts.push(("the link's rate", Host { rates_kbps: &[(0, 1_000_000)], ..*host }));
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
    let run = |seed| {
        let outcome = simulated::run(&SCENARIOS[3], seed);
        outcome.hosts.into_iter().map(|host| host.record.observations).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
