//! VP9: the temporal layers of libvpx, found in its frames' headers.

mod frame;

pub(crate) use frame::dimensions;

use super::Output;
use super::ivf::Frames;
use super::layering::Layering;
use super::order::Role;
use crate::Codec;
use frame::{Header, frames, header};

/// Unreferenced pictures in a row before the first other one, for which there is hope.
const MAX_HELD: usize = 8;

/// Finds the layers of VP9 pictures, each a frame or a superframe.
#[derive(Debug)]
pub(super) struct Vp9 {
    structure: Structure,
    layering: Layering,
    /// Unreferenced pictures whose layer is not known yet: 1, or 2 if there are pictures between them and the base layer.
    held: Vec<(u32, Vec<u8>)>,
    top: Top,
}

/// Which layer unreferenced pictures are of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Top {
    #[default]
    Unknown,
    One,
    Two,
}

impl Default for Vp9 {
    fn default() -> Vp9 {
        let layering = Layering::new(Codec::Vp9);
        Vp9 { structure: Structure::default(), layering, held: Vec::new(), top: Top::default() }
    }
}

impl Frames for Vp9 {
    fn take(&mut self, data: Vec<u8>, timestamp: u32, out: &mut Output) {
        let Some(seen) = self.structure.see(&data) else {
            self.layering.leave_out("its uncompressed header cannot be read", out);
            return;
        };
        let role = if seen.is_key { Role::Key } else { Role::Plain };
        if !self.layering.is_of_use(role, out) {
            return;
        }
        if let Some(why) = seen.flaw {
            self.settle(Top::One, out);
            self.layering.fold(why, out);
        }
        let layer = match seen.kind {
            _ if self.layering.is_one_layer() => 0,
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
        self.layering.emit(layer, role, timestamp, data, out);
    }

    fn finish(&mut self, out: &mut Output) {
        self.settle(Top::One, out);
    }

    fn layering(&self) -> &Layering {
        &self.layering
    }
}

impl Vp9 {
    /// What the top layer is, unless that is known; more layers may show later.
    fn settle(&mut self, top: Top, out: &mut Output) {
        if self.held.is_empty() {
            // A base picture without any other in front of it tells nothing.
            self.top = if top == Top::Two { top } else { self.top };
            return;
        }
        self.top = top;
        for (timestamp, data) in std::mem::take(&mut self.held) {
            self.layering.emit(if top == Top::Two { 2 } else { 1 }, Role::Plain, timestamp, data, out);
        }
    }
}

/// The slots of reference frames.
const SLOTS: usize = 8;

/// What the splitter has to know of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    is_key: bool,
    kind: Kind,
    /// Why the stream cannot be taken apart at this picture, if so.
    flaw: Option<&'static str>,
}

/// A picture's place in the structure of libvpx's temporal layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is kept in the slot of the base layer.
    Base,
    /// It is kept in slot 1 only.
    Middle,
    /// Nothing refers to it.
    Unreferenced,
}

/// Follows which reference slots hold pictures of which kind.
///
/// Frames of libvpx list slots 0, 1 and 2 as their three references in every header, also where its encoder is told not to use
/// them, and only the arithmetic-coded blocks say which are used. So the list is no proof of a dependency but for its first
/// entry, LAST, which every encoder uses; a structure with other dependencies than libvpx's is found out if LAST breaks the rule.
#[derive(Debug)]
struct Structure {
    slots: [Kind; SLOTS],
}

impl Default for Structure {
    fn default() -> Structure {
        Structure { slots: [Kind::Base; SLOTS] }
    }
}

impl Structure {
    /// The next picture: a frame or a superframe. `None` if it cannot be read.
    fn see(&mut self, picture: &[u8]) -> Option<Seen> {
        let frames: Vec<_> = frames(picture)?.into_iter().map(header).collect::<Option<_>>()?;
        let is_key = frames.iter().any(|frame| frame.is_key);
        let refresh = frames.iter().fold(0, |slots, frame| slots | frame.refresh);
        let kind = match refresh {
            0 if frames.len() == 1 => Kind::Unreferenced,
            0b10 if frames.len() == 1 => Kind::Middle,
            _ => Kind::Base,
        };
        let flaw = frames.iter().filter(|frame| !frame.is_key).find_map(|frame| self.flaw(frame, kind));
        let kept = (0..SLOTS).filter(|slot| refresh >> slot & 1 == 1);
        kept.for_each(|slot| self.slots[slot] = kind);
        Some(Seen { is_key, kind, flaw })
    }

    fn flaw(&self, frame: &Header, kind: Kind) -> Option<&'static str> {
        if !frame.is_resilient {
            return Some(
                "its frames depend on the coding state of all before them (error_resilient_mode is 0); libvpx's -error-resilient 1 \
                 ends that",
            );
        }
        let last = frame.last.map(|slot| self.slots[usize::from(slot)]);
        (kind == Kind::Base && last == Some(Kind::Middle))
            .then_some("a picture of the base layer refers to one of a higher layer")
    }
}

#[cfg(test)]
mod tests;
