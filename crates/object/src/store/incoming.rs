//! One file that is being received: what is known of it, its blocks, and its partial file.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use nix::fcntl::{Flock, FlockArg};

use super::data::Data;
use super::digest::{Expected, Values};
use super::folder::{self, How, OutFolder};
use super::journal::{BlockState, Header, Journal, Session, Unusable};
use super::senders::Origin;
use super::slots::Slots;
use super::unpack::Unpacking;
use crate::attributes::Attributes;
use crate::bundle::{BundleEntry, MAX_INDEX_BYTES};
use crate::device;
use crate::manifest::FileEntry;
use crate::name::{self, Name};
use crate::partition::{Layout, LayoutError, MAX_FILE_BYTES};
use crate::pieces::{BlockDigest, ZEROS};

/// What the manifest says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) name: Name,
    pub(crate) length: u64,
    pub(crate) digest: Option<[u8; 32]>,
    /// The digests of all its blocks, [`ZEROS`] among them, or of none.
    pub(crate) block_digests: Vec<BlockDigest>,
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) attributes: Attributes,
    pub(crate) parts: Vec<Part>,
    /// What the table says of what is in it, if it is a bundle.
    pub(crate) bundle: Option<BundleEntry>,
}

/// One object of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) toi: u128,
    /// Where in the file it starts.
    pub(crate) offset: u64,
    pub(crate) layout: Layout,
    /// Number of its first block among those of the file.
    pub(crate) first_block: u32,
}

impl Spec {
    /// Joins the entries of one file; `oti` of an entry must be known.
    pub(crate) fn new(entries: &[FileEntry]) -> Result<Spec, SpecError> {
        let first = &entries[0];
        let mut spec = Spec {
            name: first.name.clone(),
            length: first.file_length,
            digest: first.digest,
            block_digests: Vec::new(),
            md5: first.md5.filter(|_| entries.len() == 1),
            attributes: first.attributes,
            parts: Vec::with_capacity(entries.len()),
            bundle: first.bundle,
        };
        if spec.length > MAX_FILE_BYTES {
            return Err(SpecError::Layout(LayoutError::TooLong { transfer_length: spec.length }));
        }
        let (mut end, mut blocks) = (0u64, 0u32);
        for entry in entries {
            let layout = Layout::new(entry.oti.ok_or(SpecError::Parts)?)?;
            let same = entry.file_length == spec.length && entry.digest == spec.digest;
            // Only the last part may end in a symbol that is not full: the next one's first byte would be under it.
            let last = entry.offset.checked_add(entry.transfer_length) == Some(spec.length);
            let whole = last || layout.padded_length() == entry.transfer_length;
            let consistent = layout.transfer_length() == entry.transfer_length && entry.offset == end;
            if !(same && whole && consistent) || (entries.len() > 1 && !layout.in_order()) {
                return Err(SpecError::Parts);
            }
            spec.parts.push(Part { toi: entry.toi, offset: entry.offset, layout, first_block: blocks });
            end += entry.transfer_length;
            blocks += layout.blocks();
            spec.block_digests.extend(&entry.blocks);
            if !spec.block_digests.is_empty() && spec.block_digests.len() != blocks as usize {
                return Err(SpecError::BlockDigests);
            }
        }
        if let Some(BundleEntry { index_bytes, .. }) = spec.bundle {
            // Nothing reads an index that no digest tells of.
            let is_sent = |expected| !matches!(expected, None | Some(Expected::Zeros));
            let has_digests = (0..blocks).all(|block| is_sent(spec.expected(block)));
            let has_index = (1..=spec.length.min(MAX_INDEX_BYTES as u64)).contains(&index_bytes);
            if entries.len() > 1 || !has_digests || !has_index {
                return Err(SpecError::Bundle);
            }
        }
        if end == spec.length { Ok(spec) } else { Err(SpecError::Parts) }
    }

