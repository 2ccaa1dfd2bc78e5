//! A live stream of `weir` from the sender to a receiver.

use std::ffi::OsStr;
use std::path::Path;

use super::process::Process;
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
        LiveStream::start_with(network, program, index, input, out, &[])
    }

    /// The same, with these options of the sender.
    pub fn start_with(
        network: &Network,
        program: &Path,
        index: usize,
        input: impl AsRef<OsStr>,
        out: impl AsRef<OsStr>,
        options: &[&str],
    ) -> LiveStream {
        let sender = network.sender().command(program).args(["send", "live", "--json", "--unicast", &PORT.to_string()]);
        let sender = sender.args(options).arg("--in").arg(input).start();
        let address = format!("{}:{PORT}", network.sender().ipv4());
        let viewer = network.receiver(index).command(program).args(["recv", &address, "--json", "--out"]);
        LiveStream { sender, viewer: viewer.arg(out).start() }
    }

    /// Bytes of content that the viewer has got, as it last said.
    pub fn received_bytes(&self) -> u64 {
        self.viewer.last_count("progress", "payload_bytes")
    }
}

const PORT: u16 = 5004;
