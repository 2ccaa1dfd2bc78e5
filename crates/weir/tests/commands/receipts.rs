//! Receipts over this machine's loopback: whom a sender believes that a receiver has everything.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_testkit::netns::{Command, Process, Scratch, free_port, generated_file, same_content};
use weir_wire::lack::{self, Message};
use weir_wire::receipt::{Kind, LEN, Receipt};

use super::WEIR;

#[test]
fn a_receiver_whose_sender_changes_to_other_files_proves_that_it_has_those() {
    let scratch = Scratch::new();
    let first = scratch.folder("first");
    generated_file(&first.join("large"), 3_000_000, 1);
    (0..30).for_each(|number| generated_file(&first.join(format!("small{number}")), 1_000, 2 + number));
    let session = Session::new(&scratch);
    let sender = session.send(&first, &["--receipts", "1"]);
    sender.event("start", LIMIT, |_| true);
    let out = scratch.join("out");
    let receiver = session.recv(&out);
    receiver.event("file", LIMIT, |_| true);
    sender.kill();

    let second = scratch.join("second");
    generated_file(&second, 100_000, 100);
    let sender = session.send(&second, &["--receipts", "1", "--for", "60s"]);
    let (sent, received) = (sender.wait(LIMIT), receiver.wait(LIMIT));
    assert!(received.told().contains("offers other files"), "{}", received.told());
    assert!(received.is_success() && received.last_event("receipt")["acknowledged"] == true, "{}", received.told());
    assert_eq!((&received.last_event("end")["files"], sent.code()), (&1.into(), Some(0)), "{}", sent.told());
    assert!(same_content(&second, &out.join("second")));
}

/// One of two receivers has everything before a file changes, the other one lacks some of it.
#[test]
fn a_file_that_changes_while_it_is_sent_is_left_out_and_all_others_arrive() {
    let scratch = Scratch::new();
    let tree = scratch.folder("tree");
    let size = |name| if name == "log" { 1_000_000 } else { 300_000 };
    let names = ["a", "log", "z"];
    (0..).zip(names).for_each(|(seed, name)| generated_file(&tree.join(name), size(name), seed));
    (0..40).for_each(|number| generated_file(&tree.join(format!("small{number}")), 1_000, 10 + number));
    let session = Session::new(&scratch);
    let sender = session.send(&tree, &["--receipts", "2", "--for", "60s"]);
    sender.event("start", LIMIT, |_| true);
    let [early, late] = ["early", "late"].map(|name| scratch.join(name));
    let first = session.recv(&early).wait(LIMIT);
    assert!(first.is_success() && same_content(&tree.join("log"), &early.join("tree/log")), "{}", first.told());

    // What a log does. This receiver has other losses than the one before, and the sender reads the file again for it.
    let mut log = std::fs::File::options().append(true).open(tree.join("log")).expect("ours");
    let receiver = session.recv_elsewhere(&scratch.join("elsewhere"), &late, &["--link", "loss=10%"]);
    receiver.event("progress", LIMIT, |progress| progress["received_bytes"].as_u64() > Some(100_000));
    log.write_all(b"one more line").expect("room");
    let (sent, received) = (sender.wait(LIMIT), receiver.wait(LIMIT));
    assert!(sent.told().contains("tree/log is not sent: it changed after the session began"), "{}", sent.told());
    assert_eq!((sent.code(), received.code()), (Some(FILES), Some(0)), "{}\n{}", sent.told(), received.told());
    assert_eq!(sent.last_event("end")["receipts"], 2, "the one that has all of the first set counts: {}", sent.told());
    for name in ["a", "z", "small0", "small39"] {
        assert!(same_content(&tree.join(name), &late.join("tree").join(name)), "{name}");
    }
    assert!(!late.join("tree/log").exists(), "neither the old nor the new one is whole");
}

/// It stays until its sender has answered, and packets that come meanwhile took no part in the transfer.
#[test]
fn what_a_receiver_shows_ends_when_everything_is_here() {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, 300_000, 1);
    let session = Session::new(&scratch);
    let sender = session.send(&file, &["--receipts", "2", "--for", "10s"]);
    sender.event("start", LIMIT, |_| true);
    let received = session.recv(&scratch.join("out")).wait(LIMIT);
    let (shown, end) = (received.last_event("progress"), received.last_event("end"));
    assert_eq!(
        (&shown["t_s"], &shown["useful_bytes"]),
        (&end["seconds"], &shown["needed_bytes"]),
        "{}",
        received.told()
    );
    sender.terminate();
}

