//! Cumulative layers: a receiver at level i takes channels 0 to i − 1.

use alloc::string::ToString;
use alloc::vec::Vec;

use weir_units::Rate;

use crate::error::ConfigError;

/// The cumulative rates of a layered session, strictly rising.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder(Vec<Rate>);

impl Ladder {
    /// Rates from `low` to `high`, each `ratio` times the one before; the last step is cut to end at `high` exactly.
    ///
    /// A last step of less than a tenth of `ratio - 1` is not worth a channel: there the rate before it is raised to
    /// `high`. Example: 256 kbit/s to 6561 kbit/s at 1.5 is AVMRC §4.2's nine channels, 256, 384, 576 … 6561.
    pub fn geometric(low: Rate, high: Rate, ratio: f64) -> Result<Ladder, ConfigError> {
        let refuse = |reason| Err(ConfigError::BadLadder { low, high, ratio: ratio.to_string(), reason });
        if low.bps() < 1_000 {
            return refuse("the lowest rate must be 1 kbit/s or more");
        }
        if low > high {
            return refuse("the lowest rate must not be above the highest");
        }
        if !(1.01..=16.0).contains(&ratio) {
            return refuse("the ratio must lie between 1.01 and 16");
        }
        let mut rates = Vec::new();
        let mut rate = low.bps() as f64;
        let last_worthwhile = high.bps() as f64 / (1.0 + (ratio - 1.0) / 10.0);
        while rate <= last_worthwhile {
            rates.push(Rate::from_bps(weir_units::math::round(rate) as u64));
            rate *= ratio;
        }
        rates.push(high);
        rates.dedup();
        if rates.len() > MAX_CHANNELS {
            return refuse("that makes more than 256 channels; raise the ratio or the lowest rate");
        }
        Ok(Ladder(rates))
    }

    /// A ladder of exactly these cumulative rates; `None` unless there is one and they rise strictly from above zero.
    pub fn from_rates(rates: Vec<Rate>) -> Option<Ladder> {
        let rising = rates.windows(2).all(|pair| pair[0] < pair[1]);
        let usable = rising && rates.len() <= MAX_CHANNELS && rates.first()? > &Rate::ZERO;
        usable.then_some(Ladder(rates))
    }

    /// How many channels, and so how many levels above zero.
    pub fn levels(&self) -> usize {
        self.0.len()
    }

    /// The rate that a receiver at `level` gets: that of channels 0 to `level` − 1. Level 0 gets nothing; above the top,
    /// the top.
    pub fn level_rate(&self, level: usize) -> Rate {
        match level.min(self.0.len()) {
            0 => Rate::ZERO,
            level => self.0[level - 1],
        }
    }

    /// How many levels a share carries: those whose rate is below it. Example: with levels of 400 and 450 kbit/s, a share of 450
    /// carries the first.
    pub fn levels_below(&self, share: Rate) -> usize {
        self.0.partition_point(|rate| *rate < share)
    }

    /// The rate of one channel.
    pub fn channel_rate(&self, channel: usize) -> Rate {
        self.level_rate(channel + 1).saturating_sub(self.level_rate(channel))
    }

    /// The rates of all channels.
    pub fn channel_rates(&self) -> impl Iterator<Item = Rate> {
        (0..self.levels()).map(|channel| self.channel_rate(channel))
    }

    /// The cumulative rates, lowest first.
    pub fn rates(&self) -> &[Rate] {
        &self.0
    }
}

/// As many as the short form of the congestion control information can number.
const MAX_CHANNELS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(ladder: &Ladder) -> Vec<u64> {
        ladder.rates().iter().map(|rate| rate.bps() / 1000).collect()
    }

    #[test]
    fn the_paper_s_nine_channels_come_out() {
        let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("valid");
        assert_eq!(kbps(&ladder), [256, 384, 576, 864, 1296, 1944, 2916, 4374, 6561]);
        assert_eq!(ladder.channel_rate(0), Rate::from_kbps(256));
        assert_eq!(ladder.channel_rate(8), Rate::from_kbps(6561 - 4374));
    }

    #[test]
    fn both_ends_are_reached_exactly() {
        let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.5).expect("valid");
        assert_eq!((ladder.level_rate(1), ladder.level_rate(99)), (Rate::from_kbps(256), Rate::from_mbps(100)));
        assert_eq!(ladder.level_rate(0), Rate::ZERO);
    }

    #[test]
    fn one_rate_is_a_ladder_of_one_channel() {
        let rate = Rate::from_mbps(4);
        assert_eq!(Ladder::geometric(rate, rate, 1.5).map(|ladder| ladder.levels()), Ok(1));
    }

    #[test]
    fn a_share_carries_the_levels_below_it() {
        let rates = (3..=12).map(|n| Rate::from_kbps(n * 50)).collect();
        let ladder = Ladder::from_rates(rates).expect("rising");
        let levels = |bps| ladder.levels_below(Rate::from_bps(bps));
        assert_eq!([150_000, 150_001, 225_000, 450_000, 450_001].map(levels), [0, 1, 2, 6, 7]);
        assert_eq!(levels(9_000_000), 10);
    }

    #[test]
    fn impossible_ladders_are_refused_with_the_reason() {
        let refuse = |low, high, ratio| Ladder::geometric(Rate::from_kbps(low), Rate::from_kbps(high), ratio).is_err();
        assert!(refuse(2, 1, 1.5) && refuse(0, 1, 1.5) && refuse(1, 2, 1.0) && refuse(1, 1_000_000, 1.01));
        assert!(refuse(1, 2, f64::NAN));
        assert_eq!(Ladder::from_rates(alloc::vec![Rate::from_kbps(2), Rate::from_kbps(2)]), None);
    }
}
