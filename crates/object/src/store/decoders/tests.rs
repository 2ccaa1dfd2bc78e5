//! What threads decode, and what goes on meanwhile.

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
    assert!(store.incoming(0).blocks[0].is_decoding);
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
        (block.is_decoding, block.extra) = (true, vec![(number as u32, Vec::new()); 2]);
    }
    assert!(store.progress().only_decodes);
    store.incoming(0).blocks[3].extra.pop();
    assert!(!store.progress().only_decodes, "a block may need a second spare symbol");
    store.incoming(0).blocks[3].done = true;
    assert!(store.progress().only_decodes, "it needs nothing");
    store.incoming(0).blocks[1].is_decoding = false;
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
