//! `--metrics` of a sender and a receiver over this machine's loopback, read as a scraper reads it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use weir_testkit::netns::{Command, Scratch, free_port, generated_file};

use super::WEIR;

#[test]
fn a_scraper_sees_a_session_run_and_end_at_both_ends() {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, 200_000, 1);
    let (description, out) = (scratch.join("weir.sdp"), scratch.join("out"));
    let ports = [free_port(), free_port()].map(|port| port.to_string());
    let to = format!("239.255.79.2:{}", free_port());
    let command = Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--to", &to, "--name", "nightly \"x\""]);
    let command = command.args(["--iface", "lo", "--rates", "2M", "--for", "60s", "--metrics", &ports[0]]);
    let sender = command.arg("--session").arg(&description).arg("--json").start();
    sender.event("progress", LIMIT, |_| true);
    let command =
        Command::here(WEIR).arg("recv").arg(&description).args(["--iface", "lo", "--json", "--metrics", &ports[1]]);
    // A hook keeps the receiver there after the end.
    let receiver = command.arg("--out").arg(&out).args(["--hook", "sleep 5"]).start();
    receiver.event("progress", LIMIT, |event| event["received_packets"].as_u64() > Some(0));
    let running = scrape(&ports[1]);
    receiver.event("file", LIMIT, |_| true);
    let received = scrape(&ports[1]);
    let sent = scrape(&ports[0]);
    sender.kill();

    let labels = r#"role="receiver",session="nightly \"x\"""#;
    assert!(value(&running, "weir_running", labels) == Some(1.0), "{running}");
    let bytes = |page: &str| value(page, "weir_received_bytes_total", labels).unwrap_or_default();
    assert!(bytes(&running) > 0.0 && bytes(&received) > bytes(&running), "{running}\n{received}");
    assert_eq!(value(&received, "weir_events_total", r#"event="file""#), Some(1.0), "{received}");
    assert!(value(&sent, "weir_sent_packets_total", r#"role="sender""#) > Some(100.0), "{sent}");
    assert!([running, received, sent].iter().all(|page| page.ends_with("# EOF\n")));
    drop(receiver);
}

#[test]
fn an_address_that_is_taken_is_told_before_anything_is_sent() {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, 1_000, 1);
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = other.local_addr().expect("bound").port().to_string();
    let to = format!("239.255.79.3:{}", free_port());
    let command = Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--to", &to, "--iface", "lo"]);
    let sent = command.args(["--metrics", &port, "--json", "--for", "1s"]).start().wait(LIMIT);
    assert_eq!(sent.code(), Some(NETWORK), "{}", sent.told());
    assert!(sent.told().contains(&format!("cannot serve metrics at 127.0.0.1:{port}")), "{}", sent.told());
}

fn scrape(port: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, page) = answer.split_once("\r\n\r\n").expect("a head and a page");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    page.to_owned()
}

/// The value of the first sample of this name among whose labels are these.
fn value(page: &str, name: &str, labels: &str) -> Option<f64> {
    let is_it = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(labels);
    page.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}

/// The exit code, as `weir send file --help` has it.
const NETWORK: i32 = 4;
const LIMIT: Duration = Duration::from_secs(30);