    /// Bytes of the partial file: all slots of all blocks.
    pub(crate) fn padded_length(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.offset + part.layout.padded_length())
    }

    /// Bytes of the largest block.
    pub(crate) fn largest_block(&self) -> u64 {
        let bytes = |part: &Part| u64::from(part.layout.largest_block()) * part.layout.symbol_size() as u64;
        self.parts.iter().map(bytes).max().unwrap_or(0)
    }

    fn slots(&self) -> u64 {
        self.parts.iter().map(|part| part.layout.symbols_before(part.layout.blocks())).sum()
    }

    fn blocks(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.first_block + part.layout.blocks())
    }

    /// What block `index` must be, where the manifest says so of blocks.
    pub(crate) fn expected(&self, index: u32) -> Option<Expected> {
        match (self.block_digests.get(index as usize), self.digest) {
            (Some(&ZEROS), _) => Some(Expected::Zeros),
            (Some(digest), _) => Some(Expected::Block(*digest)),
            (None, Some(digest)) if self.blocks() == 1 => Some(Expected::File(digest)),
            _ => None,
        }
    }

    /// Bytes of memory that the file takes while it is received, about, besides [`Spec::lasting_memory`].
    pub(crate) fn memory(&self) -> u64 {
        let blocks = u64::from(self.blocks()) * (size_of::<Block>() + size_of::<BlockDigest>()) as u64;
        (size_of::<Incoming>() + self.parts.len() * size_of::<Part>()) as u64 + blocks
    }

    /// Bytes of memory that are left of it when it is complete, about: its name, and what became of its objects.
    pub(crate) fn lasting_memory(&self) -> u64 {
        (FILE_OVERHEAD + 2 * self.name.as_bytes().len() + self.parts.len() * OBJECT_OVERHEAD) as u64
    }

    /// Whether symbols of an earlier run can be used: only if content is known to be the same.
    pub(crate) fn can_resume(&self) -> bool {
        self.digest.is_some() || self.md5.is_some()
    }

    /// A digest over all that must be equal for a partial file to be of use: content and cut. The session is not in it:
    /// symbols of the same content under the same cut are the same in every session.
    fn identity(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"weir partial file 1").update(&self.length.to_be_bytes());
        hasher.update(&self.digest.unwrap_or([0; 32])).update(&self.md5.unwrap_or([0; 16]));
        for part in &self.parts {
            hasher.update(&part.offset.to_be_bytes()).update(&[part.layout.oti().encoding_id()]);
            hasher.update(&part.layout.oti().encode());
        }
        *hasher.finalize().as_bytes()
    }

    pub(crate) fn partial_name(last: &OsStr) -> OsString {
        name::working(last, name::PARTIAL)
    }

    pub(crate) fn journal_name(last: &OsStr) -> OsString {
        name::working(last, name::JOURNAL)
    }
}

/// A manifest's entries that do not make a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The cut of an object cannot be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The parts do not tile the file.
    #[error("its parts do not fit together")]
    Parts,
    /// Some blocks have digests and others do not, or there are more digests than blocks.
    #[error("it has another number of blocks than digests of blocks")]
    BlockDigests,
    /// A bundle is cut into several objects, is not sent or has no digests, or an index that cannot be.
    #[error("it is a bundle that is cut in two, is not sent or has no digests, or an index that cannot be")]
    Bundle,
}

/// One block of a file.
#[derive(Debug)]
pub(crate) struct Block {
    /// Source symbols.
    pub(crate) symbols: u32,
    /// Symbols in its slots.
    pub(crate) have: u32,
    pub(crate) done: bool,
    /// What is being done with it, or waits to be, now that it has symbols enough.
    pub(crate) job: Option<Job>,
    /// It was done in an earlier run, and has not been looked at in this one.
    pub(crate) unchecked: bool,
    /// Whether it was touched since the memory was last looked through.
    pub(crate) touched: bool,
    /// Slots of all blocks before it.
    pub(crate) first_slot: u64,
    /// Where in the file it starts.
    pub(crate) start: u64,
    /// Bytes of the file in it.
    pub(crate) length: u64,
    pub(crate) slots: Option<Box<Slots>>,
    /// The values of pieces that were hashed from memory; none where the block has no digest.
    pub(crate) values: Option<Box<Values>>,
    /// Whether memory is taken for them: they may be with the decoder of the block.
    pub(crate) has_values: bool,
    /// Whether they stay when the map leaves memory.
    pub(crate) keeps_values: bool,
    /// Symbols beyond those in the slots, after a decoding that failed.
    pub(crate) extra: Vec<(u32, Vec<u8>)>,
    /// It was wrong, and is collected again.
    pub(crate) recollection: Option<Box<Recollection>>,
    /// It is wrong, and nothing tells which symbols are: how many symbols beyond those in the slots are waited for.
    pub(crate) wanted_extra: Option<u32>,
}

/// What is done with a block that has symbols enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// It has its source symbols: what was not hashed from memory is read back.
    Check,
    Decode,
    /// It is not sent, and its place on a device is to become zeros.
    Fill,
}

