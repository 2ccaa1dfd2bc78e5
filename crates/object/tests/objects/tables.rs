//! Which tables count: signed, not expired, of no earlier start of the sender; and what anybody's tables may take.

use std::fs;

use crate::common::*;
use weir_object::{CarouselOptions, Event, Origin, SecretKey, Store, StoreOptions};
use weir_units::Rate;
use weir_wire::alc::{Content, FdtInstance};
use weir_wire::fec::{Oti, PayloadId, RAPTORQ};

fn key() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

/// A signed session of this start, whose table expires then.
fn signed(epoch: u64, expires: u32) -> CarouselOptions {
    let channel_rates = vec![Rate::from_mbps(1); 2];
    CarouselOptions {
        channel_rates,
        symbol_size: 512,
        block_symbols: 100,
        key: Some(key()),
        epoch,
        expires,
        ..Default::default()
    }
}

fn expecting() -> StoreOptions {
    StoreOptions { key: Some(key().public()), ..Default::default() }
}

/// The packets of a session's table.
fn tables(options: &CarouselOptions, name: &str) -> Vec<(Content, Vec<u8>)> {
    let mut sender = Sender::new(&[(name, &content(100_000, options.epoch))], options);
    let packets = std::iter::repeat_with(|| sender.next()).take(2_000);
    let packets = packets.map(|(_, content, symbol)| (content, symbol));
    packets.filter(|(content, _)| content.toi == 0).collect()
}

fn give(store: &mut Store, packets: &[(Content, Vec<u8>)], origin: Origin) {
    for (content, symbol) in packets {
        store.add(content, symbol, origin).expect("the disk works");
    }
}

#[test]
fn an_old_table_never_displaces_a_newer_one_and_a_newer_one_the_old_at_once() {
    let out = tempfile::tempdir().expect("temporary folder");
    let [old, new] = [(5, "old"), (6, "new")].map(|(epoch, name)| tables(&signed(epoch, u32::MAX), name));
    let mut store = open(out.path(), &expecting());
    give(&mut store, &old, ORIGIN);
    assert_eq!((store.progress().files_total, store.progress().files_refused), (1, 0));
    give(&mut store, &new, ORIGIN);
    assert!(events(&mut store).iter().any(|event| matches!(event, Event::NewSet)));
    for origin in [ORIGIN, ORIGIN, Origin(2)] {
        let before = store.progress().old_manifests;
        give(&mut store, &old, origin);
        assert!(store.progress().old_manifests > before, "what was believed once is looked at again");
    }
    let told = events(&mut store);
    assert!(matches!(told[..], [Event::OldTable]), "told once: {told:?}");
    // Nor another old one, nor this one in between.
    let older = tables(&signed(4, u32::MAX), "older");
    for packets in [&older, &old, &older] {
        give(&mut store, packets, Origin(3));
    }
    assert!(events(&mut store).is_empty(), "it was told");
    drop(store);
    // Nor in the next run, nor one that is told by the session's description.
    for (folder, least_epoch) in [(out.path(), 0), (tempfile::tempdir().expect("temporary folder").path(), 6)] {
        let mut store = open(folder, &StoreOptions { least_epoch, ..expecting() });
        give(&mut store, &old, ORIGIN);
        assert_eq!((store.progress().files_total, store.progress().old_manifests > 0), (0, true));
        give(&mut store, &new, ORIGIN);
        assert_eq!((store.progress().files_total, store.progress().files_refused), (1, 0));
    }
}

