//! H.264 counts the pictures that others refer to (`frame_num`, §7.4.3): one that nobody refers to has the number of the next such
//! picture, and comes before it.

use std::borrow::Cow;

use super::Counts;
use crate::split::access_units::AccessUnit;
use crate::split::annexb::Syntax;
use crate::split::h264::{H264, IDR, Slice};
use crate::split::order::OrderCount;

/// The pictures since the last IDR picture.
#[derive(Debug, Clone, Default)]
pub(super) struct Decoded {
    syntax: H264,
    /// The number of the last picture that others refer to.
    referred: Option<u32>,
    /// Whether a picture that nobody refers to came since.
    has_spare: bool,
    /// Whether there was one that was presented behind all others up to it.
    has_trailing: bool,
    order: OrderCount,
    seen: Counts,
}

/// Whether frame numbers and order counts begin again here.
pub(super) fn is_key(unit: &AccessUnit) -> bool {
    unit.slice()[0] & 31 == IDR
}

fn is_referred_to(unit: &AccessUnit) -> bool {
    unit.slice()[0] >> 5 & 3 > 0
}

impl Decoded {
    pub(super) fn fits(&self, unit: &AccessUnit, below: Option<&AccessUnit>) -> bool {
        let Some(slice) = self.slice(unit) else { return false };
        let next = self.referred.map(|last| (last + 1) % (1 << slice.sequence.frame_number_bits));
        let is_free = match self.count(&slice, unit) {
            Some(count) => !self.seen.contains(count) && (count < self.highest() || self.may_trail(count, below)),
            // Where pictures are presented in the order of decoding, no two in a row are without use for others (§8.2.1.3).
            None => is_referred_to(unit) || !self.has_spare,
        };
        !is_key(unit) && next == Some(slice.frame_number) && slice.field.is_none() && is_free
    }

    /// Whether a picture that is presented behind all others up to now may be decoded here: where the next one is presented behind it. At
    /// the end of a group it may if such pictures were seen, as few low bits of both numbers may be those of the next group's.
    fn may_trail(&self, count: i64, below: Option<&AccessUnit>) -> bool {
        let below = below.filter(|below| !is_key(below));
        let next = below.and_then(|below| self.count(&self.slice(below)?, below));
        next.map_or(self.has_trailing && count <= self.highest() + 2, |next| count < next)
    }

    /// The highest order count, two for each frame.
    fn highest(&self) -> i64 {
        self.seen.highest().unwrap_or(0)
    }

    pub(super) fn take(&mut self, unit: &AccessUnit) {
        unit.parameter_sets().for_each(|(_, nal)| _ = self.syntax.parameter_set(nal));
        let Some(slice) = self.slice(unit) else { return };
        if is_key(unit) {
            self.seen = Counts::default();
        }
        if let Some(bits) = slice.sequence.order_bits {
            let count = self.order.extend(slice.order_low, bits, is_key(unit), is_referred_to(unit));
            self.has_trailing |= !is_referred_to(unit) && count > self.highest();
            self.seen.insert(count);
        }
        if is_referred_to(unit) {
            self.referred = Some(slice.frame_number);
        }
        self.has_spare = !is_referred_to(unit);
    }

    fn slice(&self, unit: &AccessUnit) -> Option<Slice> {
        let mut syntax = Cow::Borrowed(&self.syntax);
        unit.parameter_sets().for_each(|(_, nal)| _ = syntax.to_mut().parameter_set(nal));
        syntax.slice(unit.slice())
    }

    /// The order count, unless pictures are presented in the order of decoding.
    fn count(&self, slice: &Slice, unit: &AccessUnit) -> Option<i64> {
        let bits = slice.sequence.order_bits?;
        Some(self.order.clone().extend(slice.order_low, bits, is_key(unit), is_referred_to(unit)))
    }
}
