//! Files go through a carousel, lossy channels, and a store, and arrive whole.

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::*;
use proptest::prelude::*;
use weir_object::{CarouselOptions, Event, SecretKey, StoreOptions};
use weir_units::Rate;

fn options(rates: Vec<Rate>) -> CarouselOptions {
    CarouselOptions { channel_rates: rates, ..Default::default() }
}

#[test]
fn a_receiver_of_all_channels_needs_no_decoding_and_nothing_twice() {
    let bytes = content(3_000_000, 1);
    let mut sender = Sender::new(&[("a.bin", &bytes)], &options(ladder(8, 1.5)));
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    let arrived = receive(&mut sender, &mut store, 8, 0.0, 1);
    assert_eq!(arrived, 3_000_000u64.div_ceil(1400));
    assert_eq!(store.progress().decoded_blocks, 0);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn folders_empty_files_and_empty_folders_arrive() {
    let bytes = content(100_000, 2);
    let files: &[(&str, &[u8])] = &[
        ("tree/a", &bytes),
        ("tree/b/empty", &[]),
        ("tree/b/c/é x?.txt", b"hello"),
        ("tree/nothing/", &[]),
        ("single", b"1"),
    ];
    let mut sender = Sender::new(files, &options(ladder(3, 2.0)));
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 2, 0.05, 1);
    assert_same(sender.folder.path(), out.path());
    let progress = store.progress();
    assert_eq!((progress.files_done, progress.files_total), (4, 4));
    assert_eq!(progress.bytes_useful, progress.bytes_needed);
}

#[test]
fn a_set_of_nothing_but_empty_files_arrives_by_the_manifest_alone() {
    let mut sender = Sender::new(&[("a", &[]), ("b/", &[])], &options(ladder(3, 2.0)));
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 1, 0.0, 1);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_file_of_several_objects_arrives() {
    let bytes = content(200_000, 3);
    let options = CarouselOptions { block_symbols: 10, max_blocks: 3, symbol_size: 512, ..options(ladder(5, 1.5)) };
    let mut sender = Sender::new(&[("big", &bytes), ("small", b"x")], &options);
    assert!(sender.carousel.manifests()[0].files.len() > 5);
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    receive(&mut sender, &mut store, 4, 0.1, 1);
    assert_same(sender.folder.path(), out.path());
}

/// Each block comes in sixteen turns, with all others between, so that its stretches and its map leave memory before they are whole. To read
/// that back for its digest, when all blocks become whole in the last turn, kept a disk from writing what came.
#[test]
fn what_came_in_turns_is_not_read_back_to_be_hashed() {
    let bytes = content(12_000_000, 14);
    let cut = CarouselOptions { symbol_size: 512, block_symbols: 400, ..options(ladder(1, 2.0)) };
    let options = CarouselOptions { memory_limit: 1 << 20, ..cut };
    let mut sender = Sender::new(&[("big", &bytes)], &options);
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { memory_limit: 1_300_000, ..StoreOptions::default() });
    // By this thread: the sender reads on one of its own.
    let before = bytes_read();
    receive(&mut sender, &mut store, 1, 0.0, 1);
    let read = bytes_read() - before;
    assert_same(sender.folder.path(), out.path());
    assert_eq!(store.progress().decoded_blocks, 0);
    // Maps, which are read again each time, are a sixth of it.
    assert!(read * 4 < bytes.len() as u64, "{read} of {} bytes were read back", bytes.len());
}

/// What this thread has read from files, maps of blocks included.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").expect("Linux tells");
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.and_then(|bytes| bytes.parse().ok()).expect("it is a number")
}

#[test]
fn a_file_larger_than_the_sender_s_memory_is_sent_in_windows() {
    let bytes = content(4_000_000, 4);
    let options = CarouselOptions { memory_limit: 1 << 18, block_symbols: 50, ..options(ladder(5, 1.5)) };
    let mut sender = Sender::new(&[("big", &bytes)], &options);
    for level in [5, 3] {
        let out = tempfile::tempdir().expect("temporary folder");
        let mut store = open(out.path(), &StoreOptions::default());
        receive(&mut sender, &mut store, level, 0.02, 1);
        assert_same(sender.folder.path(), out.path());
    }
}

