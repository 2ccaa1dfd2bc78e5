//! VP9 payloads (RFC 9628), in non-flexible mode without layer indices.
//!
//! Each layer's RTP stream is a stream of one layer, and what layer that is says Weir's header extension. Of layer indices stock
//! receivers would make nothing: ffmpeg 5.1 passes over neither TL0PICIDX, which they have in non-flexible mode, nor P_DIFF, which they have in
//! flexible mode, and takes these for bytes of the picture.

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

/// Our payload descriptor in bytes: flags, and a picture ID in two.
const DESCRIPTOR: usize = 3;

/// The payloads of a picture, each with its descriptor. Of the picture ID 15 bits are carried.
pub(super) fn payloads(picture: &Picture, id: u16, max_payload: usize) -> Vec<Vec<u8>> {
    let parts = picture.data.chunks(max_payload - DESCRIPTOR);
    let last = parts.len().saturating_sub(1);
    let flags = PICTURE_ID | TOP_SPATIAL | if picture.info.is_key { 0 } else { INTER };
    let [id_high, id_low] = (0x8000 | id).to_be_bytes();
    let payload = |(n, part): (usize, &[u8])| {
        let place = if n == 0 { BEGIN } else { 0 } | if n == last { END } else { 0 };
        [&[flags | place, id_high, id_low], part].concat()
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
        let descriptors: [&[u8]; 5] = [
            &[BEGIN],
            &[BEGIN | PICTURE_ID, 0x12],
            &[BEGIN | PICTURE_ID | LAYERS, 0x92, 0x34, 0x00, 0x07],
            &[BEGIN | PICTURE_ID | LAYERS | FLEXIBLE | INTER, 0x12, 0x00, 0x03, 0x04],
            // One spatial layer with its size, and a group of two pictures with two references and one.
            &[BEGIN | STRUCTURE, 0x18, 1, 64, 0, 180, 2, 0x08, 1, 2, 0x04, 1],
        ];
        for descriptor in descriptors {
            assert_eq!(behind_descriptor(&[descriptor, &part].concat()), Some(&part[..]));
        }
    }

    #[test]
    fn pictures_are_cut_and_marked() {
        let info = crate::PictureInfo { number: 9, needs: 4, layer: 0, is_key: false, is_leading: false };
        let picture = Picture { info, timestamp: 0, data: vec![5; 70] };
        let payloads = payloads(&picture, 0x0123, 64);
        assert_eq!(payloads[0][..4], [PICTURE_ID | INTER | BEGIN | TOP_SPATIAL, 0x81, 0x23, 5]);
        assert_eq!(payloads[1][..4], [PICTURE_ID | INTER | END | TOP_SPATIAL, 0x81, 0x23, 5]);
        assert_eq!([payloads[0].len(), payloads[1].len()], [64, 12]);
    }
}
