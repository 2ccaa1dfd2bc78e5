//! When a receiver's rate goes up and down (§4.1), in units of the lowest layer. Not here: layers, stairs, times of day.

use weir_units::Time;

use super::config::{Decrease, StartUp};
use crate::layers::Hybrid;
use crate::observation::LevelCause;

/// The rate, and what is known of losses.
#[derive(Debug)]
pub(super) struct Sawtooth {
    hybrid: Hybrid,
    reading: Decrease,
    units: u64,
    is_slow_start: bool,
    /// A loss event of this period.
    lossy: bool,
    decreased: Option<Time>,
    /// The highest rate that it may have.
    most: u64,
}

/// What became of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// It belongs to an event that is known.
    Known,
    /// It begins a loss event, which lowers the rate later.
    Noted,
    /// It begins a loss event, and the rate is lower now.
    Decreased(LevelCause),
}

impl Sawtooth {
    pub(super) fn new(hybrid: Hybrid, reading: Decrease, start_up: StartUp) -> Sawtooth {
        let is_slow_start = start_up == StartUp::SlowStart;
        let most = hybrid.top();
        Sawtooth { hybrid, reading, units: 1, is_slow_start, lossy: false, decreased: None, most }
    }

    pub(super) const fn units(&self) -> u64 {
        self.units
    }

    pub(super) const fn is_slow_start(&self) -> bool {
        self.is_slow_start
    }

    /// When the latest decrease was.
    pub(super) const fn decreased(&self) -> Option<Time> {
        self.decreased
    }

    /// The rate that the end of the period will bring if nothing is lost until then.
    pub(super) fn expected(&self) -> Option<u64> {
        (!self.is_slow_start && !self.lossy && self.units < self.most).then_some(self.units + 1)
    }

    /// Packets are lost. `answered`: before the network had heard of the latest decrease, so that they belong to what caused it.
    pub(super) fn on_loss(&mut self, now: Time, answered: bool) -> Loss {
        if answered {
            return Loss::Known;
        }
        if self.is_slow_start {
            return Loss::Decreased(self.end_slow_start(now));
        }
        let known = core::mem::replace(&mut self.lossy, self.reading != Decrease::AtOnceEachRtt);
        match self.reading {
            _ if known => Loss::Known,
            Decrease::PeriodEnd => Loss::Noted,
            Decrease::AtOnce | Decrease::AtOnceEachRtt => {
                self.decrease(now);
                Loss::Decreased(LevelCause::Drop)
            }
        }
    }

    /// The period of the stair that sets the pace, or of the receiver's own clock, is over; `may_climb` unless a decrease is still to
    /// act. Gives the reason if the rate changed.
    pub(super) fn on_period_end(&mut self, now: Time, may_climb: bool) -> Option<LevelCause> {
        if self.is_slow_start {
            return None;
        }
        match (core::mem::take(&mut self.lossy), self.reading) {
            (false, _) if may_climb => self.increase(),
            (true, Decrease::PeriodEnd) => {
                let before = self.units;
                self.decrease(now);
                (self.units < before).then_some(LevelCause::Drop)
            }
            _ => None,
        }
    }

    /// Another stair, a slower one, recycled: the static layers make up for it, unless a decrease is due, or the network had
    /// not heard of the latest one.
    pub(super) fn on_slower_recycle(&mut self, answered: bool) -> Option<LevelCause> {
        if self.is_slow_start || self.lossy || answered { None } else { self.increase() }
    }

    /// A round-trip time of slow start went well. Gives whether the rate changed.
    pub(super) fn double(&mut self) -> bool {
        let before = self.units;
        self.units = (self.units * 2).min(self.most);
        self.is_slow_start = self.units < self.hybrid.top();
        self.units > before
    }

    /// The path is full: the last doubling is undone, and from here on the rate climbs step by step.
    pub(super) fn end_slow_start(&mut self, now: Time) -> LevelCause {
        self.is_slow_start = false;
        self.decrease(now);
        LevelCause::SlowStartEnd
    }

