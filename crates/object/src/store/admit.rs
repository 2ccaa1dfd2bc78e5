//! From a manifest to files on disk, and at the end from a partial file to one with its name.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use md5::Digest;
use weir_wire::alc::Content;
use weir_wire::fec::Oti;

use super::decoders::DECODING_MEMORY;
use super::digest;
use super::folder::{self, How};
use super::incoming::{Found, Incoming, Spec};
use super::{Event, FileState, Object, Origin, RefuseReason, RestartReason, Store, StoreError};
use crate::bundle::BundleEntry;
use crate::device::{self, DeviceError};
use crate::limits::MAX_BUNDLED;
use crate::links::{FolderEntry, LinkEntry};
use crate::manifest::{EntryKind, FileEntry, Manifest, Refused};
use crate::name::Name;

impl Store {
    /// Takes a manifest that is believed.
    pub(super) fn admit(&mut self, manifest: Manifest) -> Result<(), StoreError> {
        if let Some(path) = self.folder.device() {
            check_device(path, &manifest).map_err(|source| StoreError::Device { path: path.to_owned(), source })?;
        }
        if let Some(set) = manifest.set
            && self.set.is_none_or(|known| known.id != set.id)
        {
            self.begin_set()?;
            self.set = Some(set);
        }
        self.told_complete |= manifest.complete;
        for Refused { kind, location, error } in manifest.refused {
            let name = location.chars().take(80).collect();
            self.note_unusable(kind, location);
            self.event(Event::Refused { name, reason: error.into() });
        }
        manifest.folders.iter().for_each(|folder| self.admit_folder(folder));
        manifest.links.iter().for_each(|link| self.admit_link(link));
        for entries in manifest.files.chunk_by(|a, b| a.name == b.name) {
            self.admit_file(entries)?;
        }
        self.replay_early()
    }

    /// An entry that cannot be used is none that is still to come.
    fn note_unusable(&mut self, kind: EntryKind, location: String) {
        let known = &self.unusable[kind as usize];
        let is_new = known.len() < self.options.max_files && !known.contains(&location);
        if is_new && self.take_for_set(NAME_MEMORY + location.len() as u64) {
            self.unusable[kind as usize].insert(location);
        }
    }

    fn admit_folder(&mut self, folder: &FolderEntry) {
        self.make_folder(folder);
        let is_new = self.folders.len() < self.options.max_files && !self.folders.contains(&folder.name);
        if is_new && self.take_for_set(name_memory(&folder.name)) {
            self.folders.insert(folder.name.clone());
        }
    }

    pub(super) fn make_folder(&mut self, folder: &FolderEntry) {
        let name = folder.name.to_string();
        match self.folder.make_folder(&folder.name, folder.attributes.mode, self.umask) {
            Ok(None) => {}
            Ok(Some(error)) => self.event(Event::AttributesRefused { name, error }),
            Err(error) => self.event(Event::Refused { name, reason: RefuseReason::Io(error) }),
        }
    }

    fn admit_link(&mut self, link: &LinkEntry) {
        let is_new = self.links.len() < self.options.max_files && !self.links.contains(&link.name);
        if !is_new || !self.take_for_set(name_memory(&link.name)) {
            return;
        }
        self.links.insert(link.name.clone());
        self.make_link(link);
    }

    pub(super) fn make_link(&mut self, link: &LinkEntry) {
        let made = self.folder.make_link(&link.name, &link.target, self.options.overwrite);
        let reason = match made {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => RefuseReason::TargetExists,
            Err(error) => RefuseReason::Io(error),
        };
        self.event(Event::Refused { name: link.name.to_string(), reason });
    }

    /// Another set of files begins: what is incomplete of the old one stays on disk.
    fn begin_set(&mut self) -> Result<(), StoreError> {
        if self.set.is_some() || !self.files.is_empty() {
            self.write_out()?;
            self.commit_all()?;
            self.event(Event::NewSet);
        }
        let memory = |file: &FileState| match file {
            FileState::Incoming(incoming) => incoming.memory(),
            FileState::Done { .. } | FileState::Unpacked { .. } | FileState::Refused => 0,
        };
        self.budget.give(self.files.iter().map(memory).sum::<u64>() + std::mem::take(&mut self.set_bytes));
        self.files.clear();
        self.bundles.clear();
        self.unfinished = 0;
        self.by_name.clear();
        self.objects.clear();
        self.without_oti.clear();
        self.open_files.clear();
        self.loaded.clear();
        self.changed.clear();
        self.decoders.begin_set();
        self.window.clear();
        (self.loaded_bytes, self.value_bytes) = (0, 0);
        self.folder.begin_set();
        self.folders.clear();
        self.links.clear();
        self.unusable.iter_mut().for_each(HashSet::clear);
        self.last_object = None;
        Ok(())
    }

