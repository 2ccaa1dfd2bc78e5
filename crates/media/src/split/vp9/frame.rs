//! The uncompressed headers of VP9 frames, and superframes (VP9 bitstream specification, §6.2 and annex B).

use crate::split::bits::Bits;

/// What a frame's uncompressed header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) is_key: bool,
    /// Whether it depends on no state of earlier frames but reference frames.
    pub(super) is_resilient: bool,
    /// The slots that hold it afterwards, a bit each.
    pub(super) refresh: u8,
    /// The slot of the first reference, LAST; `None` if it has no references.
    pub(super) last: Option<u8>,
}

/// The width and height that a key frame states, or the first frame of a superframe.
pub(crate) fn dimensions(picture: &[u8]) -> Option<(u16, u16)> {
    let mut bits = Bits::new(frames(picture)?.first()?);
    let profile = marker_and_profile(&mut bits)?;
    let (shows_existing, is_inter) = (bits.flag()?, bits.flag()?);
    bits.skip(2)?;
    if shows_existing || is_inter || bits.take(24)? != SYNC_CODE {
        return None;
    }
    skip_color(&mut bits, profile)?;
    // Less one, in 16 bits each; IVF has no room for 65536.
    let width = bits.take(16)?.saturating_add(1).min(0xFFFF);
    let height = bits.take(16)?.saturating_add(1).min(0xFFFF);
    Some((width as u16, height as u16))
}

fn skip_color(bits: &mut Bits<'_>, profile: u32) -> Option<()> {
    if profile >= 2 {
        bits.flag()?;
    }
    let is_rgb = bits.take(3)? == 7;
    let has_subsampling = profile & 1 == 1;
    bits.skip(match (is_rgb, has_subsampling) {
        (false, false) => 1,
        (false, true) => 4,
        (true, true) => 1,
        (true, false) => 0,
    })
}

fn marker_and_profile(bits: &mut Bits<'_>) -> Option<u32> {
    if bits.take(2)? != 2 {
        return None;
    }
    let profile = bits.take(1)? | bits.take(1)? << 1;
    if profile == 3 {
        bits.flag()?;
    }
    Some(profile)
}

/// §6.2, as far as the references.
pub(super) fn header(frame: &[u8]) -> Option<Header> {
    let mut bits = Bits::new(frame);
    let profile = marker_and_profile(&mut bits)?;
    if bits.flag()? {
        let shown = bits.take(3)? as u8;
        return Some(Header { is_key: false, is_resilient: true, refresh: 0, last: Some(shown) });
    }
    let (is_inter, is_shown, is_resilient) = (bits.flag()?, bits.flag()?, bits.flag()?);
    if !is_inter {
        return (bits.take(24)? == SYNC_CODE).then_some(Header {
            is_key: true,
            is_resilient,
            refresh: 0xFF,
            last: None,
        });
    }
    let is_intra_only = !is_shown && bits.flag()?;
    if !is_resilient {
        bits.skip(2)?;
    }
    if is_intra_only {
        bits.skip(24)?;
        if profile > 0 {
            skip_color(&mut bits, profile)?;
        }
    }
    let refresh = bits.take(8)? as u8;
    let last = if is_intra_only { None } else { Some(bits.take(3)? as u8) };
    Some(Header { is_key: false, is_resilient, refresh, last })
}

/// The frames of a superframe (annex B), or the one frame that it is.
pub(super) fn frames(picture: &[u8]) -> Option<Vec<&[u8]>> {
    let &marker = picture.last()?;
    let count = usize::from(marker & 7) + 1;
    let size_bytes = usize::from(marker >> 3 & 3) + 1;
    let index_start = picture.len().checked_sub(2 + count * size_bytes);
    let Some(index_start) = index_start.filter(|start| marker & 0xE0 == 0xC0 && picture[*start] == marker) else {
        return Some(vec![picture]);
    };
    let sizes = picture[index_start + 1..picture.len() - 1].chunks(size_bytes);
    let mut rest = &picture[..index_start];
    let mut frames = Vec::with_capacity(count);
    for size in sizes.map(|bytes| bytes.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte))) {
        let (frame, after) = rest.split_at_checked(size)?;
        rest = after;
        if !frame.is_empty() {
            frames.push(frame);
        }
    }
    (!frames.is_empty()).then_some(frames)
}

const SYNC_CODE: u32 = 0x49_83_42;
