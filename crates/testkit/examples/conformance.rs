//! What the simulator and the sockets make of each conformance scenario, side by side, as a table. Needs root. Run it with
//! `cargo run --release -p weir-testkit --example conformance`.

use std::thread;

use weir_testkit::conformance::{SCENARIOS, simulated, sockets};
use weir_testkit::netns::require_root;

fn main() {
    if !require_root() {
        return;
    }
    let on_sockets: Vec<sockets::Run> = thread::scope(|scope| {
        let runs: Vec<_> = SCENARIOS.iter().map(|scenario| scope.spawn(|| sockets::run(scenario))).collect();
        runs.into_iter().map(|run| run.join().expect("a scenario runs to its end")).collect()
    });
    for (scenario, on_sockets) in SCENARIOS.iter().zip(&on_sockets) {
        println!(
            "\n{}; at most {:.1?} late\n\n| claim | simulated | sockets |\n|---|---|---|",
            scenario.name, on_sockets.worst_lateness
        );
        let simulated = simulated::run(scenario, 1);
        for (simulated, sockets) in scenario.findings(&simulated).iter().zip(scenario.findings(&on_sockets.outcome)) {
            println!("| {:?} | {} | {} |", simulated.claim, simulated.found, sockets.found);
        }
    }
}
