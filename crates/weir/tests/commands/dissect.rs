//! What `--pcap` writes, on both sides, is what an independent dissector takes for ALC, and of live streams for RTP and RTCP,
//! without a complaint.

use std::path::Path;
use std::time::Duration;

use weir_testkit::netns::{Command, Finished, Scratch, free_port, generated_file, in_path, same_content};

use super::WEIR;

#[test]
fn captures_of_a_session_are_dissected_as_alc_without_error_or_warning() {
    let captured = capture(&["--rates", "1M..8M"]);
    for name in [SENT, RECEIVED] {
        assert_dissected(&captured, name);
    }
}

#[test]
fn captures_of_each_form_of_header_are_dissected_too() {
    for form in ["short", "long", "clocked"] {
        let captured = capture(&["--rates", "1M..8M", "--cci", form, "--flute-version", "1"]);
        assert_dissected(&captured, SENT);
    }
}

#[test]
fn captures_of_a_live_stream_are_dissected_as_rtp_and_rtcp_without_error_or_warning() {
    assert!(in_path("tshark"), "this test needs tshark: apt-get install tshark");
    let scratch = Scratch::new();
    let port = free_port();
    let [input, out] = ["input.ts", "out.ts"].map(|name| scratch.join(name));
    std::fs::write(&input, null_packets(1_400)).expect("a folder to write in");
    let sender = Command::here(WEIR).args(["send", "live", "--json", "--unicast", &port.to_string(), "--in"]);
    let sender = sender.arg(&input).arg("--pcap").arg(scratch.join(SENT)).start();
    sender.event("start", LIMIT, |_| true);
    let viewer = Command::here(WEIR).args(["recv", &format!("127.0.0.1:{port}"), "--json", "--out"]).arg(&out);
    let viewer = viewer.arg("--pcap").arg(scratch.join(RECEIVED)).start();
    let (viewer, sender) = (viewer.wait(LIMIT), sender.wait(LIMIT));
    assert_done(&viewer);
    assert_done(&sender);
    assert!(same_content(&input, &out));
    for name in [SENT, RECEIVED] {
        assert_live(&scratch.join(name), port);
    }
}

/// Two nodes, with a paced stream or a session between them.
const SIMULATED: &str = r#"id = "mine/pair"
title = "Two nodes"
duration = "5s"
seeds = 1
[topology.graph]
bottleneck = ["{from}", "{to}"]
links = [{ between = ["a", "b"], link = "rate=2M,delay=20ms,buffer=400p" }]
[parameters]
from = "a"
to = "b"
[metrics]
used = { measure = "link_use" }
"#;

#[test]
fn captures_of_simulated_packets_are_dissected_without_error_or_warning() {
    assert!(in_path("tshark"), "this test needs tshark: apt-get install tshark");
    let scratch = Scratch::new();
    let rap = "[flow.rap]\nfrom = [\"a\"]\nto = [\"b\"]\n\
        traffic.stream = { scheme = \"rap\", supply = { rate = \"400k\" } }\n";
    let session = "[session.main]\nscheme = \"avmrc\"\nat = [\"a\"]\nreceivers = { at = [\"b\"] }\n\
        ladder = { low = \"128k\", high = \"1M\", ratio = 2 }\n";
    for (who, protocol, ends, seen) in [
        (rap, "rtp", ["a", "b"], ":rtp"),
        (rap, "rtp", ["b", "a"], ":rtcp"),
        (session, "alc", ["a", "b"], ":alc:rmt-lct"),
    ] {
        let (file, capture) = (scratch.join("pair.toml"), scratch.join("pair.pcapng"));
        std::fs::write(&file, format!("{SIMULATED}{who}")).expect("a folder to write in");
        let command = Command::here(WEIR).args(["lab", "run"]).arg(&file).args(["--no-cache", "--quiet", "--pcap"]);
        let [from, to] = ends;
        let command = command.arg(&capture).args(["--set", &format!("from={from}"), "--set", &format!("to={to}")]);
        assert_done(&command.start().wait(LIMIT));
        assert_no_complaint(&capture, &tshark(&capture, 5004, protocol, &["-q", "-z", "expert"]));
        let packets = tshark(&capture, 5004, protocol, &["-T", "fields", "-e", "frame.protocols"]);
        assert!(packets.lines().count() > 100 && packets.lines().all(|packet| packet.contains(seen)), "{packets}");
    }
}

/// Packets of a transport stream that hold nothing (ISO 13818-1: PID 0x1fff).
fn null_packets(count: usize) -> Vec<u8> {
    let packet = [&[0x47, 0x1f, 0xff, 0x10][..], &[0xff; 184]].concat();
    packet.repeat(count)
}

