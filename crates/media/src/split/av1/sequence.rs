//! AV1's sequence header, as far as frame headers and session descriptions need it (AV1 bitstream specification, §5.5).

use super::obu::{self, SEQUENCE_HEADER};
use crate::split::bits::Bits;

/// What frame headers need of a sequence header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) profile: Profile,
    /// The largest width and height.
    pub(super) dimensions: (u16, u16),
    /// Whether it is of one still picture, whose frame header has no more than that needs.
    pub(super) is_reduced: bool,
    /// The bits of a shown frame's presentation time, where frames have one.
    pub(super) presentation_bits: Option<u32>,
    /// Where decoders are modelled: the bits of a time of removal, and the operating points that have such times.
    pub(super) removal: Option<Removal>,
    /// The bits of frame ids and of differences between them, where frames have such.
    pub(super) id_bits: Option<(u32, u32)>,
    /// Whether frames say if they are screen content, and whether they say if their motion vectors are whole.
    pub(super) chooses_screen_content: Option<bool>,
    pub(super) chooses_whole_vectors: bool,
    /// The bits of order hints; 0 without.
    pub(super) order_hint_bits: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Removal {
    pub(super) bits: u32,
    /// For each operating point that has times: its layers (`operating_point_idc`).
    pub(super) points: Vec<u32>,
}

/// What a decoder must be able to do (annex A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) profile: u8,
    pub(crate) level: u8,
    pub(crate) tier: u8,
}

impl Profile {
    /// That of a sequence header, a unit with its header and size.
    pub(crate) fn of_unit(unit: &[u8]) -> Option<Profile> {
        let (unit, _) = obu::Obu::split(unit)?;
        (unit.kind == SEQUENCE_HEADER).then(|| parse(unit.payload))?.map(|sequence| sequence.profile)
    }
}

/// The largest width and height that a temporal unit's sequence header states.
pub(crate) fn dimensions(temporal_unit: &[u8]) -> Option<(u16, u16)> {
    let units = obu::units(temporal_unit)?;
    let header = units.iter().find(|unit| unit.kind == SEQUENCE_HEADER)?;
    parse(header.payload).map(|sequence| sequence.dimensions)
}

/// A sequence header's payload.
pub(super) fn parse(payload: &[u8]) -> Option<Sequence> {
    let bits = &mut Bits::new(payload);
    let profile = bits.take(3)? as u8;
    bits.flag()?;
    let is_reduced = bits.flag()?;
    let mut told = Points { level: 0, tier: 0, presentation_bits: None, removal: None };
    if is_reduced {
        told.level = bits.take(5)? as u8;
    } else {
        told = points(bits)?;
    }
    let (width_bits, height_bits) = (bits.take(4)? + 1, bits.take(4)? + 1);
    // Less one, in up to 16 bits each; IVF has no room for 65536.
    let dimension = |less_one: u32| less_one.saturating_add(1).min(0xFFFF) as u16;
    let dimensions = (dimension(bits.take(width_bits)?), dimension(bits.take(height_bits)?));
    let mut id_bits = None;
    if !is_reduced && bits.flag()? {
        let difference = bits.take(4)? + 2;
        id_bits = Some((bits.take(3)? + 1 + difference, difference));
    }
    // Superblocks of 128, filter intra, intra edge filter.
    bits.skip(3)?;
    let mut sequence = Sequence {
        profile: Profile { profile, level: told.level, tier: told.tier },
        dimensions,
        is_reduced,
        presentation_bits: told.presentation_bits,
        removal: told.removal,
        id_bits,
        chooses_screen_content: None,
        chooses_whole_vectors: true,
        order_hint_bits: 0,
    };
    if !is_reduced {
        tools(bits, &mut sequence)?;
    }
    Some(sequence)
}

/// What operating points say.
struct Points {
    level: u8,
    tier: u8,
    presentation_bits: Option<u32>,
    removal: Option<Removal>,
}

/// Timing and operating points. Level and tier are those of the first one, which has all layers.
fn points(bits: &mut Bits<'_>) -> Option<Points> {
    let mut presentation_bits = None;
    let mut model = None;
    let has_timing = bits.flag()?;
    if has_timing {
        bits.skip(64)?;
        let is_even = bits.flag()?;
        if is_even {
            bits.ue()?;
        }
        if bits.flag()? {
            let delay_bits = bits.take(5)? + 1;
            bits.skip(32)?;
            let removal_bits = bits.take(5)? + 1;
            let times = bits.take(5)? + 1;
            presentation_bits = (!is_even).then_some(times);
            model = Some((delay_bits, removal_bits));
        }
    }
    let has_display_delay = bits.flag()?;
    let count = bits.take(5)? + 1;
    let mut first = None;
    let mut points = Vec::new();
    for _ in 0..count {
        let layers = bits.take(12)?;
        let level = bits.take(5)? as u8;
        let tier = if level > 7 { u8::from(bits.flag()?) } else { 0 };
        first.get_or_insert((level, tier));
        if let Some((delay_bits, _)) = model
            && bits.flag()?
        {
            bits.skip(2 * delay_bits as usize + 1)?;
            points.push(layers);
        }
        if has_display_delay && bits.flag()? {
            bits.skip(4)?;
        }
    }
    let (level, tier) = first?;
    Some(Points { level, tier, presentation_bits, removal: model.map(|(_, bits)| Removal { bits, points }) })
}

/// Coding tools, up to the bits of order hints.
fn tools(bits: &mut Bits<'_>, sequence: &mut Sequence) -> Option<()> {
    // Compound inter-intra, masked compound, warped motion, dual filter.
    bits.skip(4)?;
    let has_order_hints = bits.flag()?;
    if has_order_hints {
        // Joint compound, motion vectors of reference frames.
        bits.skip(2)?;
    }
    let chooses = bits.flag()?;
    sequence.chooses_screen_content = if chooses { None } else { Some(bits.flag()?) };
    sequence.chooses_whole_vectors = if sequence.chooses_screen_content == Some(false) {
        true
    } else {
        let chooses = bits.flag()?;
        if !chooses {
            bits.flag()?;
        }
        chooses
    };
    if has_order_hints {
        sequence.order_hint_bits = bits.take(3)? + 1;
    }
    Some(())
}
