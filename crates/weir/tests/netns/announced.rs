//! An always-on receiver takes what its senders announce, runs its hook, and is not moved by what others announce. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_testkit::netns::{
    Command, Finished, Host, Network, Scratch, Session, Stranger, generated_file, require_root, same_content,
};
use weir_units::{Bytes, Rate};

use super::MINUTE;

/// Two sessions of one sender, one after the other's start; then a restart of the first with another file.
#[test]
fn announced_sessions_come_to_folders_of_their_own_once_for_each_start() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let [first, second] = [1, 2].map(|number| site.session(number));
    let receiver = site.receiver(&["--at-once", "1"]).start();
    receiver.event("listening", MINUTE, |_| true);
    let senders = [&first, &second].map(|session| session.send(site.network.sender()).arg("--announce").start());
    for name in ["one", "two"] {
        let hook = receiver.event("hook", MINUTE, |hook| hook["session"] == name);
        assert_eq!((&hook["result"], &hook["exit_status"]), (&"complete".into(), &0.into()), "{hook}");
    }
    for (number, name) in [(1, "one"), (2, "two")] {
        let arrival = site.out.join(name).join(format!("file{number}"));
        assert!(same_content(&site.file(number), &arrival), "{name}");
    }
    // A receiver that is started again takes nothing a second time, and says so.
    let before = receiver.terminate();
    assert!(before.is_success(), "{}", before.told());
    let taken =
        |finished: &Finished| finished.events("announced").iter().filter(|event| event["outcome"] == "taken").count();
    assert_eq!(taken(&before), 2, "{}", before.told());
    let receiver = site.receiver(&[]).start();
    for name in ["one", "two"] {
        receiver.event("announced", MINUTE, |event| event["outcome"] == "complete" && event["name"] == name);
    }
    // Another start of the first, with another file next to the old one.
    senders[0].terminate();
    generated_file(&site.scratch.join("more/file9"), 300_000, 9);
    let again = first.send(site.network.sender()).arg(site.scratch.join("more/file9")).arg("--announce").start();
    receiver.event("hook", MINUTE, |hook| hook["session"] == "one" && hook["result"] == "complete");
    assert!(same_content(&site.scratch.join("more/file9"), &site.out.join("one/file9")));
    again.terminate();
    let second_life = receiver.terminate();
    assert_eq!(taken(&second_life), 1, "{}", second_life.told());
    let hooks = std::fs::read_to_string(site.scratch.join("hooks")).expect("the hook wrote");
    let hooks: Vec<&str> = hooks.lines().collect();
    let key = site.public_key();
    let folder = |name| site.out.join(name).display().to_string();
    let first_hooks = [("one", "1", "400000"), ("two", "1", "500000"), ("one", "2", "700000")];
    let expected: Vec<String> = first_hooks
        .iter()
        .map(|(name, files, bytes)| format!("complete {name} {} {files} {bytes} {key}", folder(name)))
        .collect();
    let mut sorted = hooks.clone();
    sorted[..2].sort_unstable();
    assert_eq!(sorted, expected);
}

/// Forged announcements of many kinds, a thousand a second.
#[test]
fn a_flood_of_forged_announcements_does_nothing() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let receiver = site.receiver(&[]).start();
    receiver.event("listening", MINUTE, |_| true);
    let group = "239.255.255.255:9875".parse().expect("a group");
    let key = site.public_key_hex();
    let stranger = Stranger::start(site.network.receiver(1), group, move |air| {
        let text = format!("v=0\r\ns=evil\r\na=flute-tsi:1\r\na=weir-key:ed25519 {key}\r\na=weir-signature:");
        let mut number = 0_u64;
        while !air.is_over() {
            for _ in 0..50 {
                number += 1;
                let forged = format!("{text}{}\r\n", format!("{number:032x}").repeat(4));
                let named = [&[0x20, 0, 0, 1, 10, 0, 0, 9][..], forged.as_bytes()].concat();
                air.say(&named);
                air.say(&number.to_be_bytes());
            }
            air.pause(Duration::from_millis(100));
        }
    });
    receiver.event("announced", MINUTE, |event| event["outcome"] == "bad_signature");
    receiver.event("announced", MINUTE, |event| event["outcome"] == "flood");
    let sender = site.session(1).send(site.network.sender()).arg("--announce").start();
    receiver.event("hook", MINUTE, |hook| hook["session"] == "one");
    let sent = stranger.stop();
    sender.terminate();
    let done = receiver.terminate();
    let taken = done.events("announced").iter().filter(|event| event["outcome"] == "taken").count();
    assert!(sent > 100 && taken == 1, "{sent} forged announcements: {}", done.told());
    assert!(done.usage.peak_memory_bytes < 200 << 20, "{} of memory", Bytes::new(done.usage.peak_memory_bytes));
    let folders = std::fs::read_dir(&site.out).expect("a folder").count();
    assert_eq!(folders, 2, "the session's folder and the receiver's memory");
}

