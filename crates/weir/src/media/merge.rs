//! Layers that are files of their own, put together to one stream: IVF files with one clock, whose frames are given out in the order of
//! their times. Which frame is of which layer is found in the merged stream, as ever, and not taken from the file that it came from.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use weir_media::MAX_PICTURE_BYTES;

use super::rtp_input::RtpInput;

/// The bytes of a programme.
#[derive(Debug)]
pub(super) enum Reading {
    /// Of a file or a pipe.
    One(File),
    /// Of several files.
    Merged(Box<Merged>),
    /// Of an RTP stream.
    Rtp(Box<RtpInput>),
}

impl Reading {
    /// Opens one file, or several with a layer each, the base first.
    ///
    /// # Errors
    /// With the name of the file, if one cannot be read, or is no IVF file where there are several.
    pub(super) fn open(base: &Path, others: &[PathBuf]) -> io::Result<Reading> {
        if others.is_empty() {
            return File::open(base).map(Reading::One);
        }
        let paths = [base].into_iter().chain(others.iter().map(PathBuf::as_path));
        let files = paths.map(|path| Layer::open(path).map_err(|error| of(path, &error))).collect::<io::Result<_>>()?;
        Ok(Reading::Merged(Box::new(Merged::new(files))))
    }
}

impl Reading {
    /// How often something was missing before what was read.
    pub(super) fn gaps(&self) -> u64 {
        match self {
            Reading::One(_) | Reading::Merged(_) => 0,
            Reading::Rtp(stream) => stream.gaps(),
        }
    }
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Reading::One(file) => file.read(buffer),
            Reading::Merged(merged) => merged.read(buffer),
            Reading::Rtp(stream) => stream.read(buffer),
        }
    }
}

impl AsFd for Reading {
    /// Of several files, that of the base: files can always be read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Reading::One(file) => file.as_fd(),
            Reading::Merged(merged) => merged.layers[0].reader.get_ref().as_fd(),
            Reading::Rtp(stream) => stream.as_fd(),
        }
    }
}

/// Several files as one.
#[derive(Debug)]
pub(super) struct Merged {
    layers: Vec<Layer>,
    /// What is read next, from this place on.
    ready: Vec<u8>,
    at: usize,
}

/// A file.
#[derive(Debug)]
struct Layer {
    path: PathBuf,
    reader: BufReader<File>,
    header: [u8; FILE_HEADER],
    /// Its next frame: its time in units of the base's file, and its bytes. `None` at its end.
    next: Option<(u64, Vec<u8>)>,
}

impl Merged {
    fn new(layers: Vec<Layer>) -> Merged {
        let ready = layers[0].header.to_vec();
        Merged { layers, ready, at: 0 }
    }

    /// The next frame of all files by its time, the base's first of those at one time.
    fn advance(&mut self) -> io::Result<()> {
        let base = self.layers[0].header;
        for layer in &mut self.layers {
            layer.fill(&base).map_err(|error| of(&layer.path, &error))?;
        }
        let times = self.layers.iter().enumerate().filter_map(|(place, layer)| Some((layer.next.as_ref()?.0, place)));
        (self.ready, self.at) = (Vec::new(), 0);
        let Some((time, place)) = times.min() else { return Ok(()) };
        if let Some((_, frame)) = self.layers[place].next.take() {
            self.ready.extend((frame.len() as u32).to_le_bytes());
            self.ready.extend(time.to_le_bytes());
            self.ready.extend(frame);
        }
        Ok(())
    }
}

