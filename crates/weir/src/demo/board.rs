//! The table that shows how all receivers stand: redrawn in place on a terminal, a line every few seconds elsewhere.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_units::{Bytes, Rate};

use super::record::Record;
use crate::events::SenderProgress;
use crate::progress::{clean, clock, percent, seconds, share};
use crate::report::round_rate;

/// The table.
pub(super) struct Board {
    rows: MultiProgress,
    receivers: Vec<ProgressBar>,
    sender: ProgressBar,
    on_terminal: bool,
    line_due_s: f64,
    /// Whose end was told in a line.
    told: Vec<bool>,
}

impl Board {
    /// A row for each link, and one for the sender.
    pub(super) fn new(links: &[Rate]) -> Board {
        let rows = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let style = |template| ProgressStyle::with_template(template).expect("the templates below are valid");
        let names: Vec<String> = links.iter().map(|link| round_rate(*link)).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        let row = |name: &String| {
            let bar = rows.add(ProgressBar::new(BAR_STEPS)).with_prefix(format!("{name:>width$}"));
            bar.set_style(style(RECEIVER).progress_chars("━╸─"));
            bar.set_message("joining");
            bar
        };
        let receivers = names.iter().map(row).collect();
        let sender = rows.add(ProgressBar::new(1)).with_prefix(format!("{:>width$}", "sender"));
        sender.set_style(style(SENDER));
        Board {
            rows,
            receivers,
            sender,
            on_terminal: std::io::stderr().is_terminal(),
            line_due_s: 0.0,
            told: vec![false; links.len()],
        }
    }

    /// Receiver `i` stands like this.
    pub(super) fn row(&mut self, i: usize, record: &Record) {
        let bar = &self.receivers[i];
        bar.set_position((record.share() * BAR_STEPS as f64) as u64);
        bar.set_message(in_words(record));
        let is_over = record.has_ended() || record.failure.is_some();
        if !self.on_terminal && is_over && !std::mem::replace(&mut self.told[i], true) {
            eprintln!("  {}: {}", record.series.name, in_words(record));
        }
    }

    /// The sender stands like this, and its clock drives the lines.
    pub(super) fn sender(&mut self, progress: &SenderProgress, records: &[Record]) {
        let sent = Bytes::new(progress.sent_bytes);
        self.sender.set_message(format!(
            "{} · {sent} · {} receipts",
            Rate::from_bps(progress.rate_bps),
            progress.receipts
        ));
        if !self.on_terminal && progress.t_s >= self.line_due_s {
            self.line_due_s = progress.t_s + LINE_INTERVAL_S;
            eprintln!("{}", line(progress.t_s, records));
        }
    }

    /// A message for people, above the table.
    pub(super) fn say(&self, text: &str) {
        self.rows.suspend(|| eprintln!("{}", clean(text)));
    }

    /// Takes the table away.
    pub(super) fn finish(&mut self) {
        for bar in self.receivers.iter().chain([&self.sender]) {
            bar.finish_and_clear();
        }
    }
}

/// One receiver.
pub(super) fn in_words(record: &Record) -> String {
    let latest = &record.latest;
    if let Some(took) = record.series.seconds {
        return format!("✓ {} · {:.2} × the ideal", seconds(took), took / record.series.ideal_seconds);
    }
    if record.failure.is_some() || record.has_ended() {
        return "✗ failed".to_owned();
    }
    if latest.received_packets == 0 {
        return "waiting for the first packet".to_owned();
    }
    let lost = share(latest.lost_packets, Some(latest.lost_packets + latest.received_packets)).unwrap_or(0.0);
    let to_go = latest.eta_s.map_or(String::new(), |eta| format!(" · {} to go", clock(eta)));
    // What matters most comes first: a narrow terminal cuts the rest off.
    format!(
        "{:>11} · level {}/{}{to_go} · lost {} · delay {:.0} ms",
        Rate::from_bps(latest.rate_bps).to_string(),
        latest.level,
        latest.levels,
        percent(lost),
        latest.queuing_delay_ms
    )
}

/// All receivers in one line.
pub(super) fn line(t_s: f64, records: &[Record]) -> String {
    let one = |record: &Record| match record.series.seconds {
        Some(took) => format!("{}: ✓ {}", round_rate(record.series.link), seconds(took)),
        None if record.failure.is_some() || record.has_ended() => format!("{}: ✗", round_rate(record.series.link)),
        None => {
            let rate = Rate::from_bps(record.latest.rate_bps);
            format!(
                "{}: {rate}, level {}, {}",
                round_rate(record.series.link),
                record.latest.level,
                percent(record.share())
            )
        }
    };
    format!("{:>6}  {}", clock(t_s), records.iter().map(one).collect::<Vec<_>>().join(" | "))
}

const BAR_STEPS: u64 = 1_000;
const LINE_INTERVAL_S: f64 = 5.0;
const RECEIVER: &str = "  {prefix}  {bar:14.cyan/dim} {percent:>3} %  {wide_msg}";
const SENDER: &str = "  {prefix}  {wide_msg}";
