//! Leaves that have not taken effect yet.

use core::time::Duration;

use weir_units::Time;

/// What is known of a receiver's leaves, from packets that still come of channels that it has left.
///
/// The laboratory's leaves act at once; a real network may take seconds. A scheme asks whether a leave is still to take
/// effect, so that its congestion is not answered twice.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    /// When a channel was last left.
    latest: Option<Time>,
    /// When a packet last came of a channel that had been left; since the latest leave.
    stray: Option<Time>,
}

impl Leaves {
    /// A channel was left.
    pub(super) fn on_leave(&mut self, now: Time) {
        self.latest = Some(now);
        self.stray = None;
    }

    /// A packet came of a channel that was left.
    pub(super) fn on_stray(&mut self, now: Time) {
        self.stray = Some(now);
    }

    /// Whether the latest leave is still to take effect: until no packet of a left channel has come for `quiet`, but no
    /// longer than `at_most`.
    pub(crate) fn is_pending(&self, now: Time, at_most: Duration, quiet: Duration) -> bool {
        let Some(latest) = self.latest else { return false };
        let heard = self.stray.unwrap_or(latest);
        now.since(latest) < at_most && now.since(heard) < quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_leave_is_pending_while_packets_come_but_not_for_ever() {
        let mut leaves = Leaves::default();
        let is_pending = |leaves: &Leaves, now| leaves.is_pending(at(now), Duration::from_millis(2500), QUIET);
        assert!(!is_pending(&leaves, 0));
        leaves.on_leave(at(1000));
        assert!(is_pending(&leaves, 1099) && !is_pending(&leaves, 1100));
        for stray in (1000..4000).step_by(50) {
            leaves.on_stray(at(stray));
        }
        assert!(is_pending(&leaves, 3499) && !is_pending(&leaves, 3500));
        leaves.on_leave(at(5000));
        leaves.on_stray(at(5080));
        assert!(is_pending(&leaves, 5179) && !is_pending(&leaves, 5180));
    }

    #[test]
    fn without_a_wait_no_leave_is_ever_pending() {
        let mut leaves = Leaves::default();
        leaves.on_leave(Time::ZERO);
        leaves.on_stray(Time::ZERO);
        assert!(!leaves.is_pending(Time::ZERO, Duration::ZERO, QUIET));
    }
}
