//! Live video by weir next to SRT over the same paths with the same latency: frames decoded, decoding errors, and the delay of each
//! datagram from the encoder's socket to the player's. Besides, the same programme in layers, whose delays are the longest of each quarter of
//! a second, as the viewer tells them.

use std::collections::{HashMap, HashSet};
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

    /// Only the paths whose names contain this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    live_path: String,

    /// Only these tools, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "weir,layers,srt")]
    live_tools: Vec<Tool>,
}

/// A path and a programme.
struct Case {
    name: &'static str,
    /// To the viewer and back, if the link is modelled; else a bucket of the kernel.
    ways: Option<[&'static str; 2]>,
    /// Of the encoder.
    video: &'static [&'static str],
    /// The rates of three layers, kbit/s, each with those below it.
    layers: [u32; 3],
    /// The link carries 1 Mbit/s for 13 seconds from here on.
    drop_at: Option<Duration>,
}

const CASES: [Case; 4] = [
    Case {
        name: "3 of 5 Mbit/s, 2 % loss, 40 ms",
        ways: Some(["rate=5mbit,delay=20ms,buffer=100ms,loss=2%", "rate=5mbit,delay=20ms,buffer=100ms"]),
        video: &["-b:v", "2600k", "-maxrate", "2600k", "-bufsize", "520k"],
        layers: [700, 1300, 2600],
        drop_at: None,
    },
    Case {
        name: "3 of 5 Mbit/s, 2 % loss, 10 ms",
        ways: Some(["rate=5mbit,delay=5ms,buffer=100ms,loss=2%", "rate=5mbit,delay=5ms,buffer=100ms"]),
        video: &["-b:v", "2600k", "-maxrate", "2600k", "-bufsize", "520k"],
        layers: [700, 1300, 2600],
        drop_at: None,
    },
    Case {
        name: "variable rate, clean 5 Mbit/s",
        ways: None,
        video: &["-b:v", "2500k", "-maxrate", "4500k", "-bufsize", "4500k"],
        layers: [700, 1250, 2500],
        drop_at: None,
    },
    Case {
        name: "1 of 5 Mbit/s for 13 s",
        ways: None,
        video: &["-b:v", "2600k", "-maxrate", "2600k", "-bufsize", "520k"],
        layers: [700, 1300, 2600],
        drop_at: Some(Duration::from_secs(12)),
    },
];

/// Who carries it.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Tool {
    Weir,
    Layers,
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
    for case in CASES.iter().filter(|case| case.name.contains(&options.live_path)) {
        let [clip, layered] = ["clip.ts", "layers.ivf"].map(|name| scratch.join(name));
        encode(&clip, case, options.live_seconds)?;
        encode_layers(&layered, case, options.live_seconds + LEAD)?;
        for tool in options.live_tools.iter().copied() {
            let (received, sent) = match tool {
                Tool::Layers => (scratch.join("received.ivf"), decode(&layered)?),
                Tool::Weir | Tool::Srt => (scratch.join("received.ts"), decode(&clip)?),
            };
            let delays = match tool {
                Tool::Layers => carry_layers(case, weir, &layered, &received, latency)?,
                Tool::Weir | Tool::Srt => carry(tool, case, weir, &clip, &received, latency)?,
            };
            let (came, errors) = decode(&received)?;
            let (came, sent) = match tool {
                // A programme in layers that came from a pipe begins with the next key picture, and goes on for longer.
                Tool::Layers => since_it_began(came, sent.0, options.live_seconds),
                Tool::Weir | Tool::Srt => (came, sent.0),
            };
            let missing: Vec<usize> = (0..sent.len()).filter(|frame| !came.contains(&sent[*frame])).collect();
            let (frames, sent) = (came.len(), sent.len());
            let [median, most, max] = [0.5, 0.95, 1.0].map(|share| quantile(&delays, share));
            let tool = format!("{tool:?}").to_lowercase();
            println!("{:<34}{tool:<6}{frames:>8}{sent:>8}{errors:>8}  {median:>8.0}{most:>8.0}{max:>8.0}", case.name);
            rows.push(json!({
                "path": case.name, "tool": tool, "frames": frames, "frames_sent": sent, "decode_errors": errors,
                "missing": missing,
                "delay_ms": { "median": median, "p95": most, "max": max }, "datagrams": delays.len(),
            }));
        }
    }
    Ok(json!({ "latency_ms": latency, "seconds": options.live_seconds, "rows": rows }))
}

