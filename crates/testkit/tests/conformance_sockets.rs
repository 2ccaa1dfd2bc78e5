//! The conformance scenarios on real sockets between network namespaces, in real time. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::thread;

use weir_testkit::conformance::{SCENARIOS, Scenario, sockets};
use weir_testkit::netns::require_root;

#[test]
fn every_scenario_holds_on_sockets() {
    if !require_root() {
        return;
    }
    // All at once, or they would take minutes; together they are 62 Mbit/s.
    thread::scope(|scope| {
        for scenario in SCENARIOS {
            scope.spawn(|| assert_holds(scenario));
        }
    });
}

/// A scenario that does not hold is run again if, and only if, this machine did not keep time.
fn assert_holds(scenario: &Scenario) {
    let mut run = sockets::run(scenario);
    for _ in 1..ATTEMPTS {
        if run.is_on_time() || scenario.holds(&run.outcome) {
            break;
        }
        eprintln!("{}: this machine was {:?} late; once more", scenario.name, run.worst_lateness);
        run = sockets::run(scenario);
    }
    scenario.assert_claims(&run.outcome, &format!("on sockets, at most {:?} late", run.worst_lateness));
}

const ATTEMPTS: u32 = 3;