#[test]
fn the_store_works_with_hardly_any_memory_for_its_maps() {
    let bytes = content(2_000_000, 5);
    let options = CarouselOptions { block_symbols: 20, symbol_size: 512, ..options(ladder(5, 1.5)) };
    let mut sender = Sender::new(&[("big", &bytes)], &options);
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { memory_limit: 150_000, ..Default::default() });
    receive(&mut sender, &mut store, 3, 0.05, 1);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn blocks_that_threads_decode_arrive_with_hardly_any_memory_for_their_maps() {
    let bytes = content(2_000_000, 6);
    let options = CarouselOptions { block_symbols: 20, symbol_size: 512, ..options(ladder(5, 1.5)) };
    let mut sender = Sender::new(&[("big", &bytes), ("small", &bytes[..70_000])], &options);
    let out = tempfile::tempdir().expect("temporary folder");
    let options = StoreOptions { memory_limit: 150_000, decoding_threads: 2, ..Default::default() };
    let mut store = open(out.path(), &options);
    receive(&mut sender, &mut store, 3, 0.05, 1);
    assert!(store.progress().decoded_blocks > 100, "{:?}", store.progress());
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn a_sender_can_end_while_encoding_waits_for_the_end_of_the_first_cycle() {
    // Two batches, of which the first is being sent when the next thing to do is to encode.
    let options = CarouselOptions { memory_limit: 1 << 20, ..options(ladder(1, 2.0)) };
    let mut sender = Sender::new(&[("a", &content(100_000, 7))], &options);
    while sender.next().1.toi == 0 {}
    let ((told, ended), (_nobody_tells, never)) = (channel::<()>(), channel::<()>());
    // Until it waits.
    let _ = never.recv_timeout(Duration::from_millis(300));
    std::thread::spawn(move || {
        drop(sender);
        told.send(())
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(30)), Ok(()), "it waits for ever");
}

#[test]
fn many_small_files_arrive_with_few_descriptors_open() {
    let names: Vec<String> = (0..1500).map(|i| format!("d/{i:04}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
    let options = CarouselOptions { bundle: false, ..options(ladder(5, 1.5)) };
    let mut sender = Sender::new(&files, &options);
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
    receive(&mut sender, &mut store, 5, 0.01, 1);
    assert_same(sender.folder.path(), out.path());
}

#[test]
fn only_the_right_key_s_manifest_counts() {
    let key = SecretKey::from_seed([1; 32]);
    let signed = CarouselOptions { key: Some(key.clone()), ..options(ladder(2, 2.0)) };
    let out = tempfile::tempdir().expect("temporary folder");
    let expect_key = StoreOptions { key: Some(key.public()), ..Default::default() };
    for wrong in [
        CarouselOptions { key: Some(SecretKey::from_seed([2; 32])), ..signed.clone() },
        CarouselOptions { key: None, ..signed.clone() },
        CarouselOptions { tsi: 9, ..signed.clone() },
    ] {
        let mut sender = Sender::new(&[("a", b"evil")], &wrong);
        let mut store = open(out.path(), &expect_key);
        for _ in 0..200 {
            let (_, content, symbol) = sender.next();
            store.add(&content, &symbol, ORIGIN).expect("the disk works");
        }
        assert!(store.progress().rejected_manifests > 0 && !store.is_complete());
    }
    let mut sender = Sender::new(&[("a", b"good")], &signed);
    receive(&mut sender, &mut open(out.path(), &expect_key), 2, 0.0, 1);
    assert_eq!(std::fs::read(out.path().join("a")).expect("received"), b"good");
}

#[test]
fn a_file_that_changes_while_it_is_sent_stops_the_sender_and_is_named() {
    let bytes = content(4_000_000, 6);
    let options = CarouselOptions { memory_limit: 1 << 20, ..options(ladder(2, 2.0)) };
    let mut sender = Sender::new(&[("changing", &bytes)], &options);
    sender.next();
    std::fs::write(sender.folder.path().join("changing"), b"other").expect("file");
    let stopped = (0..100_000).any(|_| sender.carousel.next(1).is_none());
    assert!(stopped);
    let failure = sender.carousel.failure().expect("a reason").to_string();
    assert!(failure.contains("changing") && failure.contains("changed"), "{failure}");
}

#[test]
fn permissions_times_and_links_travel_and_nothing_is_more_open_than_it_was() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let scratch = tempfile::tempdir().expect("temporary folder");
    let tree = scratch.path().join("tree");
    std::fs::create_dir_all(tree.join("private")).expect("folders");
    let modes = [("secret", 0o600), ("run.sh", 0o755), ("setuid", 0o4755), ("shared", 0o666), ("private/open", 0o644)];
    let when = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 7);
    for (name, mode) in modes {
        let file = std::fs::File::create(tree.join(name)).expect("file");
        std::fs::write(tree.join(name), name).expect("file");
        file.set_permissions(std::fs::Permissions::from_mode(mode)).expect("ours");
        file.set_modified(when).expect("ours");
    }
    std::fs::set_permissions(tree.join("private"), std::fs::Permissions::from_mode(0o700)).expect("ours");
    std::fs::set_permissions(&tree, std::fs::Permissions::from_mode(0o755)).expect("ours");
    symlink("secret", tree.join("link")).expect("link");
    symlink("../run.sh", tree.join("private/up")).expect("link");
    symlink("/etc/passwd", tree.join("out")).expect("link");

    let set = weir_object::SourceSet::collect(&[tree], false).expect("readable");
    assert_eq!(set.skipped().len(), 1, "{:?}", set.skipped());
    let mut carousel = weir_object::Carousel::new(set, &CarouselOptions::default()).expect("valid");
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions::default());
    let mut parts = 0;
    while !store.is_complete() {
        let (content, symbol) = carousel.next(0).expect("a packet");
        store.add(&content, symbol, ORIGIN).expect("the disk works");
        let part = std::fs::metadata(out.path().join("tree/shared.weir-part"));
        parts += usize::from(part.is_ok_and(|part| part.mode() & 0o077 == 0));
    }
    assert!(parts > 0, "what is not complete is nobody else's to read");
    assert_eq!(events(&mut store).iter().filter(|event| matches!(event, Event::Done { .. })).count(), modes.len());
    let arrived = |name: &str| std::fs::symlink_metadata(out.path().join("tree").join(name)).expect("received");
    for (name, mode) in modes {
        let (metadata, expected) = (arrived(name), mode & 0o777);
        assert_eq!(metadata.mode() & 0o7777 & !expected, 0, "{name} is more open: {:o}", metadata.mode());
        assert_eq!(metadata.mode() & 0o700, expected & 0o700, "{name}");
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000_000, 7), "{name}");
    }
    assert_eq!(arrived("private").mode() & 0o7777, 0o700);
    for (name, target) in [("link", "secret"), ("private/up", "../run.sh")] {
        let link = std::fs::read_link(out.path().join("tree").join(name)).expect("a link");
        assert_eq!(link.to_str(), Some(target));
    }
    assert!(!out.path().join("tree/out").exists());
}

