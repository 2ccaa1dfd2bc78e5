//! Layered media from files of a layer each, and from another program's RTP, from a sender to a viewer on this host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_media::{SplitOptions, Splitter};
use weir_testkit::av1::{TopLayer, av1_layers};
use weir_testkit::netns::{decoded, generated_clip};

#[test]
fn layers_from_files_of_their_own_arrive_as_the_whole_clip_would() {
    let folder = tempfile::tempdir().expect("a folder");
    let clip = folder.path().join("clip.ivf");
    generated_clip(&clip, "320x180", 4);
    from_files_of_their_own(&clip, 5098);
}

#[test]
fn layers_of_av1_from_files_of_their_own_arrive_as_the_whole_clip_would() {
    let folder = tempfile::tempdir().expect("a folder");
    let clip = folder.path().join("clip.ivf");
    fs::write(&clip, av1_layers((320, 180), 4, 3, TopLayer::Free)).expect("a folder of its own takes files");
    from_files_of_their_own(&clip, 5078);
}

/// Sends the layers of a clip, each a file, to a viewer at this port.
fn from_files_of_their_own(clip: &Path, port: u16) {
    let (at, out) = (format!("127.0.0.1:{port}"), clip.with_file_name("out.ivf"));
    let layers = split(clip, clip.parent().expect("it is in a folder"));
    let mut sender = Command::new(WEIR)
        .args(["send", "media", "--unicast", &at, "--latency", "500ms", "--quiet", "--in"])
        .arg(&layers[0])
        .args(layers[1..].iter().flat_map(|layer| ["--layer".as_ref(), layer.as_os_str()]))
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let viewer = Command::new(WEIR).args(["recv", &at, "--quiet", "--out"]).arg(&out).output().expect("it runs");
    let sent = sender.wait().expect("it runs");
    assert!(sent.success() && viewer.status.success(), "{}", String::from_utf8_lossy(&viewer.stderr));
    // Upper layers begin a little later.
    shows_frames_of(clip, &out, 70);
}

#[test]
fn av1_in_rtp_is_sent_on_as_it_came() {
    let folder = tempfile::tempdir().expect("a folder");
    let [clip, out] = ["clip.ivf", "out.ivf"].map(|name| folder.path().join(name));
    fs::write(&clip, av1_layers((320, 180), 8, 3, TopLayer::Free)).expect("a folder of its own takes files");
    let [first, between, second] = [5070, 5072, 5074].map(|port| format!("127.0.0.1:{port}"));
    let weir = |arguments: &[&str]| {
        let mut command = Command::new(WEIR);
        command.args(arguments).stdin(Stdio::null());
        command
    };
    let media = ["send", "media", "--quiet", "--latency", "300ms"];
    let into = format!("rtp://{between}");
    // ffmpeg 5.1 knows no RTP of AV1. FFmpeg 8 was seen to read what is put out here, and to send what is taken here.
    let relaying = ["--codec", "av1", "--measure", "500ms", "--unicast", &second, "--in", &into];
    let mut relay = weir(&[&media[..], &relaying].concat()).spawn().expect("it starts");
    let viewer = weir(&["recv", &second, "--quiet", "--for", "10s", "--out"]).arg(&out).spawn().expect("it starts");
    let mut player = weir(&["recv", &first, "--quiet", "--out", &into]).spawn().expect("it starts");
    let sent = weir(&[&media[..], &["--unicast", &first, "--in"]].concat()).arg(&clip).status().expect("it runs");
    assert!(sent.success() && player.wait().expect("it runs").success());
    assert!(viewer.wait_with_output().expect("it runs").status.success());
    relay.kill().expect("it runs");
    relay.wait().expect("it was killed");
    // The relay looks at the first half second, and is shown from a key picture on: without the top layer half would be there at most.
    shows_frames_of(&clip, &out, 130);
}

