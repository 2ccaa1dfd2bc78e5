//! In which order the pictures of a stream's layers can be decoded, where each layer comes by itself.
//!
//! Nothing in HEVC or H.264 numbers all pictures of a stream. But each picture says enough of those before it that a picture of a
//! higher layer has one place among those of lower layers, once the order within each layer is known: `h264`, by the numbers of
//! frames; `hevc`, by the pictures that are kept for reference. A picture that fits both before and behind a key picture is given no place.

use std::collections::BTreeSet;

use super::access_units::AccessUnit;
use crate::Codec;

mod h264;
mod hevc;

/// A picture that is next of its layer.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The picture.
    pub unit: &'a AccessUnit,
    /// When it is presented, if that is known, on one clock for all layers.
    pub time: Option<i64>,
}

/// Why no picture is given a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ambiguous {
    /// The layer of the picture that has two.
    pub layer: usize,
}

/// What was decoded up to now, as far as it says what may be next.
#[derive(Debug, Clone)]
pub struct DecodeOrder(State);

#[derive(Debug, Clone)]
enum State {
    H264(h264::Decoded),
    Hevc(hevc::Decoded),
}

impl DecodeOrder {
    /// Of a stream that has not begun. `None` for codecs that are not in Annex B: their pictures go by their times.
    pub fn new(codec: Codec) -> Option<DecodeOrder> {
        match codec {
            Codec::H264 => Some(DecodeOrder(State::H264(h264::Decoded::default()))),
            Codec::Hevc => Some(DecodeOrder(State::Hevc(hevc::Decoded::default()))),
            Codec::Vp9 | Codec::Av1 => None,
        }
    }

    /// Which layer's picture is decoded next: these are next within their layers, the base first, and `None` where no more come.
    /// `None` if none of them fits.
    ///
    /// # Errors
    /// [`Ambiguous`] if a picture without time fits on both sides of a key picture.
    pub fn next(&self, heads: &[Option<Head<'_>>]) -> Result<Option<usize>, Ambiguous> {
        let mut chosen: Option<(usize, Head<'_>)> = None;
        for (layer, head) in heads.iter().enumerate() {
            let Some(head) = *head else { continue };
            let below = chosen.map(|(_, below)| below);
            if layer > 0 && !self.fits(head, below) {
                continue;
            }
            if let Some(below) = below.filter(|below| below.time.is_none() || head.time.is_none())
                && self.fits_behind_key(head, below)
            {
                return Err(Ambiguous { layer });
            }
            chosen = Some((layer, head));
        }
        Ok(chosen.map(|(layer, _)| layer))
    }

    /// Whether a picture above the base layer fits here, `below` being next in the layers below it.
    pub fn fits(&self, head: Head<'_>, below: Option<Head<'_>>) -> bool {
        let comes_later = below.is_some_and(|below| {
            let is_later = below.time.zip(head.time).is_some_and(|(below, this)| below <= this);
            is_later && self.begins_group(below.unit)
        });
        let below = below.map(|below| below.unit);
        !comes_later
            && match &self.0 {
                State::H264(decoded) => decoded.fits(head.unit, below),
                State::Hevc(decoded) => decoded.fits(head.unit, below),
            }
    }

    /// Whether a picture would fit behind the one below it, too, with which everything begins again.
    fn fits_behind_key(&self, head: Head<'_>, below: Head<'_>) -> bool {
        if !self.begins_group(below.unit) {
            return false;
        }
        let mut behind = self.clone();
        behind.take(below.unit);
        behind.fits(head, None)
    }

    fn begins_group(&self, unit: &AccessUnit) -> bool {
        match &self.0 {
            State::H264(_) => h264::is_key(unit),
            State::Hevc(_) => hevc::is_key(unit),
        }
    }

    /// This picture is decoded.
    pub fn take(&mut self, unit: &AccessUnit) {
        match &mut self.0 {
            State::H264(decoded) => decoded.take(unit),
            State::Hevc(decoded) => decoded.take(unit),
        }
    }
}

/// The order counts of a group's pictures, of which no two are the same. Of a group without end the latest are remembered.
#[derive(Debug, Clone, Default)]
struct Counts(BTreeSet<i64>);

impl Counts {
    fn insert(&mut self, count: i64) {
        self.0.insert(count);
        while self.0.len() > MOST_COUNTS {
            self.0.pop_first();
        }
    }

    fn contains(&self, count: i64) -> bool {
        self.0.contains(&count)
    }

    fn highest(&self) -> Option<i64> {
        self.0.last().copied()
    }
}

const MOST_COUNTS: usize = 4096;

#[cfg(test)]
mod tests {
    use weir_testkit::h264::coded;

    use super::*;

    fn pictures(text: &str) -> Vec<AccessUnit> {
        text.split(' ').map(|word| AccessUnit::read(Codec::H264, &coded(word)).expect("a picture")).collect()
    }

    /// The layers in the order that is found, `b` for the base and `t` for the top.
    fn order(base: &str, top: &str, times: Option<[&[i64]; 2]>) -> Result<String, Ambiguous> {
        let layers = [pictures(base), pictures(top)];
        let mut order = DecodeOrder::new(Codec::H264).expect("it is in Annex B");
        let (mut places, mut found) = ([0, 0], String::new());
        let head = |layer: usize, at: usize| {
            let time = times.and_then(|times| times[layer].get(at).copied());
            layers[layer].get(at).map(|unit| Head { unit, time })
        };
        while let Some(layer) = order.next(&[head(0, places[0]), head(1, places[1])])? {
            order.take(&layers[layer][places[layer]]);
            places[layer] += 1;
            found.push(if layer == 0 { 'b' } else { 't' });
        }
        Ok(found)
    }

    #[test]
    fn what_nobody_refers_to_comes_before_the_next_that_has_its_number() {
        assert_eq!(order("I0 P1 P2 I0 P1 P2", "p1 p2 p3 p1 p2 p3", None).as_deref(), Ok("btbtbtbtbtbt"));
        assert_eq!(order("I0 P1 P2 I0 P1 P2", "p2 p1 p3", None).as_deref(), Ok("bbtbbtbbt"));
    }

    #[test]
    fn numbers_that_go_round_are_followed() {
        let base =
            (0..40).map(|n| format!("{}{}", if n == 0 { "I" } else { "P" }, n % 16)).collect::<Vec<_>>().join(" ");
        let top = (1..41).map(|n| format!("p{}", n % 16)).collect::<Vec<_>>().join(" ");
        assert_eq!(order(&base, &top, None), Ok("bt".repeat(40)));
    }

    #[test]
    fn a_picture_that_fits_on_both_sides_of_a_key_picture_is_refused_unless_times_tell() {
        let (base, top) = ("I0 I0 P1", "p1 p2");
        assert_eq!(order(base, top, None), Err(Ambiguous { layer: 1 }));
        assert_eq!(order(base, top, Some([&[0, 10, 30], &[20, 40]])).as_deref(), Ok("bbtbt"));
        assert_eq!(order("I0 I0 P1", "p1 p1", Some([&[0, 20, 40], &[10, 30]])).as_deref(), Ok("btbtb"));
    }
}
