//! `weir lab`: what can be asked of the laboratory.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use weir_lab::recording::TraceFile;
use weir_lab::scenario::Override;
use weir_lab::trace::{Filter, Format, Kind};
use weir_units::parse_span;

/// The laboratory's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// List the scenarios.
    List(LabList),
    /// Run a scenario and show what was measured.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<LabRun>),
    /// Run scenarios and judge what the papers say about them; the exit code is 1 if a claim does not hold.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(LabVerify),
    /// Run scenarios and draw their figures, as SVG and PNG.
    Plot(LabPlot),
    /// Run scenarios and write one page of all figures and verdicts.
    Report(LabReport),
}

/// Where scenarios come from.
#[derive(Debug, Args)]
pub(crate) struct Scenarios {
    /// Folder of scenario files [default: scenarios in the current folder, or else those that came with weir].
    #[arg(long, value_name = "DIR", help_heading = "Scenarios")]
    pub(crate) scenarios: Option<PathBuf>,
}

/// How scenarios are run.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(flatten)]
    pub(crate) scenarios: Scenarios,

    /// How many runs each point gets, with the seeds 1 to N [default: what the scenario says].
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub(crate) seeds: Option<NonZeroUsize>,

    /// Set a parameter, a swept parameter, the variant, or any key of the set-up; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Runs")]
    pub(crate) set: Vec<Override>,

    /// Runs at the same time [default: one a core].
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Folder where results are kept, so that no run is made twice [default: weir/lab in the user's cache folder].
    #[arg(long, value_name = "DIR", help_heading = "Runs")]
    pub(crate) cache: Option<PathBuf>,

    /// Keep nothing, and make every run again.
    #[arg(long, conflicts_with = "cache", help_heading = "Runs")]
    pub(crate) no_cache: bool,

    /// Say nothing about progress.
    #[arg(short, long, help_heading = "Runs")]
    pub(crate) quiet: bool,
}

/// `weir lab list`.
#[derive(Debug, Args)]
pub(crate) struct LabList {
    #[command(flatten)]
    pub(crate) scenarios: Scenarios,

    /// Print the list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a run can be written down to.
const RECORDED: &str = "recorded";

/// `weir lab run`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new(RECORDED).multiple(true))]
pub(crate) struct LabRun {
    /// A scenario's id, such as avmrc/fig02, or a scenario file.
    #[arg(value_name = "ID|FILE")]
    pub(crate) scenario: String,

    #[command(flatten)]
    pub(crate) runs: Runs,

    /// Print the results as JSON: one row a run, with what was recorded over time.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Print the results as CSV: one row a run.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) csv: bool,

    /// Write the results to this file (Parquet): one row a run.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) parquet: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) trace: TraceArgs,

    /// Write the bottleneck's packets in that run to this file (pcapng), for Wireshark.
    #[arg(long, value_name = "FILE", group = RECORDED, help_heading = "Output")]
    pub(crate) pcap: Option<PathBuf>,

    /// The seed of the run that --trace and --pcap write down [default: 1].
    #[arg(long, value_name = "N", requires = RECORDED, help_heading = "Output")]
    pub(crate) record_seed: Option<u64>,

    /// Write what was recorded over time to this file (Parquet): one row a value.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) series: Option<PathBuf>,
}

/// What is written down of a run, event by event.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Write a run of the first point to this file, event by event (docs/trace.md).
    #[arg(long, value_name = "FILE", group = RECORDED, help_heading = "Trace")]
    pub(crate) trace: Option<PathBuf>,

    /// text or parquet [default: parquet for a file that ends in .parquet, else text].
    #[arg(long, value_name = "FORM", requires = "trace", help_heading = "Trace")]
    pub(crate) trace_format: Option<Format>,

    /// Only these flows, sessions and trees: tcp, tcp.0, flow.tcp.0, session.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "trace", help_heading = "Trace")]
    pub(crate) trace_flow: Vec<String>,

    /// Only what happens on these links: bottleneck, or a-b from node a to node b.
    #[arg(long, value_name = "LINK,…", value_delimiter = ',', requires = "trace", help_heading = "Trace")]
    pub(crate) trace_link: Vec<String>,

    /// Only these kinds: enqueue, dequeue, drop, arrive, deliver, complete, join, leave, observe.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', requires = "trace", help_heading = "Trace")]
    pub(crate) trace_kind: Vec<Kind>,

    /// Only from this time on.
    #[arg(long, value_name = "SPAN", value_parser = parse_span, requires = "trace", help_heading = "Trace")]
    pub(crate) trace_from: Option<Duration>,

    /// Only before this time.
    #[arg(long, value_name = "SPAN", value_parser = parse_span, requires = "trace", help_heading = "Trace")]
    pub(crate) trace_to: Option<Duration>,
}

impl TraceArgs {
    /// The file that is asked for, if one is.
    pub(crate) fn file(&self) -> Option<TraceFile> {
        let filter = Filter {
            flows: self.trace_flow.clone(),
            links: self.trace_link.clone(),
            kinds: self.trace_kind.clone(),
            from: self.trace_from,
            to: self.trace_to,
        };
        self.trace.clone().map(|path| TraceFile { path, format: self.trace_format, filter })
    }
}

/// `weir lab verify`.
#[derive(Debug, Args)]
pub(crate) struct LabVerify {
    /// Ids, or beginnings of ids such as avmrc, or scenario files [default: all that reproduce a paper].
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) runs: Runs,

    /// Print the verdicts as JSON: a list of id, claim, measured, band, holds, verdict (holds, fails, reported, not_judged).
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// Print the verdicts as a table in Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// `weir lab plot`.
#[derive(Debug, Args)]
pub(crate) struct LabPlot {
    /// Ids, or beginnings of ids such as avmrc, or scenario files [default: all that reproduce a paper].
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) runs: Runs,

    /// Folder for the pictures; made if missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// `weir lab report`.
#[derive(Debug, Args)]
pub(crate) struct LabReport {
    /// Ids, or beginnings of ids such as avmrc, or scenario files [default: all that reproduce a paper].
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) runs: Runs,

    /// The page to write (HTML).
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

const RUN_EXAMPLES: &str = "\
Examples:
  weir lab run avmrc/fig02
  weir lab run avmrc/fig02 --seeds 3 --set clients=4 --set variant=RMRC
  weir lab run my-network.toml --json > results.json
  weir lab run avmrc/fig02 --set clients=1 --set variant=RMRC --pcap run.pcapng
  weir lab run avmrc/fig01 --trace run.txt --trace-link bottleneck --trace-kind drop --trace-from 10s
  weir lab run avmrc/fig01 --parquet runs.parquet --series series.parquet";

const VERIFY_EXAMPLES: &str = "\
Examples:
  weir lab verify
      all papers; what has been run before is not run again
  weir lab verify avmrc rap/fig03 --json";
