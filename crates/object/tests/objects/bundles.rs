//! Small files travel in bundles and arrive one by one.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::common::*;
use weir_object::{CarouselOptions, Event, SecretKey, SourceSet, Store, StoreOptions};
use weir_units::Random;

fn options() -> CarouselOptions {
    CarouselOptions { channel_rates: ladder(4, 1.5), ..Default::default() }
}

/// So many files in a few folders, of up to 3 kB, some of them empty.
pub(crate) fn files(count: usize, seed: u64) -> Vec<(String, Vec<u8>)> {
    let mut random = Random::new(seed, "sizes");
    let file = |i| (format!("tree/{}/f{i:05}", i % 7), content(random.below(8) as usize * 400, i as u64 + seed));
    (0..count).map(file).collect()
}

pub(crate) fn sender(files: &[(String, Vec<u8>)], options: &CarouselOptions) -> Sender {
    let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    Sender::new(&files, options)
}

fn done(events: &[Event]) -> Vec<(String, bool)> {
    let done = events.iter().filter_map(|event| match event {
        Event::Done { name, already_there, .. } => Some((name.to_string(), *already_there)),
        _ => None,
    });
    done.collect()
}

/// The files below a folder.
fn count(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path());
    entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
}

#[test]
fn many_files_are_few_objects_and_a_table_of_a_few_packets() {
    let small = files(2_000, 1);
    let sender = sender(&small, &options());
    assert_eq!(sender.carousel.manifests()[0].files.len(), 1);
    assert!(sender.carousel.fdt_symbols() <= 2, "{}", sender.carousel.fdt_symbols());
    let few = self::sender(&small[..31], &options());
    assert_eq!(few.carousel.manifests()[0].files.len(), 31, "a few files need none");
    let plain = self::sender(&small, &CarouselOptions { bundle: false, ..options() });
    assert_eq!(plain.carousel.manifests().iter().map(|table| table.files.len()).sum::<usize>(), 2_000);
}

