//! AV1: temporal layers as the headers of its units tell them, and references that keep what these promise.

mod frame;
pub(crate) mod obu;
mod sequence;

pub(crate) use sequence::{Profile, dimensions};

use super::Output;
use super::ivf::Frames;
use super::layering::Layering;
use super::order::Role;
use crate::{Codec, MAX_LAYERS, ParameterSets};
use frame::Frame;
use obu::{FRAME, FRAME_HEADER, Obu, SEQUENCE_HEADER};
use sequence::Sequence;

/// The slots of reference frames.
const SLOTS: usize = 8;

/// Finds the layers of AV1 pictures, each a temporal unit.
#[derive(Debug)]
pub(super) struct Av1 {
    /// The sequence header that is in force: what it says, and its unit.
    sequence: Option<(Sequence, Vec<u8>)>,
    structure: Structure,
    layering: Layering,
}

impl Default for Av1 {
    fn default() -> Av1 {
        Av1 { sequence: None, structure: Structure::default(), layering: Layering::new(Codec::Av1) }
    }
}

/// What the splitter has to know of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    layer: u8,
    is_key: bool,
    has_sequence_header: bool,
    flaw: Option<&'static str>,
}

impl Frames for Av1 {
    fn take(&mut self, data: Vec<u8>, timestamp: u32, out: &mut Output) {
        let Some((seen, units)) = obu::units(&data).and_then(|units| Some((self.see(&units)?, units))) else {
            self.layering.leave_out("its units or their headers cannot be read", out);
            return;
        };
        let role = if seen.is_key { Role::Key } else { Role::Plain };
        if !self.layering.is_of_use(role, out) {
            return;
        }
        if let Some(why) = seen.flaw {
            self.layering.fold(why, out);
        }
        let header = self.sequence.as_ref().filter(|_| seen.is_key && !seen.has_sequence_header);
        let data = temporal_unit(header.map(|(_, header)| &header[..]), &units);
        self.layering.emit(seen.layer, role, timestamp, data, out);
    }

    fn finish(&mut self, _: &mut Output) {}

    fn layering(&self) -> &Layering {
        &self.layering
    }
}

impl Av1 {
    /// The sequence header that was seen last.
    pub(super) fn parameter_sets(&self) -> ParameterSets {
        let header = self.sequence.as_ref().map(|(_, header)| header.clone());
        ParameterSets { sps: header.into_iter().collect(), ..ParameterSets::default() }
    }

    /// Follows the frames of a temporal unit. `None` if they cannot be read, or there are none.
    fn see(&mut self, units: &[Obu<'_>]) -> Option<Seen> {
        let mut seen = Seen::default();
        let mut frames = Vec::new();
        for unit in units {
            match unit.kind {
                SEQUENCE_HEADER => {
                    let mut header = Vec::new();
                    unit.write(&mut header);
                    self.sequence = Some((sequence::parse(unit.payload)?, header));
                    seen.has_sequence_header = true;
                }
                // A frame header that comes again is of a type of its own.
                FRAME | FRAME_HEADER => {
                    // What comes before the first sequence header nobody can decode.
                    let Some((sequence, _)) = &self.sequence else { return Some(Seen::default()) };
                    frames.push(frame::parse(unit, sequence)?);
                    seen.layer = seen.layer.max(unit.temporal_id);
                }
                _ => {}
            }
        }
        // A key picture is one whose first frame is a key frame that is shown: nothing of before is needed (§7.6.2).
        seen.is_key = matches!(frames.first()?, Frame::Coded { is_key: true, is_shown: true, .. }) && seen.layer == 0;
        seen.flaw = self.structure.follow(seen.layer.min(MAX_LAYERS - 1), &frames);
        Some(seen)
    }
}

/// The bytes of a temporal unit in a form that does not depend on how they came: a temporal delimiter in front, each unit with its size
/// in as few bytes as that takes, and without what decoders do not need.
fn temporal_unit(sequence_header: Option<&[u8]>, units: &[Obu<'_>]) -> Vec<u8> {
    let mut data = obu::DELIMITER.to_vec();
    data.extend_from_slice(sequence_header.unwrap_or_default());
    units.iter().filter(|unit| unit.is_needed()).for_each(|unit| unit.write(&mut data));
    data
}

/// A frame in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Held {
    layer: u8,
    /// Its picture's place in decode order.
    picture: u64,
    is_key: bool,
}

/// Follows which reference slots hold frames of which layer.
///
/// Every inter frame names seven references, also where its encoder is told to use fewer, and only the arithmetic-coded blocks say
/// which are used. So a name is a proof of a dependency for two: LAST, which every encoder uses, and the primary reference, whose
/// coding state goes on. In a stream with order hints it is one for all, as the hints of all change how a frame is read (§5.9.22,
/// §7.9). What of the rest is not used the units' temporal ids promise.
#[derive(Debug, Default)]
struct Structure {
    slots: [Held; SLOTS],
    /// How many pictures there were.
    pictures: u64,
    /// The last picture of each layer since the last key picture.
    last: [Option<u64>; MAX_LAYERS as usize],
}

impl Structure {
    /// The frames of the next picture, which is of this layer. Why it cannot be had with the layers below alone, if so.
    fn follow(&mut self, layer: u8, frames: &[Frame]) -> Option<&'static str> {
        self.pictures += 1;
        let mut flaw = None;
        for frame in frames {
            match *frame {
                Frame::Existing(slot) => {
                    let held = self.slots[slot];
                    flaw = flaw.or_else(|| self.flaw(layer, held));
                    // A key frame that is shown late starts all slots (§7.21).
                    if held.is_key {
                        self.slots = [held; SLOTS];
                    }
                }
                Frame::Coded { is_key, is_shown, refresh, needs } => {
                    if is_key && is_shown {
                        self.last = [None; MAX_LAYERS as usize];
                    }
                    let needed = slots(needs).map(|slot| self.slots[slot]);
                    flaw = flaw.or_else(|| needed.into_iter().find_map(|held| self.flaw(layer, held)));
                    let held = Held { layer, picture: self.pictures, is_key };
                    slots(refresh).for_each(|slot| self.slots[slot] = held);
                }
            }
        }
        self.last[usize::from(layer)] = Some(self.pictures);
        flaw
    }

    /// What a picture of a layer may need is in the chain of pictures that a receiver of the layers below has: the last of a
    /// lower layer, what that needs, and so on. Every picture of layer 0 is in it.
    fn flaw(&self, layer: u8, held: Held) -> Option<&'static str> {
        let below = &self.last[..usize::from(held.layer)];
        let is_last = self.last[usize::from(held.layer)] == Some(held.picture)
            && below.iter().flatten().all(|other| *other < held.picture);
        // A picture has frames of its own to refer to.
        if held.layer == 0 || held.picture == self.pictures || (held.layer < layer && is_last) {
            return None;
        }
        Some(match layer {
            0 => "a picture of the base layer refers to one of a higher layer",
            _ => "a picture above the base layer refers to another than the last of a layer below",
        })
    }
}

/// The slots of these bits.
fn slots(bits: u8) -> impl Iterator<Item = usize> {
    (0..SLOTS).filter(move |slot| bits >> slot & 1 == 1)
}

#[cfg(test)]
mod tests;
