//! Bundles: many small files as one object, so that a file costs some bytes and not an object of its own.
//!
//! A bundle is an index and after it the content of the files, one behind the other in the order of the index. The table says how many
//! bytes of it the index takes, what it hashes to, and how many files are in it: nothing reads an index that is not what the table says.
//!
//! Names grow from entry to entry, so none comes twice. The lengths of the files before it say where a file's bytes are: files can neither
//! overlap nor leave a gap, and together they fill the rest of the bundle. docs/wire.md has the layout of the index.
//!
//! Not here: which files go into a bundle, and where they are put.

use std::ops::Range;

use crate::attributes::{Attributes, Modified};
use crate::links::{FolderEntry, LinkEntry, LinkError};
use crate::name::{Name, NameError, shorten};

/// What the table says of a bundle besides what it says of any object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleEntry {
    /// Files in it.
    pub files: u64,
    /// Bytes of its index.
    pub index_bytes: u64,
    /// BLAKE3 over its index, so that it can be read before the rest of its blocks is there.
    pub index_digest: [u8; 32],
}

impl BundleEntry {
    /// What the table says of a bundle of `files` files with this index.
    pub(crate) fn new(files: u64, index: &[u8]) -> BundleEntry {
        BundleEntry { files, index_bytes: index.len() as u64, index_digest: *blake3::hash(index).as_bytes() }
    }
}

/// What is in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Index {
    /// In the order of their bytes.
    pub(crate) files: Vec<Member>,
    pub(crate) folders: Vec<FolderEntry>,
    pub(crate) links: Vec<LinkEntry>,
}

/// A file in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: Name,
    /// Where its bytes start in the bundle.
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) digest: [u8; 32],
    pub(crate) attributes: Attributes,
}

impl Member {
    /// Its bytes in the bundle.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.length
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory(&self) -> u64 {
        (size_of::<Member>() + self.name.as_bytes().len() + ALLOCATION) as u64
    }
}

/// One entry, before it is known where its bytes are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry<'a> {
    File { name: &'a Name, attributes: Attributes, length: u64, digest: &'a [u8; 32] },
    Folder(&'a FolderEntry),
    Link(&'a LinkEntry),
}

impl<'a> Entry<'a> {
    pub(crate) fn name(&self) -> &'a Name {
        match self {
            Entry::File { name, .. } => name,
            Entry::Folder(folder) => &folder.name,
            Entry::Link(link) => &link.name,
        }
    }

    /// Bytes of files.
    pub(crate) fn length(&self) -> u64 {
        if let Entry::File { length, .. } = self { *length } else { 0 }
    }
}

/// The index of these entries, which are in the order of their names, compressed.
pub(crate) fn pack(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = (entries.len() as u32).to_be_bytes().to_vec();
    let mut before: &[u8] = &[];
    for entry in entries {
        let name = entry.name().as_bytes();
        let (kind, attributes) = match entry {
            Entry::File { attributes, .. } => (FILE, *attributes),
            Entry::Folder(folder) => (FOLDER, folder.attributes),
            Entry::Link(_) => (LINK, Attributes::default()),
        };
        let common = name.iter().zip(before).take_while(|(one, other)| one == other).count();
        out.push(kind);
        out.extend((common as u16).to_be_bytes());
        put_text(&mut out, &name[common..]);
        out.extend(attributes.mode.unwrap_or(u16::MAX).to_be_bytes());
        let Modified { secs, nanos } = attributes.modified.unwrap_or(NO_TIME);
        out.extend(secs.to_be_bytes());
        out.extend(nanos.to_be_bytes());
        match entry {
            Entry::File { length, digest, .. } => {
                out.extend(length.to_be_bytes());
                out.extend(*digest);
            }
            Entry::Link(link) => put_text(&mut out, &link.target),
            Entry::Folder(_) => {}
        }
        before = name;
    }
    deflate(&out)
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u16).to_be_bytes());
    out.extend(text);
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes every byte")
}

impl Index {
    /// Reads the index of a bundle of `length` bytes, of which the table says `entry`. Takes no more memory than an index of that many files
    /// may.
    ///
    /// # Errors
    /// [`BundleError`] for an index that contradicts itself or the table.
    pub(crate) fn read(packed: &[u8], entry: BundleEntry, length: u64) -> Result<Index, BundleError> {
        if *blake3::hash(packed).as_bytes() != entry.index_digest {
            return Err(BundleError::Index);
        }
        let bytes = unpack(packed)?;
        let mut reader = Reader { bytes: &bytes };
        let count = reader.number::<4>()?;
        // What so few bytes cannot hold is not looked for.
        if count > (bytes.len() / LEAST_ENTRY) as u64 || count > MAX_ENTRIES as u64 {
            return Err(BundleError::Count { count });
        }
        let (mut index, mut before, mut end) = (Index::default(), Vec::new(), entry.index_bytes);
        for _ in 0..count {
            index.read_entry(&mut reader, &mut before, &mut end)?;
        }
        if !reader.bytes.is_empty() {
            return Err(BundleError::Malformed);
        }
        if end != length {
            return Err(BundleError::Cover { named: end, length });
        }
        if index.files.len() as u64 != entry.files {
            return Err(BundleError::Count { count: index.files.len() as u64 });
        }
        Ok(index)
    }

