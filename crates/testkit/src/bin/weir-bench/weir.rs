//! One session of weir: receivers first, the sender a second later, until every receiver has verified its file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Finished, Network, Process, pause};

use crate::machine::CpuClock;
use crate::speed::{Job, Run};

/// What is measured, and with which words after `weir send file`.
#[derive(Debug, Clone)]
pub(crate) struct Weir<'a> {
    /// The program.
    pub(crate) program: &'a Path,
    /// `--rates`, `--ratio` and others.
    pub(crate) send_words: Vec<String>,
}

/// A session that is done.
#[derive(Debug)]
pub(crate) struct Session {
    /// The figures that every tool has.
    pub(crate) run: Run,
    /// The last event of the sender, and of each receiver.
    pub(crate) sender_end: Value,
    /// In the receivers' order.
    pub(crate) receiver_ends: Vec<Value>,
}

impl Weir<'_> {
    /// Sends the job's file to every receiver of the network.
    pub(crate) fn transfer(&self, network: &Network, job: &Job<'_>) -> Result<Session, String> {
        let description = job.scratch.join("session.sdp");
        let described = self.sender(network, job, &description, &["--describe", "-q"]).wait(SHORT);
        require(&described, "describing the session")?;
        let receive = |(host, folder): (&weir_testkit::netns::Host, &PathBuf)| {
            let receiver = host.command(self.program).arg("recv").arg(&description).arg("--out").arg(folder);
            receiver.args(["--iface", host.interface(), "--json"]).start()
        };
        let receivers: Vec<Process> = network.receivers().iter().zip(job.folders).map(receive).collect();
        pause(HEAD_START);
        let before = CpuClock::now();
        let sender = self.sender(network, job, &description, &["--json"]);
        let mut seconds = Vec::new();
        for receiver in &receivers {
            // The line comes when the file has its name; the receipt that follows may wait.
            let line =
                receiver.line(job.limit, |line| event(line, "file").is_some_and(|file| file["verified"] == true));
            seconds.push(line.at.duration_since(sender.started()).as_secs_f64());
        }
        let sent = sender.wait(SHORT);
        let machine = CpuClock::now().since(before);
        require(&sent, "sending")?;
        let ended: Vec<Finished> = receivers.iter().map(|receiver| receiver.wait(SHORT)).collect();
        for end in &ended {
            require(end, "receiving")?;
        }
        // From a receiver's first packet to its verified file: the nearest to what other senders print.
        let receipts = sent.out.iter().filter_map(|line| event(&line.text, "receipt"));
        let own_seconds = receipts.filter_map(|receipt| receipt["seconds"].as_f64()).reduce(f64::max);
        let usages = ended.iter().map(|end| end.usage).collect();
        let run = Run { seconds, own_seconds, sender: sent.usage, receivers: usages, machine };
        Ok(Session { run, sender_end: last_event(&sent), receiver_ends: ended.iter().map(last_event).collect() })
    }

    fn sender(&self, network: &Network, job: &Job<'_>, description: &Path, more: &[&str]) -> Process {
        let host = network.sender();
        let command = host.command(self.program).args(["send", "file"]).arg(job.file);
        let command = command.args(["--to", "239.255.0.1:5004", "--iface", host.interface(), "--tsi", "7"]);
        let command = command.arg("--key").arg(job.scratch.join("sender.key")).arg("--session").arg(description);
        let receipts = network.receivers().len().to_string();
        command.args(["--receipts", &receipts]).args(&self.send_words).args(more).start()
    }
}

fn require(done: &Finished, doing: &str) -> Result<(), String> {
    if done.is_success() { Ok(()) } else { Err(format!("weir failed at {doing}\n{}", done.told())) }
}

/// The event on this line, if it is of this kind.
fn event(line: &str, kind: &str) -> Option<Value> {
    serde_json::from_str::<Value>(line).ok().filter(|event| event["event"] == kind)
}

fn last_event(done: &Finished) -> Value {
    done.out.iter().rev().find_map(|line| event(&line.text, "end")).unwrap_or(Value::Null)
}

/// How long receivers run before the sender starts.
const HEAD_START: Duration = Duration::from_secs(1);

/// Receipts and the last words take less.
const SHORT: Duration = Duration::from_secs(30);