#[test]
fn files_of_a_bundle_arrive_next_to_a_large_one_and_count_one_by_one() {
    let mut all = files(500, 2);
    all.push(("tree/large".to_owned(), content(3_500_000, 9)));
    let mut sender = sender(&all, &options());
    assert_eq!(sender.carousel.manifests()[0].files.len(), 2);
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 3, 0.05, 1);
    let progress = store.progress();
    assert_eq!((progress.files_total, progress.files_done, progress.files_refused), (501, 501, 0));
    let bytes: u64 = all.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    assert_eq!((progress.bytes_needed, progress.bytes_useful), (bytes, bytes));
    let events = events(&mut store);
    assert_eq!(done(&events).len(), 501, "each is told once");
    assert!(done(&events).iter().all(|(_, already_there)| !already_there));
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn permissions_times_links_and_folders_travel_in_bundles() {
    let tree = tempfile::tempdir().expect("temporary folder");
    let root = tree.path().join("tree");
    std::fs::create_dir_all(root.join("empty")).expect("folder");
    std::fs::create_dir_all(root.join("shut")).expect("folder");
    for i in 0..40u32 {
        let path = root.join(format!("shut/{i}"));
        std::fs::write(&path, [i as u8; 100]).expect("file");
        let mode = if i % 2 == 0 { 0o600 } else { 0o755 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("ours");
    }
    std::fs::set_permissions(root.join("shut"), std::fs::Permissions::from_mode(0o700)).expect("ours");
    std::os::unix::fs::symlink("shut/3", root.join("link")).expect("link");
    let set = SourceSet::collect(std::slice::from_ref(&root), false).expect("readable");
    let mut carousel = weir_object::Carousel::new(set, &options()).expect("valid options");
    assert!(carousel.manifests()[0].links.is_empty() && carousel.manifests()[0].folders.is_empty());
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    while !store.is_complete() {
        let (content, symbol) = carousel.next(0).expect("a packet");
        store.add(&content, symbol, ORIGIN).expect("the disk works");
    }
    store.close().expect("the disk works");
    let there = out.path().join("tree");
    assert_same(&root.join("shut"), &there.join("shut"));
    assert_eq!(std::fs::read_link(there.join("link")).expect("a link"), Path::new("shut/3"));
    assert!(there.join("empty").is_dir());
    let mode = |path: &str| std::fs::metadata(there.join(path)).expect("there").mode() & 0o777;
    assert_eq!(["shut", "shut/2", "shut/3", "empty"].map(mode), [0o700, 0o600, 0o755, 0o755]);
    let modified = |root: &Path| std::fs::metadata(root.join("shut/3")).expect("there").modified().expect("a time");
    assert_eq!(modified(&root), modified(&there));
}

#[test]
fn a_receiver_that_is_killed_again_and_again_loses_nothing_and_fetches_hardly_anything_twice() {
    let small = files(3_000, 3);
    let options =
        CarouselOptions { block_symbols: 40, fdt_interval: std::time::Duration::from_millis(50), ..options() };
    let mut sender = sender(&small, &options);
    let symbols = sender.carousel.stats().symbols_per_cycle;
    let out = tempfile::tempdir().expect("temporary folder");
    let (mut random, mut arrived, mut kills, mut in_the_middle) = (Random::new(5, "kills"), 0, 0, 0);
    let (mut store, mut useful, mut has_table) =
        (open(out.path(), &StoreOptions { sync: false, ..StoreOptions::default() }), 0, false);
    while !store.is_complete() {
        let (_, content, symbol) = sender.next();
        // So that blocks are complete one after the other.
        if random.chance(0.1) {
            continue;
        }
        arrived += u64::from(content.toi != 0);
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
        if arrived % 20 == 0 {
            store.flush().and_then(|()| store.commit()).expect("the disk works");
            while store.unpack_some().expect("the disk works") {}
            has_table = store.progress().manifest_complete;
        }
        let progress = store.progress();
        let is_unpacking = (1..3_000).contains(&progress.files_done);
        // What comes before the table is in memory alone.
        if kills < if is_unpacking { 20 } else { 10 }
            && arrived % 20 == 10
            && has_table
            && random.chance(if is_unpacking { 1.0 } else { 0.1 })
        {
            (kills, has_table) = (kills + 1, false);
            in_the_middle += u32::from(is_unpacking);
            useful += progress.useful_symbols;
            store = open(out.path(), &StoreOptions { sync: false, ..StoreOptions::default() });
        }
        assert!(arrived < 2 * symbols, "{:?}", store.progress());
    }
    assert!(kills >= 10 && in_the_middle >= 1, "killed {kills} times, {in_the_middle} of them while it unpacked");
    // A kill costs what came since the last flush.
    useful += store.progress().useful_symbols;
    assert!(useful >= symbols && useful < symbols + 20 * 20, "{useful} of {symbols} were of use");
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
    // Begun once more when all is there, it needs no more than the index.
    let mut store = open(out.path(), &StoreOptions { sync: false, ..StoreOptions::default() });
    let again = receive(&mut sender, &mut store, 4, 0.0, 1);
    assert!(again <= symbols + symbols / 20, "{again} of {symbols}");
    let events = events(&mut store);
    assert_eq!(done(&events).len(), 3_000);
    assert!(done(&events).iter().all(|(_, already_there)| *already_there), "nothing is written again");
}

/// So small blocks and bundles that a few thousand files are several of them.
pub(crate) fn small_bundles() -> CarouselOptions {
    let fdt_interval = std::time::Duration::from_millis(50);
    CarouselOptions { block_symbols: 10, max_blocks: 8, fdt_interval, ..options() }
}

/// The working files in a folder, by name.
fn working(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").file_name());
    let names = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.contains(".weir-part") || name.contains(".weir-journal"));
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

#[test]
fn a_receiver_that_is_killed_when_all_files_are_there_learns_it_from_its_folder() {
    let small = files(1_000, 6);
    let mut sender = sender(&small, &small_bundles());
    let bundles = sender.carousel.manifests()[0].files.len();
    assert!(bundles > 5, "{bundles}");
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    let whole = receive(&mut sender, &mut store, 4, 0.01, 1);
    drop(store);
    let kept: u64 = working(out.path()).iter().map(|name| out.path().join(name).metadata().expect("there").len()).sum();
    assert!(kept < 1_400 * whole / 2, "{kept} bytes are left next to the files");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 4, 0.0, 1);
    assert_eq!(store.progress().useful_symbols, 0, "all that it needs is the table");
    assert_were_there(&sender, store, out.path(), 1_000);
}

