//! A run written down while it is made: event by event as lines of text, or packet by packet for Wireshark.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use weir_capture::CaptureError;
use weir_link::DropReason;
use weir_sim::trace::Trace;
use weir_sim::{LinkId, Monitor, Packet};
use weir_units::Time;
use weir_wire::CciForm;

use crate::capture::PacketCapture;
use crate::run::{RunError, watch};
use crate::scenario::Setup;

/// Where a run is written to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// Every event of the network, a line each.
    pub trace: Option<PathBuf>,
    /// The packets of the bottleneck, as pcapng.
    pub pcap: Option<PathBuf>,
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
        let cannot = |error| {
            let path = self.trace.iter().map(|path| path.display().to_string()).collect();
            RecordingError::Trace { path, error }
        };
        let out: Box<dyn Write> = match &self.trace {
            Some(path) => Box::new(BufWriter::new(File::create(path).map_err(cannot)?)),
            None => Box::new(io::sink()),
        };
        let mut failed = None;
        let mut capture = |bottleneck: LinkId| {
            // The lab's sessions send the short form: see `Session::agreed`.
            let made = self.pcap.as_ref().map(|path| PacketCapture::create(path, bottleneck, CciForm::Short));
            made.and_then(|made| made.map_err(|error| failed = Some(error)).ok())
        };
        let (trace, capture) = watch(setup, seed, |bottleneck| (Trace::new(out), Tap(capture(bottleneck))))?;
        trace.finish().map_err(cannot)?;
        match (failed, capture.0) {
            (Some(error), _) => Err(error.into()),
            (None, Some(capture)) => Ok(capture.finish()?),
            (None, None) => Ok(()),
        }
    }
}

/// A capture that may not be wanted.
struct Tap(Option<PacketCapture>);

impl Monitor for Tap {
    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        if let Some(capture) = &mut self.0 {
            Monitor::drop(capture, at, link, packet, reason);
        }
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if let Some(capture) = &mut self.0 {
            capture.dequeue(now, link, packet);
        }
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
        let recording = Recording { trace: at("run.tr"), pcap: at("run.pcapng") };
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
            Recording { trace: Some("/nowhere/run.tr".into()), pcap: None },
            Recording { trace: None, pcap: Some("/nowhere/run.pcapng".into()) },
        ] {
            let error = recording.write(&points[0].setup, 1).expect_err("there is no such folder").to_string();
            assert!(error.contains("/nowhere/run."), "{error}");
        }
    }
}
