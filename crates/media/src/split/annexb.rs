//! Access units (H.264 and HEVC, annex B) as pictures with their places, layers and times.

use std::collections::{BTreeMap, VecDeque};

use super::access_units::{AccessUnit, AccessUnits, START_CODE, Unit};
use super::layering::Layering;
use super::order::{PresentationClock, Role};
use super::{FrameRate, Output};
use crate::{Codec, MediaError, ParameterSets};

/// Bytes of parameter sets that are remembered, of each kind. Further ones are passed on, but not told in session descriptions, nor
/// repeated.
const MAX_PARAMETER_SETS: usize = 4096;

/// Leading pictures of a key picture, for as long as that waits for them.
const MAX_LEADING: usize = 16;

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
    /// Whether it may be one picture with what comes next: a first field.
    pub(super) may_continue: bool,
}

/// What differs between HEVC and H.264.
pub(super) trait Syntax: Default {
    /// Remembers a parameter set; its number, if it could be read.
    fn parameter_set(&mut self, nal: &[u8]) -> Option<u32>;

    /// What the first slice of a picture says; why it cannot be used, otherwise.
    fn begin(&mut self, nal: &[u8]) -> Result<Begins, &'static str>;
}

/// A picture whose second field may come, or that waits for those with earlier presentation times.
#[derive(Debug)]
struct Open {
    begins: Begins,
    data: Vec<u8>,
}

/// Puts access units out as pictures.
#[derive(Debug)]
pub(super) struct AnnexB<S> {
    units: AccessUnits,
    syntax: S,
    layering: Layering,
    clock: PresentationClock,
    given_rate: Option<FrameRate>,
    /// The first field of a picture.
    open: Option<Open>,
    /// A key picture and its leading pictures, until their number is known.
    held: VecDeque<Open>,
    sets: [BTreeMap<u32, Vec<u8>>; 3],
    is_told_of_rate: bool,
}

impl<S: Syntax> AnnexB<S> {
    pub(super) fn new(codec: Codec, given_rate: Option<FrameRate>) -> AnnexB<S> {
        AnnexB {
            units: AccessUnits::new(codec),
            syntax: S::default(),
            layering: Layering::new(codec),
            clock: PresentationClock::default(),
            given_rate,
            open: None,
            held: VecDeque::new(),
            sets: Default::default(),
            is_told_of_rate: false,
        }
    }

    /// Takes bytes in pieces that are bounded by the caller, and puts out pictures.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Output) {
        self.units.push(bytes);
        self.drain(out);
    }

    pub(super) fn finish(&mut self, out: &mut Output) {
        self.units.finish();
        self.drain(out);
        self.close(out);
        self.release(out);
    }

    /// The parameter sets that were seen, in the order of their numbers.
    pub(super) fn parameter_sets(&self) -> ParameterSets {
        let [vps, sps, pps] = self.sets.each_ref().map(|sets| sets.values().cloned().collect());
        ParameterSets { vps, sps, pps }
    }

    fn drain(&mut self, out: &mut Output) {
        while let Some(unit) = self.units.next() {
            match unit {
                Ok(unit) => self.take(unit, out),
                Err(error) => out.push_back(Err(error)),
            }
        }
    }

    fn take(&mut self, unit: AccessUnit, out: &mut Output) {
        unit.parameter_sets().for_each(|(kind, nal)| self.parameter_set(kind, nal));
        let begins = match self.syntax.begin(unit.slice()) {
            Ok(begins) => begins,
            Err(what) => {
                self.close(out);
                // Before the first parameter sets there is nothing to say.
                if self.layering.has_begun() {
                    self.layering.leave_out(what, out);
                }
                return;
            }
        };
        match &mut self.open {
            Some(open) if begins.continues => open.data.extend_from_slice(unit.data()),
            _ => {
                self.close(out);
                if !matches!(begins.role, Role::Decodable | Role::Skipped) {
                    self.release(out);
                }
                self.open = Some(Open { begins, data: self.with_parameter_sets(begins.role, unit) });
            }
        }
        if !begins.may_continue {
            self.close(out);
        }
    }

    fn parameter_set(&mut self, kind: Unit, nal: &[u8]) {
        let sets = match kind {
            Unit::Vps => &mut self.sets[0],
            Unit::Sps => &mut self.sets[1],
            _ => &mut self.sets[2],
        };
        let Some(id) = self.syntax.parameter_set(nal) else { return };
        sets.remove(&id);
        if sets.values().map(Vec::len).sum::<usize>() + nal.len() <= MAX_PARAMETER_SETS {
            sets.insert(id, nal.to_vec());
        }
    }

    /// The bytes of a picture. A key picture that comes without parameter sets is given those seen so far, so that a decoder can begin with
    /// it: x265 sends them only once by default.
    fn with_parameter_sets(&self, role: Role, unit: AccessUnit) -> Vec<u8> {
        if role != Role::Key || unit.parameter_sets().next().is_some() {
            return unit.into_data();
        }
        let at = unit.delimiter();
        let sets = self.sets.iter().flat_map(BTreeMap::values);
        let sets = sets.flat_map(|set| START_CODE.iter().chain(set)).copied().collect::<Vec<_>>();
        let mut data = unit.into_data();
        data.splice(at..at, sets);
        data
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
}