/// Cuts what was sent to so many seconds from the first frame that came, and what came to the same frames.
fn since_it_began(came: Vec<String>, sent: Vec<String>, seconds: u64) -> (Vec<String>, Vec<String>) {
    let begins = came.first().and_then(|first| sent.iter().position(|frame| frame == first)).unwrap_or(0);
    let sent: Vec<String> = sent.into_iter().skip(begins).take(30 * seconds as usize).collect();
    let of_these: HashSet<&String> = sent.iter().collect();
    let came = came.into_iter().filter(|frame| of_these.contains(frame)).collect();
    (came, sent)
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

/// The same in three temporal layers of VP9.
fn encode_layers(clip: &Path, case: &Case, seconds: u64) -> Result<(), String> {
    let picture = format!("testsrc2=size=640x360:rate=30:duration={seconds},noise=alls=20:allf=t");
    let [base, middle, all] = case.layers;
    let rate = format!("{all}k");
    let layers = format!(
        "ts_number_layers=3:ts_target_bitrate={base},{middle},{all}:ts_rate_decimator=4,2,1:ts_periodicity=4:ts_layer_id=0,2,1,2:ts_layering_mode=3"
    );
    let output = Program::new("ffmpeg")
        .args(["-y", "-v", "error", "-f", "lavfi", "-i", &picture, "-c:v", "libvpx-vp9", "-deadline", "realtime"])
        .args(["-cpu-used", "8", "-error-resilient", "1", "-lag-in-frames", "0", "-g", "60", "-b:v", &rate])
        .args(["-minrate", &rate, "-maxrate", &rate, "-bufsize", &rate, "-ts-parameters", &layers, "-f", "ivf"])
        .arg(clip)
        .output()
        .map_err(|error| format!("this needs ffmpeg: {error}"))?;
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Sends a clip in layers in real time; gives the longest delays of each quarter of a second in milliseconds, sorted.
fn carry_layers(case: &Case, weir: &Path, clip: &Path, received: &Path, latency: u64) -> Result<Vec<f64>, String> {
    let network = network(case);
    let _gone = fs::remove_file(received);
    let latency = format!("{latency}ms");
    let send = network.sender().command(weir).args(["send", "media", "--quiet", "--latency", &latency]);
    let send = send.args(["--unicast", "5004", "--in", "-", "--measure", "2s"]);
    let script = format!("ffmpeg -v error -re -i '{}' -c copy -f ivf - | \"$@\"", clip.display());
    let _send = send.in_shell(&script).start();
    let recv = network.receiver(0).command(weir).args(["recv", &format!("{}:5004", network.sender().ipv4()), "--json"]);
    let recv = recv.arg("--out").arg(received).start();
    let began = recv.event("progress", PATIENCE, |event| event["pictures"].as_u64() > Some(0));
    let time = |event: &Value| event["t_s"].as_f64().unwrap_or_default();
    if let Some(at) = case.drop_at {
        let mut is_narrow = false;
        for (after, wanted) in [(at, true), (at + NARROW_FOR, false)] {
            let when = time(&began) + after.as_secs_f64();
            recv.event("progress", PATIENCE, |event| time(event) >= when);
            narrow(&network, wanted, &mut is_narrow);
        }
    }
    let end = recv.wait(PATIENCE);
    end.is_success().then_some(()).ok_or_else(|| end.told())?;
    let events = recv.lines().into_iter().filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let mut delays: Vec<f64> = events.filter_map(|event| event["lag_ms"].as_f64()).collect();
    delays.sort_by(f64::total_cmp);
    Ok(delays)
}

/// The hosts and the path between them.
fn network(case: &Case) -> Network {
    match case.ways {
        Some(ways) => {
            let ways = ways.map(|way| way.parse::<LinkConfig>().expect("the table's links are links"));
            Network::new().receivers(1).modelled(ways).build()
        }
        None => Network::new().links([Rate::from_mbps(5)]).build(),
    }
}

/// Makes the link narrow, or wide again, if it is not.
fn narrow(network: &Network, wanted: bool, is_narrow: &mut bool) {
    if wanted != std::mem::replace(is_narrow, wanted) {
        network.change_link(0, TokenBucket::new(Rate::from_mbps(if wanted { 1 } else { 5 })));
    }
}

/// The digests of the frames that a decoder makes of it, and lines that it complains in.
fn decode(clip: &Path) -> Result<(Vec<String>, usize), String> {
    let output = Program::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(clip)
        .args(["-fps_mode", "passthrough", "-f", "framemd5", "-"])
        .output()
        .map_err(|error| format!("this needs ffmpeg: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let frames = text.lines().filter(|line| !line.starts_with('#'));
    let digests = frames.map(|line| line.rsplit(',').next().unwrap_or_default().trim().to_owned()).collect();
    Ok((digests, String::from_utf8_lossy(&output.stderr).lines().count()))
}

/// Sends a clip through the tool in real time; gives the delays of its datagrams in milliseconds, sorted.
fn carry(tool: Tool, case: &Case, weir: &Path, clip: &Path, received: &Path, latency: u64) -> Result<Vec<f64>, String> {
    let network = network(case);
    let (sender, viewer) = (network.sender(), network.receiver(0));
    let there = sender.ipv4();
    let listen = move || UdpSocket::bind((Ipv4Addr::LOCALHOST, PLAYER)).expect("the port of a new host is free");
    let player = viewer.spawn(listen).join().expect("it does not panic");
    player.set_read_timeout(Some(Duration::from_millis(200))).map_err(|error| error.to_string())?;
    let _tools = match tool {
        Tool::Weir | Tool::Layers => {
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
            narrow(&network, (at..at + NARROW_FOR).contains(&began.elapsed()), &mut is_narrow);
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
/// A programme in layers runs for so many seconds before the others, for the pipe to be looked at and the viewer to come.
const LEAD: u64 = 6;
/// How long any step may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Nothing more comes when nothing has come for this long.
const QUIET: Duration = Duration::from_secs(3);
