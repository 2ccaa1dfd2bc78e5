//! The promises of the contract between endpoints and drivers, on real sockets over the loopback, in real time.

use std::thread;

use weir_testkit::seam::{SCENARIOS, sockets};

#[test]
fn sockets_keep_every_promise_of_the_contract() {
    thread::scope(|scope| {
        for scenario in SCENARIOS {
            let run = move || scenario.judge(&sockets::run(scenario));
            thread::Builder::new().name(scenario.name.to_owned()).spawn_scoped(scope, run).expect("a thread");
        }
    });
}