#[test]
fn a_tree_keeps_every_name_that_a_file_system_allows_alone_and_in_bundles() {
    use std::os::unix::ffi::OsStrExt;
    let longest = [&b"n".repeat(254)[..], b"1"].concat();
    let other = [&b"n".repeat(254)[..], b"2"].concat();
    let names: [&[u8]; 9] =
        [b"unit\\x2d.slice", b"c:", b"two\nlines", b"\x1b[2J", b"caf\xe9", b"x", b"x.part", &longest, &other];
    for more in [0, 40] {
        let scratch = tempfile::tempdir().expect("temporary folder");
        let tree = scratch.path().join("tree");
        let path = |name: &[u8]| tree.join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(path(b"folder\xff")).expect("folder");
        names.iter().for_each(|name| std::fs::write(path(name), name).expect("file"));
        (0..more).for_each(|i| std::fs::write(tree.join(i.to_string()), "more").expect("file"));
        std::fs::write(path(b"folder\xff/x"), b"inside").expect("file");
        std::os::unix::fs::symlink(path(b"caf\xe9").file_name().expect("it has one"), path(b"link")).expect("link");

        let set = weir_object::SourceSet::collect(std::slice::from_ref(&tree), false).expect("readable");
        assert_eq!(set.skipped(), [], "all of it is sent");
        let mut carousel = weir_object::Carousel::new(set, &CarouselOptions::default()).expect("valid");
        let out = tempfile::tempdir().expect("temporary folder");
        let mut store = open(out.path(), &StoreOptions::default());
        while !store.is_complete() {
            let (content, symbol) = carousel.next(0).expect("a packet");
            store.add(&content, symbol, ORIGIN).expect("the disk works");
        }
        assert_eq!(events(&mut store).iter().filter(|event| matches!(event, Event::Refused { .. })).count(), 0);
        store.close().expect("the disk works");
        assert_same(&tree, &out.path().join("tree"));
        let link = std::fs::read_link(out.path().join("tree/link")).expect("a link");
        assert_eq!(link.as_os_str().as_bytes(), b"caf\xe9");
    }
}

