//! Hostile senders, strangers, and targets that are there already. What goes wrong on the receiver itself: `mishaps.rs`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::*;
use weir_object::store::RefuseReason;
use weir_object::{Event, Origin, StoreOptions};
use weir_wire::alc::{Content, FdtInstance};
use weir_wire::fec::{Oti, PayloadId};

/// The packet of an unsigned table.
fn table(id: u32, xml: &str) -> (Content, Vec<u8>) {
    let symbol_size = u16::try_from(xml.len()).expect("small");
    let content = Content {
        toi: 0,
        encoding_id: 0,
        payload_id: PayloadId::default(),
        fdt: Some(FdtInstance { version: 2, id, content_encoding: 0 }),
        oti: Some(Oti::NoCode { transfer_length: xml.len() as u64, symbol_size, max_block_len: 1 }),
        ask: None,
    };
    (content, xml.as_bytes().to_vec())
}

/// A table of one file of `length` bytes in Compact No-Code symbols of 4 bytes.
fn one_file(id: u32, toi: u32, name: &str, length: u64) -> (Content, Vec<u8>) {
    table(
        id,
        &format!(
            r#"<FDT-Instance Expires="4000000000"><File TOI="{toi}" Content-Location="{name}" Content-Length="{length}"
            FEC-OTI-FEC-Encoding-ID="0" FEC-OTI-Maximum-Source-Block-Length="64" FEC-OTI-Encoding-Symbol-Length="4"
            /></FDT-Instance>"#
        ),
    )
}

fn symbol(toi: u128, number: u32) -> Content {
    Content { toi, encoding_id: 0, payload_id: PayloadId { block: 0, symbol: number }, fdt: None, oti: None, ask: None }
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let temporary = tempfile::tempdir().expect("temporary folder");
    let out = temporary.path().join("out");
    let mut store = open(&out, &StoreOptions::default());
    fs::create_dir(temporary.path().join("outside")).expect("folder");
    symlink("../outside", out.join("link")).expect("link");
    symlink("../outside/b", out.join("b.weir-part")).expect("link");
    symlink("../outside/c", out.join("c")).expect("link");
    let names = ["../a", "/tmp/a", "file:///../a", "x/%2e%2e/%2e%2e/a", "link/a", "b", "c", "x%00y", "..%2fa"];
    for (i, name) in names.iter().enumerate() {
        let toi = i as u32 + 1;
        let (content, xml) = one_file(toi, toi, name, 4);
        store.add(&content, &xml, ORIGIN).expect("no error for a hostile sender");
        store.add(&symbol(u128::from(toi), 0), b"evil", ORIGIN).expect("no error for a hostile sender");
    }
    let refused = events(&mut store).iter().filter(|event| matches!(event, Event::Refused { .. })).count();
    assert_eq!(refused, names.len());
    assert_eq!(fs::read_dir(temporary.path().join("outside")).expect("folder").count(), 0);
    assert_eq!(fs::read_dir(temporary.path()).expect("folder").count(), 2);
}

/// Each of another kind that cannot be used, and the file in between.
#[test]
fn a_set_with_entries_that_cannot_be_used_is_complete_without_them() {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    let set = "00112233445566778899aabbccddeeff";
    let (content, xml) = table(
        1,
        &format!(
            r#"<FDT-Instance xmlns:weir="urn:weir:manifest:1" Expires="4000000000" weir:tsi="1" weir:epoch="1" weir:set="{set}"
            weir:objects="2" weir:folders="1" weir:links="2" weir:bytes="8">
            <File TOI="1" Content-Location="a" Content-Length="4" FEC-OTI-FEC-Encoding-ID="0"
            FEC-OTI-Maximum-Source-Block-Length="64" FEC-OTI-Encoding-Symbol-Length="4"/>
            <File TOI="2" Content-Location="/etc/b" Content-Length="4"/><weir:Folder Content-Location="../up" weir:mode="700"/>
            <weir:Link Content-Location="t/out" weir:target="/etc/passwd"/><weir:Link Content-Location="../link" weir:target="a"/>
            </FDT-Instance>"#
        ),
    );
    store.add(&content, &xml, ORIGIN).expect("no error for a hostile sender");
    assert!(store.progress().manifest_complete && !store.is_complete(), "{:?}", store.progress());
    store.add(&symbol(1, 0), b"good", ORIGIN).expect("room");
    assert!(store.is_complete(), "{:?}", store.progress());
    let told = events(&mut store);
    assert_eq!(told.iter().filter(|event| matches!(event, Event::Refused { .. })).count(), 4, "{told:?}");
    assert_eq!(store.progress().rejected_manifests, 0);
}

