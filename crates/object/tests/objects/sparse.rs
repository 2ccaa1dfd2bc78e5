//! Files with holes arrive with holes.

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

#[test]
fn an_image_that_is_mostly_holes_takes_the_room_of_its_data_also_after_a_kill() {
    let options = CarouselOptions { channel_rates: ladder(3, 2.0), ..Default::default() };
    let mut sender = Sender::of(&[("image", b"")], &options, make_image);
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
