//! Leaves that have not taken effect yet.

use core::time::Duration;

use weir_units::Time;

/// Knows whether packets of a channel that was left still arrive, so that their congestion is not answered twice
/// (decision 7).
///
/// The laboratory's leaves act at once; a real network may take seconds.
#[derive(Debug)]
pub(super) struct Leaving {
    /// How long at most a leave is waited for. Zero: not at all.
    wait: Duration,
    /// How long without a packet means that it has taken effect.
    quiet: Duration,
    left: Option<Time>,
    stray: Option<Time>,
}

impl Leaving {
    pub(super) fn new(wait: Duration, quiet: Duration) -> Leaving {
        Leaving { wait, quiet, left: None, stray: None }
    }

    /// A channel was left.
    pub(super) fn on_leave(&mut self, now: Time) {
        self.left = Some(now);
        self.stray = None;
    }

    /// A packet arrived on a channel that is not subscribed.
    pub(super) fn on_stray(&mut self, now: Time) {
        self.stray = Some(now);
    }

    /// Whether a leave is still to take effect.
    pub(super) fn is_pending(&self, now: Time) -> bool {
        let Some(left) = self.left else { return false };
        let heard = self.stray.unwrap_or(left);
        now.since(left) < self.wait && now.since(heard) < self.quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leave_is_pending_while_packets_come_but_not_for_ever() {
        let at = Time::from_millis;
        let mut leaving = Leaving::new(Duration::from_millis(2500), Duration::from_millis(100));
        assert!(!leaving.is_pending(at(0)));
        leaving.on_leave(at(1000));
        assert!(leaving.is_pending(at(1099)) && !leaving.is_pending(at(1100)));
        for stray in (1000..4000).step_by(50) {
            leaving.on_stray(at(stray));
        }
        assert!(!leaving.is_pending(at(4000)));
        leaving.on_leave(at(5000));
        leaving.on_stray(at(5080));
        assert!(leaving.is_pending(at(5179)) && !leaving.is_pending(at(5180)));
    }

    #[test]
    fn without_a_wait_no_leave_is_ever_pending() {
        let mut leaving = Leaving::new(Duration::ZERO, Duration::from_millis(100));
        leaving.on_leave(Time::ZERO);
        leaving.on_stray(Time::ZERO);
        assert!(!leaving.is_pending(Time::ZERO));
    }
}