#[test]
fn lying_headers_are_counted_and_change_nothing() {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    let (content, xml) = one_file(1, 1, "a", 10);
    store.add(&content, &xml, ORIGIN).expect("room");
    let raptorq = Content { encoding_id: 6, ..symbol(1, 0) };
    let other_block = Content { payload_id: PayloadId { block: 1, symbol: 0 }, ..symbol(1, 0) };
    for (content, symbol) in [
        (symbol(1, 3), &b"abcd"[..]),
        (symbol(1, 0), b"abc"),
        (symbol(1, 0), b"abcde"),
        (symbol(1, 2), b""),
        (raptorq, b"abcd"),
        (other_block, b"abcd"),
    ] {
        store.add(&content, symbol, ORIGIN).expect("no error for a hostile sender");
    }
    assert_eq!(store.progress().rejected_packets, 6);
    for number in [2, 0, 1] {
        let part: &[u8] = if number == 2 { b"ij" } else { &b"abcdefgh"[number as usize * 4..][..4] };
        store.add(&symbol(1, number), part, ORIGIN).expect("room");
    }
    assert_eq!(fs::read(out.path().join("a")).expect("received"), b"abcdefghij");
}

#[test]
fn a_table_that_gives_an_object_to_another_file_replaces_the_first() {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    for (id, name, length) in [(1, "a", 8), (2, "b", 8), (3, "b", 4)] {
        let (content, xml) = one_file(id, 1, name, length);
        store.add(&content, &xml, ORIGIN).expect("room");
        if id < 3 {
            store.add(&symbol(1, 1), b"efgh", ORIGIN).expect("room");
        }
    }
    store.add(&symbol(1, 0), b"abcd", ORIGIN).expect("room");
    assert!(store.is_complete());
    assert_eq!(fs::read(out.path().join("b")).expect("received"), b"abcd");
    let replaced = |event: &Event| matches!(event, Event::Refused { reason: RefuseReason::Replaced, .. });
    assert_eq!(events(&mut store).iter().filter(|event| replaced(event)).count(), 2);
}

#[test]
fn symbols_before_the_table_are_kept_within_bounds() {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { early_bytes: 1000, ..Default::default() });
    for number in 0..100 {
        store.add(&symbol(1, number), b"abcd", ORIGIN).expect("room");
    }
    assert!(store.progress().early_symbols_dropped > 80);
    let (content, xml) = one_file(1, 1, "a", 8);
    store.add(&content, &xml, ORIGIN).expect("room");
    assert_eq!(fs::read(out.path().join("a")).expect("the first two were kept"), b"abcdabcd");
}

#[test]
fn a_target_of_other_content_is_kept_unless_overwriting_is_allowed() {
    let out = tempfile::tempdir().expect("temporary folder");
    fs::write(out.path().join("a"), b"mine").expect("file");
    let mut sender = Sender::new(&[("a", b"theirs")], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 2, 0.0, 1);
    let told = events(&mut store);
    assert!(matches!(&told[..], [Event::Refused { reason: RefuseReason::TargetExists, .. }]), "{told:?}");
    assert_eq!(fs::read(out.path().join("a")).expect("kept"), b"mine");
    let mut store = open(out.path(), &StoreOptions { overwrite: true, ..Default::default() });
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert_eq!(fs::read(out.path().join("a")).expect("replaced"), b"theirs");
}

#[test]
fn a_target_of_the_same_content_is_done_at_once() {
    let out = tempfile::tempdir().expect("temporary folder");
    let bytes = content(300_000, 1);
    fs::write(out.path().join("a"), &bytes).expect("file");
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 2, 0.0, 1);
    assert_eq!(store.progress().useful_symbols, 0);
    assert!(matches!(events(&mut store)[..], [Event::Done { already_there: true, .. }]));
}

