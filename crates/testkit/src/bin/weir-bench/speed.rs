//! The speed table: one file to 1 and to 16 receivers over an unshaped bridge, at a fixed rate and with congestion control, next to uftp
//! and to one TCP connection of the kernel to each receiver.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{Network, Rival, Scratch, Usage, generated_file, pause, same_content};

use crate::machine::CpuClock;
use crate::summary::Spread;
use crate::weir::Weir;
use crate::{NO_WEIR, Options, uftp};

/// A tool and a number of receivers, written `weir-16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    tool: Tool,
    receivers: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Uftp,
    /// At a fixed rate.
    Weir,
    /// With the default congestion control.
    Control,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Uftp => "uftp",
            Tool::Weir => "weir",
            Tool::Control => "control",
        }
    }
}

impl FromStr for Case {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Case, Self::Err> {
        let parsed = text.split_once('-').and_then(|(tool, receivers)| {
            let tool = [Tool::Uftp, Tool::Weir, Tool::Control].into_iter().find(|known| known.name() == tool)?;
            let receivers = receivers.parse().ok().filter(|count| (1..=200).contains(count))?;
            Some(Case { tool, receivers })
        });
        parsed.ok_or("expected uftp-N, weir-N or control-N, N from 1 to 200 receivers, such as weir-16")
    }
}

/// One transfer to be done.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// What is sent.
    pub(crate) file: &'a Path,
    /// Where each receiver puts it.
    pub(crate) folders: &'a [PathBuf],
    /// Room for everything else.
    pub(crate) scratch: &'a Path,
    /// When to give up.
    pub(crate) limit: Duration,
}

impl Job<'_> {
    /// The paths that the file has at the receivers.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = PathBuf> {
        let name = self.file.file_name().expect("a file has a name");
        self.folders.iter().map(move |folder| folder.join(name))
    }

    /// Fails unless every receiver has the bytes that were sent.
    pub(crate) fn verify(&self) -> Result<(), String> {
        match self.arrivals().find(|path| !same_content(self.file, path)) {
            Some(path) => Err(format!("{} is not what was sent", path.display())),
            None => Ok(()),
        }
    }
}

/// The figures of one transfer.
#[derive(Debug)]
pub(crate) struct Run {
    /// For each receiver, from the sender's start to its complete file.
    pub(crate) seconds: Vec<f64>,
    /// The slowest transfer as the tool itself tells it, without what comes before the data.
    pub(crate) own_seconds: Option<f64>,
    /// What the sender used.
    pub(crate) sender: Usage,
    /// What each receiver used.
    pub(crate) receivers: Vec<Usage>,
    /// What the whole machine used meanwhile.
    pub(crate) machine: CpuClock,
    /// What the tool says itself, for whoever asks why.
    pub(crate) details: Value,
}

/// A run's figures as the table has them.
#[derive(Debug, Clone, Copy)]
struct Figures {
    /// Of the slowest receiver, from the sender's start.
    goodput_mbps: f64,
    own_goodput_mbps: Option<f64>,
    sender_cpu_secs_per_gb: f64,
    receiver_cpu_secs_per_gb: f64,
    interrupt_secs_per_gb: f64,
    machine_cpu_secs_per_gb: f64,
    /// Bytes that were sent, and those that a receiver got on average, for each byte of the file, as far as the tool tells.
    sent_bytes_per_byte: f64,
    received_bytes_per_byte: f64,
}

impl Figures {
    fn of(run: &Run, bytes: u64) -> Figures {
        let gigabytes = bytes as f64 / 1e9;
        let mbps = |secs: f64| bytes as f64 * 8e-6 / secs;
        let receivers_cpu: f64 = run.receivers.iter().map(|usage| usage.cpu().as_secs_f64()).sum();
        Figures {
            goodput_mbps: mbps(run.seconds.iter().copied().fold(0.0, f64::max)),
            own_goodput_mbps: run.own_seconds.map(mbps),
            sender_cpu_secs_per_gb: run.sender.cpu().as_secs_f64() / gigabytes,
            receiver_cpu_secs_per_gb: receivers_cpu / run.receivers.len() as f64 / gigabytes,
            interrupt_secs_per_gb: run.machine.interrupt_secs / gigabytes,
            machine_cpu_secs_per_gb: run.machine.busy_secs / gigabytes,
            sent_bytes_per_byte: run.details["sender"]["sent_bytes"].as_f64().unwrap_or(f64::NAN) / bytes as f64,
            received_bytes_per_byte: mean_received(run) / bytes as f64,
        }
    }
}

