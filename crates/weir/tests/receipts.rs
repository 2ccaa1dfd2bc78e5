//! Receipts over this machine's loopback: whom a sender believes that a receiver has everything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_testkit::netns::{Command, Process, Scratch, free_port, generated_file, same_content};

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
        let command = Command::here(WEIR).arg("recv").arg(&self.description).args(["--iface", "lo", "--json"]);
        command.arg("--out").arg(out).start()
    }
}

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);
