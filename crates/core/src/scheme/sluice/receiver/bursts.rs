//! What a receiver measures in bursts, and of the queue outside of them.

use core::time::Duration;

use weir_units::Time;
use weir_wire::Layered;

use super::super::announce;
use super::super::burst::Measuring;
use super::super::climb::Climb;
use super::super::cycle::{self, Burst, START_UP_BURST, Shown};
use super::super::place::LATEST;
use super::super::queue::Queue;
use super::Receiver;
use crate::estimate::{DelaySample, TimestampDifference};

impl Receiver {
    /// A slot begins with this packet: its burst, if it has one, tells of the channels that were there before. One that leaves out the
    /// highest of them does not, nor does one of which the receiver did not hear whether it does.
    pub(super) fn begin_slots_burst(&mut self, header: &Layered, place: u16) {
        let (kind, shown, limit) = match self.shown {
            _ if !cycle::shows_next_level(u64::from(place)) => return,
            Some(Shown::All) => (Burst::NextLevel, Shown::All, None),
            Some(Shown::UpTo(limit)) if limit >= self.level => (Burst::NextLevel, Shown::UpTo(limit), Some(limit)),
            Some(shown @ Shown::Folded(level, _)) if level == self.level => (Burst::Folded, shown, None),
            _ => return,
        };
        let rate = cycle::next_level_rate(&self.ladder, self.level, self.config.margin, shown);
        let length = cycle::next_level_length(self.rate(), self.packet_size);
        self.know_least();
        self.measuring = Some(Measuring::new(kind, limit, rate, length, header.clock_micros as u32));
    }

    /// A start-up burst may begin with this packet.
    pub(super) fn begin_start_up_burst(&mut self, now: Time, header: &Layered) {
        if !is_of_start_up(header) {
            return;
        }
        let clock = header.clock_micros as u32;
        let under_way = self.start_up.filter(|burst| clock_since(clock, burst.begun) < START_UP_BURST);
        let begun = under_way.map_or(clock, |burst| burst.begun);
        if under_way.is_none() {
            self.know_least();
            self.climb = Some(Climb::new(now));
        }
        self.start_up = Some(StartUpClock { begun, latest: clock });
    }

    /// How long after the latest packet of a start-up burst this one was sent; `None` if there was no such burst.
    pub(super) fn since_start_up(&self, header: &Layered) -> Option<Duration> {
        self.start_up.map(|burst| clock_since(header.clock_micros as u32, burst.latest))
    }

    /// A burst begins.
    fn know_least(&mut self) {
        self.least_before = self.delay.minimum().map_or(0, |least| least.0);
    }

    /// A burst is judged as soon as it is over, so that what is joined in the start is there when the next one begins.
    pub(super) fn end_bursts(&mut self, now: Time, clock: u32) {
        if self.climb.is_some_and(|climb| climb.is_over(now)) {
            self.end_climb(now);
        }
        let over = self.measuring.take_if(|measuring| measuring.is_over(clock));
        let Some(verdict) = over.and_then(|over| over.verdict(self.packet_size, self.config.own_loss)) else { return };
        let part = self.rules.part();
        let change = self.rules.on_burst(&self.seen(now, None, Some(verdict)));
        if self.rules.part() > part {
            self.arrivals.on_rate_change();
        }
        self.change(now, change);
    }

    /// The start-up burst is over.
    pub(super) fn end_climb(&mut self, now: Time) {
        let carried = self.climb.take().and_then(|climb| climb.carried(self.packet_size));
        if let Some(carried) = carried {
            let change = self.rules.on_start_up_burst(&self.seen(now, None, None), carried);
            self.change(now, change);
        }
    }

    pub(super) fn measure(&mut self, now: Time, header: &Layered, sample: DelaySample) {
        if matches!(sample, DelaySample::Restarted(_)) {
            self.queue = Queue::default();
            (self.climb, self.measuring) = (None, None);
            self.place.forget_clock();
            self.start_up = None;
        }
        let (DelaySample::Taken(TimestampDifference(difference))
        | DelaySample::Restarted(TimestampDifference(difference))) = sample
        else {
            return;
        };
        let waited = self.delay.short_term();
        self.queue.on_any_packet(waited);
        if header.signal {
            self.slot.has_burst = true;
            if is_of_start_up(header) {
                self.starts.on_burst(now);
            }
        }
        let (clock, beyond) = (header.clock_micros as u32, (difference - self.least_before) as f64 * 1e-6);
        if let Some(measuring) = &mut self.measuring {
            if header.signal { measuring.on_packet(clock, beyond) } else { measuring.on_other(clock, beyond) }
        }
        if let (Some(climb), Some(burst), true) = (&mut self.climb, self.start_up, is_of_start_up(header)) {
            climb.on_packet(now, clock_since(clock, burst.begun), beyond);
        }
        if !header.signal && !self.is_after_next_level() {
            self.queue.on_packet(waited);
            self.slot.waited = (self.slot.waited.0 + waited, self.slot.waited.1 + 1);
        }
    }

    /// What follows a burst in its slot may wait in the burst's queue. That of a start-up burst is gone at the end of the slot, so the
    /// least delay of the slot tells, whichever receiver starts.
    pub(super) fn is_after_next_level(&self) -> bool {
        self.slot.has_burst && self.place.in_cycle().is_some_and(|place| cycle::shows_next_level(u64::from(place)))
    }
}

/// The sender's clock at the beginning of a start-up burst, and in the latest of its packets that came.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartUpClock {
    begun: u32,
    latest: u32,
}

/// Whether the packet is part of a start-up burst.
pub(super) fn is_of_start_up(header: &Layered) -> bool {
    header.signal && !cycle::shows_next_level(u64::from(announce::place(header.slot)))
}

/// How long after `before` the sender's clock was this; nothing if it was sooner, as packets come out of order.
fn clock_since(clock: u32, before: u32) -> Duration {
    let since = clock.wrapping_sub(before);
    let is_sooner = Duration::from_micros(u64::from(u32::MAX - since)) < LATEST;
    if is_sooner { Duration::ZERO } else { Duration::from_micros(u64::from(since)) }
}
