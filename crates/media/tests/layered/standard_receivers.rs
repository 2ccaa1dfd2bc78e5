//! Base layers as RTP, as a standard receiver takes them: ffmpeg with nothing but a session description.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::common::*;
use weir_media::{Codec, sdp_lines};

/// Frames that ffmpeg is to decode: fewer than the base layer has, for the last stay in its decoder.
const FRAMES: usize = 20;

/// ffmpeg gets the base layer again and again until it has seen enough.
fn ffmpeg_decodes_the_base_layer(encoder: &str, codec: Codec, folder: &str, complaint: &str) {
    let stream = encode(encoder);
    let whole = decode(codec, &stream);
    let (splitter, pictures) = split(&stream);
    let sent = packets(codec, &pictures, 0, 1200);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let folder = tempfile::Builder::new().prefix(folder).tempdir().expect("a folder");
    let port = free_port();
    let sdp = folder.path().join("base.sdp");
    let lines = sdp_lines(codec, 96, &splitter.parameter_sets()).join("\r\n");
    let head = format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=base\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video {port} RTP/AVP 96\r\n{lines}\r\n"
    );
    write_file(&sdp, head.as_bytes());
    let mut receiver = receive(&sdp);
    (0..1000).take_while(|_| is_free(port)).for_each(|_| wait(Duration::from_millis(10)));
    let rounds = (0..60_u32).take_while(|round| send(&mut receiver, &socket, port, &sent, *round)).count();
    let _ = receiver.kill();
    let output = receiver.wait_with_output().expect("started");
    let complaints = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<_> =
        complaints.lines().filter(|line| complaint.is_empty() || !line.contains(complaint)).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let decoded = digests(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(decoded.len(), FRAMES, "after {rounds} rounds");
    let twice = [&whole[..], &whole].concat();
    assert!(is_subsequence(&decoded, &twice), "a frame differs");
}

fn receive(sdp: &std::path::Path) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args([
        "-hide_banner",
        "-nostdin",
        "-v",
        "warning",
        "-protocol_whitelist",
        "file,udp,rtp",
        "-analyzeduration",
        "200000",
        "-i",
    ]);
    command.arg(sdp).args(["-frames:v", &FRAMES.to_string(), "-f", "framemd5", "-fps_mode", "passthrough", "-"]);
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.unwrap_or_else(|error| panic!("these tests need ffmpeg (apt-get install ffmpeg): {error}"))
}

/// Sends the stream once, four times as fast as it plays. False once the receiver has ended.
fn send(receiver: &mut Child, socket: &UdpSocket, port: u16, packets: &[Packet], round: u32) -> bool {
    let first = packets[0].sequence.wrapping_add((round as usize * packets.len()) as u16);
    for (n, packet) in packets.iter().enumerate() {
        if receiver.try_wait().expect("started").is_some() {
            return false;
        }
        let sequence = first.wrapping_add(n as u16);
        let timestamp = packet.timestamp.wrapping_add(round * PICTURES as u32 * 3000);
        let second = 96 | u8::from(packet.payload.marker) << 7;
        let header = [&[0x80, second][..], &sequence.to_be_bytes(), &timestamp.to_be_bytes(), &[0, 0, 0, 7]].concat();
        // Once ffmpeg has seen enough, the port is closed and says so.
        let _ = socket.send_to(&[header, packet.payload.data.clone()].concat(), (Ipv4Addr::LOCALHOST, port));
        if packet.payload.marker {
            wait(Duration::from_millis(8));
        }
    }
    true
}

#[expect(clippy::disallowed_methods, reason = "a real receiver with a real clock reads what is sent")]
fn wait(span: Duration) {
    std::thread::sleep(span);
}

/// An even port that is free, and the next one, which RTCP takes. No other test of this process gets them.
fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() as u16 % 10_000;
    std::iter::repeat_with(|| 20_000 + (start + GIVEN.fetch_add(7, Ordering::Relaxed)) / 2 * 2)
        .take(500)
        .find(|port| is_free(*port) && is_free(port + 1))
        .expect("some port is free")
}

fn is_free(port: u16) -> bool {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

#[test]
fn ffmpeg_decodes_the_base_layer_of_vp9() {
    ffmpeg_decodes_the_base_layer(VP9_THREE_LAYERS, Codec::Vp9, "vp9", "RTP/VP9 support is still experimental");
}

#[test]
fn ffmpeg_decodes_the_base_layer_of_hevc() {
    ffmpeg_decodes_the_base_layer(HEVC_TWO_LAYERS, Codec::Hevc, "hevc", "");
}

#[test]
fn ffmpeg_decodes_the_base_layer_of_h264() {
    ffmpeg_decodes_the_base_layer(H264_TWO_LAYERS, Codec::H264, "h264", "");
}
