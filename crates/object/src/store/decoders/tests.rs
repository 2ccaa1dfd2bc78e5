//! What threads decode, and what goes on meanwhile.

use crate::pieces::LEAF;
use crate::store::digest::{Expected, Values};
use crate::store::incoming::Job;
use crate::store::{Origin, Store, StoreOptions};
use crate::{Carousel, CarouselOptions, SourceSet};

/// A carousel of a file of four blocks that is in its second cycle, which has nothing but repair symbols, and a store with the table.
fn transfer(sent: &std::path::Path, out: &std::path::Path, options: &StoreOptions) -> (Carousel, Store) {
    let file = sent.join("a");
    let content: Vec<u8> = (0..64_000u32).flat_map(|i| i.wrapping_mul(0x9e37_79b1).to_le_bytes()).collect();
    std::fs::write(&file, content).expect("written");
    let set = SourceSet::collect(&[file], false).expect("readable");
    let options_of_sender = CarouselOptions { symbol_size: 64, block_symbols: 1000, ..Default::default() };
    let mut carousel = Carousel::new(set, &options_of_sender).expect("valid options");
    let mut store = Store::open(out, StoreOptions { sync: false, ..options.clone() }).expect("a folder");
    while carousel.stats().cycles < 1 {
        let (content, symbol) = carousel.next(0).expect("a packet");
        if content.toi == 0 {
            store.add(&content, symbol, Origin(1)).expect("the disk works");
        }
    }
    (carousel, store)
}

fn add_next(carousel: &mut Carousel, store: &mut Store, block: impl Fn(u32) -> bool) {
    let (content, symbol) = carousel.next(0).expect("a packet");
    if content.toi != 0 && block(content.payload_id.block) {
        store.add(&content, symbol, Origin(1)).expect("the disk works");
    }
}

#[test]
fn symbols_of_other_blocks_are_taken_while_one_is_decoded() {
    let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    let options = StoreOptions { decoding_threads: 1, ..Default::default() };
    let (mut carousel, mut store) = transfer(sent.path(), out.path(), &options);
    while store.decoders.out == 0 {
        add_next(&mut carousel, &mut store, |block| block == 0);
    }
    // The call that completed the block came back before it was decoded, or at least before anybody took what came of it.
    assert_eq!(store.progress().decoded_blocks, 0);
    assert_eq!(store.incoming(0).blocks[0].job, Some(Job::Decode));
    let before = store.progress().useful_symbols;
    (0..400).for_each(|_| add_next(&mut carousel, &mut store, |block| block == 1));
    assert!(store.progress().useful_symbols > before, "symbols of the next block count");
    // What is being decoded is not begun again, whatever comes for it.
    store.finish_decoding().expect("the disk works");
    assert_eq!((store.progress().decoded_blocks, store.incoming(0).left), (1, 3));
    while !store.is_complete() {
        add_next(&mut carousel, &mut store, |_| true);
    }
    let same = std::fs::read(out.path().join("a")).expect("received");
    assert!(same == std::fs::read(sent.path().join("a")).expect("sent") && store.progress().decoded_blocks == 4);
}

#[test]
fn blocks_wait_where_decoding_them_together_takes_too_much_memory() {
    let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    // The results of two blocks take more than a tenth of it.
    let options = StoreOptions { decoding_threads: 4, memory_limit: 1_000_000, ..Default::default() };
    let (mut carousel, mut store) = transfer(sent.path(), out.path(), &options);
    let mut most = 0;
    while !store.is_complete() {
        add_next(&mut carousel, &mut store, |_| true);
        most = most.max(store.decoders.out);
        assert!(store.decoders.out_bytes <= 100_000, "{:?}", store.decoders);
    }
    assert_eq!((most, store.progress().decoded_blocks), (1, 4));
}

#[test]
fn what_was_decoded_of_a_set_that_has_gone_is_of_no_use() {
    let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    let options = StoreOptions { decoding_threads: 1, ..Default::default() };
    let (mut carousel, mut store) = transfer(sent.path(), out.path(), &options);
    while store.decoders.out == 0 {
        add_next(&mut carousel, &mut store, |block| block == 0);
    }
    store.decoders.begin_set();
    store.finish_decoding().expect("the disk works");
    assert_eq!((store.progress().decoded_blocks, store.incoming(0).left), (0, 4));
}

