//! One session of weir: receivers first, the sender a second later, until every receiver has verified its file.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{self, Finished, Network, Process, pause};

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

impl Weir<'_> {
    /// Sends the job's file to every receiver of the network.
    pub(crate) fn transfer(&self, network: &Network, job: &Job<'_>) -> Result<Run, String> {
        let receipts = ["--receipts".to_owned(), network.receivers().len().to_string()];
        let session = netns::Session::new(self.program, job.file, job.scratch).words(receipts);
        let session = session.words(self.send_words.iter().cloned());
        let session = if network.receivers().len() == 1 { session.without_names() } else { session };
        session.describe(network.sender());
        let pairs = network.receivers().iter().zip(job.folders);
        let receivers: Vec<Process> = pairs.map(|(host, folder)| session.recv(host, folder).start()).collect();
        pause(HEAD_START);
        let before = CpuClock::now();
        let sender = session.send(network.sender()).start();
        // The event comes when the file has its name; the receipt that follows may wait.
        let seconds = receivers.iter().map(|receiver| receiver.seconds_to_verified_file(&sender, job.limit)).collect();
        let sent = sender.wait(SHORT);
        let machine = CpuClock::now().since(before);
        require(&sent, "sending")?;
        let ended: Vec<Finished> = receivers.iter().map(|receiver| receiver.wait(SHORT)).collect();
        ended.iter().try_for_each(|end| require(end, "receiving"))?;
        // From a receiver's first packet to its verified file: the nearest to what other senders print.
        let receipts = sent.events("receipt");
        let own_seconds = receipts.iter().filter_map(|receipt| receipt["seconds"].as_f64()).reduce(f64::max);
        let usages = ended.iter().map(|end| end.usage).collect();
        let receiver_ends: Vec<Value> = ended.iter().map(|end| end.last_event("end")).collect();
        let details = json!({ "sender": sent.last_event("end"), "receivers": receiver_ends });
        Ok(Run { seconds, own_seconds, sender: sent.usage, receivers: usages, machine, details })
    }
}

fn require(done: &Finished, doing: &str) -> Result<(), String> {
    if done.is_success() { Ok(()) } else { Err(format!("weir failed at {doing}\n{}", done.told())) }
}

/// How long receivers run before the sender starts.
const HEAD_START: Duration = Duration::from_secs(1);

/// Receipts and the last words take less.
const SHORT: Duration = Duration::from_secs(30);
