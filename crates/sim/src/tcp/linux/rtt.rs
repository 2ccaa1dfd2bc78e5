//! Round trips and the retransmission time-out as Linux computes them: RFC 6298 with a clock of microseconds, a deviation that
//! rises at once and falls once a round trip, and a floor under the deviation and not under the time-out.

use std::time::Duration;

use weir_units::Time;

use crate::tcp::Timers;

/// Smoothed round trip, its deviation, the least round trip, and the time-out. Times are in microseconds.
#[derive(Debug, Clone)]
pub(super) struct Rtt {
    min_rto: i64,
    max_rto: i64,
    /// In eighths.
    srtt8: i64,
    /// In quarters, as the three that follow.
    mdev: i64,
    mdev_max: i64,
    rttvar: i64,
    /// The round trip in which `mdev_max` was the greatest ends when this is acknowledged.
    round_ends: u64,
    rto: i64,
    backoff: u32,
    min_rtt: Duration,
    min_rtt_at: Time,
}

impl Rtt {
    pub(super) fn new(timers: &Timers) -> Rtt {
        let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 16);
        Rtt {
            min_rto: micros(timers.min_rto),
            max_rto: micros(timers.max_rto),
            srtt8: 0,
            mdev: 0,
            mdev_max: 0,
            rttvar: 0,
            round_ends: 0,
            rto: micros(timers.initial_rto),
            backoff: 0,
            min_rtt: Duration::MAX,
            min_rtt_at: Time::ZERO,
        }
    }

    /// A round trip; `una` and `next` tell round trips apart.
    pub(super) fn sample(&mut self, rtt: Duration, una: u64, next: u64) {
        let micros = i64::try_from(rtt.as_micros()).unwrap_or(i64::MAX / 16).max(1);
        if self.srtt8 == 0 {
            self.srtt8 = micros << 3;
            self.mdev = micros << 1;
            self.rttvar = self.mdev.max(self.min_rto);
            self.mdev_max = self.rttvar;
            self.round_ends = next;
        } else {
            let error = micros - (self.srtt8 >> 3);
            self.srtt8 = (self.srtt8 + error).max(1);
            let mut step = error.abs() - (self.mdev >> 2);
            if error < 0 && step > 0 {
                // A round trip that falls says little of how far one may rise.
                step >>= 3;
            }
            self.mdev += step;
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if una > self.round_ends {
                if self.mdev_max < self.rttvar {
                    self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                }
                self.round_ends = next;
                self.mdev_max = self.min_rto;
            }
        }
        self.backoff = 0;
        self.rto = ((self.srtt8 >> 3) + self.rttvar).min(self.max_rto);
    }

    /// The least round trip of five minutes.
    pub(super) fn sample_min(&mut self, now: Time, rtt: Duration) {
        if rtt <= self.min_rtt || now.since(self.min_rtt_at) > MIN_RTT_WINDOW {
            (self.min_rtt, self.min_rtt_at) = (rtt, now);
        }
    }

    /// The timer ran out.
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
        self.rto = (self.rto * 2).min(self.max_rto);
    }

    pub(super) fn has_sample(&self) -> bool {
        self.srtt8 > 0
    }

    pub(super) fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt8 as u64 * 125)
    }

    pub(super) fn rto(&self) -> Duration {
        Duration::from_micros(self.rto as u64)
    }

    /// `Duration::MAX` before the first sample.
    pub(super) fn min_rtt(&self) -> Duration {
        self.min_rtt
    }
}

/// `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_under_the_deviation() {
        let mut rtt = Rtt::new(&Timers::TODAY);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(Duration::from_millis(40), 1, 2);
        // The deviation of a first sample is half of it, times four 80 ms: below 200 ms.
        assert_eq!((rtt.srtt(), rtt.rto()), (Duration::from_millis(40), Duration::from_millis(240)));
        for _ in 0..2 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Duration::from_millis(960));
        rtt.sample(Duration::from_millis(40), 2, 3);
        assert_eq!(rtt.rto(), Duration::from_millis(240));
    }

    #[test]
    fn the_deviation_rises_at_once_and_falls_slowly() {
        let mut rtt = Rtt::new(&Timers::TODAY);
        rtt.sample(Duration::from_millis(100), 1, 10);
        // Twice 100 ms is the floor; the next round trip is 300 ms longer.
        rtt.sample(Duration::from_millis(400), 2, 10);
        // SRTT 137.5 ms; mdev (in quarters) 200 + 300 - 50 = 450 ms.
        assert_eq!(rtt.rto(), Duration::from_micros(137_500 + 450_000));
        rtt.sample(Duration::from_millis(137), 11, 20);
        assert!(rtt.rto() > Duration::from_millis(500), "{:?}", rtt.rto());
    }
}
