//! What a demonstration consists of: the file, the folders, and the command line of each process.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_units::{Bytes, Rate};

use super::process::{self, Party};
use super::sample;
use crate::args;
use crate::exit::{Exit, Failure};
use crate::progress::seconds;
use crate::report::round_rate;
use crate::top;

/// Everything that is known before the first process starts.
#[derive(Debug)]
pub(super) struct Plan {
    program: PathBuf,
    /// The file that is sent.
    pub(super) input: PathBuf,
    /// Its name.
    pub(super) file: String,
    /// Its size.
    pub(super) bytes: Bytes,
    /// The receivers' links.
    pub(super) links: Vec<Rate>,
    /// What a link is like besides its rate, as `--link` takes it.
    link_traits: String,
    /// The same for people.
    pub(super) links_in_words: String,
    /// What both runs of the sender have in common.
    session_args: Vec<OsString>,
    /// Name of the scheme.
    pub(super) scheme: String,
    limit: Duration,
    /// Where the report goes.
    pub(super) out: PathBuf,
    run: PathBuf,
}

impl Plan {
    /// Makes the folders and the file.
    pub(super) fn prepare(args: &args::Demo, program: &Path) -> Result<Plan, Failure> {
        let run = fresh_folder(&args.out)?;
        let input = match &args.file {
            Some(file) => file.clone(),
            None => sample::write(&args.out, args.size)?,
        };
        let cannot_read = |error: io::Error| {
            Failure::new(Exit::Files, format!("cannot read {}: {error}; give a file that exists", input.display()))
        };
        let metadata = fs::metadata(&input).map_err(cannot_read)?;
        if !metadata.is_file() || metadata.len() == 0 {
            let message =
                format!("{} is not a file with something in it; the demonstration sends one file", input.display());
            return Err(Failure::new(Exit::Files, message));
        }
        let bytes = Bytes::new(metadata.len());
        let slowest = args.links.iter().min().copied().unwrap_or(Rate::from_mbps(1));
        let (link_traits, links_in_words) = link_traits(args.delay, args.buffer, args.loss);
        Ok(Plan {
            program: program.to_owned(),
            file: input.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes,
            links: args.links.clone(),
            link_traits,
            links_in_words,
            session_args: session_args(args, &input, &run)?,
            scheme: args.rates.cc.name.to_owned(),
            limit: args.duration.unwrap_or(bytes / slowest * 6 + Duration::from_secs(60)),
            out: args.out.clone(),
            input,
            run,
        })
    }

    /// What is about to happen, and how long it takes.
    pub(super) fn introduction(&self) -> String {
        let slowest = self.links.iter().min().copied().unwrap_or(Rate::ZERO);
        format!(
            "{}, {}, to {} receivers on this machine, over multicast. The slowest link, {}, needs {} at the very least.",
            self.file,
            self.bytes,
            self.links.len(),
            round_rate(slowest),
            seconds((self.bytes / slowest).as_secs_f64()),
        )
    }

