//! One weir next to another, such as that of before a change: the same work over the same link by each in turn; time, and CPU of both ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use weir_testkit::netns::{LiveStream, Network, Scratch, generated_file};
use weir_units::{Bytes, Rate};

use crate::speed::{Job, Run};
use crate::stream;
use crate::weir::Weir;

/// What is compared with what.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct BaselineOptions {
    /// The weir program that the table `baseline` compares with.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) baseline: Option<PathBuf>,

    /// Pairs of runs in this table.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(6..))]
    baseline_pairs: u32,

    /// Bytes of each run in this table.
    #[arg(long, default_value = "200MB")]
    baseline_size: Bytes,

    /// Only the work whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    baseline_work: String,
}

/// What is sent, and how.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// A file, with these rates.
    File(&'static str),
    /// A stream over a tree.
    Stream,
    /// A live stream to one viewer.
    Live(PlayOut),
}

/// When a viewer gives out what arrived.
#[derive(Debug, Clone, Copy)]
enum PlayOut {
    /// As the program does by itself.
    Default,
    /// At once, without time for a repair, as programs without `--latency` do.
    AtOnce,
}

const WORK: [(&str, Work); 5] = [
    ("files at one rate, 200 Mbit/s", Work::File("200M")),
    ("files, default control, 1 to 200 Mbit/s", Work::File("1M..200M")),
    ("a stream over a tree", Work::Stream),
    ("a live stream", Work::Live(PlayOut::Default)),
    ("a live stream, given out at once", Work::Live(PlayOut::AtOnce)),
];

/// What a run took, in seconds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    time: f64,
    sender: f64,
    receiver: f64,
}

/// Fills the table.
pub(crate) fn measure(options: &BaselineOptions, weir: &Path, baseline: &Path) -> Result<Value, String> {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, options.baseline_size.count(), 1);
    let network = Network::new().links([LINK]).build();
    println!(
        "\n{} over {LINK}, next to {}: {} pairs",
        options.baseline_size,
        baseline.display(),
        options.baseline_pairs
    );
    println!("the median of each pair's ratio, (with 95 % certainty between)");
    println!("{:<42}{:<24}{:<24}CPU of the receiver", "", "time", "CPU of the sender");
    let mut rows = Vec::new();
    for (name, work) in WORK.iter().filter(|(name, _)| name.contains(&options.baseline_work)) {
        let mut pairs = Vec::new();
        for pair in 0..options.baseline_pairs {
            eprintln!("{name}, pair {} of {}", pair + 1, options.baseline_pairs);
            // The first run of a pair leaves warm caches to the second, so the programs take turns at being first.
            let (own, other) = if pair % 2 == 0 {
                let own = work.run(weir, &network, &file)?;
                (own, work.run(baseline, &network, &file)?)
            } else {
                let other = work.run(baseline, &network, &file)?;
                (work.run(weir, &network, &file)?, other)
            };
            pairs.push((own, other));
        }
        let ratio = |figure: fn(&Cost) -> f64| Median::of(pairs.iter().map(|(own, other)| figure(own) / figure(other)));
        let [time, sender, receiver] =
            [ratio(|cost| cost.time), ratio(|cost| cost.sender), ratio(|cost| cost.receiver)];
        println!("{name:<42}{:<24}{:<24}{receiver}", time.to_string(), sender.to_string());
        let costs = |of: fn(&(Cost, Cost)) -> Cost| pairs.iter().map(of).map(Cost::json).collect::<Vec<Value>>();
        rows.push(json!({
            "work": name,
            "time": time.json(),
            "sender_cpu": sender.json(),
            "receiver_cpu": receiver.json(),
            "own": costs(|pair| pair.0),
            "baseline": costs(|pair| pair.1),
        }));
    }
    Ok(json!({ "link_bps": LINK.bps(), "bytes": options.baseline_size.count(), "rows": rows }))
}

