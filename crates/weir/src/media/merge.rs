//! What a programme is read from: a file or a pipe, layers that are files of their own and are put together here, or RTP streams.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use weir_media::{Codec, SplitOptions, Splitter};

use self::annexb::Interleaved;
use self::ivf::Merged;
use super::rtp_input::RtpInput;

mod annexb;
mod ivf;

/// The bytes of a programme.
#[derive(Debug)]
pub(super) enum Reading {
    /// Of a file or a pipe.
    One(File),
    /// Of several files.
    Several(Several),
    /// Of RTP streams.
    Rtp(Box<RtpInput>),
}

/// Files with a layer each, the base first, put together picture by picture.
trait Layers: fmt::Debug + Send {
    /// The bytes of the next picture; none at the end.
    fn next(&mut self) -> io::Result<Vec<u8>>;

    /// The file of the base.
    fn base(&self) -> &File;

    /// How many pictures came from each file.
    fn pictures(&self) -> Vec<(&Path, usize)>;

    /// What the user is to know of what was read, once.
    fn told(&mut self) -> Vec<String>;
}

/// Several files, read as one.
#[derive(Debug)]
pub(super) struct Several {
    layers: Box<dyn Layers>,
    /// What is read next, from this place on.
    ready: Vec<u8>,
    at: usize,
}

impl Reading {
    /// Opens one file, or several with a layer each, the base first.
    ///
    /// # Errors
    /// With the name of the file, if one cannot be read, or is not of the base's format where there are several.
    pub(super) fn open(base: &Path, others: &[PathBuf]) -> io::Result<Reading> {
        if others.is_empty() {
            return File::open(base).map(Reading::One);
        }
        let paths = || [base].into_iter().chain(others.iter().map(PathBuf::as_path));
        let codec = codec(base)?;
        let (layers, ready): (Box<dyn Layers>, _) = match Interleaved::open(codec, paths())? {
            Some(interleaved) => (Box::new(interleaved), Vec::new()),
            None => {
                let merged = Merged::open(paths())?;
                let header = merged.header().to_vec();
                (Box::new(merged), header)
            }
        };
        Ok(Reading::Several(Several { layers, ready, at: 0 }))
    }

    /// What the user is to know of what was read, each once.
    pub(super) fn told(&mut self) -> Vec<String> {
        match self {
            Reading::One(_) => Vec::new(),
            Reading::Several(several) => several.layers.told(),
            Reading::Rtp(stream) => stream.told(),
        }
    }

    /// Of several files, how many pictures came from each.
    pub(super) fn pictures_of_files(&self) -> Option<Vec<(&Path, usize)>> {
        let Reading::Several(several) = self else { return None };
        Some(several.layers.pictures())
    }

    /// How often something was missing before what was read.
    pub(super) fn gaps(&self) -> u64 {
        match self {
            Reading::One(_) | Reading::Several(_) => 0,
            Reading::Rtp(stream) => stream.gaps(),
        }
    }
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Reading::One(file) => file.read(buffer),
            Reading::Several(several) => several.read(buffer),
            Reading::Rtp(stream) => stream.read(buffer),
        }
    }
}

impl Read for Several {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.ready.len() {
            (self.ready, self.at) = (self.layers.next()?, 0);
        }
        let read = (&self.ready[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

impl AsFd for Reading {
    /// Of several files, that of the base: files can always be read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Reading::One(file) => file.as_fd(),
            Reading::Several(several) => several.layers.base().as_fd(),
            Reading::Rtp(stream) => stream.as_fd(),
        }
    }
}

/// What files hold, by the first bytes of one of them.
fn codec(path: &Path) -> io::Result<Codec> {
    let mut splitter = Splitter::new(SplitOptions::default());
    let mut first = Vec::new();
    File::open(path)?.take(PROBED).read_to_end(&mut first)?;
    splitter.push(&first);
    splitter.codec().ok_or_else(|| wrong("it begins with no VP9 or AV1 in IVF and no raw HEVC or H.264"))
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

/// An error with the name of the file.
fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Bytes that show what a file holds.
const PROBED: u64 = 1 << 16;
