//! Byte streams of NAL units (H.264 and HEVC, annex B) as access units.

use std::collections::{BTreeMap, VecDeque};

use super::layering::Layering;
use super::order::{PresentationClock, Role};
use super::{FrameRate, Output};
use crate::{Codec, MAX_PICTURE_BYTES, MediaError, ParameterSets};

/// The start code that units have in pictures.
pub(crate) const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Bytes of parameter sets that are remembered, of each kind. Further ones are passed on, but not told in session descriptions, nor
/// repeated.
const MAX_PARAMETER_SETS: usize = 4096;

/// Leading pictures of a key picture, for as long as that waits for them.
const MAX_LEADING: usize = 16;

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

/// What the first slice of a picture says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begins {
    pub(super) layer: u8,
    pub(super) role: Role,
    /// The picture order count, in pictures.
    pub(super) order: i64,
    /// Whether order counts begin again here.
    pub(super) restarts: bool,
    /// Whether leading pictures with lower counts than its own may follow though counting begins again.
    pub(super) may_lead: bool,
    pub(super) frame_rate: Option<FrameRate>,
    /// Why the stream cannot be taken apart at this picture, if so.
    pub(super) flaw: Option<&'static str>,
    /// Whether it is one picture with what came before: a second field.
    pub(super) continues: bool,
}

/// What differs between HEVC and H.264.
pub(super) trait Syntax {
    fn unit(&self, nal: &[u8]) -> Unit;

    /// Remembers a parameter set; its number, if it could be read.
    fn parameter_set(&mut self, nal: &[u8]) -> Option<u32>;

    /// What the first slice of a picture says; why it cannot be used, otherwise.
    fn begin(&mut self, nal: &[u8]) -> Result<Begins, &'static str>;
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

/// Units in front of a picture.
#[derive(Debug, Default)]
struct Prefix {
    bytes: Vec<u8>,
    /// The length of the delimiter at the front, if there is one.
    delimiter: usize,
    has_parameter_sets: bool,
}

/// A picture whose units are still coming, or that waits for those with earlier presentation times.
#[derive(Debug)]
struct Open {
    begins: Begins,
    data: Vec<u8>,
}

/// Puts units together as pictures.
#[derive(Debug)]
pub(super) struct AnnexB<S> {
    syntax: S,
    scanner: Scanner,
    layering: Layering,
    clock: PresentationClock,
    given_rate: Option<FrameRate>,
    /// Units for the picture behind them.
    prefix: Prefix,
    /// The picture that units are added to.
    open: Option<Open>,
    /// A key picture and its leading pictures, until their number is known.
    held: VecDeque<Open>,
    sets: [BTreeMap<u32, Vec<u8>>; 3],
    is_told_of_rate: bool,
}

impl<S: Syntax> AnnexB<S> {
    pub(super) fn new(codec: Codec, syntax: S, given_rate: Option<FrameRate>) -> AnnexB<S> {
        AnnexB {
            syntax,
            scanner: Scanner::default(),
            layering: Layering::new(codec),
            clock: PresentationClock::default(),
            given_rate,
            prefix: Prefix::default(),
            open: None,
            held: VecDeque::new(),
            sets: Default::default(),
            is_told_of_rate: false,
        }
    }

    /// Takes bytes in pieces that are bounded by the caller, and puts out pictures.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Output) {
        self.scanner.push(bytes);
        while let Some(nal) = self.scanner.next(false) {
            self.take(&nal, out);
        }
        self.scanner.compact();
        self.check_length(self.scanner.buffer.len(), out);
    }

    pub(super) fn finish(&mut self, out: &mut Output) {
        while let Some(nal) = self.scanner.next(true) {
            self.take(&nal, out);
        }
        self.close(out);
        self.release(out);
    }

    /// The parameter sets that were seen, in the order of their numbers.
    pub(super) fn parameter_sets(&self) -> ParameterSets {
        let [vps, sps, pps] = self.sets.each_ref().map(|sets| sets.values().cloned().collect());
        ParameterSets { vps, sps, pps }
    }

    fn take(&mut self, nal: &[u8], out: &mut Output) {
        match self.syntax.unit(nal) {
            Unit::Nothing => {}
            Unit::FirstSlice => self.begin(nal, out),
            Unit::Slice | Unit::Suffix => self.append(nal, out),
            Unit::Prefix => self.prepend(nal, out),
            Unit::Delimiter => {
                self.prepend(nal, out);
                self.prefix.delimiter = self.prefix.bytes.len();
            }
            Unit::Vps => self.parameter_set(0, nal, out),
            Unit::Sps => self.parameter_set(1, nal, out),
            Unit::Pps => self.parameter_set(2, nal, out),
        }
    }

