//! A stream of `weir` over a tree: the sender, agents below it if there are any, and receivers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::process::Process;
use super::topology::Network;

/// What a stream is to be like. The first receivers of the network are its agents; the others are divided among these, each
/// agent taking neighbours, or are directly below the sender where there are no agents.
#[derive(Debug, Clone)]
pub struct TreePlan<'a> {
    /// The `weir` program.
    pub program: &'a Path,
    /// What is sent.
    pub input: &'a Path,
    /// Where each receiver puts it.
    pub outs: Vec<PathBuf>,
    /// Agents directly below the sender.
    pub agents: usize,
    /// More words for `weir send stream`, such as settings.
    pub send_words: Vec<String>,
    /// The modelled link in front of each receiver, as `weir recv --link` takes it.
    pub link: Option<&'a str>,
}

/// A sender, its agents and receivers, all printing events. They are killed when this is dropped.
#[derive(Debug)]
pub struct TreeStream {
    /// `weir send stream`.
    pub sender: Process,
    /// `weir agent`, each on a host of its own.
    pub agents: Vec<Process>,
    /// `weir recv`, each on a host of its own.
    pub receivers: Vec<Process>,
}

impl TreeStream {
    /// Starts all of it. The sender waits for all receivers. None of them takes members. Panics if a node does not start.
    pub fn start(network: &Network, plan: &TreePlan<'_>) -> TreeStream {
        assert_eq!(network.receivers().len(), plan.agents + plan.outs.len(), "a host for each agent and receiver");
        let (host, receivers) = (network.sender(), plan.outs.len().to_string());
        let words = ["send", "stream", "--to", GROUP, "--iface", host.interface(), "--json", "--receivers", &receivers];
        let sender = host.command(plan.program).args(words).arg("--in").arg(plan.input).args(&plan.send_words).start();
        let address = started(&sender, "stream");
        let agents: Vec<Process> = (0..plan.agents).map(|agent| plan.agent(network, &address, agent)).collect();
        let doors: Vec<String> = agents.iter().map(|agent| started(agent, "listens")).collect();
        let receivers = (0..plan.outs.len()).map(|index| plan.receiver(network, &address, &doors, index)).collect();
        TreeStream { sender, agents, receivers }
    }

    /// Bytes of the stream that receiver `index` has got in order, as it last said.
    pub fn received_bytes(&self, index: usize) -> u64 {
        self.receivers[index].last_count("progress", "stream_bytes")
    }

    /// Waits until this many bytes of the stream have been sent. Panics after `limit`.
    pub fn sent(&self, bytes: u64, limit: Duration) -> Value {
        self.sender.event("progress", limit, |event| event["stream_bytes"].as_u64() >= Some(bytes))
    }
}

impl TreePlan<'_> {
    /// The agent that receiver `index` is below.
    pub fn agent_of(&self, index: usize) -> Option<usize> {
        let share = self.outs.len().div_ceil(self.agents.max(1));
        (self.agents > 0).then(|| index / share)
    }

    fn agent(&self, network: &Network, address: &str, agent: usize) -> Process {
        let host = network.receiver(agent);
        let listen = format!("{}:{DOOR}", host.ipv4());
        let words = ["agent", address, "--listen", &listen, "--iface", host.interface(), "--json"];
        host.command(self.program).args(words).start()
    }

    fn receiver(&self, network: &Network, address: &str, doors: &[String], index: usize) -> Process {
        let host = network.receiver(self.agents + index);
        let words = ["recv", address, "--leaf", "--iface", host.interface(), "--json", "--overwrite", "--out"];
        let via = self.agent_of(index).into_iter().flat_map(|agent| ["--via", &doors[agent]]);
        let link = self.link.into_iter().flat_map(|link| ["--link", link]);
        host.command(self.program).args(words).arg(&self.outs[index]).args(via).args(link).start()
    }
}

/// A field of a node's first event.
fn started(node: &Process, field: &str) -> String {
    let start = node.event("start", START_LIMIT, |_| true);
    start[field].as_str().unwrap_or_default().to_owned()
}

const GROUP: &str = "239.255.0.1:5004";
/// Where agents take members.
const DOOR: u16 = 6000;
/// A node starts in less, also on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(30);