impl Block {
    /// The bytes of the file that are in it.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.length
    }

    /// Whether more symbols would be of no use: its own are enough, or there are spare ones should they not be.
    pub(crate) fn only_decodes(&self) -> bool {
        match self.job {
            Some(Job::Check | Job::Fill) => true,
            Some(Job::Decode) => self.extra.len() >= SPARE_SYMBOLS,
            None => false,
        }
    }

    /// Bytes of memory that its map takes.
    pub(crate) fn map_memory(&self) -> u64 {
        if self.slots.is_some() { Slots::memory(self.symbols) } else { 0 }
    }

    /// Bytes of memory that its values take.
    pub(crate) fn value_memory(&self) -> u64 {
        if self.has_values { Values::memory(self.length) } else { 0 }
    }
}

/// How a block that was wrong is collected again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Recollection {
    /// Whose symbols are taken; `None` for everybody's.
    pub(crate) only: Option<Origin>,
    /// Whether that one sent most of what was right.
    pub(crate) is_proven: bool,
    /// Symbols of others that came since the last one of theirs that was of use.
    pub(crate) refused: u32,
    /// How many more of others are refused, whatever comes of theirs.
    pub(crate) left: u32,
    /// How often another was given up for whom symbols were refused.
    pub(crate) turns: u32,
    /// Who is not preferred any more: their symbols alone were wrong, or did not come.
    pub(crate) tried: BTreeSet<Origin>,
}

/// The open files of an incoming file.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) data: Data,
    pub(crate) journal: Journal,
}

/// A file that is being received.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) spec: Spec,
    pub(crate) blocks: Vec<Block>,
    /// Blocks that are not done.
    pub(crate) left: u32,
    pub(crate) handles: Option<Handles>,
    /// How far its files are, if it is a bundle whose index is known.
    pub(crate) unpacking: Option<Box<Unpacking>>,
    /// What was there of its index before its blocks were right was not what the table says.
    pub(crate) is_index_doubtful: bool,
    header: Header,
}

/// How a partial file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// It is of no use and was begun afresh.
    Unusable(Unusable),
    /// It is continued, with this number of symbols; `after_power_loss` if the machine went down while it was open.
    Partial {
        symbols: u64,
        after_power_loss: bool,
    },
}

impl Incoming {
    /// Begins a file, or continues it where a partial file of the same content and cut is there.
    pub(crate) fn open(
        out: &OutFolder,
        spec: Spec,
        boot_id: [u8; 16],
        session: Session,
    ) -> io::Result<(Incoming, Found)> {
        let name = spec.name.clone();
        let (parent, last) = out.parent(&name)?;
        let header = Header { identity: spec.identity(), blocks: spec.blocks(), boot_id, clean: false, session };
        let (blocks, left) = (blocks(&spec), spec.blocks());
        let mut incoming =
            Incoming { blocks, left, handles: None, unpacking: None, is_index_doubtful: false, header, spec };
        let journal_name = Spec::journal_name(last);
        let partial_name = Spec::partial_name(last);
        let there = folder::stat_at(&parent, &journal_name)?.is_some();
        let is_device = out.device().is_some();
        let partial_there = !is_device && folder::stat_at(&parent, &partial_name)?.is_some();
        let data = incoming.open_data(out, &parent, How::Create)?;
        let mut found = match (there, partial_there) {
            (false, false) => Found::Nothing,
            _ => Found::Unusable(Unusable::Corrupt),
        };
        let length = if is_device { incoming.spec.padded_length() } else { data.metadata()?.len() };
        let is_cut = incoming.is_index(length);
        let full_length = is_cut || length == incoming.spec.padded_length();
        if there && full_length && incoming.spec.can_resume() {
            let file = folder::open_at(&parent, &journal_name, How::Write)?;
            match Journal::open(file, header, incoming.spec.slots())? {
                Ok((journal, old)) => {
                    if is_cut {
                        // Mostly nothing more is written to it.
                        data.set_len(incoming.spec.padded_length())?;
                    }
                    let symbols = incoming.load(&journal, is_device)?;
                    incoming.settle_zeros(is_device, true);
                    let after_power_loss = !old.clean && old.boot_id != boot_id;
                    incoming.handles = Some(Handles { data, journal });
                    return Ok((incoming, Found::Partial { symbols, after_power_loss }));
                }
                Err(why) => found = Found::Unusable(why),
            }
        } else if there && !full_length {
            found = Found::Unusable(Unusable::OtherContent);
        }
        // Truncated first: old symbols must not be taken for zeros, nor the other way round.
        folder::remove_at(&parent, &journal_name)?;
        if !is_device {
            data.set_len(0)?;
            match incoming.spec.attributes.sparse {
                true => data.set_len(incoming.spec.padded_length())?,
                false => folder::allocate(&data, incoming.spec.padded_length())?,
            }
        }
        let file = folder::open_at(&parent, &journal_name, How::Create)?;
        let journal = Journal::create(file, header, incoming.spec.slots())?;
        incoming.settle_zeros(is_device, false);
        incoming.handles = Some(Handles { data, journal });
        Ok((incoming, found))
    }

