//! Which pictures a decoder may be given: those whose needs were met.

use crate::{MAX_LAYERS, PictureInfo};

/// Lets pictures through whose needed pictures were let through, and counts those that it withholds.
///
/// Pictures come in decode order, those that are missing left out.
#[derive(Debug, Clone)]
pub struct Gate {
    withheld: [u64; MAX_LAYERS as usize],
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { withheld: [0; MAX_LAYERS as usize] }
    }
}

impl Gate {
    /// Whether a decoder may be given this picture, the next in decode order.
    pub fn admit(&mut self, _info: &PictureInfo) -> bool {
        true
    }

    /// Forgets what was let through, as when the sender begins again: the next picture out is a key picture.
    pub fn reset(&mut self) {}

    /// How many pictures were withheld, by layer.
    pub fn withheld(&self) -> &[u64; MAX_LAYERS as usize] {
        &self.withheld
    }
}
