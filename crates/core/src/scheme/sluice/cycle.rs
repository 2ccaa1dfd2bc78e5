//! What the sender sends when, which receivers know too.
//!
//! Time is cut into slots of [`SLOT`], and eight of them are a cycle. At the beginning of the last slot of a cycle every channel is
//! sent so that a receiver of any level k sees m·r(k+1), what the next level would be with a little more. In the others, while somebody starts,
//! channels are sent at a multiple of their rate for a while ([`StartUpBurst`]). What start-up bursts send too much, their
//! channels soon send less; for the other burst the next cycle does. So each channel has its rate in the long run.
//!
//! A bottleneck carries the channels of the highest receiver behind it, and that receiver's burst fills it for all others. Every second
//! cycle therefore has a limit ([`Shown::UpTo`]): receivers above that level see no burst. A receiver below them then sees whether the next
//! level fits next to what the others have.
//!
//! A fair queue takes each channel for a flow of its own, and the channels of a session together get more than one flow would. Where levels
//! are known, some cycles therefore show the next level folded into one channel ([`Shown::Folded`]).

use core::time::Duration;

use weir_units::{Bytes, Rate};

use crate::layers::Ladder;

/// τ: a slot.
pub(super) const SLOT: Duration = Duration::from_millis(100);

/// Slots of a cycle; a power of two.
pub(super) const CYCLE: u64 = 8;

/// How the last slot of a cycle shows the next level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Burst {
    /// In all channels of a level.
    NextLevel,
    /// In one channel.
    Folded,
}

/// To whom a cycle's burst shows the next level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// To receivers of every level.
    All,
    /// To those up to this level.
    UpTo(usize),
    /// To those of the first of these levels, in their topmost channel alone, the second one: all other channels pause.
    Folded(usize, usize),
}

/// Whether this slot is the last of a cycle, which shows the next level. The others may have start-up bursts.
pub(super) const fn shows_next_level(number: u64) -> bool {
    number % CYCLE == CYCLE - 1
}

/// To whom this cycle shows the next level. In every second one each of the `levels` but the topmost has its turn as the limit, in van der
/// Corput's order, so that a few cycles cover the ladder roughly and twice as many more finely.
pub(super) fn shown(cycle: u64, levels: usize) -> Shown {
    let limits = levels.saturating_sub(1);
    if cycle.is_multiple_of(2) || limits == 0 {
        return Shown::All;
    }
    let turns = (limits as u64).next_power_of_two();
    let turn = (cycle / 2 % turns).reverse_bits() >> (u64::BITS - turns.trailing_zeros()).min(u64::BITS - 1);
    Shown::UpTo(1 + (turn * limits as u64 / turns) as usize)
}

/// The same where it is known which `levels` receivers have, lowest first. Each eighth cycle is folded, for each of them in turn. In the
/// other odd ones those levels are the limit that are one below such a level, but for the lowest: they tell somebody something. Where none
/// does, each eighth cycle has a burst for nobody: bursts cost others on the path a queue. If all receivers have one level, and it is `owed` a folded
/// burst, two more of eight cycles are folded.
pub(super) fn shown_to(cycle: u64, levels: &[usize], owed: Option<usize>) -> Shown {
    let turn = |of: &[usize], number: u64| of.get((number % of.len().max(1) as u64) as usize).copied();
    let above = levels.get(1..).unwrap_or_default();
    let foldable = |level: &usize| *level > 1;
    match cycle % 8 {
        7 => turn(levels, cycle / 8).filter(foldable).map_or(Shown::UpTo(1), folded),
        3 if above.is_empty() => Shown::UpTo(1),
        1 | 5 if above.is_empty() => {
            owed.filter(|level| foldable(level) && levels == [*level]).map_or(Shown::All, folded)
        }
        1 | 3 | 5 => turn(above, cycle / 8 * 3 + cycle % 8 / 2).map_or(Shown::All, |level| Shown::UpTo(level - 1)),
        _ => Shown::All,
    }
}

/// A burst that shows those of a level the next one in one channel.
fn folded(level: usize) -> Shown {
    Shown::Folded(level, level + 1)
}

