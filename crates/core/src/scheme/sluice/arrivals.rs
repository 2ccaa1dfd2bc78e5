//! What arrived and what was lost, slot by slot: in the last second, and since the rate changed.

use core::time::Duration;

use weir_units::{Bytes, Rate, math};

use super::cycle::SLOT;

/// Packets that arrived and packets that were lost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) packets: u64,
    pub(super) bytes: Bytes,
    pub(super) lost: u64,
    /// Of these, the ones that a start-up burst may have cost.
    pub(super) lost_in_bursts: u64,
    /// How long they took to arrive. While a queue grows, a slot takes longer here than at the sender.
    pub(super) took: Duration,
}

/// The slots that have ended.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The last ten, the newest first.
    slots: [Counts; 10],
    since_change: Counts,
    /// How many slots have ended since then.
    slots_since_change: usize,
    /// Which part was lost in the second before the change.
    lost_before: f64,
}

impl Counts {
    pub(super) fn and(self, other: Counts) -> Counts {
        Counts {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            lost: self.lost + other.lost,
            lost_in_bursts: self.lost_in_bursts + other.lost_in_bursts,
            took: self.took + other.took,
        }
    }

    /// These without what start-up bursts may have cost: they are more than anybody wants for good.
    pub(super) fn outside_bursts(self) -> Counts {
        Counts { lost: self.lost - self.lost_in_bursts, lost_in_bursts: 0, ..self }
    }

    /// Whether more than this part was lost, by this number of standard deviations of independent losses.
    pub(super) fn have_lost(self, part: f64, deviations: f64) -> bool {
        let expected = part * (self.lost + self.packets) as f64;
        self.lost as f64 > expected + deviations * math::sqrt(expected * (1.0 - part).max(0.0))
    }

    pub(super) fn part_lost(self) -> f64 {
        self.lost as f64 / (self.lost + self.packets).max(1) as f64
    }
}

impl Arrivals {
    pub(super) fn on_slot(&mut self, counts: Counts) {
        self.slots.rotate_right(1);
        self.slots[0] = counts;
        self.since_change = self.since_change.and(counts);
        self.slots_since_change += 1;
    }

    /// The receiver's rate changes.
    pub(super) fn on_rate_change(&mut self) {
        self.lost_before = self.second().outside_bursts().part_lost();
        (self.since_change, self.slots_since_change) = (Counts::default(), 0);
    }

    /// The last second.
    pub(super) fn second(&self) -> Counts {
        self.latest(self.slots.len())
    }

    fn latest(&self, slots: usize) -> Counts {
        self.slots.iter().take(slots).copied().fold(Counts::default(), Counts::and)
    }

    /// The rate at which packets came in the last slots, without those in which none did.
    pub(super) fn rate(&self, slots: usize) -> Rate {
        let heard = self.slots.iter().take(slots).filter(|counts| counts.packets > 0);
        let (bytes, count) = heard.fold((Bytes::ZERO, 0), |(bytes, count), slot| (bytes + slot.bytes, count + 1));
        bytes.per(SLOT * count.max(1))
    }

    /// The rate at which packets have come since the rate changed, over a second at most. The slot in which it changed is left out.
    pub(super) fn rate_since_change(&self) -> Rate {
        self.rate(self.slots_since_change.saturating_sub(1).clamp(FEWEST_SLOTS, self.slots.len()))
    }

    /// The rate at which the path has delivered the packets of the last `slots` slots. It is less than [`Arrivals::rate`] while a queue grows.
    pub(super) fn delivered(&self, slots: usize) -> Rate {
        let Counts { bytes, took, .. } = self.latest(slots);
        if took.is_zero() { Rate::ZERO } else { bytes.per(took) }
    }

    /// Whether notably more is lost since the rate changed than in the second before.
    pub(super) fn lose_more(&self) -> bool {
        self.since_change.outside_bursts().have_lost(self.lost_before + NOTABLE, DEVIATIONS)
    }
}

/// A single slot may have a burst in it.
const FEWEST_SLOTS: usize = 2;
/// A part of the packets that is worth a level.
const NOTABLE: f64 = 0.01;
/// The question is asked ten times in a trial, so that chance must not answer it.
const DEVIATIONS: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(packets: u64, lost: u64) -> Counts {
        Counts { packets, bytes: Bytes::new(1_000 * packets), lost, lost_in_bursts: 0, took: SLOT }
    }

    #[test]
    fn a_few_losses_are_chance_and_many_are_not() {
        // A tenth of 30 is 3, and two standard deviations are 3.3.
        assert!(!counts(24, 6).have_lost(0.1, 2.0) && counts(23, 7).have_lost(0.1, 2.0));
        // A tenth of 1000 is 100, and two standard deviations are 19.
        assert!(!counts(882, 118).have_lost(0.1, 2.0) && counts(881, 119).have_lost(0.1, 2.0));
    }

    #[test]
    fn what_start_up_bursts_may_have_cost_is_left_out() {
        let in_bursts = Counts { lost_in_bursts: 18, ..counts(80, 20) };
        assert!(in_bursts.have_lost(0.1, 2.0) && !in_bursts.outside_bursts().have_lost(0.1, 2.0));
        let mut arrivals = Arrivals::default();
        arrivals.on_slot(in_bursts);
        assert!((arrivals.second().part_lost() - 0.2).abs() < 1e-9, "it is told all the same");
        assert!(!arrivals.lose_more(), "2 of 82 are chance");
    }

    #[test]
    fn what_was_lost_before_a_change_is_not_its_fault() {
        for (before, more) in [(0, true), (4, false)] {
            let mut arrivals = Arrivals::default();
            (0..10).for_each(|_| arrivals.on_slot(counts(100 - before, before)));
            arrivals.on_rate_change();
            (0..10).for_each(|_| arrivals.on_slot(counts(96, 4)));
            assert_eq!(arrivals.lose_more(), more, "{before} of 100 were lost before");
        }
    }

    #[test]
    fn while_a_queue_grows_the_path_delivers_less_than_was_sent() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.delivered(8), Rate::ZERO);
        (0..8).for_each(|_| arrivals.on_slot(Counts { took: SLOT * 2, ..counts(50, 0) }));
        assert_eq!([arrivals.rate(8).bps(), arrivals.delivered(8).bps()], [4_000_000, 2_000_000]);
    }

    #[test]
    fn the_rate_is_that_of_slots_in_which_something_came() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.rate(2), Rate::ZERO);
        [counts(50, 0), counts(0, 0), counts(100, 0)].into_iter().for_each(|slot| arrivals.on_slot(slot));
        assert_eq!([1, 2, 3].map(|slots| arrivals.rate(slots).bps()), [8_000_000, 8_000_000, 6_000_000]);
    }
}
