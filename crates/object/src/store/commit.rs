//! From a file that is written to one that outlives a loss of power.
//!
//! Files of bundles take their names many at a time, so that one `syncfs` does for all of them: it writes the content of those through to the disk
//! that still have a working name, which take their own then, and the names of those that took theirs before, which are done then. That may take
//! a second: where threads decode blocks, another thread waits for the disk, and the store takes symbols meanwhile.

use std::io;
use std::thread::JoinHandle;

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

/// One of them: which file of which bundle.
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

/// What the system writes through to the disk.
#[derive(Debug)]
pub(super) struct Syncing {
    /// What was there when it began.
    covered: Batch,
    thread: JoinHandle<io::Result<()>>,
}

impl Store {
    /// Has files of bundles that are written take their names, and those that took them before count as done: what is told of them outlives
    /// a loss of power. Call it about once a second, so that files that come slowly do not wait for others; enough of them do without.
    ///
    /// Where threads decode blocks ([`super::StoreOptions::decoding_threads`]) it does not wait for the disk: what follows is done by
    /// [`Store::flush`], [`Store::unpack_some`] or the next call.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn commit(&mut self) -> Result<(), StoreError> {
        self.take_synced()?;
        if self.is_syncing() || self.bundles.batch.is_empty() {
            return Ok(());
        }
        if self.options.sync && self.unpacks_later() && self.begin_sync() {
            return Ok(());
        }
        let synced = if self.options.sync { self.folder.sync() } else { Ok(()) };
        let covered = std::mem::take(&mut self.bundles.batch);
        self.after_sync(covered, synced)
    }

    /// Waits until all files that are written are done.
    pub(super) fn commit_all(&mut self) -> Result<(), StoreError> {
        while self.is_syncing() || !self.bundles.batch.is_empty() {
            self.finish_sync()?;
            self.commit()?;
        }
        Ok(())
    }

    /// Whether the system writes files of bundles through to the disk, on a thread of its own. When it has, more is to be done.
    pub fn is_syncing(&self) -> bool {
        self.bundles.syncing.is_some()
    }

    /// Has the system write all of the batch through to the disk meanwhile; whether it could be asked to.
    fn begin_sync(&mut self) -> bool {
        let Ok(folder) = self.folder.descriptor() else { return false };
        let thread = std::thread::Builder::new().name("sync".into()).spawn(move || folder::sync_file_system(&folder));
        let Ok(thread) = thread else { return false };
        let covered = std::mem::take(&mut self.bundles.batch);
        self.bundles.syncing = Some(Syncing { covered, thread });
        true
    }

    /// Goes on with what the system has written through to the disk, if it has.
    pub(super) fn take_synced(&mut self) -> Result<(), StoreError> {
        let is_over = self.bundles.syncing.as_ref().is_some_and(|syncing| syncing.thread.is_finished());
        if is_over { self.finish_sync() } else { Ok(()) }
    }

    /// The same, and waits until it has.
    fn finish_sync(&mut self) -> Result<(), StoreError> {
        let Some(Syncing { covered, thread }) = self.bundles.syncing.take() else { return Ok(()) };
        let synced = thread.join().expect("a system call does not panic");
        self.after_sync(covered, synced)
    }

    /// Takes the files that a sync covered one step further, if it succeeded.
    fn after_sync(&mut self, covered: Batch, synced: io::Result<()>) -> Result<(), StoreError> {
        let path = self.folder.path();
        synced.map_err(|source| StoreError::Folder { path: path.to_owned(), source })?;
        for Written { bundle, number, name, bytes, digest } in covered.renamed {
            self.settle_member(bundle, number, State::Done, bytes);
            self.event(Event::Done { name, bytes, digest: Some(digest), already_there: false });
        }
        for written in covered.written {
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
