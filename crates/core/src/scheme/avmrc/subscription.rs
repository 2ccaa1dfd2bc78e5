//! When a receiver adds and drops channels (AVMRC §3.3, §3.4).

use alloc::vec;
use alloc::vec::Vec;

use weir_units::Rate;

use super::config::{Config, Startup};
use crate::layers::Ladder;

/// A receiver's level, and the rules by which it changes. Knows nothing of packets.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Subscription {
    level: usize,
    is_slow_start: bool,
    confirm_startup: bool,
    gamma_add: f64,
    gamma_drop: f64,
    n_drop: u64,
    n_startup: u64,
    startup: Startup,
    levels: usize,
    /// The level before slow start's last step.
    step_begin: usize,
    /// Slots since the first packet.
    slot: u64,
    /// The start-up phase lasts while `slot` is below.
    startup_end: u64,
    /// The slot of the last add, if no drop came since.
    added: Option<u64>,
    /// By level: the slot in which it was last dropped.
    dropped: Vec<Option<u64>>,
    n_add: u64,
    /// No add before this slot: the host could not keep up.
    hold_adds_until: u64,
    /// The slot of the last drop because of the host.
    host_dropped: Option<u64>,
    /// The highest level that it may have.
    most: usize,
}

/// What the rules say at the end of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Stay,
    Add,
    Drop,
}

impl Subscription {
    pub(super) fn new(config: &Config, levels: usize) -> Subscription {
        Subscription {
            gamma_add: config.gamma_add,
            gamma_drop: config.gamma_drop,
            n_drop: config.n_drop,
            n_startup: config.n_startup,
            startup: config.startup,
            confirm_startup: config.confirm_startup,
            levels,
            level: 0,
            is_slow_start: true,
            step_begin: 1,
            slot: 0,
            startup_end: config.n_startup,
            added: None,
            dropped: vec![None; levels + 1],
            n_add: config.n_add,
            hold_adds_until: 0,
            host_dropped: None,
            most: levels,
        }
    }

    /// The highest level that it may have from here on.
    pub(super) fn set_most(&mut self, most: usize) {
        self.most = most.clamp(1, self.levels);
    }

    /// Whether it may have the next level.
    pub(super) fn may_go_on(&self) -> bool {
        self.level < self.most
    }

    pub(super) fn level(&self) -> usize {
        self.level
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.is_slow_start
    }

    /// Slots since the first packet.
    pub(super) fn slot(&self) -> u64 {
        self.slot
    }

    pub(super) fn is_top(&self) -> bool {
        self.level == self.levels
    }

    /// In this phase channels may be added in every slot.
    pub(super) fn is_startup(&self) -> bool {
        self.is_slow_start || self.slot < self.startup_end
    }

    /// Whether an add of the start-up phase needs slow start's test to pass.
    pub(super) fn confirms_startup(&self) -> bool {
        self.confirm_startup
    }

    /// Whether slow start's test may be asked for: in slow start, and where the start-up phase needs it too.
    pub(super) fn tests_arrival(&self) -> bool {
        self.is_slow_start || self.confirm_startup
    }

    /// Whether the next level was dropped in the last n_add slots.
    pub(super) fn is_next_just_dropped(&self) -> bool {
        let dropped = self.dropped.get(self.level + 1).copied().flatten();
        dropped.is_some_and(|dropped| self.slot - dropped < self.n_add)
    }

    /// Forgets when the levels from the next one up to below `tried` were dropped: slow start passed them over in a step,
    /// and only the step's own level was too much.
    pub(super) fn forget_drops_below(&mut self, tried: usize) {
        (self.level + 1..tried).for_each(|level| self.dropped[level] = None);
    }

    /// `slots` have passed.
    pub(super) fn on_slots(&mut self, slots: u64) {
        self.slot += slots;
    }

    /// Slow start takes a step from `level`, to which it goes back if the step is too large.
    pub(super) fn begin_step(&mut self, level: usize) {
        self.step_begin = level;
    }

    /// The level before slow start's last step.
    pub(super) fn step_begin(&self) -> usize {
        self.step_begin
    }

    pub(super) fn end_slow_start(&mut self) {
        self.is_slow_start = false;
        if self.startup == Startup::SlowStartEnd {
            self.startup_end = self.slot + self.n_startup;
        }
    }

