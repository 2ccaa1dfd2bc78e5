//! Hosts of their own on one machine: network namespaces on a bridge that snoops IGMP and MLD, with links of given rates.
//!
//! The kernel that this is made for has token buckets only. Delay and random loss come from modelled links, which carry frames
//! between two devices of this process ([`Builder::modelled`]), or for one receiver from `weir recv --link`. Needs root. What
//! fails here panics with the command and its output: this is for tests.
//!
//! ```no_run
//! use std::time::Duration;
//! use weir_testkit::netns::{Network, require_root};
//!
//! if !require_root() {
//!     return;
//! }
//! let network = Network::new().receivers(2).build();
//! let ping = network.receiver(0).command("ping").args(["-c1", "10.77.0.1"]).start();
//! assert!(ping.wait(Duration::from_secs(5)).is_success());
//! ```

#![expect(clippy::disallowed_methods, reason = "drives real processes: it waits and reads the clock")]

mod cleanup;
mod counters;
mod delivery;
mod files;
mod host;
mod igmp;
mod link;
mod media;
mod modelled;
mod path;
mod process;
mod rival;
mod session;
mod shares;
mod stranger;
mod stream;
mod thread;
mod topology;
mod transfer;
mod tree;
mod tun;

use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;

pub use cleanup::remove_leftovers;
pub use counters::{Snooping, Traffic};
pub use delivery::{Delivery, Memberships};
pub use files::{Scratch, generated_file, same_content};
pub use host::Host;
pub use igmp::{IgmpCount, IgmpWatch};
pub use link::{LinkCounters, TokenBucket};
pub use media::{Programme, decoded, generated_clip};
pub use path::{Between, Path, has_ethtool};
pub use process::{Command, Finished, Line, Process, Usage};
pub use rival::Rival;
pub use session::{Session, unsigned};
pub use shares::Shares;
pub use stranger::{Air, Heard, Stranger};
pub use stream::LiveStream;
pub use topology::{Builder, Network};
pub use transfer::Transfer;
pub use tree::{TreePlan, TreeStream};

/// Whether a test that needs namespaces can go on. False where `WEIR_SKIP_NETNS=1` asked to leave it out, which is printed.
///
/// Without that variable, panics with what to do where this process is not root or `ip` is missing: a test that was
/// left out in silence looks like one that passed.
#[must_use = "where it says false the test must return"]
pub fn require_root() -> bool {
    if std::env::var_os("WEIR_SKIP_NETNS").is_some_and(|value| value == "1") {
        eprintln!("SKIPPED: WEIR_SKIP_NETNS=1 leaves out what needs network namespaces");
        return false;
    }
    let advice =
        "run as root (sudo -E cargo test …), or set WEIR_SKIP_NETNS=1 to leave out what needs network namespaces";
    assert!(nix::unistd::geteuid().is_root(), "network namespaces need root: {advice}");
    for tool in ["ip", "bridge", "tc"] {
        assert!(in_path(tool), "network namespaces need {tool}: apt-get install iproute2; or {advice}");
    }
    true
}

/// Whether a program of this name is in `PATH`.
pub fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A UDP port that nothing on this machine's own namespace uses at the moment.
pub fn free_port() -> u16 {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("an unused UDP port");
    socket.local_addr().expect("a bound socket has an address").port()
}

/// The `weir` program: `CARGO_BIN_EXE_weir` or `WEIR_BINARY` from the environment, or the one in the folder that cargo
/// put this program in, or a folder above it. None if it is not built.
pub fn find_weir_binary() -> Option<PathBuf> {
    let named = ["CARGO_BIN_EXE_weir", "WEIR_BINARY"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let own = std::env::current_exe().expect("a running program has a path");
    let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join("weir")).collect::<Vec<_>>();
    named.chain(beside).find(|path| path.is_file())
}

/// Waits this long, for effects that nothing announces.
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Asks `done` again and again for up to `limit`; whether it said yes.
pub fn eventually(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = std::time::Instant::now() + limit;
    loop {
        if done() {
            return true;
        }
        if std::time::Instant::now() >= end {
            return false;
        }
        pause(Duration::from_millis(20));
    }
}
