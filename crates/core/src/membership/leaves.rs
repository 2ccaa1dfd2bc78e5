//! Leaves that have not taken effect yet, and how long leaves take.

use core::time::Duration;

use weir_units::Time;

use super::SLOWEST_CHANGE;

/// What is known of a receiver's leaves, from packets that still come of channels that it has left.
///
/// The laboratory's leaves act at once; a real network may take seconds. Schemes ask in two ways: whether a leave is still to
/// take effect, so that its congestion is not answered twice, and how long leaves take, so as to leave ahead of need.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    /// When a channel was last left.
    latest: Option<Time>,
    /// When a packet last came of a channel that had been left; since the latest leave.
    stray: Option<Time>,
    /// The longest that a leave took, a little less with each leave since.
    longest: Duration,
}

impl Leaves {
    /// A channel was left.
    pub(super) fn on_leave(&mut self, now: Time) {
        self.latest = Some(now);
        self.stray = None;
        self.longest = self.longest * 15 / 16;
    }

    /// A packet came of a channel that was left at `left`.
    pub(super) fn on_stray(&mut self, now: Time, left: Time) {
        self.stray = Some(now);
        self.longest = self.longest.max(now.since(left).min(SLOWEST_CHANGE));
    }

    /// Whether the latest leave is still to take effect: until no packet of a left channel has come for `quiet`, but no
    /// longer than `at_most`.
    pub(crate) fn is_pending(&self, now: Time, at_most: Duration, quiet: Duration) -> bool {
        let Some(latest) = self.latest else { return false };
        let heard = self.stray.unwrap_or(latest);
        now.since(latest) < at_most && now.since(heard) < quiet
    }

    /// How long leaves take: the longest that was seen, fading. Zero where no packet comes of channels that were left.
    pub(crate) const fn latency(&self) -> Duration {
        self.longest
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
            leaves.on_stray(at(stray), at(1000));
        }
        assert!(is_pending(&leaves, 3499) && !is_pending(&leaves, 3500));
        leaves.on_leave(at(5000));
        leaves.on_stray(at(5080), at(5000));
        assert!(is_pending(&leaves, 5179) && !is_pending(&leaves, 5180));
    }

    #[test]
    fn without_a_wait_no_leave_is_ever_pending() {
        let mut leaves = Leaves::default();
        leaves.on_leave(Time::ZERO);
        leaves.on_stray(Time::ZERO, Time::ZERO);
        assert!(!leaves.is_pending(Time::ZERO, Duration::ZERO, QUIET));
    }

    #[test]
    fn of_what_leaves_took_the_longest_counts_and_fades() {
        let mut leaves = Leaves::default();
        assert_eq!(leaves.latency(), Duration::ZERO);
        leaves.on_stray(at(1160), at(1000));
        leaves.on_stray(at(1166), at(1150));
        assert_eq!(leaves.latency(), Duration::from_millis(160));
        leaves.on_leave(at(2000));
        assert_eq!(leaves.latency(), Duration::from_millis(150));
        leaves.on_stray(at(60_000), at(2000));
        assert_eq!(leaves.latency(), SLOWEST_CHANGE);
    }
}
