//! Pictures out, each with its number and what it needs, or all as one layer where a stream's layers do not keep what they promise.

use super::Output;
use super::order::{Numbering, Role};
use crate::{Codec, MAX_LAYERS, MediaError, Picture};

/// Places pictures in decode order. What comes before the first key picture is left out.
#[derive(Debug)]
pub(super) struct Layering {
    codec: Codec,
    numbering: Numbering,
    is_one_layer: bool,
    is_told_of_start: bool,
}

impl Layering {
    pub(super) fn new(codec: Codec) -> Layering {
        Layering { codec, numbering: Numbering::default(), is_one_layer: false, is_told_of_start: false }
    }

    /// Whether there was a key picture.
    pub(super) fn has_begun(&self) -> bool {
        self.numbering.has_begun()
    }

    /// Whether all is of one layer from here on.
    pub(super) fn is_one_layer(&self) -> bool {
        self.is_one_layer
    }

    /// Whether a picture in this role is of use: there was a key picture, or this is one. That others are left out is told once.
    pub(super) fn is_of_use(&mut self, role: Role, out: &mut Output) -> bool {
        let is_of_use = role == Role::Key || self.has_begun();
        if !is_of_use && !std::mem::replace(&mut self.is_told_of_start, true) {
            self.leave_out(
                "the stream does not begin with a key picture, so this one and those up to it are of no use",
                out,
            );
        }
        is_of_use
    }

    /// A picture cannot be used: why not.
    pub(super) fn leave_out(&self, what: &'static str, out: &mut Output) {
        out.push_back(Err(MediaError::Damaged { codec: self.codec, what }));
    }

    /// The next picture in decode order.
    pub(super) fn emit(&mut self, layer: u8, role: Role, timestamp: u32, data: Vec<u8>, out: &mut Output) {
        let layer = if self.is_one_layer { 0 } else { layer.min(MAX_LAYERS - 1) };
        let info = self.numbering.place(layer, role).or_else(|| {
            self.fold("a picture needs one that is too far back", out);
            self.numbering.place(0, role)
        });
        if let Some(info) = info {
            out.push_back(Ok(Picture { info, timestamp, data }));
        }
    }

    /// From here on all is one layer.
    pub(super) fn fold(&mut self, why: &'static str, out: &mut Output) {
        if !std::mem::replace(&mut self.is_one_layer, true) {
            self.numbering.fold();
            out.push_back(Err(MediaError::NotLayered { number: self.numbering.number(), why }));
        }
    }
}