#[test]
fn more_is_of_no_use_when_all_blocks_are_being_decoded_and_have_spare_symbols() {
    let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    let options = StoreOptions { decoding_threads: 1, ..Default::default() };
    let (mut carousel, mut store) = transfer(sent.path(), out.path(), &options);
    while store.decoders.out == 0 {
        add_next(&mut carousel, &mut store, |block| block == 0);
    }
    assert!(!store.progress().only_decodes, "three blocks have nothing yet");
    // Whatever the thread does meanwhile, nobody takes it: to the store all four blocks are being decoded.
    for (number, block) in store.incoming(0).blocks.iter_mut().enumerate() {
        (block.job, block.extra) = (Some(Job::Decode), vec![(number as u32, Vec::new()); 2]);
    }
    assert!(store.progress().only_decodes);
    store.incoming(0).blocks[3].extra.pop();
    assert!(!store.progress().only_decodes, "a block may need a second spare symbol");
    store.incoming(0).blocks[3].done = true;
    assert!(store.progress().only_decodes, "it needs nothing");
    store.incoming(0).blocks[1].job = None;
    assert!(!store.progress().only_decodes, "it could not be decoded");
}

#[test]
fn what_was_decoded_is_taken_when_nothing_comes() {
    let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    let options = StoreOptions { decoding_threads: 1, ..Default::default() };
    let (mut carousel, mut store) = transfer(sent.path(), out.path(), &options);
    while store.decoders.out == 0 {
        add_next(&mut carousel, &mut store, |block| block == 0);
    }
    while store.is_decoding() {
        store.take_decoded().expect("the disk works");
        std::thread::yield_now();
    }
    assert_eq!((store.progress().decoded_blocks, store.is_decoding()), (1, false));
}

/// A carousel of one block of several leaves, and a store which has all of it but the last symbol, and has hashed none.
fn nearly_whole(sent: &std::path::Path, out: &std::path::Path) -> (Carousel, Store) {
    let file = sent.join("a");
    let content: Vec<u8> = (0..LEAF as u32).flat_map(|i| i.wrapping_mul(0x9e37_79b1).to_le_bytes()).collect();
    std::fs::write(&file, content).expect("written");
    let set = SourceSet::collect(&[file], false).expect("readable");
    let options = CarouselOptions { symbol_size: 1024, ..Default::default() };
    let mut carousel = Carousel::new(set, &options).expect("valid options");
    let options = StoreOptions { decoding_threads: 1, sync: false, ..Default::default() };
    let mut store = Store::open(out, options).expect("a folder");
    while carousel.stats().symbols + 1 < carousel.stats().symbols_per_cycle {
        let (content, symbol) = carousel.next(0).expect("a packet");
        store.add(&content, symbol, Origin(1)).expect("the disk works");
    }
    store.write_out().expect("the disk works");
    let block = &mut store.incoming(0).blocks[0];
    let range = block.range();
    let values = block.values.as_mut().expect("the table has a digest");
    **values = Values::of(range, &Expected::File([0; 32]));
    (carousel, store)
}

#[test]
fn a_block_that_has_to_be_read_back_is_checked_by_a_thread_and_needs_nothing_meanwhile() {
    let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    let (mut carousel, mut store) = nearly_whole(sent.path(), out.path());
    while store.decoders.out == 0 {
        add_next(&mut carousel, &mut store, |_| true);
    }
    assert_eq!(store.incoming(0).blocks[0].job, Some(Job::Check));
    assert!(store.progress().only_decodes && !store.is_complete());
    assert_eq!(store.lacking(9).expect("the disk works"), Some(Vec::new()));
    let before = store.progress().surplus_symbols;
    (0..9).for_each(|_| add_next(&mut carousel, &mut store, |_| true));
    // A result is taken with the next symbol that comes, if it is there.
    while store.is_decoding() {
        store.take_decoded().expect("the disk works");
    }
    assert!(store.progress().surplus_symbols >= before + 9);
    assert!(store.is_complete() && store.progress().decoded_blocks == 0);
    let same = std::fs::read(out.path().join("a")).expect("received");
    assert!(same == std::fs::read(sent.path().join("a")).expect("sent"));
}

#[test]
fn a_block_that_a_thread_finds_wrong_is_collected_again() {
    let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("temporary folder"));
    let (mut carousel, mut store) = nearly_whole(sent.path(), out.path());
    let data = store.incoming(0).handles.as_ref().expect("it was written to").data.try_clone().expect("open");
    std::os::unix::fs::FileExt::write_all_at(&data, b"damage", 5_000).expect("written");
    while !store.is_complete() {
        add_next(&mut carousel, &mut store, |_| true);
        store.take_decoded().expect("the disk works");
    }
    assert_eq!(store.progress().bad_blocks, 1);
    let same = std::fs::read(out.path().join("a")).expect("received");
    assert!(same == std::fs::read(sent.path().join("a")).expect("sent"));
}
