//! The loss event rate by the average loss interval method (ALI).

/// The lengths of the last loss-free intervals, and the loss event rates that follow from them (AVMRC §2.2, Eq. 5, with
/// the eight weights that it takes from TFRC).
///
/// An interval is the number of packets received from the last loss of one loss event to the first loss of the next. The
/// interval before the first loss event counts from the start.
#[derive(Debug, Clone, PartialEq)]
#[repr(C)]
pub struct LossIntervals {
    /// s1, s2 …: the newest first. Only the first `known` are in use.
    history: [f64; WEIGHTS.len()],
    known: usize,
    /// s0: packets received since the last loss.
    current: f64,
}

impl Default for LossIntervals {
    fn default() -> LossIntervals {
        LossIntervals::new()
    }
}

impl LossIntervals {
    /// No packet, no loss yet.
    pub const fn new() -> LossIntervals {
        LossIntervals { history: [0.0; WEIGHTS.len()], known: 0, current: 0.0 }
    }

    /// A packet was received.
    pub fn on_received(&mut self) {
        self.current += 1.0;
    }

    /// The first loss of a loss event: the interval ends.
    pub fn on_loss_event(&mut self) {
        self.history.rotate_right(1);
        self.history[0] = self.current;
        self.known = (self.known + 1).min(WEIGHTS.len());
        self.current = 0.0;
    }

    /// A further loss of the same loss event: the interval starts again.
    pub fn on_loss_within_event(&mut self) {
        self.current = 0.0;
    }

    /// Replaces the history by one interval of `packets` (RMRC, AVMRC footnote 1: s1 is `packets`, n is 1). The current
    /// interval goes on.
    pub fn seed(&mut self, packets: f64) {
        self.history[0] = packets;
        self.known = 1;
    }

    /// Multiplies all intervals by a factor, the current one included.
    pub fn scale(&mut self, factor: f64) {
        self.history.iter_mut().chain([&mut self.current]).for_each(|packets| *packets *= factor);
    }

    /// Whether there is a history: a loss event, or a seed.
    pub const fn is_known(&self) -> bool {
        self.known > 0
    }

    /// How many intervals the history holds.
    pub const fn known(&self) -> usize {
        self.known
    }

    /// Packets received since the last loss.
    pub const fn current(&self) -> f64 {
        self.current
    }

    /// The newest interval of the history.
    pub fn newest(&self) -> Option<f64> {
        (self.known > 0).then_some(self.history[0])
    }

    /// The average loss interval in packets, `max(s̄, s̄_new)` (Eq. 5); `None` without a history.
    ///
    /// s̄ weighs the history, s̄_new the current interval and the history but for its oldest. Both use the first weights:
    /// the paper's s̄_new names a weight w0 that it does not define; as in TFRC the current interval gets w1.
    ///
    /// Example: history 100, current 300 gives 300; history 100, current 20 gives 100.
    pub fn average(&self) -> Option<f64> {
        if self.known == 0 {
            return None;
        }
        let weights = &WEIGHTS[..self.known];
        let total: f64 = weights.iter().sum();
        let old: f64 = weights.iter().zip(&self.history).map(|(weight, interval)| weight * interval).sum();
        let with_current = core::iter::once(&self.current).chain(&self.history);
        let new: f64 = weights.iter().zip(with_current).map(|(weight, interval)| weight * interval).sum();
        Some(old.max(new) / total)
    }

    /// The average loss interval with history discounting (RFC 5348 §5.5): where the current interval is more than twice the average of the
    /// history, the older intervals weigh less, half of what they do at least. At least [`LossIntervals::average`]; `None` without a
    /// history.
    ///
    /// Example: history 100 and 100, current 400 gives 300 and not 250.
    pub fn discounted_average(&self) -> Option<f64> {
        let plain = self.average()?;
        let weights = &WEIGHTS[..self.known];
        let weighed = weights.iter().zip(&self.history).map(|(weight, interval)| weight * interval);
        let old = weighed.sum::<f64>() / weights.iter().sum::<f64>();
        if self.current <= 2.0 * old {
            return Some(plain);
        }
        let factor = (2.0 * old / self.current).max(LEAST_DISCOUNT);
        let (mut sum, mut total) = (self.current, WEIGHTS[0]);
        for (weight, interval) in weights.iter().skip(1).zip(&self.history) {
            sum += factor * weight * interval;
            total += factor * weight;
        }
        Some(plain.max(sum / total))
    }

