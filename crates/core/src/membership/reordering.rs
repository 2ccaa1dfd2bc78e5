//! How far a network reorders a channel's packets.

use core::time::Duration;

use weir_units::Time;

/// Decides how many later packets of a channel give a missing one up. That starts at `least`. When a packet arrives after it was given up, it rises to the
/// number of packets that overtook this one, up to `most`. RACK widens its reordering window for the same reason, in fixed steps (RFC 8985 §6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reordering {
    least: u8,
    most: u8,
    /// When a packet last came after it had been given up.
    late: Time,
}

impl Reordering {
    /// Always this number.
    pub(crate) fn fixed(packets: u64) -> Reordering {
        Reordering::between(packets, packets)
    }

    /// From `least` to `most`. Values outside 1 to 255 are clamped.
    pub(crate) fn between(least: u64, most: u64) -> Reordering {
        let packets = |number| u8::try_from(number).unwrap_or(u8::MAX).max(1);
        let least = packets(least);
        Reordering { least, most: packets(most).max(least), late: Time::ZERO }
    }

    /// The number before anything is known of the network.
    pub(super) fn at_first(&self) -> u8 {
        self.least
    }

    /// The number after `tolerated`, now that a packet has arrived that was given up and is `behind` numbers behind the latest.
    pub(super) fn after_late(&mut self, now: Time, tolerated: u8, behind: u64) -> u8 {
        self.late = now;
        behind.clamp(u64::from(tolerated), u64::from(self.most)) as u8
    }

    /// The number after `tolerated`, now that packets are given up. A tolerance that has not been needed for long is dropped.
    pub(super) fn after_loss(&self, now: Time, tolerated: u8) -> u8 {
        if now.since(self.late) > MEMORY { self.least } else { tolerated }
    }
}

/// How long a tolerance lasts after the latest packet that needed one.
const MEMORY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tolerates_what_came_late_up_to_its_bound() {
        let mut reordering = Reordering::between(3, 50);
        let mut tolerated = reordering.at_first();
        let after = [2, 7, 5, 90].map(|behind| {
            tolerated = reordering.after_late(Time::from_secs(1), tolerated, behind);
            tolerated
        });
        assert_eq!(after, [3, 7, 7, 50]);
        assert_eq!([0, 1_000].map(|packets| Reordering::fixed(packets).at_first()), [1, 255]);
    }

    #[test]
    fn it_goes_back_at_a_loss_when_nothing_has_come_late_for_a_minute() {
        let mut reordering = Reordering::between(3, 50);
        let tolerated = reordering.after_late(Time::from_secs(1), 3, 20);
        assert_eq!([61, 62].map(|secs| reordering.after_loss(Time::from_secs(secs), tolerated)), [20, 3]);
    }
}
