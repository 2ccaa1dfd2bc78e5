//! The table of unequal links: one session to receivers whose links differ by 50×.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{LinkCounters, Network, Scratch, generated_file};
use weir_units::Rate;

use crate::Options;
use crate::speed::{Job, Run};
use crate::weir::Weir;

/// Measures each ratio in turn.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let row = |ratio: &f64| {
        let words = ["--rates", "256k..100M", "--ratio", &ratio.to_string()].map(str::to_owned);
        let mut row = session(options, weir, &format!("ratio {ratio}"), &words, limit(*ratio))?;
        row["ratio"] = json!(ratio);
        Ok(row)
    };
    let rows: Result<Vec<Value>, String> = options.ratio.iter().map(row).collect();
    Ok(json!({ "size_bytes": options.unequal_size.count(), "ratios": rows? }))
}

/// Measures a session of `weir send file` with these words, where a receiver may take `limit` times its ideal.
pub(crate) fn session(
    options: &Options,
    weir: &Path,
    name: &str,
    words: &[String],
    limit: Option<f64>,
) -> Result<Value, String> {
    eprintln!("unequal links, {name}");
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, options.unequal_size.count(), 2);
    let slowest = options.links.iter().copied().min().filter(|rate| *rate > Rate::ZERO);
    let slowest = slowest.ok_or("--links needs rates above zero")?;
    let patience = (options.unequal_size / slowest) * 4 + Duration::from_secs(60);
    let folders: Vec<PathBuf> = (0..options.links.len()).map(|index| scratch.folder(format!("{index}"))).collect();
    let job = Job { file: &file, folders: &folders, scratch: scratch.path(), limit: patience };
    let network = Network::new().links(options.links.iter().copied()).build();
    let run = Weir { program: weir, send_words: words.to_vec() }.transfer(&network, &job)?;
    job.verify()?;
    let counters: Vec<LinkCounters> = (0..options.links.len()).map(|index| network.link_counters(index)).collect();
    Ok(row(options, name, limit, &run, &counters))
}

fn row(options: &Options, name: &str, limit: Option<f64>, run: &Run, counters: &[LinkCounters]) -> Value {
    let bytes = options.unequal_size.count();
    println!("\n{} MB over unequal links, {name}", bytes / 1_000_000);
    println!(
        "{:<14}{:>10}{:>10}{:>8}  {:<7}{:>16}{:>16}",
        "link", "seconds", "ideal", "times", "limit", "over the link", "dropped there"
    );
    let mut receivers = Vec::new();
    for (index, link) in options.links.iter().enumerate() {
        let seconds = run.seconds[index];
        let ideal = (options.unequal_size / *link).as_secs_f64();
        let carried = counters[index].sent_bytes as f64 / bytes as f64;
        let dropped = counters[index].dropped_packets;
        let name = link.to_string();
        let times = seconds / ideal;
        let verdict =
            limit.map_or("none".to_owned(), |limit| format!("{limit} {}", if times <= limit { "✓" } else { "✗" }));
        println!("{name:<14}{seconds:>10.1}{ideal:>10.1}{times:>8.2}  {verdict:<7}{carried:>14.3} ×{dropped:>16}");
        receivers.push(json!({
            "link_bps": link.bps(),
            "seconds": seconds,
            "ideal_seconds": ideal,
            "times_ideal": times,
            "limit": limit,
            "holds": limit.map(|limit| times <= limit),
            "verified": true,
            "link_bytes": counters[index].sent_bytes,
            "link_dropped_packets": dropped,
            "end": run.details["receivers"][index],
        }));
    }
    let sent = run.details["sender"]["sent_bytes"].as_f64().unwrap_or(f64::NAN) / bytes as f64;
    println!("sent {sent:.1} × the file");
    json!({ "receivers": receivers, "sent_over_file": sent, "sender_end": run.details["sender"] })
}

/// How many times the ideal a receiver may take, where we claim something for the ratio.
fn limit(ratio: f64) -> Option<f64> {
    [(1.5, 2.2), (1.15, 1.6)].into_iter().find(|(of, _)| *of == ratio).map(|(_, limit)| limit)
}
