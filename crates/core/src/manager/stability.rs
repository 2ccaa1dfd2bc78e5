//! The layer manager (PSLM §2.2): when a session takes layers again that it had given up.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::Time;

use super::Config;

/// How it is decided (decision 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// A layer is added as soon as it is wished for.
    None,
    /// The paper's: what most wishes of ten seconds are for counts; the fifth time in a row it is granted, and nothing for a minute
    /// then.
    Counted,
    /// Each level is counted by itself. One layer more is granted as in the paper, and for each layer beyond that it takes one time
    /// less: many layers at once are no shifting, but somebody who has left.
    ByLevel,
}

/// What is remembered of a session.
#[derive(Debug)]
pub(super) struct Wishes {
    /// Wishes are looked at no earlier.
    next_check: Time,
    /// By level: how many wishes since the last check were for it or more. That for level 0 counts all.
    votes: Vec<u32>,
    /// Checks in a row at which most wishes were for more: of the session at 0, and of each level.
    counts: Vec<u64>,
    /// The lowest level that was given up; those above were, too.
    given_up: Option<usize>,
}

impl Wishes {
    pub(super) fn new(levels: usize) -> Wishes {
        Wishes { next_check: Time::ZERO, votes: vec![0; levels + 1], counts: vec![0; levels + 1], given_up: None }
    }

    /// The session has given up all above `level`.
    pub(super) fn on_drop(&mut self, level: usize) {
        let lowest = level + 1;
        self.given_up = Some(self.given_up.map_or(lowest, |before| before.min(lowest)));
        self.votes.fill(0);
    }

    /// The session is at `level` and wishes for `wished`, of which it may have `most`. Returns to what level it may go by itself
    /// from here on.
    pub(super) fn grant(&mut self, now: Time, config: &Config, level: usize, wished: usize, most: usize) -> usize {
        let Some(given_up) = self.given_up.filter(|_| config.stability != Stability::None) else { return most };
        // Levels below those that it gave up are free.
        let level = level.max(given_up - 1);
        let wished = wished.min(most).min(self.votes.len() - 1);
        self.votes[..=wished].iter_mut().for_each(|votes| *votes += 1);
        if now < self.next_check {
            return level.min(most);
        }
        let wished = self.majority();
        self.next_check = now + if wished > level { config.postpone } else { Duration::ZERO };
        for (to, count) in self.counts.iter_mut().enumerate().skip(1) {
            *count = if to > level && to <= wished { *count + 1 } else { 0 };
        }
        self.counts[0] = if wished > level { self.counts[0] + 1 } else { 0 };
        let granted = match config.stability {
            Stability::None => wished,
            Stability::Counted if self.counts[0] >= config.cycles => wished,
            Stability::Counted => 0,
            Stability::ByLevel => self.counted(config, level, wished),
        };
        if granted <= level {
            return level.min(most);
        }
        self.counts.fill(0);
        if config.stability == Stability::Counted {
            self.next_check = now + config.rest;
        }
        granted
    }

    /// The highest level that more than half of the wishes were for, since this was last asked.
    fn majority(&mut self) -> usize {
        let all = self.votes[0];
        let level = self.votes.iter().rposition(|votes| votes * 2 > all).unwrap_or(0);
        self.votes.fill(0);
        level
    }

    fn counted(&self, config: &Config, level: usize, wished: usize) -> usize {
        let is_granted = |to: &usize| self.counts[*to] + (to - level - 1) as u64 >= config.cycles;
        (level + 1..=wished).rev().find(is_granted).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a session at level 2 that wishes for `wished` each second may have more, and what.
    fn granted(stability: Stability, wished: usize) -> (u64, usize) {
        let config = Config { stability, ..Config::default() };
        let mut wishes = Wishes::new(10);
        wishes.on_drop(2);
        (1..)
            .map(|secs| (secs, wishes.grant(Time::from_secs(secs), &config, 2, wished, 10)))
            .find(|(_, level)| *level > 2)
            .expect("at some time")
    }

    #[test]
    fn the_fifth_wish_is_granted_and_they_are_ten_seconds_apart() {
        assert_eq!(granted(Stability::Counted, 3), (41, 3));
        assert_eq!(granted(Stability::Counted, 6), (41, 6));
    }

    #[test]
    fn by_level_many_layers_come_sooner_than_one() {
        assert_eq!(granted(Stability::ByLevel, 3), (41, 3));
        assert_eq!(granted(Stability::ByLevel, 4), (31, 4));
        assert_eq!(granted(Stability::ByLevel, 6), (11, 6));
        assert_eq!(granted(Stability::ByLevel, 7), (1, 7));
    }

    #[test]
    fn a_session_that_gave_nothing_up_is_free() {
        let mut wishes = Wishes::new(10);
        assert_eq!(wishes.grant(Time::ZERO, &Config::default(), 1, 6, 8), 8);
        wishes.on_drop(7);
        assert_eq!(wishes.grant(Time::ZERO, &Config::default(), 1, 6, 10), 7, "it never gave up less than 8");
        assert_eq!(wishes.grant(Time::ZERO, &Config::default(), 7, 8, 10), 7);
    }

    #[test]
    fn after_a_grant_the_paper_s_manager_rests_for_a_minute() {
        let config = Config { stability: Stability::Counted, cycles: 1, ..Config::default() };
        let mut wishes = Wishes::new(10);
        wishes.on_drop(0);
        let mut at = |secs, level| wishes.grant(Time::from_secs(secs), &config, level, 9, 9);
        assert_eq!([at(1, 2), at(60, 3), at(61, 3)], [9, 3, 9]);
    }
}
