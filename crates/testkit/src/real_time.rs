//! What tests in real time share: priority for their threads, and waits.

use weir_net::clock::{self, Clock};
use weir_units::Time;

/// Gives this thread real-time priority, if it may have it.
pub(crate) fn go_first() {
    let thread = nix::unistd::gettid().to_string();
    let done = std::process::Command::new("chrt").args(["--rr", "--pid", "1", &thread]).output();
    if !done.is_ok_and(|done| done.status.success()) {
        eprintln!("no real-time priority here: other work on this machine can spoil the measurement");
    }
}

/// Waits until the system's steady clock shows this time.
pub(crate) fn wait_until(time: Time) {
    // A signal may end a wait early.
    while Clock::new().now() < time {
        clock::wait(&mut [], time).expect("waiting needs nothing");
    }
}
