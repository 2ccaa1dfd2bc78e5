//! The proof that a receiver has the content: a digest of a few leaves of it, at places that follow from the receiver's key. Whoever has only
//! the description and the table cannot make one, and one receiver's is no other's.
//!
//! A leaf is 32 KiB of a file, or what is left of it. The leaves of all files stand one behind the other in the order of the files' names.
//! Leaf `i` of a proof is the one whose number is the first eight bytes of BLAKE3, in the mode of a key derivation for `weir place of a
//! proof`, of a prefix and `i` in 16 bits, as a big-endian number modulo the number of all leaves. The prefix is the receiver's public key,
//! the session's number in 16 bits, the 16 bytes of the set and the sender's epoch in 64 bits, so that a proof counts for one set and one
//! start of the sender. The proof is BLAKE3, in the mode of a key derivation for `weir proof`, of the prefix and the chaining values that
//! these leaves have in the BLAKE3 trees of their files. The sender has them in memory: it reads nothing to judge a proof, so that
//! forged ones cost it little.
//!
//! A set without a byte has no leaf: it is all in the table, and its proof shows that the receiver has that.
//!
//! A report bears a mark instead: BLAKE3, in the same mode for `weir report`, of the prefix.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use weir_object::manifest::Edition;
use weir_object::name::Name;
use weir_object::pieces::{self, LEAF};

/// What a proof or a mark is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    /// The receiver's public key.
    pub(crate) receiver: &'a [u8; 32],
    /// The session's number.
    pub(crate) tsi: u16,
    /// The set, and the start of the sender.
    pub(crate) edition: Edition,
}

/// The content of a session, on this side.
#[derive(Debug, Default)]
pub(crate) struct Content {
    files: BTreeMap<Name, Arc<Leaves>>,
    /// For each file the number of leaves up to its end, once they have been counted.
    ends: OnceLock<Vec<(u64, Arc<Leaves>)>>,
}

/// The leaves of one file.
#[derive(Debug)]
pub(crate) enum Leaves {
    /// Their values, all of them.
    Known(Arc<[[u8; 32]]>),
    /// They are to be read from a file of so many bytes.
    OnDisk(PathBuf, u64),
}

impl About<'_> {
    /// Says in a report which content it goes by.
    pub(crate) fn mark(&self) -> [u8; 32] {
        *self.hasher("weir report").finalize().as_bytes()
    }

    fn hasher(&self, purpose: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(self.receiver).update(&self.tsi.to_be_bytes());
        hasher.update(&self.edition.set).update(&self.edition.epoch.to_be_bytes());
        hasher
    }
}

impl Content {
    /// Adds a file, or puts it in the place of the one that had its name.
    pub(crate) fn add(&mut self, name: Name, leaves: Leaves) {
        self.ends = OnceLock::new();
        self.files.insert(name, Arc::new(leaves));
    }

    /// The proof that a receiver has all of it.
    pub(crate) fn proof(&self, about: &About<'_>) -> io::Result<[u8; 32]> {
        let ends = self.ends.get_or_init(|| self.count());
        let leaves = ends.last().map_or(0, |(end, _)| *end);
        let mut hasher = about.hasher("weir proof");
        for number in (0..LEAVES).filter(|_| leaves > 0) {
            let place = about.hasher("weir place of a proof").update(&number.to_be_bytes()).finalize();
            let first = place.as_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let leaf = first % leaves;
            let (end, file) = &ends[ends.partition_point(|(end, _)| *end <= leaf)];
            hasher.update(&file.value(leaf + file.count() - end)?);
        }
        Ok(*hasher.finalize().as_bytes())
    }

    fn count(&self) -> Vec<(u64, Arc<Leaves>)> {
        let mut end = 0;
        let counted = self.files.values().map(|file| {
            end += file.count();
            (end, Arc::clone(file))
        });
        counted.collect()
    }
}

impl Leaves {
    fn count(&self) -> u64 {
        match self {
            Leaves::Known(values) => values.len() as u64,
            Leaves::OnDisk(_, length) => length.div_ceil(LEAF),
        }
    }

