//! What stays of bundles whose files are in their places: their indexes, until the session is done with the set.
//!
//! A receiver that is killed then learns from its folder, and not from the sender, which files it has. When a receiver closes whose set is
//! complete, all working files of bundles of its session go: those of the set, and those of others that the sender offered before.

use std::ffi::OsStr;
use std::io;

use nix::fcntl::{Flock, FlockArg};

use super::folder::{How, OutFolder};
use super::incoming::{Incoming, Spec};
use super::journal::{BlockState, Journal, Session};
use super::{Store, StoreError};
use crate::bundle::BUNDLE_NAME;
use crate::keys::PublicKey;
use crate::name;

impl Incoming {
    /// The number of blocks that hold its index.
    pub(super) fn index_blocks(&self) -> usize {
        let end = self.spec.bundle.map_or(0, |bundle| bundle.index_bytes);
        self.blocks.partition_point(|block| block.start < end)
    }

    /// Whether a working file of so many bytes is what [`Incoming::keep_index`] leaves of this one.
    pub(super) fn is_index(&self, length: u64) -> bool {
        self.spec.bundle.is_some() && self.blocks.get(self.index_blocks()).is_some_and(|next| next.start == length)
    }

    /// Cuts the working file to the blocks that hold the index, which are right.
    pub(super) fn keep_index(&mut self, out: &OutFolder) -> io::Result<()> {
        self.reopen(out)?;
        let handles = self.handles.as_ref().expect("was just opened");
        let (index, rest) = self.blocks.split_at(self.index_blocks());
        for block in 0..index.len() as u32 {
            handles.journal.set_state(block, BlockState::Done)?;
        }
        let Some(first) = rest.first() else { return Ok(()) };
        // The journal first: it must not speak of what is not there. A block is open when nothing is in its slots.
        let slots: usize = rest.iter().map(|block| block.symbols as usize).sum();
        handles.journal.write_slots(first.first_slot, &vec![0; slots * super::slots::ENTRY])?;
        for block in index.len()..self.blocks.len() {
            handles.journal.set_state(block as u32, BlockState::Open)?;
        }
        handles.data.set_len(first.start)
    }
}

impl Store {
    /// Removes the working files of bundles of this session, if the set is complete.
    pub(super) fn remove_bundles(&self) -> Result<(), StoreError> {
        if self.set.is_none() || !self.is_complete() {
            return Ok(());
        }
        let removed = self.folder.names().and_then(|names| {
            let partial = names.iter().filter_map(|name| name.to_str()?.strip_suffix(name::PARTIAL));
            partial.filter(|name| is_bundle(name)).try_for_each(|name| self.remove_bundle(name.as_ref()))
        });
        removed.map_err(|source| StoreError::Folder { path: self.folder.path().to_owned(), source })
    }

    fn remove_bundle(&self, name: &OsStr) -> io::Result<()> {
        let (partial, journal) = (Spec::partial_name(name), Spec::journal_name(name));
        let Ok(Some(data)) = self.folder.open_own(&partial, How::Read) else { return Ok(()) };
        // Somebody else is receiving it.
        let Ok(_lock) = Flock::lock(data, FlockArg::LockExclusiveNonblock) else { return Ok(()) };
        let session = match self.folder.open_own(&journal, How::Read)? {
            Some(file) => Journal::session_of(&file)?,
            None => None,
        };
        // Without a journal it is of no use to any session.
        if session.is_none_or(|session| session == self.session) {
            self.folder.remove_own(&partial)?;
            self.folder.remove_own(&journal)?;
        }
        Ok(())
    }
}

/// What tells the working files of one session from those of another in the same folder.
pub(super) fn session(tsi: u64, key: Option<&PublicKey>) -> Session {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&tsi.to_be_bytes());
    if let Some(key) = key {
        hasher.update(&key.to_bytes());
    }
    *hasher.finalize().as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes")
}

/// Whether a bundle is received under this name.
fn is_bundle(name: &str) -> bool {
    let digest = name.strip_prefix(BUNDLE_NAME);
    digest.is_some_and(|digest| digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
