//! HEVC's short-term reference picture sets: which earlier pictures are kept while a picture is decoded, and after it (H.265 §7.3.7, §7.4.8).

use crate::split::bits::Bits;

/// The most pictures of a set: `sps_max_dec_pic_buffering_minus1` is up to 15 (§A.4).
const MAX_REFERENCES: u32 = 16;

/// A picture that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::split) struct Reference {
    /// Its order count, less that of the picture that the set is of. Never 0.
    pub(in crate::split) delta: i32,
    /// Whether that picture itself may refer to it. Otherwise only later ones do.
    pub(in crate::split) is_used: bool,
}

/// Those that are presented earlier from the nearest on, then those that are presented later from the nearest on.
pub(in crate::split) type ReferenceSet = Vec<Reference>;

/// The sets of a sequence parameter set.
pub(super) fn sets(bits: &mut Bits<'_>) -> Option<Vec<ReferenceSet>> {
    let count = bits.ue_up_to(64)?;
    (0..count).try_fold(Vec::new(), |mut sets, _| {
        let next = set(bits, &sets, false)?;
        sets.push(next);
        Some(sets)
    })
}

/// The set of a slice header, its own or one of these.
pub(super) fn of_slice(bits: &mut Bits<'_>, sets: &[ReferenceSet]) -> Option<ReferenceSet> {
    if !bits.flag()? {
        return set(bits, sets, true);
    }
    let width = sets.len().max(1).next_power_of_two().ilog2();
    sets.get(bits.take(width)? as usize).cloned()
}

/// The next set behind these. A slice's own may name which of them it is made from; otherwise that is the last.
fn set(bits: &mut Bits<'_>, sets: &[ReferenceSet], is_of_slice: bool) -> Option<ReferenceSet> {
    if !sets.is_empty() && bits.flag()? {
        let back = if is_of_slice { bits.ue_up_to(63)? as usize + 1 } else { 1 };
        return shifted(bits, sets.get(sets.len().checked_sub(back)?)?);
    }
    let (before, after) = (bits.ue_up_to(MAX_REFERENCES)?, bits.ue_up_to(MAX_REFERENCES)?);
    let mut set = Vec::new();
    for (count, sign) in [(before, -1), (after, 1)] {
        let mut delta = 0;
        for _ in 0..count {
            delta += sign * (bits.ue_up_to((1 << 15) - 1)? as i32 + 1);
            set.push(Reference { delta, is_used: bits.flag()? });
        }
    }
    Some(set)
}

/// A set that is told by another: its pictures and the one that it is of, seen from elsewhere (equations 7-61 and 7-62).
fn shifted(bits: &mut Bits<'_>, from: &ReferenceSet) -> Option<ReferenceSet> {
    let is_negative = bits.flag()?;
    let shift = bits.ue_up_to((1 << 15) - 1)? as i32 + 1;
    let shift = if is_negative { -shift } else { shift };
    let mut set = Vec::new();
    for delta in from.iter().map(|reference| reference.delta).chain([0]) {
        let is_used = bits.flag()?;
        if (is_used || bits.flag()?) && delta + shift != 0 {
            set.push(Reference { delta: delta + shift, is_used });
        }
    }
    set.sort_by_key(|reference| (reference.delta > 0, reference.delta.abs()));
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits as text, with spaces between syntax elements.
    fn bytes(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').map(|byte| byte - b'0').collect();
        bits.chunks(8)
            .map(|byte| byte.iter().enumerate().fold(0, |sum, (place, bit)| sum | bit << (7 - place)))
            .collect()
    }

    fn deltas(set: &ReferenceSet) -> Vec<(i32, bool)> {
        set.iter().map(|reference| (reference.delta, reference.is_used)).collect()
    }

    #[test]
    fn a_set_lists_the_pictures_before_and_after_from_the_nearest_on() {
        // Two before (1 and 3 back), one after (by 2), which is not used.
        let bytes = bytes("011 010  1 1 010 1  010 0");
        let set = set(&mut Bits::new(&bytes), &[], false).expect("it is whole");
        assert_eq!(deltas(&set), [(-1, true), (-3, true), (2, false)]);
    }

    #[test]
    fn a_set_may_be_another_seen_from_elsewhere() {
        let from = vec![
            Reference { delta: -4, is_used: true },
            Reference { delta: -8, is_used: true },
            Reference { delta: 4, is_used: true },
        ];
        // Shifted by 2: all are used but the one 8 back, which is left out; so is the picture itself, which is kept for others.
        let bytes = bytes("1 0 010  1 0 0 1 0 1");
        let set = set(&mut Bits::new(&bytes), &[from], false).expect("it is whole");
        assert_eq!(deltas(&set), [(-2, true), (2, false), (6, true)]);
    }

    #[test]
    fn a_slice_names_one_of_the_sequences_sets_or_brings_its_own() {
        let one = |delta| vec![Reference { delta, is_used: true }];
        let sets = [one(-1), one(-2), one(-3)];
        assert_eq!(of_slice(&mut Bits::new(&bytes("1 10")), &sets), Some(one(-3)));
        assert_eq!(of_slice(&mut Bits::new(&bytes("1 11")), &sets), None);
        // Its own, made from the one two before: shifted by -1.
        let own = of_slice(&mut Bits::new(&bytes("0 1 010 1 1 1 0 0")), &sets).expect("it is whole");
        assert_eq!(deltas(&own), [(-3, true)]);
    }
}
