//! Speed of `weir` next to `uftp`, in the same run, between network namespaces on a bridge; `weir` over unequal links and on ordinary networks; its live
//! streams next to the kernel's TCP and to SRT; its streams over a tree next to uftp, NORM and TCP; small files next to an archive; large files; one weir next to another; and the simulator next to ns-2.
//!
//! A table on standard output, every figure in `target/bench/summary.json`. Needs root. `--help` lists what can be
//! chosen. Times count from the start of the sending process until a receiver's file has its final name, verified;
//! receivers are started a second before. Each file that arrived is compared with what was sent.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod baseline;
mod beside;
mod bursts;
mod kernel_tcp;
mod large;
mod live;
mod machine;
mod norm;
mod ordinary;
mod seals;
mod simulators;
mod small;
mod speed;
mod stair;
mod stream;
mod summary;
mod uftp;
mod unequal;
mod weir;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use weir_testkit::netns::{find_weir_binary, require_root};
use weir_units::{Bytes, Rate};

use baseline::BaselineOptions;
use kernel_tcp::KernelTcpOptions;
use large::LargeOptions;
use live::LiveOptions;
use ordinary::OrdinaryOptions;
use small::SmallOptions;
use stream::StreamOptions;
use summary::Summary;

/// Measures weir next to uftp between network namespaces, and its simulator next to ns-2.
#[derive(Debug, Parser)]
#[command(name = "weir-bench")]
struct Options {
    /// Which table to fill [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,

    /// Cases of the speed table, as TOOL-RECEIVERS: weir at a fixed rate, weir with congestion control (`control`), uftp.
    #[arg(long, value_delimiter = ',', default_value = "uftp-1,weir-1,control-1,uftp-16,weir-16,control-16")]
    only: Vec<speed::Case>,

    /// Bytes of the file in the speed table.
    #[arg(long, default_value = "256MiB")]
    size: Bytes,

    /// How often each case is measured in the speed table, and in the tables of streams over a tree but for the last.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,

    /// Rates that weir offers in the speed table, as `weir send file --rates` takes them: for the smallest number of
    /// receivers, the next, and so on; the last for all that follow.
    #[arg(long, value_delimiter = ',', default_value = "5G,800M")]
    rates: Vec<String>,

    /// Rates between which receivers choose where weir controls congestion in the speed table.
    #[arg(long, default_value = "10M..5G")]
    control_rates: String,

    /// More words for `weir send file` in the tables of speed, of large and of small files and for STAIR next to a TCP, and for
    /// `weir send stream`, separated by spaces.
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    send_args: String,

    /// Bytes of the file in the table of unequal links.
    #[arg(long, default_value = "32MiB")]
    unequal_size: Bytes,

    /// Links of the receivers in the table of unequal links.
    #[arg(long, value_delimiter = ',', default_value = "2M,8M,32M,100M")]
    links: Vec<Rate>,

    /// Ratios of neighbouring rates in the table of unequal links.
    #[arg(long, value_delimiter = ',', default_value = "1.5,1.15")]
    ratio: Vec<f64>,

    /// How long a flow of weir and a TCP connection are watched while they share a link, in seconds, after a warm-up of 15 s.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..))]
    beside_seconds: u64,

    #[command(flatten)]
    stream: StreamOptions,

    #[command(flatten)]
    ordinary: OrdinaryOptions,

    #[command(flatten)]
    kernel_tcp: KernelTcpOptions,

    #[command(flatten)]
    small: SmallOptions,

    #[command(flatten)]
    large: LargeOptions,

    #[command(flatten)]
    live: LiveOptions,

    #[command(flatten)]
    baseline: BaselineOptions,

    /// Leaves out the simulator's largest case, which takes minutes.
    #[arg(long)]
    skip_largest: bool,

    /// Where the figures go; what this run does not measure stays as it is.
    #[arg(long, default_value = "target/bench/summary.json")]
    summary: PathBuf,

