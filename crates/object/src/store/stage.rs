//! Symbols on their way to the disk: gathered for a moment, so that neighbours are written at one go.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use nix::sys::uio::pwritev;

/// The symbols that wait.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Some consecutive bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    file: u32,
    offset: u64,
    /// Where they are in the stage.
    start: u32,
    length: u32,
}

impl Stage {
    /// Takes `symbol`, filled up with zeros to `size`, for `offset` in `file`.
    pub(crate) fn push(&mut self, file: u32, offset: u64, symbol: &[u8], size: usize) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(symbol);
        self.bytes.resize(start as usize + size, 0);
        let length = size as u32;
        match self.entries.last_mut() {
            Some(last) if last.file == file && last.offset + u64::from(last.length) == offset => last.length += length,
            _ => self.entries.push(Entry { file, offset, start, length }),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= STAGE_BYTES
    }

    /// The files that have bytes here, in order; sorts the entries, so [`Stage::write`] can follow.
    pub(crate) fn files(&mut self) -> Vec<u32> {
        self.entries.sort_unstable();
        let mut files: Vec<u32> = self.entries.iter().map(|entry| entry.file).collect();
        files.dedup();
        files
    }

    /// Writes what waits for `file`.
    pub(crate) fn write(&self, file: u32, handle: &File) -> io::Result<()> {
        let first = self.entries.partition_point(|entry| entry.file < file);
        let mut rest = &self.entries[first..];
        while let Some(entry) = rest.first().filter(|entry| entry.file == file) {
            let mut slices = Vec::with_capacity(16);
            let mut end = entry.offset;
            while let Some(entry) = rest.first().filter(|next| next.file == file && next.offset == end) {
                slices.push(IoSlice::new(&self.bytes[entry.start as usize..][..entry.length as usize]));
                end += u64::from(entry.length);
                rest = &rest[1..];
                if slices.len() == MAX_SLICES {
                    break;
                }
            }
            write_all(handle, &mut slices, entry.offset)?;
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

fn write_all(handle: &File, mut slices: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    while !slices.is_empty() {
        match pwritev(handle.as_fd(), slices, offset as i64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Enough that neighbours meet: with 1 MiB a write is a run of the sender's, with more it is several. Measured on tmpfs.
const STAGE_BYTES: usize = 4 << 20;
/// Below the kernel's limit of 1024.
const MAX_SLICES: usize = 512;