impl Work {
    fn run(self, weir: &Path, network: &Network, file: &Path) -> Result<Cost, String> {
        let scratch = Scratch::new();
        let folders = [scratch.folder("out")];
        let job = Job { file, folders: &folders, scratch: scratch.path(), limit: RUN_LIMIT };
        let run = match self {
            Work::Live(play_out) => return live(weir, network, file, play_out),
            Work::Stream => stream::transfer(network, &job, weir, Vec::new())?,
            Work::File(rates) => {
                let send_words = vec!["--rates".to_owned(), rates.to_owned()];
                Weir { program: weir, send_words }.transfer(network, &job)?
            }
        };
        job.verify()?;
        Ok(Cost::of(&run))
    }
}

/// The cost of what arrived: a live stream gives up packets that come too late, and the more it loses the sooner it is done.
fn live(weir: &Path, network: &Network, file: &Path, play_out: PlayOut) -> Result<Cost, String> {
    let options: &[&str] = match play_out {
        PlayOut::AtOnce if has_latency(weir)? => &["--latency", "0s"],
        PlayOut::AtOnce | PlayOut::Default => &[],
    };
    let started = Instant::now();
    let stream = LiveStream::start_with(network, weir, 0, file, "/dev/null", options);
    let (sent, seen) = (stream.sender.wait(RUN_LIMIT), stream.viewer.wait(RUN_LIMIT));
    let time = started.elapsed().as_secs_f64();
    if !(sent.is_success() && seen.is_success()) {
        return Err(format!("{}\n{}", sent.told(), seen.told()));
    }
    let size = file.metadata().map_err(|error| error.to_string())?.len() as f64;
    let arrived = seen.last_event("end")["payload_bytes"].as_f64().unwrap_or_default() / size;
    let [sender, receiver] = [&sent, &seen].map(|end| end.usage.cpu().as_secs_f64() / arrived);
    Ok(Cost { time: time / arrived, sender, receiver })
}

/// Whether the program can hold packets back until repairs may have come.
fn has_latency(weir: &Path) -> Result<bool, String> {
    let help = Command::new(weir).args(["send", "live", "--help"]).output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&help.stdout).contains("--latency"))
}

impl Cost {
    fn of(run: &Run) -> Cost {
        let [sender, receiver] = [run.sender, run.receivers[0]].map(|usage| usage.cpu().as_secs_f64());
        Cost { time: run.own_seconds.unwrap_or(run.seconds[0]), sender, receiver }
    }

    fn json(self) -> Value {
        json!({ "seconds": self.time, "sender_cpu_secs": self.sender, "receiver_cpu_secs": self.receiver })
    }
}

/// A median, and between what the median of very many would lie in 19 of 20 cases, whatever the distribution.
#[derive(Debug, Clone, Copy)]
struct Median {
    low: f64,
    middle: f64,
    high: f64,
}

impl Median {
    /// Of at least six.
    fn of(figures: impl IntoIterator<Item = f64>) -> Median {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (count, last) = (sorted.len(), sorted.len() - 1);
        let rank = outer(count);
        let middle = f64::midpoint(sorted[last / 2], sorted[count / 2]);
        Median { low: sorted[rank], middle, high: sorted[last - rank] }
    }

    fn json(self) -> Value {
        json!({ "low": self.low, "median": self.middle, "high": self.high })
    }
}

impl std::fmt::Display for Median {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ({:.2} to {:.2})", self.middle, self.low, self.high)
    }
}

/// How many of `count` figures at each end lie outside the interval: the most of which the chance that all of them, and one more, are on one
/// side of the median of the distribution is at most 2.5 %. Each is on either side with the same chance.
fn outer(count: usize) -> usize {
    // The chance of as many on one side as we are at, and of at most as many.
    let (mut chance, mut sum, mut rank) = (0.5_f64.powi(count as i32), 0.0, 0);
    loop {
        sum += chance;
        if sum > 0.025 {
            return rank.max(1) - 1;
        }
        chance *= (count - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
}

const LINK: Rate = Rate::from_mbps(300);
const RUN_LIMIT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of the sign test have these ranks, counted from 1: 1 of 6, 2 of 9, 4 of 15, 6 of 20.
    #[test]
    fn the_interval_of_a_median_is_that_of_the_sign_test() {
        assert_eq!([6, 9, 15, 20].map(outer), [0, 1, 3, 5]);
        let median = Median::of((1..=9).rev().map(f64::from));
        assert_eq!([median.low, median.middle, median.high], [2.0, 5.0, 8.0]);
    }
}
