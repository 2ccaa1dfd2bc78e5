//! The receiving side: symbols go to disk as they come, blocks are decoded there, and a file takes its name when its
//! digest is right.
//!
//! A file NAME is received into NAME.weir-part next to it, with a journal NAME.weir-journal. Each block has a slot on disk for
//! each of its source symbols; repair symbols wait in the slots of missing ones. Memory holds the slot maps in use and a
//! little staging, whatever the size of the files. Dropping a [`Store`] is like killing its process: what was flushed is
//! continued by the next one.
//!
//! # What survives
//!
//! A killed process loses what came since the last [`Store::flush`]. After a power loss data may be missing that the journal
//! speaks of: the receiver says so, goes on, and the blocks' digests decide; a block that is wrong is collected again. Files
//! without any digest (of other senders) are always begun afresh.
//!
//! # What a stranger can do
//!
//! A table counts only with the sender's signature, which is checked over its bytes before anything reads them, if it has not
//! expired, and if it is of no earlier start of the sender than the last one known (`epochs.rs`). A forged symbol spoils one
//! block, which is noticed by the block's digest and put right (`blocks.rs`). Everything that waits has its share of the memory
//! (`budget.rs`).
//!
//! Not here: sockets, clocks, threads but for those that decode (`decoders.rs`).

mod admit;
mod ahead;
mod believe;
mod blocks;
mod budget;
mod commit;
mod data;
mod decoders;
mod digest;
mod epochs;
mod event;
mod fdt;
mod folder;
mod forged;
mod incoming;
mod instance;
mod journal;
mod kept;
mod lacking;
mod missing;
mod octets;
mod progress;
mod readahead;
mod receive;
mod senders;
mod slots;
mod unpack;
mod window;
mod writeback;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use weir_wire::alc::Content;

use self::budget::Budget;
use self::decoders::Decoders;
pub use self::epochs::EpochMemory;
use self::epochs::Epochs;
pub use self::event::{Event, RefuseReason, RestartReason};
use self::fdt::FdtAssembler;
use self::folder::OutFolder;
use self::incoming::Incoming;
pub use self::incoming::SpecError;
use self::journal::Session;
pub use self::journal::Unusable;
pub use self::progress::Progress;
use self::readahead::ReadAhead;
pub use self::senders::Origin;
use self::senders::Senders;
use self::unpack::Bundles;
use self::window::Window;
use self::writeback::Writeback;
pub use crate::device::DeviceError;
use crate::keys::PublicKey;
use crate::limits::MAX_TABLE_ENTRIES;
use crate::manifest::{FileEntry, SetTotals};
use crate::name::Name;
use crate::{attributes, device};

/// How to receive.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Transport session identifier; a signed manifest must be of this session.
    pub tsi: u64,
    /// If given, only manifests that this key has signed count.
    pub key: Option<PublicKey>,
    /// No earlier start of the sender than this counts; only where there is a key. Later ones are remembered in the folder.
    pub least_epoch: u64,
    /// Replace existing files of other content.
    pub overwrite: bool,
    /// The block device that the one file of the session is written to, in place of a file in the folder, which then has what is needed to go on
    /// with it. Whatever is on the device is lost.
    pub device: Option<PathBuf>,
    /// Bytes of memory in all.
    pub memory_limit: u64,
    /// Most files, and most objects, in a session, besides those in bundles.
    pub max_files: usize,
    /// Most bytes of an instance of the file delivery table; without a key 1 MiB at most, as anybody's is read.
    pub max_fdt_bytes: usize,
    /// Bytes of symbols that are kept while nothing is known of their object.
    pub early_bytes: usize,
    /// Threads that decode blocks, so that what comes meanwhile is kept; [`Store::unpack_some`] then writes the files of bundles. Without any,
    /// [`Store::add`] does both, and takes milliseconds then.
    pub decoding_threads: usize,
    /// Whether a finished file is written through to the disk before it takes its name.
    pub sync: bool,
    /// Identity of the system's start, by which a power loss is noticed; `None` reads the system's own.
    pub boot_id: Option<[u8; 16]>,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            tsi: 1,
            key: None,
            least_epoch: 0,
            overwrite: false,
            device: None,
            memory_limit: 256_000_000,
            max_files: MAX_TABLE_ENTRIES,
            max_fdt_bytes: 8 << 20,
            early_bytes: 8 << 20,
            decoding_threads: 0,
            sync: true,
            boot_id: None,
        }
    }
}

