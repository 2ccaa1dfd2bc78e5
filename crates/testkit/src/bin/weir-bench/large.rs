//! Large files: whether the whole transfer is as fast as its first pass, in which each source symbol is sent once. In memory and on disk, at a given
//! rate and as fast as it goes, with and without loss, next to uftp and to one TCP of the kernel.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use weir_testkit::netns::{Finished, Network, Process, Rival, Scratch, Session, generated_file, in_path, pause};
use weir_units::Bytes;

use crate::Options;
use crate::speed::Job;
use crate::stream::mark;
use crate::uftp;

/// What is measured of large files.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct LargeOptions {
    /// Bytes of the large file. In memory there must be room for it twice.
    #[arg(long, default_value = "1GB")]
    large_size: Bytes,

    /// Rates that are offered, as `weir send file --rates` takes them, one table row each; 10G is more than the machine has.
    #[arg(long, value_delimiter = ',', default_value = "800M,10G")]
    large_rates: Vec<String>,

    /// Losses, as `weir recv --link loss=` takes them: where the congestion control sees them, if there is any.
    #[arg(long, value_delimiter = ',', default_value = "0%,1%")]
    large_loss: Vec<String>,

    /// Where the files are.
    #[arg(long, value_delimiter = ',', default_value = "memory,disk")]
    large_on: Vec<Place>,

    /// A folder on a disk [default: that of --summary].
    #[arg(long)]
    large_disk: Option<PathBuf>,

    /// Leaves uftp and TCP out.
    #[arg(long)]
    large_alone: bool,
}

/// Where a table's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Place {
    /// `/dev/shm`.
    Memory,
    /// `--large-disk`.
    Disk,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Memory => "memory",
            Place::Disk => "disk",
        }
    }

    fn scratch(self, options: &Options) -> Scratch {
        let disk = options.large.large_disk.as_deref().or(options.summary.parent()).unwrap_or(Path::new("."));
        match self {
            Place::Memory => Scratch::new(),
            Place::Disk => Scratch::in_folder(disk),
        }
    }
}

/// Fills the table.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let size = options.large.large_size;
    println!(
        "\n{} MB to one receiver, Mbit/s; the limit for the whole over the first pass is {LIMIT}",
        size.count() / 1_000_000
    );
    println!(
        "{:<9}{:<12}{:<8}{:>12}{:>12}{:>12}{:>14}{:>18}{:>18}{:>10}",
        "on",
        "rates",
        "loss",
        "first pass",
        "whole",
        "ratio",
        "bytes ÷ file",
        "CPU s/GB s, r",
        "peak MB s, r",
        "dropped"
    );
    let mut rows = Vec::new();
    for place in &options.large.large_on {
        let scratch = place.scratch(options);
        let file = scratch.join("input");
        generated_file(&file, size.count(), 1);
        for (rates, loss) in options
            .large
            .large_rates
            .iter()
            .flat_map(|rates| options.large.large_loss.iter().map(move |loss| (rates, loss)))
        {
            for repetition in 1..=options.repeat {
                eprintln!("{}, {rates}, {loss}, {repetition} of {}", place.name(), options.repeat);
                rows.push(transfer(options, weir, (*place, &scratch, &file), rates, loss)?);
            }
        }
        if !options.large.large_alone {
            rows.extend(by_uftp(*place, &scratch, &file, size)?);
        }
    }
    if !options.large.large_alone {
        rows.push(by_tcp());
    }
    Ok(json!({ "size_bytes": size.count(), "rows": rows }))
}

/// One session of weir.
fn transfer(
    options: &Options,
    weir: &Path,
    (place, scratch, file): (Place, &Scratch, &Path),
    rates: &str,
    loss: &str,
) -> Result<Value, String> {
    let words = ["--rates", rates, "--receipts", "1"].into_iter().chain(options.send_args.split_whitespace());
    // A folder of its own: a sender that finds what an earlier one left goes on after its source symbols.
    let session_folder = Scratch::in_folder(scratch.path());
    let session = Session::new(weir, file, session_folder.path()).words(words);
    let network = Network::new().receivers(1).build();
    session.describe(network.sender());
    let out = scratch.folder("out");
    let link = (!loss.starts_with('0')).then(|| format!("loss={loss}"));
    let receiver = session.recv(network.receiver(0), &out);
    let receiver = receiver.args(link.iter().flat_map(|link| ["--link", link])).start();
    pause(HEAD_START);
    let sender = session.send(network.sender()).start();
    let complete = verified_at(&receiver);
    let (received, sent) = (receiver.wait(RUN_LIMIT), sender.wait(SHORT));
    if let Some(failed) = [&received, &sent].into_iter().find(|done| !done.is_success()) {
        return Err(failed.told());
    }
    Job { file, folders: std::slice::from_ref(&out), scratch: scratch.path(), limit: RUN_LIMIT }.verify()?;
    std::fs::remove_dir_all(&out).map_err(|error| format!("cannot remove {}: {error}", out.display()))?;
    let bytes = options.large.large_size.count();
    let (began, first_pass) = first_pass(&sent).ok_or("the sender told of no whole pass")?;
    let whole = complete.saturating_duration_since(began).as_secs_f64();
    Ok(row(place, rates, loss, bytes, first_pass, whole, &sent, &received))
}