    /// What the target rates (short-term and long-term, bit/s) say; `may_add` if this slot permits an add.
    ///
    /// Add: the lower target reaches the next level's rate and γ1 steps more. Drop: a target is below this level's rate
    /// less γ2 steps; the lower target if a channel was added in the last n_drop slots and none dropped since, else the
    /// higher one. The base layer is never dropped.
    pub(super) fn judge(&self, ladder: &Ladder, targets_bps: [f64; 2], may_add: bool) -> Change {
        let rate = |level: usize| ladder.level_rate(level).bps() as f64;
        let [short, long] = targets_bps;
        let is_trial = self.added.is_some_and(|added| self.slot - added <= self.n_drop);
        let (here, below) = (rate(self.level), rate(self.level.saturating_sub(1)));
        let judged = if is_trial { short.min(long) } else { short.max(long) };
        if self.level > 1 && judged < here - self.gamma_drop * (here - below) {
            return Change::Drop;
        }
        let above = rate(self.level + 1);
        let may_add = may_add && self.slot >= self.hold_adds_until && !self.is_top();
        if may_add && short.min(long) >= above + self.gamma_add * (above - here) {
            return Change::Add;
        }
        Change::Stay
    }

    /// The highest level that targets (bit/s) would add up to, one after the other.
    pub(super) fn carried(&self, ladder: &Ladder, targets_bps: [f64; 2]) -> usize {
        let rate = |level: usize| ladder.level_rate(level).bps() as f64;
        let lower = targets_bps[0].min(targets_bps[1]);
        let is_carried = |level: &usize| lower >= rate(*level) + self.gamma_add * (rate(*level) - rate(*level - 1));
        (1..=self.levels).take_while(is_carried).last().unwrap_or(0)
    }

    /// The host dropped too much in the slot: whether to drop a channel for it, at most once in n_drop slots.
    pub(super) fn judge_host_drops(&mut self) -> bool {
        let recent = self.host_dropped.is_some_and(|slot| self.slot - slot < self.n_drop);
        self.hold_adds_until = self.slot + HOLD_ADDS_SLOTS;
        if recent || self.level <= 1 {
            return false;
        }
        self.host_dropped = Some(self.slot);
        true
    }

    /// Takes one more channel; returns its number.
    pub(super) fn add(&mut self) -> usize {
        assert!(self.level < self.levels, "no channel above the highest can be added");
        self.added = Some(self.slot);
        self.level += 1;
        self.level - 1
    }

    /// Gives the highest channel up; returns its number.
    pub(super) fn drop_one(&mut self) -> usize {
        assert!(self.level > 0, "no channel below the base can be dropped");
        self.added = None;
        self.dropped[self.level] = Some(self.slot);
        self.level -= 1;
        self.level
    }
}

/// The highest level that a receiver has sustained (decision 6).
///
/// A level is sustained when slow start confirmed it, or when it, or one above, was held for n_add slots without a loss
/// event. A loss event at or below the sustained level ends that: then the level below the one at which it came is the
/// most that can be said.
#[derive(Debug)]
pub(super) struct SustainedLevel {
    n_add: u64,
    sustained: usize,
    /// For each level the slot since which the receiver has been there or above without a loss event.
    since: Vec<u64>,
}

impl SustainedLevel {
    pub(super) fn new(config: &Config, levels: usize) -> SustainedLevel {
        SustainedLevel { n_add: config.n_add, sustained: 1, since: vec![0; levels + 1] }
    }

    pub(super) fn level(&self) -> usize {
        self.sustained
    }

    /// Slow start's test has confirmed `level`.
    pub(super) fn on_confirmed(&mut self, level: usize) {
        self.sustained = self.sustained.max(level);
    }

    /// `level` was reached by an add in `slot`.
    pub(super) fn on_add(&mut self, level: usize, slot: u64) {
        self.since[level] = slot;
    }

    /// A loss event came at `level` in `slot`.
    pub(super) fn on_loss_event(&mut self, level: usize, slot: u64) {
        if level <= self.sustained {
            self.sustained = level.saturating_sub(1).max(1);
        }
        self.since.fill(slot);
    }

    /// `slot` begins at `level`.
    pub(super) fn on_slot(&mut self, level: usize, slot: u64) {
        while self.sustained < level && slot - self.since[self.sustained + 1] >= self.n_add {
            self.sustained += 1;
        }
    }
}

/// A rate as the rules compare it.
pub(super) fn bps(rate: Rate) -> f64 {
    rate.bps() as f64
}

