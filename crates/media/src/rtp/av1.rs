//! AV1 payloads (RTP payload format for AV1 of the Alliance for Open Media, version 1.0.0, §4).
//!
//! Units travel without their sizes, and without temporal delimiters, which the receiver puts back.

use crate::Picture;
use crate::split::av1::obu::{self, Obu, leb128, leb128_len, write_leb128};

/// Bits of the aggregation header (§4.4).
const CONTINUES: u8 = 0x80;
const WILL_CONTINUE: u8 = 0x40;
const COUNT_SHIFT: u8 = 4;
const NEW_SEQUENCE: u8 = 0x08;

/// Elements that the aggregation header can count, so that the last of them needs no length.
const MAX_ELEMENTS: usize = 3;

/// What is left of a packet below this does not begin a unit that has to be cut.
const LEAST_PART: usize = 16;

/// A packet that is being filled: parts of units, of which all but the last get their length in front.
#[derive(Debug, Default)]
struct Packet<'a> {
    continues: bool,
    parts: Vec<&'a [u8]>,
}

impl Packet<'_> {
    /// How long a further part may be.
    fn room(&self, max_payload: usize) -> usize {
        if self.parts.len() == MAX_ELEMENTS {
            return 0;
        }
        let taken = self.parts.iter().map(|part| leb128_len(part.len()) + part.len()).sum::<usize>();
        max_payload.saturating_sub(1 + taken)
    }

    fn payload(&self, will_continue: bool, is_new_sequence: bool) -> Vec<u8> {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(self.continues, CONTINUES)
            | flag(will_continue, WILL_CONTINUE)
            | flag(is_new_sequence, NEW_SEQUENCE)
            | (self.parts.len() as u8) << COUNT_SHIFT;
        let mut payload = vec![flags];
        for (place, part) in self.parts.iter().enumerate() {
            if place + 1 < self.parts.len() {
                write_leb128(part.len(), &mut payload);
            }
            payload.extend_from_slice(part);
        }
        payload
    }
}

/// The payloads of a temporal unit.
pub(super) fn payloads(picture: &Picture, max_payload: usize) -> Vec<Vec<u8>> {
    let units = obu::units(&picture.data).unwrap_or_default();
    let units: Vec<_> = units.iter().filter(|unit| unit.is_needed()).map(Obu::without_size).collect();
    let mut payloads = Vec::new();
    let mut packet = Packet::default();
    let mut send = |packet: &Packet<'_>, will_continue| {
        payloads.push(packet.payload(will_continue, payloads.is_empty() && picture.info.is_key));
    };
    for unit in &units {
        let mut rest = &unit[..];
        let room = packet.room(max_payload);
        if room < rest.len().min(LEAST_PART) {
            send(&std::mem::take(&mut packet), false);
        }
        loop {
            let (part, after) = rest.split_at(rest.len().min(packet.room(max_payload)));
            packet.parts.push(part);
            rest = after;
            if rest.is_empty() {
                break;
            }
            send(&std::mem::replace(&mut packet, Packet { continues: true, parts: Vec::new() }), true);
        }
    }
    if !packet.parts.is_empty() {
        send(&packet, false);
    }
    payloads
}

/// The temporal unit of these payloads.
pub(super) fn picture<'a>(payloads: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut data = obu::DELIMITER.to_vec();
    // The beginning of a unit that the next packet continues.
    let mut open: Option<Vec<u8>> = None;
    for payload in payloads {
        let (&flags, rest) = payload.split_first()?;
        if (flags & CONTINUES != 0) != open.is_some() {
            return None;
        }
        let elements = elements(rest, flags >> COUNT_SHIFT & 3)?;
        let last = elements.len() - 1;
        for (place, element) in elements.into_iter().enumerate() {
            let mut unit = open.take().unwrap_or_default();
            unit.extend_from_slice(element);
            if place == last && flags & WILL_CONTINUE != 0 {
                open = Some(unit);
            } else {
                let (unit, _) = Obu::split(&unit)?;
                if unit.is_needed() {
                    unit.write(&mut data);
                }
            }
        }
    }
    (open.is_none() && data.len() > obu::DELIMITER.len()).then_some(data)
}

/// The elements of a payload: as many as are counted, or all with their lengths if that is 0. At least one.
fn elements(mut bytes: &[u8], count: u8) -> Option<Vec<&[u8]>> {
    let mut elements = Vec::new();
    while !bytes.is_empty() {
        let is_last = elements.len() + 1 == usize::from(count);
        let (length, rest) = if is_last { (bytes.len(), bytes) } else { leb128(bytes)? };
        let (element, after) = rest.split_at_checked(length)?;
        elements.push(element);
        bytes = after;
    }
    let is_as_counted = count == 0 || elements.len() == usize::from(count);
    (is_as_counted && !elements.is_empty()).then_some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture_of(units: &[&[u8]], is_key: bool) -> Picture {
        let needs = u8::from(!is_key);
        let info = crate::PictureInfo { number: 0, needs, layer: 0, is_key, is_leading: false };
        Picture {
            info,
            timestamp: 0,
            data: [&obu::DELIMITER[..]].iter().chain(units).copied().flatten().copied().collect(),
        }
    }

    #[test]
    fn small_units_share_a_packet_and_the_last_has_no_length() {
        let picture = picture_of(&[&[0x0A, 2, 5, 6], &[0x32, 3, 7, 8, 9]], true);
        let payloads = payloads(&picture, 64);
        // Two elements of a new sequence: one of three bytes with its length, one without.
        assert_eq!(payloads, [vec![0x28, 3, 0x08, 5, 6, 0x30, 7, 8, 9]]);
        assert_eq!(super::picture(payloads.iter().map(Vec::as_slice)), Some(picture.data));
    }

    #[test]
    fn long_units_are_cut_and_say_so() {
        let mut unit = vec![0x36, 0x40, 0xA0, 1];
        unit.extend([9; 160]);
        let picture = picture_of(&[&unit], false);
        let payloads = payloads(&picture, 64);
        assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 37]);
        assert_eq!(payloads.iter().map(|payload| payload[0]).collect::<Vec<_>>(), [0x50, 0xD0, 0x90]);
        assert_eq!(payloads[0][1..4], [0x34, 0x40, 9]);
        let slices = || payloads.iter().map(Vec::as_slice);
        assert_eq!(super::picture(slices()), Some(picture.data));
        assert_eq!(super::picture(slices().skip(1)), None);
        assert_eq!(super::picture(slices().take(2)), None);
    }

    #[test]
    fn other_senders_layouts_are_understood() {
        // All elements with lengths; a temporal delimiter, and a unit that kept its size.
        let payload = [0x00, 1, 0x10, 4, 0x32, 2, 7, 8];
        assert_eq!(super::picture([&payload[..]].into_iter()), Some(vec![0x12, 0, 0x32, 2, 7, 8]));
        for wrong in [&[0x20_u8, 1, 0x30][..], &[0x10], &[0x00, 5, 1], &[], &[0x10, 0x80]] {
            assert_eq!(super::picture([wrong].into_iter()), None, "{wrong:?}");
        }
    }
}
