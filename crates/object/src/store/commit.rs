//! From a file that is written to one that outlives a loss of power.
//!
//! Files of bundles take their names many at a time, so that one `syncfs` does for all of them: it writes the content of those through to the disk
//! that still have a working name, which take their own then, and the names of those that took theirs before, which are done then.

use std::io;

use super::incoming::Spec;
use super::unpack::State;
use super::{Event, FileState, RefuseReason, Store, StoreError, folder};
use crate::name::Name;

/// Files that are written and are not yet certain to outlive the machine.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Those that have their content under a working name.
    written: Vec<Written>,
    /// Those that have taken their name since: they are done after the next `syncfs`.
    renamed: Vec<Written>,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Written {
    pub(super) bundle: u32,
    pub(super) number: usize,
    pub(super) name: Name,
    pub(super) bytes: u64,
    pub(super) digest: [u8; 32],
}

impl Batch {
    /// A file has its content under its working name.
    pub(super) fn push(&mut self, file: Written) {
        self.bytes += file.bytes;
        self.written.push(file);
    }

    /// Whether it should wait for no more files.
    pub(super) fn is_large(&self) -> bool {
        self.written.len() >= BATCH_FILES || self.bytes >= BATCH_BYTES
    }

    fn is_empty(&self) -> bool {
        self.written.is_empty() && self.renamed.is_empty()
    }
}

impl Store {
    /// Has files of bundles that are written take their names, and those that took them before count as done: what is told of them outlives
    /// a loss of power. Call it about once a second, so that files that come slowly do not wait for others; enough of them do without.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.bundles.batch.is_empty() {
            return Ok(());
        }
        if self.options.sync {
            let path = self.folder.path();
            self.folder.sync().map_err(|source| StoreError::Folder { path: path.to_owned(), source })?;
        }
        for Written { bundle, number, name, bytes, digest } in std::mem::take(&mut self.bundles.batch.renamed) {
            self.settle_member(bundle, number, State::Done, bytes);
            self.event(Event::Done { name, bytes, digest: Some(digest), already_there: false });
        }
        self.bundles.batch.bytes = 0;
        for written in std::mem::take(&mut self.bundles.batch.written) {
            match self.name_member(&written.name) {
                Ok(()) => self.bundles.batch.renamed.push(written),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.settle_member(written.bundle, written.number, State::Refused, 0);
                    let (name, reason) = (written.name.to_string(), RefuseReason::TargetExists);
                    self.event(Event::Refused { name, reason });
                }
                Err(error) => return Err(self.io_error(written.name, error)),
            }
        }
        // Somebody may put another in its place until the next batch.
        self.bundles.parent = None;
        Ok(())
    }

    /// The same for all of them.
    pub(super) fn commit_all(&mut self) -> Result<(), StoreError> {
        self.commit()?;
        self.commit()
    }

    fn name_member(&mut self, name: &Name) -> io::Result<()> {
        let parent = self.bundles.parent(&self.folder, name)?;
        let last = name.split().1;
        folder::rename_at(&parent.folder, &Spec::partial_name(last), last, self.options.overwrite)?;
        if self.options.sync && parent.is_elsewhere { folder::sync_folder(&parent.folder) } else { Ok(()) }
    }

    fn settle_member(&mut self, bundle: u32, number: usize, state: State, bytes: u64) {
        if let FileState::Incoming(incoming) = &mut self.files[bundle as usize]
            && let Some(unpacking) = &mut incoming.unpacking
        {
            unpacking.settle(number, state, bytes);
        }
    }
}

/// So many files, or bytes of them, take their names together.
const BATCH_FILES: usize = 4096;
const BATCH_BYTES: u64 = 32 << 20;