/// How long a start-up burst is.
pub(super) const START_UP_BURST: Duration = Duration::from_millis(20);
/// The number of parts of a slot. A start-up burst begins with each, if nobody asks for one sooner.
pub(super) const START_UP_PARTS: u32 = 2;
pub(super) const START_UP_PART: Duration = Duration::from_millis(SLOT.as_millis() as u64 / START_UP_PARTS as u64);

/// A start-up burst of a channel, and the time in which it makes up for what that sends too much.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartUpBurst {
    /// Of the channel's rate.
    factor: f64,
    /// From its beginning until the channel has its rate again.
    span: Duration,
}

impl StartUpBurst {
    /// The burst of a channel. Levels up to 10 Mbit/s see four times their rate, once in a slot, which is some 60 KB more than the rate at most. Those above see
    /// twice what they have on top of that, and twice in a slot, or up to four times of some channels where others have had their burst.
    pub(super) fn of(ladder: &Ladder, channel: usize, fast_factor: f64) -> StartUpBurst {
        let factor =
            if is_slow(ladder, channel) { SLOW_START_UP } else { fast_factor.clamp(FAST_START_UP, SLOW_START_UP) };
        StartUpBurst { factor, span: if factor > FAST_START_UP { SLOT } else { START_UP_PART } }
    }

    /// The factor of the channel's rate so long `since` it began; `None` once the channel has its rate again.
    pub(super) fn factor(&self, since: Duration) -> Option<f64> {
        match since {
            _ if since < START_UP_BURST => Some(self.factor),
            _ if since < self.span => Some(self.rest()),
            _ => None,
        }
    }

    fn rest(&self) -> f64 {
        let share = START_UP_BURST.as_secs_f64() / self.span.as_secs_f64();
        (1.0 - self.factor * share) / (1.0 - share)
    }
}

/// Whether a channel is of a slow level.
pub(super) fn is_slow(ladder: &Ladder, channel: usize) -> bool {
    channel == 0 || ladder.level_rate(channel + 1) <= SLOW
}

/// What a start-up burst shows to receivers of this rate, if all of their channels have one.
pub(super) fn start_up_rate(rate: Rate) -> Rate {
    let slow = rate.min(SLOW);
    let fast = Rate::from_bps(rate.bps() - slow.bps());
    Rate::from_bps(slow.scale(SLOW_START_UP).bps() + fast.scale(FAST_START_UP).bps())
}

/// By channel: the factor of its rate in the burst that stands for the next level; `None` if the cycle does not have it for this channel.
///
/// Σ f(j)·c(j) over the channels j < k is m·r(k+1), but never more than the ladder's top rate, for every level k up to the limit x. A link of
/// the sender that carries that rate and no more keeps its queue, which those of every level would see. Level x+1 sees no more than level x, as its own
/// channel pauses, and those above what they have. The topmost channel pauses too, as there is nothing above its level. A step of the ladder that is
/// more than [`MOST_FACTOR`] times the one below is not shown in full. In a folded burst levels from x on see m times the rate of the level that it shows, and those below nothing.
pub(super) fn next_level_factor(ladder: &Ladder, channel: usize, margin: f64, shown: Shown) -> Option<f64> {
    let bps = |level: usize| ladder.level_rate(level.min(ladder.levels())).bps() as f64;
    let with_margin = |level: usize| (bps(level) * margin).min(bps(ladder.levels()));
    let seen = |level: usize| match shown {
        _ if level == 0 => 0.0,
        Shown::Folded(folded, _) if level < folded => 0.0,
        Shown::Folded(_, to) => with_margin(to),
        Shown::UpTo(limit) if level > limit + 1 => bps(level),
        Shown::UpTo(limit) if level == limit + 1 => with_margin(level),
        Shown::UpTo(_) | Shown::All => with_margin(level + 1),
    };
    let most = match shown {
        Shown::UpTo(limit) if channel > limit + 1 => return None,
        Shown::Folded(..) => f64::INFINITY,
        Shown::UpTo(_) | Shown::All => MOST_FACTOR,
    };
    let own = (seen(channel + 1) - seen(channel)).max(0.0);
    Some((own / ladder.channel_rate(channel).bps() as f64).min(most))
}

