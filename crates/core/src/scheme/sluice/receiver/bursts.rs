//! What a receiver measures in bursts, and of the queue outside of them.

use core::time::Duration;

use weir_units::Time;
use weir_wire::Layered;

use super::super::burst::Measuring;
use super::super::cycle::{self, Burst, CYCLE, START_UP_BURST, START_UP_PART, START_UP_PARTS, Shown};
use super::super::queue::Queue;
use super::Receiver;
use crate::estimate::{DelaySample, TimestampDifference};

impl Receiver {
    /// A slot begins with this packet: its burst, if it has one, tells of the channels that were there before. One that leaves out the
    /// highest of them does not, nor does one of which the receiver did not hear whether it does.
    pub(super) fn begin_slots_burst(&mut self, header: &Layered, place: u16) {
        (self.slot.clock, self.slot.part) = (header.clock_micros as u32, 0);
        let (kind, shown, limit) = match (cycle::burst(u64::from(place)), self.shown) {
            (Burst::StartUp, _) => return self.begin_start_up_burst(header),
            (_, Some(Shown::All)) => (Burst::NextLevel, Shown::All, None),
            (_, Some(Shown::UpTo(limit))) if limit >= self.level => (Burst::NextLevel, Shown::UpTo(limit), Some(limit)),
            (_, Some(Shown::Folded(level))) if level == self.level => (Burst::Folded, Shown::Folded(level), None),
            _ => return,
        };
        let rate = cycle::next_level_rate(&self.ladder, self.level, self.config.margin, shown);
        let length = cycle::next_level_length(self.rate(), self.packet_size);
        self.begin_measuring(Measuring::new(kind, limit, rate, length, header.clock_micros as u32));
    }

    /// A start-up burst may begin with this packet.
    fn begin_start_up_burst(&mut self, header: &Layered) {
        let (ladder, size) = (&self.ladder, self.packet_size);
        let Some(rate) = cycle::start_up_rate(ladder, self.level, self.config.margin, size, self.slot.part) else {
            return;
        };
        self.begin_measuring(Measuring::new(Burst::StartUp, None, rate, START_UP_BURST, header.clock_micros as u32));
    }

    fn begin_measuring(&mut self, measuring: Measuring) {
        self.least_before = self.delay.minimum().map_or(0, |least| least.0);
        self.measuring[measuring.kind() as usize] = Some(measuring);
    }

    /// The later start-up bursts of a slot begin with the first of their packets that comes.
    pub(super) fn begin_later_burst(&mut self, header: &Layered) {
        if !self.is_start_up_slot() || !header.signal {
            return;
        }
        let since = Duration::from_micros(u64::from((header.clock_micros as u32).wrapping_sub(self.slot.clock)));
        let part = ((since + START_UP_PART / 2).as_micros() / START_UP_PART.as_micros()) as u32;
        if part > self.slot.part && part < START_UP_PARTS {
            self.slot.part = part;
            self.begin_start_up_burst(header);
        }
    }

    /// Whether the slot's bursts, if it has any, are start-up bursts.
    pub(super) fn is_start_up_slot(&self) -> bool {
        self.place.in_cycle().is_some_and(|place| cycle::burst(u64::from(place)) == Burst::StartUp)
    }

    /// A burst is judged as soon as it is over, so that what is joined in the start is there when the next one begins.
    pub(super) fn end_bursts(&mut self, now: Time, clock: u32) {
        for kind in [Burst::StartUp, Burst::NextLevel, Burst::Folded] {
            let over = self.measuring[kind as usize].take_if(|measuring| measuring.is_over(clock));
            let Some(verdict) = over.and_then(|over| over.verdict(self.packet_size)) else { continue };
            let part = self.rules.part();
            let change = self.rules.on_burst(&self.seen(now, None, Some(verdict)));
            if self.rules.part() > part {
                self.arrivals.on_rate_change();
            }
            self.change(now, change);
        }
    }

    pub(super) fn measure(&mut self, now: Time, header: &Layered, sample: DelaySample) {
        if matches!(sample, DelaySample::Restarted(_)) {
            self.queue = Queue::default();
            self.measuring = [None; 3];
            self.place.forget_clock();
        }
        let (DelaySample::Taken(TimestampDifference(difference))
        | DelaySample::Restarted(TimestampDifference(difference))) = sample
        else {
            return;
        };
        let waited = self.delay.short_term();
        self.queue.on_any_packet(waited);
        if header.signal {
            (self.slot.has_burst, self.slot.burst_clock) = (true, header.clock_micros as u32);
            if self.is_start_up_slot() {
                self.starts.on_burst(now);
            }
        }
        for measuring in self.measuring.iter_mut().flatten() {
            let (clock, waited) = (header.clock_micros as u32, (difference - self.least_before) as f64 * 1e-6);
            if header.signal { measuring.on_packet(clock, waited) } else { measuring.on_other(clock, waited) }
        }
        if !header.signal && !self.is_after_next_level() {
            self.queue.on_packet(waited);
            self.slot.waited = (self.slot.waited.0 + waited, self.slot.waited.1 + 1);
        }
    }

    /// What follows a burst in its slot may wait in the burst's queue. That of a start-up burst is gone at the end of the slot, so the
    /// least delay of the slot tells, whichever receiver starts.
    pub(super) fn is_after_next_level(&self) -> bool {
        self.slot.has_burst && self.place.in_cycle() == Some(CYCLE as u16 - 1)
    }
}