#[test]
fn a_sender_that_starts_again_with_the_same_files_goes_on_with_them() {
    let out = tempfile::tempdir().expect("temporary folder");
    let bytes = content(100_000, 1);
    let mut store = open(out.path(), &expecting());
    let mut sender = Sender::new(&[("a", &bytes)], &signed(5, u32::MAX));
    for _ in 0..100 {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
    }
    let before = store.progress().bytes_useful;
    let written = fs::metadata(sender.folder.path().join("a")).and_then(|file| file.modified()).expect("a file");
    let mut sender = Sender::of(&[("a", &bytes)], &signed(6, u32::MAX), |path| {
        fs::File::open(path).and_then(|file| file.set_modified(written)).expect("it can be dated");
    });
    receive(&mut sender, &mut store, 2, 0.0, 1);
    let told = events(&mut store);
    assert!(before > 30_000 && !told.iter().any(|event| matches!(event, Event::NewSet)), "{told:?}");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_table_counts_until_it_expires_and_a_renewed_one_longer() {
    let day = 86_400;
    // Also where the 32 bits of seconds wrap, in the year 2036.
    for now in [4_000_000_000, (1 << 32) - 100] {
        let options = signed(1, (now as u32).wrapping_add(day));
        let bytes = content(100_000, 1);
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
        let at = |folder: &tempfile::TempDir, time: u64| {
            let mut store = open(folder.path(), &expecting());
            store.set_time(time);
            store
        };
        let mut sender = Sender::new(&[("a", &bytes)], &options);
        let in_time = at(&folders[0], now + u64::from(day));
        let (mut in_time, mut late) = (in_time, at(&folders[1], now + u64::from(day) + 1));
        for _ in 0..100 {
            let (_, content, symbol) = sender.next();
            in_time.add(&content, &symbol, ORIGIN).expect("the disk works");
            late.add(&content, &symbol, ORIGIN).expect("the disk works");
        }
        assert_eq!((in_time.progress().files_total, late.progress().files_total), (1, 0));
        assert!(matches!(events(&mut late)[..], [Event::ExpiredTable { ago_secs: 1 }]));
        sender.carousel.renew((now as u32).wrapping_add(2 * day));
        receive(&mut sender, &mut late, 2, 0.0, 1);
        assert_eq!(late.progress().files_refused, 0);
        assert_same(sender.folder.path(), folders[1].path());
    }
}

#[test]
fn one_packet_of_a_table_sent_again_and_again_takes_nothing_from_files() {
    let out = tempfile::tempdir().expect("temporary folder");
    let memory_limit = 8_000_000;
    let mut store = open(out.path(), &StoreOptions { memory_limit, ..expecting() });
    let oti = Oti::NoCode { transfer_length: 1_000_000, symbol_size: 1400, max_block_len: 1000 };
    let fdt = Some(FdtInstance { version: 2, id: 1, content_encoding: 0 });
    let packet = Content { toi: 0, encoding_id: 0, payload_id: PayloadId::default(), fdt, oti: Some(oti), ask: None };
    for _ in 0..10_000 {
        store.add(&packet, &[7; 1400], Origin(2)).expect("no error for a hostile sender");
    }
    assert!(store.progress().waiting_bytes < 4_000, "{:?}", store.progress());
    let bytes = content(300_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &signed(1, u32::MAX));
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn parts_of_tables_take_a_share_of_their_own_and_nothing_from_files() {
    let out = tempfile::tempdir().expect("temporary folder");
    let memory_limit = 8_000_000;
    let mut store = open(out.path(), &StoreOptions { memory_limit, ..expecting() });
    let oti = Oti::NoCode { transfer_length: 8_000_000, symbol_size: 1400, max_block_len: 6000 };
    for number in 0..10_000 {
        let fdt = Some(FdtInstance { version: 2, id: number / 5_000, content_encoding: 0 });
        let payload_id = PayloadId { block: 0, symbol: number % 5_000 };
        let packet = Content { toi: 0, encoding_id: 0, payload_id, fdt, oti: Some(oti), ask: None };
        store.add(&packet, &[7; 1400], Origin(2)).expect("no error for a hostile sender");
    }
    let waiting = store.progress().waiting_bytes;
    assert!((900_000..=memory_limit / 8).contains(&waiting), "{waiting} bytes");
    let bytes = content(300_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &signed(1, u32::MAX));
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert_same(sender.folder.path(), out.path());
}

/// A stranger who plays the sender's tables again under numbers of his own, `forged` wrong symbols of each block at first, and then
/// one of each block that he has sent already with each symbol of the sender. How many of the sender's symbols it takes, of how many.
fn with_tables_played_again(forged: u32) -> (u64, u64) {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &expecting());
    let bytes = content(500_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &signed(1, u32::MAX));
    while store.progress().files_total == 0 {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
        for id in 1..=20 {
            let fdt = content.fdt.map(|fdt| FdtInstance { id, ..fdt });
            if fdt.is_some() {
                store.add(&Content { fdt, ..content }, &symbol, Origin(2)).expect("the disk works");
            }
        }
    }
    let forgery = |block, number: u32| {
        let payload_id = PayloadId { block, symbol: 1 << 20 | number };
        Content { toi: 1, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None, ask: None }
    };
    let blocks = 10;
    for (block, number) in (0..blocks).flat_map(|block| (0..forged).map(move |number| (block, number))) {
        store.add(&forgery(block, number), &[7; 512], Origin(2)).expect("the disk works");
    }
    let symbols = sender.carousel.stats().symbols_per_cycle;
    let mut arrived = 0;
    while !store.is_complete() {
        let (_, content, symbol) = sender.next();
        arrived += u64::from(content.toi != 0);
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
        for block in 0..blocks {
            store.add(&forgery(block, 0), &[7; 512], Origin(2)).expect("the disk works");
        }
        assert!(arrived < 20 * symbols, "{:?}", store.progress());
    }
    assert!(store.progress().bad_blocks >= 5, "{:?}", store.progress());
    assert_same(sender.folder.path(), out.path());
    (arrived, symbols)
}

#[test]
fn who_plays_a_table_again_is_not_taken_for_the_sender() {
    let (arrived, symbols) = with_tables_played_again(1);
    assert!(arrived <= symbols * 3 / 2, "{arrived} of {symbols}");
}

#[test]
fn a_stranger_who_is_taken_for_the_sender_is_given_up_in_the_end() {
    // More of each block than the sender gets into it, before anything is known to be right.
    let (arrived, symbols) = with_tables_played_again(60);
    assert!(arrived <= symbols * 8, "{arrived} of {symbols}");
}

#[test]
fn a_table_is_renewed_in_the_middle_of_being_sent() {
    let names: Vec<String> = (0..300).map(|i| format!("d/{i:04}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
    let mut sender = Sender::new(&files, &signed(1, 10));
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { sync: false, ..expecting() });
    for round in 0..4 {
        for _ in 0..sender.carousel.fdt_symbols() {
            let (_, content, symbol) = sender.next();
            store.add(&content, &symbol, ORIGIN).expect("the disk works");
        }
        sender.carousel.renew(20 + round);
    }
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert_eq!(store.progress().old_manifests + store.progress().rejected_manifests, 0);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn what_tables_say_again_and_again_is_accounted_once() {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
    let folders: String = (0..5).map(|i| format!(r#"<w:Folder Content-Location="d{i}"/>"#)).collect();
    let unusable: String = (0..5).map(|i| format!(r#"<File TOI="{i}" Content-Location="../{i}"/>"#)).collect();
    let mut say = |id| {
        let xml = format!(
            r#"<FDT-Instance Expires="1" xmlns:w="urn:weir:manifest:1">{unusable}
            <File TOI="9" Content-Location="f" Content-Length="9"/>{folders}</FDT-Instance>"#
        );
        let fdt = Some(FdtInstance { version: 2, id, content_encoding: 0 });
        let oti = Some(one_symbol(&xml));
        let content = Content { toi: 0, encoding_id: 0, payload_id: PayloadId::default(), fdt, oti, ask: None };
        store.add(&content, xml.as_bytes(), ORIGIN).expect("the disk works");
        store.progress().waiting_bytes
    };
    let once = say(1);
    let often = (2..=100).map(&mut say).last().expect("some");
    // Each has a fingerprint.
    assert!(often - once <= 99 * 600, "{once} bytes once, {often} a hundred times");
    // What stood for a file whose cut the packets tell goes when it is there.
    let oti = Some(Oti::NoCode { transfer_length: 9, symbol_size: 9, max_block_len: 1 });
    let packet = Content { toi: 9, encoding_id: 0, payload_id: PayloadId::default(), fdt: None, oti, ask: None };
    store.add(&packet, b"anybody's", ORIGIN).expect("the disk works");
    assert!(store.progress().files_done == 1 && store.progress().waiting_bytes <= often, "{:?}", store.progress());
}

#[test]
fn anybody_s_tables_take_no_more_than_the_budget() {
    let out = tempfile::tempdir().expect("temporary folder");
    let memory_limit = 4_000_000;
    let options = StoreOptions { memory_limit, max_files: 100_000, sync: false, ..Default::default() };
    let mut store = open(out.path(), &options);
    // Parts of tables without end; tables of files of many blocks; tables of files whose cut is not told.
    for id in 0..3_000u32 {
        let (oti, encoding_id, symbol) = match id % 3 {
            0 => {
                let coded = Oti::RaptorQ {
                    transfer_length: 600_000,
                    symbol_size: 1400,
                    blocks: 9,
                    sub_blocks: 1,
                    alignment: 1,
                };
                (coded, RAPTORQ, vec![id as u8; 1400])
            }
            kind => {
                let cut = if kind == 1 {
                    r#"FEC-OTI-FEC-Encoding-ID="0" FEC-OTI-Maximum-Source-Block-Length="1" FEC-OTI-Encoding-Symbol-Length="1""#
                } else {
                    ""
                };
                let files = (0..9).map(|i| {
                    let toi = id * 100 + i + 1;
                    format!(r#"<File TOI="{toi}" Content-Location="f{toi}" Content-Length="9000" {cut}/>"#)
                });
                let xml = format!(r#"<FDT-Instance Expires="1">{}</FDT-Instance>"#, files.collect::<String>());
                (one_symbol(&xml), 0, xml.into_bytes())
            }
        };
        let fdt = Some(FdtInstance { version: 2, id, content_encoding: 0 });
        let content = Content { toi: 0, encoding_id, payload_id: PayloadId::default(), fdt, oti: Some(oti), ask: None };
        store.add(&content, &symbol, Origin((id % 9) as u8)).expect("no error for a hostile sender");
        assert!(store.progress().waiting_bytes <= memory_limit / 2, "{:?}", store.progress());
        while store.poll_event().is_some() {}
    }
    let progress = store.progress();
    assert!(progress.files_total > 0 && progress.files_refused > 0, "{progress:?}");
    assert!(fs::read_dir(out.path()).expect("a folder").count() < 2_000);
}

fn one_symbol(xml: &str) -> Oti {
    Oti::NoCode {
        transfer_length: xml.len() as u64,
        symbol_size: u16::try_from(xml.len()).expect("small"),
        max_block_len: 1,
    }
}
