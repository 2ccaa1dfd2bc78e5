//! Live video by weir next to SRT over the same paths with the same latency: frames decoded, decoding errors, and the delay of each
//! datagram from the encoder's socket to the player's.

use std::collections::HashMap;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use weir_link::LinkConfig;
use weir_testkit::netns::{Host, Network, Scratch, TokenBucket};
use weir_units::Rate;

/// What is measured of live video.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct LiveOptions {
    /// The latency of both tools, milliseconds.
    #[arg(long, default_value_t = 300)]
    live_latency_ms: u64,

    /// Seconds of video.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(20..))]
    live_seconds: u64,
}

/// A path and a programme.
struct Case {
    name: &'static str,
    /// To the viewer and back, if the link is modelled; else a bucket of the kernel.
    ways: Option<[&'static str; 2]>,
    /// Of the encoder.
    video: &'static [&'static str],
    /// The link carries 1 Mbit/s for 13 seconds from here on.
    drop_at: Option<Duration>,
}

const CASES: [Case; 4] = [
    Case {
        name: "3 of 5 Mbit/s, 2 % loss, 40 ms",
        ways: Some(["rate=5mbit,delay=20ms,buffer=100ms,loss=2%", "rate=5mbit,delay=20ms,buffer=100ms"]),
        video: &["-b:v", "2600k", "-maxrate", "2600k", "-bufsize", "520k"],
        drop_at: None,
    },
    Case {
        name: "3 of 5 Mbit/s, 2 % loss, 10 ms",
        ways: Some(["rate=5mbit,delay=5ms,buffer=100ms,loss=2%", "rate=5mbit,delay=5ms,buffer=100ms"]),
        video: &["-b:v", "2600k", "-maxrate", "2600k", "-bufsize", "520k"],
        drop_at: None,
    },
    Case {
        name: "variable rate, clean 5 Mbit/s",
        ways: None,
        video: &["-b:v", "2500k", "-maxrate", "4500k", "-bufsize", "4500k"],
        drop_at: None,
    },
    Case {
        name: "1 of 5 Mbit/s for 13 s",
        ways: None,
        video: &["-b:v", "2600k", "-maxrate", "2600k", "-bufsize", "520k"],
        drop_at: Some(Duration::from_secs(12)),
    },
];

/// Who carries it.
#[derive(Debug, Clone, Copy)]
enum Tool {
    Weir,
    Srt,
}

/// Fills the table.
pub(crate) fn measure(options: &LiveOptions, weir: &Path) -> Result<Value, String> {
    let latency = options.live_latency_ms;
    println!("\nlive video of {} s by weir and by SRT, latency {latency} ms", options.live_seconds);
    println!(
        "{:<34}{:<6}{:>8}{:>8}{:>8}  {:>8}{:>8}{:>8}",
        "path", "tool", "frames", "of", "errors", "p50, ms", "p95", "max"
    );
    let scratch = Scratch::new();
    let mut rows = Vec::new();
    for case in &CASES {
        let clip = scratch.join("clip.ts");
        encode(&clip, case, options.live_seconds)?;
        let (sent, _) = decode(&clip)?;
        for tool in [Tool::Weir, Tool::Srt] {
            let received = scratch.join("received.ts");
            let delays = carry(tool, case, weir, &clip, &received, latency)?;
            let (frames, errors) = decode(&received)?;
            let [median, most, max] = [0.5, 0.95, 1.0].map(|share| quantile(&delays, share));
            let tool = format!("{tool:?}").to_lowercase();
            println!("{:<34}{tool:<6}{frames:>8}{sent:>8}{errors:>8}  {median:>8.0}{most:>8.0}{max:>8.0}", case.name);
            rows.push(json!({
                "path": case.name, "tool": tool, "frames": frames, "frames_sent": sent, "decode_errors": errors,
                "delay_ms": { "median": median, "p95": most, "max": max }, "datagrams": delays.len(),
            }));
        }
    }
    Ok(json!({ "latency_ms": latency, "seconds": options.live_seconds, "rows": rows }))
}