#[test]
fn a_forged_symbol_costs_its_block_and_nothing_else() {
    // One block, whose digest is the file's; and several.
    for length in [50_000, 500_000] {
        let out = tempfile::tempdir().expect("temporary folder");
        let bytes = content(length, 1);
        let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
        let mut store = open(out.path(), &StoreOptions::default());
        let mut forged = false;
        for _ in 0..60 {
            let (_, content, mut symbol) = sender.next();
            if content.toi == 1 && !forged {
                symbol[0] ^= 1;
                forged = true;
            }
            store.add(&content, &symbol, ORIGIN).expect("room");
        }
        let arrived = receive(&mut sender, &mut store, 2, 0.0, 1);
        let bad = |event: &Event| matches!(event, Event::BadBlock { .. });
        let told = events(&mut store);
        assert_eq!(
            told.iter().filter(|event| bad(event)).count(),
            1,
            "{length} bytes: {told:?} {:?}",
            store.progress()
        );
        let symbols = sender.carousel.stats().symbols_per_cycle;
        assert_eq!(store.progress().discarded_symbols, 0, "the wrong one was found");
        // Three symbols more of the block, while the sender sends of all blocks alike.
        assert!(arrived <= symbols + symbols / 10, "{arrived} of {symbols}");
        assert_same(sender.folder.path(), out.path());
    }
}

