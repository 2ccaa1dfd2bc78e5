//! Threads of this process on hosts: what they open belongs to the host's namespace.

use std::fs::File;
use std::path::Path;
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, setns};

use super::host::Host;

impl Host {
    /// Runs `work` in a thread on this host: sockets that it opens are the host's. What is mounted stays this process's.
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        spawn_in(self.namespace(), work)
    }
}

/// Runs `work` in a thread in the namespace of this name.
pub(super) fn spawn_in<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let name = name.to_owned();
    std::thread::spawn(move || {
        let path = Path::new("/run/netns").join(&name);
        let namespace = File::open(&path).unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
        setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap_or_else(|error| panic!("cannot enter {name}: {error}"));
        work()
    })
}
