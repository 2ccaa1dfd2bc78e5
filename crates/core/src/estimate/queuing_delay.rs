//! One-way queuing delay from the difference of two clocks that need not agree.

use alloc::boxed::Box;
use core::time::Duration;

use weir_units::Time;

use super::ewma::Ewma;

/// Over what the smallest timestamp difference, which stands for the empty path, is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayWindow {
    /// All packets (the paper).
    Everything,
    /// The packets of about this span, which the estimator divides into ten. Clocks that drift apart by d seconds a second
    /// falsify the delay by at most d times this, and so does a path that has become longer, for this long.
    Moving(Duration),
}

/// `None` is everything.
impl From<Option<Duration>> for DelayWindow {
    fn from(span: Option<Duration>) -> DelayWindow {
        span.map_or(DelayWindow::Everything, DelayWindow::Moving)
    }
}

impl From<DelayWindow> for Option<Duration> {
    fn from(window: DelayWindow) -> Option<Duration> {
        match window {
            DelayWindow::Everything => None,
            DelayWindow::Moving(span) => Some(span),
        }
    }
}

/// A timestamp difference: the receiver's clock at arrival less the sender's at departure, in microseconds since some
/// origin of the estimator's own, which stays the same until it restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimestampDifference(pub i64);

/// What a packet's timestamps were good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelaySample {
    /// They are part of the averages.
    Taken(TimestampDifference),
    /// They jumped and have been confirmed: the estimator has started again with them.
    Restarted(TimestampDifference),
    /// They jumped and are not believed yet.
    Ignored,
}

/// Short-term and long-term average one-way queuing delay (AVMRC §3.2).
///
/// Each is the average timestamp difference (TSD) less the smallest one seen. The clocks may be at any offset: differences
/// are taken modulo 2^32 microseconds and continued from packet to packet. A jump of more than 10 s is no queue but
/// rubbish, or, if a second packet confirms it, a clock that was set, or another sender: the estimator starts again.
///
/// Example: TSDs of 100, 100 and 140 ms with a gain of 0.25 give a short-term delay of 10 ms.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct QueuingDelay {
    /// The last difference: on the wire's circle, and continued.
    last: Option<(u32, i64)>,
    /// Where the last packet jumped to, on the wire's circle.
    jumped_to: Option<u32>,
    short: Ewma,
    minimum: Minimum,
    long: Ewma,
}

impl QueuingDelay {
    /// Before the first packet. `short_gain` is the weight of a packet's TSD, `long_gain` that of the short-term average
    /// at the end of each slot.
    pub fn new(short_gain: f64, long_gain: f64, window: DelayWindow) -> QueuingDelay {
        QueuingDelay {
            short: Ewma::new(short_gain),
            long: Ewma::new(long_gain),
            minimum: Minimum::new(window),
            last: None,
            jumped_to: None,
        }
    }

    /// A packet that left at the sender's `clock_micros` arrived at `now`.
    pub fn on_packet(&mut self, now: Time, clock_micros: u64) -> DelaySample {
        let wire = wire_difference(now, clock_micros);
        let step = self.last.map_or(0, |(last, _)| i64::from(wire.wrapping_sub(last) as i32));
        let is_jump = step.abs() > LARGEST_STEP_MICROS;
        if is_jump {
            let confirmed = self.jumped_to.is_some_and(|jumped_to| is_near(wire, jumped_to));
            if !confirmed {
                self.jumped_to = Some(wire);
                return DelaySample::Ignored;
            }
            *self = QueuingDelay::new(self.short.gain(), self.long.gain(), self.minimum.window());
        }
        self.jumped_to = None;
        let tsd = self.last.map_or(0, |(_, last)| last + step);
        self.last = Some((wire, tsd));
        self.short.update(tsd as f64);
        self.minimum.update(now, tsd);
        let tsd = TimestampDifference(tsd);
        if is_jump { DelaySample::Restarted(tsd) } else { DelaySample::Taken(tsd) }
    }

