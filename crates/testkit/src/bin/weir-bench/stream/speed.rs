//! The table of streams' speed: one file to 1 … 16 receivers directly below the sender, over an unshaped bridge or links of a
//! given rate, next to uftp, NORM and one TCP of the kernel.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{
    Finished, Network, Process, Rival, Scratch, TreePlan, TreeStream, generated_file, in_path, pause,
};
use weir_units::{Bytes, Rate};

use super::{mark, send_words};
use crate::machine::CpuClock;
use crate::norm::Norm;
use crate::speed::{Job, Run};
use crate::summary::Spread;
use crate::{Options, uftp};

/// The tools, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Stream,
    Uftp,
    Norm,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Stream => "stream",
            Tool::Uftp => "uftp",
            Tool::Norm => "norm",
        }
    }
}

/// The figures of one transfer.
#[derive(Debug, Clone, Copy)]
struct Figures {
    /// To all receivers, from when they are there.
    goodput_mbps: f64,
    /// CPU time of the sender over the time of the transfer, percent.
    sender_cpu_percent: f64,
    sender_cpu_secs_per_gb: f64,
    receiver_cpu_secs_per_gb: f64,
}

impl Figures {
    fn of(run: &Run, bytes: Bytes) -> Figures {
        let (seconds, cpu) = (run.own_seconds.unwrap_or(f64::NAN), run.sender.cpu().as_secs_f64());
        let receivers: f64 = run.receivers.iter().map(|usage| usage.cpu().as_secs_f64()).sum();
        let gigabytes = bytes.count() as f64 / 1e9;
        Figures {
            goodput_mbps: bytes.count() as f64 * 8e-6 / seconds,
            sender_cpu_percent: cpu / seconds * 100.0,
            sender_cpu_secs_per_gb: cpu / gigabytes,
            receiver_cpu_secs_per_gb: receivers / run.receivers.len() as f64 / gigabytes,
        }
    }

    fn json(self) -> Value {
        json!({
            "goodput_mbps": self.goodput_mbps,
            "sender_cpu_percent": self.sender_cpu_percent,
            "sender_cpu_secs_per_gb": self.sender_cpu_secs_per_gb,
            "receiver_cpu_secs_per_gb": self.receiver_cpu_secs_per_gb,
        })
    }
}

/// What was measured with one number of receivers.
struct Row {
    receivers: usize,
    bytes: Bytes,
    tools: Vec<(Tool, Vec<Figures>)>,
    /// One TCP connection to the first receiver, Mbit/s.
    tcp_mbps: Vec<f64>,
}

impl Row {
    fn goodputs(&self, tool: Tool) -> Option<Vec<f64>> {
        let (_, runs) = self.tools.iter().find(|(of, _)| *of == tool)?;
        Some(runs.iter().map(|run| run.goodput_mbps).collect())
    }

    /// The stream's goodput over another's, run by run.
    fn ratio(&self, others: &[f64]) -> Option<Spread> {
        let own = self.goodputs(Tool::Stream)?;
        Some(Spread::of(own.iter().zip(others).map(|(own, other)| own / other)))
    }
}

/// Measures each number of receivers in turn.
pub(super) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let norm = Norm::build().map_err(|reason| println!("\nNORM is left out: {reason}")).ok();
    let mut rows = Vec::new();
    for (rank, count) in options.stream.stream_receivers.iter().enumerate() {
        let sizes = &options.stream.stream_sizes;
        let bytes = *sizes.get(rank).or(sizes.last()).ok_or("--stream-sizes needs a size")?;
        rows.push(row(options, weir, norm.as_ref(), *count, bytes)?);
    }
    let link = options.stream.stream_link.map_or("unshaped bridge".to_owned(), |link| format!("links of {link}"));
    print_table(&rows, &link, options.repeat);
    let claims = claims(&rows);
    let rows: Vec<Value> = rows.iter().map(row_json).collect();
    let link = options.stream.stream_link.map(Rate::bps);
    Ok(json!({ "send_args": options.send_args, "link_bps": link, "rows": rows, "claims": claims }))
}

/// Measures the tools in turn, so that a busy moment of the machine meets all.
fn row(options: &Options, weir: &Path, norm: Option<&Norm>, receivers: usize, bytes: Bytes) -> Result<Row, String> {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, bytes.count(), 1);
    let network = match options.stream.stream_link {
        Some(link) => Network::new().links(vec![link; receivers]).build(),
        None => Network::new().receivers(receivers).build(),
    };
    let has = |tool: &Tool| match tool {
        Tool::Stream => true,
        Tool::Uftp => in_path("uftp") && in_path("uftpd"),
        Tool::Norm => norm.is_some(),
    };
    let tools = [Tool::Stream, Tool::Uftp, Tool::Norm].into_iter().filter(has);
    let mut row = Row { receivers, bytes, tools: tools.map(|tool| (tool, Vec::new())).collect(), tcp_mbps: Vec::new() };
    for repetition in 1..=options.repeat {
        for (tool, runs) in &mut row.tools {
            eprintln!("{} to {receivers}, {repetition} of {}", tool.name(), options.repeat);
            let scratch = Scratch::new();
            let folders: Vec<PathBuf> = (0..receivers).map(|index| scratch.folder(format!("{index}"))).collect();
            let job = Job { file: &file, folders: &folders, scratch: scratch.path(), limit: RUN_LIMIT };
            let run = match (*tool, norm) {
                (Tool::Uftp, _) => uftp::transfer(&network, &job, options.stream.stream_link)?,
                (Tool::Norm, Some(norm)) => norm.transfer(&network, &job)?,
                _ => transfer(&network, &job, weir, send_words(options))?,
            };
            job.verify()?;
            runs.push(Figures::of(&run, bytes));
        }
        row.tcp_mbps.push(tcp(&network));
    }
    Ok(row)
}

