//! Streams over a tree on this machine's loopback: bytes through an agent, and what goes wrong on the way.

use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use weir_testkit::netns::{Command, Finished, Process, Scratch, free_port, generated_file, same_content};

#[test]
fn every_receiver_gets_the_same_bytes_below_the_sender_and_below_an_agent() {
    let scratch = Scratch::new();
    let file = scratch.join("in");
    generated_file(&file, 3_000_001, 1);
    let stream = Stream::new();
    let sender = stream.send(&file, 2).start();
    let address = started(&sender, "stream");
    let agent = weir(&["agent", &address, "--listen", "127.0.0.1:0", "--members", "2"]);
    assert_eq!(agent.start().wait(LIMIT).code(), Some(USAGE), "port 0 is no port to join at");
    let listen = format!("127.0.0.1:{}", free_port());
    let agent = weir(&["agent", &address, "--listen", &listen, "--members", "2"]).start();
    let at_agent = started(&agent, "listens");
    let outs = [1, 2, 3].map(|number| scratch.join(format!("out{number}")));
    let receivers = [
        recv(&address, &outs[0]).start(),
        recv(&address, &outs[1]).args(["--via", &at_agent]).start(),
        recv(&address, &outs[2]).args(["--via", &at_agent]).start(),
    ];
    let ended = sender.wait(LIMIT);
    assert_eq!(ended.code(), Some(DONE), "{}", ended.told());
    let digest = &ended.last_event("end")["blake3"];
    for (receiver, out) in receivers.iter().zip(&outs) {
        let ended = receiver.wait(LIMIT);
        assert_eq!(ended.code(), Some(DONE), "{}", ended.told());
        assert_eq!(&ended.last_event("end")["blake3"], digest);
        assert!(same_content(&file, out), "{} differs", out.display());
    }
    let ended = agent.wait(LIMIT);
    assert_eq!((ended.code(), &ended.last_event("end")["complete"]), (Some(DONE), &true.into()), "{}", ended.told());
}

#[test]
fn a_receiver_whose_sender_is_killed_says_that_the_stream_is_not_whole() {
    let scratch = Scratch::new();
    let stream = Stream::new();
    // An input that never ends.
    let sender = stream.send(Path::new("/dev/zero"), 1).start();
    let address = started(&sender, "stream");
    let receiver = recv(&address, Path::new("/dev/null")).start();
    receiver.event("progress", LIMIT, |event| event["stream_bytes"].as_u64() > Some(100_000));
    sender.kill();
    let ended = receiver.wait(LIMIT);
    assert_eq!(ended.code(), Some(INCOMPLETE), "{}", ended.told());
    assert_eq!(ended.last_event("end")["complete"], false);
    assert!(ended.told().contains("not all of it"), "{}", ended.told());
    drop(scratch);
}

#[test]
fn the_user_is_told_what_cannot_be_and_what_to_do() {
    let scratch = Scratch::new();
    let old = scratch.join("old");
    std::fs::write(&old, "old").expect("a folder to write in");
    let address = "stream://127.0.0.1:9/239.255.9.9:5004/1/1456";
    let nowhere = Path::new("/dev/null");
    let missing = scratch.join("missing");
    let table = [
        (recv("stream://127.0.0.1:9/239.255.9.9:5004", nowhere), USAGE, "weir send stream"),
        (recv("stream://127.0.0.1:9/192.0.2.1:5004/1/1456", nowhere), USAGE, "weir send stream"),
        (recv(&format!("{address}?warp=9"), nowhere), USAGE, "warp"),
        (recv(address, Path::new("-")), USAGE, "send the stream elsewhere"),
        (recv(address, nowhere).args(["--idle-timeout", "3s"]), USAGE, "--idle-timeout"),
        (recv("session.sdp", nowhere).args(["--via", "127.0.0.1:9"]), USAGE, "--via"),
        (recv(address, &old), FILES, "--overwrite"),
        (recv(address, nowhere).args(["--via", "no-such-host.invalid:9"]), NETWORK, "no-such-host"),
        (recv(address, nowhere).args(["--for", "1s"]), INCOMPLETE, "not all of it"),
        (Stream::new().send(&missing, 1), FILES, "missing"),
        (weir(&["send", "stream", "--to", "192.0.2.1:5004"]), USAGE, "not a multicast address"),
    ];
    for (command, code, words) in table {
        let done: Finished = command.start().wait(LIMIT);
        assert_eq!(done.code(), Some(code), "{words}: {}", done.told());
        assert!(done.told().contains(words), "no “{words}” in {}", done.told());
    }
    assert_eq!(std::fs::read_to_string(&old).expect("still there"), "old");
}

/// A group and a port that no other test has.
struct Stream {
    to: String,
    listen: String,
}

impl Stream {
    fn new() -> Stream {
        static NUMBER: AtomicU16 = AtomicU16::new(0);
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let port = 15_100 + NUMBER.fetch_add(1, Ordering::Relaxed);
        Stream { to: format!("239.{high}.{low}.9:{port}"), listen: format!("127.0.0.1:{}", free_port()) }
    }

    fn send(&self, input: &Path, members: u32) -> Command {
        let members = members.to_string();
        let words = ["send", "stream", "--to", &self.to, "--listen", &self.listen, "--members", &members];
        weir(&words).arg("--in").arg(input)
    }
}

/// A field of a node's first event.
fn started(node: &Process, field: &str) -> String {
    let mut found = String::new();
    node.event("start", LIMIT, |event| {
        found = event[field].as_str().unwrap_or_default().to_owned();
        true
    });
    found
}

fn weir(words: &[&str]) -> Command {
    Command::here(WEIR).args(words).args(["--iface", "lo", "--json"])
}

fn recv(address: &str, out: &Path) -> Command {
    weir(&["recv", address]).arg("--out").arg(out)
}

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(40);
/// Exit codes, as `weir send stream --help` lists them.
const DONE: i32 = 0;
const USAGE: i32 = 2;
const NETWORK: i32 = 4;
const INCOMPLETE: i32 = 5;
const FILES: i32 = 7;
