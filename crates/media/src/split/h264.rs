//! H.264's parameter sets and slice headers, as far as layers and presentation times need them (H.264 §7.3).

use std::collections::BTreeMap;

use super::FrameRate;
use super::access_units::Unit;
use super::annexb::{Begins, Syntax};
use super::bits::{Bits, unescape};
use super::order::{OrderCount, Role};

/// §7.4.1, table 7-1.
pub(super) const IDR: u8 = 5;
const SPS: u8 = 7;
const PPS: u8 = 8;

/// What slice headers need of a sequence parameter set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) frame_number_bits: u32,
    /// The low bits of picture order counts; `None` where pictures are presented in decode order, or taken to be
    /// (`pic_order_cnt_type` 2, and the unused type 1).
    pub(super) order_bits: Option<u32>,
    has_separate_planes: bool,
    is_frames_only: bool,
    frame_rate: Option<FrameRate>,
}

/// What was seen of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct H264 {
    sequences: BTreeMap<u32, Sequence>,
    /// The sequence parameter set of each picture parameter set.
    parameters: BTreeMap<u32, u32>,
    order: OrderCount,
    /// Pictures since counting began again, for those that are presented in decode order.
    pictures: i64,
    /// Whether an odd order count was seen though there are no fields: then each is worth a frame. Otherwise two are, as for its two fields.
    counts_frames: bool,
    /// The frame number and the parity of the field before, if that was the first of its frame.
    first_field: Option<(u32, bool)>,
}

/// What the start of a slice header says (§7.3.3).
pub(super) struct Slice {
    pub(super) sequence: Sequence,
    pub(super) frame_number: u32,
    /// Whether it is the bottom one, if it is a field.
    pub(super) field: Option<bool>,
    pub(super) order_low: u32,
}

/// What a NAL unit is (§7.4.1.2.3).
pub(super) fn unit(nal: &[u8]) -> Unit {
    let [first, second, ..] = *nal else { return Unit::Nothing };
    match first & 31 {
        // first_mb_in_slice is 0 if its first bit is 1.
        1 | 2 | IDR if second >> 7 == 1 => Unit::FirstSlice,
        1..=5 => Unit::Slice,
        SPS => Unit::Sps,
        PPS => Unit::Pps,
        9 => Unit::Delimiter,
        6 | 13..=18 => Unit::Prefix,
        12 | 19 => Unit::Suffix,
        // Also the ends of sequences and streams, which have nothing but their header.
        _ => Unit::Nothing,
    }
}

impl Syntax for H264 {
    fn parameter_set(&mut self, nal: &[u8]) -> Option<u32> {
        let kind = nal.first()? & 31;
        let rbsp = unescape(nal.get(1..)?);
        let mut bits = Bits::new(&rbsp);
        if kind == SPS {
            let (id, sequence) = sequence(&mut bits)?;
            self.sequences.insert(id, sequence);
            return Some(id);
        }
        let id = bits.ue_up_to(255)?;
        self.parameters.insert(id, bits.ue_up_to(31)?);
        Some(id)
    }

    fn begin(&mut self, nal: &[u8]) -> Result<Begins, &'static str> {
        let is_key = nal[0] & 31 == IDR;
        let is_kept = nal[0] >> 5 & 3 > 0;
        let slice = self.slice(nal).ok_or("its slice header or parameter sets cannot be read")?;
        let continues = self.is_second_field(&slice);
        self.pictures = if is_key && !continues { 0 } else { self.pictures + i64::from(!continues) };
        let order = match slice.sequence.order_bits {
            Some(bits) => {
                let count = self.order.extend(slice.order_low, bits, is_key && !continues, is_kept);
                self.counts_frames |= slice.sequence.is_frames_only && count % 2 != 0;
                count.div_euclid(if self.counts_frames { 1 } else { 2 })
            }
            None => self.pictures,
        };
        Ok(Begins {
            layer: u8::from(!is_kept),
            role: if is_key { Role::Key } else { Role::Plain },
            order,
            restarts: is_key,
            may_lead: false,
            frame_rate: slice.sequence.frame_rate,
            flaw: None,
            continues,
            may_continue: slice.field.is_some() && !continues,
        })
    }
}