/// Checks that this many `files` were in their places already, and that the folder is what `sender` has.
pub(crate) fn assert_were_there(sender: &Sender, mut store: Store, out: &Path, files: usize) {
    let events = events(&mut store);
    assert_eq!(done(&events).iter().filter(|(_, already_there)| *already_there).count(), files);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out);
}

#[test]
fn a_file_that_was_removed_since_it_was_unpacked_comes_again() {
    let small = files(1_000, 7);
    let mut sender = sender(&small, &small_bundles());
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    let whole = receive(&mut sender, &mut store, 4, 0.0, 1);
    drop(store);
    remove_large(&small, out.path());
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 4, 0.0, 1);
    let useful = store.progress().useful_symbols;
    assert!(useful >= 2 && useful * 10 < whole, "{useful} of {whole} for one file");
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

/// Removes a file of more than one symbol that was received.
pub(crate) fn remove_large(small: &[(String, Vec<u8>)], out: &Path) {
    let removed = small.iter().rfind(|(_, bytes)| bytes.len() > 2_000).expect("a large one");
    std::fs::remove_file(out.join(&removed.0)).expect("it is there");
}

#[test]
fn nothing_is_left_of_bundles_that_the_sender_no_longer_offers() {
    let (mut small, options) = (files(1_000, 8), small_bundles());
    let mut before = sender(&small, &options);
    let out = tempfile::tempdir().expect("temporary folder");
    // Another session in the same folder, whose receiver does not run.
    let mut store = open(out.path(), &StoreOptions { tsi: 2, ..StoreOptions::default() });
    let of_other = CarouselOptions { tsi: 2, ..options.clone() };
    let mut other = sender(&files(100, 9), &of_other);
    while store.progress().useful_symbols < 20 {
        let (_, content, symbol) = other.next();
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
    }
    store.flush().expect("the disk works");
    drop(store);
    let of_other = working(out.path());
    assert!(!of_other.is_empty());
    let mut store = open(out.path(), &StoreOptions::default());
    while store.progress().files_done < 300 {
        let (_, content, symbol) = before.next();
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
        store.flush().and_then(|()| store.commit()).expect("the disk works");
    }
    drop(store);
    assert!(working(out.path()).len() > of_other.len() + 4, "whole bundles and parts of some");
    small.truncate(900);
    small.iter_mut().step_by(50).for_each(|(_, bytes)| bytes.push(1));
    let mut after = sender(&small, &options);
    let mut store = open(out.path(), &StoreOptions { overwrite: true, ..StoreOptions::default() });
    receive(&mut after, &mut store, 4, 0.0, 1);
    store.close().expect("the disk works");
    assert_eq!(working(out.path()), of_other);
}

#[test]
fn what_is_there_with_other_content_is_left_alone_and_the_rest_arrives() {
    let small = files(100, 4);
    let mut sender = sender(&small, &options());
    let out = tempfile::tempdir().expect("temporary folder");
    let (theirs, name) = (out.path().join(&small[8].0), &small[8].0);
    std::fs::create_dir_all(theirs.parent().expect("a folder")).expect("folder");
    std::fs::write(&theirs, b"mine").expect("file");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 4, 0.0, 1);
    assert_eq!(std::fs::read(&theirs).expect("there"), b"mine");
    let progress = store.progress();
    assert_eq!((progress.files_total, progress.files_done, progress.files_refused), (100, 99, 1));
    let events = events(&mut store);
    assert!(events.iter().any(|event| matches!(event, Event::Refused { name: refused, .. } if refused == name)));
    let mut store = open(out.path(), &StoreOptions { overwrite: true, ..StoreOptions::default() });
    receive(&mut sender, &mut store, 4, 0.0, 1);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn forged_symbols_spoil_no_file_of_a_bundle() {
    let small = files(1_000, 5);
    let key = SecretKey::from_seed([1; 32]);
    let options = CarouselOptions { key: Some(key.clone()), block_symbols: 100, ..options() };
    let mut sender = sender(&small, &options);
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { key: Some(key.public()), ..StoreOptions::default() });
    let (mut arrived, symbols) = (0, sender.carousel.stats().symbols_per_cycle);
    while !store.is_complete() {
        let (_, content, mut symbol) = sender.next();
        arrived += u64::from(content.toi != 0);
        symbol[0] ^= u8::from(content.toi != 0 && arrived % 300 == 7);
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
        assert!(arrived < 5 * symbols, "{:?}", store.progress());
    }
    assert!(store.progress().bad_blocks > 0);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
    assert_eq!(count(out.path()), 1_001, "the files, and the epochs");
}