#[test]
fn a_folder_is_nobody_else_s_to_look_into_until_its_permissions_are_known() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let scratch = tempfile::tempdir().expect("temporary folder");
    let tree = scratch.path().join("tree");
    let modes = [("", 0o755), ("open", 0o755), ("group", 0o750), ("open/private", 0o700)];
    for (name, mode) in modes {
        let folder = tree.join(name);
        std::fs::create_dir_all(&folder).expect("folders");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).expect("ours");
        (0..5).for_each(|number| std::fs::write(folder.join(format!("file{number}")), name).expect("file"));
    }
    let set = weir_object::SourceSet::collect(&[tree], false).expect("readable");
    // An instance for each file.
    let options = CarouselOptions { fdt_instance_bytes: 100, ..options(ladder(1, 1.0)) };
    let mut carousel = weir_object::Carousel::new(set, &options).expect("valid");
    let out = tempfile::tempdir().expect("temporary folder");
    // What is made here belongs to its group.
    std::fs::set_permissions(out.path(), std::fs::Permissions::from_mode(0o2777)).expect("ours");
    std::fs::create_dir(out.path().join("usual")).expect("folder");
    let mode = |name: &str| std::fs::metadata(out.path().join(name)).map(|metadata| metadata.mode() & 0o7777);
    let umask = 0o777 & !mode("usual").expect("it was made");
    let mut store = open(out.path(), &StoreOptions::default());
    let mut closed = 0;
    while !store.is_complete() {
        let (content, symbol) = carousel.next(0).expect("a packet");
        store.add(&content, symbol, ORIGIN).expect("the disk works");
        if !store.progress().manifest_complete {
            let told = ["tree", "tree/open"].map(|name| mode(name).unwrap_or(0o2700));
            assert_eq!(told, [0o2700; 2], "before all of the table was there");
            closed += u32::from(mode("tree/open").is_ok());
        }
    }
    assert!(closed > 0, "the folders were there before all of the table");
    for (name, expected) in modes {
        let path = format!("tree/{name}");
        assert_eq!(mode(&path).expect("it is there"), 0o2000 | expected & !umask | 0o700, "{path}");
    }
    // What was there before stays as it is.
    assert_eq!(mode("usual").expect("it is there"), 0o2000 | 0o777 & !umask);
}

#[test]
fn a_sender_that_was_told_what_was_sent_repeats_no_symbol() {
    use std::collections::HashSet;
    let bytes = content(300_000, 6);
    let symbols = |skipped_cycles, cycles: u64| {
        let mut sender = Sender::new(&[("a", &bytes)], &CarouselOptions { skipped_cycles, ..options(ladder(1, 1.0)) });
        let mut seen = HashSet::new();
        while sender.carousel.stats().cycles < cycles {
            let (content, _) = sender.carousel.next(0).expect("a packet");
            seen.extend((content.toi > 0).then_some((content.toi, content.payload_id)));
        }
        seen
    };
    let (first, second) = (symbols(0, 2), symbols(3, 2));
    assert!(first.len() > 400 && second.len() > 400 && first.is_disjoint(&second));
}

#[test]
fn what_nobody_may_hear_is_sent_before_and_uses_nothing_up() {
    use std::collections::HashSet;
    let bytes = content(1_000_000, 7);
    let mut sender = Sender::new(&[("a", &bytes)], &options(ladder(6, 1.5)));
    let mut sent = HashSet::new();
    for packet in 0..8_000 {
        // The channels that are heard are never quite where their shares of the rate would have them.
        let channel = [0, 1, 2, 3, 4, 3, 2, 3][packet % 8];
        let (content, symbol) =
            sender.carousel.next(channel).map(|(content, symbol)| (content, symbol.to_owned())).expect("a packet");
        if content.toi > 0 {
            assert!(sent.insert((content.payload_id, symbol)), "packet {packet} is new");
        }
        let (content, symbol) = sender.carousel.again(5).expect("a packet");
        // Batches end, too: a symbol that is lost there would have a whole block encoded and decoded.
        let is_known = sent.is_empty() || sent.contains(&(content.payload_id, symbol.to_owned()));
        assert!(is_known, "after packet {packet} {:?} was new", content.payload_id);
    }
    let used = sender.carousel.stats().symbols;
    assert!(used <= sent.len() as u64 + 1, "{used} of {} that were heard", sent.len());
    assert_eq!(sender.carousel.again(6), None);
}

