//! Sealed sessions between hosts of their own, next to a stranger who hears everything and sends what he likes. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use flute::core::UDPEndpoint;
use flute::receiver::{MultiReceiver, writer::ObjectWriterBufferBuilder};
use weir_testkit::netns::{Air, Network, Process, Scratch, Stranger, Transfer, require_root};
use weir_units::{Bytes, Rate};
use weir_wire::alc::Alc;

use super::{MINUTE, WEIR};

/// All five kinds of seals side by side, each with a receiver and a stranger of its own.
#[test]
fn a_stranger_s_packets_touch_no_sealed_session() {
    if !require_root() {
        return;
    }
    let kinds: [(&str, &[&str]); 5] = [
        ("group", &["--authenticate", "group"]),
        ("source", &["--authenticate", "source"]),
        ("encrypt", &["--encrypt"]),
        ("group and source", &["--authenticate", "group", "--authenticate", "source"]),
        ("encrypt and source", &["--encrypt", "--authenticate", "source"]),
    ];
    let network = Network::new().links([LINK; 5]).receivers(1).build();
    let scratch = Scratch::new();
    let running: Vec<(Transfer, [Process; 2], Stranger)> = (0..)
        .zip(kinds)
        .map(|(index, (_, words))| {
            let is_hidden = words.contains(&"--encrypt");
            let stranger =
                Stranger::start(network.receiver(5), Transfer::group(index), move |air| meddle(air, is_hidden));
            let transfer = transfer(&scratch, index, words);
            transfer.session.describe(network.sender());
            let receiver = transfer.session.recv(network.receiver(index), &transfer.out).start();
            let sender = transfer.session.send(network.sender()).start();
            (transfer, [receiver, sender], stranger)
        })
        .collect();
    for ((name, words), (transfer, [receiver, sender], stranger)) in kinds.iter().zip(running) {
        let done = transfer.verified_by(&receiver, MINUTE);
        assert!(sender.wait(MINUTE).is_success(), "{name}");
        let (said, refused) = (stranger.stop(), done.count("forged_packets"));
        eprintln!("{name}: {:.2} s, {said} packets of a stranger, {refused} refused", done.seconds());
        assert!(refused > 0 && said >= refused, "{name} was never struck: {}", done.told());
        assert_eq!(["bad_blocks", "bad_tables", "old_tables"].map(|field| done.count(field)), [0; 3], "{name}");
        let mode = std::fs::metadata(transfer.session.description()).expect("a description").permissions().mode();
        let has_key = words.len() > 2 || words[0] == "--encrypt" || words[1] == "group";
        assert_eq!(mode & 0o077 == 0, has_key, "{name}: a description with a key is its owner's alone, {mode:o}");
    }
}

/// Ten times a second: a packet changed in its symbol, one in its header, one said again, and one without a seal.
fn meddle(air: &mut Air, is_hidden: bool) {
    while let Some(heard) = air.hear() {
        let packet = heard.bytes().to_vec();
        assert_eq!(Alc::decode(&packet).is_err(), is_hidden, "what is encrypted cannot be read, and nothing else");
        for place in [packet.len() - 20, 9] {
            let mut changed = packet.clone();
            changed[place] ^= 1;
            air.say_as(heard.from(), &changed);
        }
        air.say(&packet);
        air.say(&packet[..packet.len() / 2]);
        air.pause(TENTH);
    }
}

/// A sender that is killed and started again with its key: receivers follow, though all keys of packets are new.
#[test]
fn receivers_of_an_encrypted_session_follow_a_sender_that_is_started_again() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([LINK]).build();
    let scratch = Scratch::new();
    let transfer = transfer(&scratch, 0, &["--encrypt", "--authenticate", "source"]);
    transfer.session.describe(network.sender());
    let receiver = transfer.session.recv(network.receiver(0), &transfer.out).start();
    let first = transfer.session.send(network.sender()).start();
    receiver.event("progress", MINUTE, |progress| progress["useful_bytes"].as_u64() > Some(FILE.count() / 4));
    first.kill();
    assert!(!receiver.has_ended(), "it was killed in the middle");
    let second = transfer.session.send(network.sender()).start();
    let done = transfer.verified_by(&receiver, MINUTE);
    assert!(second.wait(MINUTE).is_success());
    eprintln!("{:.2} s over two starts", done.seconds());
    assert_eq!(done.count("forged_packets"), 0, "{}", done.told());
}

/// The key is wrapped for the hosts of a list: they read a description that everybody may have, and others are told what to do.
#[test]
fn only_the_readers_of_a_list_can_open_an_encrypted_session() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([LINK; 2]).build();
    let scratch = Scratch::new();
    let line = |index: usize| {
        let host = network.receiver(index);
        let done = host.command(WEIR).args(["key", "host", "--name", host.namespace()]).start().wait(MINUTE);
        assert!(done.is_success(), "{}", done.told());
        done.out.first().expect("a line").text.clone()
    };
    let readers = scratch.join("readers");
    std::fs::write(&readers, format!("# who may read\n{}\n", line(0))).expect("room for a list");
    let readers = readers.to_str().expect("a plain name");
    let transfer = transfer(&scratch, 0, &["--encrypt", "--readers", readers]);
    transfer.session.describe(network.sender());
    let text = std::fs::read_to_string(transfer.session.description()).expect("a description");
    assert!(!text.contains("weir-seal-key") && text.matches("weir-seal-for").count() == 1, "{text}");
    let reader = transfer.session.recv(network.receiver(0), &transfer.out).start();
    let other = transfer.session.recv(network.receiver(1), &scratch.folder("other")).start().wait(MINUTE);
    assert!(
        !other.is_success() && other.told().contains("--readers") && other.told().contains(&line(1)),
        "{}",
        other.told()
    );
    let sender = transfer.session.send(network.sender()).start();
    transfer.verified_by(&reader, MINUTE);
    assert!(sender.wait(MINUTE).is_success());
}

