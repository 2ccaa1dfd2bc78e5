//! How long joins and leaves take to act, and so how long before their need they are made (§4.1).

use core::time::Duration;

use super::config::Latency;

/// What joins and leaves were seen to take, unless the user has said it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latencies {
    join: (Latency, Duration),
    leave: (Latency, Duration),
}

impl Latencies {
    pub(super) fn new(join: Latency, leave: Latency) -> Latencies {
        Latencies { join: (join, Duration::ZERO), leave: (leave, Duration::ZERO) }
    }

    pub(super) const fn join(&self) -> Duration {
        of(self.join)
    }

    pub(super) const fn leave(&self) -> Duration {
        of(self.leave)
    }

    /// The first packet came so long after its channel was joined; a packet time of it is chance.
    pub(super) fn on_joined(&mut self, took: Duration, packet_time: Duration) {
        let (_, average) = &mut self.join;
        *average = *average * 3 / 4 + took.saturating_sub(packet_time).min(LONGEST) / 4;
    }

    /// A channel is left: what earlier leaves took counts a little less.
    pub(super) fn on_leave(&mut self) {
        let (_, longest) = &mut self.leave;
        *longest = *longest * 15 / 16;
    }

    /// A packet came so long after its channel was left.
    pub(super) fn on_stray(&mut self, after: Duration) {
        let (_, longest) = &mut self.leave;
        *longest = (*longest).max(after.min(LONGEST));
    }
}

const fn of((latency, measured): (Latency, Duration)) -> Duration {
    match latency {
        Latency::Measured => measured,
        Latency::Fixed(fixed) => fixed,
    }
}

/// Group membership queries take no longer.
const LONGEST: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_averaged_and_of_leaves_the_longest_counts() {
        let millis = Duration::from_millis;
        let mut seen = Latencies::new(Latency::Measured, Latency::Measured);
        assert_eq!((seen.join(), seen.leave()), (Duration::ZERO, Duration::ZERO));
        seen.on_joined(millis(5), millis(8));
        assert_eq!(seen.join(), Duration::ZERO, "no more than chance");
        seen.on_joined(millis(48), millis(8));
        assert_eq!(seen.join(), millis(10));
        seen.on_stray(millis(160));
        seen.on_stray(millis(16));
        assert_eq!(seen.leave(), millis(160));
        seen.on_leave();
        assert_eq!(seen.leave(), millis(150));
    }

    #[test]
    fn what_the_user_says_stands() {
        let mut told = Latencies::new(Latency::Fixed(Duration::from_secs(2)), Latency::Fixed(Duration::ZERO));
        told.on_stray(Duration::from_secs(1));
        told.on_joined(Duration::from_secs(9), Duration::ZERO);
        assert_eq!((told.join(), told.leave()), (Duration::from_secs(2), Duration::ZERO));
    }
}
