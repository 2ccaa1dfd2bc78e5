//! What a receiver does about a network that floods: it tells of one, and begins again when the sender's ceiling has ended it. Whether the path
//! is flooded is judged in `flood.rs`.

use weir_units::Time;

use super::super::arrivals::Counts;
use super::super::flood::SlotSeen;
use super::super::share::Share;
use super::Receiver;
use crate::endpoint::Action;
use crate::observation::{LevelCause, Observation};

impl Receiver {
    /// The sender withholds this many levels from now on.
    pub(super) fn on_withheld(&mut self, now: Time, withheld: usize) {
        if withheld == self.withheld {
            return;
        }
        self.flood.on_ceiling(now, withheld < self.withheld);
        self.withheld = withheld;
        if self.level > self.most() {
            self.go_to(now, self.most(), LevelCause::Ceiling);
        }
    }

    /// Begins again when a ceiling has ended a flood: what was lost in it tells nothing of the receiver's share.
    pub(super) fn look_whether_flood_is_over(&mut self, now: Time) {
        if self.flood.has_been_cut_off(now, self.queue.is_empty(self.threshold())) {
            self.share = Share::new(self.round_trip.unwrap_or(self.config.round_trip));
            self.rules.start_again();
        }
    }

    /// Says once that the path is full whatever the receiver leaves, and reports it to the sender as long as it is.
    pub(super) fn look_for_flood(&mut self, now: Time, base: Counts) {
        let is_new = self.flood.on_slot(&SlotSeen {
            now,
            base,
            has_lost_much: self.has_lost(self.flood.much_loss()),
            is_lowest: self.level == 1,
            is_queue_full: self.queue.is_as_long_as_ever(),
        });
        if is_new {
            self.actions.push(Action::Observe(Observation::Flooded { received_rate: self.arrivals.rate(10) }));
            self.probe_soon(now);
        }
    }

    /// The part of what is sent that the path carries, if it is full whatever the receiver leaves.
    pub(super) fn carried(&self, now: Time) -> Option<f64> {
        let sent = self.ladder.levels().saturating_sub(self.withheld).max(1);
        self.flood.carried(now, self.arrivals.rate(10), self.ladder.level_rate(sent))
    }
}