#[test]
fn files_are_written_while_their_blocks_still_come() {
    let small = files(2_000, 10);
    let mut sender = sender(&small, &options());
    let symbols = sender.carousel.stats().symbols_per_cycle;
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { sync: false, ..StoreOptions::default() });
    let (mut arrived, mut random, mut half_way) = (0, Random::new(6, "loss"), None);
    while !store.is_complete() {
        let (_, content, symbol) = sender.next();
        // Of what is sent before the first cycle, nothing is lost.
        if arrived > symbols / 5 && random.chance(0.02) {
            continue;
        }
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
        arrived += u64::from(content.toi != 0);
        if arrived % 20 == 0 {
            store.flush().and_then(|()| store.commit()).expect("the disk works");
            while store.unpack_some().expect("the disk works") {}
        }
        if arrived == symbols / 2 {
            half_way = Some(store.progress());
        }
    }
    let half_way = half_way.expect("it takes a whole cycle");
    assert!(half_way.decoded_blocks == 0 && half_way.files_done > 600, "{half_way:?}");
    assert!(arrived * 100 < symbols * 107, "{arrived} of {symbols}");
    assert_eq!(done(&events(&mut store)).len(), 2_000);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn where_threads_decode_files_wait_for_time_and_that_nothing_is_missing_is_known_before() {
    let out = tempfile::tempdir().expect("temporary folder");
    let (sender, mut store) = here_and_not_written(out.path(), false);
    while store.unpack_some().expect("the disk works") {}
    assert!(store.is_complete() && store.progress().has_everything);
    assert_eq!(done(&events(&mut store)).len(), 2_000);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn where_threads_decode_nothing_waits_for_the_disk_and_files_are_done_after_it() {
    let out = tempfile::tempdir().expect("temporary folder");
    let (sender, mut store) = here_and_not_written(out.path(), true);
    let mut was_syncing = false;
    while !store.is_complete() {
        let before = (store.is_syncing(), store.progress().files_done);
        let is_more = store.unpack_some().expect("the disk works");
        assert!(before.0 || before.1 == store.progress().files_done, "files are done that the disk does not have");
        was_syncing |= store.is_syncing();
        if !is_more {
            std::thread::yield_now();
        }
    }
    assert!(was_syncing);
    assert_eq!(done(&events(&mut store)).len(), 2_000);
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_store_that_is_closed_writes_the_files_that_are_there_first() {
    for sync in [false, true] {
        let out = tempfile::tempdir().expect("temporary folder");
        let (sender, store) = here_and_not_written(out.path(), sync);
        store.close().expect("the disk works");
        assert_same(sender.folder.path(), out.path());
    }
}

/// A store that has all blocks of 2000 files, which threads decoded, and has written none of the files.
fn here_and_not_written(out: &Path, sync: bool) -> (Sender, Store) {
    let small = files(2_000, 14);
    let mut sender = sender(&small, &options());
    let options = StoreOptions { sync, decoding_threads: 1, ..StoreOptions::default() };
    let mut store = open(out, &options);
    while !store.progress().has_everything {
        if store.progress().only_decodes {
            store.take_decoded().expect("the disk works");
        } else {
            let (_, content, symbol) = sender.next();
            store.add(&content, &symbol, ORIGIN).expect("the disk works");
        }
    }
    assert!(store.progress().files_done == 0 && !store.is_complete());
    (sender, store)
}

#[test]
fn the_index_goes_first_in_every_run_and_is_missing_in_no_cycle() {
    let small = files(2_000, 11);
    let first = |skipped_cycles| {
        let mut sender = sender(&small, &CarouselOptions { skipped_cycles, ..CarouselOptions::default() });
        let stats = sender.carousel.stats();
        let mut symbols = Vec::new();
        while symbols.len() as u64 != stats.head_symbols + stats.symbols_per_cycle {
            let (_, content, _) = sender.next();
            symbols.extend((content.toi != 0).then_some(content.payload_id));
        }
        (stats.head_symbols as usize, symbols)
    };
    for skipped_cycles in [0, 3] {
        let (head, symbols) = first(skipped_cycles);
        assert!(head > 40 && head * 20 < symbols.len(), "{head} of {}", symbols.len());
        let index: std::collections::BTreeSet<_> = symbols[..head].iter().map(|id| (id.block, id.symbol)).collect();
        assert_eq!(index, (0..head as u32).map(|symbol| (0, symbol)).collect());
        let cycle: std::collections::BTreeSet<_> = symbols[head..].iter().map(|id| (id.block, id.symbol)).collect();
        assert_eq!(cycle.len(), symbols.len() - head, "nothing comes twice in it");
        assert!(cycle.is_disjoint(&index));
        let first_block = cycle.range((0, 0)..(1, 0)).count();
        assert!(
            (first_block * 2).abs_diff(cycle.len()) <= 1,
            "{first_block} of {}: both blocks are as long",
            cycle.len()
        );
    }
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_unpacking_is_told_and_costs_nothing_again() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    let temporary = tempfile::tempdir().expect("temporary folder");
    let of_size = |flags, size| mount(Some("tmpfs"), temporary.path(), Some("tmpfs"), flags, Some(size));
    if of_size(MsFlags::empty(), "size=4m").is_err() {
        eprintln!("SKIPPED: a full disk needs the right to mount a file system of 4 MiB; run this test as root");
        return;
    }
    let small = files(1_000, 12);
    let mut sender = sender(&small, &options());
    let symbols = sender.carousel.stats().symbols_per_cycle;
    let mut store = open(temporary.path(), &StoreOptions::default());
    let error = (0..4 * symbols).find_map(|_| {
        let (_, content, symbol) = sender.next();
        let added = store.add(&content, &symbol, ORIGIN).and_then(|()| store.flush());
        added.and_then(|()| store.commit()).and_then(|()| store.unpack_some()).err()
    });
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    let before = store.progress();
    drop(store);
    let grown = of_size(MsFlags::MS_REMOUNT, "size=64m");
    let mut store = open(temporary.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 4, 0.0, 1);
    let useful = store.progress().useful_symbols;
    store.close().expect("there is room now");
    assert_same(sender.folder.path(), temporary.path());
    umount2(temporary.path(), MntFlags::MNT_DETACH).expect("unmounted");
    grown.expect("it can grow");
    // It is full for a file, or for the journal of the bundle.
    assert!(text.contains("make room") && (text.contains("tree/") || text.contains("weir-bundle-")), "{text}");
    assert!((1..1_000).contains(&before.files_done), "{before:?}");
    assert!(before.useful_symbols + useful <= symbols + 5, "{useful} more than {}", before.useful_symbols);
}

#[test]
fn a_forged_index_is_not_read_and_the_true_one_is_learned_from_its_block() {
    let small = files(1_000, 13);
    let key = SecretKey::from_seed([2; 32]);
    let mut sender = sender(&small, &CarouselOptions { key: Some(key.clone()), ..options() });
    let (stats, out) = (sender.carousel.stats(), tempfile::tempdir().expect("temporary folder"));
    let mut store = open(out.path(), &StoreOptions { key: Some(key.public()), ..StoreOptions::default() });
    let mut arrived = 0;
    while !store.is_complete() {
        let (_, content, mut symbol) = sender.next();
        arrived += u64::from(content.toi != 0);
        // One symbol of the index, of the sender's own address.
        symbol[9] ^= u8::from(content.toi != 0 && arrived == 10);
        store.add(&content, &symbol, ORIGIN).expect("the disk works");
        store.flush().and_then(|()| store.commit()).expect("the disk works");
        while store.unpack_some().expect("the disk works") {}
        if arrived == stats.head_symbols + 100 {
            assert_eq!((store.progress().files_done, store.progress().files_refused), (0, 0));
        }
        assert!(arrived < 4 * stats.symbols_per_cycle, "{:?}", store.progress());
    }
    let progress = store.progress();
    assert_eq!((progress.files_done, progress.files_refused, progress.bad_blocks), (1_000, 0, 1));
    store.close().expect("the disk works");
    assert_same(sender.folder.path(), out.path());
}
