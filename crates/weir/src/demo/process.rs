//! A child process that tells what it does, one event a line.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};
use crate::progress::clean;

/// Which process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// The sender.
    Sender,
    /// A receiver, counted from 0.
    Receiver(usize),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Sender => f.write_str("the sender"),
            Party::Receiver(i) => write!(f, "receiver {}", i + 1),
        }
    }
}

/// What can be heard, of senders and receivers whose events these are.
#[derive(Debug)]
pub(super) enum Message<S, R> {
    /// An event of the sender.
    Sender(S),
    /// An event of a receiver.
    Receiver(usize, R),
    /// A line that is no event.
    Garbled(Party, String),
    /// The process has closed its output: it has ended, or is about to.
    Gone(Party),
    /// The user wants to stop.
    Interrupted,
}

/// A process that was started. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts `command`; what it prints goes to `outbox` and, as it comes, to files that begin with `trace`.
    pub(super) fn start<S, R>(
        mut command: Command,
        party: Party,
        trace: &Path,
        outbox: &Sender<Message<S, R>>,
    ) -> Result<Process, Failure>
    where
        S: DeserializeOwned + Send + 'static,
        R: DeserializeOwned + Send + 'static,
    {
        let cannot = |what: &'static str| Failure::of(Exit::Files, format!("cannot {what} {}", trace.display()));
        let log = trace.with_extension("log");
        let mut events = File::create(trace.with_extension("jsonl")).map_err(cannot("record the events of"))?;
        let messages = File::create(&log).map_err(cannot("record the messages of"))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(messages)
            .spawn()
            .map_err(Failure::of(Exit::Internal, format!("cannot start {party}")))?;
        let lines = BufReader::new(child.stdout.take().expect("standard output was asked to be a pipe"));
        let outbox = outbox.clone();
        thread::spawn(move || {
            for line in lines.lines().map_while(io::Result::ok) {
                // The record is for the curious; a full disk is noticed where it matters.
                let _unrecorded = writeln!(events, "{line}");
                if outbox.send(read(party, line)).is_err() {
                    return;
                }
            }
            let _nobody_listens = outbox.send(Message::Gone(party));
        });
        Ok(Process { child, log, status: None })
    }

    /// Collects the process after it has gone.
    pub(super) fn end(&mut self) -> Result<ExitStatus, Failure> {
        let status = self.child.wait().map_err(Failure::of(Exit::Internal, "cannot wait for a process"))?;
        self.status = Some(status);
        Ok(status)
    }

    /// True once collected.
    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    /// The end of what it said on standard error.
    pub(super) fn last_words(&self) -> String {
        std::fs::read(&self.log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    /// Asks it to stop. Not by SIGINT: a shell may have had that ignored in all that it starts.
    pub(super) fn interrupt(&mut self) {
        if !self.has_ended() {
            let pid = i32::try_from(self.child.id()).expect("process ids fit their type");
            let _already_gone = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }

    /// Ends it without asking.
    pub(super) fn kill(&mut self) {
        if !self.has_ended() {
            let _already_gone = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Why a process failed, with its own last words and what to do.
pub(super) fn explain(who: &str, status: ExitStatus, told: &str) -> Failure {
    let exit = status.code().and_then(|code| Exit::ALL.into_iter().find(|exit| i32::from(exit.code()) == code));
    let told = told.trim_end();
    let skip = told.lines().count().saturating_sub(LAST_LINES);
    let last: String = told.lines().skip(skip).map(|line| format!("\n    {}", clean(line))).collect();
    let advice = match exit {
        Some(Exit::Network) => {
            "\n  Multicast over loopback must be possible: is there a firewall, or a container without a loopback interface?"
        }
        Some(Exit::Incomplete) => {
            "\n  This machine may be too busy: try slower --links, a smaller --size, or a longer --for."
        }
        Some(Exit::Files) => "\n  Is there room, and may you write there? Another folder is chosen by --out.",
        _ => "",
    };
    let how = exit.map_or(status.to_string(), |exit| format!("exit code {}, {}", exit.code(), exit.meaning()));
    Failure::new(exit.unwrap_or(Exit::Internal), format!("{who} failed ({how}).{last}{advice}"))
}

fn read<S: DeserializeOwned, R: DeserializeOwned>(party: Party, line: String) -> Message<S, R> {
    let event = match party {
        Party::Sender => serde_json::from_str(&line).map(Message::Sender),
        Party::Receiver(i) => serde_json::from_str(&line).map(|event| Message::Receiver(i, event)),
    };
    event.unwrap_or(Message::Garbled(party, line))
}

/// How many lines of a failed process's messages are shown.
const LAST_LINES: usize = 12;