fn mean_received(run: &Run) -> f64 {
    let ends = run.details["receivers"].as_array().map_or(&[][..], Vec::as_slice);
    ends.iter().map(|end| end["received_bytes"].as_f64().unwrap_or(f64::NAN)).sum::<f64>() / ends.len() as f64
}

/// Measures the cases asked for, tools in turn so that a busy moment of the machine meets all.
pub(crate) fn measure(options: &Options, weir: Option<&Path>) -> Result<Value, String> {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, options.size.count(), 1);
    let mut results: Vec<(Case, Vec<Run>)> = options.only.iter().map(|case| (*case, Vec::new())).collect();
    let mut counts: Vec<usize> = options.only.iter().map(|case| case.receivers).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut tcps: Vec<(usize, Vec<f64>)> = Vec::new();
    for (rank, count) in counts.into_iter().enumerate() {
        let rates = options.rates.get(rank).or(options.rates.last()).ok_or("--rates needs a rate")?;
        let network = Network::new().receivers(count).build();
        let mut of_tcp = Vec::new();
        for repetition in 1..=options.repeat {
            for (case, runs) in results.iter_mut().filter(|(case, _)| case.receivers == count) {
                eprintln!("{}-{count}, {repetition} of {}", case.tool.name(), options.repeat);
                runs.push(one_run(*case, &network, &file, (rates, options), weir)?);
            }
            of_tcp.push(slowest_tcp(&network));
        }
        tcps.push((count, of_tcp));
    }
    print_table(&results, &tcps, options.size.count());
    let tcps: Vec<Value> =
        tcps.iter().map(|(count, mbps)| json!({ "receivers": count, "slowest_mbps": mbps })).collect();
    let cases: Vec<Value> = results.iter().map(|(case, runs)| case_json(*case, runs, options.size.count())).collect();
    Ok(json!({
        "size_bytes": options.size.count(),
        "weir_rates": options.rates,
        "control_rates": options.control_rates,
        "tcp_to_each": tcps,
        "weir_send_args": options.send_args,
        "cases": cases,
        "weir_to_uftp": ratios(&results, (Tool::Weir, Tool::Uftp), options.size.count()),
        "control_to_weir": ratios(&results, (Tool::Control, Tool::Weir), options.size.count()),
    }))
}

fn one_run(
    case: Case,
    network: &Network,
    file: &Path,
    (rates, options): (&str, &Options),
    weir: Option<&Path>,
) -> Result<Run, String> {
    let scratch = Scratch::new();
    let folders: Vec<PathBuf> = (0..case.receivers).map(|index| scratch.folder(format!("{index}"))).collect();
    let job = Job { file, folders: &folders, scratch: scratch.path(), limit: RUN_LIMIT };
    let run = match case.tool {
        Tool::Uftp => uftp::transfer(network, &job, None)?,
        Tool::Weir | Tool::Control => {
            let rates = if case.tool == Tool::Control { &options.control_rates } else { rates };
            let mut send_words = vec!["--rates".to_owned(), rates.to_owned()];
            send_words.extend(options.send_args.split_whitespace().map(str::to_owned));
            Weir { program: weir.ok_or(NO_WEIR)?, send_words }.transfer(network, &job)?
        }
    };
    job.verify()?;
    Ok(run)
}

fn spread(runs: &[Run], bytes: u64, figure: impl Fn(Figures) -> f64) -> Spread {
    Spread::of(runs.iter().map(|run| figure(Figures::of(run, bytes))))
}

/// What the slowest of as many TCP connections gets as there are receivers, one to each, Mbit/s.
fn slowest_tcp(network: &Network) -> f64 {
    let rivals: Vec<Rival> =
        (0..network.receivers().len()).map(|index| Rival::start(network, index, "cubic")).collect();
    let received = || rivals.iter().map(Rival::received_bytes).collect::<Vec<u64>>();
    pause(TCP_WARM_UP);
    let before = received();
    pause(TCP_SPAN);
    let least = received().iter().zip(&before).map(|(after, before)| after - before).min();
    least.unwrap_or(0) as f64 * 8e-6 / TCP_SPAN.as_secs_f64()
}

