//! A sender that no receiver has joined, over this machine's loopback.

use std::time::Duration;

use weir_testkit::netns::{Command, Scratch, free_port, generated_file, same_content};

use super::WEIR;

#[test]
fn a_sender_that_hears_nobody_sends_little_until_a_receiver_comes() {
    let scratch = Scratch::new();
    let (file, description) = (scratch.join("input"), scratch.join("weir.sdp"));
    generated_file(&file, 20_000_000, 1);
    let to = format!("239.255.80.1:{}", free_port());
    let sender = Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--to", &to, "--iface", "lo"]);
    let sender = sender.args(["--rates", "256k..1G", "--receipts", "1", "--json"]).arg("--session").arg(&description);
    let sender = sender.start();
    let alone = sender.event("progress", LIMIT, |progress| progress["t_s"].as_f64() > Some(3.0));
    let mbps = alone["rate_bps"].as_f64().expect("a number") / 1e6;
    assert!((2.0..5.5).contains(&mbps), "{mbps} Mbit/s to nobody: {alone}");
    assert_eq!(alone["receivers"], 0, "{alone}");

    let receiver = Command::here(WEIR).arg("recv").arg(&description).args(["--iface", "lo", "--json"]);
    let received = receiver.arg("--out").arg(scratch.join("out")).start().wait(LIMIT);
    let sent = sender.wait(LIMIT);
    assert!(received.is_success() && sent.is_success(), "{}", received.told());
    assert!(same_content(&file, &scratch.join("out/input")));
    let highest = received.events("level").iter().filter_map(|level| level["rate_bps"].as_u64()).max();
    assert!(highest > Some(10_000_000), "{highest:?} bit/s at most once a receiver is there");
}

const LIMIT: Duration = Duration::from_secs(60);