/// By channel: that factor, and for how long.
pub(super) fn next_level_burst(
    ladder: &Ladder,
    channel: usize,
    margin: f64,
    shown: Shown,
    packet_size: Bytes,
) -> Option<(f64, Duration)> {
    let shortest = if let Shown::Folded(level, _) = shown { level } else { channel + 1 };
    let length = next_level_length(ladder.level_rate(shortest), packet_size);
    next_level_factor(ladder, channel, margin, shown).map(|factor| (factor, length))
}

/// How long the burst that stands for the next level is for receivers of a level with this rate: until 3 % too much have made a
/// queue of a packet; in steps of 20 ms, 40 ms at least, and a slot at most.
pub(super) fn next_level_length(rate: Rate, packet_size: Bytes) -> Duration {
    let wanted = (packet_size / rate).as_secs_f64() / TELLING_EXCESS;
    let steps = (wanted / STEP.as_secs_f64()).clamp(2.0, 5.0);
    STEP * weir_units::math::ceil(steps) as u32
}

/// The factor outside of bursts in the cycle after one with this factor, so that the mean is one in the long run.
fn plain_factor(next_level_factor: f64, length: Duration) -> f64 {
    let part = length.as_secs_f64() / (SLOT * CYCLE as u32).as_secs_f64();
    (1.0 - next_level_factor * part) / (1.0 - part)
}

/// By channel: that factor in the cycle after one that showed the next level so.
///
/// What a folded burst sent its level too much, the level's channel sends less. What the others had too little, they lose: a tenth more for
/// a cycle would fill their queues.
pub(super) fn plain_factor_after(
    ladder: &Ladder,
    channel: usize,
    margin: f64,
    shown: Shown,
    packet_size: Bytes,
) -> f64 {
    let Some((factor, length)) = next_level_burst(ladder, channel, margin, shown, packet_size) else { return 1.0 };
    let bps = |rate: Rate| rate.bps() as f64;
    match shown {
        Shown::All | Shown::UpTo(_) => plain_factor(factor, length),
        Shown::Folded(level, _) if channel + 1 == level => {
            // The others' rates came through this channel, and were due.
            let due = bps(ladder.level_rate(level)) / bps(ladder.channel_rate(channel)) - 1.0;
            plain_factor(factor - due, length).max(0.0)
        }
        Shown::Folded(..) => 1.0,
    }
}

/// The rate that receivers of `level` see in the burst that stands for the next one, if none of their channels is left out of it.
pub(super) fn next_level_rate(ladder: &Ladder, level: usize, margin: f64, shown: Shown) -> Rate {
    let factor = |channel: usize| next_level_factor(ladder, channel, margin, shown).unwrap_or(1.0);
    let rates = (0..level).map(|channel| ladder.channel_rate(channel).bps() as f64 * factor(channel));
    Rate::from_bps(rates.sum::<f64>() as u64)
}