    /// A slot ended: the short-term average enters the long-term one.
    pub fn on_slot(&mut self) {
        if let Some(short) = self.short.average() {
            self.long.update(short);
        }
    }

    /// Short-term average queuing delay; zero before the first packet.
    pub fn short_term(&self) -> Duration {
        self.above_minimum(self.short.average())
    }

    /// Long-term average queuing delay; the short-term one before the first slot ended.
    pub fn long_term(&self) -> Duration {
        self.above_minimum(self.long.average().or(self.short.average()))
    }

    /// The smallest TSD in the window: the path without queue. `None` before the first packet.
    pub fn minimum(&self) -> Option<TimestampDifference> {
        self.minimum.smallest().map(TimestampDifference)
    }

    /// The TSD of a packet that left at `clock_micros` and arrived at `now`, without taking it into account. `None` if it
    /// would make the estimator start again.
    pub fn difference(&self, now: Time, clock_micros: u64) -> Option<TimestampDifference> {
        let Some((last_wire, last)) = self.last else { return Some(TimestampDifference(0)) };
        let step = i64::from(wire_difference(now, clock_micros).wrapping_sub(last_wire) as i32);
        (step.abs() <= LARGEST_STEP_MICROS).then_some(TimestampDifference(last + step))
    }

    /// Microseconds from the moment at which the packet that left at `clock_micros` would have arrived over the empty path, to
    /// `time`; negative if `time` is before it. The packet arrived around `now`, within half of the 71 minutes after which
    /// clocks repeat; `time` may be any. `None` before the first packet.
    pub fn micros_past_empty_path(&self, now: Time, clock_micros: u64, time: Time) -> Option<i64> {
        let (last_wire, last) = self.last?;
        let step = i64::from(wire_difference(now, clock_micros).wrapping_sub(last_wire) as i32);
        let waited = last + step - self.minimum()?.0;
        Some(waited - (now.as_micros() as i64 - time.as_micros() as i64))
    }

    fn above_minimum(&self, average: Option<f64>) -> Duration {
        match (average, self.minimum.smallest()) {
            (Some(average), Some(minimum)) => {
                Duration::from_nanos(((average - minimum as f64).max(0.0) * 1_000.0) as u64)
            }
            _ => Duration::ZERO,
        }
    }
}

/// The smallest of all values, or of those of about the last window.
#[derive(Debug, Clone)]
#[repr(C)]
struct Minimum {
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

impl Minimum {
    fn new(window: DelayWindow) -> Minimum {
        let window = Option::from(window).map(|span| Box::new(Window { span, bucket: 0, buckets: [None; BUCKETS] }));
        Minimum { smallest: None, window }
    }

    fn window(&self) -> DelayWindow {
        DelayWindow::from(self.window.as_ref().map(|window| window.span))
    }

    fn update(&mut self, now: Time, value: i64) {
        match &mut self.window {
            None => self.smallest = Some(self.smallest.map_or(value, |smallest| smallest.min(value))),
            Some(window) => {
                window.update(now, value);
                self.smallest = window.buckets.iter().flatten().min().copied();
            }
        }
    }