/// 200 packets of seven times 188 bytes, each answered, between questions and farewells.
fn assert_live(path: &Path, port: u16) {
    let read = |words: &[&str]| tshark(path, port, "rtp", words);
    assert_no_complaint(path, &read(&["-q", "-z", "expert"]));
    let types = read(&["-Y", "rtp", "-T", "fields", "-e", "rtp.p_type", "-e", "frame.protocols", "-e", "rtp.seq"]);
    let mut numbers = Vec::new();
    for packet in types.lines() {
        let columns: Vec<&str> = packet.split('\t').collect();
        let [payload_type, protocols, sequence] = columns[..] else { panic!("three columns in {packet:?}") };
        assert!(payload_type == "33" && protocols.contains(":rtp:mp2t"), "{packet}");
        numbers.push(number(sequence).expect("a sequence number") as u16);
    }
    assert_eq!(numbers.len(), 200);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{numbers:?}");
    let kinds = read(&["-Y", "rtcp", "-T", "fields", "-e", "rtcp.pt", "-e", "rtcp.rtpfb.fmt", "-e", "rtcp.app.name"]);
    let count = |wanted: &str| kinds.lines().filter(|line| line.trim_end() == wanted).count();
    assert_eq!((count("205\t11"), count("203")), (200, 2), "answers and farewells\n{kinds}");
    assert!(count("204\t\tWEIR") >= 4, "hello, offer, start, alive\n{kinds}");
}

/// A session over this machine's loopback interface, done, with its captures.
struct Captured {
    scratch: Scratch,
    port: u16,
}

fn capture(words: &[&str]) -> Captured {
    assert!(in_path("tshark"), "this test needs tshark: apt-get install tshark");
    let scratch = Scratch::new();
    let port = free_port();
    let file = scratch.join("input");
    let description = scratch.join("session.sdp");
    generated_file(&file, 300_000, 1);
    let sender = || {
        let command = Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--iface", "lo", "--receipts", "1"]);
        // The port is this test's own, so the group need not be.
        let command = command.args(["--to", &format!("239.255.30.1:{port}"), "--tsi", TSI, "--json"]).args(words);
        command.arg("--key").arg(scratch.join("key")).arg("--session").arg(&description)
    };
    assert_done(&sender().arg("--describe").start().wait(LIMIT));
    let receiver = Command::here(WEIR).arg("recv").arg(&description).arg("--out").arg(scratch.folder("out"));
    let receiver = receiver.args(["--iface", "lo", "--json", "--pcap"]).arg(scratch.join(RECEIVED)).start();
    receiver.event("start", LIMIT, |_| true);
    let sender = sender().arg("--pcap").arg(scratch.join(SENT)).start();
    assert_done(&receiver.wait(LIMIT));
    assert_done(&sender.wait(LIMIT));
    assert!(same_content(&file, &scratch.join("out/input")));
    Captured { scratch, port }
}

fn assert_dissected(captured: &Captured, name: &str) {
    let path = captured.scratch.join(name);
    assert_no_complaint(&path, &tshark(&path, captured.port, "alc", &["-q", "-z", "expert"]));

    let filter = format!("udp.dstport == {}", captured.port);
    let fields = ["frame.protocols", "rmt-lct.tsi", "rmt-lct.codepoint", "rmt-lct.toi"].map(|field| ["-e", field]);
    let words: Vec<&str> = ["-Y", &filter, "-T", "fields"].into_iter().chain(fields.into_iter().flatten()).collect();
    let packets = tshark(&path, captured.port, "alc", &words);
    assert!(packets.lines().count() > 200, "{name}: a file of 300 kB needs more packets\n{packets}");
    for packet in packets.lines() {
        let columns: Vec<&str> = packet.split('\t').collect();
        let [protocols, tsi, codepoint, toi] = columns[..] else { panic!("{name}: four columns in {packet:?}") };
        assert!(protocols.contains(":alc:rmt-lct"), "{name}: {packet}");
        assert_eq!(number(tsi), number(TSI), "{name}: {packet}");
        // The table of files goes in Compact No-Code on TOI 0, the content in RaptorQ. A packet that only closes has no TOI.
        match (number(codepoint), number(toi)) {
            (Some(0), Some(0) | None) => {}
            (Some(6), Some(toi)) if toi > 0 && protocols.ends_with(":rmt-fec") => {}
            _ => panic!("{name}: codepoint and TOI do not belong together: {packet}"),
        }
    }
    let content = packets.lines().filter(|packet| packet.contains("\t6\t")).count();
    assert!(content > 200 && content < packets.lines().count(), "{name}: both kinds of packets\n{packets}");
}

fn assert_no_complaint(path: &Path, experts: &str) {
    let complaints = |line: &&str| line.starts_with("Errors") || line.starts_with("Warns");
    assert_eq!(experts.lines().find(complaints), None, "{}:\n{experts}", path.display());
}

fn tshark(path: &Path, port: u16, protocol: &str, words: &[&str]) -> String {
    let decode = format!("udp.port=={port},{protocol}");
    let done = Command::here("tshark").arg("-r").arg(path).args(["-d", &decode]).args(words).start().wait(LIMIT);
    assert!(done.is_success(), "{}", done.told());
    done.out.iter().map(|line| line.text.as_str()).collect::<Vec<&str>>().join("\n")
}

/// A number that tshark prints, in decimal or as 0x…; none where the field is missing.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn assert_done(done: &Finished) {
    assert!(done.is_success(), "{}", done.told());
}

const TSI: &str = "4711";
const SENT: &str = "sent.pcapng";
const RECEIVED: &str = "received.pcapng";
const LIMIT: Duration = Duration::from_secs(30);
