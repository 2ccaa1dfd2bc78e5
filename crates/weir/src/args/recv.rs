//! What `weir recv` takes.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir_core::registry::Setting;
use weir_link::LinkConfig;
use weir_units::Bytes;

use super::values::{self, SessionSource};
use super::{Output, defaults, from_words};
use crate::exit::Failure;

/// `weir recv`.
#[derive(Debug, Clone, Args)]
pub struct Recv {
    /// The session description: a file, - for standard input, or an http(s) address; or HOST:PORT of a live stream's sender; or the stream:// address that `weir send stream` prints.
    /// Several sessions are received at once, each into a folder of its own.
    #[arg(value_name = "SESSION|HOST:PORT|STREAM", required_unless_present = "announced")]
    pub sessions: Vec<SessionSource>,

    /// Stay, and take the sessions that the senders of --sender-key announce, each into a folder of its own in --out, once for each start of its sender; listens at the usual groups (SAP, RFC 2974), or at these.
    #[arg(long, value_name = "GROUP:PORT", num_args = 0..=1, require_equals = true, value_delimiter = ',', value_parser = values::announcements, conflicts_with_all = ["sessions", "any_sender", "priority", "priorities", "manager_settings", "via", "from_now", "leaf", "sdp"], help_heading = "Announced sessions")]
    pub announced: Option<Vec<SocketAddr>>,

    /// How many announced sessions to receive at once; others wait.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Announced sessions")]
    pub at_once: u32,

    /// Run this program when a session ends, with what became of it in its environment (WEIR_RESULT, WEIR_SESSION, WEIR_OUT, ...; docs/announcements.md lists them). Words after the first are its arguments; no shell reads them.
    #[arg(long, value_name = "COMMAND")]
    pub hook: Option<String>,

    /// End the program of --hook after this long.
    #[arg(long, value_name = "DURATION", value_parser = values::span, default_value = "10m")]
    pub hook_timeout: Duration,

    /// Priorities of several sessions, in their order: a higher number gets more of what this host gets altogether [default: what the senders say, or 1].
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Several sessions")]
    pub priority: Vec<u32>,

    /// A file with a priority on each line, in the order of the sessions; it is read again whenever it changes.
    #[arg(long, value_name = "FILE", conflicts_with = "priority", help_heading = "Several sessions")]
    pub priorities: Option<PathBuf>,

    /// A setting of the manager that divides bandwidth among several sessions, such as sharing=weight; `weir schemes` lists them.
    #[arg(long = "manager-set", value_name = "NAME=VALUE", value_parser = values::setting, help_heading = "Several sessions")]
    pub manager_settings: Vec<Setting>,

    /// Of a stream: begin to look for a place in the tree at this node instead of the sender.
    #[arg(long, value_name = "HOST:PORT", help_heading = "Network")]
    pub via: Option<String>,

    /// Of a stream: take it from now on, not from its start.
    #[arg(long)]
    pub from_now: bool,

    /// Of a stream: take no members below this one.
    #[arg(long)]
    pub leaf: bool,

    /// Folder to put the files in, made if missing [default: .]; a block device (with --overwrite) for the one file of a session, all of whose content is lost; - writes that file to standard output once it is verified; of a live stream: - for standard output [default: -], a file, rtp://ADDR:PORT for a player, or udp://ADDR:PORT for bare payloads.
    #[arg(long, value_name = "DIR|STREAM")]
    pub out: Option<PathBuf>,

    /// Of a live stream to rtp://ADDR:PORT: write the session description (SDP) that a player of it needs.
    #[arg(long, value_name = "FILE")]
    pub sdp: Option<PathBuf>,

    /// Replace files that exist; without this an existing file is left alone and counts as a failure.
    #[arg(long)]
    pub overwrite: bool,

    /// Take content that is not signed, as plain FLUTE senders send it: digests still guard against damage, not against forgery.
    #[arg(long)]
    pub any_sender: bool,

    /// Take only what this sender has signed, its description or the end of its stream included: its public key, or a file that holds it. With --announced any number of them [default: the key of an http(s) address is remembered the first time].
    #[arg(long, value_name = "KEY|FILE", conflicts_with = "any_sender")]
    pub sender_key: Vec<String>,

    /// What senders that ask for receipts call this receiver [default: this host's name]. Several receivers on a host need several names.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Most memory to use for received data, in bytes; the rest waits on disk.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = values::size)]
    pub memory: Bytes,

    /// Network interface to receive on, by name (eth0) or by its address [default: the one that the route to the group takes].
    #[arg(long, value_name = "NAME|ADDR", help_heading = "Network")]
    pub iface: Option<String>,

    /// Put a modelled link in front of the socket, for trials on one machine: rate=2mbit,delay=20ms,buffer=100ms,loss=2%.
    #[arg(long, value_name = "LINK", help_heading = "Network")]
    pub link: Option<LinkConfig>,

    /// Of a live stream: give it out this long after the sender got it, if that is more than the sender's --latency.
    #[arg(long, value_name = "DURATION", value_parser = values::latency, help_heading = "Live streams")]
    pub latency: Option<Duration>,

    /// Give up after this long, such as 10m; what came is kept, and a later run goes on from there [default: never].
    #[arg(long = "for", value_name = "DURATION", value_parser = values::span, help_heading = "When to stop")]
    pub duration: Option<Duration>,

    /// Give up when no packet has come for this long, such as 30s [default: never]; of a stream: when no node has taken this one for this long [default: 30s]; of a live stream that ran and whose sender is gone [default: 60s].
    #[arg(long, value_name = "DURATION", value_parser = values::span, help_heading = "When to stop")]
    pub idle_timeout: Option<Duration>,

    /// What is told while it runs, and where packets are written to.
    #[command(flatten)]
    pub output: Output,
}

impl Recv {
    /// To receive a session, in all else as the command line does by default.
    pub fn new(session: SessionSource) -> Recv {
        Recv { sessions: vec![session], ..defaults(["weir", "-"]) }
    }

    /// As `weir recv` takes them, with its errors.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Recv, Failure> {
        from_words(words)
    }
}
