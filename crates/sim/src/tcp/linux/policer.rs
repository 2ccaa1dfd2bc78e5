//! BBR's long-term bandwidth: where two intervals in a row lose a fifth at the same rate, a policer drops what is above it.

use weir_units::Time;

use super::bbr::View;

/// What BBR knows of a policer. Rates are in segments per second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    /// The rate of the last interval, or of the policer.
    bandwidth: f64,
    is_found: bool,
    rounds: u32,
    began: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The policer's rate, if there is one.
    pub(super) fn rate(&self) -> Option<f64> {
        self.is_found.then_some(self.bandwidth)
    }

    /// An acknowledgement has come. True if the policer's rate has been used for long enough.
    pub(super) fn sample(
        &mut self,
        view: &View,
        losses: u64,
        app_limited: bool,
        round_start: bool,
        in_probe: bool,
    ) -> bool {
        if self.is_found {
            if in_probe && round_start {
                self.rounds += 1;
                if self.rounds >= MOST_ROUNDS_IN_USE {
                    *self = Policer::default();
                    self.begin(view);
                    return true;
                }
            }
            return false;
        }
        // The first loss says that the policer's tokens are used up.
        if !self.is_sampling {
            if losses == 0 {
                return false;
            }
            self.begin(view);
            self.is_sampling = true;
        }
        if app_limited || self.rounds > 4 * LEAST_ROUNDS {
            *self = Policer::default();
            self.begin(view);
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds >= LEAST_ROUNDS && losses > 0 {
            self.end_interval(view);
        }
        false
    }

    fn end_interval(&mut self, view: &View) {
        let (lost, delivered) = (view.lost - self.lost, view.delivered - self.delivered);
        let millis = view.now.since(self.began).as_millis();
        if delivered == 0 || lost * LOSS_SCALE < LOSS_THRESHOLD * delivered || millis < 1 {
            return;
        }
        let bandwidth = delivered as f64 * 1e3 / millis as f64;
        if self.bandwidth > 0.0 {
            let difference = (bandwidth - self.bandwidth).abs();
            if difference <= self.bandwidth / 8.0 || difference * view.segment_bytes <= LEAST_DIFFERENCE {
                self.bandwidth = f64::midpoint(bandwidth, self.bandwidth);
                (self.is_found, self.rounds) = (true, 0);
                return;
            }
        }
        self.bandwidth = bandwidth;
        self.begin(view);
    }

    fn begin(&mut self, view: &View) {
        (self.began, self.delivered, self.lost, self.rounds) = (view.now, view.delivered, view.lost, 0);
    }
}

/// Rounds of an interval.
const LEAST_ROUNDS: u32 = 4;
/// Rounds for which a policer's rate is used before bandwidth is probed again.
const MOST_ROUNDS_IN_USE: u32 = 48;
/// An interval with a loss rate of LOSS_THRESHOLD / LOSS_SCALE or more, a fifth, may be a policer's.
const LOSS_SCALE: u64 = 256;
const LOSS_THRESHOLD: u64 = 50;
/// Bytes per second by which rates that are the same may differ: 4 kbit/s.
const LEAST_DIFFERENCE: f64 = 500.0;
