//! A bundle as a source: an index, and the files behind it, which are read where they lie.
//!
//! Not here: what an index says ([`crate::bundle`]), which files go into a bundle (`carousel/pack.rs`).

use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use weir_units::Hex;

use super::{Open, SourceError, SourceFile, Stamp, hashing};
use crate::attributes::Attributes;
use crate::bundle::{BUNDLE_NAME, BundleEntry};
use crate::name::Name;
use crate::pieces::{self, LEAF};

/// The content of a bundle.
#[derive(Debug)]
pub(crate) struct Bundled {
    index: Vec<u8>,
    /// Its files and where the bytes of each start.
    files: Vec<(u64, SourceFile)>,
}

impl SourceFile {
    /// A bundle of these files, whose bytes follow each other behind `index`. Reads all of them.
    pub(crate) fn bundle(index: Vec<u8>, files: Vec<SourceFile>) -> Result<SourceFile, SourceError> {
        let mut end = index.len() as u64;
        let starts = files.into_iter().map(|file| {
            let start = end;
            end += file.length;
            (start, file)
        });
        let files = starts.collect();
        let bundled = Bundled { index, files };
        let mut bundle = SourceFile {
            path: PathBuf::new(),
            name: Name::new("weir-bundle").expect("a plain name"),
            length: end,
            digest: [0; 32],
            md5: None,
            attributes: Attributes::default(),
            stamp: Stamp::default(),
            leaves: Arc::new([]),
            zeros: Arc::new([]),
            bundled: Some(Arc::new(bundled)),
        };
        let own = || Open::Bundle(None);
        let read = |open: &mut Open, bytes: &mut [u8], at| bundle.read(open, bytes, at);
        let leaves = hashing::leaves(end, own, read, &mut |_| ControlFlow::Continue(()))?;
        bundle.digest = if end <= LEAF { bundle.digest_of_leaf()? } else { pieces::file_digest(end, &leaves.values) };
        bundle.leaves = leaves.values.into();
        // By its content, so that a receiver that comes back finds what it has of it, whatever its number.
        let name = format!("{BUNDLE_NAME}{}", Hex(&bundle.digest[..16]));
        bundle.name = Name::new(&name).expect("a plain name");
        Ok(bundle)
    }

    /// The digest of one that is no longer than a leaf, whose value is not its digest.
    fn digest_of_leaf(&self) -> Result<[u8; 32], SourceError> {
        let mut bytes = vec![0; self.length as usize];
        self.read(&mut self.open()?, &mut bytes, 0)?;
        Ok(*blake3::hash(&bytes).as_bytes())
    }

    /// What is in it, if it is a bundle.
    pub(crate) fn bundle_entry(&self) -> Option<BundleEntry> {
        let Bundled { index, files } = &**self.bundled.as_ref()?;
        Some(BundleEntry::new(files.len() as u64, index))
    }
}

impl Bundled {
    /// Reads its bytes from `at` on; `last` is which of its files was read last.
    pub(super) fn read(&self, last: &mut Option<(usize, File)>, bytes: &mut [u8], at: u64) -> Result<(), SourceError> {
        let of_index = (self.index.len() as u64).saturating_sub(at).min(bytes.len() as u64) as usize;
        let (of_index, mut rest) = bytes.split_at_mut(of_index);
        if !of_index.is_empty() {
            of_index.copy_from_slice(&self.index[at as usize..][..of_index.len()]);
        }
        let mut at = at + of_index.len() as u64;
        let mut number = self.files.partition_point(|(start, file)| start + file.length <= at);
        while !rest.is_empty() {
            let (start, file) = &self.files[number];
            let (now, later) = rest.split_at_mut(((start + file.length - at) as usize).min(rest.len()));
            if last.as_ref().is_none_or(|(open, _)| *open != number) {
                *last = Some((number, file.open_file()?));
            }
            let (_, open) = last.as_ref().expect("was just opened");
            file.read_file(open, now, at - start)?;
            at += now.len() as u64;
            rest = later;
            number += 1;
            while !rest.is_empty() && self.files[number].1.length == 0 {
                number += 1;
            }
        }
        Ok(())
    }
}
