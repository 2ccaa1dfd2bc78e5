//! A receiver that starts again, and files of bundles that it has already: it looks for them while nothing else is to be done.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::bundles::{assert_were_there, files, remove_large, sender, small_bundles};
use crate::common::*;
use weir_object::{Store, StoreOptions};

/// Of a receiver that leaves files of bundles until there is time for them.
fn unhurried() -> StoreOptions {
    StoreOptions { sync: false, decoding_threads: 1, ..StoreOptions::default() }
}

/// A store of this folder that has got the table, and nothing else.
fn begin_again(sender: &mut Sender, out: &Path) -> Store {
    let mut store = open(out, &unhurried());
    while !store.progress().manifest_complete {
        let (_, content, symbol) = sender.next();
        if content.toi == 0 {
            store.add(&content, &symbol, ORIGIN).expect("the disk works");
        }
    }
    store
}

/// Gives the store symbols, and time for files, until it has everything.
fn give_all(sender: &mut Sender, store: &mut Store) {
    while !store.is_complete() {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).and_then(|()| store.flush()).expect("the disk works");
        while store.unpack_some().expect("the disk works") {}
    }
}

/// How many blocks are lacking.
fn lacking(store: &mut Store) -> usize {
    store.lacking(usize::MAX).expect("the disk works").expect("the table is there").len()
}

/// A folder in which a receiver was killed that had all files of a sender.
fn killed_when_done(sender: &mut Sender) -> tempfile::TempDir {
    let out = tempfile::tempdir().expect("temporary folder");
    give_all(sender, &mut open(out.path(), &unhurried()));
    out
}

#[test]
fn before_it_has_looked_for_files_a_receiver_asks_for_nothing_of_bundles_that_it_had() {
    let mut sender = sender(&files(1_000, 15), &small_bundles());
    let out = killed_when_done(&mut sender);
    let mut store = begin_again(&mut sender, out.path());
    assert_eq!((store.progress().files_done, lacking(&mut store)), (0, 0), "it has not looked");
    while store.unpack_some().expect("the disk works") {}
    assert!(store.is_complete(), "all that it needs is the table");
    assert_were_there(&sender, store, out.path(), 1_000);
}

#[test]
fn a_file_that_was_removed_is_lacking_once_it_was_looked_for() {
    let small = files(1_000, 16);
    let mut sender = sender(&small, &small_bundles());
    let out = killed_when_done(&mut sender);
    remove_large(&small, out.path());
    let mut store = begin_again(&mut sender, out.path());
    while store.unpack_some().expect("the disk works") {}
    assert_eq!(store.progress().files_done, 999);
    assert!((1..=2).contains(&lacking(&mut store)), "the blocks that it is in");
    give_all(&mut sender, &mut store);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn what_a_partial_bundle_lacks_is_known_before_it_was_looked_for_files() {
    let mut sender = sender(&files(1_000, 17), &small_bundles());
    let out = half_received(&mut sender);
    let mut store = begin_again(&mut sender, out.path());
    let early = lacking(&mut store);
    assert!(early > 0 && store.progress().files_done == 0, "{early} blocks");
}

#[test]
fn a_block_of_an_earlier_run_that_was_spoiled_comes_again_before_files_are_taken_from_it() {
    for decoding_threads in [0, 1] {
        let mut sender = sender(&files(1_000, 18), &small_bundles());
        let out = half_received(&mut sender);
        spoil(&partial(out.path()));
        let mut store = open(out.path(), &StoreOptions { decoding_threads, ..unhurried() });
        give_all(&mut sender, &mut store);
        let progress = store.progress();
        assert_eq!((progress.bad_blocks, progress.files_done), (1, 1_000), "{decoding_threads} threads");
        store.close().expect("the disk works");
        assert_same(sender.folder.path(), out.path());
    }
}

/// A folder in which a receiver was killed that had half of the symbols and had written no file of a bundle.
fn half_received(sender: &mut Sender) -> tempfile::TempDir {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &unhurried());
    let half = sender.carousel.stats().symbols_per_cycle / 2;
    while store.progress().useful_symbols < half {
        let (_, content, symbol) = sender.next();
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
    }
    store.flush().expect("the disk works");
    assert_eq!(store.progress().files_done, 0);
    out
}

/// The partial file of the bundle of which most came.
fn partial(folder: &Path) -> PathBuf {
    let paths = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path());
    let partials = paths.filter(|path| path.extension().is_some_and(|extension| extension == "weir-part"));
    partials.max_by_key(|path| filled(path)).expect("some of it came")
}

/// Bytes of a file that are not zero.
fn filled(path: &Path) -> usize {
    std::fs::read(path).expect("readable").iter().filter(|byte| **byte != 0).count()
}

/// Changes a byte of what came: the last one up to the middle that is not zero, as what has not come is.
fn spoil(path: &Path) {
    let bytes = std::fs::read(path).expect("ours");
    let at = bytes[..bytes.len() / 2].iter().rposition(|byte| *byte != 0).expect("some of it came");
    let file = std::fs::File::options().write(true).open(path).expect("ours");
    file.write_all_at(&[!bytes[at]], at as u64).expect("ours");
}
