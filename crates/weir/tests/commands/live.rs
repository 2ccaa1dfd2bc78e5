//! Live streams over this machine's loopback: RTP through and through, and what the command line refuses.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use weir_testkit::netns::{Command, Finished, Scratch, free_port};
use weir_wire::rtp::Rtp;

use super::WEIR;

#[test]
fn rtp_from_a_program_reaches_a_player_with_all_but_its_numbers_and_source() {
    let scratch = Scratch::new();
    let player = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    player.set_read_timeout(Some(LIMIT)).expect("not zero");
    let to = format!("rtp://{}", player.local_addr().expect("it is bound"));
    let [ask_port, rtp_port] = [free_port(), free_port()].map(|port| port.to_string());
    let input = format!("rtp://127.0.0.1:{rtp_port}");
    let sender = send(&["--unicast", &ask_port, "--in", &input]).start();
    sender.event("start", LIMIT, |_| true);
    let sdp = scratch.join("live.sdp");
    let viewer = recv(&format!("127.0.0.1:{ask_port}"), Path::new(&to)).arg("--sdp").arg(&sdp).start();
    // What the stream is, the program's first packet tells, and not before that is a viewer told.
    viewer.event("meeting", LIMIT, |event| event["stage"] == "later");

    let program = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let packet = |number: u16| {
        let (timestamp, marker) = (u32::from(number) * 3_000, number.is_multiple_of(5));
        Rtp { marker, payload_type: 97, sequence: number.wrapping_mul(7), timestamp, ssrc: 1, origin: None }
    };
    let mut numbers = Vec::new();
    for number in 0..30 {
        let datagram = [&packet(number).encode()[..], &number.to_be_bytes()].concat();
        program.send_to(&datagram, format!("127.0.0.1:{rtp_port}")).expect("it goes");
        let mut arrived = [0; 2_000];
        let len = player.recv(&mut arrived).expect("it comes");
        let (header, payload) = Rtp::decode(&arrived[..len]).expect("it is RTP");
        assert_eq!(payload, number.to_be_bytes());
        assert_eq!((header.marker, header.payload_type), (packet(number).marker, 97));
        assert_eq!(header.timestamp, packet(number).timestamp);
        numbers.push(header.sequence);
    }
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{numbers:?}");
    let text = std::fs::read_to_string(&sdp).expect("it was written");
    assert!(text.contains("RTP/AVP 97"), "{text}");

    // An input without an end is ended by the user, and that is no failure.
    let (sender, viewer) = (sender.terminate(), viewer.wait(LIMIT));
    assert_eq!((sender.code(), viewer.code()), (Some(DONE), Some(DONE)), "{}\n{}", sender.told(), viewer.told());
    assert_eq!(
        (&viewer.last_event("end")["reason"], &sender.last_event("end")["sent_packets"]),
        (&"bye".into(), &30.into())
    );
}

/// As `ffmpeg -f mpegts udp://127.0.0.1:PORT` sends it, with a viewer that was there before.
#[test]
fn datagrams_of_a_transport_stream_reach_a_player_as_they_were() {
    let scratch = Scratch::new();
    let [ask_port, port] = [free_port(), free_port()].map(|port| port.to_string());
    let input = format!("udp://127.0.0.1:{port}");
    let sender = send(&["--unicast", &ask_port, "--in", &input]).start();
    sender.event("start", LIMIT, |_| true);
    let out = scratch.join("out.ts");
    let viewer = recv(&format!("127.0.0.1:{ask_port}"), &out).start();
    viewer.event("meeting", LIMIT, |event| event["stage"] == "later");
    let program = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let datagram: Vec<u8> = (0..7 * 188).map(|at| if at % 188 == 0 { 0x47 } else { at as u8 }).collect();
    program.send_to(&datagram, format!("127.0.0.1:{port}")).expect("it goes");
    let met = viewer.event("meeting", LIMIT, |event| event["stage"] == "running");
    assert_eq!(met["payload_type"], 33, "a transport stream");
    program.send_to(&datagram, format!("127.0.0.1:{port}")).expect("it goes");
    sender.event("progress", LIMIT, |event| event["sent_packets"].as_u64() >= Some(2));
    let (sender, viewer) = (sender.terminate(), viewer.wait(LIMIT));
    assert_eq!((sender.code(), viewer.code()), (Some(DONE), Some(DONE)), "{}\n{}", sender.told(), viewer.told());
    assert_eq!(std::fs::read(&out).expect("it was written"), datagram.repeat(2));
}

#[test]
fn a_file_goes_by_the_clock_of_its_transport_stream() {
    let scratch = Scratch::new();
    let input = scratch.join("in.ts");
    // Slow and fast by turns: a second in 10 packets, then a second in 1000.
    std::fs::write(&input, [transport_stream(10, 0), transport_stream(1_000, 1_000)].concat()).expect("it is written");
    let (sent, seen, out) = deliver(&scratch, &input, &[]);
    assert_eq!(std::fs::read(&out).expect("it was written"), std::fs::read(&input).expect("it is there"));
    // Nothing is late enough to fall short of the clock, and no load makes it faster.
    let took = sent.last_event("end")["t_s"].as_f64().expect("seconds");
    assert!(took > 1.9, "two seconds of video in {took} s");
    assert!(!sent.told().contains("no clock"), "{}\n{}", sent.told(), seen.told());
}

