//! Many small files next to one archive of the same files: how long each takes to one receiver, in memory and on disk. And what a receiver
//! fetches twice that is killed again and again.
//!
//! Nothing is deleted before the end: where many files were deleted in the last minutes, ext4 takes 1 ms to make one, in place of 0.05
//! (docs/performance.md).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use weir_testkit::netns::{Network, Scratch, Session, generated_file};
use weir_units::{Bytes, Random};

use crate::Options;
use crate::summary::Spread;

/// What is measured of small files.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct SmallOptions {
    /// How many small files.
    #[arg(long, value_delimiter = ',', default_value = "5000,100000")]
    small_files: Vec<u32>,

    /// Bytes of each.
    #[arg(long, default_value = "2kB")]
    small_size: Bytes,

    /// Rates that are offered, as `weir send file --rates` takes them.
    #[arg(long, default_value = "100M")]
    small_rates: String,

    /// A folder on a disk [default: that of --summary].
    #[arg(long)]
    small_disk: Option<PathBuf>,

    /// How often a receiver of the files is killed while they come, in one more run of each.
    #[arg(long, default_value_t = 20)]
    small_kills: u32,

    /// Rates that are offered in that run: a receiver that begins again takes a second or two.
    #[arg(long, default_value = "20M")]
    small_kill_rates: String,
}

/// Fills the table.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let disk = options.small.small_disk.clone().or_else(|| options.summary.parent().map(Path::to_owned));
    let disk = disk.unwrap_or_default();
    let places = || [("memory", Scratch::new()), ("disk", Scratch::in_folder(&disk))];
    let (mut rows, mut scratches) = (Vec::new(), Vec::new());
    println!(
        "\nthe most files to a receiver that is killed {} times, next to one that is not",
        options.small.small_kills
    );
    println!(
        "{:<10}{:<10}{:<12}{:<14}{:<14}{:<14}fetched twice",
        "files", "on", "is asked", "killed, s", "control, s", "lives"
    );
    if let Some(files) = options.small.small_files.iter().max() {
        for is_asked in [false, true] {
            for (place, scratch) in places() {
                rows.push(measure_kills(options, weir, *files, is_asked, place, &scratch)?);
                scratches.push(scratch);
            }
        }
    }
    println!(
        "\nsmall files of {} to one receiver at {}, next to one archive of them, in turn",
        options.small.small_size, options.small.small_rates
    );
    println!("{:<10}{:<10}{:<22}{:<22}files to archive", "files", "on", "files, s", "archive, s");
    for files in &options.small.small_files {
        for (place, scratch) in places() {
            rows.push(measure_one(options, weir, *files, place, &scratch)?);
            scratches.push(scratch);
        }
    }
    Ok(Value::Array(rows))
}

fn measure_one(options: &Options, weir: &Path, files: u32, place: &str, scratch: &Scratch) -> Result<Value, String> {
    let tree = make_tree(options, files, scratch)?;
    let archive = scratch.join("archive");
    run(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&tree).arg("."))?;
    let (mut of_files, mut of_archive) = (Vec::new(), Vec::new());
    for repetition in 1..=options.repeat {
        eprintln!("{files} files, {place}, {repetition} of {}", options.repeat);
        of_files.push(transfer(options, weir, scratch, &tree, &scratch.folder(format!("files-{repetition}")))?);
        of_archive.push(transfer(options, weir, scratch, &archive, &scratch.folder(format!("archive-{repetition}")))?);
    }
    let ratio = Spread::of(of_files.iter().zip(&of_archive).map(|(files, archive)| files / archive));
    let [of_files, of_archive] = [of_files, of_archive].map(Spread::of);
    println!("{files:<10}{place:<10}{:<22}{:<22}{ratio}", of_files.to_string(), of_archive.to_string());
    Ok(json!({
        "files": files,
        "on": place,
        "files_secs": of_files.json(),
        "archive_secs": of_archive.json(),
        "files_to_archive": ratio.json(),
    }))
}

