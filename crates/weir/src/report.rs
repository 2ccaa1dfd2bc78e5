//! A report of a session: what each receiver got from its link, as one self-contained page and as one picture.
//!
//! Not here: recording. The series come in ready, so that any run that has them can be reported.

mod chart;
mod live;
mod overview;
mod page;
mod plot;
mod scale;

use weir_lab::figure::svg;
use weir_units::{Bytes, Rate};

pub(crate) use live::{LiveReport, LiveSeries, Pictures, Thumbnail};

/// A session and its receivers.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Report {
    /// Name of the file that was sent.
    pub(crate) file: String,
    /// Its size.
    pub(crate) bytes: Bytes,
    /// Congestion control scheme.
    pub(crate) scheme: String,
    /// Cumulative rates of the levels, level 1 first.
    pub(crate) rates: Vec<Rate>,
    /// What all links have in common, for people: `20 ms delay, 100 ms buffer`.
    pub(crate) links: String,
    /// The receivers, in the order in which they are to be shown.
    pub(crate) receivers: Vec<Series>,
}

/// What one receiver recorded. Times are seconds since it joined.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Series {
    /// For people.
    pub(crate) name: String,
    /// Capacity of its link.
    pub(crate) link: Rate,
    /// What it measured, in order of time.
    pub(crate) samples: Vec<Sample>,
    /// Its subscription levels, in order of time; each holds until the next.
    pub(crate) steps: Vec<Step>,
    /// From the first join to the verified file; `None` if it did not come to that.
    pub(crate) seconds: Option<f64>,
    /// What the bits of the file alone take on the link.
    pub(crate) ideal_seconds: f64,
    /// Whether the file is, bit for bit, the one that was sent.
    pub(crate) verified: bool,
    /// Bytes of packets received, all headers included.
    pub(crate) received: Bytes,
    /// Packets received.
    pub(crate) received_packets: u64,
    /// Packets that the network lost.
    pub(crate) lost_packets: u64,
    /// Packets that the host dropped.
    pub(crate) host_dropped_packets: u64,
}

/// One measurement, over the time since the one before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sample {
    /// When it ended.
    pub(crate) t_s: f64,
    /// What arrived.
    pub(crate) received: Rate,
    /// One-way queuing delay.
    pub(crate) queuing_delay_ms: f64,
    /// Packets that the network lost since the start.
    pub(crate) lost_packets: u64,
}

/// A subscription level from some time on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Step {
    /// Since when.
    pub(crate) t_s: f64,
    /// The level.
    pub(crate) level: usize,
    /// Its rate.
    pub(crate) rate: Rate,
}

impl Report {
    /// The page: HTML with everything in it, nothing fetched from anywhere.
    pub(crate) fn html(&self) -> String {
        page::html(self)
    }

    /// The picture: all receivers side by side, SVG.
    pub(crate) fn overview(&self) -> String {
        overview::svg(self)
    }
}

impl Series {
    /// The link's rate as people say it: 2 Mbit/s, not 2.00.
    pub(crate) fn link_in_words(&self) -> String {
        round_rate(self.link)
    }

    /// Completion time over the ideal; `None` if it did not complete.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds / self.ideal_seconds)
    }

    /// When the record ends: at completion, or else with the last sample.
    pub(crate) fn end_s(&self) -> f64 {
        let last = self.samples.last().map_or(0.0, |sample| sample.t_s);
        self.seconds.unwrap_or(last)
    }

    /// Packets lost in the network over packets sent this way.
    pub(crate) fn loss(&self) -> f64 {
        self.lost_packets as f64 / (self.lost_packets + self.received_packets).max(1) as f64
    }

    /// Bytes of the file over bytes received: what headers, repair and duplicates leave.
    pub(crate) fn efficiency(&self, file: Bytes) -> f64 {
        file.count() as f64 / self.received.count().max(1) as f64
    }

    /// Subscription level averaged over the time to completion.
    pub(crate) fn mean_level(&self) -> f64 {
        let end = self.end_s();
        let ends = self.steps.iter().skip(1).map(|step| step.t_s).chain([end]);
        let (sum, span) = self.steps.iter().zip(ends).fold((0.0, 0.0), |(sum, span), (step, until)| {
            let held = (until.min(end) - step.t_s).max(0.0);
            (sum + held * step.level as f64, span + held)
        });
        if span > 0.0 { sum / span } else { 0.0 }
    }

    /// The level that was held longest, with its rate.
    pub(crate) fn usual_step(&self) -> Option<Step> {
        let end = self.end_s();
        let mut held: Vec<(f64, Step)> = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            let until = self.steps.get(i + 1).map_or(end, |next| next.t_s.min(end));
            let span = (until - step.t_s).max(0.0);
            match held.iter_mut().find(|(_, known)| known.level == step.level) {
                Some((total, _)) => *total += span,
                None => held.push((span, *step)),
            }
        }
        held.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, step)| step)
    }
}

/// A rate without zeros behind the point.
pub(crate) fn round_rate(rate: Rate) -> String {
    let text = rate.to_string();
    let (number, unit) = text.split_once(' ').expect("a rate is a number and a unit");
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}")
}

#[cfg(test)]
pub(crate) mod tests;
