//! Layered media from files of a layer each, and from another program's RTP, from a sender to a viewer on this host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_media::{SplitOptions, Splitter};
use weir_testkit::av1::{TopLayer, av1_layers};
use weir_testkit::netns::{decoded, generated_clip};

use super::WEIR;

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

#[test]
fn layers_of_hevc_and_h264_from_files_of_their_own_arrive_as_the_whole_clip_would() {
    let send = |name: &str, encoder: &str, port| {
        let folder = tempfile::tempdir().expect("a folder");
        let clip = folder.path().join(name);
        encoded(&clip, encoder, 4);
        from_files_of_their_own(&clip, port);
    };
    // Both spend their time waiting.
    std::thread::scope(|scope| {
        scope.spawn(|| send("clip.h265", HEVC, 5068));
        send("clip.h264", H264, 5066);
    });
}

#[test]
fn files_of_raw_video_that_are_not_layers_of_one_stream_are_refused_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let [clip, other, ivf] = ["clip.h264", "other.h264", "clip.ivf"].map(|name| folder.path().join(name));
    encoded(&clip, H264, 4);
    encoded(&other, "-c:v libx264 -bf 0 -g 30", 4);
    generated_clip(&ivf, "320x180", 1);
    for (layer, words) in [(&other, "no place among those of"), (&ivf, "it holds no picture")] {
        let mut command = Command::new(WEIR);
        command.args(["send", "media", "--unicast", "127.0.0.1:5064", "--quiet", "--in"]).arg(&clip);
        let output = command.arg("--layer").arg(layer).stdin(Stdio::null()).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(words), "{text}");
        assert!(text.contains(&layer.display().to_string()), "{text}");
    }
}

/// So many seconds of a generated picture by one of ffmpeg's encoders.
fn encoded(clip: &Path, encoder: &str, seconds: u32) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-f", "lavfi", "-i"]);
    command.arg(format!("testsrc2=size=320x180:rate=30:duration={seconds}"));
    let output = command.args(encoder.split(' ')).arg(clip).output().expect("ffmpeg is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// In two layers each, with groups of pictures of their own length where the scene asks for it.
const HEVC: &str = "-c:v libx265 -x265-params log-level=error:temporal-layers=1:bframes=3:keyint=30";
const H264: &str = "-c:v libx264 -x264-params bframes=3:keyint=30:b-pyramid=strict";

/// Sends the layers of a clip, each a file, to a viewer at this port.
fn from_files_of_their_own(clip: &Path, port: u16) {
    let extension = clip.extension().and_then(|extension| extension.to_str()).expect("it has one");
    let (at, out) = (format!("127.0.0.1:{port}"), clip.with_file_name(format!("out.{extension}")));
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
    shows_frames_of(clip, &out, decoded(clip).0.len());
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
    through_rtp(&clip, "vp9", &[(clip.clone(), WHOLE)], 5096, 5099);
}

#[test]
fn rtp_streams_with_a_layer_each_are_put_together_by_their_sender_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let clip = folder.path().join("clip.ivf");
    generated_clip(&clip, "320x180", 10);
    let layers: Vec<_> = split(&clip, folder.path()).into_iter().map(|layer| (layer, WHOLE)).collect();
    through_rtp(&clip, "vp9", &layers, 5086, 5095);
}

#[test]
fn rtp_streams_with_a_layer_of_hevc_or_h264_each_are_put_together_in_the_order_of_decoding() {
    // Types of NAL units: those that nothing refers to are the upper layer.
    let by_types = ["filter_units=remove_types=0|2|4|6|8", "filter_units=pass_types=0|2|4|6|8"];
    // ffmpeg filters H.264 by no reference marks, but these groups are all alike: I, then P and what nothing refers to by turns.
    let h264 = "-c:v libx264 -x264-params bframes=1:b-adapt=0:b-pyramid=none:scenecut=0:keyint=30:min-keyint=30:repeat-headers=1";
    let by_turns =
        [r"noise=drop=not(mod(mod(n\,30)\,2))*gt(mod(n\,30)\,0)", r"noise=drop=mod(mod(n\,30)\,2)+not(mod(n\,30))"];
    // RTP streams are joined where they are: parameter sets have to be repeated.
    let hevc = format!("{HEVC}:repeat-headers=1");
    // Both spend their time waiting.
    std::thread::scope(|scope| {
        scope.spawn(|| through_rtp_of_a_layer_each("h265", &hevc, by_types, 5056));
        through_rtp_of_a_layer_each("h264", h264, by_turns, 5046);
    });
}

