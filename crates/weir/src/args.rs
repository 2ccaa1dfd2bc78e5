//! The command line: what can be asked for. What is done about it is elsewhere.

mod demo_live;
mod examples;
mod lab;
mod recv;
mod schemes;
mod send;
mod values;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use weir_units::{Bytes, Rate};

pub(crate) use demo_live::DemoLive;
use examples::{
    AGENT_EXAMPLES, COMPLETIONS_EXAMPLES, DEMO_EXAMPLES, DEMO_LIVE_EXAMPLES, DOCTOR_EXAMPLES, KEY_EXAMPLES,
    LAB_EXAMPLES, LIVE_EXAMPLES, MEDIA_EXAMPLES, RECV_EXAMPLES, SEND_EXAMPLES, STREAM_EXAMPLES, TOP_EXAMPLES,
};
pub(crate) use lab::{Lab, LabList, LabPlot, LabReport, LabRun, LabVerify, Runs, Scenarios};
pub use recv::Recv;
pub(crate) use schemes::{LAYERED_DEFAULT, PACED_DEFAULT};
pub use send::{Agent, CciChoice, Rates, SendFile, SendLive, SendMedia, SendStream};
pub(crate) use send::{Authenticate, Secrecy};
pub use values::SessionSource;
pub(crate) use values::ValueError;

use crate::exit::{self, Exit, Failure};

/// Sends one thing to many receivers, each at the rate that its own path can fairly carry.
#[derive(Debug, Parser)]
#[command(name = "weir", version, arg_required_else_help = true, max_term_width = 110, after_help = TOP_EXAMPLES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send files to a multicast group, or a live stream to its viewers.
    #[command(subcommand, after_help = SEND_EXAMPLES)]
    Send(SendWhat),
    /// Receive a session, where each file appears under its name once it is complete and verified, or a live stream.
    #[command(after_help = RECV_EXAMPLES, after_long_help = with_exit_codes(RECV_EXAMPLES))]
    Recv(Box<Recv>),
    /// Serve members of a stream near them: keep what the sender sends, and send it again to those who lack it.
    #[command(after_help = AGENT_EXAMPLES, after_long_help = with_exit_codes(AGENT_EXAMPLES))]
    Agent(Box<Agent>),
    /// Say in words what a session description holds.
    Describe(Describe),
    /// Make the key by which receivers know a sender, or show it.
    #[command(subcommand, after_help = KEY_EXAMPLES)]
    Key(Key),
    /// Check what Weir needs of this host and its network: interface, route, groups, IGMP, firewall, buffers, clock.
    #[command(after_help = DOCTOR_EXAMPLES, after_long_help = with_exit_codes(DOCTOR_EXAMPLES))]
    Doctor(Box<Doctor>),
    /// List the congestion control schemes, where they come from, and their settings.
    Schemes,
    /// Show it on this machine: one sender, several receivers behind modelled links, and a report of how each fared.
    #[command(after_help = DEMO_EXAMPLES, after_long_help = with_exit_codes(DEMO_EXAMPLES))]
    Demo(Box<Demo>),
    /// Show layered video on this machine: one sender, receivers behind modelled links, and a report with the pictures that each put out.
    #[command(after_help = DEMO_LIVE_EXAMPLES, after_long_help = with_exit_codes(DEMO_LIVE_EXAMPLES))]
    DemoLive(Box<DemoLive>),
    /// Replay the papers' experiments, or any network of your own, in simulation.
    #[command(subcommand, after_help = LAB_EXAMPLES)]
    Lab(Lab),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to write it for.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands, for packages.
    #[command(hide = true)]
    Man {
        /// Folder to put them in, made if missing.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// What can be sent.
#[derive(Debug, Subcommand)]
pub(crate) enum SendWhat {
    /// Send files and folders, over and over, until the time is up or enough receivers have them.
    #[command(after_help = SEND_EXAMPLES, after_long_help = with_exit_codes(SEND_EXAMPLES))]
    File(Box<SendFile>),
    /// Pace a live stream to several viewers, to each at the rate that the path to it can fairly carry.
    #[command(after_help = LIVE_EXAMPLES, after_long_help = with_exit_codes(LIVE_EXAMPLES))]
    Live(Box<SendLive>),
    /// Send layered video to any number of receivers: each takes as many layers as its own path can fairly carry.
    #[command(after_help = MEDIA_EXAMPLES, after_long_help = with_exit_codes(MEDIA_EXAMPLES))]
    Media(Box<SendMedia>),
    /// Send a stream of bytes to any number of receivers: each gets all of it, in order.
    #[command(after_help = STREAM_EXAMPLES, after_long_help = with_exit_codes(STREAM_EXAMPLES))]
    Stream(Box<SendStream>),
}

/// The options of a command with these arguments, so that each default is declared once.
fn defaults<'a, T: Args>(arguments: impl IntoIterator<Item = &'a str>) -> T {
    parsed(arguments.into_iter().map(OsString::from)).expect("the arguments are those that are required")
}