/// A clip of noise over a test picture, 30 frames a second, a key picture every two seconds, in an MPEG transport stream.
fn encode(clip: &Path, case: &Case, seconds: u64) -> Result<(), String> {
    let picture = format!("testsrc2=size=640x360:rate=30:duration={seconds},noise=alls=20:allf=t");
    let output = Program::new("ffmpeg")
        .args(["-y", "-v", "error", "-f", "lavfi", "-i", &picture, "-c:v", "libx264", "-preset", "veryfast"])
        .args(["-pix_fmt", "yuv420p", "-g", "60", "-bf", "0"])
        .args(case.video)
        .args(["-f", "mpegts"])
        .arg(clip)
        .output()
        .map_err(|error| format!("this needs ffmpeg: {error}"))?;
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Frames that a decoder makes of it, and lines that it complains in.
fn decode(clip: &Path) -> Result<(usize, usize), String> {
    let output = Program::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(clip)
        .args(["-fps_mode", "passthrough", "-f", "framemd5", "-"])
        .output()
        .map_err(|error| format!("this needs ffmpeg: {error}"))?;
    let lines = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    Ok((lines(&output.stdout), lines(&output.stderr)))
}

/// Sends a clip through the tool in real time; gives the delays of its datagrams in milliseconds, sorted.
fn carry(tool: Tool, case: &Case, weir: &Path, clip: &Path, received: &Path, latency: u64) -> Result<Vec<f64>, String> {
    let full = TokenBucket::new(Rate::from_mbps(5));
    let network = match case.ways {
        Some(ways) => {
            let ways = ways.map(|way| way.parse::<LinkConfig>().expect("the table's links are links"));
            Network::new().receivers(1).modelled(ways).build()
        }
        None => Network::new().links([Rate::from_mbps(5)]).build(),
    };
    let (sender, viewer) = (network.sender(), network.receiver(0));
    let there = sender.ipv4();
    let listen = move || UdpSocket::bind((Ipv4Addr::LOCALHOST, PLAYER)).expect("the port of a new host is free");
    let player = viewer.spawn(listen).join().expect("it does not panic");
    player.set_read_timeout(Some(Duration::from_millis(200))).map_err(|error| error.to_string())?;
    let _tools = match tool {
        Tool::Weir => {
            let latency = format!("{latency}ms");
            let send = sender.command(weir).args(["send", "live", "--quiet", "--latency", &latency]);
            let send = send.args(["--unicast", "5004", "--in", "udp://127.0.0.1:6000"]).start();
            let recv = viewer.command(weir).args(["recv", &format!("{there}:5004"), "--quiet"]);
            [send, recv.args(["--out", "udp://127.0.0.1:7000"]).start()]
        }
        Tool::Srt => {
            let host = |host: &Host| host.command("srt-live-transmit");
            let send = host(sender).args(["udp://127.0.0.1:6000", &format!("srt://:5004?latency={latency}")]).start();
            let recv = [format!("srt://{there}:5004?latency={latency}"), "udp://127.0.0.1:7000".to_owned()];
            [send, host(viewer).args(recv).start()]
        }
    };
    // A viewer is there before the programme begins.
    std::thread::sleep(Duration::from_secs(3));
    let datagrams = datagrams(clip)?;
    let sent_at = sender.spawn(move || play(&datagrams));
    let began = Instant::now();
    let (mut out, mut came, mut last) = (Vec::new(), Vec::new(), Instant::now());
    let (mut is_narrow, mut buffer) = (false, [0; 2048]);
    while !sent_at.is_finished() || last.elapsed() < QUIET {
        if let Some(at) = case.drop_at {
            let narrow = (at..at + NARROW_FOR).contains(&began.elapsed());
            if narrow != is_narrow {
                let bucket = if narrow { TokenBucket::new(Rate::from_mbps(1)) } else { full };
                network.change_link(0, bucket);
                is_narrow = narrow;
            }
        }
        if let Ok(len) = player.recv(&mut buffer) {
            last = Instant::now();
            came.push((last, out.len(), len));
            out.extend_from_slice(&buffer[..len]);
        }
    }
    let sent = sent_at.join().map_err(|_| "the encoder's socket failed".to_owned())?;
    fs::write(received, &out).map_err(|error| error.to_string())?;
    let delay = |(at, start, len): &(Instant, usize, usize)| {
        Some(at.duration_since(*sent.get(&out[*start..start + len])?).as_secs_f64() * 1e3)
    };
    let mut delays: Vec<f64> = came.iter().filter_map(delay).collect();
    delays.sort_by(f64::total_cmp);
    Ok(delays)
}

/// The datagrams of a clip, and when each goes, by the clip's own clock.
fn datagrams(clip: &Path) -> Result<Vec<(Duration, Vec<u8>)>, String> {
    let bytes = fs::read(clip).map_err(|error| error.to_string())?;
    let clocks: Vec<(usize, f64)> =
        bytes.chunks_exact(188).enumerate().filter_map(|(n, packet)| Some((n * 188, clock(packet)?))).collect();
    let [first, .., _] = clocks[..] else { return Err("the clip has no clock".to_owned()) };
    let seconds = |position: usize| {
        let next = clocks.partition_point(|(at, _)| *at < position).clamp(1, clocks.len() - 1);
        let [(a, from), (b, to)] = [clocks[next - 1], clocks[next]];
        from + (to - from) * (position as f64 - a as f64) / (b - a) as f64 - first.1
    };
    let due = |n: usize| Duration::from_secs_f64(seconds(n * DATAGRAM).max(0.0));
    Ok(bytes.chunks(DATAGRAM).enumerate().map(|(n, chunk)| (due(n), chunk.to_vec())).collect())
}

/// The program clock reference of a packet, seconds.
fn clock(packet: &[u8]) -> Option<f64> {
    let has_clock = packet[3] & 0x20 != 0 && packet[4] >= 7 && packet[5] & 0x10 != 0;
    let base = u64::from(u32::from_be_bytes(packet[6..10].try_into().ok()?)) << 1 | u64::from(packet[10] >> 7);
    has_clock.then_some(base as f64 / 90_000.0)
}

/// Sends each datagram at its time; gives when each went.
fn play(datagrams: &[(Duration, Vec<u8>)]) -> HashMap<Vec<u8>, Instant> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let began = Instant::now();
    let mut sent = HashMap::new();
    for (due, datagram) in datagrams {
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        sent.insert(datagram.clone(), Instant::now());
        // A tool that does not keep up loses it, as it would of any encoder.
        let _ = socket.send_to(datagram, (Ipv4Addr::LOCALHOST, ENCODER));
    }
    sent
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Seven packets of a transport stream.
const DATAGRAM: usize = 1316;
const ENCODER: u16 = 6000;
const PLAYER: u16 = 7000;
const NARROW_FOR: Duration = Duration::from_secs(13);
/// Nothing more comes when nothing has come for this long.
const QUIET: Duration = Duration::from_secs(3);