/// One stream. Its own time is from the join of its last member until all have everything.
pub(crate) fn transfer(network: &Network, job: &Job<'_>, weir: &Path, send_words: Vec<String>) -> Result<Run, String> {
    let plan =
        TreePlan { program: weir, input: job.file, outs: job.arrivals().collect(), agents: 0, send_words, link: None };
    let before = CpuClock::now();
    let stream = TreeStream::start(network, &plan);
    let sent = stream.sender.wait(job.limit);
    let machine = CpuClock::now().since(before);
    let ended: Vec<Finished> = stream.receivers.iter().map(|receiver: &Process| receiver.wait(SHORT)).collect();
    let all = ended.iter().chain([&sent]);
    all.clone().try_for_each(|node| if node.is_success() { Ok(()) } else { Err(node.told()) })?;
    let seconds = |event: &Value| event["t_s"].as_f64().unwrap_or(f64::NAN);
    let joined = sent.events("peer").iter().filter(|event| event["what"] == "up").map(seconds).fold(0.0, f64::max);
    let end = sent.last_event("end");
    Ok(Run {
        seconds: ended.iter().map(|ended| seconds(&ended.last_event("end"))).collect(),
        own_seconds: Some(seconds(&end) - joined),
        sender: sent.usage,
        receivers: ended.iter().map(|ended| ended.usage).collect(),
        machine,
        details: end,
    })
}

/// One TCP connection to the first receiver, Mbit/s.
fn tcp(network: &Network) -> f64 {
    let rival = Rival::start(network, 0, "cubic");
    pause(TCP_WARM_UP);
    let before = rival.received_bytes();
    pause(TCP_SPAN);
    (rival.received_bytes() - before) as f64 * 8e-6 / TCP_SPAN.as_secs_f64()
}

fn print_table(rows: &[Row], link: &str, repeat: u32) {
    println!("\na stream to receivers directly below the sender, {link}, median [least–greatest] of {repeat}");
    println!(
        "{:<11}{:<9}{:<9}{:<24}{:<22}{:<22}a receiver",
        "receivers", "MB", "tool", "Mbit/s", "sender's CPU, %", "CPU s/GB, sender"
    );
    for row in rows {
        let megabytes = row.bytes.count() / 1_000_000;
        for (tool, runs) in &row.tools {
            let column = |figure: fn(&Figures) -> f64| Spread::of(runs.iter().map(figure)).to_string();
            println!(
                "{:<11}{megabytes:<9}{:<9}{:<24}{:<22}{:<22}{}",
                row.receivers,
                tool.name(),
                column(|run| run.goodput_mbps),
                column(|run| run.sender_cpu_percent),
                column(|run| run.sender_cpu_secs_per_gb),
                column(|run| run.receiver_cpu_secs_per_gb),
            );
        }
        println!("{:<11}{:<9}{:<9}{}", 1, "", "tcp", Spread::of(row.tcp_mbps.iter().copied()));
    }
}

/// What is claimed, as far as it was measured; printed too.
fn claims(rows: &[Row]) -> Vec<Value> {
    let at = |receivers: usize| rows.iter().find(|row| row.receivers == receivers);
    let mut claims = Vec::new();
    let mut claim = |text: String, ratio: Option<Spread>, least: f64| {
        let Some(ratio) = ratio else { return };
        let holds = ratio.median >= least;
        println!("{text}: {ratio}, at least {least} {}", mark(holds));
        claims.push(json!({ "claim": text, "ratio": ratio.json(), "least": least, "holds": holds }));
    };
    for row in [1, 16].into_iter().filter_map(at) {
        for tool in [Tool::Uftp, Tool::Norm] {
            let ratio = row.goodputs(tool).and_then(|others| row.ratio(&others));
            claim(format!("stream / {} to {}", tool.name(), row.receivers), ratio, 1.0);
        }
    }
    claim("stream / one TCP to 1".to_owned(), at(1).and_then(|row| row.ratio(&row.tcp_mbps)), 0.5);
    let of_2 = at(2).and_then(|row| row.goodputs(Tool::Stream));
    claim("stream to 16 / to 2".to_owned(), at(16).and_then(|row| row.ratio(&of_2?)), 0.6);
    claims
}

fn row_json(row: &Row) -> Value {
    let tools = row.tools.iter().map(|(tool, runs)| {
        let goodput = Spread::of(runs.iter().map(|run| run.goodput_mbps)).json();
        let runs: Vec<Value> = runs.iter().map(|run| run.json()).collect();
        json!({ "tool": tool.name(), "goodput_mbps": goodput, "runs": runs })
    });
    json!({
        "receivers": row.receivers,
        "size_bytes": row.bytes.count(),
        "verified": true,
        "tools": tools.collect::<Vec<Value>>(),
        "one_tcp_mbps": row.tcp_mbps,
    })
}

/// No tool takes that long.
const RUN_LIMIT: Duration = Duration::from_secs(300);
/// Receivers end as soon as their sender does.
const SHORT: Duration = Duration::from_secs(30);
const TCP_WARM_UP: Duration = Duration::from_millis(500);
const TCP_SPAN: Duration = Duration::from_secs(2);