    /// Opens the files again after they were closed to spare descriptors.
    pub(crate) fn reopen(&mut self, out: &OutFolder) -> io::Result<()> {
        if self.handles.is_none() {
            let (parent, last) = out.parent(&self.spec.name)?;
            let data = self.open_data(out, &parent, How::Write)?;
            let journal = folder::open_at(&parent, Spec::journal_name(last), How::Write)?;
            self.handles = Some(Handles { data, journal: Journal::reopen(journal, self.header) });
        }
        Ok(())
    }

    /// Opens what its bytes go to.
    fn open_data(&self, out: &OutFolder, parent: &OwnedFd, how: How) -> io::Result<Data> {
        let Some(device) = out.device() else {
            let (_, last) = self.spec.name.split();
            return Ok(Data::of_file(lock(folder::open_at(parent, Spec::partial_name(last), how)?)?));
        };
        let (opened, _) = device::open_alone(device).map_err(io::Error::other)?;
        Ok(Data::of_device(lock(opened)?, &self.spec))
    }

    /// Reads from the journal what is there; gives the number of symbols. What lay beyond the end of a file that goes to a device is gone.
    fn load(&mut self, journal: &Journal, is_device: bool) -> io::Result<u64> {
        let (mut symbols, blocks) = (0, self.blocks.len());
        for part in self.spec.parts.clone() {
            for number in 0..part.layout.blocks() {
                let index = part.first_block + number;
                if is_device && self.spec.expected(index) == Some(Expected::Zeros) {
                    // To fill it again is less work than to look at it.
                    continue;
                }
                let state = journal.state(index)?;
                let block = &mut self.blocks[index as usize];
                if state == BlockState::Done {
                    block.have = block.symbols;
                    block.unchecked = true;
                    self.mark_done(index as usize);
                } else {
                    let limit = part.layout.esi_limit(number);
                    let bytes = journal.read_slots(block.first_slot, block.symbols)?;
                    // A block that was being written over: only what was not to change is known.
                    let is_last = index as usize + 1 == blocks;
                    let only_in_place = state == BlockState::WritingBack || is_device && is_last;
                    let read =
                        Slots::read(&bytes, limit, only_in_place).filter(|_| !only_in_place || part.layout.in_order());
                    let Some((slots, have)) = read else {
                        journal.write_slots(block.first_slot, &vec![0; bytes.len()])?;
                        journal.set_state(index, BlockState::Open)?;
                        continue;
                    };
                    block.have = have;
                    // All there, but killed before that was written down.
                    let complete = slots.all_in_place() && part.layout.in_order();
                    block.unchecked = complete;
                    if slots.is_dirty() {
                        let mut slots = slots;
                        if let Some((first, bytes)) = slots.write() {
                            journal.write_slots(block.first_slot + u64::from(first), &bytes)?;
                        }
                        journal.set_state(index, BlockState::Open)?;
                    }
                    if complete {
                        self.mark_done(index as usize);
                    }
                }
                symbols += u64::from(self.blocks[index as usize].have);
            }
        }
        Ok(symbols)
    }

    /// Marks the blocks as done that are not sent: a partial file begins as zeros. One `is_old` may hold something else, if an earlier run was sent
    /// symbols for them. A device holds anything, so they are to be filled there.
    fn settle_zeros(&mut self, is_device: bool, is_old: bool) {
        for index in 0..self.blocks.len() {
            let block = &mut self.blocks[index];
            if block.done || self.spec.expected(index as u32) != Some(Expected::Zeros) {
                continue;
            }
            if is_device {
                block.job = Some(Job::Fill);
            } else {
                (block.have, block.unchecked) = (block.symbols, is_old);
                self.mark_done(index);
            }
        }
    }

    /// Marks a block as done.
    pub(crate) fn mark_done(&mut self, index: usize) {
        let block = &mut self.blocks[index];
        block.done = true;
        block.slots = None;
        block.values = None;
        block.has_values = false;
        block.extra = Vec::new();
        self.left -= 1;
    }