    /// Takes the entries of one file.
    fn admit_file(&mut self, entries: &[FileEntry]) -> Result<(), StoreError> {
        let name = &entries[0].name;
        if entries[0].file_length > 0
            && let [entry] = entries
            && entry.oti.is_none()
        {
            let memory = name_memory(&entry.name);
            let is_new = !self.objects.contains_key(&entry.toi) && !self.without_oti.contains_key(&entry.toi);
            if is_new && self.without_oti.len() < self.options.max_files && self.take_for_set(memory) {
                self.without_oti.insert(entry.toi, entry.clone());
            }
            return Ok(());
        }
        let is_empty = entries[0].file_length == 0 && entries[0].bundle.is_none();
        let spec = if is_empty { empty_spec(&entries[0]) } else { Spec::new(entries) };
        let spec = match spec {
            Ok(spec) => spec,
            Err(error) => {
                self.settle_objects(entries.iter().map(|entry| entry.toi));
                return self.refuse(&entries[0].name, error.into());
            }
        };
        let known = entries.iter().all(|entry| self.objects.contains_key(&entry.toi));
        if let Some(&file) = self.by_name.get(name) {
            match &self.files[file as usize] {
                FileState::Incoming(incoming) if incoming.spec == spec => return Ok(()),
                // Without sets, a table of another sender replaces what it said before.
                FileState::Incoming(_) if self.set.is_none() => self.abandon(file)?,
                // The table repeats itself.
                _ if known => return Ok(()),
                _ => {
                    self.settle_objects(entries.iter().map(|entry| entry.toi));
                    self.event(Event::Refused { name: name.to_string(), reason: RefuseReason::NamedTwice });
                    return Ok(());
                }
            }
        }
        if self.bundles.has(name) {
            self.settle_objects(entries.iter().map(|entry| entry.toi));
            return self.refuse(name, RefuseReason::NamedTwice);
        }
        for entry in entries {
            if let Some(&Object::Part { file, .. }) = self.objects.get(&entry.toi) {
                self.abandon(file)?;
            }
        }
        self.start_file(spec, entries[0].toi)
    }

    /// Stops receiving a file whose object the sender now uses for another. What is there stays on disk.
    fn abandon(&mut self, file: u32) -> Result<(), StoreError> {
        self.write_out()?;
        self.commit_all()?;
        let FileState::Incoming(incoming) = std::mem::replace(&mut self.files[file as usize], FileState::Refused)
        else {
            return Ok(());
        };
        self.unfinished -= 1;
        self.bundles.unread -= usize::from(incoming.spec.bundle.is_some() && incoming.unpacking.is_none());
        self.window.forget(file);
        self.budget.give(incoming.memory());
        self.give_for_set(incoming.spec.lasting_memory());
        self.loaded_bytes -= incoming.map_memory();
        self.value_bytes -= incoming.value_memory();
        let name = incoming.spec.name;
        self.open_files.retain(|open| *open != file);
        self.by_name.remove(&name);
        self.last_object = None;
        self.event(Event::Refused { name: name.to_string(), reason: RefuseReason::Replaced });
        Ok(())
    }

    /// Takes an entry whose cut the packet tells (EXT_FTI).
    pub(super) fn admit_with_oti(
        &mut self,
        content: &Content,
        symbol: &[u8],
        origin: Origin,
    ) -> Result<(), StoreError> {
        let Some(entry) = self.without_oti.get(&content.toi) else { return Ok(()) };
        let fits =
            |oti: &Oti| oti.encoding_id() == content.encoding_id && oti.transfer_length() == entry.transfer_length;
        let Some(oti) = content.oti.filter(fits) else {
            self.counts.rejected_packets += 1;
            return Ok(());
        };
        let entry = FileEntry { oti: Some(oti), ..entry.clone() };
        self.without_oti.remove(&content.toi);
        self.give_for_set(name_memory(&entry.name));
        self.admit_file(&[entry])?;
        self.replay_early()?;
        if self.objects.contains_key(&content.toi) { self.add(content, symbol, origin) } else { Ok(()) }
    }

