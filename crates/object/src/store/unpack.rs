//! From a bundle to the files that are in it.
//!
//! A bundle is received as any object. Once its index is there, it is read; from then on a file is written as soon as the blocks that hold it
//! are right, or before (`ahead.rs`): under a working name, and it takes its own with others (`commit.rs`). What is there already is not written
//! again, and the blocks in which nothing else is are not waited for. Until all of its files are in their places the bundle's partial file stays,
//! so a receiver that is killed loses nothing; then its index does (`kept.rs`).
//!
//! Not here: what an index may say ([`crate::bundle`]).

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::admit::Target;
use super::commit::{Batch, Syncing, Written};
use super::digest;
use super::folder::{self, OutFolder};
use super::incoming::Spec;
use super::{Event, FileState, RefuseReason, Store, StoreError};
use crate::bundle::{BundleError, Index, Member};
use crate::name::Name;

/// How far the files of a bundle are.
#[derive(Debug)]
pub(crate) struct Unpacking {
    /// What is in it; not in memory where there is no room for it. Then it is unpacked at the end.
    pub(super) index: Option<Index>,
    pub(super) states: Vec<State>,
    pub(crate) done: u64,
    pub(crate) refused: u64,
    /// Bytes of the files that are done.
    pub(crate) bytes: u64,
}

/// How far a file of a bundle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody has looked whether it is in its place already.
    Unseen,
    Waiting,
    /// What was there before its blocks were right was not what the index says.
    Doubtful,
    /// It is written, and in the batch.
    Written,
    Done,
    Refused,
}

impl Unpacking {
    /// Bytes of memory that the index takes, about.
    pub(crate) fn memory(&self) -> u64 {
        self.index.as_ref().map_or(0, Index::memory)
    }

    /// The first file that is not written, if the index is in memory.
    pub(super) fn waiting(&self) -> Option<usize> {
        self.index.as_ref()?;
        self.states.iter().position(|state| matches!(state, State::Unseen | State::Waiting | State::Doubtful))
    }

    /// Whether files are written that are not done.
    pub(super) fn is_uncommitted(&self) -> bool {
        self.states.contains(&State::Written)
    }

    /// The first file for which nobody has looked.
    pub(super) fn unseen(&self) -> Option<usize> {
        self.states.iter().position(|state| *state == State::Unseen)
    }

    pub(super) fn settle(&mut self, number: usize, state: State, bytes: u64) {
        self.states[number] = state;
        match state {
            State::Done => (self.done, self.bytes) = (self.done + 1, self.bytes + bytes),
            State::Refused => self.refused += 1,
            State::Unseen | State::Waiting | State::Doubtful | State::Written => {}
        }
    }
}

/// What lasts from bundle to bundle of a set.
#[derive(Debug, Default)]
pub(crate) struct Bundles {
    /// Files in all of them.
    pub(crate) files: u64,
    /// Bundles whose index has not been read.
    pub(crate) unread: usize,
    /// Hashes of the names in them, with a key that nobody knows.
    names: HashSet<u64>,
    key: RandomState,
    pub(super) batch: Batch,
    pub(super) syncing: Option<Syncing>,
    pub(super) parent: Option<Parent>,
    /// Bytes of bundles that came since files were last looked for that are there.
    pub(super) arrived: VecDeque<(u32, Range<u64>)>,
    /// Bundles whose index was read, and some of whose files may be there already: nobody has looked.
    pub(super) unseen: VecDeque<u32>,
    /// Bundles of which nothing is missing, and some of whose files are not written yet.
    pub(super) whole: VecDeque<u32>,
}

/// The folder in which the last file was: mostly that of the next.
#[derive(Debug, Clone)]
pub(super) struct Parent {
    path: Vec<u8>,
    pub(super) folder: Arc<OwnedFd>,
    /// Whether it is on another file system than the output folder.
    pub(super) is_elsewhere: bool,
}

impl Bundles {
    /// Whether a file of this name is in one of them.
    pub(crate) fn has(&self, name: &Name) -> bool {
        !self.names.is_empty() && self.names.contains(&self.key.hash_one(name))
    }

    /// Another set begins.
    pub(crate) fn clear(&mut self) {
        *self = Bundles::default();
    }