    fn parameter_set(&mut self, kind: usize, nal: &[u8], out: &mut Output) {
        self.prepend(nal, out);
        self.prefix.has_parameter_sets = true;
        let Some(id) = self.syntax.parameter_set(nal) else { return };
        let sets = &mut self.sets[kind];
        sets.remove(&id);
        if sets.values().map(Vec::len).sum::<usize>() + nal.len() <= MAX_PARAMETER_SETS {
            sets.insert(id, nal.to_vec());
        }
    }

    /// A unit for the next picture: so the one before is whole.
    fn prepend(&mut self, nal: &[u8], out: &mut Output) {
        self.close(out);
        self.prefix.bytes.extend_from_slice(&START_CODE);
        self.prefix.bytes.extend_from_slice(nal);
        self.check_length(self.prefix.bytes.len(), out);
    }

    fn append(&mut self, nal: &[u8], out: &mut Output) {
        let Some(open) = &mut self.open else { return };
        open.data.extend_from_slice(&START_CODE);
        open.data.extend_from_slice(nal);
        let length = open.data.len();
        self.check_length(length, out);
    }

    fn begin(&mut self, nal: &[u8], out: &mut Output) {
        let begins = match self.syntax.begin(nal) {
            Ok(begins) => begins,
            Err(what) => {
                self.close(out);
                self.prefix = Prefix::default();
                // Before the first parameter sets there is nothing to say.
                if self.layering.has_begun() {
                    self.layering.leave_out(what, out);
                }
                return;
            }
        };
        if begins.continues && self.open.is_some() {
            let prefix = std::mem::take(&mut self.prefix).bytes;
            self.open.iter_mut().for_each(|open| open.data.extend_from_slice(&prefix));
        } else {
            self.close(out);
            if !matches!(begins.role, Role::Decodable | Role::Skipped) {
                self.release(out);
            }
            self.open = Some(Open { begins, data: self.front(begins.role) });
        }
        self.append(nal, out);
    }

    /// What is in front of a picture. A key picture without parameter sets gets those that were seen, for whoever joins there:
    /// x265 sends them once unless it is told to repeat them.
    fn front(&mut self, role: Role) -> Vec<u8> {
        let Prefix { mut bytes, delimiter, has_parameter_sets } = std::mem::take(&mut self.prefix);
        if role == Role::Key && !has_parameter_sets {
            let sets = self.sets.iter().flat_map(BTreeMap::values);
            let sets = sets.flat_map(|set| START_CODE.iter().chain(set)).copied().collect::<Vec<_>>();
            bytes.splice(delimiter..delimiter, sets);
        }
        bytes
    }

    /// The open picture is whole.
    fn close(&mut self, out: &mut Output) {
        let Some(open) = self.open.take() else { return };
        self.held.push_back(open);
        let waits = self.held.front().is_some_and(|first| first.begins.may_lead);
        if !waits || self.held.len() > MAX_LEADING {
            self.release(out);
        }
    }

    /// Puts out what waits.
    fn release(&mut self, out: &mut Output) {
        let key_order = self.held.front().map_or(0, |open| open.begins.order);
        let leading = self.held.iter().filter(|open| open.begins.order < key_order).count() as u32;
        while let Some(open) = self.held.pop_front() {
            self.emit(open, leading, out);
        }
    }

    fn emit(&mut self, open: Open, leading: u32, out: &mut Output) {
        let Open { begins, data } = open;
        if !self.layering.is_of_use(begins.role, out) {
            return;
        }
        if let Some(why) = begins.flaw {
            self.layering.fold(why, out);
        }
        let rate = self.rate(begins.frame_rate, out);
        let restarts = begins.restarts || !self.layering.has_begun();
        let timestamp = self.clock.timestamp(begins.order, restarts.then_some(leading), rate);
        self.layering.emit(begins.layer, begins.role, timestamp, data, out);
    }

    fn rate(&mut self, told: Option<FrameRate>, out: &mut Output) -> FrameRate {
        self.given_rate.or(told).unwrap_or_else(|| {
            if !std::mem::replace(&mut self.is_told_of_rate, true) {
                out.push_back(Err(MediaError::NoFrameRate));
            }
            FrameRate { pictures: 25, seconds: 1 }
        })
    }

    fn check_length(&mut self, length: usize, out: &mut Output) {
        if length > MAX_PICTURE_BYTES {
            self.prefix = Prefix::default();
            self.open = None;
            out.push_back(Err(MediaError::TooLong { limit: MAX_PICTURE_BYTES }));
        }
    }
}
