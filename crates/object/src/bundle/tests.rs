use super::*;
use proptest::prelude::*;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn modified(secs: i64) -> Attributes {
    Attributes { mode: Some(0o640), modified: Some(Modified { secs, nanos: 5 }), sparse: false }
}

/// An index of three files, a folder and a link, and what the table says of its bundle.
fn example() -> (Vec<u8>, BundleEntry, u64) {
    let names = ["t/a", "t/ab", "t/d/e"].map(name);
    let folder =
        FolderEntry { name: name("t/c"), attributes: Attributes { mode: Some(0o700), ..Attributes::default() } };
    let link = LinkEntry::new(name("t/f"), "d/e").expect("stays in t");
    let file = |at: usize, length| Entry::File {
        name: &names[at],
        attributes: modified(at as i64 - 1),
        length,
        digest: &[7; 32],
    };
    let packed = pack(&[file(0, 10), file(1, 0), Entry::Folder(&folder), file(2, 5), Entry::Link(&link)]);
    let entry = BundleEntry::new(3, &packed);
    let length = entry.index_bytes + 15;
    (packed, entry, length)
}

/// The example's bytes, changed and packed again.
fn forged(change: impl FnOnce(&mut Vec<u8>)) -> Result<Index, BundleError> {
    let (packed, entry, length) = example();
    let mut bytes = unpack(&packed).expect("our own");
    change(&mut bytes);
    let packed = deflate(&bytes);
    let forged = BundleEntry::new(entry.files, &packed);
    Index::read(&packed, forged, length - entry.index_bytes + forged.index_bytes)
}

/// An index of entries of these names, none of which `pack` would take.
fn named(names: &[&str]) -> Result<Index, BundleError> {
    let mut bytes = (names.len() as u32).to_be_bytes().to_vec();
    for name in names {
        bytes.extend([FILE, 0, 0]);
        put_text(&mut bytes, name.as_bytes());
        bytes.extend([0; 2 + 8 + 4 + 8 + 32]);
    }
    let packed = deflate(&bytes);
    let index_bytes = packed.len() as u64;
    Index::read(&packed, BundleEntry::new(names.len() as u64, &packed), index_bytes)
}

#[test]
fn an_index_says_what_was_put_in_and_where_it_is() {
    let (packed, entry, length) = example();
    let index = Index::read(&packed, entry, length).expect("our own");
    let files: Vec<_> =
        index.files.iter().map(|it| (it.name.as_bytes(), it.start - entry.index_bytes, it.length)).collect();
    assert_eq!(files, [(&b"t/a"[..], 0, 10), (b"t/ab", 10, 0), (b"t/d/e", 10, 5)]);
    assert_eq!(index.files[0].attributes, modified(-1));
    assert_eq!((index.folders[0].name.as_bytes(), index.folders[0].attributes.mode), (&b"t/c"[..], Some(0o700)));
    assert_eq!((index.links[0].name.as_bytes(), &*index.links[0].target), (&b"t/f"[..], &b"d/e"[..]));
    let at = |from: u64, to: u64| index.files_in(&(entry.index_bytes + from..entry.index_bytes + to));
    assert_eq!([at(0, 10), at(9, 11), at(11, 12), at(15, 20)], [0..1, 0..3, 2..3, 3..3]);
}

#[test]
fn an_index_that_does_not_cover_its_bundle_is_refused() {
    let (packed, entry, length) = example();
    for wrong in [length - 1, length + 1, 0] {
        let refused = Index::read(&packed, entry, wrong).expect_err("another length");
        assert_eq!(refused, BundleError::Cover { named: length, length: wrong });
    }
    let refused = Index::read(&packed, BundleEntry { files: 4, ..entry }, length).expect_err("another number");
    assert_eq!(refused, BundleError::Count { count: 3 });
}

#[test]
fn absurd_counts_and_sizes_are_refused_before_anything_is_made_of_them() {
    for count in [6, 1_000, u32::MAX] {
        let refused = forged(|bytes| bytes[..4].copy_from_slice(&count.to_be_bytes())).expect_err("too many");
        assert!(matches!(refused, BundleError::Count { .. } | BundleError::Malformed), "{refused}");
    }
    assert_eq!(forged(|bytes| bytes[3] -= 1), Err(BundleError::Malformed), "bytes are left over");
    // The length of the first file: all the bytes that there could be.
    let at = 4 + 1 + 2 + 2 + 3 + 2 + 8 + 4;
    assert_eq!(forged(|bytes| bytes[at..at + 8].fill(0xff)), Err(BundleError::Malformed), "beyond all numbers");
    assert!(matches!(forged(|bytes| bytes[at + 7] += 1), Err(BundleError::Cover { .. })));
    let bomb = deflate(&vec![0; MAX_INDEX_BYTES + 1]);
    assert!(bomb.len() < 100_000, "it is small");
    let entry = BundleEntry::new(1, &bomb);
    assert_eq!(Index::read(&bomb, entry, 1 << 30), Err(BundleError::TooLarge));
}

#[test]
fn names_that_leave_the_folder_or_come_twice_are_refused() {
    assert_eq!(named(&["a", "b"]).expect("two names").files.len(), 2);
    for wrong in ["../a", "/etc/passwd", "a/../../b", "a\0b", "x.weir-part", ""] {
        assert!(matches!(named(&[wrong]), Err(BundleError::Name(_))), "{wrong:?}");
    }
    for wrong in [["a", "a"], ["b", "a"]] {
        assert!(matches!(named(&wrong), Err(BundleError::Order { .. })), "{wrong:?}");
    }
}

#[test]
fn a_link_out_of_its_tree_is_refused() {
    let refused = forged(|bytes| {
        let at = bytes.len() - 3;
        bytes[at..].copy_from_slice(b"../");
    });
    assert!(matches!(refused, Err(BundleError::Link { source: LinkError::Outside, .. })), "{refused:?}");
}

proptest! {
    #[test]
    fn any_change_of_an_index_is_read_or_refused_without_panic(
        at in any::<prop::sample::Index>(), to in any::<u8>(), cut in any::<prop::sample::Index>(), packed_too in any::<bool>(),
    ) {
        let (mut packed, entry, length) = example();
        if packed_too {
            let at = at.index(packed.len());
            packed[at] = to;
            packed.truncate(1 + cut.index(packed.len()));
            let _ = Index::read(&packed, entry, length);
        } else {
            let _ = forged(|bytes| {
                let at = at.index(bytes.len());
                bytes[at] = to;
                bytes.truncate(4 + cut.index(bytes.len()));
            });
        }
    }
}
