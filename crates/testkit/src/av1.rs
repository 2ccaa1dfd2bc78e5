//! AV1 with temporal layers: ffmpeg's encoders make none, so a small program of libaom's real-time encoder does.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// How pictures of the top layer refer to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopLayer {
    /// To lower layers only.
    Free,
    /// Also to each other, so that no receiver can have a part of them.
    Chained,
}

/// An IVF file of AV1: a test picture at 30 pictures a second, in 1, 2 or 3 temporal layers, at 300 kb/s, with a key picture every two
/// seconds.
///
/// # Panics
///
/// If a C compiler, libaom's headers or ffmpeg are not there, or fail.
pub fn av1_layers(size: (u32, u32), seconds: u32, layers: u8, top: TopLayer) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, encoder) = (folder.path().join("av1_layers.c"), folder.path().join("av1_layers"));
    std::fs::write(&source, include_str!("av1_layers.c")).expect("a folder of its own takes files");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Werror", "-o"]).args([&encoder, &source]).arg("-laom");
    let compiled = compiler.output().unwrap_or_else(|error| panic!("this needs a C compiler: {error}"));
    let complaints = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "this needs libaom (apt-get install libaom-dev): {complaints}");
    let (width, height) = size;
    let pictures = raw_pictures(&format!("testsrc2=size={width}x{height}:rate=30:duration={seconds}"));
    let mut encoding = Command::new(&encoder);
    encoding.args([width, height, layers.into(), 300, 60].map(|number| number.to_string()));
    encoding.args((top == TopLayer::Chained).then_some("chained"));
    let mut child = encoding.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was compiled");
    let mut stdin = child.stdin.take().expect("piped");
    let feeder = std::thread::spawn(move || stdin.write_all(&pictures));
    let output = child.wait_with_output().expect("it runs");
    feeder.join().expect("no panic").expect("it reads all pictures");
    assert!(output.status.success(), "libaom does not encode");
    output.stdout
}

fn raw_pictures(source: &str) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-v", "warning", "-f", "lavfi", "-i", source]);
    command.args(["-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]);
    let output = command.output().unwrap_or_else(|error| panic!("this needs ffmpeg (apt-get install ffmpeg): {error}"));
    assert!(output.status.success(), "ffmpeg: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
