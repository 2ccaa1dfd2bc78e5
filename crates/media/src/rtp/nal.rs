//! NAL units as payloads: RFC 7798 for HEVC, RFC 6184 in packetization mode 1 for H.264. They differ in their headers only.
//!
//! Small neighbours share a packet (AP, STAP-A), what fits goes alone, and the rest in fragments (FU, FU-A).

use crate::split::START_CODE;

/// What differs between the two.
pub(super) struct Layout {
    /// The NAL unit header in bytes.
    header: usize,
    /// The types of packets that hold several units, and of fragments.
    aggregate: u8,
    fragment: u8,
    /// The header of a packet of such a type, from that of the units: all bits but the type's are the highest of these where
    /// they say importance, the lowest where they say the layer.
    with_type: fn(&[u8], u8) -> Vec<u8>,
    kind: fn(u8) -> u8,
    merge: fn(&mut [u8], &[u8]),
}

pub(super) const HEVC: Layout = Layout {
    header: 2,
    aggregate: 48,
    fragment: 49,
    with_type: |nal, kind| vec![nal[0] & 0x81 | kind << 1, nal[1]],
    kind: |first| first >> 1 & 63,
    // Both have layer 0; the temporal id is the lowest (§4.4.2).
    merge: |header, nal| {
        header[0] |= nal[0] & 0x80;
        header[1] = header[1].min(nal[1]);
    },
};

pub(super) const H264: Layout = Layout {
    header: 1,
    aggregate: 24,
    fragment: 28,
    with_type: |nal, kind| vec![nal[0] & 0xE0 | kind],
    kind: |first| first & 31,
    // F is the or of all, NRI the highest (§5.7.1).
    merge: |header, nal| {
        let importance = (header[0] & 0x60).max(nal[0] & 0x60);
        header[0] = (header[0] | nal[0]) & 0x80 | importance | header[0] & 31;
    },
};

/// Bits of a fragment's header; the type is below.
const START: u8 = 0x80;
const END: u8 = 0x40;
const KIND: u8 = 0x3F;

/// The payloads of a picture in Annex B.
pub(super) fn payloads(layout: &Layout, picture: &[u8], max_payload: usize) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let mut waiting: Vec<&[u8]> = Vec::new();
    for nal in units(picture).filter(|nal| nal.len() > layout.header) {
        let together = layout.header + waiting.iter().chain([&nal]).map(|nal| 2 + nal.len()).sum::<usize>();
        if together > max_payload {
            payloads.extend(aggregate(layout, &waiting));
            waiting.clear();
        }
        if nal.len() > max_payload {
            fragments(layout, nal, max_payload, &mut payloads);
        } else {
            waiting.push(nal);
        }
    }
    payloads.extend(aggregate(layout, &waiting));
    payloads
}

/// One packet of several units, or of one as it is.
fn aggregate(layout: &Layout, nals: &[&[u8]]) -> Option<Vec<u8>> {
    let (first, others) = nals.split_first()?;
    if others.is_empty() {
        return Some(first.to_vec());
    }
    let mut payload = (layout.with_type)(first, layout.aggregate);
    for nal in nals {
        (layout.merge)(&mut payload[..layout.header], nal);
        // Units in packets are shorter than these.
        payload.extend_from_slice(&(nal.len() as u16).to_be_bytes());
        payload.extend_from_slice(nal);
    }
    Some(payload)
}

fn fragments(layout: &Layout, nal: &[u8], max_payload: usize, payloads: &mut Vec<Vec<u8>>) {
    let header = (layout.with_type)(nal, layout.fragment);
    let parts = nal[layout.header..].chunks(max_payload - layout.header - 1);
    let last = parts.len() - 1;
    for (n, part) in parts.enumerate() {
        let place = if n == 0 { START } else { 0 } | if n == last { END } else { 0 };
        payloads.push([&header[..], &[place | (layout.kind)(nal[0])], part].concat());
    }
}