/// Sends an encoder's output in two RTP streams, as these filters take it apart.
fn through_rtp_of_a_layer_each(codec: &str, encoder: &str, filters: [&str; 2], first_port: u16) {
    let folder = tempfile::tempdir().expect("a folder");
    let clip = folder.path().join(format!("clip.{codec}"));
    let with_times = clip.with_extension("mkv");
    encoded(&with_times, encoder, 8);
    let copied = ["-nostdin", "-v", "error", "-i"];
    let copied = Command::new("ffmpeg").args(copied).arg(&with_times).args(["-c", "copy"]).arg(&clip).status();
    assert!(copied.expect("ffmpeg is there").success());
    through_rtp(&clip, codec, &filters.map(|filter| (with_times.clone(), filter)), first_port, first_port + 6);
}

/// No filter of ffmpeg.
const WHOLE: &str = "null";

/// Sends files by ffmpeg, each through a filter, in RTP to ports from this one on, and looks at what a viewer of them at another port gets:
/// frames of the clip.
fn through_rtp(clip: &Path, codec: &str, files: &[(PathBuf, &str)], first_port: u16, viewers_port: u16) {
    let extension = clip.extension().and_then(|extension| extension.to_str()).expect("it has one");
    let (viewers_at, out) = (format!("127.0.0.1:{viewers_port}"), clip.with_file_name(format!("out.{extension}")));
    // RTCP has the port above each.
    let ports = || (first_port..).step_by(2);
    let inputs = ports().take(files.len()).flat_map(|port| ["--layer".to_owned(), format!("rtp://127.0.0.1:{port}")]);
    let mut sender = Command::new(WEIR)
        .args(["send", "media", "--unicast", &viewers_at, "--latency", "500ms", "--quiet", "--measure", "1s"])
        .args(["--codec", codec, "--in"])
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
    files.iter().for_each(|(file, _)| _ = ffmpeg.args(["-re", "-copyts", "-i"]).arg(file));
    for ((number, (_, filter)), port) in files.iter().enumerate().zip(ports()) {
        ffmpeg.args(["-map", &number.to_string(), "-bsf:v", filter]);
        // Upper layers have no key pictures.
        ffmpeg.args(["-c", "copy", "-copyinkf", "-strict", "experimental"]);
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

/// A file for each layer, those of an IVF file with its times.
fn split(clip: &Path, folder: &Path) -> Vec<PathBuf> {
    let bytes = fs::read(clip).expect("it is there");
    let mut splitter = Splitter::new(SplitOptions::default());
    splitter.push(&bytes);
    splitter.finish();
    let pictures: Vec<_> = splitter.by_ref().map(|picture| picture.expect("ffmpeg's clips are whole")).collect();
    let is_ivf = bytes.starts_with(b"DKIF");
    let (header, mut frames) = bytes.split_at(if is_ivf { 32 } else { 0 });
    let mut files = vec![header.to_vec(); usize::from(splitter.layers())];
    assert_eq!(files.len(), if is_ivf { 3 } else { 2 });
    for picture in pictures {
        let file = &mut files[usize::from(picture.info.layer)];
        if !is_ivf {
            file.extend(picture.data);
            continue;
        }
        let length = u32::from_le_bytes(*frames.first_chunk().expect("a frame's header"));
        let (frame, rest) = frames.split_at(12 + length as usize);
        file.extend(frame);
        frames = rest;
    }
    let name = |(place, bytes): (usize, &Vec<u8>)| {
        let path = folder.join(format!("layer{place}")).with_extension(clip.extension().expect("it has one"));
        fs::write(&path, bytes).expect("it can be written");
        path
    };
    files.iter().enumerate().map(name).collect()
}