/// What would tell the key of packets to all is refused before anything is sent.
#[test]
fn a_session_whose_description_is_a_secret_is_not_announced() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    for words in [&["--encrypt"][..], &["--authenticate", "group"]] {
        let sender = site.session(1).send(site.network.sender()).args(words).arg("--announce").start().wait(MINUTE);
        assert_eq!(sender.code(), Some(2), "{}", sender.told());
        assert!(sender.told().contains("--readers"), "{}", sender.told());
    }
}

/// A sender, an always-on receiver and a stranger.
struct Site {
    network: Network,
    scratch: Scratch,
    out: PathBuf,
}

impl Site {
    fn new() -> Site {
        let network = Network::new().links([Rate::from_mbps(100)]).receivers(1).build();
        let scratch = Scratch::new();
        for folder in ["files", "more"] {
            scratch.folder(folder);
        }
        let site = Site { out: scratch.join("out"), network, scratch };
        for (number, bytes) in [(1, 400_000), (2, 500_000), (3, 10_000)] {
            generated_file(&site.file(number), bytes, number);
        }
        let made = site.network.sender().command(weir()).args(["key", "new"]).arg(site.key()).start().wait(MINUTE);
        assert!(made.is_success(), "{}", made.told());
        let hook = site.scratch.join("hook");
        let line = r#""$WEIR_RESULT $WEIR_SESSION $WEIR_OUT $WEIR_FILES $WEIR_BYTES $WEIR_SENDER_KEY""#;
        std::fs::write(&hook, format!("#!/bin/sh\necho {line} >> \"$1\"\n")).expect("room");
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        site
    }

    fn key(&self) -> PathBuf {
        self.scratch.join("sender.key")
    }

    fn file(&self, number: u64) -> PathBuf {
        self.scratch.join(format!("files/file{number}"))
    }

    fn public_key(&self) -> String {
        let text = std::fs::read_to_string(self.scratch.join("sender.key.pub")).expect("the key was made");
        text.split_whitespace().last().expect("a key").to_owned()
    }

    fn public_key_hex(&self) -> String {
        let key: weir_object::keys::PublicKey = self.public_key().parse().expect("a key");
        key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Session 1 is called one, session 2 two.
    fn session(&self, number: u64) -> Session {
        let name = ["one", "two", "three"][number as usize - 1];
        let session = Session::new(Path::new(weir()), &self.file(number), self.scratch.path());
        let session = session.to(&format!("239.255.{number}.1:{}", 5000 + 10 * number), number as u16);
        session.words(["--name", name, "--rates", "1M..50M"])
    }

    fn receiver(&self, words: &[&str]) -> Command {
        let host: &Host = self.network.receiver(0);
        let hook = format!("{} {}", self.scratch.join("hook").display(), self.scratch.join("hooks").display());
        let command = host.command(weir()).args(["recv", "--announced", "--json", "--sender-key"]);
        let command = command.arg(self.scratch.join("sender.key.pub")).arg("--out").arg(&self.out);
        command.args(["--iface", host.interface(), "--hook", &hook]).args(words)
    }
}

fn weir() -> &'static str {
    env!("CARGO_BIN_EXE_weir")
}
