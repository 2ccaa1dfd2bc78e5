//! A sender that asks its receivers what they lack, where networks are as they come out of the box: switches that go on sending after a leave,
//! 40 ms, loss both ways, a sender that is killed, a receiver that comes late.
//!
//! Needs root; see `weir_testkit::netns::require_root`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weir_link::LinkConfig;
use weir_testkit::netns::{Finished, Network, Process, Scratch, Session, generated_file, require_root, same_content};
use weir_wire::lack::{self, Message};

use super::{MINUTE, WEIR, number};

#[test]
fn what_is_lost_both_ways_is_asked_for_until_nothing_lacks() {
    if !require_root() {
        return;
    }
    let transfer = Transfer::new(2);
    let capture = transfer.scratch.join("capture.pcapng");
    let receivers = [0, 1].map(|index| transfer.recv(index));
    let sender = transfer.send(&["--pcap", capture.to_str().expect("UTF-8")]);
    receivers.iter().enumerate().for_each(|(index, receiver)| transfer.verify(index, receiver));
    let sent = sender.wait(MINUTE);
    assert!(sent.is_success(), "{}", sent.told());
    for index in [0, 1] {
        let (lost, delivered) = transfer.network.lost_and_delivered(index);
        assert!(lost * 200 > delivered, "the network lost {lost} packets and delivered {delivered}");
    }
    let captured = std::fs::read(&capture).expect("a capture");
    let starts = (0..captured.len()).filter(|at| lack::is_lack(&captured[*at..]));
    let answers: Vec<Message<'_>> = starts.flat_map(|at| Message::decode(&captured[at..])).collect();
    let asked: BTreeSet<u8> = answers.iter().map(|answer| answer.question).collect();
    let from: BTreeSet<[u8; 32]> = answers.iter().map(|answer| answer.receiver).collect();
    assert!(asked.len() >= 2 && from.len() == 2, "{asked:?}");
    // What repair symbols for everything would cost, and what was lost on the way.
    let passes = passes(&sent);
    assert!(passes < 1.4, "{passes} times the file's packets were sent");
}

#[test]
fn a_sender_killed_after_its_first_pass_sends_what_is_lacking_when_it_is_started_again() {
    if !require_root() {
        return;
    }
    let transfer = Transfer::new(2);
    let receivers = [0, 1].map(|index| transfer.recv(index));
    let sender = transfer.send(&[]);
    sender.event("progress", MINUTE, |progress| progress["passes"].as_f64().is_some_and(|passes| passes >= 1.0));
    let killed = sender.kill();
    assert!(killed.events("receipt").is_empty(), "nobody has everything: {}", killed.told());
    let sender = transfer.send(&[]);
    receivers.iter().enumerate().for_each(|(index, receiver)| transfer.verify(index, receiver));
    let sent = sender.wait(MINUTE);
    assert!(sent.is_success(), "{}", sent.told());
    let passes = passes(&sent);
    assert!(passes < 0.5, "{passes} times the file's packets were sent again");
}

#[test]
fn who_comes_late_gets_all_and_holds_up_nobody() {
    if !require_root() {
        return;
    }
    let transfer = Transfer::new(3);
    let early = [0, 1].map(|index| transfer.recv(index));
    let sender = transfer.send(&[]);
    sender.event("progress", MINUTE, |progress| progress["passes"].as_f64().is_some_and(|passes| passes >= 0.8));
    let late = transfer.recv(2);
    early.iter().enumerate().for_each(|(index, receiver)| transfer.verify(index, receiver));
    assert!(!late.has_ended(), "{}", late.wait(MINUTE).told());
    transfer.verify(2, &late);
    let sent = sender.wait(MINUTE);
    assert!(sent.is_success(), "{}", sent.told());
    let seconds =
        sent.events("receipt").iter().map(|receipt| receipt["t_s"].as_f64().expect("a time")).collect::<Vec<_>>();
    assert!(seconds[2] > 1.3 * seconds[1], "the late one ended long after the others: {seconds:?}");
}

/// How many times the file's packets were sent.
fn passes(sent: &Finished) -> f64 {
    let passes = sent.last_event("end")["passes"].as_f64().expect("a number");
    eprintln!("sent {passes:.2} times");
    passes
}

/// A file on its way to receivers behind a bridge that goes on for two seconds after a leave, over 40 ms and 2 % of loss each way.
struct Transfer {
    network: Network,
    scratch: Scratch,
    session: Session,
    file: PathBuf,
}

impl Transfer {
    fn new(receivers: usize) -> Transfer {
        let way: LinkConfig = "rate=20mbit,delay=20ms,buffer=100ms,loss=2%".parse().expect("a link");
        let network = Network::new().receivers(receivers).fast_leave(false).modelled([way.clone(), way]).build();
        let scratch = Scratch::new();
        let file = scratch.join("input");
        generated_file(&file, BYTES, 1);
        let words = ["--rates", "1M..16M", "--receipts", &receivers.to_string(), "--for", "60s"];
        let session = Session::new(Path::new(WEIR), &file, scratch.path()).words(words);
        session.describe(network.sender());
        Transfer { network, scratch, session, file }
    }

    fn send(&self, words: &[&str]) -> Process {
        self.session.send(self.network.sender()).args(words).start()
    }

    fn recv(&self, index: usize) -> Process {
        self.session.recv(self.network.receiver(index), &self.out(index)).start()
    }

    fn out(&self, index: usize) -> PathBuf {
        self.scratch.join(format!("out{index}"))
    }

    /// It has verified the file, has that, and got little more.
    fn verify(&self, index: usize, receiver: &Process) {
        let done = receiver.wait(MINUTE);
        let end = done.last_event("end");
        assert!(done.is_success() && end["verified"] == true, "receiver {index}: {}", done.told());
        assert!(same_content(&self.file, &self.out(index).join("input")), "receiver {index} has something else");
        let received = number(&end, "received_bytes") as f64 / BYTES as f64;
        eprintln!("receiver {index}: {received:.2} times the file in {:.1} s", done.seconds());
        assert!(received < 1.4, "receiver {index} got {received} times the file");
    }
}

const BYTES: u64 = 8_000_000;
