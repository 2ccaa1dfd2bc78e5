//! In which order a window's blocks take their turns, and which turns are whose channel's.
//!
//! A cycle over a window has as many slots as the window has source symbols. A block of K symbols has K of them, in
//! short runs spread evenly over the cycle, so any stretch of the cycle visits every block in proportion. Each channel
//! walks the cycle at a speed in proportion to its rate, from where the channels below it would end after one cycle: so
//! in each first cycle all channels together visit every slot exactly once, and whatever channels a receiver takes, it
//! sees all blocks evenly from first to last.

/// One cycle in the units of progress.
pub(crate) const CYCLE: u64 = 1 << 20;

/// Where the channels start in a cycle and how fast they walk: cumulative shares of the rate, in units of 2^-32.
#[derive(Debug, Clone)]
pub(crate) struct Shares(Vec<u64>);

impl Shares {
    /// Shares in proportion to `rates`; equal ones if all rates are zero.
    pub(crate) fn new(rates: &[u64]) -> Shares {
        let even = vec![1; rates.len().max(1)];
        let rates = if rates.iter().all(|rate| *rate == 0) { &even } else { rates };
        let total: u128 = rates.iter().map(|rate| u128::from(*rate)).sum();
        let mut sum = 0u128;
        let mut cumulative = vec![0];
        for rate in rates {
            sum += u128::from(*rate);
            cumulative.push(((sum << 32) / total) as u64);
        }
        Shares(cumulative)
    }

    pub(crate) fn channels(&self) -> usize {
        self.0.len() - 1
    }

    /// The last moment from `after` on and before `before` at which the receivers of some level have all they need: those
    /// of a share s after 1/s cycles, and a little more for losses.
    pub(crate) fn last_finish(&self, after: u64, before: u64) -> Option<u64> {
        let finish = |share: &u64| CYCLE / 100 * LOSS_PERCENT * (1 << 32) / (*share).max(1 << 12);
        self.0[1..].iter().map(finish).filter(|at| (after..before).contains(at)).max()
    }

    /// The slot that `channel` has reached after `progress` cycles, counted on from cycle to cycle.
    ///
    /// `(start + progress · share) · slots`: exact at whole cycles, where one channel's end is the next one's start.
    pub(crate) fn position(&self, channel: usize, progress: u64, slots: u64) -> u64 {
        let start = u128::from(self.0[channel]) * u128::from(CYCLE);
        let share = u128::from(self.0[channel + 1] - self.0[channel]);
        (((start + u128::from(progress) * share) * u128::from(slots)) >> 52) as u64
    }
}

/// The cycle over one window.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// Runs in the order of the cycle: first slot and block (numbered from the window's first).
    runs: Vec<(u32, u32)>,
    slots: u64,
}

impl Cycle {
    /// The cycle over blocks of `symbols` source symbols each, in runs of up to `run` symbols.
    pub(crate) fn new(symbols: &[u32], run: u32) -> Cycle {
        let mut order = Vec::new();
        for (block, &symbols) in symbols.iter().enumerate() {
            let runs = symbols.div_ceil(run);
            let phase = (block as u64).wrapping_mul(GOLDEN) >> 32;
            for i in 0..runs {
                let at = ((u64::from(i) << 32) + phase) / u64::from(runs);
                let length = part(symbols, runs, i + 1) - part(symbols, runs, i);
                order.push((at, block as u32, length));
            }
        }
        order.sort_unstable();
        let mut slot = 0u32;
        let mut runs = Vec::with_capacity(order.len());
        for (_, block, length) in order {
            runs.push((slot, block));
            slot += length;
        }
        Cycle { runs, slots: u64::from(slot) }
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// Calls `visit` with a block and a number of consecutive slots, for the stretch from slot `from` up to `to`.
    pub(crate) fn walk(&self, from: u64, to: u64, mut visit: impl FnMut(u32, u32)) {
        let mut left = to - from;
        let mut slot = from % self.slots;
        let mut run = self.runs.partition_point(|(start, _)| u64::from(*start) <= slot) - 1;
        while left > 0 {
            let end = self.runs.get(run + 1).map_or(self.slots, |(start, _)| u64::from(*start));
            let count = (end - slot).min(left);
            visit(self.runs[run].1, count as u32);
            left -= count;
            slot = end % self.slots;
            run = (run + 1) % self.runs.len();
        }
    }
}

/// The first symbol of part `i` when `symbols` are split into `parts` that differ by at most one.
fn part(symbols: u32, parts: u32, i: u32) -> u32 {
    (u64::from(symbols) * u64::from(i) / u64::from(parts)) as u32
}

/// A receiver that loses up to 3 % of its packets finishes with what would be 103 % of a file.
const LOSS_PERCENT: u64 = 103;
/// 2^64 over the golden ratio: its multiples spread most evenly, so neighbouring blocks take turns far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_round_can_end_where_a_level_is_complete() {
        let shares = Shares::new(&[1, 1, 2]);
        let at = |cycles: f64| (cycles * CYCLE as f64) as u64;
        let finish = shares.last_finish(at(1.1), at(3.0)).expect("the second level needs two cycles");
        assert!(finish.abs_diff(at(2.06)) < CYCLE / 100);
        assert_eq!(shares.last_finish(at(2.1), at(3.0)), None);
    }

    proptest! {
        #[test]
        fn all_channels_together_visit_every_slot_once_a_first_cycle(
            symbols in proptest::collection::vec(1u32..300, 1..20), rates in proptest::collection::vec(0u64..1000, 1..12),
            run in 1u32..9, steps in 1u64..20,
        ) {
            let cycle = Cycle::new(&symbols, run);
            let shares = Shares::new(&rates);
            let mut visits = vec![0; symbols.len()];
            for step in 0..steps {
                let progress = |step| CYCLE * step / steps;
                for channel in 0..shares.channels() {
                    let from = shares.position(channel, progress(step), cycle.slots());
                    let to = shares.position(channel, progress(step + 1), cycle.slots());
                    cycle.walk(from, to, |block, count| visits[block as usize] += count);
                }
            }
            prop_assert_eq!(visits, symbols);
        }

        #[test]
        fn any_stretch_of_the_cycle_visits_blocks_in_proportion(
            symbols in proptest::collection::vec(50u32..300, 1..20), run in 1u32..9, from in 0u64..10_000,
            length in 0u64..20_000,
        ) {
            let cycle = Cycle::new(&symbols, run);
            let mut visits = vec![0u32; symbols.len()];
            cycle.walk(from, from + length, |block, count| visits[block as usize] += count);
            for (block, visits) in visits.iter().enumerate() {
                let expected = length as f64 * f64::from(symbols[block]) / cycle.slots() as f64;
                let tolerance = 2.0 * f64::from(run) + 1.0;
                prop_assert!((f64::from(*visits) - expected).abs() <= tolerance, "{visits} of {expected}");
            }
        }
    }
}
