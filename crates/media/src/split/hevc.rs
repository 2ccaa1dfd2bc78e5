//! HEVC's parameter sets and slice headers, as far as layers and presentation times need them (H.265 §7.3).

use std::collections::BTreeMap;

use super::FrameRate;
use super::access_units::Unit;
use super::annexb::{Begins, Syntax};
use super::bits::{Bits, unescape};
use super::order::{OrderCount, Role};
use crate::MAX_LAYERS;

mod references;

pub(super) use references::ReferenceSet;

const RADL_N: u8 = 6;
const RASL_R: u8 = 9;
const IDR_W_RADL: u8 = 19;
const IDR_N_LP: u8 = 20;
const VPS: u8 = 32;
const SPS: u8 = 33;
const PPS: u8 = 34;

/// What slice headers need of a sequence parameter set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sequence {
    order_bits: u32,
    reference_sets: Vec<ReferenceSet>,
    has_separate_planes: bool,
    /// Temporal sub-layers that there may be.
    sub_layers: u8,
    frame_rate: Option<FrameRate>,
}

/// What slice headers need of a picture parameter set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parameters {
    sps: u32,
    has_output_flag: bool,
    extra_bits: u32,
}

/// What the start of a slice header says.
struct Slice {
    order_low: u32,
    /// `None` if it cannot be read.
    references: Option<ReferenceSet>,
}

/// What was seen of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Hevc {
    sequences: BTreeMap<u32, Sequence>,
    parameters: BTreeMap<u32, Parameters>,
    counts: OrderCount,
    /// The layers above 0 in which a picture was kept for reference since the last key picture, a bit each.
    kept: u8,
}

/// What a NAL unit is (§7.4.2.4.4).
pub(super) fn unit(nal: &[u8]) -> Unit {
    let [first, second, third, ..] = *nal else { return Unit::Nothing };
    let (kind, layer_id) = (first >> 1 & 63, (first & 1) << 5 | second >> 3);
    if layer_id > 0 || second & 7 == 0 {
        return Unit::Nothing;
    }
    match kind {
        0..32 if third >> 7 == 1 => Unit::FirstSlice,
        0..32 => Unit::Slice,
        VPS => Unit::Vps,
        SPS => Unit::Sps,
        PPS => Unit::Pps,
        35 => Unit::Delimiter,
        39 | 41..=44 | 48..=55 => Unit::Prefix,
        38 | 40 | 45..=47 | 56..=63 => Unit::Suffix,
        // The ends of sequences and streams, which have nothing but their header.
        _ => Unit::Nothing,
    }
}

impl Syntax for Hevc {
    fn parameter_set(&mut self, nal: &[u8]) -> Option<u32> {
        let rbsp = unescape(nal.get(2..)?);
        let mut bits = Bits::new(&rbsp);
        match nal[0] >> 1 & 63 {
            VPS => bits.take(4),
            SPS => {
                let (id, sequence) = sequence(&mut bits)?;
                self.sequences.insert(id, sequence);
                Some(id)
            }
            PPS => {
                let (id, parameters) = parameters(&mut bits)?;
                self.parameters.insert(id, parameters);
                Some(id)
            }
            _ => None,
        }
    }

    fn begin(&mut self, nal: &[u8]) -> Result<Begins, &'static str> {
        let (kind, sub_layer) = (Kind::of(nal), sub_layer(nal));
        let mut counts = std::mem::take(&mut self.counts);
        let placed = self.place(nal, &mut counts);
        let placed = placed.map(|(order, _, sequence)| (order, sequence.sub_layers, sequence.frame_rate));
        self.counts = counts;
        let (order, sub_layers, frame_rate) = placed.ok_or("its slice header or parameter sets cannot be read")?;
        // Leading pictures that nothing refers to are in layer 0 by x265; without them that is spaced evenly.
        let is_spare = kind.is_leading() && !kind.is_kept() && sub_layer == 0 && sub_layers > 1;
        Ok(Begins {
            layer: if is_spare { 1 } else { sub_layer.min(MAX_LAYERS - 1) },
            role: kind.role(),
            order,
            restarts: kind.restarts(),
            may_lead: kind.may_lead(),
            frame_rate,
            flaw: self.flaw(kind, sub_layer),
            continues: false,
            may_continue: false,
        })
    }
}

