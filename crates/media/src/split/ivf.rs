//! IVF files: a header of 32 bytes, and 12 bytes in front of each frame. Numbers are little-endian.

use super::layering::Layering;
use super::{FrameRate, Output};
use crate::{MAX_PICTURE_BYTES, MediaError};

/// The header of a file in bytes.
pub(crate) const FILE_HEADER: usize = 32;

/// The header of a frame in bytes: its length in 4, its time in 8.
pub(crate) const FRAME_HEADER: usize = 12;

/// What a file's frames hold: pictures of a codec.
pub(super) trait Frames {
    /// The next frame. The time is in units of 1/90000 s.
    fn take(&mut self, data: Vec<u8>, timestamp: u32, out: &mut Output);

    /// There are no more frames.
    fn finish(&mut self, out: &mut Output);

    /// Where its pictures are placed.
    fn layering(&self) -> &Layering;
}

/// Splits an IVF file.
#[derive(Debug, Default)]
pub(super) struct Ivf<F> {
    buffer: Vec<u8>,
    /// Units of the file's times a second; `None` until the header of the file is there.
    units: Option<FrameRate>,
    frames: F,
}

impl<F: Frames> Ivf<F> {
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Output) {
        self.buffer.extend_from_slice(bytes);
        let mut at = 0;
        if self.units.is_none() {
            let Some(header) = self.buffer.first_chunk::<FILE_HEADER>() else { return };
            self.units = Some(units(header));
            at = FILE_HEADER;
        }
        while let Some((header, rest)) = self.buffer.get(at..).and_then(<[u8]>::split_first_chunk::<FRAME_HEADER>) {
            let [l0, l1, l2, l3, time @ ..] = *header;
            let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
            if length > MAX_PICTURE_BYTES {
                out.push_back(Err(MediaError::TooLong { limit: MAX_PICTURE_BYTES }));
                return;
            }
            let Some(frame) = rest.get(..length).map(<[u8]>::to_vec) else { break };
            at += FRAME_HEADER + length;
            let timestamp = self.timestamp(u64::from_le_bytes(time));
            self.frames.take(frame, timestamp, out);
        }
        self.buffer.drain(..at);
    }

    pub(super) fn finish(&mut self, out: &mut Output) {
        self.frames.finish(out);
        if !self.buffer.is_empty() {
            self.frames.layering().leave_out("the file is cut off in it", out);
        }
    }

    /// What the frames hold.
    pub(super) fn frames(&self) -> &F {
        &self.frames
    }

    fn timestamp(&self, time: u64) -> u32 {
        let units = self.units.unwrap_or(FrameRate { pictures: 30, seconds: 1 });
        (u128::from(time) * 90_000 * u128::from(units.seconds) / u128::from(units.pictures)) as u32
    }
}

/// How many units of its times are a second in a file: the numbers at 16 and 20 are a fraction of units a second.
fn units(header: &[u8; FILE_HEADER]) -> FrameRate {
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    FrameRate { pictures: number(16).max(1), seconds: number(20).max(1) }
}
