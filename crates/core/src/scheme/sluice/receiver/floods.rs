//! What a receiver does about a network that floods: it tells of one, and begins again when the sender's ceiling has ended it. Whether the path
//! is flooded is judged in `flood.rs`.

use weir_units::Time;

use super::super::arrivals::Counts;
use super::super::ceiling::JUDGEMENT;
use super::super::flood::SlotSeen;
use super::super::share::Share;
use super::Receiver;
use crate::endpoint::Action;
use crate::observation::{LevelCause, Observation};

impl Receiver {
    /// The sender withholds so many levels from here on.
    pub(super) fn on_withheld(&mut self, now: Time, withheld: usize) {
        if withheld == self.withheld {
            return;
        }
        self.flood.on_ceiling(withheld < self.withheld);
        if withheld > self.withheld && self.flood.was_flooded(now) {
            self.flood_cut = Some(now);
        }
        self.withheld = withheld;
        if self.level > self.most() {
            self.go_to(now, self.most(), LevelCause::Ceiling);
        }
    }

    /// Begins again when a ceiling has emptied the path: what was lost in the flood tells nothing of the receiver's share. Where the queue still
    /// stands, other traffic keeps it up, and what it cost counts.
    pub(super) fn look_whether_flood_is_over(&mut self, now: Time) {
        let Some(cut) = self.flood_cut else { return };
        if self.queue.is_empty(self.threshold()) {
            self.share = Share::new(self.round_trip.unwrap_or(self.config.round_trip));
            self.rules.start_again();
            self.flood_cut = None;
        } else if now.since(cut) >= JUDGEMENT {
            self.flood_cut = None;
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
