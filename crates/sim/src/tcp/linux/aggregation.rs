//! How much more than its bandwidth a path delivers at times, since links and hosts hold acknowledgements back and let them go
//! together. BBR's window has room for it.

use weir_units::Time;

use super::bbr::View;
use super::rate::Sample;

/// What was delivered beyond the bandwidth, in segments: the most of five to ten rounds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Aggregation {
    most: [u64; 2],
    place: usize,
    rounds: u32,
    began: Time,
    acked: u64,
}

impl Aggregation {
    pub(super) fn update(&mut self, view: &View, sample: &Sample, round_start: bool, bandwidth: f64, cwnd: u64) {
        if sample.acked == 0 || sample.delivered.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.place = 1 - self.place;
                self.most[self.place] = 0;
            }
        }
        let mut expected = (bandwidth * (view.now.since(self.began).as_nanos() as f64 / 1e9)) as u64;
        if self.acked <= expected || self.acked + sample.acked >= RESET_AT {
            (self.acked, self.began) = (0, view.now);
            expected = 0;
        }
        self.acked += sample.acked;
        let extra = (self.acked - expected).min(cwnd);
        self.most[self.place] = self.most[self.place].max(extra);
    }

    /// The sender was idle.
    pub(super) fn restart(&mut self, now: Time) {
        (self.acked, self.began) = (0, now);
    }

    /// Room in the window: none before the pipe is full, and no more than what 100 ms deliver.
    pub(super) fn allowance(&self, bandwidth: f64, filled: bool) -> u64 {
        if filled { self.most[0].max(self.most[1]).min((bandwidth * LONGEST_SECS) as u64) } else { 0 }
    }
}

const ROUNDS: u32 = 5;
const RESET_AT: u64 = 1 << 20;
const LONGEST_SECS: f64 = 0.1;
