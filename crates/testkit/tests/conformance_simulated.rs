//! The conformance scenarios in the simulator.

use weir_testkit::conformance::{SCENARIOS, simulated};

#[test]
fn every_scenario_holds_in_the_simulator() {
    for scenario in SCENARIOS {
        for seed in 1..=3 {
            scenario.assert_claims(&simulated::run(scenario, seed), &format!("simulated, seed {seed}"));
        }
    }
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
