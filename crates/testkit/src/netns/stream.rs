//! A live stream of `weir` from the sender to a receiver, and what it gets beside a kernel's TCP.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use weir_units::{Bytes, Rate};

use super::pause;
use super::process::Process;
use super::rival::Rival;
use super::topology::Network;

/// A sender and its viewer. They are killed when this is dropped.
#[derive(Debug)]
pub struct LiveStream {
    /// `weir send live`, printing events.
    pub sender: Process,
    /// `weir recv`, printing events.
    pub viewer: Process,
}

impl LiveStream {
    /// Starts both: `input` goes to receiver `index`, which puts it into `out`.
    pub fn start(
        network: &Network,
        program: &Path,
        index: usize,
        input: impl AsRef<OsStr>,
        out: impl AsRef<OsStr>,
    ) -> LiveStream {
        let sender = network.sender().command(program).args(["send", "live", "--json", "--unicast", &PORT.to_string()]);
        let sender = sender.arg("--in").arg(input).start();
        let address = format!("{}:{PORT}", network.sender().ipv4());
        let viewer = network.receiver(index).command(program).args(["recv", &address, "--json", "--out"]);
        LiveStream { sender, viewer: viewer.arg(out).start() }
    }

    /// Bytes of content that the viewer has got, as it last said.
    pub fn received_bytes(&self) -> u64 {
        let progress =
            |text: &str| serde_json::from_str::<Value>(text).ok().filter(|event| event["event"] == "progress");
        let last = self.viewer.lines().iter().rev().find_map(|line| progress(&line.text));
        last.and_then(|event| event["payload_bytes"].as_u64()).unwrap_or(0)
    }
}

/// What two flows got of a link that they shared: content, without headers.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// The live stream.
    pub stream: Rate,
    /// The TCP connection.
    pub tcp: Rate,
    /// Packets that the link dropped meanwhile.
    pub dropped: u64,
}

impl Shares {
    /// The stream's rate over the connection's.
    pub fn ratio(&self) -> f64 {
        self.stream.bps() as f64 / self.tcp.bps().max(1) as f64
    }

    /// An endless live stream and one connection under `control` share the link of receiver 0: their rates over `span`,
    /// `warm_up` after the later one began.
    pub fn measure(network: &Network, program: &Path, control: &str, warm_up: Duration, span: Duration) -> Shares {
        let stream = LiveStream::start(network, program, 0, "/dev/zero", "/dev/null");
        let rival = Rival::start(network, 0, control);
        pause(warm_up);
        let before = (stream.received_bytes(), rival.received_bytes(), network.link_counters(0).dropped_packets);
        pause(span);
        let rate = |before: u64, after: u64| Bytes::new(after - before).per(span);
        Shares {
            stream: rate(before.0, stream.received_bytes()),
            tcp: rate(before.1, rival.received_bytes()),
            dropped: network.link_counters(0).dropped_packets - before.2,
        }
    }
}

const PORT: u16 = 5004;
