//! What an earlier run left next to a file that is received: its journal, its partial file, and the epochs of senders. Whatever
//! has become of them, the file arrives as it was sent.

use std::path::Path;
use std::sync::OnceLock;

use weir_fuzz::uncounted;
use weir_object::{Carousel, CarouselOptions, Origin, SecretKey, SourceSet, Store, StoreOptions};
use weir_wire::alc::Content;

use crate::Draw;

#[test]
fn whatever_became_of_a_journal_the_file_arrives() {
    weir_fuzz::check!(1_000, seeds(), resume);
}

fn resume(input: &[u8]) {
    let out = uncounted(crate::folder);
    let session = uncounted(session);
    let boot_id = uncounted(|| {
        let mut left = session.left.clone();
        left.damage(&mut Draw(input));
        left.write(out.path());
        left.boot_id
    });
    let mut store = session.open(out.path(), boot_id);
    for (i, (content, symbol)) in session.packets.iter().enumerate() {
        if store.is_complete() {
            break;
        }
        store.add(content, symbol, Origin(1)).expect("the disk works");
        if i % 40 == 0 {
            store.flush().expect("the disk works");
        }
        while store.poll_event().is_some() {}
    }
    let progress = store.progress();
    drop(store);
    if progress.files_done == 1 {
        let received = std::fs::read(out.path().join(NAME)).expect("it has its name");
        assert!(received == session.bytes, "another file than was sent");
    } else {
        assert!(progress.old_manifests > 0, "the file does not arrive, and its table is not old: {progress:?}");
    }
    uncounted(|| drop(out));
}

/// A session, and what a receiver that was killed in the middle of it left.
struct Session {
    bytes: Vec<u8>,
    packets: Vec<(Content, Vec<u8>)>,
    left: Left,
}

/// What lies next to the output.
#[derive(Clone, Default)]
struct Left {
    part: Option<Vec<u8>>,
    journal: Option<Vec<u8>>,
    epochs: Option<Vec<u8>>,
    boot_id: [u8; 16],
}

/// The session of this test, made once.
fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(Session::new)
}

impl Session {
    fn new() -> Session {
        let source = crate::folder();
        let bytes: Vec<u8> = (0..LENGTH).map(|at| ((at / 7) ^ at) as u8).collect();
        let path = source.path().join(NAME);
        std::fs::write(&path, &bytes).expect("there is room");
        let options = CarouselOptions {
            symbol_size: SYMBOL,
            block_symbols: 20,
            key: Some(key()),
            epoch: 5,
            ..CarouselOptions::default()
        };
        let set = SourceSet::collect(&[path], false).expect("readable");
        let mut carousel = Carousel::new(set, &options).expect("valid options");
        let packets = std::iter::from_fn(|| carousel.next(0).map(|(content, symbol)| (content, symbol.to_vec())));
        let mut session = Session { bytes, packets: packets.take(PACKETS).collect(), left: Left::default() };
        session.left = session.interrupted();
        session
    }

    fn open(&self, out: &Path, boot_id: [u8; 16]) -> Store {
        let options =
            StoreOptions { key: Some(key().public()), sync: false, boot_id: Some(boot_id), ..StoreOptions::default() };
        Store::open(out, options).expect("the folder can be used")
    }

    /// Blocks that are complete, blocks with source and repair symbols, and no clean end.
    fn interrupted(&self) -> Left {
        let out = crate::folder();
        let mut store = self.open(out.path(), [0; 16]);
        let is_file = |(content, _): &&(Content, Vec<u8>)| content.toi != 0;
        let some = self.packets.iter().filter(is_file).enumerate().filter(|(i, _)| i % 5 != 0).take(70);
        for (content, symbol) in self.packets.iter().filter(|packet| !is_file(packet)).chain(some.map(|(_, it)| it)) {
            store.add(content, symbol, Origin(1)).expect("the disk works");
        }
        store.flush().expect("the disk works");
        assert!(!store.is_complete() && store.progress().useful_symbols > 50, "{:?}", store.progress());
        drop(store);
        let read = |name: &str| std::fs::read(out.path().join(name)).ok();
        let left = Left { part: read(PART), journal: read(JOURNAL), epochs: read(EPOCHS), boot_id: [0; 16] };
        assert!(left.part.is_some() && left.journal.is_some() && left.epochs.is_some(), "it leaves three files");
        left
    }
}

impl Left {
    /// Each six bytes of the input are one thing that went wrong.
    fn damage(&mut self, draw: &mut Draw<'_>) {
        let mut is_sealed = false;
        while !draw.is_empty() {
            let (what, at, value) = (draw.u8(), usize::from(draw.u16()), draw.array::<3>());
            let journal = self.journal.get_or_insert_default();
            match what % 16 {
                0 => put(journal, at % CHECKED, &value[..1]),
                1 => put(journal, HEADER + at % 5, &value[..1]),
                // Four bytes a slot: small numbers mean something there.
                2..6 => put(journal, MAPS + at % SLOTS * 4, &[value[0], value[1], value[2] & 1, 0]),
                6 => put(journal, at, &value),
                7 => journal.resize(at, value[0]),
                8 | 9 => put(self.part.get_or_insert_default(), at, &value),
                10 => self.part.get_or_insert_default().resize(at, value[0]),
                11 => put(self.epochs.get_or_insert_default(), at % 200, &value),
                12 => self.journal = None,
                13 => self.part = None,
                14 => self.boot_id = [value[0]; 16],
                _ => is_sealed = true,
            }
        }
        if let Some(journal) = self.journal.as_mut().filter(|journal| is_sealed && journal.len() >= HEADER) {
            let check = blake3::hash(&journal[..CHECKED]);
            journal[CHECKED..CHECKED + 8].copy_from_slice(&check.as_bytes()[..8]);
        }
    }

    fn write(&self, out: &Path) {
        for (name, bytes) in [(PART, &self.part), (JOURNAL, &self.journal), (EPOCHS, &self.epochs)] {
            if let Some(bytes) = bytes {
                std::fs::write(out.join(name), bytes).expect("there is room");
            }
        }
    }
}

/// Overwrites what there is of `bytes` at this place.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes.iter_mut().skip(at).zip(value).for_each(|(byte, value)| *byte = *value);
}

/// Nothing wrong, and one thing of each kind wrong.
fn seeds() -> Vec<Vec<u8>> {
    let one = |what: u8| vec![what, 0, 1, 2, 3, 0];
    let sealed = |what: u8| [one(what), one(15)].concat();
    [Vec::new()].into_iter().chain((0..16).map(one)).chain([0, 1, 2].map(sealed)).collect()
}

fn key() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

const NAME: &str = "file";
const PART: &str = "file.weir-part";
const JOURNAL: &str = "file.weir-journal";
const EPOCHS: &str = ".weir-epochs";
const LENGTH: usize = 20_000;
const SYMBOL: u16 = 256;
/// As `crates/object/src/store/journal.rs` lays a journal out: bytes of the header, how many of it are under its check, and where
/// the maps are.
const HEADER: usize = 4096;
const CHECKED: usize = 73;
const MAPS: usize = 2 * HEADER;
const SLOTS: usize = LENGTH.div_ceil(SYMBOL as usize);
/// Several times what the file takes: blocks that are wrong are collected again.
const PACKETS: usize = 800;
