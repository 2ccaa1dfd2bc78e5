//! A file on its way from the sender to every receiver of a network, for as long as it is watched.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_units::{Bytes, Rate};

use super::files::{Scratch, generated_file, same_content};
use super::pause;
use super::process::{Finished, Process};
use super::session::Session;
use super::topology::Network;

/// `weir send file`, and a `weir recv` on every receiver. They are killed when this is dropped.
#[derive(Debug)]
pub struct Delivery {
    /// The sender, printing events.
    pub sender: Process,
    /// The receivers, printing events.
    pub receivers: Vec<Process>,
    scratch: Scratch,
    session: Session,
}

impl Delivery {
    /// Starts the receivers, and then the sender of a file of `bytes`, with these words after `weir send file`.
    pub fn start<W: Into<String>>(
        network: &Network,
        program: &Path,
        bytes: Bytes,
        words: impl IntoIterator<Item = W>,
    ) -> Delivery {
        Delivery::start_to(network, program, bytes, Session::DEFAULT, words)
    }

    /// The same to this group and port, as the session of this number: for more than one at a time.
    pub fn start_to<W: Into<String>>(
        network: &Network,
        program: &Path,
        bytes: Bytes,
        (to, tsi): (&str, u16),
        words: impl IntoIterator<Item = W>,
    ) -> Delivery {
        let scratch = Scratch::new();
        let file = scratch.join(INPUT);
        generated_file(&file, bytes.count(), 1);
        let session = Session::new(program, &file, scratch.path()).to(to, tsi).words(words);
        session.describe(network.sender());
        let recv = |(index, host)| session.recv(host, &scratch.folder(format!("out{index}"))).start();
        let receivers = network.receivers().iter().enumerate().map(recv).collect();
        Delivery { receivers, sender: session.send(network.sender()).start(), scratch, session }
    }

    /// The session's description.
    pub fn description(&self) -> PathBuf {
        self.session.description()
    }

    /// Where the sender takes messages of receivers.
    pub fn control(&self) -> SocketAddrV4 {
        let description = std::fs::read_to_string(self.description()).expect("it was described");
        let control = description.lines().find_map(|line| line.strip_prefix("a=weir-control:"));
        control.and_then(|address| address.parse().ok()).expect("the description has a control port")
    }

    /// Waits until receiver `index` has ended. Panics if it has not verified its file, or if that is another.
    pub fn verified(&self, index: usize, limit: Duration) -> Finished {
        let done = self.receivers[index].wait(limit);
        assert!(done.is_success() && done.last_event("end")["verified"] == true, "{}", done.told());
        let arrived = self.scratch.join(format!("out{index}")).join(INPUT);
        assert!(same_content(&self.scratch.join(INPUT), &arrived), "receiver {index} has something else");
        done
    }

    /// Bytes of content that receiver `index` has gained, as it last said.
    pub fn received_bytes(&self, index: usize) -> u64 {
        self.receivers[index].last_count("progress", "useful_bytes")
    }

    /// What receiver 0 gains, and what all receivers say by IGMP, over `span`.
    pub fn memberships(&self, network: &Network, span: Duration) -> Memberships {
        let before = self.received_bytes(0);
        let watch = network.watch_igmp();
        pause(span);
        let (count, after) = (watch.count(), self.received_bytes(0));
        let per_sec = |count: u64| count as f64 / span.as_secs_f64();
        Memberships {
            messages_per_sec: per_sec(count.messages),
            groups_per_sec: per_sec(count.groups),
            rate: Bytes::new(after - before).per(span),
        }
    }
}

/// What changes of membership a rate takes.
#[derive(Debug, Clone, Copy)]
pub struct Memberships {
    /// IGMP messages a second of all hosts.
    pub messages_per_sec: f64,
    /// Groups a second that they speak of.
    pub groups_per_sec: f64,
    /// What receiver 0 gained meanwhile.
    pub rate: Rate,
}

/// The name of the file.
const INPUT: &str = "input";
