//! Streams from ffmpeg's encoders, what its decoders make of them, and the way of pictures in between.

// Each test program uses its share.
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use weir_media::{Arrival, Assembler, Codec, Gate, MediaError, Packetizer, Picture, SplitOptions, Splitter, Writer};
use weir_testkit::av1::{TopLayer, av1_layers};

/// Four seconds at 30 pictures a second.
pub(crate) const PICTURES: usize = 120;

const SOURCE: &str = "testsrc2=size=320x180:rate=30:duration=4";

pub(crate) const VP9_THREE_LAYERS: &str = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -error-resilient 1 -lag-in-frames 0 -b:v 300k -minrate 300k -maxrate 300k -bufsize 300k -g 60 \
    -ts-parameters ts_number_layers=3:ts_target_bitrate=120,200,300:ts_rate_decimator=4,2,1:ts_periodicity=4:ts_layer_id=0,2,1,2:ts_layering_mode=3 \
    -f ivf";

pub(crate) const VP9_TWO_LAYERS: &str = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -error-resilient 1 -lag-in-frames 0 -b:v 300k -minrate 300k -maxrate 300k -bufsize 300k -g 60 \
    -ts-parameters ts_number_layers=2:ts_target_bitrate=200,300:ts_rate_decimator=2,1:ts_periodicity=2:ts_layer_id=0,1:ts_layering_mode=2 \
    -f ivf";

/// No options of ffmpeg, whose encoders make no layers of AV1: see [`weir_testkit::av1`].
pub(crate) const AV1_THREE_LAYERS: &str = "AV1 in three layers";
pub(crate) const AV1_TWO_LAYERS: &str = "AV1 in two layers";
pub(crate) const AV1_CHAINED_LAYERS: &str = "AV1 in two layers, of which the top one refers to itself";

pub(crate) const HEVC_TWO_LAYERS: &str = "-c:v libx265 -preset veryfast -x265-params \
    log-level=error:temporal-layers=1:bframes=1:b-adapt=0:keyint=30:min-keyint=30:scenecut=0:open-gop=0:repeat-headers=1 -f hevc";

pub(crate) const HEVC_OPEN_GROUPS: &str = "-c:v libx265 -preset veryfast -x265-params \
    log-level=error:temporal-layers=1:bframes=1:b-adapt=0:keyint=30:min-keyint=30:scenecut=0:open-gop=1:repeat-headers=1 -f hevc";

pub(crate) const H264_TWO_LAYERS: &str =
    "-c:v libx264 -x264-params bframes=1:b-adapt=0:b-pyramid=none:scenecut=0:keyint=30:min-keyint=30 -f h264";

/// What ffmpeg writes to its standard output. Panics if it is not there, fails or complains.
pub(crate) fn ffmpeg(arguments: &str, input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-v", "warning"]).args(arguments.split_whitespace());
    // Without this, SVT-AV1 introduces itself whatever ffmpeg is told.
    command.env("SVT_LOG", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let spawned = command.spawn();
    let mut child = spawned.unwrap_or_else(|error| panic!("these tests need ffmpeg (apt-get install ffmpeg): {error}"));
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("ffmpeg runs");
    // ffmpeg may have read enough before the end.
    let _ = feeder.join().expect("no panic");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "ffmpeg {arguments}: {complaints}");
    output.stdout
}

/// The bytes that an encoder makes of the test picture. Tests of one program share them.
pub(crate) fn encode(encoder: &str) -> Vec<u8> {
    static STREAMS: Mutex<BTreeMap<String, Arc<OnceLock<Vec<u8>>>>> = Mutex::new(BTreeMap::new());
    let stream = STREAMS.lock().expect("no panic within").entry(encoder.to_owned()).or_default().clone();
    stream.get_or_init(|| made(encoder)).clone()
}

fn made(encoder: &str) -> Vec<u8> {
    let av1 = |layers, top| av1_layers((320, 180), 4, layers, top);
    match encoder {
        AV1_THREE_LAYERS => av1(3, TopLayer::Free),
        AV1_TWO_LAYERS => av1(2, TopLayer::Free),
        AV1_CHAINED_LAYERS => av1(2, TopLayer::Chained),
        _ => ffmpeg(&format!("-f lavfi -i {SOURCE} {encoder} -"), &[]),
    }
}

/// The digests of all frames that ffmpeg decodes, in order.
pub(crate) fn decode(codec: Codec, stream: &[u8]) -> Vec<String> {
    let format = format_name(codec);
    let text = ffmpeg(&format!("-f {format} -i - -f framemd5 -fps_mode passthrough -"), stream);
    digests(&String::from_utf8(text).expect("text"))
}

