//! Time slots as a receiver sees them.

use core::time::Duration;

use weir_units::Time;

use super::config::Synchronisation;

/// Tells when a slot ends.
///
/// With weak synchronisation a slot ends with the first packet of a later one (AVMRC §3.3); if none comes for three slots
/// the receiver's own clock goes on counting. Without, the receiver's clock is all there is (§6.1).
#[derive(Debug)]
pub(super) struct SlotClock {
    synchronisation: Synchronisation,
    tau: Duration,
    /// Of the wire's slot numbers.
    mask: u16,
    /// The wire's number of the current slot; `None` before the first packet.
    current: Option<u16>,
    /// Whether `current` is the receiver's own count, which the sender's next packet may correct.
    is_guess: bool,
    /// The far slot that the last packet named, until the next one tells whether the sender is there.
    far: Option<u16>,
    /// When the current slot began.
    begun: Time,
}

impl SlotClock {
    pub(super) fn new(synchronisation: Synchronisation, tau: Duration, slot_bits: u32) -> SlotClock {
        SlotClock {
            synchronisation,
            tau,
            mask: ((1u32 << slot_bits) - 1) as u16,
            current: None,
            is_guess: false,
            far: None,
            begun: Time::ZERO,
        }
    }

    /// The receiver starts at `now`.
    pub(super) fn start(&mut self, now: Time) {
        self.begun = now;
    }

    /// Whether slots have numbers like this.
    pub(super) fn is_number(&self, number: u16) -> bool {
        number & !self.mask == 0
    }

    /// A packet of the sender's slot `number` arrived. Returns how many slots have ended, usually 0, or 1.
    ///
    /// Numbers up to half the number space behind are of packets that are late, and end nothing. A number that is further ahead
    /// than the receiver's own clock lets it be counts if the next packet goes on from there.
    pub(super) fn on_packet(&mut self, now: Time, number: u16) -> u64 {
        if self.synchronisation == Synchronisation::None {
            return 0;
        }
        let passed = match self.current {
            None => 1,
            Some(current) => number.wrapping_sub(current) & self.mask,
        };
        let is_ahead = (1..=self.mask / 2).contains(&passed);
        // A few behind are late packets; more, after a silence, mean that the count was wrong.
        let is_elsewhere = self.is_guess && passed > self.mask / 2 && passed < self.mask - LATE_SLOTS;
        let far = is_ahead && self.current.is_some() && passed > FARTHEST_SLOTS;
        let far = core::mem::replace(&mut self.far, far.then_some(number))
            .map_or(far, |before| far && !(0..=1).contains(&(number.wrapping_sub(before) & self.mask)));
        if far || !is_ahead && !is_elsewhere {
            return 0;
        }
        self.far = None;
        let passed = if is_ahead { passed } else { 1 };
        self.is_guess = false;
        self.current = Some(number & self.mask);
        self.begun = now;
        u64::from(passed)
    }

    /// The sender has started again: its next packet begins a slot, whatever its number.
    pub(super) fn forget(&mut self) {
        self.current = None;
    }

    /// When the receiver's own clock ends the slot.
    pub(super) fn deadline(&self) -> Time {
        match self.synchronisation {
            Synchronisation::None => self.begun + self.tau,
            Synchronisation::Weak => self.begun + self.tau * SILENT_SLOTS,
        }
    }

    /// The time is `now`. Returns how many slots have ended by the receiver's own clock.
    pub(super) fn on_time(&mut self, now: Time) -> u64 {
        if now < self.deadline() {
            return 0;
        }
        let slots = (now.since(self.begun).as_nanos() / self.tau.as_nanos()) as u64;
        let ended = match self.synchronisation {
            Synchronisation::None => slots,
            // The last of them may still be on its way.
            Synchronisation::Weak => slots - 1,
        };
        self.begun += Duration::from_nanos(ended.saturating_mul(self.tau.as_nanos() as u64));
        self.is_guess = true;
        self.current = self.current.map(|current| current.wrapping_add(ended as u16) & self.mask);
        ended
    }
}

/// A queue that grows by two slots within one is beyond what the rules let happen; after three there is silence.
const SILENT_SLOTS: u32 = 3;
const LATE_SLOTS: u16 = 3;
/// After three silent slots the receiver's own clock counts, and may be one behind.
const FARTHEST_SLOTS: u16 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const TAU: Duration = Duration::from_millis(100);

    fn clock(synchronisation: Synchronisation) -> SlotClock {
        let mut clock = SlotClock::new(synchronisation, TAU, 7);
        clock.start(Time::ZERO);
        clock
    }

    #[test]
    fn a_slot_ends_with_the_first_packet_of_a_later_one_across_the_wrap() {
        let mut clock = clock(Synchronisation::Weak);
        let ended: [u64; 6] = [(0, 126), (10, 126), (100, 127), (200, 0), (210, 127), (400, 2)]
            .map(|(at, number)| clock.on_packet(Time::from_millis(at), number));
        assert_eq!(ended, [1, 0, 1, 1, 0, 2]);
        assert_eq!(clock.deadline(), Time::from_millis(700));
    }

    #[test]
    fn in_silence_the_receiver_s_clock_goes_on_and_stays_in_step() {
        let mut clock = clock(Synchronisation::Weak);
        clock.on_packet(Time::ZERO, 5);
        assert_eq!(clock.on_time(Time::from_millis(299)), 0);
        assert_eq!(clock.on_time(Time::from_millis(300)), 2);
        assert_eq!(clock.deadline(), Time::from_millis(500));
        assert_eq!(clock.on_packet(Time::from_millis(310), 8), 1);
    }

    #[test]
    fn a_far_number_counts_if_the_next_packet_goes_on_from_there() {
        let mut clock = clock(Synchronisation::Weak);
        let ended = [5, 60, 5, 60, 6, 50, 40, 41, 41].map(|number| clock.on_packet(Time::ZERO, number));
        assert_eq!(ended, [1, 0, 0, 0, 1, 0, 0, 35, 0]);
    }

    #[test]
    fn a_number_that_was_rubbish_is_corrected_after_a_silence() {
        let mut clock = clock(Synchronisation::Weak);
        assert_eq!([5, 60, 60].map(|number| clock.on_packet(Time::ZERO, number)), [1, 0, 55]);
        assert_eq!([6, 7].map(|number| clock.on_packet(Time::from_millis(200), number)), [0, 0]);
        assert_eq!(clock.on_time(Time::from_millis(300)), 2);
        assert_eq!([8, 9].map(|number| clock.on_packet(Time::from_millis(310), number)), [1, 1]);
    }

    #[test]
    fn without_synchronisation_slots_are_the_receiver_s_own() {
        let mut clock = clock(Synchronisation::None);
        assert_eq!(clock.on_packet(Time::from_millis(50), 9), 0);
        assert_eq!((clock.on_time(Time::from_millis(100)), clock.on_time(Time::from_millis(350))), (1, 2));
        assert_eq!(clock.deadline(), Time::from_millis(400));
    }
}