/// When the receiver has told of its verified file.
fn verified_at(receiver: &Process) -> Instant {
    let is_file = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|event| event["event"] == "file");
    receiver.line(RUN_LIMIT, is_file).at
}

/// When the sender began, and how many seconds after that it had sent as much content as there is in the file.
fn first_pass(sent: &Finished) -> Option<(Instant, f64)> {
    let event = |text: &str| serde_json::from_str::<Value>(text).ok();
    let began = sent.out.iter().find(|line| event(&line.text).is_some_and(|event| event["event"] == "start"))?.at;
    let progress = sent.events("progress");
    let end = sent.last_event("end");
    let mut last = (0.0, 0.0);
    for one in progress.iter().chain([&end]) {
        let (seconds, passes) = (one["t_s"].as_f64().or(one["seconds"].as_f64())?, one["passes"].as_f64()?);
        if passes >= 1.0 {
            return Some((began, last.0 + (seconds - last.0) * (1.0 - last.1) / (passes - last.1)));
        }
        last = (seconds, passes);
    }
    None
}

#[expect(clippy::too_many_arguments, reason = "each is a column")]
fn row(
    place: Place,
    rates: &str,
    loss: &str,
    bytes: u64,
    first_pass: f64,
    whole: f64,
    sent: &Finished,
    received: &Finished,
) -> Value {
    let gigabytes = bytes as f64 / 1e9;
    let ratio = first_pass / whole;
    let over = received.count("received_bytes") as f64 / bytes as f64;
    let cpu = [sent, received].map(|end| end.usage.cpu().as_secs_f64() / gigabytes);
    let peak = [sent, received].map(|end| end.usage.peak_memory_bytes);
    let dropped = received.count("host_dropped_packets");
    let mbps = |seconds: f64| gigabytes * 8e3 / seconds;
    println!(
        "{:<9}{rates:<12}{loss:<8}{:>12.0}{:>12.0}{:>12}{over:>14.3}{:>18}{:>18}{dropped:>10}",
        place.name(),
        mbps(first_pass),
        mbps(whole),
        format!("{ratio:.3} {}", mark(ratio >= LIMIT)),
        format!("{:.2}, {:.2}", cpu[0], cpu[1]),
        format!("{}, {}", peak[0] / 1_000_000, peak[1] / 1_000_000),
    );
    json!({
        "tool": "weir",
        "on": place.name(),
        "rates": rates,
        "loss": loss,
        "first_pass_mbps": mbps(first_pass),
        "mbps": mbps(whole),
        "whole_to_first_pass": ratio,
        "holds": ratio >= LIMIT,
        "received_bytes_to_file": over,
        "sender_cpu_secs_per_gb": cpu[0],
        "receiver_cpu_secs_per_gb": cpu[1],
        "sender_peak_memory_bytes": peak[0],
        "receiver_peak_memory_bytes": peak[1],
        "host_dropped_packets": dropped,
        "ends": [sent.last_event("end"), received.last_event("end")],
    })
}

/// One transfer by uftp without loss, where uftp is there.
fn by_uftp(place: Place, scratch: &Scratch, file: &Path, size: Bytes) -> Result<Option<Value>, String> {
    if !in_path("uftp") || !in_path("uftpd") {
        println!("uftp is left out: it is not installed");
        return Ok(None);
    }
    let network = Network::new().receivers(1).build();
    let folders = [scratch.folder("uftp")];
    let run =
        uftp::transfer(&network, &Job { file, folders: &folders, scratch: scratch.path(), limit: RUN_LIMIT }, None)?;
    std::fs::remove_dir_all(&folders[0]).map_err(|error| format!("cannot remove what uftp received: {error}"))?;
    let seconds = run.own_seconds.unwrap_or(run.seconds[0]);
    let mbps = size.count() as f64 * 8e-6 / seconds;
    println!("{:<9}uftp -R -1  {:<8}{:>12}{mbps:>12.0}", place.name(), "0%", "");
    Ok(Some(json!({ "tool": "uftp", "on": place.name(), "mbps": mbps })))
}

/// What one TCP gets between the same hosts; it writes nothing down.
fn by_tcp() -> Value {
    let network = Network::new().receivers(1).build();
    let rival = Rival::start(&network, 0, "cubic");
    pause(TCP_SPAN / 5);
    let (begun, before) = (Instant::now(), rival.received_bytes());
    pause(TCP_SPAN);
    let bytes = Bytes::new(rival.received_bytes() - before);
    let mbps = bytes.count() as f64 * 8e-6 / begun.elapsed().as_secs_f64();
    println!("{:<9}one TCP     {:<8}{:>12}{mbps:>12.0}", "nowhere", "0%", "");
    json!({ "tool": "tcp", "mbps": mbps })
}

/// What the whole transfer's rate over the first pass's is to be at least.
const LIMIT: f64 = 0.9;
const HEAD_START: Duration = Duration::from_millis(500);
const RUN_LIMIT: Duration = Duration::from_secs(1200);
/// Receipts and the last words take less.
const SHORT: Duration = Duration::from_secs(60);
const TCP_SPAN: Duration = Duration::from_secs(5);
