//! ns-2's rule for loss: when it costs a layer. It knows nothing of packets.

use core::time::Duration;

use weir_units::Time;

/// When loss costs a layer. An estimate does better than this, as one is enough for the right number of layers; so it takes much
/// and lasting loss.
#[derive(Debug)]
pub(super) struct LossRule {
    threshold: f64,
    blind: Duration,
    /// What is counted from, while loss is being counted.
    counting: Option<Counting>,
    /// No layer is given up for loss or silence before.
    blind_until: Time,
}

#[derive(Debug, Clone, Copy)]
struct Counting {
    received: u64,
    lost: u64,
    until: Time,
}

impl LossRule {
    pub(super) fn new(threshold: f64, blind: Duration) -> LossRule {
        LossRule { threshold, blind, counting: None, blind_until: Time::ZERO }
    }

    /// Losses until now count no more.
    pub(super) fn forget(&mut self) {
        self.counting = None;
    }

    /// Packets are missing; `received` and `lost` count all of the session until now. Returns whether that costs a layer.
    pub(super) fn on_loss(&mut self, now: Time, received: u64, lost: u64) -> bool {
        let fresh = self.counting.filter(|counting| counting.until > now && self.blind_until < now);
        let counting = *self.counting.insert(fresh.unwrap_or(Counting { received, lost, until: now + LONGEST_COUNT }));
        let (received, lost) = (received - counting.received, lost - counting.lost);
        let is_too_much = received >= FEWEST_PACKETS && lost as f64 > self.threshold * (lost + received) as f64;
        is_too_much && self.take(now)
    }

    /// Whether a layer may be given up now, as is done then.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let may = self.blind_until <= now;
        if may {
            self.counting = None;
            self.blind_until = now + self.blind;
        }
        may
    }

    /// No layer is given up for loss or silence before.
    pub(super) fn blind_until(&self) -> Time {
        self.blind_until
    }
}

/// Loss is counted for no longer than this.
const LONGEST_COUNT: Duration = Duration::from_secs(5);

/// With fewer packets received, a part of them says nothing.
const FEWEST_PACKETS: u64 = 10;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn more_than_a_tenth_of_ten_packets_costs_a_layer_and_blinds_for_half_a_second() {
        let mut rule = LossRule::new(0.1, Duration::from_millis(500));
        let on_loss =
            |rule: &mut LossRule, millis, received, lost| rule.on_loss(Time::from_millis(millis), received, lost);
        assert!(!on_loss(&mut rule, 1_000, 100, 1), "counting begins");
        assert!(!on_loss(&mut rule, 1_100, 109, 9), "too few packets");
        assert!(on_loss(&mut rule, 1_200, 110, 10));
        let in_blind: Vec<bool> =
            (1..=5).map(|n| on_loss(&mut rule, 1_200 + n * 100, 110 + n * 20, 10 + n * 20)).collect();
        assert_eq!(in_blind, [false; 5]);
        assert!(on_loss(&mut rule, 1_800, 230, 130));
    }

    #[test]
    fn losses_of_more_than_five_seconds_ago_do_not_count() {
        let mut rule = LossRule::new(0.1, Duration::from_millis(500));
        assert!(!rule.on_loss(Time::from_millis(1_000), 100, 1));
        assert!(!rule.on_loss(Time::from_millis(6_000), 120, 40), "counting begins again");
        assert!(!rule.on_loss(Time::from_millis(6_100), 140, 42), "2 of 22");
    }
}
