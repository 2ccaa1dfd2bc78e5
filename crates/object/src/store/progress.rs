//! How far a session is, and whether anything is to come yet.

use std::collections::HashSet;

use super::incoming::{Block, Incoming};
use super::{FileState, Store};
use crate::manifest::Edition;

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Which set it is of, and which start of the sender, by the last table that counts.
    pub edition: Option<Edition>,
    /// Whether all of the manifest is here, so that the totals are known.
    pub manifest_complete: bool,
    /// Files that the manifest names, as far as it is here.
    pub files_total: u64,
    /// Files that are complete, verified, and have their name.
    pub files_done: u64,
    /// Files that will not come, each told by an [`super::Event::Refused`].
    pub files_refused: u64,
    /// Bytes of all files that are not refused.
    pub bytes_needed: u64,
    /// Bytes of them that are here, in files or in symbols that will become files.
    pub bytes_useful: u64,
    /// Nothing is missing but decoding or checking: every block that is not done has symbols enough, and some to spare if it is decoded.
    pub only_decodes: bool,
    /// Nothing is missing at all: every block of every file is here and known to be right, and files are still to be written.
    pub has_everything: bool,
    /// Symbols that were of use when they came.
    pub useful_symbols: u64,
    /// Symbols that were not: duplicates, or of blocks and files that are complete.
    pub surplus_symbols: u64,
    /// Symbols of objects that nothing was known of, and for which there was no room.
    pub early_symbols_dropped: u64,
    /// Packets that contradict what is known of their object.
    pub rejected_packets: u64,
    /// Instances of the table that bore no valid signature, or made no sense.
    pub rejected_manifests: u64,
    /// Signed instances of the table that have expired, or are of an earlier start of the sender.
    pub old_manifests: u64,
    /// Blocks that were not what the manifest says, and were collected again.
    pub bad_blocks: u64,
    /// Symbols that were thrown away with them.
    pub discarded_symbols: u64,
    /// Symbols that were decoded to find out which of them are wrong.
    pub tried_symbols: u64,
    /// Symbols of such blocks that came from others than the sender, and were not taken.
    pub refused_symbols: u64,
    /// Blocks that had to be decoded.
    pub decoded_blocks: u64,
    /// Bytes of memory, about, that all take which waits: parts of tables, early packets, files and the maps of their blocks.
    pub waiting_bytes: u64,
}

impl Store {
    /// Whether all of the manifest is here.
    pub(super) fn manifest_complete(&self) -> bool {
        match &self.set {
            Some(set) => {
                let [objects, folders, links] = self.unusable.each_ref().map(HashSet::len);
                (self.objects.len() + objects) as u64 >= set.objects
                    && (self.folders.len() + folders) as u64 >= set.folders
                    && (self.links.len() + links) as u64 >= set.links
            }
            None => !self.files.is_empty() || self.told_complete,
        }
    }

    /// Whether nothing more can come: every file of the manifest is done or refused.
    pub fn is_complete(&self) -> bool {
        self.manifest_complete() && self.without_oti.is_empty() && self.unfinished == 0
    }

    /// Whether the table is whole, and every block of every file that is incoming is like that.
    fn is_every_block(&self, is_so: impl Fn(&Incoming, u32, &Block) -> bool) -> bool {
        let is_file_so = |file: &FileState| match file {
            FileState::Incoming(incoming) => {
                (0..).zip(&incoming.blocks).all(|(number, block)| is_so(incoming, number, block))
            }
            _ => true,
        };
        self.manifest_complete() && self.without_oti.is_empty() && self.files.iter().all(is_file_so)
    }

    /// Whether nothing is missing but decoding or checking.
    fn only_decodes(&self) -> bool {
        self.unfinished > 0 && self.is_every_block(|_, _, block| block.done || block.only_decodes())
    }

    /// Whether every block is here and right.
    fn has_everything(&self) -> bool {
        self.is_every_block(|incoming, number, block| {
            block.done && !block.unchecked && incoming.spec.expected(number).is_some()
        })
    }

    /// How far the session is. Walks all files; meant for displays, not for every packet.
    pub fn progress(&self) -> Progress {
        let waiting_bytes = self.budget.used() + self.fdt.used();
        let mut progress = Progress {
            manifest_complete: self.manifest_complete(),
            only_decodes: self.only_decodes(),
            has_everything: self.has_everything(),
            waiting_bytes,
            ..self.counts
        };
        for file in &self.files {
            match file {
                FileState::Unpacked { done, refused, bytes } => {
                    progress.files_total += done + refused;
                    progress.files_done += done;
                    progress.files_refused += refused;
                    progress.bytes_needed += bytes;
                    progress.bytes_useful += bytes;
                }
                FileState::Done { bytes } => {
                    progress.files_total += 1;
                    progress.files_done += 1;
                    progress.bytes_needed += bytes;
                    progress.bytes_useful += bytes;
                }
                FileState::Refused => {
                    progress.files_total += 1;
                    progress.files_refused += 1;
                }
                FileState::Incoming(incoming) => {
                    let bundle = incoming.spec.bundle;
                    let bytes = incoming.spec.length - bundle.map_or(0, |bundle| bundle.index_bytes);
                    progress.files_total += bundle.map_or(1, |bundle| bundle.files);
                    let unpacking = incoming.unpacking.as_ref();
                    progress.files_done += unpacking.map_or(0, |unpacking| unpacking.done);
                    progress.files_refused += unpacking.map_or(0, |unpacking| unpacking.refused);
                    progress.bytes_needed += bytes;
                    progress.bytes_useful += incoming.bytes().min(bytes);
                }
            }
        }
        progress
    }
}
