//! What one receiver has told, as the report wants it.

use weir_units::{Bytes, Rate};

use crate::events::{ReceiverEvent, ReceiverProgress};
use crate::exit::Failure;
use crate::report::{Sample, Series, Step, round_rate};

/// The record of one receiver.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    /// For the report.
    pub(super) series: Series,
    /// The latest progress.
    pub(super) latest: ReceiverProgress,
    /// It has joined.
    pub(super) has_started: bool,
    /// It says that everything came and is verified; `None` while it has not ended.
    pub(super) says_verified: Option<bool>,
    /// Rates of the levels, as it told.
    pub(super) rates: Vec<Rate>,
    /// Why it failed.
    pub(super) failure: Option<Failure>,
}

impl Record {
    /// An empty record of a receiver on this link that is to get `bytes`.
    pub(super) fn new(link: Rate, bytes: Bytes) -> Record {
        let ideal_seconds = (bytes / link).as_secs_f64();
        let series = Series { name: format!("{} link", round_rate(link)), link, ideal_seconds, ..Series::default() };
        Record { series, ..Record::default() }
    }

    /// Takes note of an event.
    pub(super) fn take(&mut self, event: &ReceiverEvent) {
        match event {
            ReceiverEvent::Start(start) => {
                self.has_started = true;
                self.rates = start.rates_bps.iter().map(|bps| Rate::from_bps(*bps)).collect();
            }
            ReceiverEvent::Level(level) => self.step(level.t_s, level.level, level.rate_bps),
            ReceiverEvent::Progress(progress) => {
                self.step(progress.t_s, progress.level, progress.level_rate_bps);
                self.series.samples.push(Sample {
                    t_s: progress.t_s,
                    received: Rate::from_bps(progress.rate_bps),
                    queuing_delay_ms: progress.queuing_delay_ms,
                    lost_packets: progress.lost_packets,
                });
                self.series.lost_packets = progress.lost_packets;
                self.series.received_packets = progress.received_packets;
                self.series.received = Bytes::new(progress.received_bytes);
                self.latest = progress.clone();
            }
            ReceiverEvent::End(end) => {
                self.says_verified = Some(end.verified);
                self.series.seconds = end.verified.then_some(end.seconds);
                self.series.received = Bytes::new(end.received_bytes);
                self.series.received_packets = end.received_packets;
                self.series.lost_packets = end.lost_packets;
                self.series.host_dropped_packets = end.host_dropped_packets;
            }
            ReceiverEvent::Waiting(_) | ReceiverEvent::File(_) | ReceiverEvent::Receipt(_) => {}
            ReceiverEvent::Hook(_) | ReceiverEvent::Listening(_) | ReceiverEvent::Announced(_) => {}
            ReceiverEvent::Error(_) => {}
        }
    }

    /// True once its last event came.
    pub(super) fn has_ended(&self) -> bool {
        self.says_verified.is_some()
    }

    /// How much of the content has come, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        match self.latest.needed_bytes {
            _ if self.says_verified == Some(true) => 1.0,
            Some(needed) if needed > 0 => (self.latest.useful_bytes as f64 / needed as f64).min(1.0),
            _ => 0.0,
        }
    }

    /// A level, if it is not the one that holds anyway.
    fn step(&mut self, t_s: f64, level: usize, rate_bps: u64) {
        if self.series.steps.last().is_none_or(|last| last.level != level) {
            self.series.steps.push(Step { t_s, level, rate: Rate::from_bps(rate_bps) });
        }
    }
}