fn from_words<T: Args>(words: impl IntoIterator<Item = OsString>) -> Result<T, Failure> {
    let program = OsString::from("weir");
    parsed(std::iter::once(program).chain(words)).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

fn parsed<T: Args>(words: impl Iterator<Item = OsString>) -> clap::error::Result<T> {
    T::from_arg_matches(&T::augment_args(clap::Command::new("weir")).try_get_matches_from(words)?)
}

/// What a command tells while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Output {
    /// Print events as JSON, one a line, instead of text for people; docs/events.md describes them.
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Say nothing but errors.
    #[arg(short, long, conflicts_with = "json", help_heading = "Output")]
    pub quiet: bool,

    /// Write every packet to this file (pcapng), for Wireshark.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub pcap: Option<PathBuf>,

    /// Serve metrics for Prometheus over HTTP at this address and port, or at this port of the loopback interface; anybody who reaches it can read them. docs/metrics.md lists them.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::local_listener, help_heading = "Output")]
    pub metrics: Option<SocketAddr>,
}

/// `weir describe`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// The session description: a file, - for standard input, or an http(s) address.
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionSource,
}

/// `weir key`.
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a new key: the secret one in a file of your own, the public one next to it.
    New(KeyNew),
    /// Print the public key that receivers need.
    Show(KeyShow),
    /// Print this host's name and public key, as the sender's lists of hosts for --expect and --readers have them.
    Host(KeyHost),
}

/// `weir key host`.
#[derive(Debug, Args)]
pub(crate) struct KeyHost {
    /// The name under which the host receives, as for `weir recv --name` [default: this host's name].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// `weir key new`.
#[derive(Debug, Args)]
pub(crate) struct KeyNew {
    /// File for the secret key; the public one goes to FILE.pub [default: $XDG_CONFIG_HOME/weir/sender.key, which `weir send` takes by itself].
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Replace a key that is there. Receivers that know the old one will refuse the new one.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `weir key show`.
#[derive(Debug, Args)]
pub(crate) struct KeyShow {
    /// File of a secret key, a public key or a session description [default: $XDG_CONFIG_HOME/weir/sender.key].
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `weir doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Check for this session: a description's file, - for standard input, or an http(s) address [default: for any session].
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<SessionSource>,

    /// Without a session: the multicast group and port to try.
    #[arg(long, value_name = "GROUP:PORT", value_parser = values::group, default_value = "239.255.0.1:5004", conflicts_with = "session")]
    pub(crate) to: SocketAddr,

    /// Network interface to check, by name (eth0) or by its address [default: the one that the route to the group takes].
    #[arg(long, value_name = "NAME|ADDR")]
    pub(crate) iface: Option<String>,

    /// How many routers the packets to other hosts may pass, plus one; 1 keeps them in the local network.
    #[arg(long, value_name = "HOPS", default_value_t = 1)]
    pub(crate) ttl: u8,

    /// How long to listen: for the session, for a querier, and for other hosts on which weir doctor runs at the same time.
    #[arg(long = "for", value_name = "DURATION", value_parser = values::span, default_value = "5s")]
    pub(crate) duration: Duration,

    /// Print events as JSON, one a line, instead of a table; docs/events.md describes them.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `weir demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// File to send [default: one made for the occasion, of --size].
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Size of the file that is made, in bytes: 12.5 MB take a 2 Mbit/s link about a minute.
    #[arg(long, value_name = "BYTES", default_value = "12.5MB", value_parser = values::size, conflicts_with = "file")]
    pub(crate) size: Bytes,

    /// Rates of the receivers' links, in bits a second; one receiver each. The highest rate that is sent follows the fastest, if --rates does not say
    /// it.
    #[arg(long, value_name = "RATE,…", value_delimiter = ',', default_value = "2M,8M,32M,100M", value_parser = link_rate)]
    pub(crate) links: Vec<Rate>,

    /// One-way delay of every link.
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = values::span)]
    pub(crate) delay: Duration,

    /// Buffer of every link, as the time that it takes to drain.
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = values::span)]
    pub(crate) buffer: Duration,

    /// Share of packets that every link loses at random, such as 2%.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = values::loss)]
    pub(crate) loss: f64,

    #[command(flatten)]
    pub(crate) rates: Rates,

    /// Give up after this long [default: six times what the slowest link needs at best, and a minute].
    #[arg(long = "for", value_name = "DURATION", value_parser = values::span)]
    pub(crate) duration: Option<Duration>,

    /// Folder for everything that the demonstration writes; its report is report.html in it.
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    pub(crate) out: PathBuf,
}

/// The rate of a demonstration link.
fn link_rate(text: &str) -> Result<Rate, &'static str> {
    let rate = text.trim().parse::<Rate>().ok().filter(|rate| *rate >= Rate::from_kbps(10));
    rate.ok_or("expected rates of 10k or more, separated by commas, such as 2M,8M,32M,100M")
}

fn with_exit_codes(examples: &str) -> String {
    format!("{examples}\n\n{}", exit::table())
}

#[cfg(test)]
mod tests;
