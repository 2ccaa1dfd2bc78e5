//! What a receiver tells its sender of itself: what it wants, and in its start what it has.
//!
//! Not here: reports of floods (`floods.rs`), and when a wish is told ([`super::super::demand::Reporter`]).

use weir_units::Time;
use weir_wire::{Layered, probe};

use super::super::cycle::START_UP_PART;
use super::super::demand;
use super::Receiver;
use crate::probing;

impl Receiver {
    /// Tells the sender what the receiver wants, if it is time to.
    pub(super) fn tell_wants(&mut self, now: Time) {
        if !self.config.probes {
            return;
        }
        let wanted = match self.level {
            level if level > 0 && self.rules.is_starting() => {
                let round_trip = self.round_trip.unwrap_or(self.config.round_trip);
                (demand::wanted_in_start(&self.ladder, level, round_trip).min(self.most()), 0)
            }
            level => (level, self.rules.part()),
        };
        let (interval, turn) = (self.probing.interval(), self.probing.turn());
        if let Some(wanted) = self.reporter.on_wants(now, wanted, interval, turn) {
            self.actions.push(probing::want(wanted));
        }
    }

    /// Tells when the start is over. In the start, and while there is something else to report, probes are frequent, as reports go with them. If the start
    /// goes on after all, the first one is sent soon.
    pub(super) fn tell_of_start(&mut self, now: Time) {
        let is_starting = self.rules.is_starting();
        if is_starting && !self.was_starting {
            self.probe_soon(now);
        }
        if !is_starting && self.told_start > 0 {
            self.tell_start(0);
        }
        self.was_starting = is_starting;
        self.probing.set_rarity(if is_starting || self.flood.has_to_tell(now) { 1 } else { RARE });
    }

    /// In the start the receiver tells what it has when something of what it joined has come: the next burst is then seen in it. On a long path the regular
    /// bursts are sooner than what it asks for.
    pub(super) fn tell_what_came(&mut self, header: &Layered) {
        let is_new = (self.told_start..self.level).contains(&usize::from(header.channel));
        let is_near = self.told_start == 0 || self.round_trip.unwrap_or(self.config.round_trip) <= START_UP_PART;
        let is_followed = self.config.probes && self.probing.interval() <= demand::LONGEST_FOLLOWED;
        if is_new && is_near && is_followed && self.rules.is_starting() {
            self.tell_start(self.level);
        }
    }

    /// Tells that the receiver starts and has this level, or with 0 that its start is over.
    pub(super) fn tell_start(&mut self, level: usize) {
        self.told_start = level;
        let level = level.min(usize::from(probe::Starting::MOST_LEVEL)) as u16;
        self.actions.push(probing::start(probe::Starting { receiver: self.reporter.receiver(), level }));
    }
}

/// A receiver that has found its rate measures its round trip twice a minute.
const RARE: u32 = 30;