    const fn smallest(&self) -> Option<i64> {
        self.smallest
    }
}

impl Window {
    fn update(&mut self, now: Time, value: i64) {
        let bucket = now.as_nanos() / (self.span.as_nanos() as u64 / (BUCKETS as u64 - 1)).max(1);
        // After more than a whole window of silence every bucket is cleared.
        for passed in (self.bucket + 1..=bucket).take(BUCKETS) {
            self.buckets[(passed % BUCKETS as u64) as usize] = None;
        }
        self.bucket = self.bucket.max(bucket);
        let current = &mut self.buckets[(self.bucket % BUCKETS as u64) as usize];
        *current = Some(current.map_or(value, |smallest| smallest.min(value)));
    }
}

/// The difference of the two clocks on the wire's circle.
fn wire_difference(now: Time, clock_micros: u64) -> u32 {
    (now.as_micros() as u32).wrapping_sub(clock_micros as u32)
}

fn is_near(wire: u32, other: u32) -> bool {
    i64::from(wire.wrapping_sub(other) as i32).abs() <= LARGEST_STEP_MICROS
}

/// Ten of which hold the window, and one that is being filled.
const BUCKETS: usize = 11;
/// No queue is this long.
const LARGEST_STEP_MICROS: i64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimator(window: DelayWindow) -> QueuingDelay {
        QueuingDelay::new(0.25, 0.05, window)
    }

    fn ms(delay: Duration) -> f64 {
        delay.as_secs_f64() * 1e3
    }

    #[test]
    fn the_short_term_average_weighs_each_packet_by_a_quarter() {
        let mut delay = estimator(DelayWindow::Everything);
        for (sent, arrived) in [(0, 100), (10, 110), (20, 160)] {
            delay.on_packet(Time::from_millis(arrived), sent * 1000);
        }
        assert_eq!(ms(delay.short_term()), 10.0);
        delay.on_slot();
        assert_eq!(ms(delay.long_term()), 10.0, "the first slot's average is the first long-term one");
    }

    #[test]
    fn clock_offsets_cancel_also_where_the_wire_s_clock_wraps() {
        for offset in [0u64, 1 << 31, (1 << 32) - 15_000, 3_900_000_000_000_000] {
            let mut delay = estimator(DelayWindow::Everything);
            for (sent, arrived) in [(0u64, 100), (10, 110), (20, 160)] {
                delay.on_packet(Time::from_millis(arrived), sent * 1000 + offset);
            }
            assert_eq!(ms(delay.short_term()), 10.0, "offset {offset}");
        }
    }

    #[test]
    fn a_set_clock_starts_the_estimator_anew_at_its_second_packet_and_rubbish_does_not() {
        let mut delay = estimator(DelayWindow::Everything);
        let mut at = |second: u64, clock: u64| delay.on_packet(Time::from_secs(second), clock);
        let tsd = TimestampDifference;
        assert_eq!(at(1, 0), DelaySample::Taken(tsd(0)));
        assert_eq!(at(10, 2_000_000), DelaySample::Taken(tsd(7_000_000)), "seven seconds may be a queue");
        assert_eq!(at(10, 600_000_000), DelaySample::Ignored);
        assert_eq!(at(10, 2_000_000), DelaySample::Taken(tsd(7_000_000)));
        assert_eq!(at(10, 600_000_000), DelaySample::Ignored);
        assert_eq!(at(11, 601_000_000), DelaySample::Restarted(tsd(0)));
        assert_eq!(delay.short_term(), Duration::ZERO);
    }

    #[test]
    fn a_drifting_clock_is_forgotten_with_the_window() {
        // The receiver's clock gains 1 ms a second (ten times worse than bad crystals).
        let mut delay = estimator(DelayWindow::Moving(Duration::from_secs(10)));
        for second in 0..1000u64 {
            delay.on_packet(Time::from_micros(second * 1_001_000), second * 1_000_000);
        }
        assert!(ms(delay.short_term()) <= 12.0, "{:?}", delay.short_term());
        assert!(ms(delay.short_term()) >= 4.0, "the drift must show: {:?}", delay.short_term());
    }

    #[test]
    fn the_moving_minimum_rises_when_the_path_grows() {
        let mut delay = estimator(DelayWindow::Moving(Duration::from_secs(10)));
        delay.on_packet(Time::from_millis(50), 0);
        for second in 1..12u64 {
            delay.on_packet(Time::from_millis(second * 1000 + 80), second * 1_000_000);
        }
        assert_eq!(delay.minimum(), Some(TimestampDifference(30_000)));
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
