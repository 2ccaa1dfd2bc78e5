//! The journal next to a partial file: which object it is of, and which symbols are in it.
//!
//! Layout, little-endian: a header of 4096 bytes (magic `WEIRJRNL`, version 32 bits, blocks 32 bits, identity 32 bytes, boot id
//! 16 bytes, clean flag 8 bits, session 8 bytes, then the first 8 bytes of BLAKE3 over all before it); one byte of state a block; at the
//! next multiple of 4096 the slot maps of all blocks, four bytes a slot (see [`super::slots`]).
//!
//! Data are written before the map that speaks of them, and a block that is emptied has its map written before other data. A process
//! that is killed leaves a map that is true. A machine that loses power may not: then the digests of the blocks decide, and one that is
//! wrong is collected again. Without those the digest of the whole file decides, and a mismatch starts the file afresh.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::slots::ENTRY;

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    header: Header,
}

/// What a journal is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Digest over everything that must be equal for the partial file to be of use.
    pub(crate) identity: [u8; 32],
    pub(crate) blocks: u32,
    pub(crate) boot_id: [u8; 16],
    /// Whether it was closed after everything had been written through to the disk.
    pub(crate) clean: bool,
    /// By which session it was written last.
    pub(crate) session: Session,
}

/// What tells one session from another.
pub(crate) type Session = [u8; 8];

/// How far a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockState {
    Open,
    Done,
    /// Its decoded symbols are being written over those that it was decoded from.
    WritingBack,
}

impl Journal {
    /// Makes `file` a new journal with nothing in it.
    pub(crate) fn create(file: File, header: Header, slots: u64) -> io::Result<Journal> {
        file.set_len(0)?;
        super::folder::allocate(&file, map_start(header.blocks) + slots * ENTRY as u64)?;
        let journal = Journal { file, header };
        journal.write_header()?;
        Ok(journal)
    }

    /// Opens a journal for a partial file like `expected`; says what is wrong if it is not of one.
    pub(crate) fn open(file: File, expected: Header, slots: u64) -> io::Result<Result<(Journal, Header), Unusable>> {
        let mut bytes = [0; HEADER];
        if file.metadata()?.len() != map_start(expected.blocks) + slots * ENTRY as u64 {
            // A journal of another cut has another length; so has a truncated one.
            let read = file.read_at(&mut bytes, 0)?;
            let known = Header::decode(&bytes[..read]).is_some_and(|header| header.identity != expected.identity);
            return Ok(Err(if known { Unusable::OtherContent } else { Unusable::Corrupt }));
        }
        file.read_exact_at(&mut bytes, 0)?;
        let Some(found) = Header::decode(&bytes) else { return Ok(Err(Unusable::Corrupt)) };
        if found.identity != expected.identity || found.blocks != expected.blocks {
            return Ok(Err(Unusable::OtherContent));
        }
        let journal = Journal { file, header: expected };
        journal.write_header()?;
        Ok(Ok((journal, found)))
    }

    /// Opens a journal again that this process has opened before.
    pub(crate) fn reopen(file: File, header: Header) -> Journal {
        Journal { file, header }
    }

    /// The session that wrote a journal last, if it is a journal.
    pub(crate) fn session_of(file: &File) -> io::Result<Option<Session>> {
        let mut bytes = [0; HEADER];
        let read = file.read_at(&mut bytes, 0)?;
        Ok(Header::decode(&bytes[..read]).map(|header| header.session))
    }

    fn write_header(&self) -> io::Result<()> {
        self.file.write_all_at(&self.header.encode(), 0)
    }

    /// Notes that everything is on the disk.
    pub(crate) fn close_clean(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.header.clean = true;
        self.write_header()?;
        self.file.sync_data()
    }

    pub(crate) fn state(&self, block: u32) -> io::Result<BlockState> {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, HEADER as u64 + u64::from(block))?;
        Ok(match byte[0] {
            1 => BlockState::Done,
            2 => BlockState::WritingBack,
            _ => BlockState::Open,
        })
    }

    pub(crate) fn set_state(&self, block: u32, state: BlockState) -> io::Result<()> {
        let byte = match state {
            BlockState::Open => 0,
            BlockState::Done => 1,
            BlockState::WritingBack => 2,
        };
        self.file.write_all_at(&[byte], HEADER as u64 + u64::from(block))
    }

    /// The bytes of the map of `count` slots from `first` on, counted through all blocks.
    pub(crate) fn read_slots(&self, first: u64, count: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count as usize * ENTRY];
        self.file.read_exact_at(&mut bytes, map_start(self.header.blocks) + first * ENTRY as u64)?;
        Ok(bytes)
    }

    pub(crate) fn write_slots(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, map_start(self.header.blocks) + first * ENTRY as u64)
    }
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.blocks.to_le_bytes());
        out[16..48].copy_from_slice(&self.identity);
        out[48..64].copy_from_slice(&self.boot_id);
        out[64] = u8::from(self.clean);
        out[65..CHECKED].copy_from_slice(&self.session);
        let check = blake3::hash(&out[..CHECKED]);
        out[CHECKED..CHECKED + 8].copy_from_slice(&check.as_bytes()[..8]);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..CHECKED + 8)?;
        let array = |at: usize| bytes[at..at + 4].try_into().expect("four bytes");
        let sound = bytes[..8] == *MAGIC
            && u32::from_le_bytes(array(8)) == VERSION
            && blake3::hash(&bytes[..CHECKED]).as_bytes()[..8] == bytes[CHECKED..];
        sound.then(|| Header {
            blocks: u32::from_le_bytes(array(12)),
            identity: bytes[16..48].try_into().expect("32 bytes"),
            boot_id: bytes[48..64].try_into().expect("16 bytes"),
            clean: bytes[64] != 0,
            session: bytes[65..CHECKED].try_into().expect("8 bytes"),
        })
    }
}

/// Why a journal cannot be used. The partial file next to it is begun afresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// It is damaged, truncated, of another version, or missing.
    #[error("its journal is damaged or of another version")]
    Corrupt,
    /// It is of another file.
    #[error("it is of other content; the sender's file has changed")]
    OtherContent,
}

fn map_start(blocks: u32) -> u64 {
    (HEADER as u64 + u64::from(blocks)).next_multiple_of(HEADER as u64)
}

const MAGIC: &[u8; 8] = b"WEIRJRNL";
const VERSION: u32 = 2;
const HEADER: usize = 4096;
/// Bytes of the header that its check is over.
const CHECKED: usize = 73;
