//! After slow start: whether the channel given up was enough.

use core::time::Duration;

/// Watches the queue that slow start leaves behind (decision 11).
///
/// Slow start's last steps overlap with what they cause, so that the level below the one that failed may still be too
/// much. If the short-term delay then grows beyond a tolerance, so it is; if it shrinks by as much, it is not.
#[derive(Debug, Default)]
pub(super) struct Closing {
    is_open: bool,
    /// The delay from which growth counts: that of the first slot in which the last drop had taken effect.
    from: Option<Duration>,
}

impl Closing {
    /// Slow start has ended with a queue.
    pub(super) fn begin(&mut self) {
        *self = Closing { is_open: true, from: None };
    }

    /// The matter is settled, or overtaken by a loss event.
    pub(super) fn end(&mut self) {
        self.is_open = false;
    }

    /// Whether the queue has not yet been seen to shrink.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// A slot ended with this short-term delay, and nothing is on its way that would change it. Returns whether to drop
    /// a channel.
    pub(super) fn on_slot(&mut self, delay: Duration, tolerance: Duration) -> bool {
        if !self.is_open {
            return false;
        }
        let from = *self.from.get_or_insert(delay);
        if delay > from + tolerance {
            self.from = None;
            return true;
        }
        self.is_open = delay + tolerance >= from && delay > tolerance;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_queue_that_goes_on_growing_costs_another_channel_and_one_that_shrinks_settles_it() {
        let mut closing = Closing::default();
        assert!(!closing.on_slot(ms(90), ms(5)), "nothing is watched before slow start has ended");
        closing.begin();
        assert_eq!(
            [40, 44, 46, 50, 52].map(|delay| closing.on_slot(ms(delay), ms(5))),
            [false, false, true, false, false]
        );
        assert!(closing.is_open());
        assert_eq!([47, 44].map(|delay| closing.on_slot(ms(delay), ms(5))), [false, false]);
        assert!(!closing.is_open());
    }

    #[test]
    fn without_a_queue_there_is_nothing_to_watch() {
        let mut closing = Closing::default();
        closing.begin();
        assert!(!closing.on_slot(ms(3), ms(5)) && !closing.is_open());
    }
}