    /// The host cannot take the rate: it falls at once, and climbs step by step from there. Gives the reason if it changed.
    pub(super) fn on_host_overrun(&mut self, now: Time) -> Option<LevelCause> {
        let before = self.units;
        self.is_slow_start = false;
        self.decrease(now);
        (self.units < before).then_some(LevelCause::HostDrops)
    }

    /// What a manager allots from here on. Returns whether the rate is lower now. It did not fall for a loss, so that losses from
    /// before are still answered.
    pub(super) fn set_most(&mut self, most: u64) -> bool {
        self.most = most.clamp(1, self.hybrid.top());
        let is_lower = self.units > self.most;
        self.units = self.units.min(self.most);
        is_lower
    }

    fn increase(&mut self) -> Option<LevelCause> {
        self.units = self.expected()?;
        Some(LevelCause::Add)
    }

    fn decrease(&mut self, now: Time) {
        self.units = self.hybrid.halve(self.units);
        self.decreased = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Random;

    fn sawtooth(reading: Decrease) -> Sawtooth {
        let mut sawtooth = Sawtooth::new(Hybrid::new(2.0, 64), reading, StartUp::Additive);
        (0..15).for_each(|_| _ = sawtooth.on_period_end(Time::ZERO, true));
        assert_eq!(sawtooth.units(), 16);
        sawtooth
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn at_the_period_s_end_a_period_with_losses_lowers_the_rate_once() {
        let mut sawtooth = sawtooth(Decrease::PeriodEnd);
        assert_eq!(sawtooth.on_loss(at(1_000), false), Loss::Noted);
        assert_eq!(sawtooth.on_loss(at(1_900), false), Loss::Known);
        assert_eq!(sawtooth.units(), 16);
        assert_eq!((sawtooth.on_period_end(at(2_000), true), sawtooth.units()), (Some(LevelCause::Drop), 8));
        assert_eq!(sawtooth.on_loss(at(2_050), true), Loss::Known, "the decrease has answered it");
        assert_eq!((sawtooth.on_period_end(at(3_000), true), sawtooth.units()), (Some(LevelCause::Add), 9));
    }

    #[test]
    fn while_a_decrease_is_still_to_act_the_rate_does_not_climb() {
        let mut sawtooth = sawtooth(Decrease::PeriodEnd);
        assert_eq!((sawtooth.on_period_end(at(1_000), false), sawtooth.units()), (None, 16));
        assert_eq!((sawtooth.on_period_end(at(2_000), true), sawtooth.units()), (Some(LevelCause::Add), 17));
    }

    #[test]
    fn at_once_lowers_the_rate_once_a_period_and_does_not_raise_it_at_its_end() {
        let mut sawtooth = sawtooth(Decrease::AtOnce);
        assert_eq!(sawtooth.on_loss(at(1_000), false), Loss::Decreased(LevelCause::Drop));
        assert_eq!(sawtooth.on_loss(at(1_900), false), Loss::Known);
        assert_eq!((sawtooth.on_period_end(at(2_000), true), sawtooth.units()), (None, 8));
        assert_eq!((sawtooth.on_period_end(at(3_000), true), sawtooth.units()), (Some(LevelCause::Add), 9));
    }

    #[test]
    fn at_once_each_rtt_lowers_the_rate_as_often_as_that_and_goes_on_climbing() {
        let mut sawtooth = sawtooth(Decrease::AtOnceEachRtt);
        assert_eq!(sawtooth.on_loss(at(1_000), false), Loss::Decreased(LevelCause::Drop));
        assert_eq!(sawtooth.on_loss(at(1_050), true), Loss::Known);
        assert_eq!(sawtooth.on_loss(at(1_100), false), Loss::Decreased(LevelCause::Drop));
        assert_eq!((sawtooth.on_period_end(at(2_000), true), sawtooth.units()), (Some(LevelCause::Add), 5));
    }

    #[test]
    fn slow_start_doubles_up_to_the_top_or_to_the_first_loss() {
        let slow = || Sawtooth::new(Hybrid::new(2.0, 24), Decrease::PeriodEnd, StartUp::SlowStart);
        let mut undisturbed = slow();
        let rates: [u64; 6] = core::array::from_fn(|_| {
            undisturbed.double();
            undisturbed.units()
        });
        assert_eq!((rates, undisturbed.is_slow_start()), ([2, 4, 8, 16, 24, 24], false));
        let mut lossy = slow();
        lossy.double();
        lossy.double();
        assert_eq!(lossy.on_period_end(at(1), true), None, "slow start has steps of its own");
        assert_eq!(lossy.on_loss(at(2), false), Loss::Decreased(LevelCause::SlowStartEnd));
        assert_eq!((lossy.units(), lossy.is_slow_start()), (2, false));
    }

    #[test]
    fn a_slower_stair_is_made_up_for_unless_the_rate_falls() {
        let mut sawtooth = sawtooth(Decrease::PeriodEnd);
        assert_eq!(sawtooth.on_slower_recycle(false), Some(LevelCause::Add));
        sawtooth.on_loss(at(1_500), false);
        assert_eq!(sawtooth.on_slower_recycle(false), None, "the faster stair's end is yet to come");
        sawtooth.on_period_end(at(2_000), true);
        assert_eq!(sawtooth.on_slower_recycle(true), None, "or has just been");
        assert_eq!(sawtooth.on_slower_recycle(false), Some(LevelCause::Add));
    }

    #[test]
    fn the_lowest_and_the_highest_rate_are_kept() {
        let mut sawtooth = Sawtooth::new(Hybrid::new(2.0, 2), Decrease::PeriodEnd, StartUp::Additive);
        sawtooth.on_loss(at(1_000), false);
        assert_eq!((sawtooth.on_period_end(at(2_000), true), sawtooth.units()), (None, 1));
        (3..9).for_each(|i| _ = sawtooth.on_period_end(at(1_000 * i), true));
        assert_eq!((sawtooth.units(), sawtooth.expected()), (2, None));
    }

    /// What happens to a rate.
    enum What {
        Loss,
        PeriodEnd,
    }

    /// The mean rate, in units, on a path that loses one packet in 5000 at random, with a stair of 128 ms and 16 steps, as
    /// c0 = 512 kbit/s and 512 bytes make it. `change` gives the units after what happens.
    fn mean_rate(mut change: impl FnMut(Time, What) -> f64) -> f64 {
        const PERIODS: u64 = 10_000;
        const STEPS: u64 = 16;
        let mut random = Random::new(1, "losses");
        let (mut units, mut sum) = (1.0, 0.0);
        let mut until_loss = random.exponential(5000.0);
        for step in 0..PERIODS * STEPS {
            let now = at(128 * step);
            if step % STEPS == 0 {
                units = change(now, What::PeriodEnd);
            }
            let rate = units + ((step % STEPS) as f64 + 0.5) / STEPS as f64;
            sum += rate;
            until_loss -= rate * STEPS as f64;
            if until_loss <= 0.0 {
                units = change(now, What::Loss);
                until_loss = random.exponential(5000.0);
            }
        }
        sum / (PERIODS * STEPS) as f64
    }

    #[test]
    fn fig07_of_few_units_the_layers_keep_less_than_half_and_once_a_period_less_still() {
        let mut units: f64 = 1.0;
        let exact = mean_rate(|_, what| {
            units = match what {
                What::Loss => f64::max(units / 2.0, 1.0),
                What::PeriodEnd => units + 1.0,
            };
            units
        });
        let by_layers = |reading| {
            let mut sawtooth = Sawtooth::new(Hybrid::new(2.0, 128), reading, StartUp::Additive);
            mean_rate(|now, what| {
                match what {
                    What::Loss => _ = sawtooth.on_loss(now, false),
                    What::PeriodEnd => _ = sawtooth.on_period_end(now, true),
                }
                sawtooth.units() as f64
            })
        };
        let each = by_layers(Decrease::AtOnceEachRtt) / exact;
        let once = by_layers(Decrease::AtOnce) / exact;
        assert!((0.86..0.94).contains(&each), "{each} of the rate with exact halves");
        assert!((0.75..0.83).contains(&once), "{once} of the rate with exact halves");
    }
}