    /// Opens a block again that was done in an earlier run and is wrong: nothing of it is of use.
    pub(crate) fn open_again(&mut self, index: u32) -> io::Result<()> {
        let block = &mut self.blocks[index as usize];
        (block.done, block.unchecked, block.have) = (false, false, 0);
        self.left += 1;
        let (first_slot, bytes) = (block.first_slot, block.symbols as usize * super::slots::ENTRY);
        let journal = &self.handles.as_ref().expect("was just opened").journal;
        journal.write_slots(first_slot, &vec![0; bytes])?;
        journal.set_state(index, BlockState::Open)
    }

    /// The block that takes the byte at `at`.
    pub(crate) fn block_at(&mut self, at: u64) -> Option<&mut Block> {
        let after = self.blocks.partition_point(|block| block.start <= at);
        self.blocks.get_mut(after.checked_sub(1)?)
    }

    /// Bytes of memory that it takes, maps and symbols that wait included.
    pub(crate) fn memory(&self) -> u64 {
        let index = self.unpacking.as_ref().map_or(0, |unpacking| unpacking.memory());
        self.spec.memory()
            + self.map_memory()
            + self.value_memory()
            + self.blocks.iter().map(Block::extra_bytes).sum::<u64>()
            + index
    }

    /// Bytes of memory that the maps of its blocks take.
    pub(crate) fn map_memory(&self) -> u64 {
        self.blocks.iter().map(Block::map_memory).sum()
    }

    /// Bytes of memory that the values of its blocks' pieces take.
    pub(crate) fn value_memory(&self) -> u64 {
        self.blocks.iter().map(Block::value_memory).sum()
    }

    /// Symbols that are in the file.
    pub(crate) fn symbols(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.have)).sum()
    }

    /// Removes the partial file and its journal.
    pub(crate) fn discard(mut self, out: &OutFolder) -> io::Result<Spec> {
        self.handles = None;
        let (parent, last) = out.parent(&self.spec.name)?;
        folder::remove_at(&parent, Spec::journal_name(last))?;
        folder::remove_at(&parent, Spec::partial_name(last))?;
        Ok(self.spec)
    }

    /// The folder of the file, and its last name.
    pub(crate) fn parent<'a>(&'a self, out: &OutFolder) -> io::Result<(OwnedFd, &'a OsStr)> {
        out.parent(&self.spec.name)
    }
}

fn lock(file: File) -> io::Result<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

fn blocks(spec: &Spec) -> Vec<Block> {
    let mut blocks = Vec::with_capacity(spec.blocks() as usize);
    let mut first_slot = 0;
    for part in &spec.parts {
        for number in 0..part.layout.blocks() {
            let symbols = part.layout.symbols(number);
            let offset = part.layout.offset(number);
            let padded = u64::from(symbols) * part.layout.symbol_size() as u64;
            blocks.push(Block {
                symbols,
                have: 0,
                done: false,
                job: None,
                unchecked: false,
                touched: false,
                first_slot,
                start: part.offset + offset,
                length: padded.min(part.layout.transfer_length() - offset),
                slots: None,
                values: None,
                has_values: false,
                keeps_values: false,
                extra: Vec::new(),
                recollection: None,
                wanted_extra: None,
            });
            first_slot += u64::from(symbols);
        }
    }
    blocks
}

/// What maps and lists take for a file and for an object, besides what they consist of.
const FILE_OVERHEAD: usize = 200;
const OBJECT_OVERHEAD: usize = 64;

/// With two symbols more than it has source symbols, a block cannot be decoded once in a million times (RFC 6330, section 1).
const SPARE_SYMBOLS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_of_which_a_block_is_not_sent_is_refused() {
        let layout = Layout::choose(10_000, 1_000, 4, 255).expect("two blocks and more");
        let entry = |second: BlockDigest| {
            let mut blocks = vec![[7; 16]; layout.blocks() as usize];
            blocks[1] = second;
            FileEntry {
                toi: 1,
                name: Name::new("bundle").expect("a name"),
                offset: 0,
                file_length: 10_000,
                transfer_length: 10_000,
                oti: Some(layout.oti()),
                digest: Some([1; 32]),
                blocks,
                md5: None,
                attributes: Attributes::default(),
                bundle: Some(BundleEntry { files: 40, index_bytes: 900, index_digest: [3; 32] }),
            }
        };
        let error = |second| Spec::new(&[entry(second)]).err();
        assert_eq!((error([8; 16]), error(ZEROS)), (None, Some(SpecError::Bundle)));
        let plain = FileEntry { bundle: None, ..entry(ZEROS) };
        let spec = Spec::new(&[plain]).expect("a file may have one");
        assert_eq!(spec.expected(1), Some(Expected::Zeros));
    }
}
