//! When start-up bursts begin, and in which channels: at once for a receiver that asks, else at fixed times.
//!
//! Not here: who asks ([`super::super::starters`]), and what a burst is ([`super::super::cycle`]).

use core::time::Duration;

use weir_units::Time;

use super::super::cycle::{self, SLOT, START_UP_BURST, START_UP_PART, StartUpBurst};
use super::Sender;

impl Sender {
    /// Begins a start-up burst that is due, unless there is another burst. Channels that still make up for their latest one have no part in it. A ladder of one
    /// rate has nothing to show.
    pub(super) fn begin_start_up_burst(&mut self, due: Time, within: Duration) {
        let meets_next_level = cycle::shows_next_level(self.slot)
            || cycle::shows_next_level(self.slot + 1) && within + START_UP_BURST > SLOT;
        let is_within = |pause| self.start_up_ends.is_some_and(|end| due < end + pause);
        if self.ladder.levels() == 1 || meets_next_level || is_within(Duration::ZERO) || !self.starters.are_there(due) {
            return;
        }
        let asked = self.starters.asked().and_then(|level| Some((level, self.fast_factor(level, due)?)));
        if let Some((level, fast_factor)) = asked {
            self.starters.on_burst();
            return self.burst_below(level, due, fast_factor);
        }
        let begins_part = within.as_nanos() % START_UP_PART.as_nanos() < self.period.as_nanos();
        if begins_part && !is_within(START_UP_PART - START_UP_BURST) {
            self.burst_below(self.reached(due), due, cycle::FAST_START_UP);
        }
    }

    /// The highest level that somebody may have who starts: who is far away, or cannot tell, has joined more by now than the sender knows.
    fn reached(&self, now: Time) -> usize {
        let Some(demand) = &self.demand else { return usize::MAX };
        let wanted = self
            .starters
            .levels()
            .map(|(receiver, level)| demand.wanted_by(receiver).map_or(level, |wanted| wanted.max(level)));
        wanted.max().unwrap_or_else(|| demand.opened_before(now))
    }

    /// Begins a start-up burst in the channels below `level` that may have one, with this factor in fast ones. What receivers were sent ahead would be
    /// missing in a burst of a few packets, and is made up for after it.
    fn burst_below(&mut self, level: usize, due: Time, fast_factor: f64) {
        for (number, channel) in self.channels.iter_mut().enumerate().take(level) {
            let ahead = channel.lacking.min(0.0);
            (channel.lacking, channel.ahead) = (channel.lacking - ahead, channel.ahead + ahead);
            if channel.start_up_factor(due).is_none() {
                channel.start_up = Some((due, StartUpBurst::of(&self.ladder, number, fast_factor)));
            }
        }
        self.start_up_ends = Some(due + START_UP_BURST);
    }

    /// The factor of fast channels in a burst that shows those at `level` what a start-up burst is to show, as far as slow ones have more. `None` if it would show
    /// them too little to be worth it.
    fn fast_factor(&self, level: usize, due: Time) -> Option<f64> {
        let (mut shown, mut fast) = (0.0, 0.0);
        for (number, channel) in self.channels[..level].iter().enumerate() {
            let rate = channel.rate.bps() as f64;
            match channel.start_up_factor(due) {
                Some(factor) => shown += rate * factor,
                None if cycle::is_slow(&self.ladder, number) => shown += rate * cycle::SLOW_START_UP,
                None => fast += rate,
            }
        }
        let rate = self.ladder.level_rate(level);
        let wanted = cycle::start_up_rate(rate).bps() as f64;
        let factor = ((wanted - shown) / fast.max(1.0)).clamp(cycle::FAST_START_UP, cycle::SLOW_START_UP);
        (shown + fast * factor >= rate.bps() as f64 * cycle::WORTH_A_BURST).then_some(factor)
    }
}
