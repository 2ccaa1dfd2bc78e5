//! How long others' starts have gone on, by the start-up bursts that come.
//!
//! Not here: the receiver's own start ([`super::rules`]).

use core::time::Duration;

use weir_units::Time;

/// The start-up bursts that follow each other.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// When the first and the latest packet of them came.
    bursts: Option<(Time, Time)>,
}

impl Starts {
    /// A packet of a start-up burst arrived.
    pub(super) fn on_burst(&mut self, now: Time) {
        let running = self.bursts.filter(|(_, latest)| now.since(*latest) < PAUSE);
        self.bursts = Some((running.map_or(now, |(first, _)| first), now));
    }

    /// Whether the bursts go on for longer than a start takes.
    pub(super) fn are_lasting(&self, now: Time) -> bool {
        self.bursts.is_some_and(|(first, _)| now.since(first) >= LONGEST_START)
    }
}

/// Bursts come every 100 ms while somebody starts.
const PAUSE: Duration = Duration::from_secs(1);
/// Next to a TCP a receiver that starts goes up by half in a second, and soon loses a packet.
const LONGEST_START: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_last_after_five_seconds_and_a_pause_begins_them_again() {
        let mut starts = Starts::default();
        assert!(!starts.are_lasting(Time::from_secs(9)));
        (0..50).for_each(|tenth| starts.on_burst(Time::from_millis(10_000 + 100 * tenth)));
        assert!(!starts.are_lasting(Time::from_millis(14_900)) && starts.are_lasting(Time::from_secs(15)));
        starts.on_burst(Time::from_secs(16));
        assert!(!starts.are_lasting(Time::from_secs(16)));
    }
}