    /// Long-term loss event rate: one over [`LossIntervals::average`], at most 1; `None` without a history.
    pub fn long_term_rate(&self) -> Option<f64> {
        self.average().map(|packets| 1.0 / packets.max(1.0))
    }

    /// Short-term loss event rate: one over the current interval, 1 where that is empty (AVMRC §3.2); `None` without a
    /// history.
    pub fn short_term_rate(&self) -> Option<f64> {
        (self.known > 0).then(|| 1.0 / self.current.max(1.0))
    }
}

/// TFRC's weights, the newest interval's first (AVMRC §2.2).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// What is discounted keeps this part of its weight (RFC 5348 §5.5, THRESHOLD).
const LEAST_DISCOUNT: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn after(intervals: &[u32], current: u32) -> LossIntervals {
        let mut losses = LossIntervals::new();
        for packets in intervals {
            (0..*packets).for_each(|_| losses.on_received());
            losses.on_loss_event();
        }
        (0..current).for_each(|_| losses.on_received());
        losses
    }

    #[test]
    fn nothing_is_known_before_the_first_loss_event() {
        let losses = after(&[], 1000);
        assert_eq!((losses.average(), losses.long_term_rate(), losses.short_term_rate()), (None, None, None));
    }

    #[test]
    fn a_long_current_interval_lowers_the_rate_and_a_short_one_does_not_raise_it() {
        assert_eq!(after(&[100], 300).average(), Some(300.0));
        assert_eq!(after(&[100], 20).average(), Some(100.0));
        // (1·600 + 1·100) / 2 with the current interval, (100 + 200) / 2 without.
        assert_eq!(after(&[200, 100], 600).average(), Some(350.0));
    }

    #[test]
    fn the_short_term_rate_is_one_right_after_a_loss() {
        assert_eq!(after(&[100], 0).short_term_rate(), Some(1.0));
        assert_eq!(after(&[100], 50).short_term_rate(), Some(0.02));
    }

    #[test]
    fn packets_between_losses_of_one_event_count_for_no_interval() {
        let mut losses = after(&[100], 7);
        losses.on_loss_within_event();
        losses.on_received();
        assert_eq!((losses.current(), losses.newest()), (1.0, Some(100.0)));
    }

    #[test]
    fn a_seed_is_the_only_interval_until_losses_come() {
        let mut losses = after(&[], 40);
        losses.seed(3000.0);
        assert_eq!((losses.average(), losses.current()), (Some(3000.0), 40.0));
    }

    proptest! {
        #[test]
        fn the_average_is_equation_5_computed_directly(
            intervals in proptest::collection::vec(0u32..500, 1..20), current in 0u32..2000,
        ) {
            let w = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
            let s: Vec<f64> = core::iter::once(current).chain(intervals.iter().rev().copied()).map(f64::from).collect();
            let n = intervals.len().min(8);
            let total: f64 = w[..n].iter().sum();
            let old: f64 = (1..=n).map(|i| w[i - 1] * s[i]).sum::<f64>() / total;
            let new: f64 = (0..n).map(|i| w[i] * s[i]).sum::<f64>() / total;
            let average = after(&intervals, current).average().expect("there were loss events");
            prop_assert!((average - old.max(new)).abs() < 1e-9 * (1.0 + average));
        }
    }

    #[test]
    fn a_long_current_interval_discounts_the_older_ones() {
        let after = |current: f64| LossIntervals { history: [100.0; WEIGHTS.len()], known: 2, current };
        assert_eq!(LossIntervals::new().discounted_average(), None);
        assert_eq!([100.0, 200.0].map(|current| after(current).discounted_average()), [Some(100.0), Some(150.0)]);
        // (400 + 0.5 · 100) / 1.5, and with the least discount (1600 + 0.5 · 100) / 1.5.
        assert_eq!([400.0, 1600.0].map(|current| after(current).discounted_average()), [Some(300.0), Some(1100.0)]);
    }
}
