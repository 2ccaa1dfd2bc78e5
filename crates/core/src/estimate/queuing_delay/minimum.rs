//! The smallest of all values, or of those of about the last window.

use alloc::boxed::Box;
use core::time::Duration;

use weir_units::Time;

use super::DelayWindow;

/// See the module's documentation.
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Minimum {
    smallest: Option<i64>,
    /// `None` where all values count.
    window: Option<Box<Window>>,
}

/// A window is ten buckets, and the oldest is forgotten whole.
#[derive(Debug, Clone)]
struct Window {
    span: Duration,
    /// Number of the bucket that is being filled.
    bucket: u64,
    /// The smallest value of each.
    buckets: [Option<i64>; BUCKETS],
}

/// How it stood before a value that may have to be taken back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    bucket: u64,
    smallest: Option<i64>,
}

impl Minimum {
    pub(super) fn new(window: DelayWindow) -> Minimum {
        let window = Option::from(window).map(|span| Box::new(Window { span, bucket: 0, buckets: [None; BUCKETS] }));
        Minimum { smallest: None, window }
    }

    pub(super) fn window(&self) -> DelayWindow {
        DelayWindow::from(self.window.as_ref().map(|window| window.span))
    }

    pub(super) fn update(&mut self, now: Time, value: i64) {
        match &mut self.window {
            None => self.smallest = Some(self.smallest.map_or(value, |smallest| smallest.min(value))),
            Some(window) => {
                window.roll(now);
                let current = window.current();
                *current = Some(current.map_or(value, |smallest| smallest.min(value)));
                self.smallest = window.smallest();
            }
        }
    }

    pub(super) const fn smallest(&self) -> Option<i64> {
        self.smallest
    }

    /// How it stands at `now`, before a value of that time.
    pub(super) fn before(&mut self, now: Time) -> Before {
        match &mut self.window {
            None => Before { bucket: 0, smallest: self.smallest },
            Some(window) => {
                window.roll(now);
                Before { bucket: window.bucket, smallest: *window.current() }
            }
        }
    }

    /// Takes back what came at the time of `before`. What has come since is not below that.
    pub(super) fn take_back(&mut self, before: Before) {
        match &mut self.window {
            None => self.smallest = before.smallest,
            Some(window) => {
                if window.bucket - before.bucket < BUCKETS as u64 {
                    window.buckets[(before.bucket % BUCKETS as u64) as usize] = before.smallest;
                }
                self.smallest = window.smallest();
            }
        }
    }
}

impl Window {
    /// Goes on to the bucket of `now`.
    fn roll(&mut self, now: Time) {
        let bucket = now.as_nanos() / (self.span.as_nanos() as u64 / (BUCKETS as u64 - 1)).max(1);
        // After more than a whole window of silence every bucket is cleared.
        for passed in (self.bucket + 1..=bucket).take(BUCKETS) {
            self.buckets[(passed % BUCKETS as u64) as usize] = None;
        }
        self.bucket = self.bucket.max(bucket);
    }

    fn current(&mut self) -> &mut Option<i64> {
        &mut self.buckets[(self.bucket % BUCKETS as u64) as usize]
    }

    fn smallest(&self) -> Option<i64> {
        self.buckets.iter().flatten().min().copied()
    }
}

/// Ten of which hold the window, and one that is being filled.
const BUCKETS: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_taken_back_never_was() {
        for window in [DelayWindow::Everything, DelayWindow::Moving(Duration::from_secs(10))] {
            let mut minimum = Minimum::new(window);
            minimum.update(Time::from_secs(1), 30);
            let before = minimum.before(Time::from_millis(2_500));
            minimum.update(Time::from_millis(2_500), -9);
            assert_eq!(minimum.smallest(), Some(-9));
            minimum.update(Time::from_millis(2_600), 40);
            minimum.take_back(before);
            assert_eq!(minimum.smallest(), Some(30), "{window:?}");
        }
    }

    proptest! {
        #[test]
        fn the_moving_minimum_lies_between_those_of_its_window_and_of_a_tenth_more(
            values in proptest::collection::vec((0u64..400, -1000i64..1000), 1..200),
        ) {
            let window = Duration::from_secs(1);
            let mut minimum = Minimum::new(DelayWindow::Moving(window));
            let mut now = 0;
            let mut all: alloc::vec::Vec<(u64, i64)> = alloc::vec::Vec::new();
            for (gap_ms, value) in values {
                now += gap_ms;
                minimum.update(Time::from_millis(now), value);
                all.push((now, value));
                let over = |span: u64| all.iter().filter(|(at, _)| at + span > now).map(|(_, value)| *value).min();
                let smallest = minimum.smallest();
                prop_assert!(smallest <= over(1000) && smallest >= over(1101), "{:?}", smallest);
            }
        }
    }
}
