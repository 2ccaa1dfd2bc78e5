//! AV1's open bitstream units: a header, a size, a payload (AV1 bitstream specification, §5.3).

/// Types of units (§6.2.2).
pub(crate) const SEQUENCE_HEADER: u8 = 1;
const TEMPORAL_DELIMITER: u8 = 2;
pub(crate) const FRAME_HEADER: u8 = 3;
pub(crate) const FRAME: u8 = 6;
const TILE_LIST: u8 = 8;
const PADDING: u8 = 15;

/// A temporal delimiter as a whole.
pub(crate) const DELIMITER: [u8; 2] = [TEMPORAL_DELIMITER << 3 | HAS_SIZE, 0];

const FORBIDDEN: u8 = 0x80;
const HAS_EXTENSION: u8 = 4;
const HAS_SIZE: u8 = 2;

/// A unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Obu<'a> {
    pub(crate) kind: u8,
    /// Which layers it is of: bits as in the header's extension. `None` without one.
    extension: Option<u8>,
    pub(crate) temporal_id: u8,
    pub(crate) spatial_id: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> Obu<'a> {
    /// The unit at the beginning of these bytes, and what is behind it. One without a size has all bytes.
    pub(crate) fn split(bytes: &'a [u8]) -> Option<(Obu<'a>, &'a [u8])> {
        let (&header, mut rest) = bytes.split_first()?;
        if header & FORBIDDEN != 0 {
            return None;
        }
        let mut extension = None;
        if header & HAS_EXTENSION != 0 {
            let (&first, after) = rest.split_first()?;
            (extension, rest) = (Some(first), after);
        }
        let mut length = rest.len();
        if header & HAS_SIZE != 0 {
            (length, rest) = leb128(rest)?;
        }
        let (payload, after) = rest.split_at_checked(length)?;
        let layers = extension.unwrap_or(0);
        let unit =
            Obu { kind: header >> 3 & 15, extension, temporal_id: layers >> 5, spatial_id: layers >> 3 & 3, payload };
        Some((unit, after))
    }

    /// The unit with its size, at the end of these bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.header() | HAS_SIZE);
        out.extend(self.extension);
        write_leb128(self.payload.len(), out);
        out.extend_from_slice(self.payload);
    }

    /// The unit without a size.
    pub(crate) fn without_size(&self) -> Vec<u8> {
        let mut out = vec![self.header()];
        out.extend(self.extension);
        out.extend_from_slice(self.payload);
        out
    }

    /// Whether a decoder needs it: a temporal delimiter says only where a temporal unit begins, a list of tiles is for another kind of
    /// decoder.
    pub(crate) fn is_needed(&self) -> bool {
        !matches!(self.kind, TEMPORAL_DELIMITER | TILE_LIST | PADDING)
    }

    fn header(&self) -> u8 {
        self.kind << 3 | if self.extension.is_some() { HAS_EXTENSION } else { 0 }
    }
}

/// The units of a temporal unit; `None` if one is cut off or no unit.
pub(crate) fn units(mut bytes: &[u8]) -> Option<Vec<Obu<'_>>> {
    let mut units = Vec::new();
    while !bytes.is_empty() {
        let (unit, rest) = Obu::split(bytes)?;
        units.push(unit);
        bytes = rest;
    }
    Some(units)
}

/// A number of seven bits a byte, the lowest first, and what is behind it (§4.10.5). Numbers of 32 bits and more are refused.
pub(crate) fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (place, byte) in bytes.iter().take(8).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()? as usize, &bytes[place + 1..]));
        }
    }
    None
}

/// How many bytes a number takes.
pub(crate) fn leb128_len(value: usize) -> usize {
    (value.max(1).ilog2() / 7 + 1) as usize
}

/// A number in as few bytes as it takes.
pub(crate) fn write_leb128(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_bits_a_byte() {
        for (value, bytes) in [(0, &[0][..]), (127, &[127]), (128, &[0x80, 1]), (5568, &[0xC0, 0x2B])] {
            let mut out = Vec::new();
            write_leb128(value, &mut out);
            assert_eq!((&out[..], leb128_len(value)), (bytes, bytes.len()));
            assert_eq!(leb128(&[bytes, &[9]].concat()), Some((value, &[9][..])));
        }
        // Leading zeros may be there, a number beyond 32 bits may not.
        assert_eq!(leb128(&[0x85, 0x80, 0]), Some((5, &[][..])));
        assert_eq!(leb128(&[0xFF, 0xFF, 0xFF, 0xFF, 0x7F]), None);
        assert_eq!(leb128(&[0x80; 9]), None);
    }

    #[test]
    fn units_are_read_with_and_without_size() {
        let bytes = [0x12, 0, 0x36, 0x48, 2, 7, 8, 0x30, 1, 2, 3];
        let units = units(&bytes).expect("units");
        let told: Vec<_> =
            units.iter().map(|unit| (unit.kind, unit.temporal_id, unit.spatial_id, unit.payload)).collect();
        let expected: [(u8, u8, u8, &[u8]); 3] = [(2, 0, 0, &[]), (6, 2, 1, &[7, 8]), (6, 0, 0, &[1, 2, 3])];
        assert_eq!(told, expected);
        let mut out = Vec::new();
        units.iter().for_each(|unit| unit.write(&mut out));
        assert_eq!(out, [0x12, 0, 0x36, 0x48, 2, 7, 8, 0x32, 3, 1, 2, 3]);
        assert_eq!(units[1].without_size(), [0x34, 0x48, 7, 8]);
    }

    #[test]
    fn units_that_are_cut_off_or_none_are_refused() {
        for bytes in [&[0x32, 4, 1, 2, 3][..], &[0x80, 0], &[0x36], &[0x32], &[0x32, 0x80]] {
            assert_eq!(units(bytes), None, "{bytes:?}");
        }
    }
}