    fn start_file(&mut self, spec: Spec, first_toi: u128) -> Result<(), StoreError> {
        let name = spec.name.clone();
        let tois: Vec<u128> =
            if spec.parts.is_empty() { vec![first_toi] } else { spec.parts.iter().map(|part| part.toi).collect() };
        self.settle_objects(tois.iter().copied());
        if self.files.len() >= self.options.max_files {
            let limit = self.options.max_files;
            return self.refuse(&name, RefuseReason::TooManyFiles { limit });
        }
        if let Some(BundleEntry { files, .. }) = spec.bundle {
            let all = self.bundles.files.saturating_add(files);
            if all > MAX_BUNDLED {
                return self.refuse(&name, RefuseReason::TooManyFiles { limit: MAX_BUNDLED as usize });
            }
            if !self.take_for_set(files * BUNDLED_MEMORY) {
                return self.refuse(&name, RefuseReason::TooManyBlocks { needed: files * BUNDLED_MEMORY });
            }
            self.bundles.files = all;
        }
        let needed = spec.largest_block() * DECODING_MEMORY;
        if needed > self.options.memory_limit {
            return self.refuse(&name, RefuseReason::TooLittleMemory { needed });
        }
        let account = spec.lasting_memory() + spec.memory();
        if self.budget.has(account.saturating_sub(self.loaded_bytes)) {
            // Maps can be read again from the journals.
            self.make_room_for_maps(account)?;
        }
        // What stays when the file is complete; and what goes then, of which only so much is claimed.
        if !self.take_for_set(spec.lasting_memory()) || !self.budget.has(spec.memory()) {
            return self.refuse(&name, RefuseReason::TooManyBlocks { needed: spec.memory() });
        }
        match self.look_at_target(&spec) {
            Ok(Target::Missing) => {}
            Ok(Target::Same) => {
                self.by_name.insert(name.clone(), self.files.len() as u32);
                self.files.push(FileState::Done { bytes: spec.length });
                self.event(Event::Done { name, bytes: spec.length, digest: spec.digest, already_there: true });
                return Ok(());
            }
            Ok(Target::Other) if self.options.overwrite => {}
            Ok(Target::Other) => return self.refuse(&name, RefuseReason::TargetExists),
            Err(error) => return self.refuse(&name, RefuseReason::Io(error)),
        }
        self.begin_file(spec)
    }

    fn begin_file(&mut self, spec: Spec) -> Result<(), StoreError> {
        let name = spec.name.clone();
        let length = spec.length;
        if self.folder.device().is_some() {
            // Threads may still fill the device for the file before, and have it open.
            self.finish_decoding()?;
        }
        let (incoming, found) = match Incoming::open(&self.folder, spec, self.boot_id, self.session) {
            Ok(opened) => opened,
            Err(error) => return self.cannot_begin(name, length, error),
        };
        let file = self.files.len() as u32;
        for (i, part) in incoming.spec.parts.iter().enumerate() {
            self.objects.insert(part.toi, Object::Part { file, part: i as u32 });
        }
        let (bytes, is_bundle) = (incoming.bytes(), incoming.spec.bundle.is_some());
        self.budget.force(incoming.spec.memory());
        self.by_name.insert(name.clone(), file);
        self.files.push(FileState::Incoming(Box::new(incoming)));
        self.unfinished += 1;
        self.note_open(file);
        match found {
            Found::Nothing => {}
            Found::Unusable(why) => self.event(Event::Restarted { name, reason: why.into() }),
            Found::Partial { symbols: 0, .. } => {}
            Found::Partial { after_power_loss, .. } => self.event(Event::Resumed { name, bytes, after_power_loss }),
        }
        if is_bundle {
            self.resume_bundle(file)?;
        }
        self.have_filled(file)?;
        self.finish_if_whole(file)
    }

    /// Counts the descriptors that a file was opened with.
    fn note_open(&mut self, file: u32) {
        if self.open_files.len() >= super::receive::MAX_OPEN_FILES
            && let Some(oldest) = self.open_files.pop_front()
            && let FileState::Incoming(incoming) = &mut self.files[oldest as usize]
        {
            incoming.handles = None;
        }
        self.open_files.push_back(file);
    }