/// The data of a picture in Annex B from its payloads.
pub(super) fn picture<'a>(layout: &Layout, payloads: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    let mut is_fragmented = false;
    for payload in payloads {
        let kind = (layout.kind)(*payload.first()?);
        let body = payload.get(layout.header..).filter(|body| !body.is_empty())?;
        if is_fragmented && kind != layout.fragment {
            return None;
        }
        if kind == layout.fragment {
            let (&place, part) = body.split_first()?;
            if (place & START != 0) == is_fragmented || part.is_empty() {
                return None;
            }
            if place & START != 0 {
                data.extend_from_slice(&START_CODE);
                data.extend((layout.with_type)(payload, place & KIND & (layout.kind)(0xFF)));
            }
            data.extend_from_slice(part);
            is_fragmented = place & END == 0;
        } else if kind == layout.aggregate {
            several(layout, body, &mut data)?;
        } else if kind < layout.aggregate {
            data.extend_from_slice(&START_CODE);
            data.extend_from_slice(payload);
        } else {
            return None;
        }
    }
    (!is_fragmented && !data.is_empty()).then_some(data)
}

fn several(layout: &Layout, mut body: &[u8], data: &mut Vec<u8>) -> Option<()> {
    while let Some((length, rest)) = body.split_first_chunk::<2>() {
        let (nal, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        if nal.len() <= layout.header {
            return None;
        }
        data.extend_from_slice(&START_CODE);
        data.extend_from_slice(nal);
        body = rest;
    }
    body.is_empty().then_some(())
}

/// The units of a picture whose start codes have four bytes, as pictures here have them.
fn units(picture: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = picture.strip_prefix(&START_CODE).unwrap_or_default();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.windows(START_CODE.len()).position(|bytes| bytes == START_CODE);
        let (nal, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.get(START_CODE.len()..).unwrap_or_default();
        Some(nal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annex_b(nals: &[&[u8]]) -> Vec<u8> {
        nals.iter().flat_map(|nal| [&START_CODE, *nal].concat()).collect()
    }

    #[test]
    fn small_neighbours_share_a_packet_and_large_units_are_fragmented() {
        let large = [&[0x26, 1][..], &[7; 100]].concat();
        let picture = annex_b(&[&[0x40, 1, 5], &[0x42, 1, 6], &large]);
        let payloads = payloads(&HEVC, &picture, 64);
        assert_eq!(payloads[0], [48 << 1, 1, 0, 3, 0x40, 1, 5, 0, 3, 0x42, 1, 6]);
        assert_eq!(payloads[1][..4], [49 << 1, 1, START | 19, 7]);
        assert_eq!(payloads[2][..4], [49 << 1, 1, END | 19, 7]);
        assert_eq!((payloads.len(), payloads[1].len(), payloads[2].len()), (3, 64, 42));
        assert_eq!(super::picture(&HEVC, payloads.iter().map(Vec::as_slice)), Some(picture));
    }

    #[test]
    fn aggregates_of_h264_have_the_highest_importance() {
        let picture = annex_b(&[&[0x06, 5], &[0x65, 6]]);
        let payloads = payloads(&H264, &picture, 64);
        assert_eq!(payloads, [[0x78, 0, 2, 0x06, 5, 0, 2, 0x65, 6]]);
        assert_eq!(super::picture(&H264, payloads.iter().map(Vec::as_slice)), Some(picture));
    }

    #[test]
    fn fragments_without_their_start_or_end_are_no_picture() {
        let of = |payloads: &[&[u8]]| super::picture(&H264, payloads.iter().copied());
        assert!(of(&[&[0x7C, START | 5, 1], &[0x7C, END | 5, 1]]).is_some());
        assert_eq!(of(&[&[0x7C, END | 5, 1]]), None);
        assert_eq!(of(&[&[0x7C, START | 5, 1]]), None);
        assert_eq!(of(&[&[0x7C, START | 5, 1], &[0x7C, START | END | 5, 1]]), None);
        assert_eq!(of(&[&[0x7C, START | 5, 1], &[0x61, 1]]), None);
        assert_eq!(of(&[&[0x78, 0, 9, 1, 2]]), None);
    }
}
