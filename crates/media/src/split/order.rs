//! Numbers of pictures, what each needs, and presentation times from picture order counts.

use super::FrameRate;
use crate::{MAX_LAYERS, PictureInfo};

/// What a codec says of a picture's place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Decoding may begin here.
    Key,
    /// It depends on pictures before it in its own chain and on nothing else: the usual case.
    Plain,
    /// It precedes the last key picture in presentation and depends on it alone (HEVC's RADL).
    Decodable,
    /// It precedes the last key picture in presentation, and depends on what came before that too (HEVC's RASL).
    Skipped,
}

/// Counts pictures in decode order, and remembers for each layer which was the last.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    next: u64,
    /// The last picture of each layer since the last key picture, leading ones left out.
    last: [Option<u64>; MAX_LAYERS as usize],
    /// The last picture of layer 0 before the last key picture.
    before_key: Option<u64>,
    /// The last leading picture of layer 0 of each kind since the last key picture.
    last_decodable: Option<u64>,
    last_skipped: Option<u64>,
}

impl Numbering {
    /// The number of the next picture.
    pub(super) fn number(&self) -> u16 {
        self.next as u16
    }

    /// Whether there was a key picture.
    pub(super) fn has_begun(&self) -> bool {
        self.last[0].is_some()
    }

    /// The next picture; `None` if what it needs is too far back to be told, or never was.
    pub(super) fn place(&mut self, layer: u8, role: Role) -> Option<PictureInfo> {
        let needed = match role {
            Role::Key => None,
            Role::Plain => Some(self.latest_below(layer)?),
            Role::Decodable => Some(self.last_decodable.or(self.last[0])?),
            // A stream that begins with an open group of pictures: nobody can decode this one, and nobody will.
            Role::Skipped => Some(self.last_skipped.or(self.before_key).unwrap_or(self.next.wrapping_sub(255))),
        };
        let needs = needed.map_or(Some(0), |needed| u8::try_from(self.next.wrapping_sub(needed)).ok())?;
        let number = self.number();
        self.remember(layer, role);
        Some(PictureInfo { number, needs, layer, is_key: role == Role::Key, is_leading: role == Role::Skipped })
    }

    /// From here on all is of layer 0: the next picture needs the one before it, whichever layer that was of.
    pub(super) fn fold(&mut self) {
        let last = self.last.iter().flatten().copied().max();
        self.last = [None; MAX_LAYERS as usize];
        self.last[0] = last;
    }

    /// The latest picture of a lower layer, or of layer 0 for that itself.
    fn latest_below(&self, layer: u8) -> Option<u64> {
        self.last[..usize::from(layer.max(1))].iter().flatten().copied().max()
    }

    fn remember(&mut self, layer: u8, role: Role) {
        let this = Some(self.next);
        self.next += 1;
        match role {
            Role::Key => {
                *self = Numbering { before_key: self.last[0], next: self.next, ..Numbering::default() };
                self.last[0] = this;
            }
            Role::Plain => self.last[usize::from(layer)] = this,
            Role::Decodable if layer == 0 => self.last_decodable = this,
            Role::Skipped if layer == 0 => self.last_skipped = this,
            Role::Decodable | Role::Skipped => {}
        }
    }
}

/// Presentation times of a stream that has picture order counts and a frame rate.
#[derive(Debug)]
pub(super) struct PresentationClock {
    /// The place in presentation order of the picture whose order count is 0.
    base: i64,
    /// The highest place so far.
    highest: i64,
}

impl Default for PresentationClock {
    fn default() -> PresentationClock {
        PresentationClock { base: 0, highest: -1 }
    }
}

impl PresentationClock {
    /// The time of a picture in units of 1/90000 s. `order` is its order count in pictures; where counting begins again,
    /// `restarts` is how many pictures with counts below 0 follow.
    pub(super) fn timestamp(&mut self, order: i64, restarts: Option<u32>, rate: FrameRate) -> u32 {
        if let Some(leading) = restarts {
            self.base = self.highest.saturating_add(1 + i64::from(leading)).saturating_sub(order);
        }
        let place = self.base.saturating_add(order);
        self.highest = self.highest.max(place);
        let ticks = i128::from(place) * 90_000 * i128::from(rate.seconds) / i128::from(rate.pictures.max(1));
        ticks as u32
    }
}

/// Picture order counts from their low bits (HEVC §8.3.1, H.264 §8.2.1.1).
#[derive(Debug, Clone, Default)]
pub(super) struct OrderCount {
    /// The count of the last picture that others count from.
    last: i64,
}

impl OrderCount {
    /// The count whose low `bits` are `low`, nearest to the last. `restarts` where counting begins at `low`; only pictures that
    /// `anchor` move the last one.
    ///
    /// Example: after 250, the low eight bits 4 are 260.
    pub(super) fn extend(&mut self, low: u32, bits: u32, restarts: bool, anchors: bool) -> i64 {
        let span = 1_i64 << bits;
        let low = i64::from(low);
        let high = self.last - self.last.rem_euclid(span);
        let previous = self.last - high;
        let count = match low - previous {
            _ if restarts => low,
            ahead if ahead < -span / 2 => high + span + low,
            ahead if ahead > span / 2 => high - span + low,
            _ => high + low,
        };
        if anchors {
            self.last = count;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(numbering: &mut Numbering, layer: u8, role: Role) -> u8 {
        numbering.place(layer, role).expect("placed").needs
    }

    #[test]
    fn three_layers_need_the_latest_below_them() {
        let mut numbering = Numbering::default();
        assert_eq!(needs(&mut numbering, 0, Role::Key), 0);
        let needs: Vec<_> = [2, 1, 2, 0, 2, 1].map(|layer| needs(&mut numbering, layer, Role::Plain)).into();
        assert_eq!(needs, [1, 2, 1, 4, 1, 2]);
    }

    #[test]
    fn leading_pictures_need_what_came_before_their_key() {
        let mut numbering = Numbering::default();
        needs(&mut numbering, 0, Role::Key);
        assert_eq!(needs(&mut numbering, 0, Role::Plain), 1);
        assert_eq!(needs(&mut numbering, 0, Role::Key), 0);
        assert_eq!(needs(&mut numbering, 0, Role::Skipped), 2);
        assert_eq!(needs(&mut numbering, 1, Role::Skipped), 1);
        assert_eq!(needs(&mut numbering, 0, Role::Decodable), 3);
        // What follows needs the key picture, for a receiver that joins there gets no leading pictures.
        assert_eq!(needs(&mut numbering, 0, Role::Plain), 4);
    }

    #[test]
    fn order_counts_extend_over_their_low_bits() {
        let mut count = OrderCount::default();
        let of = |count: &mut OrderCount, low| count.extend(low, 8, false, true);
        assert_eq!([250, 4, 254, 2].map(|low| of(&mut count, low)), [-6, 4, -2, 2]);
        assert_eq!([120, 240, 4].map(|low| of(&mut count, low)), [120, 240, 260]);
        assert_eq!(count.extend(0, 8, true, true), 0);
    }

    #[test]
    fn times_go_on_where_order_counts_begin_again() {
        let mut clock = PresentationClock::default();
        let rate = FrameRate { pictures: 30, seconds: 1 };
        let times: Vec<_> = [0, 2, 1].map(|order| clock.timestamp(order, None, rate)).into();
        assert_eq!(times, [0, 6000, 3000]);
        assert_eq!(clock.timestamp(0, Some(0), rate), 9000);
        assert_eq!(clock.timestamp(0, Some(1), rate), 15_000);
        assert_eq!(clock.timestamp(-1, None, rate), 12_000);
    }
}
