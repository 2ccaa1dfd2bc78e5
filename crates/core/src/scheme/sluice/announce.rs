//! The slot field of a packet: the slot's place in the cycle, and above it four bits in which the sender announces something.

use super::cycle::{CYCLE, Shown};
use crate::probing::Interval;

/// What receivers are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announcement {
    /// How far apart probes are to be.
    Interval(Interval),
    /// How many levels the sender withholds.
    Withheld(usize),
    /// To whom this cycle's burst shows the next level.
    Shown(Shown),
}

/// The field of packets in slot `number`.
pub(super) fn field(number: u64, interval: Interval, withheld: usize, shown: Shown) -> u16 {
    let place = number % CYCLE;
    let withheld = withheld.min(MOST_TOLD) as u16;
    let (limit, steps) = match shown {
        Shown::All => (0, 0),
        Shown::UpTo(limit) => (limit, 0),
        Shown::Folded(level, to) => (level, to.saturating_sub(level).clamp(1, MOST_STEPS)),
    };
    let limit = limit.min(MOST_TOLD) as u16;
    let announced = match place {
        WITHHELD_LOW => withheld & 15,
        WITHHELD_HIGH => withheld >> 4,
        LIMIT_LOW => limit & 15,
        LIMIT_HIGH => limit >> 4,
        FOLDED => steps as u16,
        _ => interval.to_octaves(),
    };
    announced << PLACE_BITS | place as u16
}

/// Whether the slot begins to tell how many levels are withheld. It must be the same number in the slot after it, which tells the rest.
pub(super) fn begins_withheld(number: u64) -> bool {
    number % CYCLE == WITHHELD_LOW
}

/// The slot's place in the cycle.
pub(super) fn place(field: u16) -> u16 {
    field & (CYCLE as u16 - 1)
}

/// Puts together what the slots announce. It may miss slots.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// The lower four bits of what has eight and the place of the upper ones, until the next slot.
    low: Option<(u16, u64)>,
    /// The limit, until the slot after it.
    limit: Option<usize>,
}

impl Announced {
    /// A slot begins with a packet that has this field. Gives what is known now.
    pub(super) fn on_slot(&mut self, field: u16) -> Option<Announcement> {
        let announced = field >> PLACE_BITS & 15;
        let place = u64::from(place(field));
        let low = self.low.take().filter(|(_, upper)| *upper == place);
        let whole = low.map(|(low, _)| usize::from(announced << 4 | low));
        let limit = self.limit.take();
        match place {
            WITHHELD_LOW | LIMIT_LOW => {
                self.low = Some((announced, place + 1));
                None
            }
            WITHHELD_HIGH => whole.map(Announcement::Withheld),
            LIMIT_HIGH => {
                self.limit = whole;
                None
            }
            FOLDED => limit.map(|limit| {
                Announcement::Shown(match limit {
                    0 => Shown::All,
                    limit if announced > 0 => Shown::Folded(limit, limit + usize::from(announced)),
                    limit => Shown::UpTo(limit),
                })
            }),
            _ => Some(Announcement::Interval(Interval::from_octaves(announced))),
        }
    }
}

/// The most steps that a folded burst can show.
pub(super) const MOST_STEPS: usize = 15;
/// What eight bits can say.
pub(super) const MOST_TOLD: usize = 255;
const PLACE_BITS: u32 = CYCLE.trailing_zeros();
/// The places whose slots have the lower and the upper four bits of what is withheld.
const WITHHELD_LOW: u64 = 2;
const WITHHELD_HIGH: u64 = 3;
/// And those of the limit.
const LIMIT_LOW: u64 = 4;
const LIMIT_HIGH: u64 = 5;
/// That of the slot that tells how many steps a folded burst shows, or 0 if it is none.
const FOLDED: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// What a receiver knows that hears these slots.
    fn told(slots: impl Iterator<Item = u64>, withheld: usize) -> Vec<Announcement> {
        let mut announced = Announced::default();
        let shown = shown(withheld);
        slots
            .filter_map(|number| announced.on_slot(field(number, Interval::from_octaves(5), withheld, shown)))
            .collect()
    }

    fn shown(number: usize) -> Shown {
        match number % MOST_TOLD {
            0 => Shown::All,
            level if level % 2 == 0 => Shown::Folded(level, level + 1 + level % (MOST_STEPS - 1)),
            level => Shown::UpTo(level),
        }
    }

    #[test]
    fn in_a_cycle_a_receiver_hears_of_each() {
        for withheld in [0, 1, 15, 16, 40, MOST_TOLD] {
            let told = told(8..16, withheld);
            assert_eq!(told.iter().filter(|told| **told == Announcement::Withheld(withheld)).count(), 1);
            let interval = Announcement::Interval(Interval::from_octaves(5));
            assert_eq!(told.iter().filter(|told| **told == interval).count(), 3);
            let shown = Announcement::Shown(shown(withheld));
            assert_eq!(told.iter().filter(|told| **told == shown).count(), 1);
        }
        assert_eq!(told(8..16, 1_001), told(8..16, 2_021));
    }

    #[test]
    fn halves_of_different_cycles_are_not_put_together() {
        let withheld = |slots: &[u64]| told(slots.iter().copied(), 40).contains(&Announcement::Withheld(40));
        assert!(withheld(&[2, 3]));
        assert!(!withheld(&[3, 4, 5]), "the lower half was not heard");
        assert!(!withheld(&[2, 4, 11]), "it was of the cycle before");
        assert_eq!(told([2, 5, 6].into_iter(), 40), [], "the upper half is of something else");
        let shown = |slots: &[u64]| told(slots.iter().copied(), 40).contains(&Announcement::Shown(self::shown(40)));
        assert!(shown(&[4, 5, 6]) && !shown(&[4, 5, 7, 14]), "whether it is folded is of another cycle");
    }

    #[test]
    fn the_field_has_seven_bits_which_is_what_the_short_form_holds() {
        assert!((0..8).all(|number| field(
            number,
            Interval::from_wire(u16::MAX),
            usize::MAX,
            Shown::Folded(usize::MAX - 99, usize::MAX)
        ) < 128));
        assert!(
            (0..16).all(|number| u64::from(place(field(number, Interval::LEAST, 7, Shown::UpTo(7)))) == number % CYCLE)
        );
    }
}
