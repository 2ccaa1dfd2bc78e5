//! What one receiver of a programme has told, as the report wants it.

use weir_units::{Bytes, Rate};

use crate::exit::Failure;
use crate::media::MediaReceiverEvent;
use crate::media::events::{WatchEnd, WatchProgress};
use crate::report::{Pictures, Sample, Series, Step, round_rate};

/// The record of one receiver.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    /// Rates and levels, for the report.
    pub(super) series: Series,
    /// Pictures put out by layer, since the start.
    pub(super) pictures: Vec<Pictures>,
    /// The longest lag of a picture, in milliseconds, since the one before.
    pub(super) lags: Vec<(f64, f64)>,
    /// Rates of the levels, as it told.
    pub(super) rates: Vec<Rate>,
    /// Layers that there are.
    pub(super) layers: usize,
    /// Its last event.
    pub(super) end: Option<WatchEnd>,
    /// Why it failed.
    pub(super) failure: Option<Failure>,
}

impl Record {
    /// An empty record of a receiver on this link.
    pub(super) fn new(link: Rate) -> Record {
        let series = Series { name: format!("{} link", round_rate(link)), link, ..Series::default() };
        Record { series, ..Record::default() }
    }

    /// Takes note of an event.
    pub(super) fn take(&mut self, event: &MediaReceiverEvent) {
        match event {
            MediaReceiverEvent::Start(start) => {
                self.rates = start.rates_bps.iter().map(|bps| Rate::from_bps(*bps)).collect();
                self.layers = start.layers;
                self.pictures.push(Pictures { t_s: 0.0, by_layer: vec![0; start.layers] });
            }
            MediaReceiverEvent::Level(level) => self.step(level.t_s, level.level, Rate::from_bps(level.rate_bps)),
            MediaReceiverEvent::Progress(progress) => self.progress(progress),
            MediaReceiverEvent::End(end) => {
                self.series.received = Bytes::new(end.received_bytes);
                self.series.received_packets = end.received_packets;
                self.series.lost_packets = end.lost_packets;
                self.end = Some(end.clone());
            }
            MediaReceiverEvent::Waiting(_) | MediaReceiverEvent::Error(_) => {}
        }
    }

    fn progress(&mut self, progress: &WatchProgress) {
        let rate = progress.level.checked_sub(1).and_then(|index| self.rates.get(index)).copied();
        self.step(progress.t_s, progress.level, rate.unwrap_or(Rate::ZERO));
        self.series.samples.push(Sample {
            t_s: progress.t_s,
            received: Rate::from_bps(progress.rate_bps),
            queuing_delay_ms: 0.0,
            lost_packets: progress.lost_packets,
        });
        self.pictures.push(Pictures { t_s: progress.t_s, by_layer: progress.layer_pictures.clone() });
        self.lags.extend(progress.lag_ms.map(|lag| (progress.t_s, lag)));
    }

    /// A level, if it is not the one that holds anyway.
    fn step(&mut self, t_s: f64, level: usize, rate: Rate) {
        if self.series.steps.last().is_none_or(|last| last.level != level) {
            self.series.steps.push(Step { t_s, level, rate });
        }
    }

    /// Layers of which pictures came out in the last [`END_S`] before the last picture.
    pub(super) fn layers_at_end(&self) -> usize {
        let Some(last) = self.pictures.last() else { return 0 };
        let ended_s = self.pictures.iter().find(|count| count.by_layer == last.by_layer).map_or(0.0, |count| count.t_s);
        let before = self.pictures.iter().rev().find(|count| count.t_s <= ended_s - END_S);
        let before = before.map_or(&[][..], |count| &count.by_layer);
        let came = |layer: usize| last.by_layer[layer] > before.get(layer).copied().unwrap_or(0);
        (0..last.by_layer.len()).filter(|layer| came(*layer)).count()
    }

    /// How it stands.
    pub(super) fn in_words(&self) -> String {
        let link = round_rate(self.series.link);
        let (Some(sample), Some(last)) = (self.series.samples.last(), self.pictures.last()) else {
            return format!("{link}: joining");
        };
        let level = self.series.steps.last().map_or(0, |step| step.level);
        let pictures: u64 = last.by_layer.iter().sum();
        format!("{link}: level {level}, {}, {pictures} pictures", sample.received)
    }
}

/// Over this many seconds layers at the end are looked for.
const END_S: f64 = 2.0;
