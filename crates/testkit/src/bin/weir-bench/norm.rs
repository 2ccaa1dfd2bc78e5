//! One transfer by NORM (RFC 5740), through the C interface of its reference implementation.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Command, Network, Process, Scratch, in_path, pause};

use crate::machine::CpuClock;
use crate::speed::{Job, Run};

/// The program `norm.cpp`, compiled.
#[derive(Debug)]
pub(crate) struct Norm {
    program: PathBuf,
    _folder: Scratch,
}

impl Norm {
    /// Compiles it, or says why it cannot be used.
    pub(crate) fn build() -> Result<Norm, String> {
        const MISSING: &str = "it needs a C++ compiler and its library: apt-get install g++ libnorm-dev";
        if !in_path("c++") {
            return Err(MISSING.into());
        }
        let folder = Scratch::new();
        let (source, program) = (folder.join("norm.cpp"), folder.join("norm"));
        std::fs::write(&source, include_str!("norm.cpp")).map_err(|error| format!("{}: {error}", source.display()))?;
        let compiler = Command::here("c++").args(["-O2", "-o"]).args([&program, &source]).arg("-lnorm").start();
        let done = compiler.wait(SHORT);
        if done.is_success() { Ok(Norm { program, _folder: folder }) } else { Err(MISSING.into()) }
    }

    /// Sends the job's file to every receiver of the network.
    pub(crate) fn transfer(&self, network: &Network, job: &Job<'_>) -> Result<Run, String> {
        let receivers: Vec<Process> = (2..)
            .zip(network.receivers().iter().zip(job.arrivals()))
            .map(|(number, (host, path))| {
                let receiver = host.command(&self.program).arg("recv").arg(path).args([host.interface()]);
                receiver.arg(number.to_string()).start()
            })
            .collect();
        pause(HEAD_START);
        let (before, host) = (CpuClock::now(), network.sender());
        let sender = host.command(&self.program).arg("send").arg(job.file).arg(host.interface());
        let sender = sender.arg(network.receivers().len().to_string()).start();
        let sent = sender.wait(job.limit);
        let machine = CpuClock::now().since(before);
        let own_seconds = sent.out.iter().find_map(|line| line.text.strip_prefix("seconds: ")?.parse().ok());
        if own_seconds.is_none() {
            return Err(format!("NORM did not deliver\n{}", sent.told()));
        }
        let seconds = own_seconds.into_iter().collect();
        let receivers = receivers.iter().map(|process| process.terminate().usage).collect();
        Ok(Run { seconds, own_seconds, sender: sent.usage, receivers, machine, details: Value::Null })
    }
}

/// How long receivers run before the sender starts.
const HEAD_START: Duration = Duration::from_secs(1);
/// Compilers take less.
const SHORT: Duration = Duration::from_secs(30);