/// A type of NAL unit with a slice (§7.4.2.2, table 7-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(u8);

impl Kind {
    pub(super) fn of(nal: &[u8]) -> Kind {
        Kind(nal[0] >> 1 & 63)
    }

    /// Whether decoding may begin here.
    pub(super) fn is_key(self) -> bool {
        (16..=21).contains(&self.0)
    }

    fn is_idr(self) -> bool {
        matches!(self.0, IDR_W_RADL | IDR_N_LP)
    }

    /// Whether order counts begin again here, and nothing before is kept.
    pub(super) fn restarts(self) -> bool {
        self.is_idr() || (16..=18).contains(&self.0)
    }

    /// Whether pictures with lower counts may follow though counting begins again.
    fn may_lead(self) -> bool {
        matches!(self.0, 16 | 17 | IDR_W_RADL)
    }

    fn is_leading(self) -> bool {
        (RADL_N..=RASL_R).contains(&self.0)
    }

    /// Even types below 16 are never referred to by pictures of their own layer.
    fn is_kept(self) -> bool {
        self.0 >= 16 || self.0 % 2 == 1
    }

    fn role(self) -> Role {
        match self.0 {
            _ if self.is_key() => Role::Key,
            6 | 7 => Role::Decodable,
            8 | 9 => Role::Skipped,
            _ => Role::Plain,
        }
    }
}

/// `TemporalId`.
fn sub_layer(nal: &[u8]) -> u8 {
    (nal[1] & 7).saturating_sub(1)
}

impl Hevc {
    /// The order count of a picture behind those that `counts` has seen, what it keeps if that can be read, and its sequence.
    pub(super) fn place(&self, nal: &[u8], counts: &mut OrderCount) -> Option<(i64, Option<ReferenceSet>, &Sequence)> {
        let kind = Kind::of(nal);
        let (slice, sequence) = self.slice(nal, kind)?;
        let anchors = sub_layer(nal) == 0 && kind.is_kept() && !kind.is_leading();
        let count = counts.extend(slice.order_low, sequence.order_bits, kind.restarts(), anchors);
        Some((count, slice.references, sequence))
    }

    /// What the start of a slice header says (§7.3.6.1).
    fn slice(&self, nal: &[u8], kind: Kind) -> Option<(Slice, &Sequence)> {
        // Those fields are within the first bytes.
        let rbsp = unescape(&nal[2..nal.len().min(128)]);
        let mut bits = Bits::new(&rbsp);
        bits.flag()?;
        if (16..=23).contains(&kind.0) {
            bits.flag()?;
        }
        let parameters = self.parameters.get(&bits.ue()?)?;
        let sequence = self.sequences.get(&parameters.sps)?;
        if kind.is_idr() {
            return Some((Slice { order_low: 0, references: Some(Vec::new()) }, sequence));
        }
        bits.skip(parameters.extra_bits as usize)?;
        bits.ue_up_to(2)?;
        if parameters.has_output_flag {
            bits.flag()?;
        }
        if sequence.has_separate_planes {
            bits.skip(2)?;
        }
        let order_low = bits.take(sequence.order_bits)?;
        Some((Slice { order_low, references: references::of_slice(&mut bits, &sequence.reference_sets) }, sequence))
    }

    /// A picture above layer 0 may depend on an earlier one of its own layer, unless its type (TSA, STSA) or theirs (not kept for
    /// reference) excludes it.
    fn flaw(&mut self, kind: Kind, sub_layer: u8) -> Option<&'static str> {
        if kind.is_key() {
            self.kept = 0;
        }
        if sub_layer == 0 {
            return None;
        }
        let depends = matches!(kind.0, 0 | 1) && self.kept >> sub_layer & 1 == 1;
        if kind.is_kept() {
            self.kept |= 1 << sub_layer;
        }
        depends.then_some("pictures above the base layer may depend on others of their own layer")
    }
}