impl Read for Merged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.ready.len() {
            self.advance()?;
        }
        let read = (&self.ready[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

impl Layer {
    fn open(path: &Path) -> io::Result<Layer> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut header = [0; FILE_HEADER];
        reader.read_exact(&mut header).map_err(|_| wrong("it is no IVF file"))?;
        if &header[..4] != b"DKIF" || usize::from(u16::from_le_bytes([header[6], header[7]])) != FILE_HEADER {
            let text = "it is no IVF file; layers that are files of their own are VP9 in IVF, with times of one clock";
            return Err(wrong(text));
        }
        if units(&header).is_none() {
            return Err(wrong("its header says nothing of its clock"));
        }
        Ok(Layer { path: path.to_owned(), reader, header, next: None })
    }

    /// Reads the next frame, unless it is there or there is none. Times are told in units of `base`.
    fn fill(&mut self, base: &[u8; FILE_HEADER]) -> io::Result<()> {
        if self.next.is_some() {
            return Ok(());
        }
        let mut header = Vec::new();
        self.reader.by_ref().take(FRAME_HEADER as u64).read_to_end(&mut header)?;
        let Some(&[a, b, c, d, ref time @ ..]) = header.first_chunk::<FRAME_HEADER>() else {
            return if header.is_empty() { Ok(()) } else { Err(wrong("it is cut off in a frame")) };
        };
        let length = u32::from_le_bytes([a, b, c, d]);
        if length as usize > MAX_PICTURE_BYTES {
            return Err(wrong("a frame is longer than any picture"));
        }
        let mut frame = Vec::new();
        self.reader.by_ref().take(length.into()).read_to_end(&mut frame)?;
        if frame.len() < length as usize {
            return Err(wrong("it is cut off in a frame"));
        }
        let (own, theirs) = (units(&self.header).unwrap_or(ONE), units(base).unwrap_or(ONE));
        // Times are in units of numerator / denominator seconds.
        let scaled = u128::from(u64::from_le_bytes(*time)) * own.1 * theirs.0 / (own.0 * theirs.1);
        self.next = Some((u64::try_from(scaled).unwrap_or(u64::MAX), frame));
        Ok(())
    }
}

/// The denominator and the numerator of the unit of a file's times, in seconds; `None` if it has none.
fn units(header: &[u8; FILE_HEADER]) -> Option<(u128, u128)> {
    let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u128::from(u32::from_le_bytes(*bytes)));
    let (denominator, numerator) = (number(16), number(20));
    (denominator > 0 && numerator > 0).then_some((denominator, numerator))
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

/// An error with the name of the file.
fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

const ONE: (u128, u128) = (1, 1);
const FILE_HEADER: usize = 32;
const FRAME_HEADER: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file whose times are in units of 1/`rate` seconds, with these frames.
    fn file(rate: u32, frames: &[(u64, &[u8])]) -> tempfile::NamedTempFile {
        let mut bytes = b"DKIF\0\0\x20\0VP90\x40\x01\xb4\0".to_vec();
        bytes.extend(rate.to_le_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for (time, frame) in frames {
            bytes.extend((frame.len() as u32).to_le_bytes());
            bytes.extend(time.to_le_bytes());
            bytes.extend(*frame);
        }
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&bytes).expect("it takes bytes");
        file
    }

    fn merged(files: &[&tempfile::NamedTempFile]) -> io::Result<Vec<u8>> {
        let others: Vec<PathBuf> = files[1..].iter().map(|file| file.path().to_owned()).collect();
        let mut out = Vec::new();
        Reading::open(files[0].path(), &others)?.read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn frames_of_several_files_come_in_the_order_of_their_times_whatever_their_units() {
        let base = file(30, &[(0, b"a"), (4, b"e"), (8, b"i")]);
        let top = file(90_000, &[(6_000, b"c"), (12_000, b"f"), (18_000, b"g")]);
        let whole = file(30, &[(0, b"a"), (2, b"c"), (4, b"e"), (4, b"f"), (6, b"g"), (8, b"i")]);
        let bytes = merged(&[&base, &top]).expect("they are files");
        assert_eq!(bytes, std::fs::read(whole.path()).expect("it is there"));
    }

    #[test]
    fn a_layer_that_ends_early_leaves_the_others() {
        let (base, top) = (file(30, &[(0, b"a"), (4, b"e")]), file(30, &[]));
        assert_eq!(merged(&[&base, &top]).expect("they are files"), std::fs::read(base.path()).expect("it is there"));
    }

    #[test]
    fn what_is_no_ivf_file_or_is_cut_off_is_named() {
        let base = file(30, &[(0, b"a")]);
        let mut rubbish = tempfile::NamedTempFile::new().expect("a file");
        rubbish.write_all(&[7; 100]).expect("it takes bytes");
        let error = merged(&[&base, &rubbish]).expect_err("it is no IVF file").to_string();
        assert!(error.contains(&rubbish.path().display().to_string()) && error.contains("no IVF"), "{error}");
        let cut = file(30, &[(0, b"abc")]);
        cut.as_file().set_len(32 + 12 + 1).expect("it can be cut");
        assert!(merged(&[&base, &cut]).expect_err("it is cut off").to_string().contains("cut off"));
        assert!(merged(&[&base, &file(0, &[])]).expect_err("it has no clock").to_string().contains("clock"));
    }
}
