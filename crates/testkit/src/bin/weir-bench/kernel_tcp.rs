//! The simulator's TCP next to the kernel's: reno, cubic and bbr, alone and in pairs, over the same bottleneck.

mod simulated;

use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use weir_link::{Buffer, LinkConfig};
use weir_testkit::netns::{Between, Path, Rival, TokenBucket, has_ethtool, pause};
use weir_units::{Bytes, Rate};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct KernelTcpOptions {
    /// Bottlenecks next to which the kernel's TCP is measured, by name [default: all].
    #[arg(long, value_delimiter = ',')]
    bottlenecks: Vec<String>,

    /// Who sends in the table of the kernel's TCP: one congestion control, or two as reno+bbr [default: all].
    #[arg(long, value_delimiter = ',')]
    flows: Vec<String>,

    /// How long the kernel's TCP is watched, in seconds, after a warm-up of 10 s.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    tcp_seconds: u64,

    /// Runs of the simulator for each case, with a seed each.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Leaves the kernel out and shows what the simulator says.
    #[arg(long)]
    simulated_only: bool,
}

/// A bottleneck between two hosts.
#[derive(Debug, Clone, Copy)]
struct Bottleneck {
    name: &'static str,
    rate: Rate,
    /// Without the queue, in milliseconds.
    rtt_ms: u64,
    /// What the queue holds, as the time that the link needs for it.
    buffer_ms: u64,
    /// The kernel's token bucket; else a modelled link.
    is_bucket: bool,
}

/// What the flows of a case did.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    /// Payload, in Mbit/s, for each flow.
    goodput: [f64; 2],
    /// The mean time that the queue stood for, in milliseconds.
    queue_ms: f64,
    /// Packets dropped, a second.
    drops: f64,
}

impl Outcome {
    fn sum(&self) -> f64 {
        self.goodput[0] + self.goodput[1]
    }

    /// The first flow's part.
    fn share(&self) -> f64 {
        self.goodput[0] / self.sum()
    }

    fn mean(all: &[Outcome]) -> Option<Outcome> {
        let of = |figure: fn(&Outcome) -> f64| all.iter().map(figure).sum::<f64>() / all.len() as f64;
        (!all.is_empty()).then(|| Outcome {
            goodput: [of(|one| one.goodput[0]), of(|one| one.goodput[1])],
            queue_ms: of(|one| one.queue_ms),
            drops: of(|one| one.drops),
        })
    }

    fn json(&self) -> Value {
        json!({
            "goodput_mbps": self.goodput,
            "share": self.share(),
            "queue_ms": self.queue_ms,
            "drops_per_second": self.drops,
        })
    }
}