pub(crate) fn digests(framemd5: &str) -> Vec<String> {
    let lines = framemd5.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit(',').next().expect("fields").trim().to_owned()).collect()
}

pub(crate) fn format_name(codec: Codec) -> &'static str {
    match codec {
        Codec::Vp9 | Codec::Av1 => "ivf",
        Codec::Hevc => "hevc",
        Codec::H264 => "h264",
    }
}

/// The pictures of a stream, which must have nothing wrong, and its splitter.
pub(crate) fn split(stream: &[u8]) -> (Splitter, Vec<Picture>) {
    let (splitter, pictures, errors) = split_with_errors(stream);
    assert_eq!(errors, []);
    (splitter, pictures)
}

pub(crate) fn split_with_errors(stream: &[u8]) -> (Splitter, Vec<Picture>, Vec<MediaError>) {
    let mut splitter = Splitter::new(SplitOptions::default());
    let (mut pictures, mut errors) = (Vec::new(), Vec::new());
    let mut sort = |splitter: &mut Splitter| {
        for item in splitter {
            match item {
                Ok(picture) => pictures.push(picture),
                Err(error) => errors.push(error),
            }
        }
    };
    for piece in stream.chunks(777) {
        splitter.push(piece);
        sort(&mut splitter);
    }
    splitter.finish();
    sort(&mut splitter);
    (splitter, pictures, errors)
}

/// An RTP packet on its way, in the stream of its layer.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) sequence: u16,
    pub(crate) timestamp: u32,
    pub(crate) info: weir_media::PictureInfo,
    pub(crate) payload: weir_media::Payload,
}

/// The packets of all layers up to `top`, in the order of sending.
pub(crate) fn packets(codec: Codec, pictures: &[Picture], top: u8, max_payload: usize) -> Vec<Packet> {
    let mut packetizers = [(); 8].map(|()| Packetizer::new(codec, max_payload));
    // Just below the end of the number space, so that it wraps.
    let mut sequences = [65_500_u16; 8];
    let kept = pictures.iter().filter(|picture| picture.info.layer <= top);
    let each = kept.flat_map(|picture| {
        packetizers[usize::from(picture.info.layer)]
            .packetize(picture)
            .into_iter()
            .map(move |payload| (picture, payload))
    });
    each.map(|(picture, payload)| {
        let sequence = &mut sequences[usize::from(picture.info.layer)];
        *sequence = sequence.wrapping_add(1);
        Packet { sequence: *sequence, timestamp: picture.timestamp, info: picture.info, payload }
    })
    .collect()
}

/// Moves each packet back by up to `by` places.
pub(crate) fn shuffle(packets: &mut [Packet], by: usize) {
    let mut random = 12_345_u32;
    for at in 0..packets.len() {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let other = (at + (random >> 8) as usize % by).min(packets.len() - 1);
        packets.swap(at, other);
    }
}

/// The pictures that come out of one assembler a layer, in decode order.
pub(crate) fn assemble(codec: Codec, packets: &[Packet]) -> Vec<Picture> {
    let mut assemblers: Vec<_> = (0..8).map(|_| Assembler::new(codec)).collect();
    let pictures = packets.iter().filter_map(|packet| {
        let Packet { sequence, timestamp, info, payload } = packet;
        assemblers[usize::from(info.layer)].push(Arrival {
            sequence: *sequence,
            timestamp: *timestamp,
            marker: payload.marker,
            starts: payload.starts,
            info: *info,
            payload: &payload.data,
        })
    });
    let mut pictures: Vec<_> = pictures.collect();
    // The streams of these tests are shorter than the number space.
    pictures.sort_by_key(|picture| picture.info.number);
    pictures
}

/// What the gate lets through, as a file, with the number of pictures in it and the gate.
pub(crate) fn gate(codec: Codec, pictures: &[Picture]) -> (Vec<u8>, usize, Gate) {
    let mut gate = Gate::default();
    let mut writer = Writer::new(codec, Vec::new());
    let mut count = 0;
    for picture in pictures {
        if gate.admit(&picture.info) {
            writer.write(picture.timestamp, &picture.data).expect("memory takes all");
            count += 1;
        }
    }
    (writer.into_inner(), count, gate)
}

/// Whether all of `part` are in `whole`, in the same order.
pub(crate) fn is_subsequence(part: &[String], whole: &[String]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|digest| whole.any(|other| other == digest))
}

pub(crate) fn write_file(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a folder of its own takes files");
}
