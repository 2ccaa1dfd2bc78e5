//! VP9 payloads (RFC 9628), in non-flexible mode with layer indices.

use crate::Picture;

/// Bits of the first byte (§4.2).
const PICTURE_ID: u8 = 0x80;
const INTER: u8 = 0x40;
const LAYERS: u8 = 0x20;
const FLEXIBLE: u8 = 0x10;
const BEGIN: u8 = 0x08;
const END: u8 = 0x04;
const STRUCTURE: u8 = 0x02;
const TOP_SPATIAL: u8 = 0x01;

/// Our payload descriptor in bytes: flags, picture ID in two, layer indices, TL0PICIDX.
const DESCRIPTOR: usize = 5;

/// The payloads of a picture, each with its descriptor. `base_pictures` is TL0PICIDX.
pub(super) fn payloads(picture: &Picture, base_pictures: u8, max_payload: usize) -> Vec<Vec<u8>> {
    let info = picture.info;
    let parts = picture.data.chunks(max_payload - DESCRIPTOR);
    let last = parts.len().saturating_sub(1);
    let flags = PICTURE_ID | LAYERS | TOP_SPATIAL | if info.is_key { 0 } else { INTER };
    // TID and U: no picture behind this one and above its layer needs one before it, as they need the latest one below them.
    let layers = info.layer << 5 | 1 << 4;
    let [id_high, id_low] = info.number.to_be_bytes();
    let payload = |(n, part): (usize, &[u8])| {
        let place = if n == 0 { BEGIN } else { 0 } | if n == last { END } else { 0 };
        [&[flags | place, 0x80 | id_high, id_low, layers, base_pictures], part].concat()
    };
    parts.enumerate().map(payload).collect()
}

/// The data of a picture from its payloads.
pub(super) fn picture<'a>(payloads: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for payload in payloads {
        let begins = payload.first()? & BEGIN != 0;
        if data.is_empty() != begins {
            return None;
        }
        data.extend_from_slice(behind_descriptor(payload).filter(|part| !part.is_empty())?);
    }
    (!data.is_empty()).then_some(data)
}

/// What is behind the descriptor, whichever parts that has.
fn behind_descriptor(payload: &[u8]) -> Option<&[u8]> {
    let (&flags, mut rest) = payload.split_first()?;
    if flags & PICTURE_ID != 0 {
        let is_long = rest.first()? & 0x80 != 0;
        rest = rest.get(if is_long { 2 } else { 1 }..)?;
    }
    if flags & LAYERS != 0 {
        rest = rest.get(if flags & FLEXIBLE == 0 { 2 } else { 1 }..)?;
    }
    if flags & FLEXIBLE != 0 && flags & INTER != 0 {
        for _ in 0..3 {
            let (&reference, after) = rest.split_first()?;
            rest = after;
            if reference & 1 == 0 {
                break;
            }
        }
    }
    if flags & STRUCTURE != 0 {
        rest = behind_structure(rest)?;
    }
    Some(rest)
}

/// §4.2.1.
fn behind_structure(bytes: &[u8]) -> Option<&[u8]> {
    let (&head, mut rest) = bytes.split_first()?;
    if head & 0x10 != 0 {
        let spatial_layers = usize::from(head >> 5) + 1;
        rest = rest.get(4 * spatial_layers..)?;
    }
    if head & 0x08 != 0 {
        let (&pictures, mut after) = rest.split_first()?;
        for _ in 0..pictures {
            let references = usize::from(after.first()? >> 2 & 3);
            after = after.get(1 + references..)?;
        }
        rest = after;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_parts_of_other_senders_are_passed_over() {
        let part = [0xAA, 0xBB];
        let with = |descriptor: &[u8]| [descriptor, &part].concat();
        let all = [
            with(&[BEGIN]),
            with(&[BEGIN | PICTURE_ID, 0x12]),
            with(&[BEGIN | PICTURE_ID | LAYERS, 0x92, 0x34, 0x00, 0x07]),
            with(&[BEGIN | PICTURE_ID | LAYERS | FLEXIBLE | INTER, 0x12, 0x00, 0x03, 0x04]),
            with(&[BEGIN | STRUCTURE, 0x18, 1, 64, 0, 180, 2, 0x08, 1, 2, 0x04, 1][..12]),
        ];
        all.iter().take(4).for_each(|payload| assert_eq!(behind_descriptor(payload), Some(&part[..])));
        // One spatial layer with its size, and a group of two pictures with two references and one.
        let structure = [&[STRUCTURE | BEGIN, 0x18, 1, 64, 0, 180, 2, 0x08, 1, 2, 0x04, 1], &part[..]].concat();
        assert_eq!(behind_descriptor(&structure), Some(&part[..]));
    }
}