/// Measures all cases; pairs `repeat` times, since what they make of each other differs from run to run.
pub(crate) fn measure(options: &KernelTcpOptions, repeat: u32) -> Result<Value, String> {
    if !has_ethtool() {
        return Err("ethtool is missing: apt-get install ethtool".into());
    }
    let span = Duration::from_secs(options.tcp_seconds);
    println!(
        "\nTCP of the simulator ({} seeds) and of the kernel (pairs {repeat} times), {} s",
        options.seeds,
        span.as_secs()
    );
    println!("| bottleneck | flows | goodput, Mbit/s | ratio | share | ratio | queue, ms | ratio | drops/s |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let is_wanted = |wanted: &[String], name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let mut rows = Vec::new();
    for bottleneck in BOTTLENECKS.iter().filter(|one| is_wanted(&options.bottlenecks, one.name)) {
        let cases: Vec<&str> = CASES.into_iter().filter(|case| is_wanted(&options.flows, case)).collect();
        let times = |case: &str| if case.contains('+') { repeat as usize } else { 1 };
        let runs: Vec<&str> = cases.iter().flat_map(|case| vec![*case; times(case)]).collect();
        let mut kernel = Vec::new();
        for together in runs.chunks(bottleneck.at_once()).filter(|_| !options.simulated_only) {
            kernel.extend(together.iter().copied().zip(by_the_kernel(bottleneck, together, span)));
        }
        for case in cases {
            let simulated = simulated::run(bottleneck, &controls(case), span, options.seeds);
            let kernel: Vec<Outcome> =
                kernel.iter().filter(|(of, _)| *of == case).map(|(_, outcome)| *outcome).collect();
            rows.push(show(bottleneck, case, &kernel, &simulated));
        }
    }
    Ok(json!({ "seconds": span.as_secs(), "rows": rows }))
}

fn controls(case: &str) -> Vec<&str> {
    case.split('+').collect()
}

/// Runs cases at the same time, each between hosts of its own.
fn by_the_kernel(bottleneck: &Bottleneck, cases: &[&str], span: Duration) -> Vec<Outcome> {
    eprintln!("{}: {}", bottleneck.name, cases.join(", "));
    let paths: Vec<Path> = cases.iter().map(|_| Path::new(&bottleneck.between())).collect();
    thread::scope(|scope| {
        let runs: Vec<_> = cases
            .iter()
            .zip(&paths)
            .map(|(case, path)| scope.spawn(move || run(bottleneck, path, &controls(case), span)))
            .collect();
        runs.into_iter().map(|run| run.join().expect("a run is watched to its end")).collect()
    })
}

fn run(bottleneck: &Bottleneck, path: &Path, controls: &[&str], span: Duration) -> Outcome {
    let mut flows = Vec::new();
    for (number, control) in controls.iter().enumerate() {
        flows.push(path.connect(number as u16, control));
    }
    pause(WARM_UP);
    let received = || -> Vec<u64> { flows.iter().map(Rival::received_bytes).collect() };
    let (before, dropped_before) = (received(), path.waiting_and_dropped().1);
    let samples = span.as_millis() / SAMPLE.as_millis();
    let mut waiting = 0.0;
    let began = std::time::Instant::now();
    for _ in 0..samples {
        pause(SAMPLE);
        waiting += path.waiting_and_dropped().0 as f64;
    }
    let (after, elapsed) = (received(), began.elapsed().as_secs_f64());
    let mut outcome = Outcome {
        queue_ms: bottleneck.queue_ms(waiting / samples as f64),
        drops: (path.waiting_and_dropped().1 - dropped_before) as f64 / elapsed,
        ..Outcome::default()
    };
    for (place, (before, after)) in outcome.goodput.iter_mut().zip(before.iter().zip(&after)) {
        *place = (after - before) as f64 * 8.0 / 1e6 / elapsed;
    }
    outcome
}

impl Bottleneck {
    fn between(&self) -> Between {
        if self.is_bucket {
            let bucket = TokenBucket::new(self.rate);
            let buffer = self.rate * Duration::from_millis(self.buffer_ms);
            return Between::Bucket(TokenBucket { buffer, burst: Bytes::new(3028), ..bucket });
        }
        Between::Modelled(Box::new(self.links()))
    }

    /// There, and back.
    fn links(&self) -> [LinkConfig; 2] {
        let delay = Duration::from_millis(self.rtt_ms) / 2;
        let buffer = Buffer::Bytes(self.rate * Duration::from_millis(self.buffer_ms));
        let there = LinkConfig { rate: Some(self.rate), delay, buffer, ..LinkConfig::default() };
        [there, LinkConfig { delay, ..LinkConfig::default() }]
    }

    /// A full segment and an acknowledgement as the bottleneck counts them.
    fn sizes(&self) -> [Bytes; 2] {
        let link_header = if self.is_bucket { 14 } else { 0 };
        [1500, 52].map(|bytes| Bytes::new(bytes + link_header))
    }

    fn queue_ms(&self, packets: f64) -> f64 {
        packets * self.sizes()[0].count() as f64 * 8e3 / self.rate.bps() as f64
    }

    /// Cases that this machine can run at the same time without one's load changing the other's figures.
    fn at_once(&self) -> usize {
        if self.rate <= Rate::from_mbps(10) { 12 } else { 4 }
    }
}

/// Prints a row and gives its figures.
fn show(bottleneck: &Bottleneck, case: &str, kernel: &[Outcome], simulated: &[Outcome]) -> Value {
    let all = [simulated, kernel].map(|outcomes| outcomes.iter().map(Outcome::json).collect::<Vec<_>>());
    let ours = Outcome::mean(simulated).unwrap_or_default();
    let theirs = Outcome::mean(kernel);
    let most = if case.contains("bbr") { 1.35 } else { 1.2 };
    let holds = |ratio: f64| (1.0 / most..=most).contains(&ratio);
    let mut cells = Vec::new();
    let mut ratios = Vec::new();
    for (figure, digits, floor) in FIGURES {
        let told = theirs.map_or("–".to_owned(), |theirs| format!("{:.digits$}", figure(&theirs)));
        cells.push(format!("{:.digits$} / {told}", figure(&ours)));
        let ratio = theirs.map(|theirs| (figure(&ours) + floor) / (figure(&theirs) + floor));
        cells.push(ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}{}", if holds(ratio) { "" } else { " ✗" })));
        ratios.extend(ratio);
    }
    let drops = theirs.map_or("–".to_owned(), |theirs| format!("{:.1}", theirs.drops));
    println!("| {} | {case} | {} | {:.1} / {drops} |", bottleneck.name, cells.join(" | "), ours.drops);
    json!({
        "bottleneck": bottleneck.name,
        "flows": case,
        "simulated": all[0],
        "kernel": all[1],
        "ratios": ratios,
        "holds": ratios.iter().all(|ratio| holds(*ratio)),
    })
}

/// Reads a figure off an outcome.
type Figure = fn(&Outcome) -> f64;

/// What has to agree, with its decimals, and what is added to both sides so that next to nothing equals nothing.
const FIGURES: [(Figure, usize, f64); 3] =
    [(Outcome::sum, 2, 0.0), (Outcome::share, 2, 0.0), (|one| one.queue_ms, 1, 1.0)];

const BOTTLENECKS: [Bottleneck; 6] = [
    Bottleneck { name: "10M-0ms-100ms-tbf", rate: Rate::from_mbps(10), rtt_ms: 0, buffer_ms: 100, is_bucket: true },
    Bottleneck { name: "50M-0ms-20ms-tbf", rate: Rate::from_mbps(50), rtt_ms: 0, buffer_ms: 20, is_bucket: true },
    Bottleneck { name: "10M-40ms-40ms", rate: Rate::from_mbps(10), rtt_ms: 40, buffer_ms: 40, is_bucket: false },
    Bottleneck { name: "10M-40ms-160ms", rate: Rate::from_mbps(10), rtt_ms: 40, buffer_ms: 160, is_bucket: false },
    Bottleneck { name: "50M-20ms-20ms", rate: Rate::from_mbps(50), rtt_ms: 20, buffer_ms: 20, is_bucket: false },
    Bottleneck { name: "50M-20ms-80ms", rate: Rate::from_mbps(50), rtt_ms: 20, buffer_ms: 80, is_bucket: false },
];

const CASES: [&str; 6] = ["reno", "cubic", "bbr", "reno+cubic", "reno+bbr", "cubic+bbr"];
/// Start-ups are not what is measured.
const WARM_UP: Duration = Duration::from_secs(10);
/// How often it is looked how much waits.
const SAMPLE: Duration = Duration::from_millis(100);
