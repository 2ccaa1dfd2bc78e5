//! What the simulator and the sockets make of each conformance scenario, side by side, as a table. Needs root. Run it with
//! `cargo run --release -p weir-testkit --example conformance [SCHEME …]`.

use std::thread;

use weir_testkit::conformance::{Case, cases, simulated, sockets};
use weir_testkit::netns::require_root;

fn main() {
    if !require_root() {
        return;
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |case: &Case| wanted.is_empty() || wanted.iter().any(|name| name == case.scheme.name);
    let cases: Vec<Case> = cases().filter(is_wanted).collect();
    for some in cases.chunks(AT_ONCE) {
        let on_sockets: Vec<sockets::Run> = thread::scope(|scope| {
            let runs: Vec<_> = some.iter().map(|case| scope.spawn(|| sockets::run(case))).collect();
            runs.into_iter().map(|run| run.join().expect("a scenario runs to its end")).collect()
        });
        some.iter().zip(&on_sockets).for_each(|(case, on_sockets)| compare(case, on_sockets));
    }
}

fn compare(case: &Case, on_sockets: &sockets::Run) {
    println!(
        "\n{case}; at most {:.1?} late\n\n| claim | simulated | sockets |\n|---|---|---|",
        on_sockets.worst_lateness
    );
    let simulated = simulated::run(case, 1);
    for (simulated, sockets) in case.findings(&simulated).iter().zip(case.findings(&on_sockets.outcome)) {
        println!("| {:?} | {} | {} |", simulated.claim, simulated.found, sockets.found);
    }
}

/// As many as two cores keep in time.
const AT_ONCE: usize = 18;
