//! What comes from strangers, and what lies on disks: any bytes are understood or refused, without a panic and within the
//! limits of `weir_fuzz`.

mod decoders;
mod descriptions;
mod encoders;
mod handshake;
mod journals;
mod media;
mod receipts;
mod store;
mod tables;

use std::path::Path;

/// A folder for the files of an input: in memory, where there is such a file system.
fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
    folder.expect("a temporary folder can be made")
}

/// Reads numbers from an input; zeros when it is used up.
struct Draw<'i>(&'i [u8]);

impl<'i> Draw<'i> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next bytes, fewer where the input ends.
    fn bytes(&mut self, count: usize) -> &'i [u8] {
        let (head, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        head
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self.bytes(N);
        std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
    }

    fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }
}
