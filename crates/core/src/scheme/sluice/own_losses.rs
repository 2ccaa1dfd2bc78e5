//! Tells an overflow from a path's own random loss, as of a radio link or a bad cable.
//!
//! Packets also wait for about the longest delay when nothing overflows, as those do that the sender sends together. Some of them are lost at random. Losses in such moments
//! are an overflow only if the path loses clearly more then than while no queue stands.
//!
//! Not here: when a queue is about to overflow ([`super::queue`]), and what else makes a loss congestion (`receiver/losses.rs`).

use weir_units::math::ln;

/// Recent losses without a queue, and near an overflow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnLosses {
    /// Packets that have arrived since the receiver began.
    arrived: u64,
    without_queue: Part,
    near_overflow: Part,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    packets: f64,
    lost: f64,
}

/// The queue that a packet met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    NoQueue,
    /// A queue that is neither short nor about to overflow.
    Queue,
    Overflow,
}

impl Part {
    fn add(&mut self, lost: u64) {
        self.packets += 1.0 + lost as f64;
        self.lost += lost as f64;
    }

    fn and(self, other: Part) -> Part {
        Part { packets: self.packets + other.packets, lost: self.lost + other.lost }
    }

    fn rate(self) -> f64 {
        self.lost / self.packets.max(1.0)
    }

    fn fade(&mut self, kept: f64) {
        (self.packets, self.lost) = (self.packets * kept, self.lost * kept);
    }
}

impl OwnLosses {
    /// Counts a packet that arrived, and the `lost` ones that it shows to be missing.
    pub(super) fn on_packet(&mut self, met: Met, lost: u64) {
        self.arrived += 1;
        match met {
            Met::NoQueue => self.without_queue.add(lost),
            Met::Queue => {}
            Met::Overflow => self.near_overflow.add(lost),
        }
    }

    /// A slot ends.
    pub(super) fn on_slot(&mut self) {
        self.without_queue.fade(KEPT_WITHOUT_QUEUE);
        self.near_overflow.fade(KEPT_NEAR_OVERFLOW);
    }

    /// Whether the path loses more near an overflow than its own loss rate and chance explain. Too few packets do not show that rate. Until enough have arrived, this
    /// asks whether two loss rates explain the losses much better than one.
    pub(super) fn are_exceeded(&self) -> bool {
        let OwnLosses { arrived, without_queue, near_overflow } = *self;
        let own = near_overflow.packets * without_queue.rate();
        if near_overflow.lost <= own {
            return false;
        }
        let beyond = if arrived >= TELLING {
            deviance(near_overflow.lost, own)
        } else {
            let rate = without_queue.and(near_overflow).rate();
            [without_queue, near_overflow].map(|part| deviance(part.lost, part.packets * rate)).iter().sum()
        };
        beyond > BEYOND_CHANCE
    }
}

/// How far `count` events are from the `expected` number, as the deviance of a Poisson distribution. For large numbers this is the squared distance in standard deviations.
/// Where less than one event is expected, standard deviations overstate how rare a single one is.
fn deviance(count: f64, expected: f64) -> f64 {
    let surprise = if count > 0.0 { count * ln(count / expected) } else { 0.0 };
    2.0 * (surprise - (count - expected))
}

/// With 1 % of random loss, 300 packets arrive without a single loss in one of twenty cases.
const TELLING: u64 = 300;
/// Ten seconds, as for the longest queue.
const KEPT_WITHOUT_QUEUE: f64 = 0.99;
/// An overflow is over in a few round trips.
const KEPT_NEAR_OVERFLOW: f64 = 0.5;
/// Four standard deviations. The question is asked again at each loss, so two would not do.
const BEYOND_CHANCE: f64 = 4.0 * 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `near_overflow` losses in 2000 packets near an overflow are too many on a path with 1 % of random loss.
    fn exceeded(near_overflow: u64) -> bool {
        let mut losses = OwnLosses::default();
        (0..10_000).for_each(|packet| losses.on_packet(Met::NoQueue, u64::from(packet % 100 == 0)));
        (0..2_000 - near_overflow)
            .for_each(|packet| losses.on_packet(Met::Overflow, u64::from(packet < near_overflow)));
        losses.are_exceeded()
    }

    #[test]
    fn losses_near_an_overflow_are_no_overflow_if_the_path_loses_as_many_without_a_queue() {
        assert!(!exceeded(20) && !exceeded(30));
        assert!(exceeded(41));
    }

    #[test]
    fn while_the_paths_own_losses_are_not_known_one_loss_near_an_overflow_does_not_tell_and_many_do() {
        let exceeded = |lost: u64| {
            let mut losses = OwnLosses::default();
            (0..60).for_each(|_| losses.on_packet(Met::NoQueue, 0));
            (0..15 - lost).for_each(|packet| losses.on_packet(Met::Overflow, u64::from(packet < lost)));
            losses.are_exceeded()
        };
        assert_eq!([1, 3, 6].map(exceeded), [false, false, true]);
    }

    #[test]
    fn two_losses_where_a_twentieth_is_expected_may_be_chance() {
        assert!(deviance(2.0, 0.05) < BEYOND_CHANCE);
        assert!(deviance(3.0, 0.05) > BEYOND_CHANCE);
    }

    #[test]
    fn on_a_path_that_loses_nothing_else_one_loss_near_an_overflow_tells() {
        let mut losses = OwnLosses::default();
        (0..1_000).for_each(|_| losses.on_packet(Met::NoQueue, 0));
        losses.on_packet(Met::Queue, 3);
        assert!(!losses.are_exceeded());
        losses.on_packet(Met::Overflow, 1);
        assert!(losses.are_exceeded());
        (0..9).for_each(|_| losses.on_packet(Met::Overflow, 0));
        assert!(losses.are_exceeded(), "until it is forgotten");
    }
}
