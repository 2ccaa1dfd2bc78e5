//! Whether a packet was sent since a given moment.

use weir_units::Time;

use crate::estimate::QueuingDelay;

/// Whether a packet that arrives at `now` was sent so late that over the empty path it would have arrived at `time` or later.
///
/// A packet that was sent before a join, and stood in a queue meanwhile, is followed by a gap that is no loss; one that was
/// sent before the network heard of a decrease tells of what the decrease has answered. Nothing tells when a packet was sent
/// that is the first of all, or whose clock has jumped: these count as sent since.
#[inline]
pub(crate) fn was_sent_since(delay: &QueuingDelay, time: Time, now: Time, clock_micros: u64) -> bool {
    let has_jumped = delay.difference(now, clock_micros).is_none();
    has_jumped || delay.micros_past_empty_path(now, clock_micros, time).is_none_or(|micros| micros <= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::DelayWindow;

    /// Whether a packet that was sent at `sent` and arrives at `now` was sent since 500, in milliseconds; the empty path
    /// takes 20.
    fn is_since(now: u64, sent: u64) -> bool {
        let mut delay = QueuingDelay::new(0.25, 0.05, DelayWindow::Everything);
        delay.on_packet(Time::from_millis(120), 0, 100_000);
        was_sent_since(&delay, Time::from_millis(500), Time::from_millis(now), sent * 1_000)
    }

    #[test]
    fn what_stood_in_a_queue_was_sent_before() {
        assert!(is_since(500, 480) && !is_since(500, 479));
        assert!(is_since(900, 480) && !is_since(900, 479), "however long it stood there");
    }

    #[test]
    fn a_clock_that_jumps_does_not_tell() {
        assert!(!is_since(1_900, 400), "a queue of 1.5 s after as long a silence");
        assert!(is_since(2_000, 400), "a step of 1.6 s");
    }

    #[test]
    fn the_first_packet_does_not_tell() {
        let delay = QueuingDelay::new(0.25, 0.05, DelayWindow::Everything);
        assert!(was_sent_since(&delay, Time::from_millis(500), Time::from_millis(500), 0));
    }
}