/// §7.3.2.3.1, as far as the slice header needs it.
fn parameters(bits: &mut Bits<'_>) -> Option<(u32, Parameters)> {
    let id = bits.ue_up_to(63)?;
    let sps = bits.ue_up_to(15)?;
    bits.flag()?;
    Some((id, Parameters { sps, has_output_flag: bits.flag()?, extra_bits: bits.take(3)? }))
}

/// §7.3.2.2.1.
fn sequence(bits: &mut Bits<'_>) -> Option<(u32, Sequence)> {
    bits.skip(4)?;
    let sub_layers = bits.take(3)? as u8 + 1;
    bits.flag()?;
    skip_profile(bits, sub_layers)?;
    let id = bits.ue_up_to(15)?;
    let has_separate_planes = bits.ue_up_to(3)? == 3 && bits.flag()?;
    bits.ue()?;
    bits.ue()?;
    if bits.flag()? {
        skip_each(bits, 4)?;
    }
    skip_each(bits, 2)?;
    let order_bits = bits.ue_up_to(12)? + 4;
    // Everything further is about the order of layers that come apart and the frame rate, which may also be given.
    let reference_sets = reference_sets(bits, sub_layers);
    let frame_rate = reference_sets.as_ref().and_then(|_| timing(bits, order_bits));
    let reference_sets = reference_sets.unwrap_or_default();
    Some((id, Sequence { order_bits, reference_sets, has_separate_planes, sub_layers, frame_rate }))
}

fn skip_each(bits: &mut Bits<'_>, codes: u32) -> Option<()> {
    (0..codes).try_for_each(|_| bits.ue().map(drop))
}

/// Profile, tier and level (§7.3.3).
fn skip_profile(bits: &mut Bits<'_>, sub_layers: u8) -> Option<()> {
    bits.skip(88 + 8)?;
    let mut further = 0;
    for _ in 1..sub_layers {
        further += if bits.flag()? { 88 } else { 0 };
        further += if bits.flag()? { 8 } else { 0 };
    }
    if sub_layers > 1 {
        bits.skip(2 * usize::from(9 - sub_layers))?;
    }
    bits.skip(further)
}

/// From behind `log2_max_pic_order_cnt_lsb` (§7.3.2.2.1).
fn reference_sets(bits: &mut Bits<'_>, sub_layers: u8) -> Option<Vec<ReferenceSet>> {
    let layers_told = if bits.flag()? { u32::from(sub_layers) } else { 1 };
    skip_each(bits, 3 * layers_told)?;
    skip_each(bits, 6)?;
    if bits.flag()? && bits.flag()? {
        skip_scaling_lists(bits)?;
    }
    bits.skip(2)?;
    if bits.flag()? {
        bits.skip(8)?;
        skip_each(bits, 2)?;
        bits.flag()?;
    }
    references::sets(bits)
}

/// The frame rate in the video usability information, from behind the reference sets (§7.3.2.2.1, §E.2.1).
fn timing(bits: &mut Bits<'_>, order_bits: u32) -> Option<FrameRate> {
    if bits.flag()? {
        let long_term = bits.ue_up_to(32)?;
        bits.skip(long_term as usize * (order_bits as usize + 1))?;
    }
    bits.skip(2)?;
    if !bits.flag()? {
        return None;
    }
    skip_usability(bits)?;
    if !bits.flag()? {
        return None;
    }
    let (seconds, pictures) = (bits.take(32)?, bits.take(32)?);
    FrameRate::new(pictures, seconds)
}

/// §E.2.1 up to `vui_timing_info_present_flag`.
fn skip_usability(bits: &mut Bits<'_>) -> Option<()> {
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
        skip_each(bits, 2)?;
    }
    bits.skip(3)?;
    if bits.flag()? {
        skip_each(bits, 4)?;
    }
    Some(())
}

/// §7.3.4.
fn skip_scaling_lists(bits: &mut Bits<'_>) -> Option<()> {
    for size in 0..4 {
        for _ in (0..6).step_by(if size == 3 { 3 } else { 1 }) {
            if !bits.flag()? {
                bits.ue()?;
                continue;
            }
            if size > 1 {
                bits.se()?;
            }
            skip_each(bits, 64.min(1 << (4 + 2 * size)))?;
        }
    }
    Some(())
}
