//! What came of it: each output decoded and compared with the clip, the verdict, the report, the table.

use std::fmt::Write as _;
use std::fs;

use serde::Serialize;

use super::super::process::Party;
use super::ffmpeg::{self, Decoded};
use super::plan::Plan;
use super::record::Record;
use crate::exit::{Exit, Failure};
use crate::progress::{Stdout, clean, print};
use crate::report::{LiveReport, LiveSeries, Thumbnail};

/// The result of a demonstration.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) report: LiveReport,
    failures: Vec<Failure>,
}

/// One receiver in `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Line {
    /// Rate of the link.
    pub(super) link_bps: u64,
    /// Layers that it put out at the end.
    pub(super) layers: usize,
    /// Pictures put out, by layer.
    pub(super) layer_pictures: Vec<u64>,
    /// Pictures that ffmpeg decoded of them.
    pub(super) decoded_pictures: usize,
    /// Decoded pictures a second, from the first to the last.
    pub(super) frame_rate: f64,
    /// Pictures that came and could not be decoded without others.
    pub(super) withheld_pictures: u64,
    /// Packets that the link lost.
    pub(super) lost_packets: u64,
    /// Packets that repair brought back.
    pub(super) recovered_packets: u64,
    /// From the start to the first picture; null if there was none.
    pub(super) first_picture_s: Option<f64>,
    /// The longest pause of the base layer; null with fewer than two pictures.
    pub(super) longest_pause_ms: Option<f64>,
    /// What the decoder complained of.
    pub(super) complaints: Vec<String>,
    /// Whether each decoded picture is, bit for bit, one of the clip's, in their order.
    pub(super) is_part_of_clip: bool,
}

impl Outcome {
    /// Decodes the outputs. What the receivers say of themselves is not enough.
    pub(super) fn judge(plan: &Plan, records: &[Record], dropped: u64) -> Result<Outcome, Failure> {
        let whole = ffmpeg::decode(&plan.clip)?;
        let mut receivers = Vec::new();
        for (i, record) in records.iter().enumerate() {
            let came = ffmpeg::decode(&plan.received(i))?;
            let places = places(&came.digests, &whole.digests);
            // By the clip's times: raw H.264 and HEVC have none, and a decoder makes some up for what came.
            let times_s: Option<Vec<f64>> =
                places.as_ref().map(|places| places.iter().map(|place| whole.times_s[*place]).collect());
            let frame_rate = frame_rate(times_s.as_ref().unwrap_or(&came.times_s));
            receivers.push((LiveSeries { frame_rate, ..series(record, &came) }, places));
        }
        let shown = window(whole.digests.len(), &receivers);
        for (i, (series, places)) in receivers.iter_mut().enumerate() {
            series.is_part_of_clip = places.is_some();
            series.strip = strip(plan, i, places.as_deref().unwrap_or_default(), shown)?;
        }
        let receivers: Vec<LiveSeries> = receivers.into_iter().map(|(series, _)| series).collect();
        let rates = records.iter().map(|record| &record.rates).find(|rates| !rates.is_empty());
        let report = LiveReport {
            clip: plan.name(),
            seconds: whole.times_s.last().copied().unwrap_or(0.0),
            pictures: whole.digests.len(),
            size: whole.size,
            frame_rate: frame_rate(&whole.times_s),
            scheme: plan.scheme.clone(),
            rates: rates.cloned().unwrap_or_default(),
            layers: records.iter().map(|record| record.layers).max().unwrap_or(0),
            links: plan.links_in_words.clone(),
            dropped,
            receivers,
        };
        let mut failures: Vec<Failure> = records.iter().filter_map(|record| record.failure.clone()).collect();
        failures.extend(objections(&report, plan.pause.as_secs_f64() * 1e3).into_iter().map(red));
        Ok(Outcome { report, failures })
    }

