//! Which pictures a decoder may be given: those whose needs were met.

use crate::{MAX_LAYERS, PictureInfo};

/// How far back a picture's needs reach: they have eight bits.
const HISTORY: usize = 256;

/// Lets pictures through whose needed pictures were let through, and counts those that it withholds.
///
/// Pictures come in decode order, those that are missing left out. So after a loss nothing goes to the decoder that depends on
/// the lost picture: what a lost picture of the base layer carried is back with the next key picture, a higher layer with its
/// next picture that needs only lower layers.
///
/// A number that goes back means that the sender has begun again: the gate then waits for a key picture.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Which of the last pictures were let through, and whether they are leading ones, at their number modulo the length.
    admitted: [Option<Admitted>; HISTORY],
    newest: Option<u16>,
    /// The last key picture that was let through.
    key: Option<u16>,
    withheld: [u64; MAX_LAYERS as usize],
}

#[derive(Debug, Clone, Copy)]
struct Admitted {
    number: u16,
    is_leading: bool,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { admitted: [None; HISTORY], newest: None, key: None, withheld: [0; MAX_LAYERS as usize] }
    }
}

impl Gate {
    /// Whether a decoder may be given this picture, the next in decode order. One that has the number of the last is withheld.
    pub fn admit(&mut self, info: &PictureInfo) -> bool {
        let is_admitted = self.advance(info.number) && self.is_met(info);
        if is_admitted {
            let admitted = Admitted { number: info.number, is_leading: info.is_leading };
            self.admitted[slot(info.number)] = Some(admitted);
            self.key = if info.is_key { Some(info.number) } else { self.key };
        } else {
            self.withheld[usize::from(info.layer.min(MAX_LAYERS - 1))] += 1;
        }
        is_admitted
    }

    /// Forgets what was let through, as when the sender begins again: the next picture out is a key picture.
    pub fn reset(&mut self) {
        *self = Gate { withheld: self.withheld, ..Gate::default() };
    }

    /// How many pictures were withheld, by layer. Those that never came are not among them.
    pub fn withheld(&self) -> &[u64; MAX_LAYERS as usize] {
        &self.withheld
    }

    /// Moves on to a picture's number, and forgets what had the place of those in between. False if it is there already.
    fn advance(&mut self, number: u16) -> bool {
        let ahead = self.newest.map_or(1, |newest| number.wrapping_sub(newest));
        if ahead >= 0x8000 {
            self.reset();
        }
        let passed = usize::from(ahead).min(HISTORY) as u16;
        (0..passed).for_each(|back| self.admitted[slot(number.wrapping_sub(back))] = None);
        if self.key.is_some_and(|key| usize::from(number.wrapping_sub(key)) >= 0x8000) {
            self.key = None;
        }
        self.newest = Some(number);
        ahead != 0
    }

    /// Whether what this picture needs was let through, so that [`Gate::admit`] would take it, if it comes after the last in decode order.
    pub fn is_met(&self, info: &PictureInfo) -> bool {
        if info.needs == 0 {
            return true;
        }
        let needed = info.number.wrapping_sub(u16::from(info.needs));
        let found = self.admitted[slot(needed)].filter(|admitted| admitted.number == needed);
        // A leading picture follows the key picture that it needs too, directly or behind another leading one.
        let has_key = self.key.is_some_and(|key| info.number.wrapping_sub(key) < u16::from(info.needs));
        found.is_some_and(|needed| !info.is_leading || needed.is_leading || has_key)
    }
}

fn slot(number: u16) -> usize {
    usize::from(number) % HISTORY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(number: u16, needs: u8, layer: u8) -> PictureInfo {
        PictureInfo { number, needs, layer, is_key: needs == 0, is_leading: false }
    }

    /// 0 is a key picture, then layers 2, 1, 2, 0 again and again.
    fn programme(number: u16) -> PictureInfo {
        let (needs, layer) = [(4, 0), (1, 2), (2, 1), (1, 2)][usize::from(number) % 4];
        info(number, if number.is_multiple_of(32) { 0 } else { needs }, layer)
    }

    fn admitted(gate: &mut Gate, lost: &[u16], numbers: std::ops::Range<u16>) -> Vec<u16> {
        let there = numbers.filter(|number| !lost.contains(number));
        there.filter(|number| gate.admit(&programme(*number))).collect()
    }

    #[test]
    fn lost_picture_of_a_higher_layer_withholds_only_what_needs_it() {
        let mut gate = Gate::default();
        assert_eq!(admitted(&mut gate, &[2], 0..8), [0, 1, 4, 5, 6, 7]);
        assert_eq!(gate.withheld()[..3], [0, 0, 1]);
    }

    #[test]
    fn lost_base_picture_withholds_all_until_the_next_key() {
        let mut gate = Gate::default();
        assert_eq!(admitted(&mut gate, &[8], 0..36), [0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35]);
        assert_eq!(gate.withheld()[..3], [5, 6, 12]);
    }

    #[test]
    fn numbers_wrap() {
        let mut gate = Gate::default();
        assert!(gate.admit(&info(65_534, 0, 0)));
        assert!((65_535..=65_538_u32).all(|number| gate.admit(&info(number as u16, 1, 0))));
    }

    #[test]
    fn sender_that_begins_again_is_shown_from_its_key_picture() {
        let mut gate = Gate::default();
        assert_eq!(admitted(&mut gate, &[], 0..10).len(), 10);
        assert_eq!(admitted(&mut gate, &[], 0..10).len(), 10);
        // And if that is lost, nothing of before stands in for it.
        assert_eq!(admitted(&mut gate, &[0], 0..34), [32, 33]);
    }

    #[test]
    fn history_of_an_earlier_lap_is_not_taken_for_this_one() {
        let mut gate = Gate::default();
        assert!(gate.admit(&info(100, 0, 0)));
        (1..=3).for_each(|step| assert!(!gate.admit(&info(100_u16.wrapping_add(step * 0x5000), 200, 0))));
        assert!(!gate.admit(&info(101, 1, 0)));
    }

    #[test]
    fn leading_pictures_want_their_key_and_what_was_before_it() {
        let leading = PictureInfo { is_leading: true, ..info(3, 2, 0) };
        let further = PictureInfo { is_leading: true, ..info(4, 1, 1) };
        let shown = |there: &[PictureInfo]| {
            let mut gate = Gate::default();
            there.iter().filter(|info| gate.admit(info)).map(|info| info.number).collect::<Vec<_>>()
        };
        let (first, before, key, after) = (info(0, 0, 0), info(1, 1, 0), info(2, 0, 0), info(5, 3, 0));
        assert_eq!(shown(&[first, before, key, leading, further, after]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(shown(&[first, key, leading, further, after]), [0, 2, 5]);
        assert_eq!(shown(&[first, before, leading, further, after]), [0, 1]);
        assert_eq!(shown(&[first, before, key, further, after]), [0, 1, 2, 5]);
    }
}
