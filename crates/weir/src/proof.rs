//! The proof that a receiver has the content: a digest of a few pieces of it, at places that follow from the receiver's key. Who has only the
//! description cannot make one, and one receiver's is no other's.
//!
//! The files stand one behind the other in the order of their names. Piece `i` begins at the first eight bytes of BLAKE3, in the mode
//! of a key derivation for `weir place of a proof`, of the receiver's public key, the session's number in 16 bits and `i` in 16 bits,
//! as a big-endian number modulo the bytes of all files; it is 256 bytes, or as many as are left of its file. The proof is BLAKE3, in
//! the mode of a key derivation for `weir proof`, of key, number and all pieces.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The content of a session, on this side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    /// Names, lengths and places.
    files: Vec<(String, u64, PathBuf)>,
}

impl Content {
    /// Adds a file, or puts it in the place of the one that had its name.
    pub(crate) fn add(&mut self, name: String, length: u64, path: PathBuf) {
        match self.files.binary_search_by(|(other, ..)| other.cmp(&name)) {
            Ok(at) => self.files[at] = (name, length, path),
            Err(at) => self.files.insert(at, (name, length, path)),
        }
    }

    /// The proof of a receiver of session `tsi`.
    pub(crate) fn proof(&self, receiver: &[u8; 32], tsi: u16) -> io::Result<[u8; 32]> {
        let total: u64 = self.files.iter().map(|(_, length, _)| length).sum();
        let mut hasher = blake3::Hasher::new_derive_key("weir proof");
        hasher.update(receiver).update(&tsi.to_be_bytes());
        for piece in (0..PIECES).filter(|_| total > 0) {
            let mut place = blake3::Hasher::new_derive_key("weir place of a proof");
            place.update(receiver).update(&tsi.to_be_bytes()).update(&piece.to_be_bytes());
            let first = place.finalize().as_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            hasher.update(&self.piece(first % total)?);
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// The bytes from `at` on of all files.
    fn piece(&self, mut at: u64) -> io::Result<Vec<u8>> {
        for (_, length, path) in &self.files {
            if at >= *length {
                at -= length;
                continue;
            }
            let mut bytes = vec![0; (length - at).min(PIECE) as usize];
            File::open(path)?.read_exact_at(&mut bytes, at)?;
            return Ok(bytes);
        }
        Ok(Vec::new())
    }
}

/// Who lacks a tenth of the content lacks a piece with a chance of four in five.
const PIECES: u16 = 16;
const PIECE: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn content(folder: &std::path::Path, names: &[&str], seed: u8) -> Content {
        let mut content = Content::default();
        for name in names {
            let path = folder.join(name);
            let bytes: Vec<u8> = (0..10_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ seed).collect();
            std::fs::write(&path, &bytes).expect("room");
            content.add((*name).to_owned(), 10_000, path);
        }
        content
    }

    #[test]
    fn the_same_content_has_the_same_proof_wherever_it_lies_and_no_other_does() {
        let [here, there] = [(), ()].map(|()| tempfile::tempdir().expect("a temporary folder"));
        let sent = content(here.path(), &["a", "b", "c"], 0);
        let got = content(there.path(), &["c", "a", "b"], 0);
        let proof = |content: &Content, receiver: u8, tsi| content.proof(&[receiver; 32], tsi).expect("readable");
        assert_eq!(proof(&sent, 1, 7), proof(&got, 1, 7));
        assert!(proof(&sent, 1, 7) != proof(&sent, 2, 7) && proof(&sent, 1, 7) != proof(&sent, 1, 8));
        let other = content(there.path(), &["a", "b", "c"], 1);
        assert_ne!(proof(&sent, 1, 7), proof(&other, 1, 7));
        let empty = Content::default();
        assert_eq!(proof(&empty, 1, 7), proof(&empty, 1, 7));
        let mut again = content(there.path(), &["a", "b", "c"], 0);
        again.add("b".to_owned(), 10_000, there.path().join("b"));
        assert_eq!(proof(&again, 1, 7), proof(&sent, 1, 7), "a file that came twice counts once");
    }
}