fn print_table(results: &[(Case, Vec<Run>)], tcps: &[(usize, Vec<f64>)], bytes: u64) {
    println!(
        "\n{} MB over an unshaped bridge, median [least–greatest] of {} runs",
        bytes / 1_000_000,
        results[0].1.len()
    );
    println!(
        "{:<12}{:<24}{:<24}{:<20}{:<20}{:<20}{:<20}received",
        "",
        "Mbit/s to the slowest",
        "by its own clock",
        "CPU s/GB, sender",
        "a receiver",
        "in interrupts",
        "bytes/byte sent"
    );
    for (case, runs) in results {
        let column = |figure: fn(Figures) -> f64| spread(runs, bytes, figure).to_string();
        println!(
            "{:<12}{:<24}{:<24}{:<20}{:<20}{:<20}{:<20}{}",
            format!("{}-{}", case.tool.name(), case.receivers),
            column(|figures| figures.goodput_mbps),
            column(|figures| figures.own_goodput_mbps.unwrap_or(f64::NAN)),
            column(|figures| figures.sender_cpu_secs_per_gb),
            column(|figures| figures.receiver_cpu_secs_per_gb),
            column(|figures| figures.interrupt_secs_per_gb),
            column(|figures| figures.sent_bytes_per_byte),
            column(|figures| figures.received_bytes_per_byte),
        );
    }
    for (count, mbps) in tcps {
        println!("{:<12}{}", format!("tcp-{count}"), Spread::of(mbps.iter().copied()));
    }
}

fn case_json(case: Case, runs: &[Run], bytes: u64) -> Value {
    let column = |figure: fn(Figures) -> f64| spread(runs, bytes, figure).json();
    let each = |run: &Run| {
        json!({
            "receiver_seconds": run.seconds,
            "own_seconds": run.own_seconds,
            "sender_cpu_seconds": run.sender.cpu().as_secs_f64(),
            "receiver_cpu_seconds": run.receivers.iter().map(|usage| usage.cpu().as_secs_f64()).collect::<Vec<f64>>(),
            "sender_peak_memory_bytes": run.sender.peak_memory_bytes,
            "receiver_peak_memory_bytes": run.receivers.iter().map(|usage| usage.peak_memory_bytes).max(),
            "machine_cpu_seconds": run.machine.busy_secs,
            "interrupt_seconds": run.machine.interrupt_secs,
            "details": run.details,
        })
    };
    json!({
        "tool": case.tool.name(),
        "receivers": case.receivers,
        "verified": true,
        "goodput_mbps": column(|figures| figures.goodput_mbps),
        "own_clock_goodput_mbps": column(|figures| figures.own_goodput_mbps.unwrap_or(f64::NAN)),
        "sender_cpu_secs_per_gb": column(|figures| figures.sender_cpu_secs_per_gb),
        "receiver_cpu_secs_per_gb": column(|figures| figures.receiver_cpu_secs_per_gb),
        "interrupt_secs_per_gb": column(|figures| figures.interrupt_secs_per_gb),
        "machine_cpu_secs_per_gb": column(|figures| figures.machine_cpu_secs_per_gb),
        "sent_bytes_per_byte": column(|figures| figures.sent_bytes_per_byte),
        "received_bytes_per_byte": column(|figures| figures.received_bytes_per_byte),
        "runs": runs.iter().map(each).collect::<Vec<Value>>(),
    })
}

/// One tool over another, run by run, for each number of receivers that both have; printed too.
fn ratios(results: &[(Case, Vec<Run>)], (one, other): (Tool, Tool), bytes: u64) -> Vec<Value> {
    let of = |tool: Tool, receivers: usize| {
        results.iter().find(|(case, _)| *case == Case { tool, receivers }).map(|(_, runs)| runs.as_slice())
    };
    let counts = results.iter().filter(|(case, _)| case.tool == one).map(|(case, _)| case.receivers);
    let pairs = counts.filter_map(|count| Some((count, of(one, count)?, of(other, count)?)));
    let mut rows = Vec::new();
    for (count, ours, theirs) in pairs {
        let column = |figure: fn(Figures) -> f64| {
            let pairs = ours.iter().zip(theirs);
            Spread::of(pairs.map(|(one, other)| figure(Figures::of(one, bytes)) / figure(Figures::of(other, bytes))))
        };
        let goodput = column(|figures| figures.goodput_mbps);
        let own_clock = column(|figures| figures.own_goodput_mbps.unwrap_or(f64::NAN));
        let sender_cpu = column(|figures| figures.sender_cpu_secs_per_gb);
        let receiver_cpu = column(|figures| figures.receiver_cpu_secs_per_gb);
        println!(
            "{} / {} to {count}: goodput {goodput}, by their own clocks {own_clock}, CPU of the sender {sender_cpu}, of a receiver {receiver_cpu}",
            one.name(),
            other.name(),
        );
        rows.push(json!({
            "receivers": count,
            "goodput": goodput.json(),
            "own_clock_goodput": own_clock.json(),
            "sender_cpu": sender_cpu.json(),
            "receiver_cpu": receiver_cpu.json(),
        }));
    }
    rows
}

/// No tool takes that long.
const RUN_LIMIT: Duration = Duration::from_secs(300);
const TCP_WARM_UP: Duration = Duration::from_millis(500);
const TCP_SPAN: Duration = Duration::from_secs(2);