/// Whoever reads along gives to the next session what was said in the one before: the same key, the same number, the same files.
#[test]
fn a_receipt_of_an_earlier_start_of_the_sender_counts_for_nothing() {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, 50_000, 1);
    let session = Session::new(&scratch);
    let capture = scratch.join("first.pcapng");
    let words = ["--receipts", "1", "--for", "60s", "--pcap", capture.to_str().expect("UTF-8")];
    let sender = session.send(&file, &words);
    sender.event("start", LIMIT, |_| true);
    let receiver = session.recv(&scratch.join("out"));
    let (sent, received) = (sender.wait(LIMIT), receiver.wait(LIMIT));
    assert!(sent.is_success() && received.is_success(), "{}\n{}", sent.told(), received.told());
    assert_eq!(sent.last_event("end")["forged_messages"], 0);
    let captured = std::fs::read(&capture).expect("a capture");
    let is_receipt = |bytes: &&[u8]| Receipt::decode(bytes).is_ok_and(|(receipt, _)| receipt.kind == Kind::Receipt);
    let receipt = captured.windows(LEN).find(is_receipt).expect("the receipt went over the network").to_vec();

    let sender = session.send(&file, &["--receipts", "1", "--for", "2s"]);
    sender.event("start", LIMIT, |_| true);
    let description = std::fs::read_to_string(&session.description).expect("it was written");
    let control = description.lines().find_map(|line| line.strip_prefix("a=weir-control:")).expect("a control port");
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    stranger.send_to(&receipt, control.trim()).expect("it goes");
    let sent = sender.wait(LIMIT);
    let end = sent.last_event("end");
    assert_eq!(sent.code(), Some(RECEIPTS), "{}", sent.told());
    assert_eq!((&end["receipts"], &end["forged_messages"]), (&0.into(), &1.into()), "{}", sent.told());
}

#[test]
fn what_a_receiver_loses_is_asked_for_and_sent_again_sealed_or_not() {
    for (seals, seed) in [(&[][..], 1), (&["--authenticate", "group"], 2), (&["--encrypt"], 3)] {
        let scratch = Scratch::new();
        let file = scratch.join("input");
        generated_file(&file, 1_400_000, seed);
        let session = Session::new(&scratch);
        let capture = scratch.join("capture.pcapng");
        let words = ["--receipts", "1", "--for", "60s", "--pcap", capture.to_str().expect("UTF-8")];
        let sender = session.send(&file, &[&words[..], seals].concat());
        sender.event("start", LIMIT, |_| true);
        let out = scratch.join("out");
        // Of 100 symbols that are sent again some are lost, too. More than 128 runs of them would not be named, and a few more symbols would
        // come in their place than are lacking, which may be enough.
        let receiver = session.recv_with(&out, &["--link", "loss=10%"]);
        let (sent, received) = (sender.wait(LIMIT), receiver.wait(LIMIT));
        assert!(sent.is_success() && received.is_success(), "{seals:?}: {}\n{}", sent.told(), received.told());
        assert!(same_content(&file, &out.join("input")));
        let captured = std::fs::read(&capture).expect("a capture");
        let starts = (0..captured.len()).filter(|at| lack::is_lack(&captured[*at..]));
        let answers: Vec<Message<'_>> = starts.flat_map(|at| Message::decode(&captured[at..])).collect();
        let asked: BTreeSet<u8> = answers.iter().map(|answer| answer.question).collect();
        assert!(asked.len() >= 2, "{seals:?}: something was lost, and some of that again: {asked:?}");
        let lacked =
            |answer: &Message<'_>| answer.lacks().map_while(Result::ok).map(|lack| u32::from(lack.needed)).sum::<u32>();
        let first: u32 = answers.iter().filter(|answer| answer.question == answers[0].question).map(lacked).sum();
        assert!((57..157).contains(&first), "{seals:?}: 10 % of 1000 symbols were lost, not {first}");
        let named =
            |answer: &Message<'_>| answer.lacks().map_while(Result::ok).any(|lack| lack.runs.clone().count() > 0);
        assert!(named(&answers[0]), "{seals:?}: which ones is told");
        let passes = sent.last_event("end")["passes"].as_f64().expect("a number");
        assert!(passes < 1.4, "{seals:?}: {passes} times the file's packets were sent");
    }
}

/// A session of one key and number, which several senders have in turn.
struct Session {
    key: PathBuf,
    description: PathBuf,
    to: String,
}

impl Session {
    fn new(scratch: &Scratch) -> Session {
        let to = format!("239.255.79.1:{}", free_port());
        Session { key: scratch.join("sender.key"), description: scratch.join("weir.sdp"), to }
    }

    fn send(&self, path: &Path, words: &[&str]) -> Process {
        let command = Command::here(WEIR).args(["send", "file"]).arg(path).args(["--to", &self.to, "--tsi", "7"]);
        let command = command.args(["--iface", "lo", "--rates", "4M", "--json"]).arg("--key").arg(&self.key);
        command.arg("--session").arg(&self.description).args(words).start()
    }

    fn recv(&self, out: &Path) -> Process {
        self.recv_with(out, &[])
    }

    fn recv_with(&self, out: &Path, words: &[&str]) -> Process {
        self.recv_by(Command::here(WEIR), out, words)
    }

    /// A receiver with a key of its own, as if it ran on another host.
    fn recv_elsewhere(&self, state: &Path, out: &Path, words: &[&str]) -> Process {
        let env = Command::here("env").arg(format!("XDG_STATE_HOME={}", state.display()));
        self.recv_by(env.arg(WEIR), out, words)
    }

    fn recv_by(&self, weir: Command, out: &Path, words: &[&str]) -> Process {
        let command = weir.arg("recv").arg(&self.description).args(["--iface", "lo", "--json"]);
        command.arg("--out").arg(out).args(words).start()
    }
}

/// The exit codes, as `weir send file --help` has them.
const FILES: i32 = 7;
const RECEIPTS: i32 = 8;
const LIMIT: Duration = Duration::from_secs(30);