/// The factors of start-up bursts. What is left is a quarter of the rate for the rest of the slot, and a third for the rest of half a slot.
pub(super) const SLOW_START_UP: f64 = 4.0;
pub(super) const FAST_START_UP: f64 = 2.0;
/// A burst that shows less than that times a receiver's rate is not sent for it: soon more channels may have one.
pub(super) const WORTH_A_BURST: f64 = 1.8;
/// Up to this rate a start-up burst has four times the rate.
pub(super) const SLOW: Rate = Rate::from_mbps(10);
const TELLING_EXCESS: f64 = 0.03;
const STEP: Duration = Duration::from_millis(20);
/// Beyond that, too little would be left for the other slots.
const MOST_FACTOR: f64 = 6.0;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    const SIZE: Bytes = Bytes::new(1500);

    fn ladder() -> Ladder {
        Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(1000), 1.15).expect("valid")
    }

    /// The rate of a level and a little more, as far as the ladder's top goes.
    fn with_margin(ladder: &Ladder, level: usize) -> f64 {
        let bps = |level: usize| ladder.level_rate(level.min(ladder.levels())).bps() as f64;
        (bps(level) * 1.03).min(bps(ladder.levels()))
    }

    #[test]
    fn in_the_last_slot_of_a_cycle_every_level_sees_the_next_one_and_a_little_more() {
        let ladder = ladder();
        for level in 1..ladder.levels() {
            let wanted = with_margin(&ladder, level + 1);
            let seen = next_level_rate(&ladder, level, 1.03, Shown::All).bps() as f64;
            assert!((seen / wanted - 1.0).abs() < 1e-5, "level {level} sees {seen} and not {wanted}");
        }
        let seen = next_level_rate(&ladder, ladder.levels(), 1.03, Shown::All);
        assert!(
            seen <= ladder.level_rate(ladder.levels()),
            "{seen}: the sender's link may carry the top rate and no more"
        );
    }

    #[test]
    fn with_a_limit_levels_below_see_the_next_one_and_levels_above_what_they_have() {
        let ladder = ladder();
        for limit in [1, 2, 20, ladder.levels() - 1] {
            for level in 1..=ladder.levels() {
                let wanted = match level {
                    _ if level <= limit => with_margin(&ladder, level + 1),
                    _ if level == limit + 1 => with_margin(&ladder, level),
                    _ => ladder.level_rate(level).bps() as f64,
                };
                let seen = next_level_rate(&ladder, level, 1.03, Shown::UpTo(limit)).bps() as f64;
                assert!((seen / wanted - 1.0).abs() < 1e-5, "limit {limit}, level {level}: {seen} and not {wanted}");
            }
        }
        assert_eq!(next_level_factor(&ladder, 20, 1.03, Shown::UpTo(20)), Some(0.0), "it pauses");
        assert_eq!(next_level_factor(&ladder, 22, 1.03, Shown::UpTo(20)), None, "it has no burst");
    }

    #[test]
    fn a_folded_burst_is_in_one_channel_and_the_same_to_all_that_have_it() {
        let ladder = ladder();
        let bps = |level: usize| ladder.level_rate(level).bps() as f64;
        for level_of in [2, 20, ladder.levels() - 1] {
            let factor = |channel| next_level_factor(&ladder, channel, 1.03, folded(level_of));
            assert!((0..ladder.levels()).all(|channel| (factor(channel) > Some(0.0)) == (channel + 1 == level_of)));
            for level in 1..=ladder.levels() {
                let wanted = if level < level_of { 0.0 } else { with_margin(&ladder, level_of + 1) };
                let seen = next_level_rate(&ladder, level, 1.03, folded(level_of)).bps() as f64;
                assert!((seen - wanted).abs() <= 1e-5 * bps(level), "{level_of}, level {level}: {seen}, not {wanted}");
            }
            let after = |channel| plain_factor_after(&ladder, channel, 1.03, folded(level_of), SIZE);
            let all: Vec<_> = (0..ladder.levels()).map(after).collect();
            assert!((0.7..1.0).contains(&all[level_of - 1]), "{}", all[level_of - 1]);
            assert_eq!(all.iter().filter(|factor| **factor != 1.0).count(), 1);
        }
    }

    #[test]
    fn every_second_cycle_has_a_limit_and_each_level_its_turn() {
        for levels in [1, 2, 3, 30, 58, 64, 65, 255] {
            let shown: Vec<_> = (0..1024).map(|cycle| shown(cycle, levels)).collect();
            assert!(shown.iter().step_by(2).all(|shown| *shown == Shown::All));
            let seen: BTreeSet<_> = shown.iter().filter_map(limit).collect();
            assert_eq!(seen, (1..levels).collect(), "{levels} levels");
        }
        let first: Vec<_> = (1..16).step_by(2).filter_map(|cycle| limit(&shown(cycle, 65))).collect();
        assert_eq!(first, [1, 33, 17, 49, 9, 41, 25, 57]);
    }

    fn limit(shown: &Shown) -> Option<usize> {
        if let Shown::UpTo(limit) = shown { Some(*limit) } else { None }
    }

    #[test]
    fn levels_that_are_known_take_turns_in_every_second_cycle() {
        use Shown::{All, UpTo};
        let shown = |known: &[usize]| (0..24).map(|cycle| shown_to(cycle, known, None)).collect::<Vec<_>>();
        assert!(shown(&[12, 20, 30]).iter().step_by(2).all(|shown| *shown == All));
        let odd = |known| shown(known).into_iter().skip(1).step_by(2).collect::<Vec<_>>();
        let limits = [19, 29, 19, 29, 19, 29, 19, 29, 19].map(UpTo);
        let [a, b, c, d, e, f, g, h, i] = limits;
        assert_eq!(odd(&[12, 20, 30]), [a, b, c, folded(12), d, e, f, folded(20), g, h, i, folded(30)]);
        assert_eq!(odd(&[12])[..4], [All, UpTo(1), All, folded(12)], "nobody is above it");
        assert_eq!(odd(&[1])[..4], [All, UpTo(1), All, UpTo(1)], "it is in one channel as it is");
        assert_eq!(odd(&[])[..4], [All, UpTo(1), All, UpTo(1)]);
    }

    #[test]
    fn who_is_new_to_the_only_level_is_shown_it_folded_sooner() {
        use Shown::{All, UpTo};
        let odd = |known: &[usize], owed| [1, 3, 5, 7].map(|cycle| shown_to(cycle, known, Some(owed)));
        assert_eq!(odd(&[12], 12), [folded(12), UpTo(1), folded(12), folded(12)]);
        assert_eq!(odd(&[12], 13), [All, UpTo(1), All, folded(12)], "nobody has it any more");
        assert_eq!(odd(&[1], 1), [All, UpTo(1), All, UpTo(1)]);
        assert_eq!(odd(&[12, 20], 20), [19, 19, 19].map(UpTo).into_iter().chain([folded(12)]).collect::<Vec<_>>()[..]);
        assert!((0..8).step_by(2).all(|cycle| shown_to(cycle, &[12], Some(12)) == All));
    }

    #[test]
    fn a_ladder_of_wide_steps_leaves_something_for_the_other_slots() {
        let ladder = Ladder::from_rates([1, 100].map(Rate::from_mbps).into()).expect("rising");
        assert!(plain_factor(next_level_factor(&ladder, 0, 1.03, Shown::All).expect("shown"), SLOT) > 0.2);
        let one = Ladder::from_rates([Rate::from_mbps(1)].into()).expect("one rate");
        assert!((next_level_factor(&one, 0, 1.03, Shown::All).expect("shown") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn faster_levels_need_shorter_bursts() {
        let of = |mbps: u64| next_level_length(Rate::from_mbps(mbps), SIZE).as_millis();
        assert_eq!([1, 4, 6, 8, 10, 1000].map(of), [100, 100, 80, 60, 40, 40]);
    }

    #[test]
    fn in_a_start_up_burst_slow_levels_see_four_times_their_rate_and_fast_ones_twice_it() {
        let ladder = ladder();
        let mut seen = 0.0;
        for level in 1..=ladder.levels() {
            let rate = ladder.level_rate(level);
            let factor = StartUpBurst::of(&ladder, level - 1, 0.0).factor(Duration::ZERO).expect("it has begun");
            seen += ladder.channel_rate(level - 1).bps() as f64 * factor;
            let wanted = start_up_rate(rate).bps() as f64;
            assert!((seen / wanted - 1.0).abs() < 0.03, "level {level} sees {seen} and not {wanted}");
        }
    }

    #[test]
    fn until_it_may_have_another_start_up_burst_each_channel_has_its_rate() {
        let ladder = ladder();
        for (channel, factor, span) in [(0, 0.0, 100), (40, 0.0, 50), (40, 3.0, 100), (40, 9.0, 100)] {
            let burst = StartUpBurst::of(&ladder, channel, factor);
            let factors: Vec<_> = (0..1_000).map_while(|millis| burst.factor(Duration::from_millis(millis))).collect();
            assert_eq!(factors.len(), span, "channel {channel}, {factor}");
            assert!((factors.iter().sum::<f64>() / span as f64 - 1.0).abs() < 1e-9, "channel {channel}, {factor}");
            assert!(factors.iter().all(|factor| *factor >= 0.25), "channel {channel}, {factor}");
        }
    }
}
