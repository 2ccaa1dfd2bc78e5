//! What goes wrong on the receiver itself: it is killed, loses power or finds its journal damaged, and its disk is full. Hostile senders:
//! `hostile.rs`.

use std::fs;

use crate::common::*;
use weir_object::store::RefuseReason;
use weir_object::{Event, Origin, StoreError, StoreOptions};
use weir_wire::alc::Content;
use weir_wire::fec::PayloadId;

/// Receives about half of `bytes` and kills the receiver after a flush.
fn half(sender: &mut Sender, out: &std::path::Path, symbols: usize) {
    let mut store = open(out, &StoreOptions::default());
    for _ in 0..symbols {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("room");
    }
    store.flush().expect("room");
}

#[test]
fn what_is_thrown_away_is_gone_from_the_journal_at_once() {
    let out = tempfile::tempdir().expect("temporary folder");
    let bytes = content(50_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    let (mut forged, mut taken) = (0u32, 0);
    while store.progress().bad_blocks == 0 {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("room");
        taken += u64::from(content.toi == 1);
        if content.toi == 1 && forged < 30 {
            forged += 1;
            let payload_id = PayloadId { symbol: 1 << 20 | forged, ..content.payload_id };
            store.add(&Content { payload_id, ..content }, &[7; 512], Origin(2)).expect("room");
            store.flush().expect("room");
        }
        assert!(taken < 98, "{:?}", store.progress());
    }
    assert_eq!(store.progress().discarded_symbols, 30);
    // Killed.
    drop(store);
    let mut store = open(out.path(), &StoreOptions::default());
    while store.progress().files_total == 0 {
        let (_, content, symbol) = sender.next();
        if content.toi == 0 {
            store.add(&content, &symbol, ORIGIN).expect("room");
        }
    }
    let told = events(&mut store);
    let Event::Resumed { bytes, .. } = told[0] else { panic!("{told:?}") };
    assert_eq!(bytes, taken * 512, "what the sender sent is there, and nothing else");
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_restart_at_half_wastes_less_than_5_percent() {
    let bytes = content(2_000_000, 1);
    let total = 2_000_000u64.div_ceil(512);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let out = tempfile::tempdir().expect("temporary folder");
    half(&mut sender, out.path(), total as usize / 2);
    let mut store = open(out.path(), &StoreOptions::default());
    let arrived = receive(&mut sender, &mut store, 2, 0.0, 1);
    assert!(arrived + total / 2 <= total + total / 20, "{arrived} of {total}");
    assert!(events(&mut store).iter().any(|event| matches!(event, Event::Resumed { .. })));
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_changed_file_under_the_same_name_drops_the_old_partial_one() {
    let out = tempfile::tempdir().expect("temporary folder");
    let old = content(100_000, 1);
    half(&mut Sender::new(&[("a", &old)], &two_channels()), out.path(), 100);
    let new = content(100_000, 2);
    let mut sender = Sender::new(&[("a", &new)], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert!(events(&mut store).iter().any(|event| matches!(event, Event::Restarted { .. })));
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_sender_that_starts_again_with_a_changed_file_is_noticed_by_a_running_receiver() {
    let out = tempfile::tempdir().expect("temporary folder");
    let (old, new) = (content(100_000, 1), content(120_000, 2));
    let mut store = open(out.path(), &StoreOptions::default());
    let mut sender = Sender::new(&[("a", &old)], &two_channels());
    for _ in 0..100 {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("room");
    }
    let mut sender = Sender::new(&[("a", &new)], &two_channels());
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert!(events(&mut store).iter().any(|event| matches!(event, Event::NewSet)));
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn damaged_journals_never_stop_a_file_from_arriving_whole() {
    let bytes = content(200_000, 1);
    for damage in 0..40usize {
        let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
        let out = tempfile::tempdir().expect("temporary folder");
        half(&mut sender, out.path(), 200);
        let path = out.path().join("a.weir-journal");
        let mut journal = fs::read(&path).expect("a journal");
        match damage {
            0 => journal.clear(),
            1 => journal.truncate(100),
            2 => journal.truncate(5000),
            3 => journal.extend([0; 1000]),
            4 => fs::write(out.path().join("a.weir-part"), b"short").expect("partial"),
            _ => {
                let at = if damage < 10 { damage } else { 4096 + (damage * 7919) % (journal.len() - 4096) };
                journal[at] ^= 1 << (damage % 8);
            }
        }
        fs::write(&path, &journal).expect("journal");
        let mut store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
        receive(&mut sender, &mut store, 2, 0.0, 1);
        assert_same(sender.folder.path(), out.path());
    }
}

#[test]
fn a_power_loss_is_told_and_the_digest_decides() {
    let bytes = content(200_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let out = tempfile::tempdir().expect("temporary folder");
    half(&mut sender, out.path(), 200);
    let partial = out.path().join("a.weir-part");
    let mut data = fs::read(&partial).expect("partial");
    let last = data.iter().rposition(|byte| *byte != 0).expect("something was received");
    data[last - 100..=last].fill(0);
    fs::write(&partial, data).expect("partial");
    let boot_id = Some([9; 16]);
    let mut store = open(out.path(), &StoreOptions { boot_id, ..Default::default() });
    receive(&mut sender, &mut store, 2, 0.0, 1);
    let told = events(&mut store);
    assert!(told.iter().any(|event| matches!(event, Event::Resumed { after_power_loss: true, .. })), "{told:?}");
    assert!(told.iter().any(|event| matches!(event, Event::BadBlock { .. })), "{told:?}");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_clean_close_is_no_power_loss() {
    let bytes = content(200_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    for _ in 0..200 {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("room");
    }
    store.close().expect("room");
    let mut store = open(out.path(), &StoreOptions { boot_id: Some([9; 16]), ..Default::default() });
    receive(&mut sender, &mut store, 2, 0.0, 1);
    let told = events(&mut store);
    assert!(told.iter().any(|event| matches!(event, Event::Resumed { after_power_loss: false, .. })), "{told:?}");
}

#[test]
fn two_receivers_do_not_write_the_same_file() {
    let bytes = content(200_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let out = tempfile::tempdir().expect("temporary folder");
    let mut first = open(out.path(), &StoreOptions::default());
    let mut second = open(out.path(), &StoreOptions::default());
    while !first.is_complete() {
        let (_, content, symbol) = sender.next();
        first.add(&content, &symbol, ORIGIN).expect("room");
        second.add(&content, &symbol, ORIGIN).expect("room");
    }
    assert!(matches!(events(&mut second)[..], [Event::Refused { reason: RefuseReason::InUse, .. }]));
    assert_same(sender.folder.path(), out.path());
}

/// A file of somebody else's that may be written to stands for one on a file system that takes no permissions and no times: the system
/// refuses both with the same error.
#[test]
fn a_file_whose_permissions_and_time_are_refused_arrives_all_the_same() {
    use nix::unistd::{Uid, setfsuid};
    use std::os::unix::fs::PermissionsExt;
    if !Uid::effective().is_root() {
        eprintln!("SKIPPED: to give up the right to change others' files it takes root");
        return;
    }
    let out = tempfile::tempdir().expect("temporary folder");
    let partial = out.path().join("a.weir-part");
    fs::write(&partial, b"").expect("file");
    for (path, mode) in [(out.path(), 0o777), (partial.as_path(), 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }
    let bytes = content(100_000, 1);
    let mut sender = Sender::new(&[("a", &bytes), ("b", b"b")], &two_channels());
    // Of this thread alone.
    setfsuid(Uid::from_raw(65_534));
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 2, 0.0, 1);
    let told = events(&mut store);
    setfsuid(Uid::from_raw(0));
    let refused: Vec<&str> = told.iter().filter_map(refused_attributes).collect();
    assert_eq!(refused, ["a"], "{told:?}");
    assert_eq!(told.iter().filter(|event| matches!(event, Event::Done { .. })).count(), 2, "{told:?}");
    assert_same(sender.folder.path(), out.path());
}

fn refused_attributes(event: &Event) -> Option<&str> {
    match event {
        Event::AttributesRefused { name, .. } => Some(name),
        _ => None,
    }
}

#[test]
fn a_full_disk_is_found_at_the_start_and_nothing_is_lost() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    let temporary = tempfile::tempdir().expect("temporary folder");
    let mounted = mount(Some("tmpfs"), temporary.path(), Some("tmpfs"), MsFlags::empty(), Some("size=1m"));
    if mounted.is_err() {
        eprintln!("SKIPPED: a full disk needs the right to mount a file system of 1 MiB; run this test as root");
        return;
    }
    fs::write(temporary.path().join("mine"), b"mine").expect("file");
    let bytes = content(3_000_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(temporary.path(), &StoreOptions::default());
    let error = (0..1000).find_map(|_| {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).err()
    });
    let left: Vec<_> =
        fs::read_dir(temporary.path()).expect("folder").map(|entry| entry.expect("entry").file_name()).collect();
    let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
    drop(store);
    umount2(temporary.path(), MntFlags::MNT_DETACH).expect("unmounted");
    assert!(matches!(error, Some(StoreError::DiskFull { needed: 3_000_000, .. })), "{error:?}");
    assert!(text.contains("make room"), "{text}");
    assert_eq!(left, ["mine"]);
}

#[test]
fn a_disk_that_others_fill_meanwhile_is_told_and_what_was_received_is_kept() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    let temporary = tempfile::tempdir().expect("temporary folder");
    let mounted = mount(Some("tmpfs"), temporary.path(), Some("tmpfs"), MsFlags::empty(), Some("size=6m"));
    if mounted.is_err() {
        eprintln!("SKIPPED: a full disk needs the right to mount a file system of 6 MiB; run this test as root");
        return;
    }
    let out = temporary.path().join("out");
    let others = temporary.path().join("others");
    let bytes = content(3_000_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(&out, &StoreOptions::default());
    let mut error = None;
    for number in 0..3000 {
        let (_, content, symbol) = sender.next();
        error = store.add(&content, &symbol, ORIGIN).and_then(|()| store.flush()).err();
        if number == 1000 {
            fs::write(&others, vec![1; 6 << 20]).expect_err("there is less room");
        }
        if error.is_some() {
            break;
        }
    }
    let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
    drop(store);
    fs::remove_file(&others).expect("removed");
    let mut store = open(&out, &StoreOptions::default());
    receive(&mut sender, &mut store, 2, 0.0, 1);
    let resumed =
        events(&mut store).iter().any(|event| matches!(event, Event::Resumed { bytes, .. } if *bytes > 500_000));
    let same = fs::read(out.join("a")).expect("received") == bytes;
    drop(store);
    umount2(temporary.path(), MntFlags::MNT_DETACH).expect("unmounted");
    assert!(matches!(error, Some(StoreError::DiskFull { needed: 3_000_000, .. })), "{error:?}");
    assert!(text.contains("make room"), "{text}");
    assert!(resumed && same);
}
