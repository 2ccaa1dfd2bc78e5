//! What a receiver's losses tell: those of bursts, of paths that lose packets by themselves, of a pending leave, of a trial, and congestion.

use core::time::Duration;

use weir_units::Time;
use weir_wire::Layered;

use super::super::cycle::{SLOT, START_UP_BURST};
use super::super::own_losses::Met;
use super::super::rules::LONGEST_EMPTY;
use super::bursts::is_of_start_up;
use super::{A_SECOND, Receiver};
use crate::endpoint::Action;
use crate::observation::Observation;

impl Receiver {
    /// Counts the `missing` packets before one that arrived.
    pub(super) fn count_lost(&mut self, now: Time, header: &Layered, missing: u64) {
        let lost = self.host.attribute(missing);
        self.slot.counts.lost += lost;
        self.slot.base.lost += if header.channel == 0 { lost } else { 0 };
        if is_of_start_up(header) || self.tells_of_burst(header) {
            self.slot.counts.lost_in_bursts += lost;
        }
        if self.tells_soon(header) {
            self.own_losses.on_packet(self.met(), lost);
        }
        if header.signal || self.is_after_burst(now, header) || self.place.in_cycle() == Some(0) {
            return;
        }
        self.share.on_received();
        if lost > 0 {
            self.on_loss(now, header);
        }
    }

    /// A burst is more than the receiver asked for, and what is lost in it and right after it says no more than that. Where start-up bursts
    /// have gone on for longer than a start takes, and a queue stands, losses count: who starts for ever must not keep others from it.
    fn is_after_burst(&self, now: Time, header: &Layered) -> bool {
        let is_soon = self.since_start_up(header).is_some_and(|since| since < SLOT);
        let is_of_another = is_soon && !self.rules.is_starting();
        self.is_after_next_level()
            || is_of_another && !(self.starts.are_lasting(now) && self.queue.is_full(self.threshold()))
    }

    /// Whether the packets that this one shows to be missing may have been part of a start-up burst. A packet counts as lost once a few later
    /// ones of its channel have arrived, so this one tells of the burst if it was sent within that time after it, or within that
    /// time and the rest of the 100 ms in which the channel sends less.
    fn tells_of_burst(&self, header: &Layered) -> bool {
        let told_after = SLOT - START_UP_BURST + self.told_after(header) + self.config.period;
        self.since_start_up(header).is_some_and(|since| since <= told_after)
    }

    /// How long after a lost packet this packet's channel shows the loss.
    fn told_after(&self, header: &Layered) -> Duration {
        let channel = usize::from(header.channel);
        self.packet_times[channel] * u32::from(self.memberships.of(channel).tolerated())
    }

    /// The queue that the latest packets met.
    fn met(&self) -> Met {
        self.queue.met(self.delay.short_term())
    }

    /// Whether the packet's channel shows a loss so soon that the lost packet met about the queue that this one met.
    fn tells_soon(&self, header: &Layered) -> bool {
        self.told_after(header) <= SLOT
    }

    /// A loss is congestion if a queue stood, or much is lost; else the path loses packets by itself. What a fast channel lost was
    /// sent a moment ago, so that a queue that is about to overflow counts too, unless the path loses as much without one; what a slow one lost may have been
    /// lost in a burst, or before a leave acted that has answered it.
    fn on_loss(&mut self, now: Time, header: &Layered) {
        let threshold = self.threshold();
        let told_after = self.told_after(header);
        let overflows = self.tells_soon(header) && self.met() == Met::Overflow && self.own_losses.are_exceeded();
        let stood = self.queue_stood_lately(now, threshold) || overflows;
        let is_much = !self.leaves.was_pending(now, A_SECOND) && self.has_lost_outside_bursts(self.config.own_loss);
        if !stood && !is_much {
            return;
        }
        if !stood {
            self.look_for_lossy_path(now);
        }
        let is_pending = self.leaves.was_pending(now, told_after.min(A_SECOND));
        self.leaves.on_loss(now);
        if is_pending {
            return self.share.on_answered_loss();
        }
        if self.rules.is_trying(now) {
            let change = self.rules.take_back(now, self.level);
            return self.change(now, change);
        }
        if self.rules.take_back_part(now) {
            self.on_less_of_step(now);
            return self.tell_wants(now);
        }
        if self.rules.is_starting() && self.tells_of_burst(header) {
            // The burst itself was too much, and what was joined after it may fit.
            return self.rules.end_start();
        }
        if self.rules.is_starting() && !self.queue.is_full(threshold) {
            let change = self.rules.overshot(self.level, self.arrivals.rate(2));
            return self.change(now, change);
        }
        let is_first = !self.share.has_lost();
        if self.share.on_loss(now, self.delay.short_term()) {
            self.slot.loss_event = true;
            self.actions.push(Action::Observe(Observation::LossEvent));
            if is_first {
                self.share.seed(self.arrivals.rate(10).scale(0.5), self.packet_size);
            }
        }
    }

    /// Much is lost without a queue: says so if giving way has not helped.
    fn look_for_lossy_path(&mut self, now: Time) {
        let lost = self.arrivals.second().and(self.slot.counts).outside_bursts().part_lost();
        if self.lossy_path.on_much_loss(now, self.rate(), lost) {
            self.actions.push(Action::Observe(Observation::LossyPath { lost }));
        }
    }

    /// Whether a queue has stood, so that a loss may be its overflow. A receiver that has long been alone on its path sees only the queues that bursts
    /// leave, and these do not count.
    fn queue_stood_lately(&self, now: Time, threshold: Duration) -> bool {
        if now.since(self.others_queue_stood) < LONGEST_EMPTY {
            self.queue.stood_lately(threshold)
        } else {
            self.queue.stood_lately_without_burst(threshold)
        }
    }

    /// Whether more than this part of the last second's packets was lost, beyond chance.
    pub(super) fn has_lost(&self, part: f64) -> bool {
        self.arrivals.second().and(self.slot.counts).have_lost(part, DEVIATIONS)
    }

    /// The same of what no start-up burst may have cost.
    pub(super) fn has_lost_outside_bursts(&self, part: f64) -> bool {
        self.arrivals.second().and(self.slot.counts).outside_bursts().have_lost(part, DEVIATIONS)
    }
}

/// What is beyond chance, in standard deviations.
const DEVIATIONS: f64 = 2.0;
