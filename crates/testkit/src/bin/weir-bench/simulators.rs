//! The simulator next to ns-2, on one core: packets for a second of that core's time. And the largest session that is promised, on
//! two cores, by the clock.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_testkit::netns::{Command, Scratch, Usage, in_path};

use crate::summary::Spread;

/// What one run did and cost.
struct Run {
    /// Packets that crossed a link, or the bottleneck, or reached a receiver: what the case counts.
    packets: f64,
    cpu_secs: f64,
    peak_memory_bytes: u64,
    receivers: u64,
}

impl Run {
    fn rate(&self) -> f64 {
        self.packets / self.cpu_secs
    }
}

/// Measures the simulator's cases, each `repeat` times but for the two largest, which are measured once.
pub(crate) fn measure(repeat: u32, largest: bool) -> Result<Value, String> {
    let load = find_load()?;
    let scratch = Scratch::new();
    let script = scratch.join("dumbbell.tcl");
    std::fs::write(&script, include_str!("dumbbell.tcl")).map_err(|error| format!("{}: {error}", script.display()))?;
    println!("\nsimulator, one core, median [least–greatest] of {repeat} runs");
    let tcp = tcp(&load, &script, repeat)?;
    let cases = [
        case("tree of 1 000 receivers, 60 s", &load, &["tree", "--levels", "3"], "traversals", repeat)?,
        case("tree of 10 000 receivers, 60 s", &load, &["tree", "--levels", "4"], "traversals", 1)?,
    ];
    let largest = if largest { self::largest(&load)? } else { Value::Null };
    Ok(json!({ "tcp_dumbbell": tcp, "cases": cases, "largest_session": largest }))
}

/// One AVMRC session to 100 000 receivers for 60 s, on two cores.
fn largest(load: &Path) -> Result<Value, String> {
    let command = Command::here("env").args([HUGE_PAGES, "taskset", "-c", "0,1"]).arg(load);
    let began = Instant::now();
    let (figures, usage) = ours(command.args(["session", "--levels", "5", "--threads", "2"]))?;
    let (wall, cpu) = (began.elapsed().as_secs_f64(), usage.cpu().as_secs_f64());
    let (delivered, memory) = (number(&figures, "delivered"), usage.peak_memory_bytes);
    println!(
        "AVMRC to 100 000 receivers, 60 s, two cores: {wall:.0} s ({cpu:.0} s of CPU, {:.0} ns a delivery), {} MB (wanted: 600 s, 4000 MB)",
        cpu * 1e9 / delivered,
        memory / 1_000_000
    );
    Ok(json!({
        "receivers": number(&figures, "receivers"),
        "delivered": delivered,
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "peak_memory_bytes": memory,
        "holds": wall <= 600.0 && memory <= 4_000_000_000,
    }))
}

/// 64 TCP connections for 120 s, ns-2 and weir in turn on the same core.
fn tcp(load: &Path, script: &Path, repeat: u32) -> Result<Value, String> {
    if !in_path("ns") {
        return Err("ns-2 is missing: apt-get install ns2, or leave this out with --part speed,unequal".into());
    }
    // The monitor slows ns-2 down, so that packets are counted in a run of their own.
    let counted = ns(script, true)?.0;
    let mut runs: [Vec<Run>; 2] = Default::default();
    for _ in 0..repeat {
        let (_, usage) = ns(script, false)?;
        runs[0].push(Run::new(counted, &usage, 0));
        let (figures, usage) = ours(pinned().arg(load).args(["tcp", "--seconds", "120"]))?;
        runs[1].push(Run::new(number(&figures, "delivered"), &usage, 0));
    }
    let [ns2, weir] = &runs;
    let ratio = Spread::of(weir.iter().zip(ns2).map(|(weir, ns2)| weir.rate() / ns2.rate()));
    for (name, runs) in [("ns-2", ns2), ("weir", weir)] {
        let rate = Spread::of(runs.iter().map(|run| run.rate() / 1e6));
        println!("64 TCP, 50 Mbit/s, 120 s: {name} {rate} million packets delivered a CPU second");
    }
    println!("64 TCP, 50 Mbit/s, 120 s: weir / ns-2 {ratio} (wanted 5, aimed at 10)");
    let rates = |runs: &[Run]| Spread::of(runs.iter().map(Run::rate)).json();
    Ok(json!({
        "ns2_delivered_per_cpu_second": rates(ns2),
        "weir_delivered_per_cpu_second": rates(weir),
        "weir_to_ns2": ratio.json(),
        "holds": ratio.median >= 5.0,
    }))
}

fn case(name: &str, load: &Path, words: &[&str], counts: &str, repeat: u32) -> Result<Value, String> {
    let runs: Vec<Run> = (0..repeat)
        .map(|_| {
            let (figures, usage) = ours(pinned().arg(load).args(words))?;
            Ok(Run::new(number(&figures, counts), &usage, number(&figures, "receivers") as u64))
        })
        .collect::<Result<_, String>>()?;
    let rate = Spread::of(runs.iter().map(|run| run.rate() / 1e6));
    let seconds = Spread::of(runs.iter().map(|run| run.cpu_secs));
    let memory = runs.iter().map(|run| run.peak_memory_bytes).max().unwrap_or_default();
    let each = memory / runs[0].receivers.max(1);
    println!(
        "{name}: {rate} million {counts} a CPU second; {seconds} s, {} MB, {each} B a receiver",
        memory / 1_000_000
    );
    Ok(json!({
        "case": name,
        "receivers": runs[0].receivers,
        "per_cpu_second": Spread::of(runs.iter().map(Run::rate)).json(),
        "counted": counts,
        "cpu_seconds": seconds.json(),
        "peak_memory_bytes": memory,
        "memory_bytes_per_receiver": each,
    }))
}

impl Run {
    fn new(packets: f64, usage: &Usage, receivers: u64) -> Run {
        Run { packets, cpu_secs: usage.cpu().as_secs_f64(), peak_memory_bytes: usage.peak_memory_bytes, receivers }
    }
}

/// One run of ns-2: packets that left the bottleneck (0 unless it is watched), and what the run cost.
fn ns(script: &Path, watched: bool) -> Result<(f64, Usage), String> {
    let command = pinned().arg("ns").arg(script).args(["120", if watched { "1" } else { "0" }]);
    let ended = command.start().wait(LIMIT);
    let first = ended.out.first().and_then(|line| line.text.split_whitespace().next()?.parse().ok());
    first.map(|packets| (packets, ended.usage)).ok_or_else(|| format!("ns-2 failed\n{}", ended.told()))
}

fn ours(command: Command) -> Result<(Value, Usage), String> {
    let ended = command.start().wait(LIMIT);
    let figures = ended.out.first().and_then(|line| serde_json::from_str(&line.text).ok());
    figures.map(|figures| (figures, ended.usage)).ok_or_else(|| format!("weir-sim-load failed\n{}", ended.told()))
}

/// Both simulators run on the same core.
fn pinned() -> Command {
    Command::here("taskset").args(["-c", "0"])
}

fn number(figures: &Value, key: &str) -> f64 {
    figures[key].as_f64().unwrap_or_default()
}

fn find_load() -> Result<PathBuf, String> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("weir-sim-load")));
    beside
        .filter(|path| path.exists())
        .ok_or_else(|| "weir-sim-load is not beside this program: cargo build --release -p weir-testkit".into())
}

/// The C library asks the kernel for huge pages: a run of this size, whose every packet touches all of its memory, waits for
/// the tables of small ones.
const HUGE_PAGES: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
/// No case takes that long.
const LIMIT: Duration = Duration::from_secs(1800);
