//! What acknowledgements tell of the round-trip time: SRTT and the time-out (§III), FRTT over XRTT (§III-B).

use core::time::Duration;

use super::config::{FineGrain, Timing};
use crate::estimate::Ewma;

/// Averages of round trips; seconds.
#[derive(Debug, Clone)]
pub(super) struct RoundTrip {
    timing: Timing,
    smoothed: f64,
    variation: f64,
    sampled: bool,
    fine: Option<(Ewma, Ewma)>,
}

impl RoundTrip {
    pub(super) fn new(timing: Timing, fine: Option<FineGrain>) -> RoundTrip {
        let initial = timing.initial.as_secs_f64();
        let average = |gain| if timing.first_replaces { Ewma::new(gain) } else { Ewma::starting_at(gain, initial) };
        let fine = fine.map(|fine| (average(fine.short_gain), average(fine.long_gain)));
        RoundTrip { timing, smoothed: initial, variation: 0.0, sampled: false, fine }
    }

    /// Takes a sample.
    pub(super) fn sample(&mut self, round_trip: Duration) {
        let sample = round_trip.as_secs_f64();
        if !self.sampled && self.timing.first_replaces {
            self.smoothed = sample;
            self.variation = sample / 2.0;
        } else {
            let distance = sample - self.smoothed;
            self.smoothed += self.timing.gain * distance;
            self.variation += self.timing.variation_gain * (distance.abs() - self.variation);
        }
        self.sampled = true;
        if let Some((short, long)) = &mut self.fine {
            short.update(sample);
            long.update(sample);
        }
    }

    /// The path may be another: the next sample is the first.
    pub(super) fn forget(&mut self) {
        self.sampled = false;
        if let Some((short, long)) = &mut self.fine {
            short.forget();
            long.forget();
        }
    }

    /// SRTT, seconds; above 0.
    pub(super) fn smoothed(&self) -> f64 {
        self.smoothed.max(1e-6)
    }

    /// After this long an acknowledgement is overdue.
    pub(super) fn timeout(&self) -> Duration {
        if !self.sampled {
            return self.timing.initial;
        }
        let beside = (4.0 * self.variation).max(self.timing.granularity.as_secs_f64());
        Duration::from_secs_f64(self.timing.timeout_weight * self.smoothed + beside)
    }

    /// FRTT / XRTT, by which the gap is multiplied (Eq. 7); 1 without fine-grain adaptation.
    pub(super) fn feedback(&self) -> f64 {
        let averages = self.fine.as_ref().and_then(|(short, long)| short.average().zip(long.average()));
        averages.filter(|(_, long)| *long > 0.0).map_or(1.0, |(short, long)| short / long)
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    use crate::definition::Habitat;

    fn estimator() -> RoundTrip {
        let config = Config::new(Habitat::Lab);
        RoundTrip::new(config.timing, config.fine_grain)
    }

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_first_sample_gives_srtt_and_a_timeout_of_three_times_it() {
        let mut estimator = estimator();
        assert_eq!(estimator.timeout(), Duration::from_secs(1));
        estimator.sample(millis(100));
        assert!((estimator.smoothed() - 0.1).abs() < 1e-12);
        assert_eq!(estimator.timeout(), millis(300));
    }

    #[test]
    fn a_second_sample_moves_srtt_by_an_eighth_and_the_variation_by_a_quarter() {
        let mut estimator = estimator();
        estimator.sample(millis(100));
        estimator.sample(millis(180));
        // SRTT 100 + 80/8 = 110 ms; variation 50 + (80 − 50)/4 = 57.5 ms.
        assert!((estimator.smoothed() - 0.110).abs() < 1e-12);
        assert_eq!(estimator.timeout(), millis(340));
    }

    #[test]
    fn without_variation_the_timeout_is_still_a_granularity_above_srtt() {
        let mut estimator = estimator();
        for _ in 0..200 {
            estimator.sample(millis(100));
        }
        assert!((estimator.timeout().as_secs_f64() - 0.2).abs() < 1e-6);
    }

    #[test]
    fn the_gap_grows_at_once_when_round_trips_do_and_forgets_in_the_long_run() {
        let mut estimator = estimator();
        assert!((estimator.feedback() - 1.0).abs() < 1e-12);
        estimator.sample(millis(100));
        assert!((estimator.feedback() - 1.0).abs() < 1e-12);
        estimator.sample(millis(200));
        // FRTT 190 ms, XRTT 101 ms.
        assert!((estimator.feedback() - 190.0 / 101.0).abs() < 1e-9);
        for _ in 0..2_000 {
            estimator.sample(millis(200));
        }
        assert!((estimator.feedback() - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_forgotten_path_starts_over_with_the_next_sample() {
        let mut estimator = estimator();
        estimator.sample(millis(100));
        estimator.forget();
        estimator.sample(millis(500));
        assert!((estimator.smoothed() - 0.5).abs() < 1e-12);
        assert!((estimator.feedback() - 1.0).abs() < 1e-12);
    }
}
