//! What a stream is, from its first bytes.

use super::Format;
use crate::MediaError;

/// The layout of a stream that begins with these bytes; `None` if more are needed and `is_all` does not say that there are none.
pub(super) fn format(first: &[u8], is_all: bool) -> Option<Result<Format, MediaError>> {
    if first.starts_with(IVF) {
        return match first.get(8..12) {
            Some(b"VP90") => Some(Ok(Format::IvfVp9)),
            Some(b"AV01") => Some(Ok(Format::IvfAv1)),
            Some(fourcc) => Some(Err(MediaError::UnknownFourcc(fourcc.escape_ascii().to_string()))),
            None => is_all.then_some(Err(MediaError::UnknownFormat)),
        };
    }
    let may_be_ivf = IVF.starts_with(first);
    let may_be_annex_b = first.iter().take_while(|byte| **byte == 0).count() >= 2.min(first.len());
    if may_be_annex_b && let Some(format) = parameter_set(first) {
        return Some(Ok(format));
    }
    let is_open = (may_be_ivf || may_be_annex_b) && first.len() < PROBED && !is_all;
    let is_empty = is_all && first.is_empty();
    (!is_open && !is_empty).then_some(Err(MediaError::UnknownFormat))
}

/// HEVC by a video or sequence parameter set, H.264 by a sequence parameter set, whichever comes first.
///
/// The byte 0x67 or 0x27 of an H.264 sequence parameter set would be of reserved types in HEVC, and an HEVC header's 0x40 or 0x42
/// would be of type 0 or 2, which no H.264 stream begins with.
fn parameter_set(bytes: &[u8]) -> Option<Format> {
    let units = bytes.windows(6).filter(|window| window.starts_with(&[0, 0, 1]));
    units.map(|window| (window[3], window[4])).find_map(|(first, second)| match (first, second) {
        (0x40 | 0x42, 1) => Some(Format::AnnexBHevc),
        (0x27 | 0x47 | 0x67, 42..=255) => Some(Format::AnnexBH264),
        _ => None,
    })
}

const IVF: &[u8] = b"DKIF";

/// Bytes after which a stream has to have shown a parameter set.
const PROBED: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        let of = |bytes: &[u8]| format(bytes, false);
        assert_eq!(of(b"DKIF\0\0\x20\0VP90"), Some(Ok(Format::IvfVp9)));
        assert_eq!(of(b"DKIF\0\0\x20\0AV01"), Some(Ok(Format::IvfAv1)));
        assert_eq!(of(b"DKIF\0\0\x20\0VP80"), Some(Err(MediaError::UnknownFourcc("VP80".into()))));
        assert_eq!(of(&[0, 0, 0, 1, 0x40, 1, 0x0C, 1]), Some(Ok(Format::AnnexBHevc)));
        assert_eq!(of(&[0, 0, 0, 1, 0x09, 0xF0, 0, 0, 0, 1, 0x67, 100, 0]), Some(Ok(Format::AnnexBH264)));
        assert_eq!(of(b"RIFF"), Some(Err(MediaError::UnknownFormat)));
    }

    #[test]
    fn too_few_bytes_wait_for_more_unless_there_are_none() {
        assert_eq!(format(b"DK", false), None);
        assert_eq!(format(&[0, 0, 0, 1], false), None);
        assert_eq!(format(&[0, 0, 0, 1], true), Some(Err(MediaError::UnknownFormat)));
        assert_eq!(format(b"", false), None);
        assert_eq!(format(b"", true), None);
    }
}