    /// Writes the report and the summary.
    pub(super) fn write(&self, plan: &Plan) -> Result<(), Failure> {
        let lines: Vec<Line> = self.report.receivers.iter().map(Line::of).collect();
        let summary = serde_json::to_string_pretty(&lines).expect("the summary is plain data") + "\n";
        let failed: Vec<String> = self.failures.iter().map(|failure| failure.message.clone()).collect();
        for (name, text) in [("report.html", self.report.html(&failed)), ("summary.json", summary)] {
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
        let verdict = if self.failures.is_empty() {
            format!(
                "every output decodes without an error, frame rates rise with the links, and the base layer paused nowhere for longer than {} ms",
                plan.pause.as_millis()
            )
        } else {
            "not all of it is as it should be: see above".to_owned()
        };
        let (table, path) = (table(&self.report), plan.out.join("report.html"));
        let (Stdout::Open | Stdout::Closed) = print(&format!("{table}\n{verdict}\nreport: {}\n", path.display()));
        self.failures.first().map_or(Exit::Done, |failure| failure.exit)
    }
}

impl Line {
    fn of(series: &LiveSeries) -> Line {
        Line {
            link_bps: series.series.link.bps(),
            layers: series.layers,
            layer_pictures: series.layer_pictures.clone(),
            decoded_pictures: series.decoded,
            frame_rate: series.frame_rate,
            withheld_pictures: series.withheld,
            lost_packets: series.series.lost_packets,
            recovered_packets: series.recovered,
            first_picture_s: series.first_picture_s,
            longest_pause_ms: series.longest_pause_ms,
            complaints: series.complaints.clone(),
            is_part_of_clip: series.is_part_of_clip,
        }
    }
}

fn series(record: &Record, came: &Decoded) -> LiveSeries {
    let end = record.end.clone().unwrap_or_default();
    LiveSeries {
        series: record.series.clone(),
        pictures: record.pictures.clone(),
        lags: record.lags.clone(),
        layers: record.layers_at_end(),
        layer_pictures: end.layer_pictures,
        withheld: end.withheld_pictures,
        recovered: end.recovered_packets,
        first_picture_s: end.first_picture_s,
        longest_pause_ms: end.longest_pause_ms,
        decoded: came.digests.len(),
        complaints: came.complaints.clone(),
        ..LiveSeries::default()
    }
}

/// Pictures a second, from the first of these times to the last.
pub(super) fn frame_rate(times_s: &[f64]) -> f64 {
    let (Some(first), Some(last)) = (times_s.first(), times_s.last()) else { return 0.0 };
    if last > first { (times_s.len() - 1) as f64 / (last - first) } else { 0.0 }
}

/// Where the pictures of `part` stand in `whole`; `None` if it is not `whole` with some left out.
pub(super) fn places(part: &[String], whole: &[String]) -> Option<Vec<usize>> {
    let mut rest = whole.iter().enumerate();
    part.iter().map(|digest| rest.find(|(_, other)| *other == digest).map(|(place, _)| place)).collect()
}

/// The first of the clip's pictures that the strips show: late, when levels have settled, and one that the slowest put out.
fn window(pictures: usize, receivers: &[(LiveSeries, Option<Vec<usize>>)]) -> usize {
    let late = pictures * 7 / 10;
    let slowest = receivers.iter().min_by_key(|(series, _)| series.series.link);
    let places = slowest.and_then(|(_, places)| places.as_deref()).unwrap_or_default();
    places.iter().copied().find(|place| *place >= late).unwrap_or(late)
}

/// What receiver `i` put out of the clip's pictures `from` on, `None` where it put out none.
fn strip(plan: &Plan, i: usize, places: &[usize], from: usize) -> Result<Vec<Thumbnail>, Failure> {
    let shown = from..from + STRIP;
    let (numbers, put_out): (Vec<usize>, Vec<usize>) =
        places.iter().copied().enumerate().filter(|(_, place)| shown.contains(place)).unzip();
    let pictures = ffmpeg::thumbnails(&plan.received(i), &numbers, &plan.trace(Party::Receiver(i)))?;
    let mut taken: Vec<(usize, Vec<u8>)> = put_out.into_iter().zip(pictures).collect();
    let thumbnail = |place: usize| {
        let found = taken.iter().position(|(other, _)| *other == place);
        Thumbnail { number: place, jpeg: found.map(|at| taken.swap_remove(at).1) }
    };
    Ok(shown.map(thumbnail).collect())
}

/// What is not as it should be.
pub(super) fn objections(report: &LiveReport, pause_ms: f64) -> Vec<String> {
    let mut objections = Vec::new();
    for receiver in &report.receivers {
        let mut object = |text: String| objections.push(format!("{}: {text}", receiver.series.name));
        if let Some(base) = report.rates.first().filter(|base| **base > receiver.series.link) {
            object(format!("the base layer alone needs {base}, more than this link carries; --links gives others"));
            continue;
        }
        if let Some(first) = receiver.complaints.first() {
            object(format!("the decoder complained {} times, first: {}", receiver.complaints.len(), clean(first)));
        }
        let put_out: u64 = receiver.layer_pictures.iter().sum();
        if receiver.decoded as u64 != put_out {
            object(format!("{put_out} pictures were put out, and {} decode", receiver.decoded));
        }
        if !receiver.is_part_of_clip {
            object("pictures came out that the clip does not have".to_owned());
        }
        match receiver.longest_pause_ms {
            None => object("fewer than two pictures of the base layer came out".to_owned()),
            Some(pause) if pause > pause_ms => {
                object(format!("the base layer paused for {pause:.0} ms, and {pause_ms:.0} ms are borne"));
            }
            Some(_) => {}
        }
    }
    let mut by_link: Vec<&LiveSeries> = report.receivers.iter().collect();
    by_link.sort_by_key(|receiver| receiver.series.link);
    for pair in by_link.windows(2) {
        let fit = |receiver: &LiveSeries| report.rates.iter().filter(|rate| **rate <= receiver.series.link).count();
        if fit(pair[1]) > fit(pair[0]) && pair[1].frame_rate < pair[0].frame_rate * RISE {
            objections.push(format!(
                "the {} carries more layers than the {}, and had {:.1} pictures a second to {:.1}",
                pair[1].series.name, pair[0].series.name, pair[1].frame_rate, pair[0].frame_rate
            ));
        }
    }
    objections
}

fn red(message: String) -> Failure {
    Failure::new(Exit::RED, message)
}

/// The table that the demonstration ends with.
fn table(report: &LiveReport) -> String {
    let mut text = format!(
        "{:>12}  {:>6}  {:>16}  {:>10}  {:>8}  {:>5}  {:>9}  {:>13}  {:>13}  decoder\n",
        "link", "layers", "pictures", "frame rate", "withheld", "lost", "recovered", "first picture", "longest pause"
    );
    for receiver in &report.receivers {
        let [link, layers, pictures, rate, withheld, lost, recovered, first, pause, decoder] =
            receiver.in_words(report.layers);
        writeln!(
            text,
            "{link:>12}  {layers:>6}  {pictures:>16}  {rate:>10}  {withheld:>8}  {lost:>5}  {recovered:>9}  {first:>13}  {pause:>13}  {decoder}"
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// Pictures of the clip that a strip shows.
const STRIP: usize = 8;
/// A link that carries more layers has at least so many times the pictures.
const RISE: f64 = 1.2;
