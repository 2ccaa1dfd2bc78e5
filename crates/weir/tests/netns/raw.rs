//! Pipes, holes, what is left out, and a folder that is sent again, between hosts of their own. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weir_testkit::netns::{Command, Finished, Host, Network, Scratch, Session, generated_file, in_path, require_root};
use weir_units::Rate;

use super::{MINUTE, WEIR};

#[test]
fn a_folder_goes_from_a_pipe_to_a_pipe_under_loss_and_leaves_no_working_folder() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let scratch = Scratch::new();
    let tree = scratch.folder("tree");
    for number in 0..20 {
        generated_file(&tree.join(format!("file{number}")), 40_000 + number * 1000, number);
    }
    let (spool, out) = (scratch.folder("spool"), scratch.folder("out"));
    let session = Session::new(Path::new(WEIR), Path::new("-"), scratch.path());
    let session = session.words(["--rates", "1M..20M", "--receipts", "1", "--stdin-name", "tree.tar"]);
    session.describe(network.sender());
    let in_spool = format!("set -o pipefail; export TMPDIR={};", spool.display());
    let receiving = recv(network.receiver(0), &session).args(["--link", "rate=50mbit,loss=2%"]);
    let receiving = receiving.in_shell(&format!("{in_spool} \"$@\" | tar x -C {}", out.display())).start();
    let sending = format!("{in_spool} tar c -C {} tree | \"$@\"", scratch.path().display());
    let sending = session.send(network.sender()).in_shell(&sending).start();

    let received = receiving.wait(MINUTE);
    assert!(received.is_success(), "{}", received.told());
    assert!(received.told().contains("tree.tar"), "what is said goes to standard error: {}", received.told());
    assert!(sending.wait(MINUTE).is_success());
    assert_eq!(content(&out), content_of(&[&tree], scratch.path()));
    assert_eq!(fs::read_dir(&spool).expect("a folder").count(), 0, "working folders are removed");
}

#[test]
fn standard_output_takes_one_verified_file_and_nothing_of_a_session_with_two() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let scratch = Scratch::new();
    let tree = scratch.folder("tree");
    for name in ["one", "other"] {
        generated_file(&tree.join(name), 300_000, 7);
    }
    let session = Session::new(Path::new(WEIR), &tree, scratch.path());
    let session = session.words(["--rates", "1M..20M", "--for", "60s"]);
    session.describe(network.sender());
    let sending = session.send(network.sender()).start();
    let received = |words: &[&str], to: &str| {
        let recv = recv(network.receiver(0), &session).args(words);
        recv.in_shell(&format!("\"$@\" > {to}")).start().wait(MINUTE)
    };
    let file = scratch.join("stdout");
    let refused = received(&[], &file.display().to_string());
    assert_eq!((refused.code(), fs::metadata(&file).expect("made by the shell").len()), (Some(2), 0));
    assert!(refused.told().contains("more than one file"), "{}", refused.told());
    let both = received(&["--json"], "/dev/null");
    assert!(both.code() == Some(2) && both.told().contains("--json"), "{}", both.told());
    drop(sending);
}

#[test]
fn what_is_excluded_does_not_arrive_and_holes_are_not_sent_and_stay_holes() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let scratch = Scratch::new();
    let tree = scratch.folder("tree");
    generated_file(&tree.join("kept.txt"), 200_000, 1);
    generated_file(&tree.join("dropped.o"), 200_000, 2);
    let sparse = File::create(tree.join("image")).expect("a file");
    sparse.set_len(HOLES).expect("a hole");
    sparse.write_all_at(&[7; 65_536], HOLES / 2).expect("data in the middle");
    let out = scratch.folder("out");
    let session = Session::new(Path::new(WEIR), &tree, scratch.path());
    let session = session.words(["--rates", "1M..20M", "--receipts", "1", "--exclude", "*.o"]);
    session.describe(network.sender());
    let receiving = session.recv(network.receiver(0), &out).args(["--link", "rate=50mbit,loss=2%"]).start();
    let sending = session.send(network.sender()).start();
    let (received, sent) = (receiving.wait(MINUTE), sending.wait(MINUTE));
    assert!(received.is_success() && sent.is_success(), "{}", received.told());
    assert!(sent.told().contains(" of zeros are not sent"), "{}", sent.told());
    let bytes = received.count("received_bytes");
    assert!(bytes < HOLES / 2, "{bytes} bytes came for an image of {HOLES} that are zeros but for one block");

    let there = content(&out.join("tree"));
    assert_eq!(there.keys().map(String::as_str).collect::<Vec<_>>(), ["image", "kept.txt"]);
    assert_eq!(there["image"], fs::read(tree.join("image")).expect("it is there"));
    let on_disk = fs::metadata(out.join("tree/image")).expect("it is there").blocks() * 512;
    assert!(on_disk < HOLES / 8, "the hole takes {on_disk} bytes");
}