    pub(super) fn parent(&mut self, out: &OutFolder, name: &Name) -> io::Result<Parent> {
        let (path, _) = name.split();
        if let Some(parent) = self.parent.as_ref().filter(|parent| parent.path == path) {
            return Ok(parent.clone());
        }
        let (folder, _) = out.parent(name)?;
        let is_elsewhere = !out.has_file_system_of(&folder)?;
        let parent = Parent { path: path.to_owned(), folder: Arc::new(folder), is_elsewhere };
        self.parent = Some(parent.clone());
        Ok(parent)
    }
}

impl Store {
    /// A bundle was begun, or is continued: what of its files is there already is not wanted again.
    pub(super) fn resume_bundle(&mut self, file: u32) -> Result<(), StoreError> {
        self.bundles.unread += 1;
        for index in 0..self.incoming(file).index_blocks() as u32 {
            self.check_block(file, index)?;
            let incoming = self.incoming(file);
            if !incoming.blocks[index as usize].done {
                let part = incoming.spec.parts[0];
                self.load_slots(file, index, &part)?;
            }
        }
        self.read_index(file)?;
        self.unpack_range(file, 0..u64::MAX)
    }

    /// A block of a bundle is right.
    pub(super) fn unpack_block(&mut self, file: u32, block: u32) -> Result<(), StoreError> {
        let incoming = self.incoming(file);
        let range = incoming.blocks[block as usize].range();
        if incoming.unpacking.is_some() {
            return self.unpack_range(file, range);
        }
        self.read_index(file)?;
        self.unpack_range(file, 0..u64::MAX)
    }

