//! Pictures as files that players and decoders read: IVF for VP9 and AV1, Annex B for HEVC and H.264.

use std::io::{self, Write};

use weir_units::Seq;

use crate::Codec;
use crate::split::{av1, ivf, vp9};

/// Writes pictures, each flushed, to anything that takes bytes.
///
/// An IVF file counts its times from its first picture, in units of 1/90000 s. Its header does not say how many pictures there
/// are, as nobody knows in a stream; ffmpeg and players read on to the end.
#[derive(Debug)]
pub struct Writer<W> {
    codec: Codec,
    out: W,
    /// The first and the last picture's timestamps, extended.
    times: Option<(Seq, Seq)>,
}

impl<W: Write> Writer<W> {
    /// Writes nothing before the first picture.
    pub fn new(codec: Codec, out: W) -> Writer<W> {
        Writer { codec, out, times: None }
    }

    /// Writes the next picture in decode order, and flushes. The time is [`crate::Picture::timestamp`].
    ///
    /// # Errors
    ///
    /// Those of the writer underneath.
    pub fn write(&mut self, timestamp: u32, picture: &[u8]) -> io::Result<()> {
        if let Some(fourcc) = fourcc(self.codec) {
            self.write_header(fourcc, timestamp, picture)?;
        }
        self.out.write_all(picture)?;
        self.out.flush()
    }

    /// What is written to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// The header of the frame, and of the file in front of the first.
    fn write_header(&mut self, fourcc: [u8; 4], timestamp: u32, picture: &[u8]) -> io::Result<()> {
        let (first, time) = match self.times {
            Some((first, last)) => (first, last.extend(timestamp, 32)),
            None => {
                let dimensions = match self.codec {
                    Codec::Av1 => av1::dimensions(picture),
                    _ => vp9::dimensions(picture),
                };
                self.out.write_all(&file_header(fourcc, dimensions.unwrap_or_default()))?;
                // Away from 0, so that a time before the first is not below it.
                let first = Seq::new(1 << 32 | u64::from(timestamp));
                (first, first)
            }
        };
        self.times = Some((first, time));
        let length = u32::try_from(picture.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut header = [0; ivf::FRAME_HEADER];
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&time.value().saturating_sub(first.value()).to_le_bytes());
        self.out.write_all(&header)
    }
}

/// The four characters that name a codec in IVF files, if it goes into such.
fn fourcc(codec: Codec) -> Option<[u8; 4]> {
    match codec {
        Codec::Vp9 => Some(*b"VP90"),
        Codec::Av1 => Some(*b"AV01"),
        Codec::Hevc | Codec::H264 => None,
    }
}

fn file_header(fourcc: [u8; 4], (width, height): (u16, u16)) -> [u8; ivf::FILE_HEADER] {
    let mut header = [0; ivf::FILE_HEADER];
    header[..4].copy_from_slice(b"DKIF");
    header[6..8].copy_from_slice(&(ivf::FILE_HEADER as u16).to_le_bytes());
    header[8..12].copy_from_slice(&fourcc);
    header[12..14].copy_from_slice(&width.to_le_bytes());
    header[14..16].copy_from_slice(&height.to_le_bytes());
    header[16..20].copy_from_slice(&90_000_u32.to_le_bytes());
    header[20..24].copy_from_slice(&1_u32.to_le_bytes());
    header
}