    /// A full disk ends the session, anything else only the file.
    fn cannot_begin(&mut self, name: Name, needed: u64, error: io::Error) -> Result<(), StoreError> {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, ResourceBusy, StorageFull, WouldBlock};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => {
                self.remove_empty_partial(&name);
                let free = self.folder.free_bytes().unwrap_or(0);
                Err(StoreError::DiskFull { path: self.folder.path().to_owned(), name, needed, free })
            }
            WouldBlock | ResourceBusy => self.refuse(&name, RefuseReason::InUse),
            _ => self.refuse(&name, RefuseReason::Io(error)),
        }
    }

    /// Removes a partial file for which there was no room, unless an earlier run left something in it.
    fn remove_empty_partial(&self, name: &Name) {
        if let Ok((parent, last)) = self.folder.parent(name)
            && let Ok(None) = folder::stat_at(&parent, Spec::journal_name(last))
        {
            // It is empty; if it cannot be removed either, that is no worse.
            let _ = folder::remove_at(&parent, Spec::partial_name(last));
        }
    }

    pub(super) fn settle_objects(&mut self, tois: impl Iterator<Item = u128>) {
        for toi in tois {
            if self.objects.contains_key(&toi) || self.take_for_set(OBJECT_MEMORY) {
                self.objects.insert(toi, Object::Settled);
            }
        }
        self.last_object = None;
    }

    fn refuse(&mut self, name: &Name, reason: RefuseReason) -> Result<(), StoreError> {
        if !self.by_name.contains_key(name) && self.files.len() < self.options.max_files {
            self.by_name.insert(name.clone(), self.files.len() as u32);
            self.files.push(FileState::Refused);
        }
        self.event(Event::Refused { name: name.to_string(), reason });
        Ok(())
    }

    fn look_at_target(&mut self, spec: &Spec) -> io::Result<Target> {
        if spec.bundle.is_some() || self.folder.device().is_some() {
            return Ok(Target::Missing);
        }
        let (parent, last) = self.folder.parent(&spec.name)?;
        self.look_at(&parent, last, spec.length, spec.digest)
    }

    /// What is at the name `last` of a folder, where a file of this length and digest is to be.
    pub(super) fn look_at(
        &mut self,
        parent: &OwnedFd,
        last: &OsStr,
        length: u64,
        digest: Option<[u8; 32]>,
    ) -> io::Result<Target> {
        let Some(stat) = folder::stat_at(parent, last)? else { return Ok(Target::Missing) };
        if !folder::is_file(&stat) {
            return Err(io::Error::other("something of this name is there that is not a file"));
        }
        let same_length = u64::try_from(stat.st_size) == Ok(length);
        let Some(digest) = digest.filter(|_| same_length) else {
            return Ok(if same_length && length == 0 { Target::Same } else { Target::Other });
        };
        let file = folder::open_at(parent, last, How::Read)?;
        let actual = digest::of_file(&file, length, &mut self.scratch)?;
        Ok(if actual == digest { Target::Same } else { Target::Other })
    }

    /// All symbols of a file are there: checks it and gives it its name.
    pub(super) fn finish_file(&mut self, file: u32) -> Result<(), StoreError> {
        if self.incoming(file).spec.bundle.is_some() {
            return self.finish_bundle(file);
        }
        self.flush_data()?;
        self.window.forget(file);
        if self.incoming(file).spec.length > 0 {
            self.open_handles(file)?;
        }
        if self.open_wrong_blocks(file)? {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let right = is_file_right(self.incoming(file), &mut scratch);
        self.scratch = scratch;
        if !right.map_err(|source| self.file_error(file, source))? {
            return self.begin_again(file);
        }
        let result = self.give_name(file);
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(()) };
        let (name, bytes, digest) = (incoming.spec.name.clone(), incoming.spec.length, incoming.spec.digest);
        let state = match result {
            Ok(()) => FileState::Done { bytes },
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => FileState::Refused,
            Err(error) => return Err(self.file_error(file, error)),
        };
        let done = matches!(state, FileState::Done { .. });
        let parts: Vec<u128> = incoming.spec.parts.iter().map(|part| part.toi).collect();
        self.budget.give(incoming.memory());
        self.files[file as usize] = state;
        self.unfinished -= 1;
        self.open_files.retain(|open| *open != file);
        self.settle_objects(parts.into_iter());
        self.event(if done {
            Event::Done { name, bytes, digest, already_there: false }
        } else {
            Event::Refused { name: name.to_string(), reason: RefuseReason::TargetExists }
        });
        Ok(())
    }

    fn give_name(&mut self, file: u32) -> io::Result<()> {
        let (sync, overwrite) = (self.options.sync, self.options.overwrite);
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(()) };
        let (parent, last) = incoming.parent(&self.folder)?;
        let handles = incoming.handles.as_ref().expect("was opened to be checked");
        if self.folder.device().is_some() {
            handles.data.sync_all()?;
            return folder::remove_at(&parent, Spec::journal_name(last));
        }
        handles.data.set_len(incoming.spec.length)?;
        let refused = incoming.spec.attributes.apply(&handles.data, self.umask)?;
        if sync {
            handles.data.sync_all()?;
        }
        folder::rename_at(&parent, &Spec::partial_name(last), last, overwrite)?;
        folder::remove_at(&parent, Spec::journal_name(last))?;
        if let Some(error) = refused {
            let name = incoming.spec.name.to_string();
            self.event(Event::AttributesRefused { name, error });
        }
        if sync { folder::sync_folder(&parent) } else { Ok(()) }
    }

    /// The content was wrong, and nothing tells which block: throws it away and collects the file again.
    fn begin_again(&mut self, file: u32) -> Result<(), StoreError> {
        let name = self.incoming(file).spec.name.clone();
        self.open_files.retain(|open| *open != file);
        self.changed.retain(|(changed, _)| *changed != file);
        let FileState::Incoming(incoming) = std::mem::replace(&mut self.files[file as usize], FileState::Refused)
        else {
            return Ok(());
        };
        self.budget.give(incoming.memory());
        let fresh = incoming
            .discard(&self.folder)
            .and_then(|spec| Incoming::open(&self.folder, spec, self.boot_id, self.session))
            .map_err(|source| self.io_error(name.clone(), source))?;
        self.budget.force(fresh.0.memory());
        self.files[file as usize] = FileState::Incoming(Box::new(fresh.0));
        self.note_open(file);
        self.event(Event::Restarted { name, reason: RestartReason::WrongDigest });
        Ok(())
    }
}

