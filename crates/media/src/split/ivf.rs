//! IVF files: a header of 32 bytes, and 12 bytes in front of each frame. Numbers are little-endian.

use super::vp9::{Kind, Structure};
use super::{FrameRate, Output};
use crate::split::order::{Numbering, Role};
use crate::{Codec, MAX_PICTURE_BYTES, MediaError, Picture};

/// The header of a file in bytes.
pub(crate) const FILE_HEADER: usize = 32;

/// The header of a frame in bytes: its length in 4, its time in 8.
pub(crate) const FRAME_HEADER: usize = 12;

/// Splits an IVF file of VP9.
#[derive(Debug, Default)]
pub(super) struct Ivf {
    buffer: Vec<u8>,
    /// Units of the file's times a second; `None` until the header of the file is there.
    units: Option<FrameRate>,
    structure: Structure,
    numbering: Numbering,
    /// Unreferenced pictures whose layer is not known yet: 1, or 2 if there are pictures between them and the base layer.
    held: Vec<(u32, Vec<u8>)>,
    top: Top,
    is_one_layer: bool,
    is_told_of_start: bool,
}

/// Which layer unreferenced pictures are of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Top {
    #[default]
    Unknown,
    One,
    Two,
}

impl Ivf {
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
            self.take(frame, timestamp, out);
        }
        self.buffer.drain(..at);
    }

    pub(super) fn finish(&mut self, out: &mut Output) {
        self.settle(Top::One, out);
        if !self.buffer.is_empty() {
            let what = "the file is cut off in it";
            out.push_back(Err(MediaError::Damaged { codec: Codec::Vp9, what }));
        }
    }

    fn timestamp(&self, time: u64) -> u32 {
        let units = self.units.unwrap_or(FrameRate { pictures: 30, seconds: 1 });
        (u128::from(time) * 90_000 * u128::from(units.seconds) / u128::from(units.pictures)) as u32
    }

    fn take(&mut self, data: Vec<u8>, timestamp: u32, out: &mut Output) {
        let Some(seen) = self.structure.see(&data) else {
            out.push_back(Err(MediaError::Damaged {
                codec: Codec::Vp9,
                what: "its uncompressed header cannot be read",
            }));
            return;
        };
        if !seen.is_key && !self.numbering.has_begun() {
            if !std::mem::replace(&mut self.is_told_of_start, true) {
                let what = "the stream does not begin with a key picture, so this one and those up to it are of no use";
                out.push_back(Err(MediaError::Damaged { codec: Codec::Vp9, what }));
            }
            return;
        }
        if let Some(why) = seen.flaw {
            self.fold(why, out);
        }
        let layer = match seen.kind {
            _ if self.is_one_layer => 0,
            Kind::Base => {
                self.settle(Top::One, out);
                0
            }
            Kind::Middle => {
                self.settle(Top::Two, out);
                1
            }
            Kind::Unreferenced if self.top == Top::Unknown && self.held.len() < MAX_HELD => {
                self.held.push((timestamp, data));
                return;
            }
            Kind::Unreferenced => {
                self.settle(Top::One, out);
                if self.top == Top::Two { 2 } else { 1 }
            }
        };
        self.emit(layer, seen.is_key, timestamp, data, out);
    }

    /// What the top layer is, unless that is known; more layers may show later.
    fn settle(&mut self, top: Top, out: &mut Output) {
        if self.held.is_empty() {
            // A base picture without any other in front of it tells nothing.
            self.top = if top == Top::Two { top } else { self.top };
            return;
        }
        self.top = top;
        for (timestamp, data) in std::mem::take(&mut self.held) {
            self.emit(if top == Top::Two { 2 } else { 1 }, false, timestamp, data, out);
        }
    }

    fn emit(&mut self, layer: u8, is_key: bool, timestamp: u32, data: Vec<u8>, out: &mut Output) {
        let role = if is_key { Role::Key } else { Role::Plain };
        let layer = if self.is_one_layer { 0 } else { layer };
        let info = self.numbering.place(layer, role).or_else(|| {
            self.fold("a picture needs one that is too far back", out);
            self.numbering.place(0, role)
        });
        if let Some(info) = info {
            out.push_back(Ok(Picture { info, timestamp, data }));
        }
    }

    /// From here on all is one layer.
    fn fold(&mut self, why: &'static str, out: &mut Output) {
        if self.is_one_layer {
            return;
        }
        self.settle(Top::One, out);
        self.is_one_layer = true;
        self.numbering.fold();
        out.push_back(Err(MediaError::NotLayered { number: self.numbering.number(), why }));
    }
}

/// How many units of its times are a second in a file: the numbers at 16 and 20 are a fraction of units a second.
fn units(header: &[u8; FILE_HEADER]) -> FrameRate {
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    FrameRate { pictures: number(16).max(1), seconds: number(20).max(1) }
}

/// Unreferenced pictures in a row before the first other one, for which there is hope.
const MAX_HELD: usize = 8;