/// The device is longer than the image, which ends within a symbol and has blocks of zeros in the middle.
#[test]
fn an_image_goes_to_a_device_as_it_comes_also_after_a_kill_and_nothing_else_is_touched() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let scratch = Scratch::new();
    let (image, backing) = (scratch.join("image"), scratch.join("backing"));
    generated_file(&image, IMAGE, 1);
    let zeros = File::options().write(true).open(&image).and_then(|file| file.write_all_at(&vec![0; 7 << 20], 4 << 20));
    zeros.expect("it is ours");
    fs::write(&backing, vec![0xaa; 20 << 20]).expect("a file");
    let Some(device) = Loop::over(&backing) else { return };
    let session = Session::new(Path::new(WEIR), &image, scratch.path());
    let session = session.words(["--rates", "1M..20M", "--receipts", "1"]);
    session.describe(network.sender());
    let recv = |words: &[&str]| {
        let link = ["--link", "rate=50mbit,loss=2%"];
        session.recv(network.receiver(0), &device.path).args(link).args(words).start()
    };
    let refused = recv(&[]).wait(MINUTE);
    assert!(refused.code() == Some(2) && refused.told().contains("--overwrite"), "{}", refused.told());
    let held = File::options()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_EXCL.bits())
        .open(&device.path)
        .expect("nobody uses it");
    let refused = recv(&["--overwrite"]).wait(MINUTE);
    assert!(refused.told().contains("in use"), "{}", refused.told());
    drop(held);

    let sending = session.send(network.sender()).start();
    let killed = recv(&["--overwrite"]);
    killed.event("progress", MINUTE, |progress| progress["useful_bytes"].as_u64() > Some(IMAGE * 2 / 3));
    killed.kill();
    let received = recv(&["--overwrite"]).wait(MINUTE);
    assert!(received.is_success() && sending.wait(MINUTE).is_success(), "{}", received.told());
    assert!(received.told().contains("goes on from"), "{}", received.told());
    drop(device);
    let (on_device, sent) = (fs::read(&backing).expect("there"), fs::read(&image).expect("there"));
    assert!(on_device[..sent.len()] == sent[..], "the image is on the device");
    assert!(on_device[sent.len()..].iter().all(|byte| *byte == 0xaa), "what lies behind it is as it was");
}

/// The sender is started again with another image while the first one is on its way to the device.
#[test]
fn a_device_has_the_image_that_the_sender_changes_to() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let scratch = Scratch::new();
    let (first, second, backing) = (scratch.join("first"), scratch.join("second"), scratch.join("backing"));
    File::create(&first).and_then(|file| file.set_len(400 << 20)).expect("a hole");
    let data = File::options().write(true).open(&first).and_then(|file| file.write_all_at(&[7; 3 << 20], 0));
    data.expect("it is ours");
    generated_file(&second, IMAGE, 2);
    File::create(&backing).and_then(|file| file.set_len(401 << 20)).expect("a hole");
    let Some(device) = Loop::over(&backing) else { return };
    let of = |image: &Path| {
        let session = Session::new(Path::new(WEIR), image, scratch.path());
        session.words(["--name", "image", "--rates", "1M..20M", "--receipts", "1"])
    };
    of(&first).describe(network.sender());
    let sending = of(&first).send(network.sender()).start();
    let receiving = of(&first).recv(network.receiver(0), &device.path).arg("--overwrite").start();
    receiving.event("progress", MINUTE, |progress| progress["needed_bytes"].as_u64() == Some(400 << 20));
    sending.kill();
    let sending = of(&second).send(network.sender()).start();
    let received = receiving.wait(MINUTE);
    assert!(received.is_success() && sending.wait(MINUTE).is_success(), "{}", received.told());
    drop(device);
    let sent = fs::read(&second).expect("there");
    assert!(fs::read(&backing).expect("there")[..sent.len()] == sent[..], "the second image is on the device");
}