/// Why receiving cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The output folder cannot be used.
    #[error("cannot use the output folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The device cannot be used.
    #[error("cannot write to {}: {source}", path.display())]
    Device {
        /// The device.
        path: PathBuf,
        /// Why.
        source: DeviceError,
    },
    /// There is no room.
    #[error(
        "no room in {}: {name} needs {needed} bytes, {free} are free; make room and start again, what was received is \
         kept", path.display()
    )]
    DiskFull {
        /// The folder.
        path: PathBuf,
        /// The file.
        name: Name,
        /// Bytes of the file.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A file cannot be read or written any more.
    #[error("cannot go on with {name} in {}: {source}; what was received is kept", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The file.
        name: Name,
        /// Why.
        source: io::Error,
    },
}

/// The receiving side of a session. Called from one thread; not from the one that reads the socket.
#[derive(Debug)]
pub struct Store {
    options: StoreOptions,
    boot_id: [u8; 16],
    /// Which session this is, to those that use the same folder.
    session: Session,
    folder: OutFolder,
    /// Memory for all that waits, but for tables.
    budget: Budget,
    /// What of it goes with the set.
    set_bytes: u64,
    /// Seconds of the NTP era, where somebody says so.
    now: Option<u32>,
    /// Which start of the sender was the last one heard.
    epochs: Option<Epochs>,
    /// The epoch of the tables that count.
    heard_epoch: Option<u64>,
    /// Whether it has been told that a table came of an earlier start, and one that has expired.
    is_told_of_old: bool,
    is_told_of_expired: bool,
    senders: Senders,
    /// Symbols that were found to be wrong in the last block in which some were.
    forged_lately: u32,
    fdt: FdtAssembler,
    /// The set that is being received, when the sender names one.
    set: Option<SetTotals>,
    /// The last manifest said that there is no more.
    told_complete: bool,
    files: Vec<FileState>,
    /// What bundles have in common.
    bundles: Bundles,
    /// How many of them are incoming.
    unfinished: usize,
    by_name: HashMap<Name, u32>,
    objects: HashMap<u128, Object>,
    /// Empty folders that were made.
    folders: HashSet<Name>,
    /// Links that were made or refused.
    links: HashSet<Name>,
    /// Permissions that are taken from new files.
    umask: u32,
    /// Entries of the set that could not be used: of files, of folders, of links.
    unusable: [HashSet<String>; 3],
    /// The object of the last packet, which is mostly that of the next.
    last_object: Option<(u128, u32, u32)>,
    window: Window,
    writeback: Writeback,
    read_ahead: ReadAhead,
    decoders: Decoders,
    /// Packets of objects that nothing is known of yet.
    early: VecDeque<(Content, Box<[u8]>, Origin)>,
    early_bytes: usize,
    /// Entries whose cut is told by the packets.
    without_oti: BTreeMap<u128, FileEntry>,
    /// Files with open descriptors, in the order in which they were opened.
    open_files: VecDeque<u32>,
    /// Blocks whose maps are in memory, in the order in which they came.
    loaded: VecDeque<(u32, u32)>,
    loaded_bytes: u64,
    /// Bytes of memory that the values of blocks' pieces take.
    value_bytes: u64,
    /// Blocks that changed since they were last written down.
    changed: Vec<(u32, u32)>,
    events: VecDeque<Event>,
    counts: Progress,
    /// Room to read in.
    scratch: Vec<u8>,
}

/// What is known of an object.
#[derive(Debug, Clone, Copy)]
enum Object {
    /// Part `part` of file `file`.
    Part { file: u32, part: u32 },
    /// Nothing more is wanted of it.
    Settled,
}

/// How far a file is.
#[derive(Debug)]
enum FileState {
    Incoming(Box<Incoming>),
    Done {
        bytes: u64,
    },
    /// A bundle all of whose files have their names or are refused.
    Unpacked {
        done: u64,
        refused: u64,
        bytes: u64,
    },
    Refused,
}