/// Asserts that the output decodes without an error, to frames of the clip in their order, and to at least this many.
fn shows_frames_of(clip: &Path, out: &Path, least: usize) {
    let ((frames, complaints), (originals, _)) = (decoded(out), decoded(clip));
    assert_eq!(complaints, "");
    let mut rest = originals.iter();
    assert!(frames.iter().all(|frame| rest.any(|original| original == frame)), "frames of the clip, in its order");
    assert!(frames.len() >= least, "{} of {} frames", frames.len(), originals.len());
}

#[test]
fn rtp_of_another_program_is_taken_from_its_next_key_picture_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let clip = folder.path().join("clip.ivf");
    generated_clip(&clip, "320x180", 10);
    through_rtp(&clip, std::slice::from_ref(&clip), 5096, 5099);
}

#[test]
fn rtp_streams_with_a_layer_each_are_put_together_by_their_sender_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let clip = folder.path().join("clip.ivf");
    generated_clip(&clip, "320x180", 10);
    let layers = split(&clip, folder.path());
    through_rtp(&clip, &layers, 5086, 5095);
}

/// Sends files by ffmpeg in RTP to ports from this one on, and looks at what a viewer of them at another port gets: frames of the clip.
fn through_rtp(clip: &Path, files: &[PathBuf], first_port: u16, viewers_port: u16) {
    let (viewers_at, out) = (format!("127.0.0.1:{viewers_port}"), clip.with_file_name("out.ivf"));
    // RTCP has the port above each.
    let ports = || (first_port..).step_by(2);
    let inputs = ports().take(files.len()).flat_map(|port| ["--layer".to_owned(), format!("rtp://127.0.0.1:{port}")]);
    let mut sender = Command::new(WEIR)
        .args(["send", "media", "--unicast", &viewers_at, "--latency", "500ms", "--quiet", "--measure", "1s"])
        .args(["--codec", "vp9", "--in"])
        .args(inputs.skip(1))
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let viewer = Command::new(WEIR)
        .args(["recv", &viewers_at, "--quiet", "--for", "12s", "--out"])
        .arg(&out)
        .spawn()
        .expect("it starts");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error"]);
    files.iter().for_each(|file| _ = ffmpeg.args(["-re", "-copyts", "-i"]).arg(file));
    for (number, port) in (0..files.len()).zip(ports()) {
        // Upper layers have no key pictures.
        ffmpeg.args(["-map", &number.to_string(), "-c", "copy", "-copyinkf", "-strict", "experimental"]);
        ffmpeg.args(["-f", "rtp", &format!("rtp://127.0.0.1:{port}?pkt_size=1200")]);
    }
    let program = ffmpeg.output().expect("ffmpeg is there");
    assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
    let seen = viewer.wait_with_output().expect("it runs");
    sender.kill().expect("it runs");
    sender.wait().expect("it was killed");
    assert!(seen.status.success());
    // What is looked at is not sent, and the viewer has to come. Without the top layer half of the frames would be there at most.
    shows_frames_of(clip, &out, decoded(clip).0.len() / 2 + 1);
}

/// A file for each layer of an IVF file, with its times.
fn split(clip: &Path, folder: &Path) -> Vec<PathBuf> {
    let bytes = fs::read(clip).expect("it is there");
    let mut splitter = Splitter::new(SplitOptions::default());
    splitter.push(&bytes);
    splitter.finish();
    let layers: Vec<u8> =
        splitter.by_ref().map(|picture| picture.expect("ffmpeg's clips are whole").info.layer).collect();
    let (header, mut frames) = bytes.split_at(32);
    let mut files = vec![header.to_vec(); usize::from(splitter.layers())];
    assert_eq!(files.len(), 3);
    for layer in layers {
        let length = u32::from_le_bytes(*frames.first_chunk().expect("a frame's header"));
        let (frame, rest) = frames.split_at(12 + length as usize);
        files[usize::from(layer)].extend(frame);
        frames = rest;
    }
    let name = |(place, bytes): (usize, &Vec<u8>)| {
        let path = folder.join(format!("layer{place}.ivf"));
        fs::write(&path, bytes).expect("it can be written");
        path
    };
    files.iter().enumerate().map(name).collect()
}

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
