//! The promises of the contract between endpoints and drivers, in the simulator.

use weir_testkit::seam::{SCENARIOS, simulated};

#[test]
fn the_simulator_keeps_every_promise_of_the_contract() {
    for scenario in SCENARIOS {
        println!("{}", scenario.name);
        scenario.hold(simulated::run);
    }
}