/// A receiver whose description is of other times is told why nothing counts.
#[test]
fn a_receiver_with_the_key_of_another_session_is_told_so() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([LINK; 3]).build();
    let scratch = Scratch::new();
    let transfer = transfer(&scratch, 0, &["--authenticate", "group", "--for", "30s"]);
    transfer.session.describe(network.sender());
    let text = std::fs::read_to_string(transfer.session.description()).expect("a description");
    let text = weir_testkit::netns::unsigned(&text);
    let recv = |index: usize, name: &str, change: &dyn Fn(&str) -> String| {
        let path = scratch.join(name);
        let lines = text.lines().map(change).filter(|line| !line.is_empty());
        std::fs::write(&path, lines.map(|line| line + "\r\n").collect::<String>()).expect("room for a description");
        let host = network.receiver(index);
        let command =
            host.command(WEIR).arg("recv").arg(&path).arg("--out").arg(scratch.join(name.to_owned() + ".out"));
        command.args(["--iface", host.interface(), "--json"]).start()
    };
    let key = format!("a=weir-seal-key:{}", "5a".repeat(32));
    let other_key =
        recv(0, "key", &|line| if line.starts_with("a=weir-seal-key") { key.clone() } else { line.to_owned() });
    let later = format!("\r\na=weir-epoch:{}", 1_u64 << 47);
    let old_start = recv(1, "old", &|line| {
        if line.starts_with("a=flute-tsi") { line.to_owned() + &later } else { line.to_owned() }
    });
    // A receiver that starts anew with the old description, and remembers a later start.
    let key = text.lines().find_map(|line| line.strip_prefix("a=weir-key:ed25519 ")).expect("the sender's key");
    let tsi = text.lines().find_map(|line| line.strip_prefix("a=flute-tsi:")).expect("the session's number");
    let heard = format!("{key} {tsi} {}\n", 1_u64 << 47);
    std::fs::write(scratch.folder("remembers.out").join(".weir-epochs"), heard).expect("room for a line");
    let remembers = recv(2, "remembers", &str::to_owned);
    let sender = transfer.session.send(network.sender()).start();
    for (process, what) in [(other_key, "forged"), (old_start, "replayed"), (remembers, "replayed")] {
        let waiting = process.event("waiting", MINUTE, |_| true);
        assert_eq!(waiting["seen"][0]["what"], what, "{waiting}");
    }
    drop(sender);
}

/// The `flute` crate, written by others, takes a session whose packets are authenticated: it skips what it does not know.
#[test]
#[expect(clippy::disallowed_methods, reason = "flute compares tables' end of life with the wall clock")]
fn flute_tools_read_sessions_with_seals_that_do_not_hide() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([LINK]).build();
    let scratch = Scratch::new();
    let words = ["--rates", "4M", "--authenticate", "group", "--authenticate", "source", "--flute-version", "1"];
    let words = words.into_iter().chain(["--for", "60s"]);
    let transfer = Transfer::new(Path::new(WEIR), &scratch, 0, Bytes::new(500_000), words);
    let (heard, hears) = channel();
    let listener = Stranger::start(network.receiver(0), Transfer::group(0), move |air| {
        while let Some(packet) = air.hear() {
            if heard.send(packet.bytes().to_vec()).is_err() {
                return;
            }
        }
    });
    let sender = transfer.session.send(network.sender()).start();
    let writer = Rc::new(ObjectWriterBufferBuilder::new(true));
    let mut receiver = MultiReceiver::new(writer.clone(), None, false);
    let endpoint = UDPEndpoint::new(None, Transfer::group(0).ip().to_string(), Transfer::group(0).port());
    while !writer.objects.borrow().iter().any(|object| object.borrow().complete) {
        let packet = hears.recv_timeout(MINUTE).expect("the sender sends");
        assert_eq!(packet[FIRST_EXTENSION], EXT_AUTH, "it has a seal");
        receiver.push(&endpoint, &packet, SystemTime::now()).expect("flute takes every packet");
    }
    drop(hears);
    listener.stop();
    drop(sender);
    let objects = writer.objects.borrow();
    assert!(objects[0].borrow().data == std::fs::read(&transfer.file).expect("it was sent"), "content differs");
}

/// Number `index` of the sessions of a test.
fn transfer(scratch: &Scratch, index: usize, words: &[&str]) -> Transfer {
    let all = ["--rates", "2M..16M", "--receipts", "1"].iter().chain(words);
    Transfer::new(Path::new(WEIR), scratch, index, FILE, all.copied())
}

/// Of a packet with the short form of congestion control information and 16 bits of TSI and TOI.
const FIRST_EXTENSION: usize = 12;
const EXT_AUTH: u8 = 1;
const FILE: Bytes = Bytes::new(6_000_000);
const LINK: Rate = Rate::from_mbps(16);
const TENTH: Duration = Duration::from_millis(100);
