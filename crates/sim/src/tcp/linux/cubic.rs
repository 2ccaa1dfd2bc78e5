//! CUBIC as Linux has it: RFC 9438's curve in whole segments and ticks, its Reno-friendly region, and HyStart.

use std::time::Duration;

use weir_units::Time;
use weir_units::math::pow;

use super::control::Window;

/// State of CUBIC.
#[derive(Debug, Clone, Default)]
pub(super) struct Cubic {
    /// Segments that must be acknowledged before the window grows by one.
    count: u64,
    last_max: u64,
    last_window: u64,
    last_update: Time,
    epoch: Option<Time>,
    /// When the curve is at its plateau, seconds after the epoch began.
    k: f64,
    plateau: u64,
    /// Segments acknowledged in this epoch that Reno's window has not grown for yet.
    acked: u64,
    /// Where Reno's window would be.
    reno: u64,
    /// The least round trip since the last time-out.
    delay_min: Option<Duration>,
    hystart: HyStart,
}

/// Slow start ends when round trips grow, or when a train of acknowledgements is as long as half the least round trip.
#[derive(Debug, Clone, Default)]
struct HyStart {
    is_over: bool,
    round_began: Time,
    last_ack: Time,
    round_ends: u64,
    samples: u32,
    least: Option<Duration>,
}

impl Cubic {
    /// New data is acknowledged outside of a reduction, and the window was the limit.
    pub(super) fn grow(&mut self, now: Time, acked: u64, window: &mut Window) {
        let left = window.slow_start(acked);
        if left > 0 {
            self.update(now, window.cwnd, left);
            window.grow_by(self.count, left);
        }
    }

    fn update(&mut self, now: Time, window: u64, acked: u64) {
        self.acked += acked;
        if self.last_window == window && now.since(self.last_update) <= UPDATE_EVERY && self.count > 0 {
            return;
        }
        // The curve is looked at once a tick at most.
        if self.epoch.is_none() || now.since(self.last_update) >= TICK {
            (self.last_window, self.last_update) = (window, now);
            self.follow_curve(now, window, acked);
        }
        let needed = window * RENO_SCALE / 8;
        while self.acked > needed {
            self.acked -= needed;
            self.reno += 1;
        }
        if self.reno > window {
            self.count = self.count.min(window / (self.reno - window));
        }
        // No more than half a window a round trip.
        self.count = self.count.max(2);
    }

    fn follow_curve(&mut self, now: Time, window: u64, acked: u64) {
        let began = *self.epoch.get_or_insert_with(|| {
            (self.acked, self.reno) = (acked, window);
            if self.last_max <= window {
                (self.k, self.plateau) = (0.0, window);
            } else {
                (self.k, self.plateau) = (pow((self.last_max - window) as f64 / C, 1.0 / 3.0), self.last_max);
            }
            now
        });
        let elapsed = now.since(began) + self.delay_min.unwrap_or_default();
        let t = elapsed.as_nanos() as f64 / 1e9 - self.k;
        let target = self.plateau as f64 + C * t * t * t;
        let growth = target.max(0.0) as u64;
        self.count = if growth > window { window / (growth - window) } else { 100 * window };
        if self.last_max == 0 {
            // Nothing is known of the path yet: 5 % a round trip.
            self.count = self.count.min(20);
        }
    }

    /// The threshold after a loss or a mark.
    pub(super) fn threshold(&mut self, window: u64) -> u64 {
        self.epoch = None;
        let shrinks = window < self.last_max;
        self.last_max = if shrinks { window * (SCALE + BETA) / (2 * SCALE) } else { window };
        (window * BETA / SCALE).max(2)
    }

    /// The retransmission timer ran out: everything is forgotten.
    pub(super) fn forget(&mut self, now: Time, next: u64) {
        *self = Cubic::default();
        self.hystart.begin(now, next);
    }

