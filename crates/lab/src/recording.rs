//! A run written down while it is made: event by event, or packet by packet for Wireshark.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use weir_capture::CaptureError;
use weir_core::Observation;
use weir_link::DropReason;
use weir_sim::{AgentId, LinkId, Monitor, Packet};
use weir_units::Time;
use weir_wire::CciForm;

use crate::capture::PacketCapture;
use crate::run::{Names, RunError, watch};
use crate::scenario::Setup;
use crate::trace::{Filter, FilterError, Format, Tracer};

/// Where a run is written to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// Events of the network.
    pub trace: Option<TraceFile>,
    /// The packets of the bottleneck, as pcapng.
    pub pcap: Option<PathBuf>,
}

/// Where events are written to, how, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    /// The file.
    pub path: PathBuf,
    /// How. Default: Parquet for a file that ends in `.parquet`, else text.
    pub format: Option<Format>,
    /// Which.
    pub filter: Filter,
}

impl TraceFile {
    /// All events, in the form that the file's ending says.
    pub fn new(path: impl Into<PathBuf>) -> TraceFile {
        TraceFile { path: path.into(), format: None, filter: Filter::default() }
    }

    fn open(&self, names: &Names) -> Result<Tracer, RecordingError> {
        let is_parquet = self.path.extension().is_some_and(|ending| ending == "parquet");
        let format = self.format.unwrap_or(if is_parquet { Format::Parquet } else { Format::Text });
        let file = File::create(&self.path).map_err(|error| cannot(&self.path, error))?;
        Ok(Tracer::new(BufWriter::new(file), format, &self.filter, names)?)
    }
}

/// Why a run could not be written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It cannot be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The trace cannot be written.
    #[error("cannot write {path}: {error}")]
    Trace {
        /// The file.
        path: String,
        /// What is wrong.
        error: io::Error,
    },
    /// The run has nothing that is called so.
    #[error("cannot trace: {0}")]
    Filter(#[from] FilterError),
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

impl Recording {
    /// Whether anything is asked for.
    pub fn is_wanted(&self) -> bool {
        self.trace.is_some() || self.pcap.is_some()
    }

    /// Makes the run of `setup` with `seed` and writes it down.
    pub fn write(&self, setup: &Setup, seed: u64) -> Result<(), RecordingError> {
        // A capture has one form for all sessions: that of the first.
        let agreed = setup.session.values().next().and_then(|session| session.agreed().ok());
        let form = agreed.map_or(CciForm::Short, |agreed| agreed.form);
        let (trace, capture) = watch(setup, seed, |names| {
            let trace = self.trace.as_ref().map(|file| file.open(names)).transpose()?;
            let bottleneck = names.bottleneck;
            let create = |(path, link): (&PathBuf, _)| PacketCapture::create(path, link, form);
            let capture = self.pcap.as_ref().zip(bottleneck).map(create).transpose()?;
            Ok::<_, RecordingError>((Wish(trace), Wish(capture)))
        })?;
        if let (Some(trace), Some(file)) = (trace.0, &self.trace) {
            trace.finish().map_err(|error| cannot(&file.path, error))?;
        }
        capture.0.map_or(Ok(()), |capture| Ok(capture.finish()?))
    }
}

fn cannot(path: &Path, error: io::Error) -> RecordingError {
    RecordingError::Trace { path: path.display().to_string(), error }
}

/// A monitor that may not be wanted.
struct Wish<M>(Option<M>);

impl<M: Monitor> Monitor for Wish<M> {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        self.0.iter_mut().for_each(|monitor| monitor.observe(now, agent, observation));
    }

    fn observe_session(&mut self, now: Time, agent: AgentId, session: u16, observation: &Observation) {
        self.0.iter_mut().for_each(|monitor| monitor.observe_session(now, agent, session, observation));
    }

    fn arrive(&mut self, now: Time, agent: AgentId, packet: &Packet) {
        self.0.iter_mut().for_each(|monitor| monitor.arrive(now, agent, packet));
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, number: Option<u64>) {
        self.0.iter_mut().for_each(|monitor| monitor.deliver(now, agent, bytes, number));
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        self.0.iter_mut().for_each(|monitor| monitor.complete(now, agent));
    }

    fn member(&mut self, now: Time, agent: AgentId, channel: u16, joins: bool) {
        self.0.iter_mut().for_each(|monitor| monitor.member(now, agent, channel, joins));
    }

    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.0.iter_mut().for_each(|monitor| monitor.enqueue(now, link, packet));
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        self.0.iter_mut().for_each(|monitor| Monitor::drop(monitor, at, link, packet, reason));
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.0.iter_mut().for_each(|monitor| monitor.dequeue(now, link, packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dossier::Dossier;

    const FILE: &str = r#"
id = "mine/one"
title = "One client"
duration = "2s"
[topology.dumbbell]
bottleneck = "rate=1M,buffer=20p"
[session.main]
scheme = "avmrc"
ladder = { low = "256k", high = "1M", ratio = 1.5 }
receivers = { rtt = "100ms" }
[metrics]
rate = { measure = "throughput", session = "main" }
"#;

    #[test]
    fn a_run_leaves_its_lines_and_its_packets() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| Some(folder.path().join(name));
        let recording = Recording { trace: at("run.tr").map(TraceFile::new), pcap: at("run.pcapng") };
        let points = Dossier::parse("one.toml", FILE, &[]).expect("sound").scenario.points().expect("sound");
        recording.write(&points[0].setup, 1).expect("it can be written");
        let lines = std::fs::read_to_string(folder.path().join("run.tr")).expect("a trace");
        assert!(["+ ", "- ", "r ", "o "].iter().all(|word| lines.lines().any(|line| line.starts_with(word))));
        let packets = std::fs::read(folder.path().join("run.pcapng")).expect("a capture");
        assert!(packets.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && packets.len() > 1000);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let points = Dossier::parse("one.toml", FILE, &[]).expect("sound").scenario.points().expect("sound");
        for recording in [
            Recording { trace: Some(TraceFile::new("/nowhere/run.tr")), pcap: None },
            Recording { trace: None, pcap: Some("/nowhere/run.pcapng".into()) },
        ] {
            let error = recording.write(&points[0].setup, 1).expect_err("there is no such folder").to_string();
            assert!(error.contains("/nowhere/run."), "{error}");
        }
    }
}
