//! Files with holes arrive with holes, and blocks of zeros are not sent.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::common::*;
use weir_object::{CarouselOptions, StoreOptions};

/// An image of 64 MiB with 1 MiB of data in two places.
fn make_image(path: &Path) {
    let data = content(DATA as usize, 1);
    let (first, second) = data.split_at(data.len() / 4);
    let file = File::create(path).expect("file");
    file.set_len(LENGTH).expect("it is ours");
    file.write_all_at(first, 0).expect("it can be written");
    file.write_all_at(second, 40 << 20).expect("it can be written");
    file.sync_all().expect("it can be written");
    assert!(room(path) < 2 * DATA, "this test needs a file system that has holes");
}

fn room(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").blocks() * 512
}

/// A sender of such an image.
fn sender_of_image(skip_zeros: bool) -> Sender {
    let options = CarouselOptions { channel_rates: ladder(3, 2.0), skip_zeros, ..Default::default() };
    Sender::of(&[("image", b"")], &options, make_image)
}

#[test]
fn blocks_of_zeros_are_not_sent_also_after_a_kill() {
    let mut sender = sender_of_image(true);
    let stats = sender.carousel.stats();
    let sent = stats.symbols_per_cycle * 1400;
    // The data lies in four blocks of 2.9 MB at most.
    assert!(stats.skipped_bytes + sent >= LENGTH && sent < 12 * DATA, "{stats:?}");
    let out = tempfile::tempdir().expect("temporary folder");
    let store_options = StoreOptions { sync: false, ..Default::default() };
    let mut store = open(out.path(), &store_options);
    for _ in 0..stats.symbols_per_cycle / 2 {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
    }
    store.flush().expect("the disk works");
    assert!(!store.is_complete() && store.progress().bytes_useful > stats.skipped_bytes, "{:?}", store.progress());
    drop(store);

    let mut store = open(out.path(), &store_options);
    let arrived = receive(&mut sender, &mut store, 2, 0.1, 2);
    assert!(arrived < stats.symbols_per_cycle, "{arrived} symbols after the kill of {}", stats.symbols_per_cycle);
    drop(store);
    assert_same(sender.folder.path(), out.path());
    assert!(room(&out.path().join("image")) < MOST, "zeros take no room");
}

#[test]
fn what_forged_symbols_have_left_where_no_block_is_sent_becomes_zeros() {
    let out = tempfile::tempdir().expect("temporary folder");
    let store_options = StoreOptions { sync: false, ..Default::default() };
    let mut sender = sender_of_image(false);
    let mut store = open(out.path(), &store_options);
    let mut forged = 0;
    for _ in 0..sender.carousel.stats().symbols_per_cycle / 2 {
        let (_, content, mut symbol) = sender.next();
        if content.toi != 0 && content.payload_id.block == 5 && content.payload_id.symbol.is_multiple_of(7) {
            symbol.fill(7);
            forged += 1;
        }
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
    }
    store.flush().expect("the disk works");
    drop(store);
    let partial = fs::read(out.path().join("image.weir-part")).expect("it was begun");
    let wrong = partial.chunks(1400).filter(|symbol| **symbol == [7; 1400]).count();
    assert!(wrong > 100 && wrong == forged, "{wrong} of {forged} forged symbols are there");

    let mut sender = sender_of_image(true);
    let mut store = open(out.path(), &store_options);
    receive(&mut sender, &mut store, 3, 0.0, 1);
    drop(store);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_file_of_zeros_alone_is_there_with_the_table() {
    let zeros = vec![0; 10_000_000];
    let options = CarouselOptions { channel_rates: ladder(3, 2.0), bundle: false, ..Default::default() };
    let mut sender = Sender::new(&[("zeros", &zeros), ("a few", &[0; 100]), ("text", b"text")], &options);
    assert_eq!((sender.carousel.stats().skipped_bytes, sender.carousel.stats().symbols_per_cycle), (10_000_100, 1));
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 3, 0.0, 1);
    drop(store);
    assert_same(sender.folder.path(), out.path());

    let mut sender = Sender::new(&[("zeros", &zeros)], &options);
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    assert_eq!(receive(&mut sender, &mut store, 3, 0.0, 1), 0);
    drop(store);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn files_with_blocks_of_zeros_anywhere_arrive() {
    let mut random = weir_units::Random::new(3, "zeros");
    for case in 0..20 {
        let length = 1 + random.below(200_000) as usize;
        let mut bytes = content(length, case);
        for _ in 0..=random.below(4) {
            let start = random.below(length as u64) as usize;
            let end = (start + random.below(120_000) as usize).min(length);
            bytes[start..end].fill(0);
        }
        let options = CarouselOptions {
            channel_rates: ladder(3, 2.0),
            symbol_size: 64,
            block_symbols: 100,
            max_blocks: 8,
            memory_limit: if random.chance(0.5) { 1 << 18 } else { 1 << 29 },
            ..Default::default()
        };
        let mut sender = Sender::new(&[("file", &bytes)], &options);
        let out = tempfile::tempdir().expect("temporary folder");
        let mut store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
        receive(&mut sender, &mut store, 1 + (case % 3) as u16, 0.1, case);
        drop(store);
        assert_same(sender.folder.path(), out.path());
    }
}

#[test]
fn an_image_that_is_mostly_holes_takes_the_room_of_its_data_also_after_a_kill() {
    let mut sender = sender_of_image(false);
    let out = tempfile::tempdir().expect("temporary folder");
    let store_options = StoreOptions { sync: false, ..Default::default() };
    let mut store = open(out.path(), &store_options);
    let mut random = weir_units::Random::new(1, "loss");
    let packets = sender.carousel.stats().symbols_per_cycle / 2;
    for _ in 0..packets {
        let (_, content, symbol) = sender.next();
        if !random.chance(0.03) {
            store.add(&content, &symbol, ORIGIN).expect("the disk works");
        }
    }
    store.flush().expect("the disk works");
    let before = store.progress().bytes_useful;
    drop(store);
    assert!(room(&out.path().join("image.weir-part")) < MOST, "no room is claimed in advance");

    let mut store = open(out.path(), &store_options);
    let arrived = receive(&mut sender, &mut store, 3, 0.03, 2);
    assert!(before > LENGTH / 4 && arrived * 1400 < LENGTH, "{before} bytes before the kill, {arrived} symbols after");
    assert!(store.progress().decoded_blocks > 0, "losses had to be repaired");
    drop(store);
    assert_same(sender.folder.path(), out.path());
    let taken = room(&out.path().join("image"));
    eprintln!("{taken} bytes of room for {DATA} bytes of data in {LENGTH}");
    assert!(taken < MOST, "{taken} bytes of room for {DATA} bytes of data");
}

#[test]
fn a_file_without_holes_has_its_room_claimed_in_advance() {
    let options = CarouselOptions { channel_rates: ladder(3, 2.0), ..Default::default() };
    let zeros = vec![0; 4_000_000];
    let mut sender = Sender::of(&[("zeros", &zeros)], &options, |path| {
        File::open(path).and_then(|file| file.sync_all()).expect("it can be written");
    });
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 3, 0.0, 1);
    assert!(room(&out.path().join("zeros")) >= zeros.len() as u64, "zeros that are data stay data");
}

const LENGTH: u64 = 64 << 20;
const DATA: u64 = 1 << 20;
/// Pages of blocks with data and losses may hold zeros in part.
const MOST: u64 = 2 * DATA;
