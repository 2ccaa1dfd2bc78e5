//! Byte streams of NAL units (H.264 and HEVC, annex B) as access units: the units of a picture with those in front of it.

use std::collections::VecDeque;
use std::ops::Range;

use super::{h264, hevc};
use crate::{Codec, MAX_PICTURE_BYTES, MediaError};

/// The start code that units have in pictures.
pub(crate) const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// What a NAL unit is for an access unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// The first slice of a picture.
    FirstSlice,
    /// A further slice.
    Slice,
    Vps,
    Sps,
    Pps,
    /// An access unit delimiter, which nothing may precede in its picture.
    Delimiter,
    /// Anything else that belongs to the picture behind it.
    Prefix,
    /// Anything else that belongs to the picture before it.
    Suffix,
    /// It is left out: broken, or of an extension.
    Nothing,
}

impl Unit {
    pub(super) fn of(codec: Codec, nal: &[u8]) -> Unit {
        match codec {
            Codec::Hevc => hevc::unit(nal),
            Codec::H264 => h264::unit(nal),
            Codec::Vp9 | Codec::Av1 => Unit::Nothing,
        }
    }

    fn is_parameter_set(self) -> bool {
        matches!(self, Unit::Vps | Unit::Sps | Unit::Pps)
    }
}

/// A picture with what is in front of it and behind it, each unit behind a start code of four bytes. A field is one by itself.
#[derive(Debug, Clone, Default)]
pub struct AccessUnit {
    data: Vec<u8>,
    /// The length of the delimiter at the front, if there is one.
    delimiter: usize,
    /// The parameter sets, without their start codes.
    parameter_sets: Vec<(Unit, Range<usize>)>,
    /// Its first slice, without its start code.
    slice: Range<usize>,
}

impl AccessUnit {
    /// One picture, which is all that these bytes hold; `None` if they hold none.
    pub fn read(codec: Codec, bytes: &[u8]) -> Option<AccessUnit> {
        let mut units = AccessUnits::new(codec);
        units.push(bytes);
        units.finish();
        units.next()?.ok()
    }

    /// Its bytes in Annex B.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Its bytes in Annex B.
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// The length of the delimiter at the front.
    pub(super) fn delimiter(&self) -> usize {
        self.delimiter
    }

    pub(super) fn parameter_sets(&self) -> impl Iterator<Item = (Unit, &[u8])> {
        self.parameter_sets.iter().map(|(unit, place)| (*unit, &self.data[place.clone()]))
    }

    /// Its first slice.
    pub(super) fn slice(&self) -> &[u8] {
        &self.data[self.slice.clone()]
    }

    fn append(&mut self, nal: &[u8]) -> Range<usize> {
        self.data.extend_from_slice(&START_CODE);
        self.data.extend_from_slice(nal);
        self.data.len() - nal.len()..self.data.len()
    }
}

/// Takes a byte stream as it comes, and gives out its access units. One comes out when the one behind it begins, or at the end.
#[derive(Debug)]
pub struct AccessUnits {
    codec: Codec,
    scanner: Scanner,
    /// Units for the next picture.
    next: AccessUnit,
    /// The picture that units are added to.
    open: Option<AccessUnit>,
    whole: VecDeque<Result<AccessUnit, MediaError>>,
}

impl AccessUnits {
    /// Of a stream of HEVC or H.264. In others there is none.
    pub fn new(codec: Codec) -> AccessUnits {
        AccessUnits {
            codec,
            scanner: Scanner::default(),
            next: AccessUnit::default(),
            open: None,
            whole: VecDeque::new(),
        }
    }

    /// The next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.scanner.push(bytes);
        self.scan(false);
        self.scanner.compact();
        self.check_length(self.scanner.buffer.len());
    }

    /// Nothing more is pushed: the last picture can come out.
    pub fn finish(&mut self) {
        self.scan(true);
        self.close();
    }

    fn scan(&mut self, is_finished: bool) {
        while let Some(nal) = self.scanner.next(is_finished) {
            self.take(&nal);
        }
    }

    fn take(&mut self, nal: &[u8]) {
        match Unit::of(self.codec, nal) {
            Unit::Nothing => {}
            Unit::FirstSlice => {
                self.close();
                let mut begun = std::mem::take(&mut self.next);
                begun.slice = begun.append(nal);
                let length = begun.data.len();
                self.open = Some(begun);
                self.check_length(length);
            }
            Unit::Slice | Unit::Suffix => {
                let Some(open) = &mut self.open else { return };
                open.append(nal);
                let length = open.data.len();
                self.check_length(length);
            }
            unit => {
                self.close();
                let place = self.next.append(nal);
                if unit == Unit::Delimiter {
                    self.next.delimiter = place.end;
                }
                if unit.is_parameter_set() {
                    self.next.parameter_sets.push((unit, place));
                }
                self.check_length(self.next.data.len());
            }
        }
    }

    /// The open picture is whole.
    fn close(&mut self) {
        self.whole.extend(self.open.take().map(Ok));
    }

    fn check_length(&mut self, length: usize) {
        if length > MAX_PICTURE_BYTES {
            (self.next, self.open) = (AccessUnit::default(), None);
            self.whole.push_back(Err(MediaError::TooLong { limit: MAX_PICTURE_BYTES }));
        }
    }
}

/// As an iterator it gives out what is whole: `None` asks for more.
impl Iterator for AccessUnits {
    type Item = Result<AccessUnit, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.whole.pop_front()
    }
}

/// Finds the units between start codes.
#[derive(Debug, Default)]
struct Scanner {
    buffer: Vec<u8>,
    /// Where the unit in `buffer` begins; `None` before the first start code.
    start: Option<usize>,
    /// Up to where there is no further start code.
    scanned: usize,
}

impl Scanner {
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next unit that is followed by a start code, or by the end once that `is_finished`.
    fn next(&mut self, is_finished: bool) -> Option<Vec<u8>> {
        loop {
            let code = self.buffer.get(self.scanned..)?.windows(3).position(|bytes| bytes == [0, 0, 1]);
            let Some(code) = code.map(|at| self.scanned + at) else {
                self.scanned = self.scanned.max(self.buffer.len().saturating_sub(2));
                return if is_finished { self.last() } else { None };
            };
            let nal = self.start.map(|start| trimmed(&self.buffer[start..code]).to_vec());
            self.scanned = code + 3;
            self.start = Some(self.scanned);
            if let Some(nal) = nal.filter(|nal| !nal.is_empty()) {
                return Some(nal);
            }
        }
    }

    fn last(&mut self) -> Option<Vec<u8>> {
        let start = self.start.take()?;
        let nal = trimmed(&self.buffer[start..]).to_vec();
        self.buffer.clear();
        self.scanned = 0;
        (!nal.is_empty()).then_some(nal)
    }

    /// Forgets what was given out. The bytes of the unit that is open are kept.
    fn compact(&mut self) {
        let from = self.start.unwrap_or(self.scanned);
        self.buffer.drain(..from);
        self.scanned -= from;
        self.start = self.start.map(|_| 0);
    }
}

/// Without the zeros behind it, which belong to the next start code or fill.
fn trimmed(nal: &[u8]) -> &[u8] {
    let end = nal.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &nal[..end]
}