#[test]
fn a_file_without_a_clock_is_told_of_and_goes_at_the_rate_that_the_user_says() {
    let scratch = Scratch::new();
    let input = scratch.join("in.bin");
    std::fs::write(&input, vec![b'x'; 100_000]).expect("it is written");
    let (sent, ..) = deliver(&scratch, &input, &[]);
    assert!(sent.told().contains("--pace RATE"), "{}", sent.told());
    let (sent, ..) = deliver(&scratch, &input, &["--pace", "800k"]);
    let took = sent.last_event("end")["t_s"].as_f64().expect("seconds");
    assert!(took > 0.95 && !sent.told().contains("--pace RATE"), "800 kbit in {took} s: {}", sent.told());
}

/// `weir send live` of a file to one viewer, to the end; the file that it gets.
fn deliver(scratch: &Scratch, input: &Path, options: &[&str]) -> (Finished, Finished, std::path::PathBuf) {
    let (port, out) = (free_port().to_string(), scratch.join("out"));
    let sender = send(&["--unicast", &port, "--in", input.to_str().expect("text")]).args(options).start();
    sender.event("start", LIMIT, |_| true);
    let viewer = recv(&format!("127.0.0.1:{port}"), &out).arg("--overwrite").start();
    let (sent, seen) = (sender.wait(LIMIT), viewer.wait(LIMIT));
    assert_eq!((sent.code(), seen.code()), (Some(DONE), Some(DONE)), "{}\n{}", sent.told(), seen.told());
    (sent, seen, out)
}

/// One second of an MPEG transport stream, in `packets` packets. Ten of them, evenly spaced, carry the clock, which starts at `millis`.
fn transport_stream(packets: u64, millis: u64) -> Vec<u8> {
    let packet = |number: u64| {
        let base = (millis + number * 1_000 / packets) * 90;
        let mut packet = match number % (packets / 10) {
            0 => vec![0x47, 1, 0, 0x20, 183, 0x10],
            _ => vec![0x47, 1, 0, 0x10],
        };
        if packet.len() == 6 {
            packet.extend(((base >> 1) as u32).to_be_bytes());
            packet.extend([(base as u8 & 1) << 7 | 0x7e, 0]);
        }
        packet.resize(188, number as u8);
        packet
    };
    (0..packets).flat_map(packet).collect()
}

#[test]
fn the_user_is_told_what_cannot_be_and_what_to_do() {
    let scratch = Scratch::new();
    let old = scratch.join("old.ts");
    std::fs::write(&old, "old").expect("a folder to write in");
    let port = free_port().to_string();
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let taken = taken.local_addr().expect("it is bound").to_string();
    let nowhere = Path::new("/dev/null");
    let file = scratch.join("none.ts");
    let file = file.to_str().expect("text");
    let table = [
        (recv("localhost:9", Path::new("-")), USAGE, "send the stream elsewhere"),
        (recv("localhost:9", nowhere).args(["--link", "rate=1M"]), USAGE, "--link"),
        (recv("localhost:9", nowhere).args(["--sdp", "a.sdp"]), USAGE, "--out rtp://"),
        (recv("no-such-host.invalid:9", nowhere), NETWORK, "HOST:PORT"),
        (recv("localhost:9", &old), FILES, "--overwrite"),
        (send(&["--unicast", &port, "--in", "srt://127.0.0.1:9"]), USAGE, "srt-live-transmit"),
        (send(&["--unicast", &port, "--in", "udp://127.0.0.1:9", "--pace", "1M"]), USAGE, "--pace"),
        (send(&["--unicast", &port, "--in", file]), FILES, "none.ts"),
        (send(&["--unicast", &port, "--in", "/dev/null", "--cc-set", "warp=9"]), USAGE, "weir schemes"),
        (send(&["--unicast", &taken, "--in", "/dev/null"]), NETWORK, "choose another port"),
        (recv(&taken, nowhere).args(["--for", "1s"]), INCOMPLETE, ""),
    ];
    for (command, code, words) in table {
        let done: Finished = command.start().wait(LIMIT);
        assert_eq!(done.code(), Some(code), "{words}: {}", done.told());
        assert!(done.told().contains(words), "no “{words}” in {}", done.told());
    }
    assert_eq!(std::fs::read_to_string(&old).expect("still there"), "old");
}

fn send(words: &[&str]) -> Command {
    Command::here(WEIR).args(["send", "live", "--json"]).args(words)
}

fn recv(address: &str, out: &Path) -> Command {
    Command::here(WEIR).args(["recv", address, "--json", "--out"]).arg(out)
}

/// A point of the curve: RFC 8032 §7.1, test 1.
const LIMIT: Duration = Duration::from_secs(20);
/// Exit codes, as `weir recv --help` lists them.
const DONE: i32 = 0;
const USAGE: i32 = 2;
const NETWORK: i32 = 4;
const INCOMPLETE: i32 = 5;
const FILES: i32 = 7;