    /// The value of leaf `number`.
    fn value(&self, number: u64) -> io::Result<[u8; 32]> {
        match self {
            Leaves::Known(values) => Ok(values[number as usize]),
            Leaves::OnDisk(path, length) => {
                let start = number * LEAF;
                let mut bytes = vec![0; (length - start).min(LEAF) as usize];
                File::open(path)?.read_exact_at(&mut bytes, start)?;
                Ok(pieces::leaf(start, &bytes))
            }
        }
    }
}

/// A receiver that lacks a tenth of the content lacks one of them with a chance of four in five.
const LEAVES: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_object::source::SourceSet;

    const EDITION: Edition = Edition { set: [3; 16], epoch: 9 };

    /// Files of these names, the first of which is empty.
    fn write(folder: &std::path::Path, names: &[&str], seed: u8) {
        for name in names {
            let length = 100_000 * u32::from(name.as_bytes()[0] - b'a');
            let bytes: Vec<u8> = (0..length).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ seed).collect();
            std::fs::write(folder.join(name), &bytes).expect("room");
        }
    }

    fn on_disk(folder: &std::path::Path, names: &[&str]) -> Content {
        let mut content = Content::default();
        for name in names {
            let path = folder.join(name);
            let length = path.metadata().expect("it is there").len();
            content.add(Name::new(name).expect("a plain name"), Leaves::OnDisk(path, length));
        }
        content
    }

    fn proof(content: &Content, receiver: u8, tsi: u16, edition: Edition) -> [u8; 32] {
        content.proof(&About { receiver: &[receiver; 32], tsi, edition }).expect("readable")
    }

    #[test]
    fn the_same_content_has_the_same_proof_wherever_it_lies_and_no_other_does() {
        let [here, there] = [(), ()].map(|()| tempfile::tempdir().expect("a temporary folder"));
        write(here.path(), &["a", "b", "c"], 0);
        write(there.path(), &["a", "b", "c"], 0);
        let (sent, got) = (on_disk(here.path(), &["a", "b", "c"]), on_disk(there.path(), &["c", "a", "b"]));
        let own = proof(&sent, 1, 7, EDITION);
        assert_eq!(own, proof(&got, 1, 7, EDITION));
        let others = [Edition { set: [4; 16], ..EDITION }, Edition { epoch: 10, ..EDITION }];
        for (receiver, tsi, edition) in [(2, 7, EDITION), (1, 8, EDITION), (1, 7, others[0]), (1, 7, others[1])] {
            assert_ne!(own, proof(&sent, receiver, tsi, edition), "{receiver} {tsi} {edition:?}");
        }
        let mut again = on_disk(there.path(), &["a", "b", "c"]);
        again.add(Name::new("b").expect("a plain name"), Leaves::OnDisk(there.path().join("b"), 100_000));
        assert_eq!(proof(&again, 1, 7, EDITION), proof(&on_disk(there.path(), &["a", "b", "c"]), 1, 7, EDITION));
        write(there.path(), &["a", "b", "c"], 1);
        assert_ne!(own, proof(&on_disk(there.path(), &["a", "b", "c"]), 1, 7, EDITION));
    }

    #[test]
    fn a_sender_judges_proofs_without_its_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path(), &["a", "b", "c"], 0);
        std::fs::write(folder.path().join("d"), b"small").expect("room");
        let names = ["a", "b", "c", "d"];
        let paths = names.map(|name| folder.path().join(name));
        let set = SourceSet::collect(&paths, false).expect("readable");
        let own = proof(&on_disk(folder.path(), &names), 1, 7, EDITION);
        folder.close().expect("ours");
        let mut known = Content::default();
        set.files().iter().for_each(|file| known.add(file.name.clone(), Leaves::Known(file.leaves())));
        assert_eq!(proof(&known, 1, 7, EDITION), own);
    }

    /// It is all in the table, and so is what it takes to prove it.
    #[test]
    fn the_proof_of_an_empty_set_is_of_its_table_alone() {
        let empty = Content::default();
        assert_eq!(proof(&empty, 1, 7, EDITION), proof(&empty, 1, 7, EDITION));
        assert_ne!(proof(&empty, 1, 7, EDITION), proof(&empty, 1, 7, Edition { set: [4; 16], ..EDITION }));
        let about = About { receiver: &[1; 32], tsi: 7, edition: EDITION };
        assert_ne!(proof(&empty, 1, 7, EDITION), about.mark(), "a report is no receipt");
    }
}