/// Whether a complete file is what the manifest says, as far as its blocks do not tell.
fn is_file_right(incoming: &mut Incoming, scratch: &mut Vec<u8>) -> io::Result<bool> {
    let Some(handles) = incoming.handles.as_ref() else { return Ok(true) };
    if incoming.spec.expected(0).is_some() {
        // Each block is known to be right.
        return Ok(true);
    }
    if let Some(expected) = incoming.spec.digest
        && digest::of_file(&handles.data, incoming.spec.length, scratch)? != expected
    {
        return Ok(false);
    }
    match incoming.spec.md5 {
        Some(expected) if incoming.spec.digest.is_none() => {
            Ok(md5_of(&handles.data, incoming.spec.length)? == expected)
        }
        _ => Ok(true),
    }
}

/// A device takes a session of one file, if it is long enough.
fn check_device(path: &Path, manifest: &Manifest) -> Result<(), DeviceError> {
    let is_one = manifest.set.is_some_and(|set| {
        set.objects == manifest.files.len() as u64 && set.folders == 0 && set.links == 0 && manifest.refused.is_empty()
    });
    let [first, rest @ ..] = &manifest.files[..] else { return Err(DeviceError::NotOneFile) };
    if !is_one || first.bundle.is_some() || first.file_length == 0 || rest.iter().any(|part| part.name != first.name) {
        return Err(DeviceError::NotOneFile);
    }
    let length = device::length(&mut File::open(path)?)?;
    if length < first.file_length {
        return Err(DeviceError::TooSmall { length, needed: first.file_length });
    }
    Ok(())
}

fn md5_of(file: &File, length: u64) -> io::Result<[u8; 16]> {
    use std::io::{Seek, SeekFrom};
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = md5::Md5::new();
    let mut buffer = vec![0; 128 << 10];
    let mut reader = file.take(length);
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

fn empty_spec(entry: &FileEntry) -> Result<Spec, super::SpecError> {
    Ok(Spec {
        name: entry.name.clone(),
        length: 0,
        digest: entry.digest,
        block_digests: Vec::new(),
        md5: None,
        attributes: entry.attributes,
        parts: Vec::new(),
        bundle: None,
    })
}

/// What is at a file's name.
pub(super) enum Target {
    Missing,
    /// A file of the same content.
    Same,
    Other,
}

/// What an entry of a map of names takes, besides the name itself twice; and one of objects.
const NAME_MEMORY: u64 = 400;
const OBJECT_MEMORY: u64 = 64;
/// What a file of a bundle takes for as long as the set: the hash of its name, and how far it is.
const BUNDLED_MEMORY: u64 = 24;

/// What an entry of this name takes in a map.
fn name_memory(name: &Name) -> u64 {
    NAME_MEMORY + name.as_bytes().len() as u64
}
