//! The retransmission timer (RFC 6298), in the integers of the BSD code that ns-2 took over.

use std::time::Duration;

use weir_units::Time;

use super::Timers;

/// Smoothed round-trip time, its variation, and the time-out that follows.
///
/// Round trips are counted in ticks of a clock, as many as it showed between sending and acknowledgement. SRTT has three
/// bits behind the point and RTTVAR two. RTTVAR is never below a quarter of a tick, which is RFC 6298's `max(G, 4·RTTVAR)`.
#[derive(Debug, Clone)]
pub(super) struct RttEstimator {
    granularity: u64,
    /// How far the clock was into a tick when the run began.
    phase: u64,
    min_rto: u64,
    max_rto: u64,
    /// SRTT in eighths of a tick; zero before the first sample.
    srtt: u64,
    /// RTTVAR in quarters of a tick.
    rttvar: u64,
    /// Not backed off, not limited; nanoseconds.
    base: u64,
    backoff: u32,
    /// `base` limited and backed off, nanoseconds.
    rto: u64,
}

impl RttEstimator {
    /// `phase` is uniform in [0, 1): where in a tick the clock begins.
    pub(super) fn new(timers: &Timers, phase: f64) -> RttEstimator {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let granularity = nanos(timers.granularity).max(1);
        let mut estimator = RttEstimator {
            granularity,
            phase: (phase * granularity as f64) as u64,
            min_rto: nanos(timers.min_rto),
            max_rto: nanos(timers.max_rto),
            srtt: 0,
            rttvar: 0,
            base: nanos(timers.initial_rto),
            backoff: 0,
            rto: 0,
        };
        estimator.update_rto();
        estimator
    }

    /// What was sent at `sent` is acknowledged (RFC 6298 §2.2, §2.3); ends the back-off (§5.7).
    pub(super) fn sample(&mut self, sent: Time, now: Time) {
        let tick = |at: Time| (at.as_nanos() + self.phase) / self.granularity;
        let rtt = (tick(now) - tick(sent)).max(1);
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.rttvar = rtt << 1;
        } else {
            let smoothed = self.srtt >> 3;
            self.srtt = (self.srtt + rtt - smoothed).max(1);
            self.rttvar = (self.rttvar + rtt.abs_diff(smoothed) - (self.rttvar >> 2)).max(1);
        }
        self.base = (((self.rttvar << 3) + self.srtt) >> 3) * self.granularity;
        self.backoff = 0;
        self.update_rto();
    }

    /// The timer ran out: it doubles (§5.5).
    ///
    /// After the fourth time in a row the old SRTT is worth nothing and is forgotten, as BSD does; §5.7 allows it.
    pub(super) fn back_off(&mut self) {
        if self.rto < self.max_rto {
            self.backoff += 1;
        }
        if self.backoff > 3 {
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
        self.update_rto();
    }

    fn update_rto(&mut self) {
        let doubled = self.base.max(self.min_rto).saturating_mul(1 << self.backoff.min(32));
        self.rto = doubled.min(self.max_rto).max(2 * self.granularity);
    }

    /// When the timer runs out if it starts at `now`.
    #[inline]
    pub(super) fn timeout_from(&self, now: Time) -> Time {
        Time::from_nanos(now.as_nanos().saturating_add(self.rto))
    }

    /// The time-out.
    pub(super) fn rto(&self) -> Duration {
        Duration::from_nanos(self.rto)
    }

    /// The smoothed round-trip time; zero before the first sample.
    pub(super) fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt * self.granularity / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn the_first_sample_gives_three_round_trips() {
        // SRTT = R, RTTVAR = R / 2, RTO = R + 4 · R / 2 (RFC 6298 §2.2).
        let mut rtt = RttEstimator::new(&Timers::TODAY, 0.0);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(millis(0), millis(100));
        assert_eq!((rtt.srtt(), rtt.rto()), (Duration::from_millis(100), Duration::from_millis(300)));
    }

    #[test]
    fn later_samples_move_it_by_an_eighth_and_a_quarter() {
        let mut rtt = RttEstimator::new(&Timers::TODAY, 0.0);
        rtt.sample(millis(0), millis(80));
        rtt.sample(millis(100), millis(260));
        // SRTT = 80 + 80 / 8 = 90; RTTVAR = 40 + (80 − 40) / 4 = 50; RTO = 90 + 200.
        assert_eq!((rtt.srtt(), rtt.rto()), (Duration::from_millis(90), Duration::from_millis(290)));
    }

    #[test]
    fn a_coarse_clock_counts_its_ticks() {
        let mut rtt = RttEstimator::new(&Timers::NS2, 0.5);
        // The clock shows new ticks at 5, 15, … ms: two between 14 and 26 ms.
        rtt.sample(millis(14), millis(26));
        assert_eq!(rtt.srtt(), Duration::from_millis(20));
        assert_eq!(rtt.rto(), Duration::from_millis(200));
    }

    #[test]
    fn backing_off_doubles_up_to_the_most_and_a_sample_ends_it() {
        let mut rtt = RttEstimator::new(&Timers::NS2, 0.0);
        rtt.sample(millis(0), millis(100));
        let mut seen = Vec::new();
        for _ in 0..9 {
            rtt.back_off();
            seen.push(rtt.rto().as_millis());
        }
        assert_eq!(seen, [600, 1200, 2400, 4800, 9600, 19200, 38400, 60000, 60000]);
        rtt.sample(millis(1000), millis(1100));
        assert!(rtt.rto() < Duration::from_secs(1));
    }
}
