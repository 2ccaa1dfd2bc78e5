//! Taking namespaces away again, our own and those of processes that died before they could.

use std::path::Path;
use std::process::Command as Program;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::eventually;
use std::time::Duration;

/// Every namespace of ours is called `weir-PID-N-ROLE`, after the process that made it.
pub(super) const PREFIX: &str = "weir-";

/// Removes the namespaces, with the processes in them, of every process that is gone. [`super::Network`] calls it first.
pub fn remove_leftovers() {
    let Ok(listing) = Program::new("ip").args(["netns", "list"]).output() else { return };
    for name in String::from_utf8_lossy(&listing.stdout).lines().filter_map(|line| line.split_whitespace().next()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()).and_then(|pid| pid.parse().ok());
        if owner.is_some_and(|pid: u32| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove_namespace(name);
        }
    }
}

/// Ends what runs in the namespace and removes it. Says nothing if it is gone already: another process may clean up too.
pub(super) fn remove_namespace(name: &str) {
    let gone = eventually(Duration::from_secs(2), || {
        let pids = processes_in(name);
        for pid in &pids {
            // A process that ended in between is as good as killed.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        pids.is_empty()
    });
    if !gone {
        eprintln!("processes in namespace {name} do not end");
    }
    let _ = Program::new("ip").args(["netns", "delete", name]).output();
}

fn processes_in(namespace: &str) -> Vec<i32> {
    let Ok(listing) = Program::new("ip").args(["netns", "pids", namespace]).output() else { return Vec::new() };
    String::from_utf8_lossy(&listing.stdout).lines().filter_map(|pid| pid.trim().parse().ok()).collect()
}