    /// Writes the files of a bundle that are in these bytes, or notes that they can be written.
    fn unpack_range(&mut self, file: u32, range: Range<u64>) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(()) };
        let Some(index) = incoming.unpacking.as_ref().and_then(|unpacking| unpacking.index.as_ref()) else {
            return Ok(());
        };
        if self.unpacks_later() {
            self.note_arrived(file, range);
            return Ok(());
        }
        let files = index.files_in(&range);
        self.unpack(file, files)
    }

    /// Whether files of bundles are left to [`Store::unpack_some`].
    pub(super) fn unpacks_later(&self) -> bool {
        self.options.decoding_threads > 0
    }

    /// All blocks of a bundle are there: unpacks what is left, and lets it go.
    pub(super) fn finish_bundle(&mut self, file: u32) -> Result<(), StoreError> {
        self.flush_data()?;
        self.window.forget(file);
        if self.incoming(file).unpacking.as_ref().is_some_and(|unpacking| unpacking.index.is_none()) {
            match self.load_index(file)? {
                Ok(index) => {
                    self.budget.force(index.memory());
                    self.incoming(file).unpacking.as_mut().expect("it was read before").index = Some(index);
                }
                Err(error) => return self.refuse_bundle(file, error),
            }
        }
        self.unpack(file, 0..usize::MAX)?;
        if self.incoming(file).left > 0 {
            // A block of an earlier run was wrong.
            return Ok(());
        }
        if self.incoming(file).unpacking.as_ref().is_some_and(|unpacking| unpacking.is_uncommitted()) {
            self.commit_all()?;
        }
        self.drop_bundle(file, true)
    }

    /// Reads the index of a bundle, once all of it is there. Where files are left to [`Store::unpack_some`], that looks later which of
    /// them are in their places: for a hundred thousand it takes a second, and packets must not wait so long.
    pub(super) fn read_index(&mut self, file: u32) -> Result<(), StoreError> {
        let incoming = self.incoming(file);
        let range = 0..incoming.spec.bundle.map_or(0, |bundle| bundle.index_bytes);
        if incoming.unpacking.is_some() || !incoming.has(&range, incoming.is_index_doubtful) {
            return Ok(());
        }
        let is_right = incoming.has(&range, true);
        let index = match self.load_index(file)? {
            Ok(index) => index,
            Err(BundleError::Index) if !is_right => {
                self.incoming(file).is_index_doubtful = true;
                return Ok(());
            }
            Err(error) => return self.refuse_bundle(file, error),
        };
        self.bundles.unread -= 1;
        // Folders go first, so that what is in them is never more open than they were.
        index.folders.iter().for_each(|folder| self.make_folder(folder));
        index.links.iter().for_each(|link| self.make_link(link));
        let states = vec![State::Unseen; index.files.len()];
        let mut unpacking = Unpacking { index: None, states, done: 0, refused: 0, bytes: 0 };
        for (number, member) in index.files.iter().enumerate() {
            let is_new = self.bundles.names.insert(self.bundles.key.hash_one(&member.name));
            if !is_new || self.by_name.contains_key(&member.name) {
                self.refuse_member(&mut unpacking, number, member, RefuseReason::NamedTwice);
            }
        }
        let has_room = self.budget.take(index.memory());
        unpacking.index = Some(index);
        self.incoming(file).unpacking = Some(Box::new(unpacking));
        if has_room && self.unpacks_later() {
            self.bundles.unseen.push_back(file);
        } else {
            self.see(file)?;
        }
        if !has_room {
            self.incoming(file).unpacking.as_mut().expect("was just set").index = None;
        }
        Ok(())
    }

    /// Looks which files of a bundle are in their places already.
    fn see(&mut self, file: u32) -> Result<(), StoreError> {
        self.with_index(file, |store, index, unpacking| {
            (0..index.files.len()).try_for_each(|number| store.see_member(unpacking, number, &index.files[number]))
        })?;
        self.cover(file)
    }

    /// Does something with the index of a bundle and the states of its files, if the index is in memory.
    fn with_index(
        &mut self,
        file: u32,
        act: impl FnOnce(&mut Store, &Index, &mut Unpacking) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &mut self.files[file as usize] else { return Ok(()) };
        let Some(mut unpacking) = incoming.unpacking.take_if(|unpacking| unpacking.index.is_some()) else {
            return Ok(());
        };
        let index = unpacking.index.take().expect("was just seen");
        let outcome = act(self, &index, &mut unpacking);
        unpacking.index = Some(index);
        self.incoming(file).unpacking = Some(unpacking);
        outcome
    }

    fn load_index(&mut self, file: u32) -> Result<Result<Index, BundleError>, StoreError> {
        self.open_handles(file)?;
        let incoming = self.incoming(file);
        let entry = incoming.spec.bundle.expect("only bundles have an index");
        let handles = incoming.handles.as_ref().expect("was just opened");
        let mut packed = vec![0; entry.index_bytes as usize];
        let read = handles.data.read_exact_at(&mut packed, 0);
        let length = incoming.spec.length;
        read.map_err(|source| self.file_error(file, source))?;
        Ok(Index::read(&packed, entry, length))
    }

    /// Looks whether a file is in its place, or cannot get there, if nobody has.
    fn see_member(&mut self, unpacking: &mut Unpacking, number: usize, member: &Member) -> Result<(), StoreError> {
        if unpacking.states[number] != State::Unseen {
            return Ok(());
        }
        let parent = self.bundles.parent(&self.folder, &member.name);
        let looked = parent
            .and_then(|parent| self.look_at(&parent.folder, member.name.split().1, member.length, Some(member.digest)));
        match looked {
            Ok(Target::Same) => {
                unpacking.settle(number, State::Done, member.length);
                let (name, bytes, digest) = (member.name.clone(), member.length, Some(member.digest));
                self.event(Event::Done { name, bytes, digest, already_there: true });
            }
            Ok(Target::Other) if !self.options.overwrite => {
                self.refuse_member(unpacking, number, member, RefuseReason::TargetExists);
            }
            Ok(Target::Missing | Target::Other) => unpacking.settle(number, State::Waiting, 0),
            Err(error) => {
                let reason = self.judge(&member.name, member.length, error)?;
                self.refuse_member(unpacking, number, member, reason);
            }
        }
        Ok(())
    }

    fn refuse_member(&mut self, unpacking: &mut Unpacking, number: usize, member: &Member, reason: RefuseReason) {
        unpacking.settle(number, State::Refused, 0);
        self.event(Event::Refused { name: member.name.to_string(), reason });
    }

    /// Does not wait for blocks in which nothing is that is still wanted. All files of the bundle have been looked for.
    pub(super) fn cover(&mut self, file: u32) -> Result<(), StoreError> {
        self.with_index(file, |store, index, unpacking| {
            let first = store.incoming(file).index_blocks();
            for number in first..store.incoming(file).blocks.len() {
                let block = &mut store.incoming(file).blocks[number];
                let states = &unpacking.states[index.files_in(&block.range())];
                if states.iter().all(|state| matches!(state, State::Done | State::Refused)) {
                    (block.unchecked, block.have) = (false, block.symbols);
                    if !block.done {
                        store.settle_block(file, number as u32);
                    }
                }
            }
            Ok(())
        })?;
        let is_whole = matches!(&self.files[file as usize], FileState::Incoming(incoming) if incoming.left == 0);
        if is_whole && self.unpacks_later() {
            self.note_whole(file);
        }
        Ok(())
    }

    /// Writes those of these files of a bundle that are there, and are not in their places already.
    pub(super) fn unpack(&mut self, file: u32, numbers: Range<usize>) -> Result<(), StoreError> {
        self.with_index(file, |store, index, unpacking| {
            for number in numbers.start..numbers.end.min(index.files.len()) {
                let member = &index.files[number];
                store.see_member(unpacking, number, member)?;
                let state = unpacking.states[number];
                if !matches!(state, State::Waiting | State::Doubtful) {
                    continue;
                }
                store.check_blocks(file, &member.range())?;
                if store.incoming(file).has(&member.range(), state == State::Doubtful) {
                    store.unpack_member(file, unpacking, number, member)?;
                }
            }
            Ok(())
        })?;
        if self.bundles.batch.is_large() { self.commit() } else { Ok(()) }
    }

    fn unpack_member(
        &mut self,
        file: u32,
        unpacking: &mut Unpacking,
        number: usize,
        member: &Member,
    ) -> Result<(), StoreError> {
        let reason = match self.write_member(file, member) {
            Ok(true) => {
                unpacking.settle(number, State::Written, 0);
                let (name, bytes, digest) = (member.name.clone(), member.length, member.digest);
                self.bundles.batch.push(Written { bundle: file, number, name, bytes, digest });
                return Ok(());
            }
            Ok(false) if !self.incoming(file).has(&member.range(), true) => {
                unpacking.settle(number, State::Doubtful, 0);
                return Ok(());
            }
            Ok(false) => BundleError::Digest.into(),
            Err(error) => self.judge(&member.name, member.length, error)?,
        };
        self.refuse_member(unpacking, number, member, reason);
        Ok(())
    }

    /// Writes a file under its working name; whether its content is what the index says.
    fn write_member(&mut self, file: u32, member: &Member) -> io::Result<bool> {
        let parent = self.bundles.parent(&self.folder, &member.name)?;
        let partial = Spec::partial_name(member.name.split().1);
        if self.incoming(file).handles.is_none() {
            self.open_handles(file).map_err(|error| io::Error::other(error.to_string()))?;
        }
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(false) };
        let bundle = &incoming.handles.as_ref().expect("was just opened").data;
        let is_small = member.length <= digest::READ_BUFFER as u64;
        // Nothing is made for what is wrong.
        if is_small && !read_small(bundle, member, &mut self.scratch)? {
            return Ok(false);
        }
        let out = folder::create_at(&parent.folder, &partial)?;
        let copied = if is_small {
            out.write_all_at(&self.scratch[..member.length as usize], 0).map(|()| true)
        } else {
            copy(bundle, &out, member, &mut self.scratch)
        };
        let is_right = copied.and_then(|is_right| {
            let refused = if is_right { member.attributes.apply(&out, self.umask)? } else { None };
            if self.options.sync && parent.is_elsewhere {
                out.sync_all()?;
            }
            Ok((is_right, refused))
        });
        match is_right {
            Ok((true, refused)) => {
                if let Some(error) = refused {
                    self.event(Event::AttributesRefused { name: member.name.to_string(), error });
                }
                Ok(true)
            }
            wrong => {
                // What it was written for failed already.
                let _ = folder::remove_at(&parent.folder, &partial);
                wrong.map(|(is_right, _)| is_right)
            }
        }
    }

    /// A full disk ends the session, anything else only the file.
    fn judge(&self, name: &Name, needed: u64, error: io::Error) -> Result<RefuseReason, StoreError> {
        use io::ErrorKind::{QuotaExceeded, ResourceBusy, StorageFull, WouldBlock};
        match error.kind() {
            StorageFull | QuotaExceeded => {
                let free = self.folder.free_bytes().unwrap_or(0);
                let path = self.folder.path().to_owned();
                Err(StoreError::DiskFull { path, name: name.clone(), needed, free })
            }
            WouldBlock | ResourceBusy => Ok(RefuseReason::InUse),
            _ => Ok(RefuseReason::Io(error)),
        }
    }

    /// Nothing of a bundle can be used.
    fn refuse_bundle(&mut self, file: u32, error: BundleError) -> Result<(), StoreError> {
        let incoming = self.incoming(file);
        let (name, files) = (incoming.spec.name.to_string(), incoming.spec.bundle.map_or(0, |bundle| bundle.files));
        if incoming.unpacking.is_none() {
            self.bundles.unread -= 1;
        }
        let states = Vec::new();
        let nothing = Unpacking { index: None, states, done: 0, refused: files, bytes: 0 };
        self.incoming(file).unpacking = Some(Box::new(nothing));
        self.event(Event::Refused { name, reason: error.into() });
        self.drop_bundle(file, false)
    }

    /// Nothing more is wanted of a bundle: its working files go, but for its index if that is of use.
    fn drop_bundle(&mut self, file: u32, is_of_use: bool) -> Result<(), StoreError> {
        self.window.forget(file);
        self.open_files.retain(|open| *open != file);
        self.changed.retain(|(changed, _)| *changed != file);
        let FileState::Incoming(mut incoming) = std::mem::replace(&mut self.files[file as usize], FileState::Refused)
        else {
            return Ok(());
        };
        self.unfinished -= 1;
        self.budget.give(incoming.memory());
        self.loaded_bytes -= incoming.map_memory();
        self.value_bytes -= incoming.value_memory();
        let (done, refused, bytes) =
            incoming.unpacking.as_ref().map_or((0, 0, 0), |it| (it.done, it.refused, it.bytes));
        self.files[file as usize] = FileState::Unpacked { done, refused, bytes };
        self.settle_objects(incoming.spec.parts.iter().map(|part| part.toi).collect::<Vec<_>>().into_iter());
        if is_of_use && incoming.keep_index(&self.folder).is_ok() {
            return Ok(());
        }
        let name = incoming.spec.name.clone();
        incoming.discard(&self.folder).map(drop).map_err(|source| self.io_error(name, source))
    }

    /// Looks at the blocks of an earlier run that these bytes are in, as [`Store::check_block`].
    fn check_blocks(&mut self, file: u32, range: &Range<u64>) -> Result<(), StoreError> {
        let blocks = self.incoming(file).blocks_in(range);
        blocks.into_iter().try_for_each(|index| self.check_block(file, index as u32))
    }

    /// Looks at a block of an earlier run before it is used, and opens it again if it is wrong.
    fn check_block(&mut self, file: u32, index: u32) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        if !std::mem::take(&mut block.unchecked) || self.is_right_in_file(file, index)? {
            return Ok(());
        }
        self.open_wrong_block(file, index)
    }
}

/// Reads a file out of its bundle into the buffer; whether it is what the index says.
fn read_small(bundle: &File, member: &Member, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let length = member.length as usize;
    buffer.resize(buffer.len().max(length), 0);
    bundle.read_exact_at(&mut buffer[..length], member.start)?;
    Ok(*blake3::hash(&buffer[..length]).as_bytes() == member.digest)
}

/// Copies a file out of its bundle; whether it is what the index says.
fn copy(bundle: &File, out: &File, member: &Member, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    while at < member.length {
        let count = (member.length - at).min(digest::READ_BUFFER as u64) as usize;
        buffer.resize(buffer.len().max(count), 0);
        bundle.read_exact_at(&mut buffer[..count], member.start + at)?;
        hasher.update(&buffer[..count]);
        out.write_all_at(&buffer[..count], at)?;
        at += count as u64;
    }
    Ok(*hasher.finalize().as_bytes() == member.digest)
}