impl H264 {
    pub(super) fn slice(&self, nal: &[u8]) -> Option<Slice> {
        // Those fields are within the first bytes.
        let rbsp = unescape(&nal[1..nal.len().min(64)]);
        let mut bits = Bits::new(&rbsp);
        bits.ue()?;
        bits.ue()?;
        let sequence = *self.sequences.get(self.parameters.get(&bits.ue()?)?)?;
        if sequence.has_separate_planes {
            bits.skip(2)?;
        }
        let frame_number = bits.take(sequence.frame_number_bits)?;
        let is_field = !sequence.is_frames_only && bits.flag()?;
        let field = if is_field { Some(bits.flag()?) } else { None };
        if nal[0] & 31 == IDR {
            bits.ue()?;
        }
        let order_low = bits.take(sequence.order_bits.unwrap_or(0))?;
        Some(Slice { sequence, frame_number, field, order_low })
    }

    /// Two fields of a frame are one picture here, as they have one time.
    fn is_second_field(&mut self, slice: &Slice) -> bool {
        let this = slice.field.map(|is_bottom| (slice.frame_number, is_bottom));
        let first = self.first_field.take();
        let continues = matches!((first, this), (Some((a, top)), Some((b, bottom))) if a == b && top != bottom);
        if !continues {
            self.first_field = this;
        }
        continues
    }
}

/// §7.3.2.1.1.
fn sequence(bits: &mut Bits<'_>) -> Option<(u32, Sequence)> {
    let profile = bits.take(8)?;
    bits.skip(16)?;
    let id = bits.ue_up_to(31)?;
    let mut has_separate_planes = false;
    if matches!(profile, 100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135) {
        let chroma = bits.ue_up_to(3)?;
        has_separate_planes = chroma == 3 && bits.flag()?;
        bits.ue()?;
        bits.ue()?;
        bits.flag()?;
        if bits.flag()? {
            skip_scaling_lists(bits, if chroma == 3 { 12 } else { 8 })?;
        }
    }
    let frame_number_bits = bits.ue_up_to(12)? + 4;
    let order_bits = order_bits(bits)?;
    bits.ue()?;
    bits.flag()?;
    bits.ue()?;
    bits.ue()?;
    let is_frames_only = bits.flag()?;
    // Everything further is about the frame rate only, which may also be given.
    let frame_rate = timing(bits, is_frames_only);
    Some((id, Sequence { frame_number_bits, order_bits, has_separate_planes, is_frames_only, frame_rate }))
}

fn order_bits(bits: &mut Bits<'_>) -> Option<Option<u32>> {
    match bits.ue_up_to(2)? {
        0 => Some(Some(bits.ue_up_to(12)? + 4)),
        1 => {
            bits.flag()?;
            bits.se()?;
            bits.se()?;
            let offsets = bits.ue_up_to(255)?;
            (0..offsets).try_for_each(|_| bits.se().map(drop))?;
            Some(None)
        }
        _ => Some(None),
    }
}

/// §7.3.2.1.1.1.
fn skip_scaling_lists(bits: &mut Bits<'_>, lists: usize) -> Option<()> {
    for list in 0..lists {
        if !bits.flag()? {
            continue;
        }
        let mut next = 8;
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = (next + bits.se()?.rem_euclid(256)) % 256;
            }
        }
    }
    Some(())
}

/// The frame rate in the video usability information (§7.3.2.1.1, §E.1.1).
fn timing(bits: &mut Bits<'_>, is_frames_only: bool) -> Option<FrameRate> {
    bits.skip(if is_frames_only { 1 } else { 2 })?;
    if bits.flag()? {
        (0..4).try_for_each(|_| bits.ue().map(drop))?;
    }
    if !bits.flag()? {
        return None;
    }
    if bits.flag()? && bits.take(8)? == 255 {
        bits.skip(32)?;
    }
    if bits.flag()? {
        bits.flag()?;
    }
    if bits.flag()? {
        bits.skip(4)?;
        if bits.flag()? {
            bits.skip(24)?;
        }
    }
    if bits.flag()? {
        bits.ue()?;
        bits.ue()?;
    }
    if !bits.flag()? {
        return None;
    }
    // A tick is a field.
    let (ticks, ticks_a_second) = (bits.take(32)?, bits.take(32)?);
    FrameRate::new(ticks_a_second, ticks.checked_mul(2)?)
}
