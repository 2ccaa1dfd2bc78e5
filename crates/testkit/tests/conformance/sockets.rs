//! The conformance scenarios on real sockets between network namespaces, in real time, with every scheme of the registry. Needs
//! root; see `weir_testkit::netns::require_root`.

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};
use std::thread;

use weir_testkit::conformance::{Case, cases, sockets};
use weir_testkit::netns::require_root;

#[test]
fn every_scenario_holds_on_sockets_with_every_scheme() {
    if !require_root() {
        return;
    }
    let mut waiting: Vec<Case> = cases().collect();
    // Longest first; they are taken from the end.
    waiting.sort_by_key(|case| Reverse(case.scenario.seconds));
    waiting.reverse();
    let waiting = Mutex::new(waiting);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = next() {
                    assert_holds(&case);
                }
            });
        }
    });
}

/// A case that does not hold is run again if, and only if, this machine did not keep time.
fn assert_holds(case: &Case) {
    let mut run = sockets::run(case);
    for _ in 1..ATTEMPTS {
        if run.is_on_time() || case.holds(&run.outcome) {
            break;
        }
        eprintln!("{case}: this machine was {:?} late; once more", run.worst_lateness);
        run = sockets::run(case);
    }
    case.assert_claims(&run.outcome, &format!("on sockets, at most {:?} late", run.worst_lateness));
}

const ATTEMPTS: u32 = 3;

/// One after the other would take a quarter of an hour; all together are more than two cores can keep in time.
const AT_ONCE: usize = 18;
