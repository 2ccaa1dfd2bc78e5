//! Thousands of small files, between hosts of their own: they travel in bundles, and a receiver that is killed on the way loses nothing. Needs
//! root; see `weir_testkit::netns::require_root`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Finished, Network, Scratch, Session, generated_file, pause, require_root};
use weir_units::Rate;

use super::{MINUTE, WEIR};

#[test]
fn small_files_arrive_at_a_receiver_that_is_killed_while_they_come_and_while_they_are_unpacked() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(16); 2]).build();
    let scratch = Scratch::new();
    let tree = scratch.folder("tree");
    for number in 0..FILES {
        let folder = tree.join((number % 7).to_string());
        fs::create_dir_all(&folder).expect("a folder");
        generated_file(&folder.join(format!("file{number}")), number * 4 / 3, number);
    }
    let session = Session::new(Path::new(WEIR), &tree, scratch.path());
    let session = session.words(["--rates", "1M..12M", "--receipts", "2"]);
    session.describe(network.sender());
    let outs = ["control", "killed"].map(|name| scratch.folder(name));
    let recv = |index: usize| session.recv(network.receiver(index), &outs[index]).start();
    let (control, first) = (recv(0), recv(1));
    pause(HEAD_START);
    let sender = session.send(network.sender()).start();

    let needed = FILES * MEAN_BYTES;
    first.event("progress", MINUTE, |progress| number(progress, "useful_bytes") * 2 >= needed);
    let first = first.kill();
    let second = recv(1);
    second.event("file", MINUTE, |file| file["verified"] == true);
    let second = second.kill();
    assert!([&first, &second].iter().all(|life| life.code().is_none() && life.last_event("end").is_null()), "killed");
    let there = content(&outs[1]).len() as u64;
    let third = recv(1).wait(MINUTE);
    let control = control.wait(MINUTE);
    for done in [&third, &control] {
        let end = done.last_event("end");
        assert!(done.is_success() && end["verified"] == true && end["files"] == FILES, "{}", done.told());
    }
    assert!(sender.wait(MINUTE).is_success());
    let sent = content(&tree);
    assert!(outs.iter().all(|out| content(&out.join("tree")) == sent), "other files arrived");
    assert!(
        outs.iter().all(|out| content(out).len() == sent.len() + 1),
        "a working file is left, next to .weir-epochs"
    );

    let whole = control.count("received_bytes");
    let lives = [&first, &second, &third].map(received);
    eprintln!("without a kill {whole} bytes; with two {lives:?}, {there} files there at the second");
    assert!(lives[0] * 10 > whole * 4, "it was killed half way");
    // A twentieth for each kill, as for one file (`delivery.rs`). Five runs had 0.99, 1.03, 1.03, 1.04 and 1.06 of one life's.
    assert!(lives.iter().sum::<u64>() * 100 <= whole * 110, "{lives:?} bytes in three lives, {whole} in one");
    // A receiver takes 1.08 to 1.16 times the packets of the bundles. The two start up at different times, and each misses what is sent on
    // channels that only the other has joined yet: it is 1.06 to 1.09 if the second comes 1.2 s later.
    let packets = control.count("received_packets");
    let bundled = needed / LARGEST_SYMBOL;
    let own: u64 = sent.values().map(|file| (file.len() as u64).div_ceil(LARGEST_SYMBOL).max(1)).sum();
    assert!(
        packets < u64::midpoint(bundled, own),
        "{packets} packets; in bundles {bundled}, as objects of their own {own}"
    );
}

/// These files are too large for bundles, so each is in the table, and a channel of 256 kbit/s takes more than a second for that. A receiver keeps up to 8 MiB that
/// arrive before the table.
#[test]
fn who_comes_late_has_the_table_before_more_comes_than_it_can_keep() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(2).build();
    let scratch = Scratch::new();
    let tree = scratch.folder("tree");
    (0..200).for_each(|number| generated_file(&tree.join(number.to_string()), 200_000, number));
    let session = Session::new(Path::new(WEIR), &tree, scratch.path());
    let session = session.words(["--rates", "256k..100M", "--receipts", "2"]);
    session.describe(network.sender());
    let outs = ["early", "late"].map(|name| scratch.folder(name));
    let recv = |index: usize| session.recv(network.receiver(index), &outs[index]).start();
    let early = recv(0);
    let sender = session.send(network.sender()).start();
    sender.event("progress", MINUTE, |progress| progress["passes"].as_f64().is_some_and(|passes| passes >= 0.2));
    let late = recv(1).wait(MINUTE);
    for done in [&early.wait(MINUTE), &late, &sender.wait(MINUTE)] {
        assert!(done.is_success(), "{}", done.told());
    }
    let told = late.events("progress");
    let first = told.iter().find(|progress| !progress["needed_bytes"].is_null());
    let first = first.map(|progress| number(progress, "received_bytes"));
    eprintln!("it had the table after {first:?} bytes at most");
    assert!(first.is_some_and(|bytes| bytes <= 8 << 20), "{first:?} bytes");
}

/// What a receiver has received, as far as it said.
fn received(life: &Finished) -> u64 {
    let last = ["end", "progress"].map(|kind| number(&life.last_event(kind), "received_bytes"));
    last[0].max(last[1])
}

fn number(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or(0)
}

/// The files below a folder, by their paths in it.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if entry.file_type().expect("its type").is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below").display().to_string();
                files.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

const FILES: u64 = 3000;
/// Of 0 to 4000.
const MEAN_BYTES: u64 = 2000;
/// Bytes of a file that a packet of the default size carries.
const LARGEST_SYMBOL: u64 = 1400;
const HEAD_START: Duration = Duration::from_millis(500);
