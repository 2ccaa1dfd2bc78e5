//! The conformance scenarios on real sockets between network namespaces, in real time. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::thread;

use weir_testkit::conformance::{SCENARIOS, sockets};
use weir_testkit::netns::require_root;

#[test]
fn every_scenario_holds_on_sockets() {
    if !require_root() {
        return;
    }
    // All at once, or they would take minutes; together they are 70 Mbit/s.
    thread::scope(|scope| {
        for scenario in SCENARIOS {
            scope.spawn(|| scenario.assert_claims(&sockets::run(scenario), "on sockets"));
        }
    });
}