    /// Has the session described, so that the receivers can start first.
    pub(super) fn describe(&self) -> Result<(), Failure> {
        let mut command = self.command(&self.session_args);
        command.arg("--describe");
        let output = command.output().map_err(Failure::of(Exit::Internal, "cannot start the sender"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(process::explain(
            "the sender, which only had to describe its session,",
            output.status,
            &String::from_utf8_lossy(&output.stderr),
        ))
    }

    /// The sender, in earnest.
    pub(super) fn sender(&self) -> Command {
        let mut command = self.command(&self.session_args);
        let limit = self.limit + Duration::from_secs(15);
        command.args(["--json", "--for", &format!("{}s", limit.as_secs())]);
        command
    }

    /// The receiver on link `i`.
    pub(super) fn receiver(&self, i: usize) -> Command {
        let link = format!("rate={},{}", self.links[i].bps(), self.link_traits);
        let mut command = self.command(&["recv".into()]);
        command.args(["--name", &format!("receiver-{}", i + 1)]);
        command.arg(self.run.join("weir.sdp")).arg("--out").arg(self.folder(i));
        command.args(["--iface", LOOPBACK, "--json", "--link", &link, "--for", &format!("{}s", self.limit.as_secs())]);
        command
    }

    /// Where the receiver on link `i` puts the file.
    pub(super) fn received(&self, i: usize) -> PathBuf {
        self.folder(i).join(self.input.file_name().unwrap_or_default())
    }

    /// Where the events (`.jsonl`) and the messages (`.log`) of a process go, without the ending.
    pub(super) fn trace(&self, party: Party) -> PathBuf {
        match party {
            Party::Sender => self.run.join("sender"),
            Party::Receiver(i) => self.folder(i),
        }
    }

    /// A process in words.
    pub(super) fn party(&self, party: Party) -> String {
        match party {
            Party::Sender => "the sender".to_owned(),
            Party::Receiver(i) => format!("the receiver on the link of {}", round_rate(self.links[i])),
        }
    }

    fn folder(&self, i: usize) -> PathBuf {
        self.run.join(format!("receiver-{}", i + 1))
    }

    fn command(&self, args: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args);
        command
    }
}

/// What describes the session, the same for the description and for the sending.
fn session_args(demo: &args::Demo, input: &Path, run: &Path) -> Result<Vec<OsString>, Failure> {
    let port = free_port().map_err(Failure::of(Exit::Network, "no UDP port is free on this machine"))?;
    let rates = &demo.rates;
    let offered = rates.offered();
    let mut args: Vec<OsString> = ["send", "file"].map(OsString::from).into();
    args.push(input.into());
    let mut option = |name: &str, value: OsString| args.extend([OsString::from(name), value]);
    option("--to", format!("{GROUP}:{port}").into());
    option("--iface", LOOPBACK.into());
    // Loopback states no speed: without a highest rate of the user's, that of the fastest link counts, where it is above the usual one.
    let fastest = demo.links.iter().max().copied().unwrap_or(Rate::ZERO).min(top::HIGHEST);
    let high = if rates.has_top() { offered.high } else { offered.high.max(fastest) };
    option("--rates", format!("{}..{}", offered.low.bps(), high.bps()).into());
    option("--ratio", offered.ratio.to_string().into());
    option("--cc", rates.cc.name.into());
    for setting in &rates.cc_set {
        option("--cc-set", format!("{}={}", setting.key, setting.value).into());
    }
    // The port is free on this machine, so as a session's number it is not in use here either.
    option("--tsi", port.to_string().into());
    option("--key", run.join("sender.key").into());
    option("--session", run.join("weir.sdp").into());
    option("--name", "weir demo".into());
    option("--receipts", demo.links.len().to_string().into());
    Ok(args)
}

/// A port that nobody uses at this moment, and whose two successors nobody uses either: receipts and probes go there.
pub(super) fn free_port() -> io::Result<u16> {
    for _ in 0..PORT_TRIES {
        let port = UdpSocket::bind(("0.0.0.0", 0))?.local_addr()?.port();
        let is_free = |port: u16| UdpSocket::bind(("0.0.0.0", port)).is_ok();
        if (1..=2).all(|after| port.checked_add(after).is_some_and(is_free)) {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// An empty folder `run` in `out`. One that is left from an earlier demonstration makes room; nothing else does.
pub(super) fn fresh_folder(out: &Path) -> Result<PathBuf, Failure> {
    let run = out.join("run");
    let mark = run.join(MARK);
    let cannot =
        |doing: &str| Failure::of(Exit::Files, format!("cannot {doing} {}; choose another --out", run.display()));
    if mark.exists() {
        fs::remove_dir_all(&run).map_err(cannot("empty"))?;
    }
    if run.exists() {
        let message =
            format!("{} exists and is not from a demonstration; move it away or choose another --out", run.display());
        return Err(Failure::new(Exit::Files, message));
    }
    fs::create_dir_all(&run).map_err(cannot("make"))?;
    fs::write(&mark, "The next `weir demo` removes this folder.\n").map_err(cannot("write in"))?;
    Ok(run)
}

/// What all links have in common: as `--link` takes it, and for people.
pub(super) fn link_traits(delay: Duration, buffer: Duration, loss: f64) -> (String, String) {
    let millis = |span: Duration| format!("{:.3}ms", span.as_secs_f64() * 1e3);
    let lossy = if loss > 0.0 { format!(", {} random loss", crate::progress::percent(loss)) } else { String::new() };
    let in_words = format!("{} ms delay, {} ms buffer{lossy}", delay.as_millis(), buffer.as_millis());
    (format!("delay={},buffer={},loss={loss}", millis(delay), millis(buffer)), in_words)
}

/// In the range for use within a site (RFC 2365 §6.1).
pub(super) const GROUP: &str = "239.255.77.1";
const PORT_TRIES: usize = 100;
pub(super) const LOOPBACK: &str = "127.0.0.1";
const MARK: &str = "made-by-weir-demo.txt";