#[test]
fn a_device_takes_no_folder_and_no_image_that_is_longer() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let scratch = Scratch::new();
    let (tree, image, backing) = (scratch.folder("tree"), scratch.join("image"), scratch.join("backing"));
    ["one", "other"].iter().for_each(|name| generated_file(&tree.join(name), 100_000, 1));
    generated_file(&image, 2_000_000, 2);
    fs::write(&backing, vec![0xaa; 1 << 20]).expect("a file");
    let Some(device) = Loop::over(&backing) else { return };
    for (path, why) in [(&tree, "a session of one file"), (&image, "1048576 bytes, and the file 2000000")] {
        let session = Session::new(Path::new(WEIR), path, scratch.path()).words(["--rates", "1M..20M", "--for", "60s"]);
        session.describe(network.sender());
        let sending = session.send(network.sender()).start();
        let refused = session.recv(network.receiver(0), &device.path).arg("--overwrite").start().wait(MINUTE);
        assert!(!refused.is_success() && refused.told().contains(why), "{}", refused.told());
        drop(sending);
    }
    drop(device);
    assert!(fs::read(&backing).expect("there").iter().all(|byte| *byte == 0xaa), "nothing was written");
}

/// A block device whose content is a file's.
struct Loop {
    path: PathBuf,
}

impl Loop {
    /// `None`, and said so, on a host that has none.
    fn over(file: &Path) -> Option<Loop> {
        let made = in_path("losetup").then(|| {
            let done = Command::here("losetup").args(["--find", "--show"]).arg(file).start().wait(MINUTE);
            done.out.first().map(|line| Loop { path: PathBuf::from(&line.text) })
        });
        // In a container there may be the program and no device, or one that nobody may open.
        let usable = made.flatten().filter(|made| File::open(&made.path).is_ok());
        if usable.is_none() {
            eprintln!("SKIPPED: this host has no loop devices");
        }
        usable
    }
}

impl Drop for Loop {
    /// Waits until all that was written is in the file.
    fn drop(&mut self) {
        Command::here("blockdev").arg("--flushbufs").arg(&self.path).start().wait(MINUTE);
        Command::here("losetup").arg("--detach").arg(&self.path).start().wait(MINUTE);
    }
}

#[test]
fn of_a_folder_that_is_sent_again_only_what_changed_is_waited_for_and_with_changes_sent() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let scratch = Scratch::new();
    let (tree, out) = (scratch.folder("tree"), scratch.folder("out"));
    for number in 0..10 {
        generated_file(&tree.join(format!("file{number}")), 300_000, number);
    }
    let run = |tsi: u16, words: &[&str]| -> Finished {
        let session = Session::new(Path::new(WEIR), &tree, scratch.path()).to("239.255.0.1:5004", tsi);
        let session = session.words(["--rates", "1M..20M", "--receipts", "1"]).words(words.iter().copied());
        session.describe(network.sender());
        let receiving = session.recv(network.receiver(0), &out).arg("--overwrite").start();
        let sending = session.send(network.sender()).start();
        let received = receiving.wait(MINUTE);
        assert!(received.is_success() && sending.wait(MINUTE).is_success(), "{}", received.told());
        received
    };
    let state = scratch.join("state").display().to_string();
    let first = run(7, &["--changes", &state]);
    generated_file(&tree.join("file3"), 300_000, 99);
    generated_file(&tree.join("file10"), 300_000, 100);
    let second = run(8, &[]);
    assert_eq!(content(&out.join("tree")), content(&tree));
    let new = |done: &Finished| {
        done.events("file").iter().map(|file| file["new_bytes"].as_u64().expect("a number")).sum::<u64>()
    };
    eprintln!("new bytes: {} and then {}", new(&first), new(&second));
    assert_eq!((new(&first), new(&second)), (3_000_000, 600_000), "all files are sent, and two were waited for");
    generated_file(&tree.join("file4"), 300_000, 101);
    let third = run(9, &["--changes", &state]);
    assert_eq!(content(&out.join("tree")), content(&tree));
    let names: Vec<_> = third.events("file").iter().map(|file| file["name"].to_string()).collect();
    assert_eq!(names.len(), 3, "what changed since the first is sent: {names:?}");
    let whole = second.count("received_bytes");
    assert!(third.count("received_bytes") < whole, "and is less than the folder");
    let idle = Session::new(Path::new(WEIR), &tree, scratch.path()).words(["--changes", &state]).send(network.sender());
    let idle = idle.start().wait(MINUTE);
    assert!(idle.is_success() && idle.told().contains("nothing has changed"), "{}", idle.told());
}

