//! The configuration.

use core::time::Duration;

use weir_units::{Bytes, Rate};

use super::cycle::SLOT;
use crate::membership::Reordering;

/// Everything that can be set. `docs/papers/sluice.md` says where each default comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// m: how much more than the next level's rate a burst that stands for it has, as a factor.
    pub margin: f64,
    /// When the sender sends bursts of two to four times a level's rate.
    pub start_up: StartUp,
    /// How much of the ladder the sender sends.
    pub offer: Offer,
    /// How often the sender schedules packets.
    pub period: Duration,
    /// The round-trip time of an empty path until a probe has told it; for good, if `probes` is false.
    pub round_trip: Duration,
    /// Whether receivers measure their round trip, and tell what they want.
    pub probes: bool,
    /// Probes that the sender wants to answer in a second, of all receivers.
    pub probes_per_sec: u64,
    /// H: how long a level is held before a queue that others share lets the receiver change it.
    pub hold: Duration,
    /// How long a level that turned out to be too high is not tried again, the first time; twice that and more after the next.
    pub back_off: Duration,
    /// For how long after a join the receiver may find that it was too much.
    pub trial: Duration,
    /// The part of its packets that the path may lose by itself: so much without a queue is no congestion.
    pub own_loss: f64,
    /// How many later packets of its channel give a missing packet up, at least: a fast channel needs as many as it sends in a period.
    pub reorder_packets: u64,
}

impl Config {
    /// How many later packets of a channel of this rate give a missing one up: [`Config::reorder_packets`], or as many as the channel sends in a period if
    /// that is more, as the packets of a period follow each other so closely that networks may reorder them. Where they are found to be
    /// reordered further, up to what the channel sends in a slot.
    pub(super) fn reordering(&self, rate: Rate, packet_size: Bytes) -> Reordering {
        let sent_in = |time: Duration| (time.as_nanos() / (packet_size / rate).as_nanos().max(1)) as u64;
        let least = self.reorder_packets.max(sent_in(self.period));
        Reordering::between(least, sent_in(SLOT))
    }
}

/// When the sender sends bursts of two to four times a level's rate, in which receivers that start find their rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartUp {
    /// While a receiver says that it starts, and in the session's first seconds.
    Asked,
    /// All the time.
    Always,
    /// Never: receivers climb a level at a time.
    Never,
}

/// How much of the ladder the sender sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// What receivers have told that they want, and all where they cannot tell.
    Wanted,
    /// All of it.
    All,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            margin: 1.03,
            start_up: StartUp::Asked,
            offer: Offer::Wanted,
            period: Duration::from_millis(5),
            round_trip: Duration::from_millis(100),
            probes: true,
            probes_per_sec: 50,
            hold: Duration::from_secs(5),
            back_off: Duration::from_secs(10),
            trial: Duration::from_secs(8),
            own_loss: 0.05,
            reorder_packets: 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_packet_is_given_up_after_as_many_as_come_in_a_period_and_at_most_those_of_a_slot() {
        let config = Config::default();
        let reordering = |mbps| config.reordering(Rate::from_mbps(mbps), Bytes::new(1_250));
        let expected = [(3, 10), (3, 69), (4, 80), (50, 255), (250, 255), (255, 255)];
        let expected = expected.map(|(least, most)| Reordering::between(least, most));
        assert_eq!([1, 7, 8, 100, 500, 5_000].map(reordering), expected);
    }
}