#[test]
fn any_subset_of_a_ladder_finishes_an_8_mb_file_within_3_percent() {
    let bytes = content(8_400_000, 7);
    let rates = ladder(12, 1.5);
    let ideal = 8_400_000u64.div_ceil(1400);
    for level in [12, 11, 9, 4] {
        let mut sender = Sender::new(&[("a", &bytes)], &options(rates.clone()));
        let out = tempfile::tempdir().expect("temporary folder");
        let mut store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
        let arrived = receive(&mut sender, &mut store, level, 0.02, 1);
        let overhead = arrived as f64 / ideal as f64 - 1.0;
        eprintln!("level {level}: overhead {:.2} %", overhead * 100.0);
        assert!(overhead <= 0.03, "level {level}: {overhead}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_the_file_arrives(
        length in 1usize..400_000, words in 8u16..180, block_symbols in 1u32..400, levels in 1usize..8, level in 1usize..8,
        loss in 0.0f64..0.6, seed in any::<u64>(), late in 0usize..500,
    ) {
        let bytes = content(length, seed);
        let options = CarouselOptions { symbol_size: words * 8, block_symbols, ..options(ladder(levels, 1.4)) };
        let mut sender = Sender::new(&[("file", &bytes)], &options);
        for _ in 0..late {
            sender.next();
        }
        let out = tempfile::tempdir().expect("temporary folder");
        let mut store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
        receive(&mut sender, &mut store, level.min(levels) as u16, loss, seed);
        prop_assert_eq!(std::fs::read(out.path().join("file")).expect("received"), bytes);
    }

    #[test]
    fn a_receiver_that_is_killed_anywhere_goes_on_where_it_was(
        length in 1usize..400_000, block_symbols in 20u32..200, kills in 1usize..4, loss in 0.0f64..0.3, seed in any::<u64>(),
    ) {
        let bytes = content(length, seed);
        let options = CarouselOptions { symbol_size: 512, block_symbols, ..options(ladder(4, 1.5)) };
        let mut sender = Sender::new(&[("file", &bytes)], &options);
        let out = tempfile::tempdir().expect("temporary folder");
        let store_options = StoreOptions { sync: false, ..Default::default() };
        let mut random = weir_units::Random::new(seed, "kills");
        let mut flushed = 0;
        for _ in 0..kills {
            let mut store = open(out.path(), &store_options);
            let packets = random.below(length as u64 / 512 / kills as u64 + 50);
            let flush_at = random.below(packets + 1);
            for i in 0..packets {
                let (_, content, symbol) = sender.next();
                if !random.chance(loss) {
                    store.add(&content, &symbol, ORIGIN).expect("the disk works");
                }
                if i == flush_at {
                    let before = store.progress();
                    prop_assert!(before.files_total == 0 || before.bytes_useful >= flushed.min(before.bytes_needed));
                    store.flush().expect("the disk works");
                    flushed = before.bytes_useful;
                }
            }
        }
        let mut store = open(out.path(), &store_options);
        receive(&mut sender, &mut store, 4, loss, seed);
        prop_assert_eq!(std::fs::read(out.path().join("file")).expect("received"), bytes);
    }
}

#[test]
fn symbols_in_runs_arrive_as_symbols_one_by_one_do() {
    let bytes = content(2_000_000, 3);
    let mut sender = Sender::new(&[("a", &bytes), ("b", &bytes[..70_000])], &options(ladder(3, 1.5)));
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    let [mut singles, mut runs] = [0, 1].map(|i| open(folders[i].path(), &StoreOptions::default()));
    let mut random = weir_units::Random::new(1, "runs");
    let mut run: Option<(weir_wire::alc::Content, Vec<u8>, usize)> = None;
    while !(singles.is_complete() && runs.is_complete()) {
        let (_, content, symbol) = sender.next();
        if random.chance(0.03) {
            continue;
        }
        // Some arrive twice, so that runs also meet slots that are taken.
        for _ in 0..1 + u32::from(random.chance(0.05)) {
            singles.add(&content, &symbol, ORIGIN).expect("the disk works");
            let goes_on = run.as_ref().is_some_and(|(first, bytes, size)| {
                let mut next = *first;
                next.payload_id.symbol += (bytes.len() / size) as u32;
                next == content && *size == symbol.len() && !random.chance(0.05)
            });
            match &mut run {
                Some((_, bytes, _)) if goes_on => bytes.extend_from_slice(&symbol),
                _ => {
                    let ended = run.replace((content, symbol.clone(), symbol.len()));
                    if let Some((content, bytes, size)) = ended {
                        runs.add_run(&content, &bytes, size, ORIGIN).expect("the disk works");
                    }
                }
            }
        }
    }
    assert!(singles.progress().decoded_blocks > 0, "losses had to be repaired");
    assert_same(sender.folder.path(), folders[0].path());
    assert_same(sender.folder.path(), folders[1].path());
}