#[test]
fn a_block_with_many_symbols_that_are_wrong_in_the_same_way_is_collected_again() {
    let out = tempfile::tempdir().expect("temporary folder");
    let bytes = content(300_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    let mut forged = 0;
    while !store.is_complete() {
        let (_, content, mut symbol) = sender.next();
        if content.toi == 1 && content.payload_id.block == 2 && forged < 20 {
            symbol[7] ^= 1;
            forged += 1;
        }
        store.add(&content, &symbol, ORIGIN).expect("room");
    }
    let progress = store.progress();
    assert!(progress.bad_blocks == 1 && (98..150).contains(&progress.discarded_symbols), "{progress:?}");
    assert!(progress.tried_symbols <= 80 * 130, "{progress:?}");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn forged_symbols_under_the_sender_s_address_cost_little_more_than_their_number() {
    // None, one in twenty and one in five for ever.
    let [plain, few, many] = [0.0, 0.05, 0.2].map(|share| {
        let out = tempfile::tempdir().expect("temporary folder");
        let mut sender = Sender::new(&[("a", &content(1_000_000, 1))], &two_channels());
        let mut store = open(out.path(), &StoreOptions::default());
        let mut random = weir_units::Random::new(1, "forger");
        let (mut arrived, mut forged) = (0u32, 0u32);
        while !store.is_complete() {
            let (_, content, symbol) = sender.next();
            arrived += u32::from(content.toi != 0);
            assert!(arrived < 10_000, "{:?}", store.progress());
            if content.toi != 0 && random.chance(share) {
                forged += 1;
                let bytes: Vec<u8> = symbol.iter().map(|_| random.below(256) as u8).collect();
                let payload_id = PayloadId { symbol: (1 << 20) + forged, ..content.payload_id };
                store.add(&Content { payload_id, ..content }, &bytes, ORIGIN).expect("room");
            }
            store.add(&content, &symbol, ORIGIN).expect("room");
        }
        assert_same(sender.folder.path(), out.path());
        let progress = store.progress();
        eprintln!("{share}: {arrived} packets, {forged} forged, {progress:?}");
        assert_eq!((progress.discarded_symbols, progress.bad_blocks > 0), (0, forged > 0), "{progress:?}");
        f64::from(arrived)
    });
    assert!(few <= 1.15 * plain && many <= 1.4 * plain, "{few} and {many} of {plain}");
}

#[test]
fn what_a_stranger_forges_costs_no_more_than_it_displaced() {
    let out = tempfile::tempdir().expect("temporary folder");
    let bytes = content(500_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    let mut random = weir_units::Random::new(1, "forger");
    let (mut arrived, mut forged) = (0, 0u32);
    while !store.is_complete() {
        let (_, content, symbol) = sender.next();
        arrived += u64::from(content.toi != 0);
        // Now in the first cycle, among the source symbols, now after it.
        if content.toi == 1 && random.chance(0.02) {
            let number = if random.chance(0.5) { random.below(50) as u32 } else { 1 << 20 | forged };
            let payload_id = PayloadId { symbol: number, ..content.payload_id };
            store.add(&Content { payload_id, ..content }, &[7; 512], Origin(2)).expect("room");
            forged += 1;
        }
        store.add(&content, &symbol, ORIGIN).expect("room");
    }
    let (symbols, progress) = (sender.carousel.stats().symbols_per_cycle, store.progress());
    assert!(progress.bad_blocks >= 5, "every block was struck: {progress:?}");
    assert!(progress.discarded_symbols <= u64::from(forged), "{progress:?}");
    assert!(arrived <= symbols + u64::from(forged) + symbols / 20, "{arrived} of {symbols}, {forged} forged");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_flood_of_a_stranger_does_not_keep_a_file_from_arriving() {
    let out = tempfile::tempdir().expect("temporary folder");
    let bytes = content(300_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    let (mut arrived, mut forged) = (0, 0u32);
    while !store.is_complete() {
        let (_, content, symbol) = sender.next();
        arrived += u64::from(content.toi != 0);
        for _ in 0..20 {
            let payload_id = PayloadId { block: forged % 6, symbol: 1 << 20 | forged };
            let forgery = Content { toi: 1, encoding_id: 6, payload_id, fdt: None, oti: None, ask: None };
            store.add(&forgery, &[7; 512], Origin(2)).expect("room");
            forged += 1;
        }
        store.add(&content, &symbol, ORIGIN).expect("room");
        assert!(arrived < 2_000, "{:?}", store.progress());
    }
    let progress = store.progress();
    assert!(progress.bad_blocks >= 6 && progress.refused_symbols > 1_000, "{progress:?}");
    let symbols = sender.carousel.stats().symbols_per_cycle;
    assert!(arrived <= symbols * 3 / 2, "{arrived} of {symbols}");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_sender_whose_address_changes_is_heard_again() {
    let out = tempfile::tempdir().expect("temporary folder");
    let bytes = content(300_000, 1);
    let mut sender = Sender::new(&[("a", &bytes)], &two_channels());
    let mut store = open(out.path(), &StoreOptions::default());
    let mut arrived = 0;
    let forgery = Content { toi: 1, encoding_id: 6, payload_id: PayloadId::default(), fdt: None, oti: None, ask: None };
    while !store.is_complete() {
        let (_, content, symbol) = sender.next();
        arrived += u64::from(content.toi != 0);
        store.add(&content, &symbol, if arrived < 400 { ORIGIN } else { Origin(3) }).expect("room");
        if arrived < 400 {
            let payload_id = PayloadId { block: arrived as u32 % 6, symbol: 1 << 20 | arrived as u32 };
            store.add(&Content { payload_id, ..forgery }, &[7; 512], Origin(2)).expect("room");
        }
        assert!(arrived < 10_000, "{:?}", store.progress());
    }
    assert!(store.progress().bad_blocks > 0 && store.progress().refused_symbols > 0);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_block_that_needs_more_than_the_memory_is_refused_with_the_reason() {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { memory_limit: 1_000_000, ..Default::default() });
    let xml = r#"<FDT-Instance Expires="4000000000"><File TOI="1" Content-Location="a" Content-Length="50000000"
        FEC-OTI-FEC-Encoding-ID="6" FEC-OTI-Encoding-Symbol-Length="1400" FEC-OTI-Scheme-Specific-Info="AQABCA=="
        /></FDT-Instance>"#;
    let (content, xml) = table(1, xml);
    store.add(&content, &xml, ORIGIN).expect("no error for a hostile sender");
    assert!(matches!(events(&mut store)[..], [Event::Refused { reason: RefuseReason::TooLittleMemory { .. }, .. }]));
}
