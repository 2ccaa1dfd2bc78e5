//! A session of `weir` between hosts, and the events that its processes print.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::host::Host;
use super::process::{Command, Finished, Process};

/// What the sender and the receivers of a session are told. Everything that they share is in one folder.
#[derive(Debug, Clone)]
pub struct Session {
    program: PathBuf,
    file: PathBuf,
    folder: PathBuf,
    to: String,
    tsi: u16,
    words: Vec<String>,
    names_receivers: bool,
}

impl Session {
    /// Group, port and number of a session that is not told others.
    pub const DEFAULT: (&str, u16) = ("239.255.0.1:5004", 7);

    /// `program` sends `file` to 239.255.0.1:5004 as session 7, and keeps key and description in `folder`.
    pub fn new(program: &Path, file: &Path, folder: &Path) -> Session {
        let [program, file, folder] = [program, file, folder].map(Path::to_owned);
        let (to, tsi) = Session::DEFAULT;
        Session { program, file, folder, to: to.to_owned(), tsi, words: Vec::new(), names_receivers: true }
    }

    /// Another group and port, and another number.
    #[must_use]
    pub fn to(mut self, to: &str, tsi: u16) -> Session {
        self.to = to.to_owned();
        self.tsi = tsi;
        self
    }

    /// More words for `weir send file`, such as its rates.
    #[must_use]
    pub fn words<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Session {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// Receivers have the name that all hosts share: for one receiver, and programs that do not know of names yet.
    #[must_use]
    pub fn without_names(mut self) -> Session {
        self.names_receivers = false;
        self
    }

    /// The session's description.
    pub fn description(&self) -> PathBuf {
        self.folder.join(format!("session{}.sdp", self.tsi))
    }

    /// Writes the description, before any packet. Panics if weir cannot.
    pub fn describe(&self, sender: &Host) {
        let described = self.send_command(sender).arg("--describe").start().wait(DESCRIBE_LIMIT);
        assert!(described.is_success(), "describing the session: {}", described.told());
    }

    /// The sender, printing events.
    pub fn send(&self, sender: &Host) -> Command {
        self.send_command(sender).arg("--json")
    }

    /// A receiver that puts its files in `out`, printing events.
    pub fn recv(&self, receiver: &Host, out: &Path) -> Command {
        let command = receiver.command(&self.program).arg("recv").arg(self.description()).arg("--out").arg(out);
        let command = command.args(["--iface", receiver.interface(), "--json"]);
        // The hosts share a name and a home, and are different receivers.
        if self.names_receivers { command.args(["--name", receiver.namespace()]) } else { command }
    }

    fn send_command(&self, sender: &Host) -> Command {
        let command = sender.command(&self.program).args(["send", "file"]).arg(&self.file).args(["--to", &self.to]);
        let command = command.args(["--iface", sender.interface(), "--tsi", &self.tsi.to_string()]);
        let command = command.arg("--key").arg(self.folder.join("sender.key"));
        command.arg("--session").arg(self.description()).args(&self.words)
    }
}

/// A description without its signature, for tests that change what it says: what is changed under the signature is refused.
pub fn unsigned(description: &str) -> String {
    let lines = description.lines().filter(|line| !line.starts_with("a=weir-signature:"));
    lines.map(|line| line.to_owned() + "\r\n").collect()
}

impl Process {
    /// The first event of this kind that `wanted` accepts, waited for. Panics after `limit`, or if the process ends
    /// without one.
    pub fn event(&self, kind: &str, limit: Duration, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let line = self.line(limit, |line| event(line, kind).is_some_and(|event| wanted(&event)));
        event(&line.text, kind).expect("the line was accepted as an event")
    }

    /// This field of the last event of this kind so far; 0 if there is none.
    pub fn last_count(&self, kind: &str, field: &str) -> u64 {
        let last = self.lines().iter().rev().find_map(|line| event(&line.text, kind));
        last.and_then(|event| event[field].as_u64()).unwrap_or(0)
    }

    /// Waits until a receiver has verified a file; how many seconds after the start of `sender` that was.
    pub fn seconds_to_verified_file(&self, sender: &Process, limit: Duration) -> f64 {
        let is_verified = |line: &str| event(line, "file").is_some_and(|file| file["verified"] == true);
        self.line(limit, is_verified).at.saturating_duration_since(sender.started()).as_secs_f64()
    }
}

impl Finished {
    /// The events of this kind, in order.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.out.iter().filter_map(|line| event(&line.text, kind)).collect()
    }

    /// Seconds that it took, by its `end` event. Panics without one.
    pub fn seconds(&self) -> f64 {
        self.last_event("end")["seconds"].as_f64().unwrap_or_else(|| panic!("no end: {}", self.told()))
    }

    /// This count of its `end` event. Panics without one.
    pub fn count(&self, field: &str) -> u64 {
        self.last_event("end")[field].as_u64().unwrap_or_else(|| panic!("no end with {field}: {}", self.told()))
    }

    /// The last event of this kind; null if there is none.
    pub fn last_event(&self, kind: &str) -> Value {
        self.events(kind).pop().unwrap_or(Value::Null)
    }
}

fn event(line: &str, kind: &str) -> Option<Value> {
    serde_json::from_str::<Value>(line).ok().filter(|event| event["event"] == kind)
}

/// Digests of a large file take seconds.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(30);