impl Store {
    /// Opens the folder that files go to.
    ///
    /// # Errors
    /// [`StoreError::Folder`] if it cannot be made or opened.
    pub fn open(path: &Path, mut options: StoreOptions) -> Result<Store, StoreError> {
        let folder_error = |source| StoreError::Folder { path: path.to_owned(), source };
        let folder = OutFolder::open(path).map_err(folder_error)?.with_device(options.device.clone());
        let epochs = options.key.map(|key| Epochs::open(&folder, &key, options.tsi, options.least_epoch));
        let epochs = epochs.transpose().map_err(folder_error)?;
        if options.key.is_none() {
            options.max_fdt_bytes = options.max_fdt_bytes.min(UNSIGNED_BYTES);
        }
        let waiting = options.memory_limit / BUDGET_SHARE;
        let tables = waiting / TABLES_SHARE;
        Ok(Store {
            boot_id: options.boot_id.unwrap_or_else(system_boot_id),
            session: kept::session(options.tsi, options.key.as_ref()),
            folder,
            budget: Budget::new(waiting - tables),
            set_bytes: 0,
            now: None,
            epochs,
            heard_epoch: None,
            is_told_of_old: false,
            is_told_of_expired: false,
            senders: Senders::new(),
            forged_lately: 0,
            fdt: FdtAssembler::new(options.max_fdt_bytes, options.key.is_some(), tables),
            set: None,
            told_complete: false,
            files: Vec::new(),
            bundles: Bundles::default(),
            unfinished: 0,
            by_name: HashMap::new(),
            objects: HashMap::new(),
            folders: HashSet::new(),
            links: HashSet::new(),
            umask: attributes::umask(),
            unusable: Default::default(),
            last_object: None,
            window: Window::new(options.memory_limit / WINDOW_SHARE),
            writeback: Writeback::default(),
            read_ahead: ReadAhead::default(),
            decoders: Decoders::new(options.decoding_threads, options.memory_limit),
            early: VecDeque::new(),
            early_bytes: 0,
            without_oti: BTreeMap::new(),
            open_files: VecDeque::new(),
            loaded: VecDeque::new(),
            loaded_bytes: 0,
            value_bytes: 0,
            changed: Vec::new(),
            events: VecDeque::new(),
            counts: Progress::default(),
            scratch: Vec::new(),
            options,
        })
    }

    /// The earliest start of the sender that is believed: the one that the options say, or the last one that is remembered next to the files.
    pub fn least_epoch(&self) -> u64 {
        self.epochs.as_ref().map_or(0, Epochs::highest).max(self.options.least_epoch)
    }

    /// Says what time it is, seconds of the NTP era: signed tables that have expired do not count. Without it none has.
    pub fn set_time(&mut self, ntp_secs: u64) {
        self.now = Some(ntp_secs as u32);
    }

    /// Takes what a packet carried, in the order of arrival.
    ///
    /// # Errors
    /// [`StoreError`] when the disk is full or fails: receiving cannot go on, and what was received is kept. A packet that
    /// makes no sense is no error; it is counted in [`Progress`].
    pub fn add(&mut self, content: &Content, symbol: &[u8], origin: Origin) -> Result<(), StoreError> {
        self.take_decoded()?;
        if content.toi == 0 {
            return self.add_fdt(content, symbol, origin);
        }
        if let Some((toi, file, part)) = self.last_object
            && toi == content.toi
        {
            return self.add_symbol(file, part, content, symbol, origin);
        }
        match self.objects.get(&content.toi) {
            Some(&Object::Part { file, part }) => {
                self.last_object = Some((content.toi, file, part));
                self.add_symbol(file, part, content, symbol, origin)
            }
            Some(Object::Settled) => {
                self.counts.surplus_symbols += 1;
                Ok(())
            }
            None => self.add_early(content, symbol, origin),
        }
    }

    /// Takes several symbols of one block, `size` bytes each, whose numbers follow that in `content`; as [`Store::add`] for
    /// each of them in turn.
    ///
    /// # Errors
    /// As [`Store::add`].
    ///
    /// # Panics
    /// If `size` is zero.
    pub fn add_run(
        &mut self,
        content: &Content,
        symbols: &[u8],
        size: usize,
        origin: Origin,
    ) -> Result<(), StoreError> {
        self.take_decoded()?;
        if let Some((toi, file, part)) = self.last_object
            && toi == content.toi
            && symbols.len() > size
            && self.add_source_run((file, part), content, symbols, size, origin)?
        {
            return Ok(());
        }
        let mut content = *content;
        for symbol in symbols.chunks(size) {
            self.add(&content, symbol, origin)?;
            content.payload_id.symbol = content.payload_id.symbol.wrapping_add(1);
        }
        Ok(())
    }