    fn read_entry(&mut self, reader: &mut Reader<'_>, before: &mut Vec<u8>, end: &mut u64) -> Result<(), BundleError> {
        let kind = reader.number::<1>()? as u8;
        let name = reader.name(before)?;
        let mode = reader.number::<2>()? as u16;
        let secs = reader.number::<8>()? as i64;
        let nanos = reader.number::<4>()? as u32;
        let attributes = Attributes {
            mode: (mode != u16::MAX).then_some(mode & crate::attributes::PERMISSIONS as u16),
            modified: (nanos < 1_000_000_000).then_some(Modified { secs, nanos }),
            sparse: false,
        };
        match kind {
            FILE => {
                let length = reader.number::<8>()?;
                let digest = *reader.take(32)?.first_chunk().ok_or(BundleError::Malformed)?;
                let start = *end;
                *end = start.checked_add(length).ok_or(BundleError::Malformed)?;
                self.files.push(Member { name, start, length, digest, attributes });
            }
            FOLDER => self.folders.push(FolderEntry { name, attributes }),
            LINK => {
                let target = reader.text()?;
                let link = LinkEntry::new(name, target);
                self.links.push(link.map_err(|source| BundleError::Link { target: shorten(target), source })?);
            }
            _ => return Err(BundleError::Malformed),
        }
        Ok(())
    }

    /// The files of which bytes are in this range.
    pub(crate) fn files_in(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.files.partition_point(|file| file.range().end <= range.start);
        let after = self.files.partition_point(|file| file.start < range.end);
        first..after.max(first)
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory(&self) -> u64 {
        self.files.iter().map(Member::memory).sum()
    }
}

/// Bytes that are read from the front.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], BundleError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(BundleError::Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<u64, BundleError> {
        Ok(self.take(N)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn text(&mut self) -> Result<&'a [u8], BundleError> {
        let length = self.number::<2>()?;
        self.take(length as usize)
    }

    /// The next name, which has to be after the one before.
    fn name(&mut self, before: &mut Vec<u8>) -> Result<Name, BundleError> {
        let common = self.number::<2>()? as usize;
        let rest = self.text()?;
        let bytes = [before.get(..common).ok_or(BundleError::Malformed)?, rest].concat();
        let name = Name::new(&bytes)?;
        if bytes <= *before {
            return Err(BundleError::Order { name: shorten(&bytes) });
        }
        *before = bytes;
        Ok(name)
    }
}

/// Inflates an index, if that gives no more than any index may.
fn unpack(packed: &[u8]) -> Result<Vec<u8>, BundleError> {
    use std::io::Read;
    let mut out = Vec::new();
    let mut unpacker = flate2::bufread::DeflateDecoder::new(packed).take(MAX_INDEX_BYTES as u64 + 1);
    unpacker.read_to_end(&mut out).map_err(|_| BundleError::Malformed)?;
    if out.len() > MAX_INDEX_BYTES {
        return Err(BundleError::TooLarge);
    }
    // Nothing may hide behind its end.
    if unpacker.into_inner().total_in() != packed.len() as u64 {
        return Err(BundleError::Malformed);
    }
    Ok(out)
}

/// Why the index of a bundle cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// It ends too early, or has what no index has.
    #[error("its index is malformed")]
    Malformed,
    /// It is too large when it is unpacked.
    #[error("its index takes more than {} MB when it is unpacked", MAX_INDEX_BYTES >> 20)]
    TooLarge,
    /// It has another number of entries than it can have, or than the table says.
    #[error("its index says that {count} files are in it, which cannot be")]
    Count {
        /// The number.
        count: u64,
    },
    /// The files do not fill the bundle.
    #[error("its index speaks of {named} bytes and there are {length}")]
    Cover {
        /// Bytes up to the end of the last file.
        named: u64,
        /// Bytes of the bundle.
        length: u64,
    },
    /// The index is not the one that the table speaks of.
    #[error("its index is not what the table says")]
    Index,
    /// A file of it is not what the index says.
    #[error("it is not what the index of its bundle says")]
    Digest,
    /// A name comes twice, or before another that it is after.
    #[error("its index names {name:?} twice or out of order")]
    Order {
        /// The name, cut short.
        name: String,
    },
    /// A name is refused.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A link is refused.
    #[error("its index has a link to {target:?}: {source}")]
    Link {
        /// Where it leads, cut short.
        target: String,
        /// What is wrong.
        source: LinkError,
    },
}

/// What the names of bundles begin with; after it comes what their content hashes to.
pub(crate) const BUNDLE_NAME: &str = "weir-bundle-";
/// Files below this number in a set travel each as an object of its own: a table of so few is a few packets, and receivers of other makers
/// get them.
pub(crate) const FEWEST_FILES: usize = 32;
/// Most bytes of a bundle besides its index, about: large enough that the index, which a receiver that comes back asks for first, is a small part,
/// and that a set of many files is still few objects.
pub(crate) const BUNDLE_BYTES: u64 = 64 << 20;
/// Most entries of a bundle: with files of 2 kB, as many as fill it. A receiver has them in memory.
pub(crate) const MAX_ENTRIES: usize = 1 << 15;
/// Most bytes of an index when it is unpacked: names are up to 3000 bytes long, and share most of them.
pub(crate) const MAX_INDEX_BYTES: usize = 16 << 20;
/// Bytes of entries in an index, about, from which on another bundle begins.
pub(crate) const INDEX_BYTES: usize = 8 << 20;
/// Bytes of an entry without its name and target.
pub(crate) const ENTRY_BYTES: usize = 1 + 2 + 2 + 2 + 8 + 4 + 8 + 32;
const LEAST_ENTRY: usize = 1 + 2 + 2 + 2 + 8 + 4;
/// What an allocation takes besides its bytes.
const ALLOCATION: usize = 16;

const FILE: u8 = 0;
const FOLDER: u8 = 1;
const LINK: u8 = 2;
const NO_TIME: Modified = Modified { secs: 0, nanos: u32::MAX };

#[cfg(test)]
mod tests;
