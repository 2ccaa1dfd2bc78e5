//! The conformance scenarios for streams over a tree on real sockets between network namespaces, in real time. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::thread;

use weir_testkit::conformance::tree::{cases, sockets};
use weir_testkit::netns::require_root;

#[test]
fn every_scenario_for_trees_holds_on_sockets_with_every_scheme() {
    if !require_root() {
        return;
    }
    thread::scope(|scope| {
        let runs: Vec<_> = cases().map(|case| scope.spawn(move || (case, sockets::run(&case)))).collect();
        let failed: Vec<String> = runs
            .into_iter()
            .map(|run| run.join().expect("it runs"))
            .filter_map(|(case, outcome)| {
                let broken = case.broken(&outcome);
                (!broken.is_empty()).then(|| format!("{case}:\n  {}", broken.join("\n  ")))
            })
            .collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    });
}
