//! Captures of both ends of a session, read back by tshark.

use std::path::Path;
use std::process::Command;

use crate::common::{Beacon, config, receive, send, session, tenant_config};
use weir_net::host::{LinkInFront, TenantConfig};
use weir_net::session::SessionConfig;

/// What tshark says: one line a packet with the fields asked for. `None`, and said so, where there is no tshark.
fn tshark(file: &Path, port: u16, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    // Whatever the user has told tshark at home is not asked.
    command.env("HOME", file.parent().expect("the file is in a folder"));
    command.args(["-r", &file.display().to_string(), "-d", &format!("udp.port=={port},alc"), "-T", "fields"]);
    command.args(["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-E", "separator=,"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let Ok(output) = command.output() else {
        eprintln!("SKIPPED: there is no tshark on this host; apt-get install tshark");
        return None;
    };
    let complaints = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = complaints.lines().filter(|line| !line.contains("Running as user")).collect();
    assert!(output.status.success() && complaints.is_empty(), "{complaints:?}");
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

const FIELDS: &[&str] = &["_ws.expert.severity", "_ws.malformed", "rmt-lct.tsi", "rmt-lct.toi", "udp.checksum.status"];

#[test]
fn both_captures_of_a_session_are_dissected_without_complaint() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sent, received) = (folder.path().join("sent.pcapng"), folder.path().join("received.pcapng"));
    let description = session(2, true);
    let into = |file: &Path| SessionConfig { capture: Some(file.to_owned()), ..config() };
    let sending = send(&description, Beacon::new(2, 30, 5), &into(&sent));
    receive(&description, 0..2, &into(&received));
    sending.join().expect("no panic");
    let (port, tsi) = (description.channels[0].port(), description.tsi);
    // Six on each channel; the receiver does not wait for the last.
    for (file, closing) in [(sent, 12..=12), (received, 2..=12)] {
        let Some(packets) = tshark(&file, port, FIELDS) else { return };
        let good = |toi| format!(",,{tsi},{toi},1");
        let [symbols, closed] = [1, 0].map(|toi| packets.iter().filter(|line| **line == good(toi)).count());
        assert_eq!((symbols, symbols + closed), (300, packets.len()), "{:?}", packets.first());
        assert!(closing.contains(&closed), "{closed} closing packets: {:?}", packets.last());
    }
}

#[test]
fn packets_that_the_emulated_link_drops_are_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("received.pcapng");
    let description = session(1, true);
    let sending = send(&description, Beacon::new(1, 50, 5), &config());
    let link = LinkInFront { config: "rate=2mbit,buffer=20ms".parse().expect("a link"), seed: 1 };
    let tenant = TenantConfig { link: Some(link), ..tenant_config() };
    let config = SessionConfig { capture: Some(file.clone()), tenant, ..config() };
    let (_, statistics) = receive(&description, [0], &config);
    sending.join().expect("no panic");
    assert!(statistics.link_dropped > 100, "{statistics:?}");
    let Some(packets) = tshark(&file, description.channels[0].port(), &["frame.comment"]) else { return };
    let marked = packets.iter().filter(|comment| comment.contains("dropped by the emulated link")).count();
    assert_eq!(marked as u64, statistics.link_dropped);
}
