//! AV1's frame headers, as far as the references (AV1 bitstream specification, §5.9.2).

use super::obu::Obu;
use super::sequence::Sequence;
use crate::split::bits::Bits;

/// A primary reference that is none.
const NONE: usize = 7;

/// References of an inter frame.
const NAMED: usize = 7;

/// Frame types (§6.8.2).
const KEY: u32 = 0;
const INTRA_ONLY: u32 = 2;
const SWITCH: u32 = 3;

/// What a frame header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// A frame that is in this slot is shown.
    Existing(usize),
    /// A frame.
    Coded {
        /// Whether it is a key frame.
        is_key: bool,
        /// Whether it is shown at once.
        is_shown: bool,
        /// The slots that hold it afterwards, a bit each.
        refresh: u8,
        /// The slots that it surely depends on, a bit each: those of the references LAST and primary, or of all where order hints
        /// make all of them change how the frame is read.
        needs: u8,
    },
}

/// The beginning of the payload of a frame, or a frame header.
pub(super) fn parse(unit: &Obu<'_>, sequence: &Sequence) -> Option<Frame> {
    let bits = &mut Bits::new(unit.payload);
    if sequence.is_reduced {
        return Some(Frame::Coded { is_key: true, is_shown: true, refresh: 0xFF, needs: 0 });
    }
    if bits.flag()? {
        return bits.take(3).map(|slot| Frame::Existing(slot as usize));
    }
    let kind = bits.take(2)?;
    let is_shown = bits.flag()?;
    if is_shown {
        bits.skip(sequence.presentation_bits.unwrap_or(0) as usize)?;
    } else {
        bits.flag()?;
    }
    let is_whole_start = kind == KEY && is_shown;
    let is_resilient = kind == SWITCH || is_whole_start || bits.flag()?;
    bits.flag()?;
    let is_screen_content = sequence.chooses_screen_content.map_or_else(|| bits.flag(), Some)?;
    if is_screen_content && sequence.chooses_whole_vectors {
        bits.flag()?;
    }
    if let Some((id_bits, _)) = sequence.id_bits {
        bits.skip(id_bits as usize)?;
    }
    if kind != SWITCH {
        bits.flag()?;
    }
    bits.skip(sequence.order_hint_bits as usize)?;
    let is_intra = kind == KEY || kind == INTRA_ONLY;
    let primary = if is_intra || is_resilient { NONE } else { bits.take(3)? as usize };
    skip_removal_times(bits, unit, sequence)?;
    let refresh = if kind == SWITCH || is_whole_start { 0xFF } else { bits.take(8)? as u8 };
    let has_hints = sequence.order_hint_bits > 0;
    if (!is_intra || refresh != 0xFF) && is_resilient && has_hints {
        bits.skip(8 * sequence.order_hint_bits as usize)?;
    }
    let needs = if is_intra { 0 } else { needed(bits, sequence, primary)? };
    Some(Frame::Coded { is_key: kind == KEY, is_shown, refresh, needs })
}

fn skip_removal_times(bits: &mut Bits<'_>, unit: &Obu<'_>, sequence: &Sequence) -> Option<()> {
    let Some(removal) = &sequence.removal else { return Some(()) };
    if bits.flag()? {
        let is_of = |layers: u32| layers >> unit.temporal_id & 1 == 1 && layers >> (unit.spatial_id + 8) & 1 == 1;
        let told = removal.points.iter().filter(|layers| **layers == 0 || is_of(**layers));
        bits.skip(told.count() * removal.bits as usize)?;
    }
    Some(())
}

/// The slots that an inter frame surely depends on.
fn needed(bits: &mut Bits<'_>, sequence: &Sequence, primary: usize) -> Option<u8> {
    if sequence.order_hint_bits > 0 && bits.flag()? {
        // Two are named, and the others follow from order hints (§7.8): they may be any.
        return Some(0xFF);
    }
    let mut named = [0; NAMED];
    for slot in &mut named {
        *slot = 1 << bits.take(3)?;
        if let Some((_, difference_bits)) = sequence.id_bits {
            bits.skip(difference_bits as usize)?;
        }
    }
    let is_all = sequence.order_hint_bits > 0;
    Some(if is_all {
        named.iter().fold(0, |all, slot| all | slot)
    } else {
        named[0] | named.get(primary).unwrap_or(&0)
    })
}
