//! VP9 frames: layers from the uncompressed headers (VP9 bitstream specification, §6.2 and annex B).

use super::bits::Bits;

/// The slots of reference frames.
const SLOTS: usize = 8;

/// What a frame's uncompressed header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    is_key: bool,
    /// Whether it depends on no state of earlier frames but reference frames.
    is_resilient: bool,
    /// The slots that hold it afterwards, a bit each.
    refresh: u8,
    /// The slot of the first reference, LAST; `None` if it has no references.
    last: Option<u8>,
}

/// What the splitter has to know of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) is_key: bool,
    pub(super) kind: Kind,
    /// Why the stream cannot be taken apart at this picture, if so.
    pub(super) flaw: Option<&'static str>,
}

/// A picture's place in the structure of libvpx's temporal layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is kept in the slot of the base layer.
    Base,
    /// It is kept in slot 1 only.
    Middle,
    /// Nothing refers to it.
    Unreferenced,
}

/// Follows which reference slots hold pictures of which kind.
///
/// Frames of libvpx list slots 0, 1 and 2 as their three references in every header, also where its encoder is told not to use
/// them, and only the arithmetic-coded blocks say which are used. So the list is no proof of a dependency but for its first
/// entry, LAST, which every encoder uses; a structure with other dependencies than libvpx's is found out if LAST breaks the rule.
#[derive(Debug)]
pub(super) struct Structure {
    slots: [Kind; SLOTS],
}

impl Default for Structure {
    fn default() -> Structure {
        Structure { slots: [Kind::Base; SLOTS] }
    }
}

impl Structure {
    /// The next picture: a frame or a superframe. `None` if it cannot be read.
    pub(super) fn see(&mut self, picture: &[u8]) -> Option<Seen> {
        let frames: Vec<_> = frames(picture)?.into_iter().map(header).collect::<Option<_>>()?;
        let is_key = frames.iter().any(|frame| frame.is_key);
        let refresh = frames.iter().fold(0, |slots, frame| slots | frame.refresh);
        let kind = match refresh {
            0 if frames.len() == 1 => Kind::Unreferenced,
            0b10 if frames.len() == 1 => Kind::Middle,
            _ => Kind::Base,
        };
        let flaw = frames.iter().filter(|frame| !frame.is_key).find_map(|frame| self.flaw(frame, kind));
        let kept = (0..SLOTS).filter(|slot| refresh >> slot & 1 == 1);
        kept.for_each(|slot| self.slots[slot] = kind);
        Some(Seen { is_key, kind, flaw })
    }

    fn flaw(&self, frame: &Header, kind: Kind) -> Option<&'static str> {
        if !frame.is_resilient {
            return Some(
                "its frames depend on the coding state of all before them (error_resilient_mode is 0); libvpx's -error-resilient 1 \
                 ends that",
            );
        }
        let last = frame.last.map(|slot| self.slots[usize::from(slot)]);
        (kind == Kind::Base && last == Some(Kind::Middle))
            .then_some("a picture of the base layer refers to one of a higher layer")
    }
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
fn header(frame: &[u8]) -> Option<Header> {
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
fn frames(picture: &[u8]) -> Option<Vec<&[u8]>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 9] = [0x83, 0x49, 0x83, 0x42, 0x00, 0x27, 0xF0, 0x16, 0x70];

    /// An inter frame: shown, resilient, with what it refreshes and its three references.
    fn inter(refresh: u8, refs: [u8; 3]) -> Vec<u8> {
        let refs = refs.iter().fold(0_u32, |bits, slot| bits << 4 | u32::from(*slot) << 1);
        let bits = 0b1000_0111_u32 << 24 | u32::from(refresh) << 16 | refs << 4;
        bits.to_be_bytes().to_vec()
    }

    #[test]
    fn kinds_follow_the_slots_that_are_refreshed() {
        let mut structure = Structure::default();
        let pictures = [KEY.to_vec(), inter(0, [0, 1, 2]), inter(2, [0, 1, 2]), inter(1, [0, 1, 2])];
        let seen = pictures.map(|picture| structure.see(&picture).expect("readable"));
        assert_eq!(seen.map(|seen| seen.kind), [Kind::Base, Kind::Unreferenced, Kind::Middle, Kind::Base]);
        assert_eq!(seen.map(|seen| seen.is_key), [true, false, false, false]);
        assert!(seen.iter().all(|seen| seen.flaw.is_none()));
    }

    #[test]
    fn base_picture_on_top_of_a_higher_layer_is_a_flaw() {
        let mut structure = Structure::default();
        [KEY.to_vec(), inter(2, [0, 0, 0])].iter().for_each(|picture| assert!(structure.see(picture).is_some()));
        assert!(structure.see(&inter(1, [1, 0, 0])).expect("readable").flaw.is_some());
    }

    #[test]
    fn frames_that_inherit_coding_state_are_a_flaw() {
        let mut structure = Structure::default();
        let mut picture = inter(0, [0, 1, 2]);
        picture[0] &= !1;
        assert!(structure.see(&picture).expect("readable").flaw.is_some());
    }

    #[test]
    fn superframe_is_one_picture_with_all_that_its_frames_refresh() {
        let (hidden, shown) = (inter(4, [0, 1, 2]), inter(1, [0, 1, 2]));
        let marker = 0xC0 | 1;
        let index = [marker, hidden.len() as u8, shown.len() as u8, marker];
        let picture = [hidden, shown, index.to_vec()].concat();
        assert_eq!(frames(&picture).expect("split").len(), 2);
        assert_eq!(Structure::default().see(&picture).expect("readable").kind, Kind::Base);
    }

    #[test]
    fn key_frame_states_its_dimensions() {
        assert_eq!(dimensions(&[0x82, 0x49, 0x83, 0x42, 0x20, 0x13, 0xF0, 0x0B, 0x30]), Some((320, 180)));
    }
}