#[test]
fn a_disk_is_sent_whole_and_one_that_is_mounted_to_be_written_is_refused() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.join("image");
    generated_file(&image, 3_000_000, 5);
    let Some(disk) = Disk::of(&image) else {
        eprintln!("left out: this kernel makes no loop devices");
        return;
    };
    let bytes = fs::read(&image).expect("it is there");
    let network = Network::new().links([Rate::from_mbps(50)]).build();
    let out = scratch.folder("out");
    let session = Session::new(Path::new(WEIR), &disk.path, scratch.path());
    let session = session.words(["--rates", "1M..20M", "--receipts", "1"]);
    session.describe(network.sender());
    let receiving = session.recv(network.receiver(0), &out).start();
    let sending = session.send(network.sender()).start();
    let received = receiving.wait(MINUTE);
    assert!(received.is_success() && sending.wait(MINUTE).is_success(), "{}", received.told());
    let name = disk.path.file_name().expect("a device has one");
    // A loop device has whole sectors.
    let arrived = fs::read(out.join(name)).expect("it arrived");
    assert_eq!(arrived, bytes[..bytes.len() / 512 * 512]);

    let at = scratch.folder("mounted");
    let line = format!("mkfs.ext2 -q -F {0} && mount {0} {1}", disk.path.display(), at.display());
    if !Command::here("sh").args(["-c", &line]).start().wait(MINUTE).is_success() {
        eprintln!("left out: this machine makes and mounts no ext2");
        return;
    }
    let refused = session.send(network.sender()).start().wait(MINUTE);
    let unmounted = Command::here("umount").arg(&at).start().wait(MINUTE);
    assert!(unmounted.is_success());
    assert!(refused.code() == Some(7) && refused.told().contains("is mounted at"), "{}", refused.told());
}

/// A loop device, which goes with this.
struct Disk {
    path: PathBuf,
}

impl Disk {
    /// The device of a file; `None` where there are none.
    fn of(image: &Path) -> Option<Disk> {
        let made = Command::here("losetup").args(["--show", "-f"]).arg(image).start().wait(MINUTE);
        let path = made.out.first().map(|line| PathBuf::from(&line.text))?;
        made.is_success().then_some(Disk { path })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::here("losetup").arg("-d").arg(&self.path).start().wait(MINUTE);
    }
}

/// A receiver that writes to standard output.
fn recv(receiver: &Host, session: &Session) -> Command {
    let command = receiver.command(WEIR).arg("recv").arg(session.description());
    command.args(["--iface", receiver.interface(), "--out", "-"])
}

/// By path below `folder`: what is in each file.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    content_of(&[folder], folder)
}

fn content_of(folders: &[&Path], root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in folders {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(content_of(&[&path], root));
            } else if !entry.file_name().to_string_lossy().starts_with(".weir") {
                let name = path.strip_prefix(root).expect("below it").display().to_string();
                found.insert(name, fs::read(&path).expect("it can be read"));
            }
        }
    }
    found
}

const HOLES: u64 = 16 << 20;
const IMAGE: u64 = (14 << 20) + 77;
