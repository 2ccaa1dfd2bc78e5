//! Whether a path loses more where its queue is about to overflow than where none stands. What it loses then is its own: radio, a bad cable.
//!
//! A packet now and then is lost while something waits, and the more packets there are, the more often: at a gigabit a second with 1 % of random loss, some in each
//! millisecond in which the sender's or the receiver's host stood still. So losses near an overflow are one if they are more than that.
//!
//! Not here: what is an overflow ([`super::queue`]), and what else makes a loss congestion (`receiver/losses.rs`).

use weir_units::math::sqrt;

/// What was lost with and without a queue, of late.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnLosses {
    without_queue: Part,
    near_overflow: Part,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    packets: f64,
    lost: f64,
}

/// What a packet met.
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

    fn fade(&mut self, kept: f64) {
        (self.packets, self.lost) = (self.packets * kept, self.lost * kept);
    }
}

impl OwnLosses {
    /// A packet came, and shows that so many before it were lost.
    pub(super) fn on_packet(&mut self, met: Met, lost: u64) {
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

    /// Whether more is lost near an overflow than the path's own losses and chance explain.
    pub(super) fn are_exceeded(&self) -> bool {
        let Part { packets, lost } = self.without_queue;
        let own = self.near_overflow.packets * lost / packets.max(1.0);
        self.near_overflow.lost > own + DEVIATIONS * sqrt(own)
    }
}

/// Ten seconds, as for the longest queue.
const KEPT_WITHOUT_QUEUE: f64 = 0.99;
/// An overflow is over in a few round trips.
const KEPT_NEAR_OVERFLOW: f64 = 0.5;
/// What is beyond chance: each loss asks again.
const DEVIATIONS: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that has lost one of a hundred packets without a queue, and then so many of 2000 near an overflow.
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
        assert!(exceeded(40));
    }

    #[test]
    fn on_a_path_that_loses_nothing_else_one_loss_near_an_overflow_tells() {
        let mut losses = OwnLosses::default();
        (0..1_000).for_each(|_| losses.on_packet(Met::NoQueue, 0));
        losses.on_packet(Met::Queue, 3);
        assert!(!losses.are_exceeded());
        losses.on_packet(Met::Overflow, 1);
        assert!(losses.are_exceeded());
        assert!(
            {
                (0..9).for_each(|_| losses.on_packet(Met::Overflow, 0));
                losses.are_exceeded()
            },
            "until it is forgotten"
        );
    }
}
