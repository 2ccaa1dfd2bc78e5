//! The largest sample of a window of rounds.

/// Keeps the best sample and the best since each of the last two (Kathleen Nichols' windowed filter).
#[derive(Debug, Clone, Copy)]
pub(super) struct MaxFilter {
    window: u64,
    /// Falling values, rising rounds.
    best: [(u64, f64); 3],
}

impl MaxFilter {
    pub(super) fn new(window: u64) -> MaxFilter {
        MaxFilter { window, best: [(0, 0.0); 3] }
    }

    pub(super) fn max(&self) -> f64 {
        self.best[0].1
    }

    pub(super) fn update(&mut self, round: u64, sample: f64) {
        let new = (round, sample);
        if sample >= self.best[0].1 || round - self.best[2].0 > self.window {
            self.best = [new; 3];
            return;
        }
        if sample >= self.best[1].1 {
            (self.best[1], self.best[2]) = (new, new);
        } else if sample >= self.best[2].1 {
            self.best[2] = new;
        }
        self.age(new);
    }

    fn age(&mut self, new: (u64, f64)) {
        let age = new.0 - self.best[0].0;
        if age > self.window {
            self.best = [self.best[1], self.best[2], new];
            if new.0 - self.best[0].0 > self.window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && age > self.window / 4 {
            (self.best[1], self.best[2]) = (new, new);
        } else if self.best[2].0 == self.best[1].0 && age > self.window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_sample_counts_for_its_window_and_no_longer() {
        let mut filter = MaxFilter::new(10);
        filter.update(1, 100.0);
        for round in 2..=11 {
            filter.update(round, 50.0);
            assert_eq!(filter.max(), 100.0, "round {round}");
        }
        filter.update(12, 50.0);
        assert_eq!(filter.max(), 50.0);
        filter.update(13, 70.0);
        assert_eq!(filter.max(), 70.0);
    }
}
