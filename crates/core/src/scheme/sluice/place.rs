//! Where in the sender's cycle a receiver is, by the packets that come.

use core::time::Duration;

use super::cycle::CYCLE;

/// The slot under way.
///
/// A packet carries its slot's place in the cycle and the sender's clock. Where channels queue apart a packet may come more than half a cycle later
/// than those of other channels that were sent with it. Its place alone would then be that of a slot to come.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// `None` before the first packet.
    in_cycle: Option<u16>,
    /// The sender's clock in the first packet of the latest slot that had one, microseconds modulo 2^32.
    begun: Option<u32>,
}

impl Place {
    /// The place in the cycle; `None` before the first packet.
    pub(super) const fn in_cycle(&self) -> Option<u16> {
        self.in_cycle
    }

    /// Whether a packet with this place and clock is of a slot that has not begun yet.
    pub(super) fn is_ahead(&self, place: u16, clock: u32) -> bool {
        let passed = self.in_cycle.map_or(1, |current| place.wrapping_sub(current) & LAST);
        (1..CYCLE as u16 / 2).contains(&passed) && !self.has_begun_after(clock)
    }

    fn has_begun_after(&self, clock: u32) -> bool {
        let behind = self.begun.map_or(0, |begun| begun.wrapping_sub(clock));
        behind > 0 && Duration::from_micros(u64::from(behind)) < LATEST
    }

    /// A slot begins with a packet that has this place and clock.
    pub(super) fn begin(&mut self, place: u16, clock: u32) {
        (self.in_cycle, self.begun) = (Some(place), Some(clock));
    }

    /// No packet of the next slot has come, and its time is over.
    pub(super) fn pass(&mut self) {
        self.in_cycle = self.in_cycle.map(|place| (place + 1) & LAST);
    }

    /// The sender's clock is another one.
    pub(super) fn forget_clock(&mut self) {
        self.begun = None;
    }
}

/// The last place of a cycle.
const LAST: u16 = CYCLE as u16 - 1;
/// No packet is that late. A clock that is further behind is another one.
pub(super) const LATEST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// In the slot of this number, which began with its sender's first packet.
    fn in_slot(number: u32) -> Place {
        let mut place = Place::default();
        place.begin(place_of(number), clock_of(number));
        place
    }

    fn place_of(number: u32) -> u16 {
        number as u16 & LAST
    }

    fn clock_of(number: u32) -> u32 {
        number.wrapping_mul(100_000)
    }

    #[test]
    fn slots_follow_each_other_and_may_be_missing() {
        assert!(Place::default().is_ahead(5, 0), "the first packet begins a slot");
        let place = in_slot(70);
        assert!(!place.is_ahead(place_of(70), clock_of(70) + 50_000));
        assert!([71, 72, 73].iter().all(|slot| place.is_ahead(place_of(*slot), clock_of(*slot))));
    }

    #[test]
    fn a_packet_that_was_sent_before_the_slot_began_begins_none_however_late_it_is() {
        let place = in_slot(70);
        for late in 1..50 {
            assert!(!place.is_ahead(place_of(70 - late), clock_of(70 - late)), "{late} slots late");
        }
    }

    #[test]
    fn another_clock_counts_once_it_is_known_and_one_that_wraps_at_once() {
        let mut place = in_slot(70);
        assert!(place.is_ahead(place_of(71), clock_of(71).wrapping_sub(6_000_000)), "it is too far behind to be late");
        place.forget_clock();
        assert!(place.is_ahead(place_of(71), clock_of(60)));
        place.begin(3, u32::MAX - 10_000);
        assert!(place.is_ahead(4, 90_000) && !place.is_ahead(4, u32::MAX - 20_000));
    }

    #[test]
    fn in_silence_slots_pass() {
        let mut place = in_slot(71);
        place.pass();
        assert_eq!(place.in_cycle(), Some(0));
        assert!(place.is_ahead(1, clock_of(73)));
    }
}