/// After the host could not keep up it is not asked for more for so long.
const HOLD_ADDS_SLOTS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("valid")
    }

    /// At `level`, past slow start and the start-up phase, with the last add long ago.
    fn at(level: usize) -> Subscription {
        let mut rules = Subscription::new(&Config::default(), 9);
        (0..level).for_each(|_| {
            rules.add();
        });
        rules.end_slow_start();
        rules.on_slots(1000);
        rules
    }

    #[test]
    fn adding_needs_both_targets_half_a_step_beyond_the_next_level() {
        // Level 8 is 4374 kbit/s and half a step is 729.
        let judge = |short, long, may_add| at(7).judge(&ladder(), [short, long], may_add);
        assert_eq!(judge(5.103e6, 9e6, true), Change::Add);
        assert_eq!(judge(9e6, 5.102e6, true), Change::Stay);
        assert_eq!(judge(9e6, 9e6, false), Change::Stay, "only signalled slots permit an add");
        assert_eq!(at(9).judge(&ladder(), [9e9, 9e9], true), Change::Stay, "there is nothing above the top");
    }

    #[test]
    fn dropping_needs_the_higher_target_half_a_step_below_the_level() {
        // Level 7 is 2916 kbit/s and half a step down is 486.
        let judge = |short, long| at(7).judge(&ladder(), [short, long], false);
        assert_eq!(judge(2.429e6, 2.429e6), Change::Drop);
        assert_eq!(judge(2.430e6, 1e6), Change::Stay);
        assert_eq!(at(1).judge(&ladder(), [0.0, 0.0], true), Change::Stay, "the base layer stays");
    }

    #[test]
    fn after_an_add_the_lower_target_decides_for_n_drop_slots_or_until_a_drop() {
        let mut rules = at(6);
        rules.add();
        rules.on_slots(20);
        assert_eq!(rules.judge(&ladder(), [9e6, 2e6], false), Change::Drop);
        rules.on_slots(1);
        assert_eq!(rules.judge(&ladder(), [9e6, 2e6], false), Change::Stay);
        let mut rules = at(6);
        rules.add();
        rules.drop_one();
        assert_eq!(rules.judge(&ladder(), [9e6, 0.0], false), Change::Stay);
    }

    #[test]
    fn the_start_up_phase_lasts_fifty_slots_from_the_join_or_from_the_end_of_slow_start() {
        for (startup, end) in [(Startup::Join, 50), (Startup::SlowStartEnd, 80)] {
            let mut rules = Subscription::new(&Config { startup, ..Config::default() }, 9);
            rules.add();
            rules.on_slots(30);
            rules.end_slow_start();
            rules.on_slots(end - 31);
            assert!(rules.is_startup());
            rules.on_slots(1);
            assert!(!rules.is_startup());
        }
    }

    #[test]
    fn a_dropped_level_is_known_as_such_for_n_add_slots() {
        let mut rules = at(6);
        rules.drop_one();
        rules.on_slots(19);
        assert!(rules.is_next_just_dropped());
        rules.on_slots(1);
        assert!(!rules.is_next_just_dropped());
    }

    #[test]
    fn of_a_step_taken_back_only_its_own_level_is_known_as_dropped() {
        let mut rules = at(8);
        let given_up: Vec<usize> = (0..3).map(|_| rules.drop_one()).collect();
        assert_eq!(given_up, [7, 6, 5]);
        rules.forget_drops_below(8);
        assert!(!rules.is_next_just_dropped(), "level 6 was passed over");
        rules.add();
        rules.add();
        assert!(rules.is_next_just_dropped(), "level 8 was tried");
    }

    #[test]
    fn the_host_s_drops_cost_one_level_in_n_drop_slots_and_hold_adds_back() {
        let mut rules = at(5);
        assert!(rules.judge_host_drops());
        rules.drop_one();
        rules.on_slots(19);
        assert!(!rules.judge_host_drops());
        rules.on_slots(1);
        assert!(rules.judge_host_drops());
        assert_eq!(rules.judge(&ladder(), [9e9, 9e9], true), Change::Stay);
    }

    #[test]
    fn a_level_is_sustained_when_confirmed_or_held_and_not_after_a_loss_event_there() {
        let mut sustained = SustainedLevel::new(&Config::default(), 9);
        sustained.on_confirmed(4);
        sustained.on_add(5, 10);
        sustained.on_slot(5, 29);
        assert_eq!(sustained.level(), 4);
        sustained.on_slot(5, 30);
        assert_eq!(sustained.level(), 5);
        sustained.on_loss_event(6, 40);
        assert_eq!(sustained.level(), 5, "a loss above says nothing about what is sustained");
        sustained.on_loss_event(5, 41);
        assert_eq!(sustained.level(), 4);
        sustained.on_slot(5, 60);
        assert_eq!(sustained.level(), 4);
        sustained.on_slot(5, 61);
        assert_eq!(sustained.level(), 5, "it can be earned again");
    }
}
