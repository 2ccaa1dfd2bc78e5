//! Layered video from ffmpeg's encoder, what its decoder makes of what came, and a programme of `weir` between hosts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::process::Process;
use super::topology::Network;

/// Writes a VP9 clip of three temporal layers at 30 pictures a second, with a key picture every two seconds.
///
/// # Panics
///
/// If ffmpeg is not there or fails.
pub fn generated_clip(path: &Path, size: &str, seconds: u32) {
    let source = format!("testsrc2=size={size}:rate=30:duration={seconds}");
    let layers = "ts_number_layers=3:ts_target_bitrate=600,1000,1500:ts_rate_decimator=4,2,1:ts_periodicity=4:ts_layer_id=0,2,1,2:ts_layering_mode=3";
    let encoder = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -error-resilient 1 -lag-in-frames 0 -g 60 -b:v 1500k -minrate 1500k -maxrate 1500k -bufsize 1500k";
    let mut command = ffmpeg();
    command.args(["-y", "-f", "lavfi", "-i", &source]).args(encoder.split(' '));
    command.args(["-ts-parameters", layers, "-f", "ivf"]).arg(path);
    let output = command.output().unwrap_or_else(|error| panic!("this needs ffmpeg (apt-get install ffmpeg): {error}"));
    assert!(output.status.success(), "ffmpeg: {}", String::from_utf8_lossy(&output.stderr));
}

/// The digests of the frames that ffmpeg decodes of an IVF file, in order, and what it complained of.
///
/// # Panics
///
/// If ffmpeg is not there.
pub fn decoded(path: &Path) -> (Vec<String>, String) {
    let mut command = ffmpeg();
    let extension = path.extension().and_then(|extension| extension.to_str());
    let format = match extension {
        Some("h264") => "h264",
        Some("h265") => "hevc",
        _ => "ivf",
    };
    command.args(["-f", format, "-i"]).arg(path).args(["-fps_mode", "passthrough", "-f", "framemd5", "-"]);
    let output = command.output().unwrap_or_else(|error| panic!("this needs ffmpeg (apt-get install ffmpeg): {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let frames = text.lines().filter(|line| !line.starts_with('#'));
    let digests = frames.map(|line| line.rsplit(',').next().unwrap_or_default().trim().to_owned());
    (digests.collect(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-v", "warning"]).stdin(Stdio::null());
    command
}

/// A programme that is sent, and where its description is.
#[derive(Debug)]
pub struct Programme {
    /// `weir send media`, printing events.
    pub sender: Process,
    program: PathBuf,
    description: PathBuf,
}

impl Programme {
    /// Starts to send `clip`; what is said of the session lies in `folder`.
    pub fn start<'w>(
        network: &Network,
        program: &Path,
        clip: &Path,
        folder: &Path,
        words: impl IntoIterator<Item = &'w str>,
    ) -> Programme {
        Programme::start_to("239.255.0.1:5004", network, program, clip, folder, words)
    }

    /// The same to this group.
    pub fn start_to<'w>(
        to: &str,
        network: &Network,
        program: &Path,
        clip: &Path,
        folder: &Path,
        words: impl IntoIterator<Item = &'w str>,
    ) -> Programme {
        let description = folder.join("programme.sdp");
        let sender = network.sender().command(program).args(["send", "media", "--json", "--to", to]);
        let sender = sender.args(["--iface", network.sender().interface(), "--in"]).arg(clip);
        let sender = sender.arg("--session").arg(&description).args(words).start();
        let programme = Programme { sender, program: program.to_owned(), description };
        programme.sender.event("start", START, |_| true);
        programme
    }

    /// A receiver of it on receiver `index`'s host, printing events.
    pub fn watch<'w>(
        &self,
        network: &Network,
        index: usize,
        out: impl AsRef<std::ffi::OsStr>,
        words: impl IntoIterator<Item = &'w str>,
    ) -> Process {
        let host = network.receiver(index);
        let command = host.command(&self.program).arg("recv").arg(&self.description);
        command.args(["--json", "--iface", host.interface(), "--out"]).arg(out).args(words).start()
    }

    /// What receivers are told.
    pub fn description(&self) -> String {
        fs::read_to_string(&self.description).expect("the sender has written it")
    }
}

/// How long a sender may take to look at its input.
const START: Duration = Duration::from_secs(60);