    fn add_early(&mut self, content: &Content, symbol: &[u8], origin: Origin) -> Result<(), StoreError> {
        if content.oti.is_some() && self.without_oti.contains_key(&content.toi) {
            return self.admit_with_oti(content, symbol, origin);
        }
        let known = self.set.is_some_and(|_| self.manifest_complete());
        let size = symbol.len() + EARLY_OVERHEAD;
        if known || self.early_bytes + size > self.options.early_bytes || !self.budget.take_spare(size as u64) {
            self.counts.early_symbols_dropped += 1;
            return Ok(());
        }
        self.early_bytes += size;
        self.early.push_back((*content, symbol.into(), origin));
        Ok(())
    }

    /// Gives the packets that came too early their second chance.
    fn replay_early(&mut self) -> Result<(), StoreError> {
        self.budget.give(std::mem::take(&mut self.early_bytes) as u64);
        for (content, symbol, origin) in std::mem::take(&mut self.early) {
            self.add(&content, &symbol, origin)?;
        }
        Ok(())
    }

    /// Takes memory for something that lasts as long as the set; whether there is any.
    fn take_for_set(&mut self, bytes: u64) -> bool {
        let has = self.budget.take(bytes);
        self.set_bytes += if has { bytes } else { 0 };
        has
    }

    /// Gives back memory of something that left before the set.
    fn give_for_set(&mut self, bytes: u64) {
        self.set_bytes -= bytes;
        self.budget.give(bytes);
    }

    /// Writes everything that is in memory to the files and journals. Call it several times a second: what a killed process loses is what
    /// came since.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.take_decoded()?;
        self.take_synced()?;
        self.write_out()
    }

    fn write_out(&mut self) -> Result<(), StoreError> {
        self.open_folders();
        self.flush_data()?;
        self.flush_maps()
    }

    /// Writes the files of bundles that are there, flushes, writes through to the disk, and marks the journals so that not even a power loss makes
    /// them doubtful. If the set is complete, nothing is left but its files.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn close(mut self) -> Result<(), StoreError> {
        self.finish_decoding()?;
        while self.unpack_some()? {}
        self.write_out()?;
        self.commit_all()?;
        // Bundles all of whose files are done since.
        while self.unpack_some()? {}
        for file in 0..self.files.len() as u32 {
            if let FileState::Incoming(incoming) = &mut self.files[file as usize]
                && let Some(handles) = &mut incoming.handles
            {
                let result = handles.data.sync_data().and_then(|()| handles.journal.close_clean());
                let name = incoming.spec.name.clone();
                result.map_err(|source| self.io_error(name, source))?;
            }
        }
        self.remove_bundles()
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn event(&mut self, event: Event) {
        // Nobody asks for them: then the oldest are the least interesting.
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn io_error(&self, name: Name, source: io::Error) -> StoreError {
        let path = self.folder.place().to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                let free = self.folder.free_bytes().unwrap_or(0);
                let needed = self.by_name.get(&name).map_or(0, |file| match &self.files[*file as usize] {
                    FileState::Incoming(incoming) => incoming.spec.length,
                    _ => 0,
                });
                StoreError::DiskFull { path, name, needed, free }
            }
            _ => StoreError::Io { path, name, source },
        }
    }
}

/// The bytes of a block device that can be written over: nothing uses it.
///
/// # Errors
/// [`DeviceError`], for a device that is in use or none.
pub fn look_at_device(path: &Path) -> Result<u64, DeviceError> {
    device::open_alone(path).map(|(_, length)| length)
}

/// The kernel's identity of this start of the system; zeros where it cannot be read.
fn system_boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits = text.chars().filter_map(|c| c.to_digit(16)).collect::<Vec<_>>();
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (pair[0] << 4 | pair[1]) as u8;
    }
    id
}

/// One in this number is the share of the memory for what waits for its neighbours: more than a sender has open at a time, at
/// rates at which it matters.
const WINDOW_SHARE: u64 = 4;
/// A table that anybody can send is looked at up to this size: its reading takes milliseconds.
const UNSIGNED_BYTES: usize = 1 << 20;
/// One in this number is the share of the memory for all that waits but for stretches of files; the rest is for decoding, and for a
/// table while it is read.
const BUDGET_SHARE: u64 = 2;
/// One in this number is the share of that for tables.
const TABLES_SHARE: u64 = 4;
/// What a kept packet takes beyond its symbol.
const EARLY_OVERHEAD: usize = 128;
const MAX_EVENTS: usize = 1_200_000;
