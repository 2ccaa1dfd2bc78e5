//! Captures, read back by tshark.

use std::path::Path;
use std::process::Command;

use weir_capture::{Capture, Datagram, IpPacket, Transport};

/// What tshark says: one line for each packet with these fields. `None`, with a message, where there is no tshark.
fn tshark(file: &Path, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    // The user's own tshark settings do not count.
    command.env("HOME", file.parent().expect("the file is in a folder"));
    command.args([
        "-o",
        "udp.check_checksum:TRUE",
        "-o",
        "ip.check_checksum:TRUE",
        "-T",
        "fields",
        "-E",
        "separator=,",
    ]);
    command.args(fields.iter().flat_map(|field| ["-e", field])).arg("-r").arg(file);
    let Ok(output) = command.output() else {
        eprintln!("SKIPPED: there is no tshark on this host; apt-get install tshark");
        return None;
    };
    let complaints = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = complaints.lines().filter(|line| !line.contains("Running as user")).collect();
    assert!(output.status.success() && complaints.is_empty(), "{complaints:?}");
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn ipv6_and_times_are_read_back_as_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("six.pcapng");
    let mut capture = Capture::create(&file, "eth9").expect("a capture");
    for (number, payload) in [&b"odd"[..], b"even"].into_iter().enumerate() {
        let datagram = Datagram {
            unix_nanos: 1_700_000_000_123_456_789 + number as u64,
            from: "[2001:db8::1]:1000".parse().expect("an address"),
            to: "[ff15::1]:9999".parse().expect("an address"),
            ttl: 3,
            payload,
            comment: Some("a remark"),
        };
        capture.record(&datagram).expect("it is written");
    }
    capture.flush().expect("it is written");
    let fields = ["frame.time_epoch", "ipv6.hlim", "udp.checksum.status", "frame.interface_name", "frame.comment"];
    let Some(packets) = tshark(&file, &fields) else { return };
    assert_eq!(packets[0], "1700000000.123456789,3,1,eth9,a remark");
    assert_eq!(packets[1], "1700000000.123456790,3,1,eth9,a remark");
}

#[test]
fn a_packet_whose_end_is_missing_keeps_its_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("part.pcapng");
    let mut capture = Capture::create(&file, "link").expect("a capture");
    let transport = Transport::Udp { from_port: 1, to_port: 2, payload: b"beginning" };
    let [from, to] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().expect("an address"));
    let packet = IpPacket { from, to, ttl: 64, traffic_class: 0b01, transport, size: 1500 };
    capture.record_packet(0, &packet, None).expect("it is written");
    capture.flush().expect("it is written");
    let fields = ["frame.cap_len", "frame.len", "ip.len", "ip.dsfield.ecn", "ip.checksum.status", "udp.length"];
    let Some(packets) = tshark(&file, &fields) else { return };
    assert_eq!(packets, ["37,1500,1500,1,1,1480"]);
}

#[test]
fn a_capture_that_cannot_be_written_says_where() {
    let error = Capture::create(Path::new("/nowhere/x.pcapng"), "lo").expect_err("no such folder");
    assert!(error.to_string().starts_with("the capture /nowhere/x.pcapng cannot be written"), "{error}");
}

#[test]
fn a_datagram_between_address_families_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut capture = Capture::create(&folder.path().join("x.pcapng"), "lo").expect("a capture");
    let [from, to] = ["192.0.2.1:1", "[ff15::1]:2"].map(|address| address.parse().expect("an address"));
    let datagram = Datagram { unix_nanos: 0, from, to, ttl: 1, payload: b"", comment: None };
    let error = capture.record(&datagram).expect_err("there is no such packet");
    assert!(error.to_string().ends_with("source and destination are of different address families"), "{error}");
}
