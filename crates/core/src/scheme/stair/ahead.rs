//! How long joins and leaves take to act, and so how long before their need they are made (§4.1).

use core::time::Duration;

use super::config::Latency;
use crate::membership::{Leaves, SLOWEST_CHANGE};

/// What joins and leaves were seen to take, unless the user has said it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latencies {
    join: Latency,
    leave: Latency,
    /// The average of joins.
    joined: Duration,
}

impl Latencies {
    pub(super) const fn new(join: Latency, leave: Latency) -> Latencies {
        Latencies { join, leave, joined: Duration::ZERO }
    }

    pub(super) const fn join(&self) -> Duration {
        or_measured(self.join, self.joined)
    }

    pub(super) const fn leave(&self, leaves: &Leaves) -> Duration {
        or_measured(self.leave, leaves.latency())
    }

    /// How long leaves take, if the user has said it.
    pub(super) const fn told_leave(&self) -> Duration {
        or_measured(self.leave, Duration::ZERO)
    }

    /// The first packet came so long after its channel was joined; a packet time of it is chance.
    pub(super) fn on_joined(&mut self, took: Duration, packet_time: Duration) {
        self.joined = self.joined * 3 / 4 + took.saturating_sub(packet_time).min(SLOWEST_CHANGE) / 4;
    }
}

const fn or_measured(latency: Latency, measured: Duration) -> Duration {
    match latency {
        Latency::Measured => measured,
        Latency::Fixed(fixed) => fixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Fall;

    #[test]
    fn joins_are_averaged() {
        let millis = Duration::from_millis;
        let mut seen = Latencies::new(Latency::Measured, Latency::Measured);
        assert_eq!(seen.join(), Duration::ZERO);
        seen.on_joined(millis(5), millis(8));
        assert_eq!(seen.join(), Duration::ZERO, "no more than chance");
        seen.on_joined(millis(48), millis(8));
        assert_eq!(seen.join(), millis(10));
    }

    #[test]
    fn what_the_user_says_stands() {
        let mut told = Latencies::new(Latency::Fixed(Duration::from_secs(2)), Latency::Fixed(Duration::from_secs(1)));
        told.on_joined(Duration::from_secs(9), Duration::ZERO);
        assert_eq!(
            (told.join(), told.leave(&Leaves::new(Duration::ZERO, Fall::Eighth))),
            (Duration::from_secs(2), Duration::from_secs(1))
        );
    }
}
