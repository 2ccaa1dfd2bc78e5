//! Channels that were given up while the network still sends them: whether they were enough (decision 7).

use core::time::Duration;

use weir_units::{Rate, Time};

use crate::layers::Ladder;

/// The latest drops, and what arrives of the channels that are left.
#[derive(Debug, Default)]
pub(super) struct GivingUp {
    /// When channels were dropped, the newest first.
    drops: [Option<Time>; 8],
    /// What arrived in the last slots.
    arrived: [Rate; 5],
}

impl GivingUp {
    /// A channel is dropped.
    pub(super) fn on_drop(&mut self, now: Time) {
        self.drops.rotate_right(1);
        self.drops[0] = Some(now);
    }

    /// A slot ended, with this rate of what arrived.
    pub(super) fn on_slot(&mut self, arrived: Rate) {
        self.arrived.rotate_right(1);
        self.arrived[0] = arrived;
    }

    /// Whether `level` will still be too much when the channels that were dropped have stopped. Of a link that both fill, the
    /// channels that are left get their part of the sum, so what arrives of them tells what the link carries. `latency` is how
    /// long leaves were seen to take, zero if none was.
    pub(super) fn was_too_little(&self, now: Time, ladder: &Ladder, level: usize, latency: Duration) -> bool {
        let latency = if latency.is_zero() { USUAL_LEAVE } else { latency };
        let is_sent = |at: &&Time| now.since(**at) < latency + SEEN_AFTER;
        let still_sent = self.drops.iter().flatten().filter(is_sent).count();
        let rate = |level: usize| ladder.level_rate(level).bps() as f64;
        let (here, sent) = (rate(level), rate(level + still_sent));
        let most = self.arrived.iter().max().map_or(0.0, |most| most.bps() as f64);
        let is_seen = self.drops[0].is_some_and(|at| now.since(at) >= SEEN_AFTER);
        is_seen && most * sent / here < CARRIED * here
    }
}

/// A slot may bring a tenth less than it should.
const CARRIED: f64 = 0.9;
/// By then the slots that are remembered are of the channels that are left alone.
const SEEN_AFTER: Duration = Duration::from_millis(500);
/// Most switches ask twice, a second apart, whether anybody is left.
const USUAL_LEAVE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver dropped level 10 (10 Mbit/s) at 10 s and has 6.6 since, over a link of `mbps` that has got all of both.
    fn is_too_little(mbps: f64, at_millis: u64, latency: Duration) -> bool {
        let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(10), 1.5).expect("valid");
        let mut giving_up = GivingUp::default();
        giving_up.on_drop(Time::from_secs(10));
        let part = ladder.level_rate(9).bps() as f64 / ladder.level_rate(10).bps() as f64;
        (0..5).for_each(|_| giving_up.on_slot(Rate::from_bps((mbps * 1e6 * part) as u64)));
        giving_up.was_too_little(Time::from_millis(at_millis), &ladder, 9, latency)
    }

    #[test]
    fn a_link_that_carries_what_is_left_needs_no_second_drop_and_a_narrower_one_does() {
        let unknown = Duration::ZERO;
        assert!(!is_too_little(7.0, 10_600, unknown), "6.6 will fit");
        assert!(is_too_little(5.0, 10_600, unknown));
        assert!(!is_too_little(5.0, 10_400, unknown), "what arrived may be of before the drop");
    }

    #[test]
    fn when_leaves_have_acted_what_arrives_is_all_that_the_link_carries() {
        let quick = Duration::from_millis(100);
        assert!(is_too_little(7.0, 10_600, quick), "4.6 of 6.6 arrive");
        assert!(!is_too_little(10.0, 10_600, quick));
    }
}
