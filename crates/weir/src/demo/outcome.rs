//! What came of it: each received file compared with the one sent, the summary, the report, the table.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use serde::Serialize;
use weir_units::Bytes;

use super::plan::Plan;
use super::record::Record;
use crate::exit::{Exit, Failure};
use crate::progress::{Stdout, percent, print, seconds};
use crate::report::{Report, Series};

/// The result of a demonstration.
#[derive(Debug)]
pub(super) struct Outcome {
    report: Report,
    lines: Vec<Line>,
    failures: Vec<Failure>,
}

/// One receiver in `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Line {
    /// For people.
    pub(super) name: String,
    /// Rate of the link.
    pub(super) link_bps: u64,
    /// Size of the file that the receiver has; 0 if none.
    pub(super) bytes: u64,
    /// From the first join to the verified file; null if it did not come to that.
    pub(super) seconds: Option<f64>,
    /// The bits of the file over the rate of the link.
    pub(super) ideal_seconds: f64,
    /// `seconds` over `ideal_seconds`.
    pub(super) ratio: Option<f64>,
    /// Whether the file is bit for bit the one that was sent.
    pub(super) verified: bool,
    /// Bytes of packets received, all headers included.
    pub(super) received_bytes: u64,
    /// Packets lost by the link, over packets sent to it.
    pub(super) loss_rate: f64,
    /// Time average of the subscription level.
    pub(super) mean_level: f64,
}

impl Outcome {
    /// Compares the files. What the receivers say of themselves is not enough.
    pub(super) fn judge(plan: &Plan, records: &[Record]) -> Result<Outcome, Failure> {
        let sent =
            digest(&plan.input).map_err(Failure::of(Exit::Files, format!("cannot read {}", plan.input.display())))?;
        let mut receivers = Vec::new();
        let mut lines = Vec::new();
        let mut failures = Vec::new();
        for (i, record) in records.iter().enumerate() {
            let path = plan.received(i);
            let same = digest(&path).is_ok_and(|received| received == sent);
            let says_so = record.says_verified == Some(true);
            let series = Series { verified: same && says_so, ..record.series.clone() };
            match &record.failure {
                Some(failure) => failures.push(failure.clone()),
                None if !series.verified => {
                    let message = format!("{}: {} is not the file that was sent", series.name, path.display());
                    failures.push(Failure::new(Exit::Unverified, message));
                }
                None => {}
            }
            lines.push(Line::of(&series, fs::metadata(&path).map_or(0, |metadata| metadata.len())));
            receivers.push(series);
        }
        let report = Report {
            file: plan.file.clone(),
            bytes: plan.bytes,
            scheme: plan.scheme.clone(),
            rates: records
                .iter()
                .map(|record| record.rates.clone())
                .find(|rates| !rates.is_empty())
                .unwrap_or_default(),
            links: plan.links_in_words.clone(),
            receivers,
        };
        Ok(Outcome { report, lines, failures })
    }

    /// Writes the report, the picture and the summary.
    pub(super) fn write(&self, plan: &Plan) -> Result<(), Failure> {
        let summary = serde_json::to_string_pretty(&self.lines).expect("the summary is plain data") + "\n";
        for (name, text) in
            [("report.html", self.report.html()), ("overview.svg", self.report.overview()), ("summary.json", summary)]
        {
            let path = plan.out.join(name);
            fs::write(&path, text).map_err(Failure::of(Exit::Files, format!("cannot write {}", path.display())))?;
        }
        Ok(())
    }

    /// Prints the table, failures and where the report is; answers with the exit code.
    pub(super) fn tell(&self, plan: &Plan) -> Exit {
        for failure in &self.failures {
            eprintln!("weir: {failure}");
        }
        let table = table(&self.report.receivers, plan.bytes);
        let (Stdout::Open | Stdout::Closed) =
            print(&format!("{table}\nreport: {}\n", plan.out.join("report.html").display()));
        self.failures.first().map_or(Exit::Done, |failure| failure.exit)
    }
}

impl Line {
    fn of(series: &Series, bytes: u64) -> Line {
        Line {
            name: series.name.clone(),
            link_bps: series.link.bps(),
            bytes,
            seconds: series.seconds,
            ideal_seconds: series.ideal_seconds,
            ratio: series.ratio(),
            verified: series.verified,
            received_bytes: series.received.count(),
            loss_rate: series.loss(),
            mean_level: series.mean_level(),
        }
    }
}

/// The table that the demonstration ends with.
pub(super) fn table(receivers: &[Series], bytes: Bytes) -> String {
    let mut text = format!(
        "{:>12}  {:>8}  {:>11}  {:>5}  {:>10}  {:>7}  {:>10}  verified\n",
        "link", "time", "file ÷ link", "ratio", "efficiency", "lost", "mean level"
    );
    for series in receivers {
        let ratio = series.ratio().map_or("—".to_owned(), |ratio| format!("{ratio:.2}"));
        let efficiency = if series.verified { percent(series.efficiency(bytes)) } else { "—".to_owned() };
        writeln!(
            text,
            "{:>12}  {:>8}  {:>11}  {ratio:>5}  {efficiency:>10}  {:>7}  {:>10.1}  {}",
            series.link_in_words(),
            series.seconds.map_or("—".to_owned(), seconds),
            seconds(series.ideal_seconds),
            percent(series.loss()),
            series.mean_level(),
            if series.verified { "yes" } else { "NO" }
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn digest(path: &Path) -> io::Result<blake3::Hash> {
    Ok(blake3::Hasher::new().update_reader(File::open(path)?)?.finalize())
}
