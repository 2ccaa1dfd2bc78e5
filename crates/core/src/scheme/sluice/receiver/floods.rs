//! What a receiver does about a network that floods: it reports a full path, tells whether the sender's cut has emptied it, and follows the sender's
//! ceiling down and up. Whether the path is full, and what a cut has done, is judged in `flood.rs`.

use core::time::Duration;

use weir_units::{Rate, Time};

use super::super::arrivals::Counts;
use super::super::ceiling;
use super::super::flood::{CutSeen, News, Sends, SlotSeen};
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
        let sends_more = withheld < self.withheld;
        let sent = self.ladder.levels().saturating_sub(withheld).max(1);
        let is_little = sent == 1 || self.ladder.level_rate(sent) <= self.arrivals.rate(10).scale(ceiling::TESTED);
        let sends = match sends_more {
            true => Sends::More,
            false if is_little => Sends::Little,
            false => Sends::Less,
        };
        self.flood.on_ceiling(now, sends, self.queue.longest_standing(), self.got());
        self.withheld = withheld;
        if self.flood.was_at_share() {
            self.rules.measure_share();
        }
        if self.level > self.most() {
            // One ceiling may follow another.
            let before = self.lately_before_ceiling(now).unwrap_or(self.level);
            self.before_ceiling = Some((now, before));
            self.go_to(now, self.most(), LevelCause::Ceiling);
        } else if sends_more {
            self.return_after_ceiling(now);
        }
    }

    /// The sender withheld levels for some seconds only: the receiver has again what it had before, as far as that is sent.
    fn return_after_ceiling(&mut self, now: Time) {
        let before = self.lately_before_ceiling(now);
        self.before_ceiling = None;
        if let Some(level) = before.map(|level| level.min(self.most())).filter(|level| *level > self.level) {
            self.go_to(now, level, LevelCause::Ceiling);
            self.tell_wants(now);
        }
    }

    /// The level that the receiver had before a ceiling of the last seconds.
    fn lately_before_ceiling(&self, now: Time) -> Option<usize> {
        self.before_ceiling.filter(|(at, _)| now.since(*at) <= LONGEST_RETURN).map(|(_, level)| level)
    }

    /// Judges whether a cut has emptied the path, and tells the sender. Where it has, the receiver begins again: what was lost in a flood tells nothing of the
    /// receiver's share.
    pub(super) fn judge_cut(&mut self, now: Time) {
        let has_no_queue = self.queue.has_gone() && !self.has_lost(self.flood.much_loss());
        let seen = CutSeen {
            has_no_queue,
            part_lost: self.arrivals.second().part_lost(),
            has_larger_share: self.rules.has_larger_share(),
        };
        let Some(is_empty) = self.flood.judge_cut(now, &seen) else { return };
        if is_empty {
            if self.flood.was_at_share() {
                self.tell_user();
            }
            self.before_ceiling = None;
            self.share = Share::new(self.round_trip.unwrap_or(self.config.round_trip));
            self.rules.start_afresh();
        }
        self.probe_soon(now);
    }

    /// Says once that the path is full whatever the receiver leaves, and reports it to the sender as long as it is.
    pub(super) fn look_for_flood(&mut self, now: Time, all: Counts, base: Counts) {
        let news = self.flood.on_slot(&SlotSeen {
            now,
            all,
            base,
            got: self.got(),
            sent: (self.packet_size / self.rate()).as_secs_f64().recip(),
            has_lost_much: self.has_lost(self.flood.much_loss()),
            is_lowest: self.level == 1,
            is_held_apart: self.level < self.most() && self.rules.is_held_apart(now),
            is_queue_full: if self.flood.is_known() { self.queue.is_long() } else { self.queue.is_as_long_as_ever() },
        });
        if news == Some(News::Full) {
            self.tell_user();
        }
        if news.is_some() {
            self.probe_soon(now);
        }
    }

    /// What the receiver has of its rate: a level that was joined and does not come is none.
    fn got(&self) -> Rate {
        self.rate().min(self.arrivals.rate(HALF_A_SECOND))
    }

    fn tell_user(&mut self) {
        self.actions.push(Action::Observe(Observation::Flooded { received_rate: self.arrivals.rate(10) }));
    }

    /// The part of what is sent that the path carries, if it is full whatever the receiver leaves.
    pub(super) fn carried(&self, now: Time) -> Option<f64> {
        let sent = self.ladder.levels().saturating_sub(self.withheld).max(1);
        self.flood.carried(now, self.arrivals.rate(10), self.ladder.level_rate(sent))
    }
}

/// Slots.
const HALF_A_SECOND: usize = 5;
/// A ceiling that is lifted within this time was a test, or the sender's host was busy for a moment. The path still carries what it did.
const LONGEST_RETURN: Duration = Duration::from_secs(8);