    /// The weir program [default: the one next to this program].
    #[arg(long)]
    weir: Option<PathBuf>,
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// weir at a fixed rate and with congestion control, uftp, and one TCP to each receiver over an unshaped bridge, to 1 and to 16
    /// receivers.
    Speed,
    /// weir to four receivers behind links of 2, 8, 32 and 100 Mbit/s.
    Unequal,
    /// weir on ordinary networks: slow leaves, a ladder to 1 Gbit/s; alone over each link, with random loss, next to one TCP of
    /// the kernel and next to another session, at round trips of 0 and 40 ms.
    Ordinary,
    /// A live stream (RAP) next to one TCP of the kernel, reno, cubic and bbr in turn, over 10 Mbit/s with a buffer of 100 ms.
    Rap,
    /// Live video next to SRT: with loss, with a variable rate, and over a link that has a fifth of its rate for 13 s.
    Live,
    /// STAIR to receivers behind unequal links, next to one TCP of the kernel over 20 Mbit/s under each reading of its decrease,
    /// and its membership messages next to FGLM's.
    Stair,
    /// Streams over a tree (MTCP): speed next to uftp, NORM and one TCP, with 1 to 16 receivers; share next to one TCP; and
    /// whether every receiver gets every byte through losses, a killed agent and a stopped receiver.
    Stream,
    /// What bursts of packets say of a link (PLM): pairs and trains through token buckets of the kernel, with and without GRO.
    Bursts,
    /// What seals of packets cost: CPU and bytes of each mode, and the time that 200 000 forged packets a second take.
    Seals,
    /// Thousands of small files next to one archive of them, in memory and on disk.
    Small,
    /// A large file, in memory and on disk: the whole transfer next to its first pass, with and without loss.
    Large,
    /// This weir next to another, which `--baseline` names: files, a stream over a tree and a live stream by each in turn; time, and CPU of
    /// both ends.
    Baseline,
    /// The simulator's TCP next to the kernel's: reno, cubic and bbr, alone and in pairs, over the same bottlenecks.
    KernelTcp,
    /// The simulator: TCP next to ns-2, and multicast to 1000, 10 000 and 100 000 receivers.
    Simulator,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !require_root() {
        return ExitCode::SUCCESS;
    }
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), String> {
    let wanted = |part| options.part.is_empty() || options.part.contains(&part);
    let weir = options.weir.clone().or_else(find_weir_binary);
    let mut summary = Summary::open(&options.summary)?;
    summary.set("machine", machine::describe());
    if wanted(Part::Speed) {
        summary.set("speed", speed::measure(options, weir.as_deref())?);
        summary.save()?;
    }
    if wanted(Part::Unequal) {
        let weir = weir.as_deref().ok_or(NO_WEIR)?;
        summary.set("unequal", unequal::measure(options, weir)?);
        summary.save()?;
    }
    if wanted(Part::Ordinary) {
        let weir = weir.as_deref().ok_or(NO_WEIR)?;
        summary.set("ordinary", ordinary::measure(options, weir)?);
        summary.save()?;
    }
    if wanted(Part::Rap) {
        let weir = weir.as_deref().ok_or(NO_WEIR)?;
        summary.set("rap", beside::measure(Duration::from_secs(options.beside_seconds), weir));
        summary.save()?;
    }
    if wanted(Part::Live) {
        summary.set("live", live::measure(&options.live, weir.as_deref().ok_or(NO_WEIR)?)?);
        summary.save()?;
    }
    if wanted(Part::Stair) {
        let weir = weir.as_deref().ok_or(NO_WEIR)?;
        summary.set("stair", stair::measure(options, weir)?);
        summary.save()?;
    }
    if wanted(Part::Stream) {
        let weir = weir.as_deref().ok_or(NO_WEIR)?;
        summary.set("stream", stream::measure(options, weir)?);
        summary.save()?;
    }
    if wanted(Part::Bursts) {
        summary.set("bursts", bursts::measure(weir.as_deref().ok_or(NO_WEIR)?).into());
        summary.save()?;
    }
    if wanted(Part::Seals) {
        summary.set("seals", seals::measure(options, weir.as_deref().ok_or(NO_WEIR)?)?);
        summary.save()?;
    }
    if wanted(Part::Small) {
        summary.set("small", small::measure(options, weir.as_deref().ok_or(NO_WEIR)?)?);
        summary.save()?;
    }
    if wanted(Part::Large) {
        summary.set("large", large::measure(options, weir.as_deref().ok_or(NO_WEIR)?)?);
        summary.save()?;
    }
    match &options.baseline.baseline {
        Some(other) if wanted(Part::Baseline) => {
            let weir = weir.as_deref().ok_or(NO_WEIR)?;
            summary.set("baseline", baseline::measure(&options.baseline, weir, other)?);
            summary.save()?;
        }
        None if options.part.contains(&Part::Baseline) => return Err(NO_BASELINE.to_owned()),
        _ => {}
    }
    if wanted(Part::KernelTcp) {
        summary.set("kernel_tcp", kernel_tcp::measure(&options.kernel_tcp, options.repeat)?);
        summary.save()?;
    }
    if wanted(Part::Simulator) {
        summary.set("simulator", simulators::measure(options.repeat, !options.skip_largest)?);
        summary.save()?;
    }
    println!("\nfigures in {}", options.summary.display());
    Ok(())
}

/// What to do where weir is not built.
const NO_WEIR: &str = "there is no weir to measure: cargo build --release -p weir, or give its path with --weir";

/// What to do where there is nothing to compare with.
const NO_BASELINE: &str = "there is nothing to compare with: build another weir, and give its path with --baseline";