    /// A round trip was measured.
    pub(super) fn measured(&mut self, now: Time, rtt: Duration, window: &mut Window, una: u64, next: u64) {
        // Right after a recovery round trips are short, and say little.
        if self.epoch.is_some_and(|began| now.since(began) < Duration::from_secs(1)) {
            return;
        }
        let delay_min = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(delay_min);
        if !self.hystart.is_over
            && window.cwnd < window.ssthresh
            && self.hystart.ends(now, rtt, delay_min, window, una, next)
        {
            self.hystart.is_over = true;
            window.ssthresh = window.cwnd;
        }
    }
}

impl HyStart {
    fn begin(&mut self, now: Time, next: u64) {
        (self.round_began, self.last_ack, self.round_ends) = (now, now, next);
        (self.samples, self.least) = (0, None);
    }

    fn ends(&mut self, now: Time, rtt: Duration, delay_min: Duration, window: &Window, una: u64, next: u64) -> bool {
        if una > self.round_ends {
            self.begin(now, next);
        }
        if window.cwnd < LOW_WINDOW {
            return false;
        }
        if now.since(self.last_ack) <= TRAIN_GAP {
            self.last_ack = now;
            let train = now.since(self.round_began);
            if train > delay_min / 2 && train > delay_min / 2 + window.train_allowance() {
                return true;
            }
        }
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let patience = (delay_min / 8).clamp(LEAST_DELAY, MOST_DELAY);
        least > delay_min + patience
    }
}

/// C, segments per cubed second: 410 / 1024.
const C: f64 = 410.0 / 1024.0;
/// The window after a loss as a share of that before, in 1024ths.
const BETA: u64 = 717;
const SCALE: u64 = 1024;
/// Acknowledged segments, in eighths of the window, for which Reno's window with CUBIC's decrease grows by one:
/// (1 + β) / (3 · (1 − β)).
const RENO_SCALE: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// With an unchanged window the count is computed again after a 32nd of a second.
const UPDATE_EVERY: Duration = Duration::from_micros(31_250);
/// A tick of the kernel's clock at 250 Hz.
const TICK: Duration = Duration::from_millis(4);
const LOW_WINDOW: u64 = 16;
const TRAIN_GAP: Duration = Duration::from_millis(2);
const MIN_SAMPLES: u32 = 8;
const LEAST_DELAY: Duration = Duration::from_millis(4);
const MOST_DELAY: Duration = Duration::from_millis(16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_leaves_seven_tenths_and_a_second_one_lowers_the_plateau() {
        let mut cubic = Cubic::default();
        assert_eq!((cubic.threshold(100), cubic.last_max), (70, 100));
        // 70 · (1024 + 717) / 2048 = 59.5.
        assert_eq!((cubic.threshold(70), cubic.last_max), (49, 59));
    }

    #[test]
    fn the_window_follows_the_curve() {
        // W_max = 1000: K = (300 / 0.4)^(1/3) = 9.08 s.
        for (secs, expected) in [(3.0, 910.0), (9.08, 1000.0), (15.0, 1082.7)] {
            let mut cubic = Cubic::default();
            let mut window = Window::new(1000, 1_000_000);
            window.ssthresh = cubic.threshold(1000);
            window.cwnd = window.ssthresh;
            let mut at = 0.0;
            while at < secs {
                cubic.grow(Time::from_nanos((at * 1e9) as u64), 1, &mut window);
                at += 0.1 / window.cwnd as f64;
            }
            let cwnd = window.cwnd as f64;
            assert!((cwnd - expected).abs() < 0.015 * expected, "{cwnd} after {secs} s, and not {expected}");
        }
    }

    #[test]
    fn slow_start_ends_when_round_trips_grow_by_an_eighth() {
        let mut cubic = Cubic::default();
        let mut window = Window::new(32, 1_000_000);
        for (number, rtt) in [40, 44, 44, 44, 44, 44, 44, 44, 44, 46, 46].into_iter().enumerate() {
            cubic.measured(Time::from_millis(100 + 3 * number as u64), Duration::from_millis(rtt), &mut window, 0, 32);
        }
        assert!(window.ssthresh > 32, "the least of the round is what counts");
        for number in 0..9 {
            cubic.measured(Time::from_millis(200 + 3 * number), Duration::from_millis(46), &mut window, 33, 64);
        }
        assert_eq!(window.ssthresh, 32);
    }
}
