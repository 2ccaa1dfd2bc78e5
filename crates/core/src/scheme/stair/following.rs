//! Which stairs a receiver follows, and when they recycle (§4.2, §4.3).

use alloc::vec::Vec;
use core::time::Duration;

use super::choice::{StairRule, stairs_for};
use crate::layers::{LayerSet, Stair};

/// The stairs that are followed. The fastest of them sets the pace.
#[derive(Debug)]
pub(super) struct Following {
    stairs: Vec<Stair>,
    rule: StairRule,
    slot_bits: u32,
    followed: LayerSet,
    /// By stair: the number of its period, once a packet has told it.
    periods: Vec<Option<u16>>,
}

/// A stair has recycled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recycle {
    /// The one that sets the pace; its new period has this number.
    Pace(u16),
    /// A slower one.
    Slower,
}

impl Following {
    pub(super) fn new(stairs: Vec<Stair>, rule: StairRule, slot_bits: u32) -> Following {
        let periods = stairs.iter().map(|_| None).collect();
        Following { stairs, rule, slot_bits, followed: LayerSet::default(), periods }
    }

    /// The stairs that are followed.
    pub(super) const fn followed(&self) -> LayerSet {
        self.followed
    }

    /// The stair that sets the pace.
    pub(super) fn pace(&self) -> Option<&Stair> {
        self.stairs.get(self.followed.iter().next()?)
    }

    /// Begins with the stairs for this round-trip time.
    pub(super) fn start(&mut self, rtt: Duration) {
        self.follow(stairs_for(rtt, &self.stairs, self.rule));
    }

    pub(super) fn stop(&mut self) {
        self.follow(LayerSet::default());
    }

    /// A packet of a stair came in the period of this number, as far as the wire tells it.
    pub(super) fn on_packet(&mut self, stair: usize, period: u16) -> Option<Recycle> {
        let known = self.periods.get_mut(stair).filter(|_| self.followed.contains(stair))?;
        let ahead = known.map(|known| period.wrapping_sub(known) & ((1 << self.slot_bits) - 1));
        match ahead {
            // The first packet of a stair that was just joined: nothing of it has been left behind.
            None => *known = Some(period),
            Some(ahead) if ahead == 0 || ahead >> (self.slot_bits - 1) == 1 => {}
            Some(_) => {
                *known = Some(period);
                let is_pace = self.followed.iter().next() == Some(stair);
                return Some(if is_pace { Recycle::Pace(period) } else { Recycle::Slower });
            }
        }
        None
    }

    /// The pace's period of this number begins: goes over to the stairs for this round-trip time as far as those recycle
    /// now that are left and joined. A stair v times four times as slow does when 4^v divides the number (decision 4).
    pub(super) fn change(&mut self, period: u16, rtt: Duration) {
        let Some(pace) = self.followed.iter().next() else { return };
        let twos = if period == 0 { self.slot_bits } else { period.trailing_zeros() };
        let reach = pace + (twos / 2) as usize;
        let wanted = stairs_for(rtt, &self.stairs, self.rule);
        let kept = self.followed.iter().filter(|stair| *stair > reach);
        self.follow(wanted.iter().map(|stair| stair.min(reach)).chain(kept).collect());
    }

    fn follow(&mut self, stairs: LayerSet) {
        for joined in stairs.without(self.followed).iter() {
            self.periods[joined] = None;
        }
        self.followed = stairs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use weir_units::{Bytes, Rate};

    fn following(rule: StairRule, millis: u64) -> Following {
        let stairs = Stair::family(Rate::from_kbps(512), Bytes::new(512), 4, 4);
        let mut following = Following::new(stairs, rule, 7);
        following.start(Duration::from_millis(millis));
        following
    }

    fn followed(following: &Following) -> Vec<usize> {
        following.followed().iter().collect()
    }

    #[test]
    fn a_stair_recycles_when_its_period_s_number_moves_on() {
        let mut following = following(StairRule::One, 60);
        assert_eq!(following.on_packet(1, 126), None, "the period that was joined");
        assert_eq!(following.on_packet(1, 126), None);
        assert_eq!(following.on_packet(1, 127), Some(Recycle::Pace(127)));
        assert_eq!(following.on_packet(1, 126), None, "a packet that was overtaken");
        assert_eq!(following.on_packet(1, 0), Some(Recycle::Pace(0)), "the number wraps");
        assert_eq!(following.on_packet(1, 2), Some(Recycle::Pace(2)), "a period without a packet");
        assert_eq!(following.on_packet(0, 3), None, "a stair that is not followed");
        assert_eq!(following.on_packet(9, 3), None);
    }

    #[test]
    fn of_two_stairs_the_faster_sets_the_pace() {
        let mut following = following(StairRule::Two, 90);
        assert_eq!(followed(&following), [2, 3]);
        following.on_packet(2, 3);
        following.on_packet(3, 0);
        assert_eq!(following.on_packet(2, 4), Some(Recycle::Pace(4)));
        assert_eq!(following.on_packet(3, 1), Some(Recycle::Slower));
    }

    #[test]
    fn a_faster_stair_is_taken_at_any_end_and_a_slower_one_at_every_fourth() {
        let mut following = following(StairRule::One, 60);
        following.change(3, Duration::from_millis(30));
        assert_eq!(followed(&following), [0]);
        let mut slower = |period: u16, millis| {
            following.change(period, Duration::from_millis(millis));
            followed(&following)
        };
        assert_eq!((slower(1, 120), slower(2, 120), slower(3, 120)), (vec![0], vec![0], vec![0]));
        assert_eq!(slower(4, 120), [1], "as slow as recycles there");
        assert_eq!(slower(16, 300), [3]);
    }

    #[test]
    fn two_stairs_are_changed_one_by_one_where_they_recycle() {
        let mut following = following(StairRule::Two, 64);
        following.change(1, Duration::from_millis(90));
        assert_eq!(followed(&following), [1], "neither of the slower two recycles");
        following.change(4, Duration::from_millis(90));
        assert_eq!(followed(&following), [2]);
        following.change(4, Duration::from_millis(90));
        assert_eq!(followed(&following), [2, 3]);
        following.change(1, Duration::from_millis(30));
        assert_eq!(followed(&following), [0, 3], "the slowest is left when it recycles");
        following.change(64, Duration::from_millis(30));
        assert_eq!(followed(&following), [0]);
    }
}
