//! Streams over a tree on this machine's loopback: bytes through an agent, and what goes wrong on the way.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use weir::{Exit, Recv, SendStream, SessionSource, StreamReader, StreamWriter};
use weir_testkit::netns::{Command, Finished, Process, Scratch, free_port, generated_file, same_content};

use super::WEIR;

#[test]
fn every_receiver_gets_the_same_bytes_below_the_sender_and_below_an_agent() {
    let scratch = Scratch::new();
    let file = scratch.join("in");
    generated_file(&file, 3_000_001, 1);
    let stream = Stream::new();
    let sender = stream.send(&file, 3).start();
    let address = started(&sender, "stream");
    let agent = weir(&["agent", &address, "--listen", "127.0.0.1:0"]);
    assert_eq!(agent.start().wait(LIMIT).code(), Some(USAGE), "port 0 is no port to join at");
    let agent = weir(&["agent", &address]).start();
    let at_agent = started(&agent, "listens");
    agent.event("place", LIMIT, |place| place["what"] == "member");
    let outs = [1, 2, 3].map(|number| scratch.join(format!("out{number}")));
    let receivers = [
        recv(&address, &outs[0]).start(),
        recv(&address, &outs[1]).args(["--via", &at_agent, "--leaf"]).start(),
        recv(&address, &outs[2]).args(["--via", &at_agent, "--leaf"]).start(),
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
fn only_the_sender_that_the_user_names_is_believed_whatever_the_address_says() {
    let scratch = Scratch::new();
    let file = scratch.join("in");
    generated_file(&file, 100_000, 1);
    let stream = Stream::new();
    let sender = stream.send(&file, 2).start();
    let address = started(&sender, "stream");
    let (bare, key) = address.split_once("?sender=").expect("the sender's key");
    let outs = ["right", "wrong", "refused"].map(|name| scratch.join(name));
    let refused = recv(&address, &outs[2]).args(["--sender-key", OTHER_KEY]).start().wait(LIMIT);
    assert!(refused.code() == Some(UNVERIFIED) && refused.told().contains("another sender"), "{}", refused.told());
    assert!(!outs[2].exists(), "nothing was written");
    // Somebody has taken the key off the address.
    let [right, wrong] = [(key, &outs[0]), (OTHER_KEY, &outs[1])]
        .map(|(key, out)| recv(bare, out).args(["--leaf", "--sender-key", key]).start());
    let (right, wrong) = (right.wait(LIMIT), wrong.wait(LIMIT));
    assert!(right.is_success() && right.last_event("end")["verified"] == true, "{}", right.told());
    assert!(wrong.code() == Some(UNVERIFIED) && wrong.last_event("end")["verified"] == false, "{}", wrong.told());
    assert_eq!(sender.wait(LIMIT).code(), Some(DONE));
}

#[test]
fn receivers_below_an_agent_that_is_killed_find_another_node_and_lose_nothing() {
    let scratch = Scratch::new();
    let file = scratch.join("in");
    generated_file(&file, 60_000_000, 2);
    let stream = Stream::new();
    // A short round trip and a small buffer: the agent dies long before the end.
    let sender = stream.send(&file, 2).args(["--cc-set", "buffer=256"]).start();
    let address = started(&sender, "stream");
    let agent = weir(&["agent", &address]).start();
    let at_agent = started(&agent, "listens");
    agent.event("place", LIMIT, |place| place["what"] == "member");
    let outs = [1, 2].map(|number| scratch.join(format!("out{number}")));
    let receivers = outs.each_ref().map(|out| recv(&address, out).args(["--via", &at_agent, "--leaf"]).start());
    let at_agent = |place: &serde_json::Value| place["what"] == "member" && place["above"] == at_agent.as_str();
    for receiver in &receivers {
        receiver.event("place", LIMIT, at_agent);
    }
    agent.kill();
    let ended = sender.wait(LIMIT);
    assert_eq!(ended.code(), Some(DONE), "{}", ended.told());
    for (receiver, out) in receivers.iter().zip(&outs) {
        let ended = receiver.wait(LIMIT);
        assert_eq!(ended.code(), Some(DONE), "{}", ended.told());
        assert!(ended.told().contains("seeking"), "the agent was killed after the end: {}", ended.told());
        assert!(same_content(&file, out), "{} differs", out.display());
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the receiver is stopped for so long")]
fn the_stream_waits_for_a_receiver_that_is_stopped_for_a_while() {
    let scratch = Scratch::new();
    let file = scratch.join("in");
    generated_file(&file, 20_000_000, 3);
    let stream = Stream::new();
    let sender = stream.send(&file, 2).args(["--cc-set", "buffer=256"]).start();
    let address = started(&sender, "stream");
    let outs = [1, 2].map(|number| scratch.join(format!("out{number}")));
    // Without a link all of it could be there before the first progress line.
    let link = ["--leaf", "--link", "rate=40M,delay=1ms,buffer=100ms"];
    let receivers = outs.each_ref().map(|out| recv(&address, out).args(link).start());
    receivers[1].event("progress", LIMIT, |event| event["stream_bytes"].as_u64() > Some(0));
    receivers[1].suspend();
    // Longer than other sessions wait for a silent peer.
    std::thread::sleep(Duration::from_secs(12));
    assert!(!sender.has_ended(), "everything was sent before the receiver was stopped");
    receivers[1].resume();
    assert_eq!(sender.wait(LIMIT).code(), Some(DONE));
    for (receiver, out) in receivers.iter().zip(&outs) {
        let ended = receiver.wait(LIMIT);
        assert_eq!(
            (ended.code(), &ended.last_event("end")["verified"]),
            (Some(DONE), &true.into()),
            "{}",
            ended.told()
        );
        assert!(same_content(&file, out), "{} differs", out.display());
    }
}

#[test]
fn a_receiver_that_comes_late_gets_what_is_kept_or_says_that_it_is_too_late() {
    let scratch = Scratch::new();
    for (keep, from_now, code) in [("1G", false, DONE), ("1456", false, INCOMPLETE), ("1456", true, DONE)] {
        let stream = Stream::new();
        let pipe = scratch.join(format!("pipe{keep}{from_now}"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "a pipe");
        let sender = stream.send(&pipe, 1).args(["--keep", keep]).start();
        // Opened for both, it waits for nobody.
        let mut input = File::options().read(true).write(true).open(&pipe).expect("a pipe");
        let address = started(&sender, "stream");
        let early = recv(&address, &scratch.join(format!("early{keep}{from_now}"))).start();
        input.write_all(&[1; 1 << 20]).expect("the sender reads it");
        early.event("progress", LIMIT, |event| event["stream_bytes"].as_u64() > Some(1_000_000));
        let out = scratch.join(format!("late{keep}{from_now}"));
        let late = recv(&address, &out).args(from_now.then_some("--from-now")).start();
        late.event("place", LIMIT, |place| {
            ["member", "too_late"].contains(&place["what"].as_str().unwrap_or_default())
        });
        input.write_all(&[2; 1 << 20]).expect("the sender reads it");
        drop(input);
        let ended = [sender.wait(LIMIT), early.wait(LIMIT), late.wait(LIMIT)];
        let codes = ended.each_ref().map(Finished::code);
        assert_eq!(codes, [Some(DONE), Some(DONE), Some(code)], "{keep} {from_now}: {}", ended[2].told());
        let got = std::fs::read(&out).expect("it is there");
        let ones = got.iter().filter(|byte| **byte == 1).count();
        match (code, from_now) {
            (DONE, false) => assert_eq!((ones, got.len()), (1 << 20, 2 << 20)),
            // The end of the first part may share a packet with the second.
            (DONE, true) => assert!(ones < 1500 && got.len() == ones + (1 << 20), "{ones} of {}", got.len()),
            _ => assert_eq!(got.len(), 0),
        }
    }
}

#[test]
fn what_is_written_in_a_program_is_read_in_another_and_a_stream_that_cannot_begin_is_said() {
    let mut send = SendStream::new(Stream::new().to.parse().expect("a group"));
    send.iface = Some("lo".to_owned());
    send.listen = Some(format!("127.0.0.1:{}", free_port()).parse().expect("an address"));
    let mut writer = StreamWriter::start(send).expect("a stream");
    let address = writer.address().clone();
    let mut recv = Recv::new(SessionSource::Stream(Box::new(address.clone())));
    recv.iface = Some("lo".to_owned());
    let mut reader = StreamReader::start(recv, address).expect("a receiver");
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    let written = bytes.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&written).expect("it is read");
        writer.finish()
    });
    let mut read = Vec::new();
    reader.read_to_end(&mut read).expect("all of it");
    assert!(read == bytes, "{} bytes differ from what was written", read.len());
    assert_eq!(reader.finish().expect("it has ended"), Exit::Done);
    assert_eq!(writing.join().expect("no panic").expect("it has ended"), Exit::Done);
    let mut send = SendStream::new("239.1.1.1:9".parse().expect("a group"));
    send.iface = Some("no-such-interface".to_owned());
    assert_eq!(StreamWriter::start(send).expect_err("no interface").exit, Exit::Network);
}

#[test]
fn a_receiver_whose_sender_is_killed_says_that_the_stream_is_not_whole() {
    let scratch = Scratch::new();
    let stream = Stream::new();
    // An input that never ends.
    let sender = stream.send(Path::new("/dev/zero"), 1).start();
    let address = started(&sender, "stream");
    let receiver = recv(&address, Path::new("/dev/null")).args(["--idle-timeout", "3s"]).start();
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
        (recv(address, nowhere).args(["--any-sender"]), USAGE, "--any-sender"),
        (recv(address, nowhere).args(["--idle-timeout", "1s"]), INCOMPLETE, "no node has taken"),
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

    fn send(&self, input: &Path, receivers: u32) -> Command {
        let receivers = receivers.to_string();
        let words = ["send", "stream", "--to", &self.to, "--listen", &self.listen, "--receivers", &receivers];
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

/// A point of the curve that is nobody's key here: RFC 8032 §7.1, test 1.
const OTHER_KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const LIMIT: Duration = Duration::from_secs(40);
/// Exit codes, as `weir send stream --help` lists them.
const DONE: i32 = 0;
const USAGE: i32 = 2;
const NETWORK: i32 = 4;
const INCOMPLETE: i32 = 5;
const UNVERIFIED: i32 = 6;
const FILES: i32 = 7;