/// A folder with so many files in it.
fn make_tree(options: &Options, files: u32, scratch: &Scratch) -> Result<PathBuf, String> {
    let tree = scratch.folder("tree");
    let per_folder = 1000;
    for number in 0..files {
        let folder = tree.join(format!("{:03}", number / per_folder));
        if number % per_folder == 0 {
            fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        generated_file(&folder.join(format!("{number:06}")), options.small.small_size.count(), u64::from(number));
    }
    Ok(tree)
}

/// What a receiver fetches that is killed again and again, over what one fetches that is not. The sender of a session with receipts asks both
/// what they lack.
fn measure_kills(
    options: &Options,
    weir: &Path,
    files: u32,
    is_asked: bool,
    place: &str,
    scratch: &Scratch,
) -> Result<Value, String> {
    let tree = make_tree(options, files, scratch)?;
    let outs = ["killed", "control"].map(|name| scratch.folder(name));
    let receipts = ["--receipts", "2"].iter().filter(|_| is_asked).map(|word| (*word).to_owned());
    let words = send_words(options, &options.small.small_kill_rates).chain(receipts);
    let session = Session::new(weir, &tree, scratch.path()).words(words);
    let network = Network::new().receivers(2).build();
    session.describe(network.sender());
    let recv = |index: usize| session.recv(network.receiver(index), &outs[index]).start();
    let (mut killed, control) = (recv(0), recv(1));
    weir_testkit::netns::pause(HEAD_START);
    let begun = Instant::now();
    let sender = session.send(network.sender()).start();
    let needed = u64::from(files) * options.small.small_size.count();
    let (mut random, mut received, mut lives, mut useful) = (Random::new(u64::from(files), "kills"), 0, 1, 0);
    // A life lasts for an even part of what is missing, more or less, but at the end.
    for left in (1..=options.small.small_kills).rev() {
        let step = (needed.saturating_sub(useful) / u64::from(left + 1)).max(1);
        let until = (useful + random.below(2 * step)).min(needed * 9 / 10);
        // At the moment at which it says how much it has.
        let progress = killed.event("progress", RUN_LIMIT, |progress| {
            progress["received_bytes"].as_u64() > Some(0) && progress["useful_bytes"].as_u64() >= Some(until)
        });
        lives += 1;
        useful = progress["useful_bytes"].as_u64().unwrap_or(0);
        received += progress["received_bytes"].as_u64().unwrap_or(0);
        eprintln!("killed with {useful} of {needed} bytes, of {received} received");
        killed.kill();
        killed = recv(0);
        if useful > needed * 9 / 10 {
            // It may be through before it says anything.
            break;
        }
    }
    let killed = killed.wait(RUN_LIMIT);
    let killed_secs = begun.elapsed().as_secs_f64();
    let control = control.wait(RUN_LIMIT);
    sender.kill();
    for (done, out) in [(&killed, &outs[0]), (&control, &outs[1])] {
        if !done.is_success() {
            return Err(done.told());
        }
        run(Command::new("diff").arg("-r").arg(&tree).arg(out.join("tree")))?;
    }
    received += killed.count("received_bytes");
    let twice = received as f64 / control.count("received_bytes") as f64 - 1.0;
    let control_secs = control.seconds();
    let [killed_text, control_text] = [killed_secs, control_secs].map(|secs| format!("{secs:.1}"));
    let asked = if is_asked { "yes" } else { "no" };
    println!("{files:<10}{place:<10}{asked:<12}{killed_text:<14}{control_text:<14}{lives:<14}{:.1} %", twice * 100.0);
    Ok(json!({
        "files": files,
        "on": place,
        "is_asked": is_asked,
        "lives": lives,
        "killed_secs": killed_secs,
        "control_secs": control_secs,
        "fetched_twice": twice,
    }))
}

fn send_words<'o>(options: &'o Options, rates: &'o str) -> impl Iterator<Item = String> + 'o {
    ["--rates", rates].into_iter().chain(options.send_args.split_whitespace()).map(str::to_owned)
}

/// Seconds from the sender's start to the end of the receiver, which has all of it.
fn transfer(options: &Options, weir: &Path, scratch: &Scratch, input: &Path, out: &Path) -> Result<f64, String> {
    let words = send_words(options, &options.small.small_rates);
    let session = Session::new(weir, input, scratch.path()).words(words);
    let network = Network::new().receivers(1).build();
    session.describe(network.sender());
    let receiver = session.recv(network.receiver(0), out).start();
    weir_testkit::netns::pause(HEAD_START);
    let begun = Instant::now();
    let sender = session.send(network.sender()).start();
    let done = receiver.wait(RUN_LIMIT);
    let seconds = begun.elapsed().as_secs_f64();
    sender.kill();
    if !done.is_success() {
        return Err(done.told());
    }
    let name = input.file_name().ok_or("an input has a name")?;
    run(Command::new("diff").arg("-r").arg(input).arg(out.join(name)))?;
    Ok(seconds)
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("cannot run {command:?}: {error}")),
    }
}

const HEAD_START: Duration = Duration::from_millis(500);
const RUN_LIMIT: Duration = Duration::from_secs(600);
