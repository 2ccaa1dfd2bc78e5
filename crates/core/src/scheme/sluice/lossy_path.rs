//! Notices a path that loses many packets whatever the receiver gives up, as Wi-Fi loses multicast.
//!
//! A policer that a session has to itself loses only what is beyond its rate, and a receiver that has given way is below that. Where about as
//! much is lost as before, the path loses it by itself, or many other flows share a policer: packets do not tell the two apart, so the receiver
//! goes on giving way, and tells its user.
//!
//! Not here: what counts as congestion (`receiver/losses.rs`), and losses near an overflow ([`super::own_losses`]).

use core::time::Duration;

use weir_units::{Rate, Time};

/// What was lost when much was lost.
#[derive(Debug, Default)]
pub(super) struct LossyPath {
    /// When much was lost last, the rate of the receiver, and which part.
    before: Option<(Time, Rate, f64)>,
    /// Until when it is not noticed again.
    noticed: Time,
}

impl LossyPath {
    /// Much was lost without a queue at this `rate`: this part. Whether to say that as much was lost at a higher rate.
    pub(super) fn on_much_loss(&mut self, now: Time, rate: Rate, part: f64) -> bool {
        let before = self.before.replace((now, rate, part));
        let is_lost_anyway = before.is_some_and(|(at, faster, lost)| {
            now.since(at) <= COMPARED && rate <= faster.scale(CLEARLY_LESS) && part >= lost * AS_MUCH
        });
        let is_new = is_lost_anyway && part <= MOST && now >= self.noticed;
        if is_new {
            self.noticed = now + PAUSE;
        }
        is_new
    }
}

/// Losses are compared over this time; later, the path may be another one.
const COMPARED: Duration = Duration::from_secs(20);
/// A receiver that gives way to much loss goes further down than that.
const CLEARLY_LESS: f64 = 0.9;
/// A second's losses of a slow receiver are a handful, and vary.
const AS_MUCH: f64 = 0.5;
/// Where more is lost, a switch may flood the path, which is told for itself.
const MOST: f64 = 0.25;
/// Nobody wants to read it more often.
const PAUSE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn last(losses: &[(u64, u64, f64)]) -> bool {
        let mut path = LossyPath::default();
        let told = losses
            .iter()
            .map(|(second, mbps, part)| path.on_much_loss(Time::from_secs(*second), Rate::from_mbps(*mbps), *part));
        told.last().unwrap_or_default()
    }

    #[test]
    fn what_is_lost_at_a_lower_rate_as_well_is_noticed_once_a_minute() {
        assert!(!last(&[(1, 10, 0.1)]));
        assert!(last(&[(1, 10, 0.1), (3, 8, 0.09)]));
        assert!(!last(&[(1, 10, 0.1), (3, 8, 0.09), (5, 6, 0.1)]));
        assert!(last(&[(1, 10, 0.1), (3, 8, 0.09), (60, 6, 0.1), (63, 5, 0.1)]));
        assert!(!last(&[(1, 10, 0.2), (3, 8, 0.09)]), "less was lost at the lower rate");
        assert!(!last(&[(1, 10, 0.1), (3, 10, 0.1)]), "it was no lower");
        assert!(!last(&[(1, 10, 0.1), (30, 8, 0.1)]), "that is long ago");
        assert!(!last(&[(1, 10, 0.4), (3, 5, 0.4)]), "that may be a flood");
    }
}
