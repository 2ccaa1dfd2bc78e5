//! Many small files next to one archive of the same files: how long each takes to one receiver, in memory and on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use weir_testkit::netns::{Network, Scratch, Session, generated_file};
use weir_units::Bytes;

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
}

/// Fills the table.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let disk = options.small.small_disk.clone().or_else(|| options.summary.parent().map(Path::to_owned));
    let disk = disk.unwrap_or_default();
    println!(
        "\nsmall files of {} to one receiver at {}, next to one archive of them, in turn",
        options.small.small_size, options.small.small_rates
    );
    println!("{:<10}{:<10}{:<22}{:<22}files to archive", "files", "on", "files, s", "archive, s");
    let mut rows = Vec::new();
    for files in &options.small.small_files {
        for (place, scratch) in [("memory", Scratch::new()), ("disk", Scratch::in_folder(&disk))] {
            rows.push(measure_one(options, weir, *files, place, &scratch)?);
        }
    }
    Ok(Value::Array(rows))
}

fn measure_one(options: &Options, weir: &Path, files: u32, place: &str, scratch: &Scratch) -> Result<Value, String> {
    let tree = scratch.folder("tree");
    let per_folder = 1000;
    for number in 0..files {
        let folder = tree.join(format!("{:03}", number / per_folder));
        if number % per_folder == 0 {
            fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        generated_file(&folder.join(format!("{number:06}")), options.small.small_size.count(), u64::from(number));
    }
    let archive = scratch.join("archive");
    run(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&tree).arg("."))?;
    let (mut of_files, mut of_archive) = (Vec::new(), Vec::new());
    for repetition in 1..=options.repeat {
        eprintln!("{files} files, {place}, {repetition} of {}", options.repeat);
        of_files.push(transfer(options, weir, scratch, &tree)?);
        of_archive.push(transfer(options, weir, scratch, &archive)?);
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

/// Seconds from the sender's start to the end of the receiver, which has all of it.
fn transfer(options: &Options, weir: &Path, scratch: &Scratch, input: &Path) -> Result<f64, String> {
    let out = scratch.folder("out");
    let words = ["--rates", &options.small.small_rates].map(str::to_owned);
    let session = Session::new(weir, input, scratch.path()).words(words);
    let network = Network::new().receivers(1).build();
    session.describe(network.sender());
    let receiver = session.recv(network.receiver(0), &out).start();
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
    fs::remove_dir_all(&out).map_err(|error| format!("cannot remove {}: {error}", out.display()))?;
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
