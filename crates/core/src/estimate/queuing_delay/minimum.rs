//! The smallest of all values, or of those of about the last window.

use alloc::boxed::Box;
use core::time::Duration;

use weir_units::Time;

use super::DelayWindow;
use super::drift::{Drift, grown};

/// See the module's documentation.
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Minimum {
    smallest: Option<i64>,
    /// `None` where all values count.
    window: Option<Box<Window>>,
}

/// A window is ten buckets, and the oldest is forgotten whole. Its values are corrected for the drift of the clocks.
#[derive(Debug, Clone)]
struct Window {
    span: Duration,
    /// Number of the bucket that is being filled.
    bucket: u64,
    /// The smallest value of each, and when it came.
    buckets: [Option<(i64, Time)>; BUCKETS],
    drift: Drift,
}

/// How it stood before a value that may have to be taken back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    bucket: u64,
    smallest: Option<(i64, Time)>,
}

impl Minimum {
    pub(super) fn new(window: DelayWindow) -> Minimum {
        let window = Option::from(window)
            .map(|span| Box::new(Window { span, bucket: 0, buckets: [None; BUCKETS], drift: Drift::default() }));
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
                if current.is_none_or(|(smallest, _)| value < smallest) {
                    *current = Some((value, now));
                }
                if let Some(more) = window.drift.note(now, value) {
                    window.correct(now, more);
                }
                self.smallest = window.smallest();
            }
        }
    }

    pub(super) const fn smallest(&self) -> Option<i64> {
        self.smallest
    }

    /// The smallest value is larger by so much from now on: what was smaller is not any more.
    pub(super) fn raise(&mut self, by: i64) {
        self.smallest = self.smallest.map(|smallest| smallest + by);
        let Some((window, least)) = self.window.as_mut().zip(self.smallest) else { return };
        window.buckets.iter_mut().flatten().for_each(|(smallest, _)| *smallest = least.max(*smallest));
    }

    /// What values at `now` have to be corrected by for the drift of the clocks.
    #[inline]
    pub(super) fn correction(&self, now: Time) -> i64 {
        self.window.as_ref().map_or(0, |window| window.drift.correction(now))
    }

    /// How it stands at `now`, before a value of that time.
    pub(super) fn before(&mut self, now: Time) -> Before {
        match &mut self.window {
            None => Before { bucket: 0, smallest: self.smallest.map(|smallest| (smallest, now)) },
            Some(window) => {
                window.roll(now);
                Before { bucket: window.bucket, smallest: *window.current() }
            }
        }
    }

    /// Takes back what came since `before`.
    pub(super) fn take_back(&mut self, before: Before) {
        match &mut self.window {
            None => self.smallest = before.smallest.map(|(smallest, _)| smallest),
            Some(window) => {
                for bucket in (before.bucket..=window.bucket).take(BUCKETS) {
                    let smallest = if bucket == before.bucket { before.smallest } else { None };
                    window.buckets[(bucket % BUCKETS as u64) as usize] = smallest;
                }
                self.smallest = window.smallest().or(self.smallest);
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

    fn current(&mut self) -> &mut Option<(i64, Time)> {
        &mut self.buckets[(self.bucket % BUCKETS as u64) as usize]
    }

    fn smallest(&self) -> Option<i64> {
        self.buckets.iter().flatten().map(|(smallest, _)| *smallest).min()
    }

    /// Clocks drift apart by so many billionths more than was thought: the path has been empty at values that would be larger now.
    #[cold]
    fn correct(&mut self, now: Time, more: i64) {
        for (smallest, at) in self.buckets.iter_mut().flatten() {
            *smallest += grown(more, *at, now);
        }
    }
}

/// Ten of which hold the window, and one that is being filled.
const BUCKETS: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_raised_is_the_smallest_until_something_smaller_comes() {
        for window in [DelayWindow::Everything, DelayWindow::Moving(Duration::from_secs(10))] {
            let mut minimum = Minimum::new(window);
            for (second, value) in [(1, 30), (3, 100), (5, 80)] {
                minimum.update(Time::from_secs(second), value);
            }
            minimum.raise(50);
            assert_eq!(minimum.smallest(), Some(80), "{window:?}");
            minimum.update(Time::from_secs(6), 90);
            assert_eq!(minimum.smallest(), Some(80), "{window:?}");
            minimum.update(Time::from_secs(7), 70);
            assert_eq!(minimum.smallest(), Some(70), "{window:?}");
        }
    }

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
