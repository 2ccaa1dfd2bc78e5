//! Losses that belong together.

use core::time::Duration;

use weir_units::Time;

use super::loss_intervals::LossIntervals;

/// Groups losses into loss events and keeps the intervals between them.
///
/// A loss within a span (AVMRC §3.2: τ) of the *first* loss of an event belongs to that event.
#[derive(Debug, Clone)]
#[repr(C)] // What every packet needs is at its end.
pub struct LossEvents {
    span: Duration,
    first_loss: Option<Time>,
    intervals: LossIntervals,
}

impl LossEvents {
    /// No loss yet; losses within `span` of the first are one event.
    pub const fn new(span: Duration) -> LossEvents {
        LossEvents { span, first_loss: None, intervals: LossIntervals::new() }
    }

    /// A packet was received.
    pub fn on_received(&mut self) {
        self.intervals.on_received();
    }

    /// A loss was detected at `now`. `answered` says that the congestion behind it has been reacted to already, so that
    /// it belongs to the event before, however long ago that began. Returns whether a new event begins.
    pub fn on_loss(&mut self, now: Time, answered: bool) -> bool {
        let same = self.first_loss.is_some_and(|first| answered || now.since(first) < self.span);
        if same {
            self.intervals.on_loss_within_event();
        } else {
            self.first_loss = Some(now);
            self.intervals.on_loss_event();
        }
        !same
    }

    /// The intervals between the events.
    pub const fn intervals(&self) -> &LossIntervals {
        &self.intervals
    }

    /// The intervals, to seed them.
    pub const fn intervals_mut(&mut self) -> &mut LossIntervals {
        &mut self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_within_the_span_of_the_first_are_one_event() {
        let mut losses = LossEvents::new(Duration::from_millis(100));
        assert!(losses.on_loss(Time::from_millis(1000), false));
        assert!(!losses.on_loss(Time::from_millis(1060), false));
        assert!(!losses.on_loss(Time::from_millis(1099), false));
        assert!(
            losses.on_loss(Time::from_millis(1100), false),
            "the span counts from the first loss, not from the last"
        );
        assert_eq!(losses.intervals().known(), 2);
    }

    #[test]
    fn losses_of_answered_congestion_prolong_the_event() {
        let mut losses = LossEvents::new(Duration::from_millis(100));
        assert!(losses.on_loss(Time::from_millis(1000), false));
        losses.on_received();
        assert!(!losses.on_loss(Time::from_millis(2500), true));
        assert_eq!((losses.intervals().known(), losses.intervals().current()), (1, 0.0));
    }

    #[test]
    fn the_very_first_loss_is_an_event_even_if_congestion_was_answered() {
        assert!(LossEvents::new(Duration::from_millis(100)).on_loss(Time::from_millis(5), true));
    }
}
