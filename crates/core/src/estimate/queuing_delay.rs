//! One-way queuing delay from the difference of two clocks that need not agree.

mod doubt;
mod drift;
mod minimum;

use alloc::boxed::Box;
use core::time::Duration;

use weir_units::Time;

use super::ewma::Ewma;
use doubt::{Doubt, Verdict};
use minimum::Minimum;

/// Over what the smallest timestamp difference, which stands for the empty path, is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayWindow {
    /// All packets (the paper).
    Everything,
    /// The packets of about this span, which the estimator divides into ten. A path that has become longer falsifies the delay
    /// for this long, and so do clocks that drift apart, until eighty seconds have told how fast.
    Moving(Duration),
}

/// `None` is everything.
impl From<Option<Duration>> for DelayWindow {
    fn from(span: Option<Duration>) -> DelayWindow {
        span.map_or(DelayWindow::Everything, DelayWindow::Moving)
    }
}

impl From<DelayWindow> for Option<Duration> {
    fn from(window: DelayWindow) -> Option<Duration> {
        match window {
            DelayWindow::Everything => None,
            DelayWindow::Moving(span) => Some(span),
        }
    }
}

/// A timestamp difference: the receiver's clock at arrival less the sender's at departure, in microseconds since some
/// origin of the estimator's own, which stays the same until it restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimestampDifference(pub i64);

/// What a packet's timestamps were good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelaySample {
    /// They are part of the averages.
    Taken(TimestampDifference),
    /// They jumped and have been confirmed: the estimator has started again with them.
    Restarted(TimestampDifference),
    /// They jumped and are not believed yet.
    Ignored,
}

/// Short-term and long-term average one-way queuing delay (AVMRC §3.2).
///
/// Each is the average timestamp difference (TSD) less the smallest one seen. The clocks may be at any offset: differences
/// are taken modulo 2^32 microseconds and continued from packet to packet.
///
/// A packet that comes earlier than the empty path lets it, or later than a queue could make it since the last one, is not
/// believed: it is forged, or a clock was set, or another sender has begun. Only if its channel goes on from there the
/// estimator starts again, after three packets; where delays seem to have become longer, after a second of them. A packet that
/// lowers the minimum is taken at once, and taken back if one that was sent earlier comes later, unless that is of another channel and
/// three more of its own are as early: channels may take different queues. A sender that has started again has another clock. So a
/// clock that steps costs a second, and a forged packet nothing that lasts.
///
/// Example: TSDs of 100, 100 and 140 ms with a gain of 0.25 give a short-term delay of 10 ms.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct QueuingDelay {
    /// The last difference that was believed, continued, and when it came.
    last: i64,
    at: Time,
    /// The same difference on the wire's circle.
    last_wire: u32,
    /// The channel whose packets have jumped, the one whose packet lowered the minimum by much, and the one whose packet lowered it
    /// last, until its next ones decide.
    jumped: Option<u16>,
    lowered: Option<u16>,
    fallen: Option<u16>,
    short: Ewma,
    minimum: Minimum,
    doubt: Box<Doubt>,
    long: Ewma,
}

impl QueuingDelay {
    /// Before the first packet. `short_gain` is the weight of a packet's TSD, `long_gain` that of the short-term average
    /// at the end of each slot.
    pub fn new(short_gain: f64, long_gain: f64, window: DelayWindow) -> QueuingDelay {
        QueuingDelay {
            last: 0,
            at: Time::ZERO,
            last_wire: 0,
            jumped: None,
            lowered: None,
            fallen: None,
            short: Ewma::new(short_gain),
            minimum: Minimum::new(window),
            doubt: Box::default(),
            long: Ewma::new(long_gain),
        }
    }

    /// A packet of `channel` that left at the sender's `clock_micros` arrived at `now`.
    pub fn on_packet(&mut self, now: Time, channel: u16, clock_micros: u64) -> DelaySample {
        let wire = wire_difference(now, clock_micros);
        if self.lowered == Some(channel) {
            self.lowered = None;
        }
        if self.fallen.is_some() {
            self.look_back(channel, clock_micros);
        }
        let Some(least) = self.minimum.smallest() else { return self.begin(now, wire) };
        let step = self.step(now, wire);
        let tsd = self.last + step;
        if !self.is_explained(now, step) {
            return self.doubt(now, channel, wire, step > 0);
        }
        if self.jumped == Some(channel) {
            self.jumped = None;
        }
        if self.fallen == Some(channel) || tsd < least {
            self.note_fall(now, channel, clock_micros, [least, tsd]);
        }
        DelaySample::Taken(self.take(now, wire, tsd))
    }

    /// A packet of `channel` arrived whose number was seen before or is far off. It is not measured. But the earlier packet with that number may
    /// be the forged one, so a repeated packet can deny that the minimum fell, as any other of its channel can.
    #[cold]
    pub fn on_repeated(&mut self, now: Time, channel: u16, clock_micros: u64) {
        if self.fallen != Some(channel) {
            return;
        }
        self.look_back(channel, clock_micros);
        if self.difference(now, clock_micros).is_some_and(|TimestampDifference(tsd)| self.doubt.fall.is_denied_by(tsd))
        {
            self.fallen = None;
        }
    }

    /// Whether nothing has come for as long as a sender takes to start again.
    #[inline]
    pub fn was_silent(&self, now: Time) -> bool {
        now.since(self.at) >= SHORTEST_NEW_START
    }

    /// The sender has started again, as the numbers of its packets tell after a silence: the next packet is of another clock, though
    /// a queue might explain what it shows. Without a silence anybody may have sent these packets.
    #[cold]
    pub fn on_new_sender(&mut self) {
        *self = QueuingDelay::new(self.short.gain(), self.long.gain(), self.minimum.window());
        self.doubt.begins_again = true;
    }

    /// The path without queue has become longer by so much, as far as the caller can tell.
    #[cold]
    pub fn on_longer_path(&mut self, by: Duration) {
        self.minimum.raise(by.as_micros() as i64);
    }

    /// The first packet.
    #[cold]
    fn begin(&mut self, now: Time, wire: u32) -> DelaySample {
        let tsd = self.take(now, wire, 0);
        if core::mem::take(&mut self.doubt.begins_again) {
            DelaySample::Restarted(tsd)
        } else {
            DelaySample::Taken(tsd)
        }
    }

    /// A packet comes after one that lowered the minimum: if it was sent before it, that one was forged, or took another queue.
    #[cold]
    fn look_back(&mut self, channel: u16, clock_micros: u64) {
        if let Some(before) = self.doubt.fall.on_later(clock_micros as u32) {
            self.lowered = None;
            self.minimum.take_back(before);
            // Packets of one channel share a queue.
            if self.fallen == Some(channel) {
                self.fallen = None;
            }
        }
    }

    /// A packet lowers the minimum, or is one of the channel whose packet did.
    #[cold]
    fn note_fall(&mut self, now: Time, channel: u16, clock_micros: u64, [least, tsd]: [i64; 2]) {
        if self.fallen == Some(channel) {
            match self.doubt.fall.on_next(now, tsd) {
                Verdict::Open => {}
                Verdict::Over => self.fallen = None,
                Verdict::Confirmed => {
                    self.fallen = None;
                    return;
                }
            }
        }
        if tsd >= least {
            return;
        }
        if least - tsd > NOTABLE_FALL_MICROS && self.lowered.is_none() {
            self.lowered = Some(channel);
            self.doubt.least_before = least;
        }
        if self.fallen.replace(channel) != Some(channel) {
            self.doubt.fall.forget_agreeing();
        }
        self.doubt.fall.on_lower(now, clock_micros as u32, [least, tsd], || self.minimum.before(now));
    }

    fn take(&mut self, now: Time, wire: u32, tsd: i64) -> TimestampDifference {
        (self.last, self.last_wire, self.at) = (tsd, wire, now);
        self.short.update(tsd as f64);
        self.minimum.update(now, tsd);
        TimestampDifference(tsd)
    }

    /// A packet came that no queue explains; `is_later` if it came too late, and not too early.
    #[cold]
    fn doubt(&mut self, now: Time, channel: u16, wire: u32, is_later: bool) -> DelaySample {
        let is_of_jump = self.jumped == Some(channel) && self.doubt.goes_on(wire);
        if is_of_jump && self.doubt.counts(now, wire, is_later) {
            self.on_new_sender();
            return self.begin(now, wire);
        }
        let may_decide = self.jumped.is_none_or(|jumped| jumped == channel) || self.doubt.is_stale(now);
        if !is_of_jump && may_decide {
            self.jumped = Some(channel);
            self.doubt.begin(now, wire);
        }
        DelaySample::Ignored
    }

    /// By how much the difference has changed since the last packet, drift apart.
    fn step(&self, now: Time, wire: u32) -> i64 {
        let drift = self.minimum.correction(now) - self.minimum.correction(self.at);
        i64::from(wire.wrapping_sub(self.last_wire) as i32) - drift
    }

    /// Whether a queue explains this step. Packets of one queue do not overtake each other, so that the delay grows by no more
    /// than the time since the last packet; those of several may wait for different times. And none comes earlier than over the
    /// empty path.
    fn is_explained(&self, now: Time, step: i64) -> bool {
        let Some(least) = self.minimum.smallest() else { return true };
        let silence = now.as_micros().saturating_sub(self.at.as_micros()) as i64;
        step <= silence.min(LONGEST_UNSEEN_MICROS) + DIFFERENT_QUEUES_MICROS
            && self.last + step >= least - UNSEEN_FALL_MICROS
    }

    /// A slot ended: the short-term average enters the long-term one.
    pub fn on_slot(&mut self) {
        if let Some(short) = self.short.average() {
            self.long.update(short);
        }
    }

    /// Short-term average queuing delay; zero before the first packet.
    pub fn short_term(&self) -> Duration {
        self.above_minimum(self.short.average())
    }

    /// Long-term average queuing delay; the short-term one before the first slot ended.
    pub fn long_term(&self) -> Duration {
        self.above_minimum(self.long.average().or(self.short.average()))
    }

    /// The smallest TSD in the window: the path without queue. `None` before the first packet.
    pub fn minimum(&self) -> Option<TimestampDifference> {
        self.minimum.smallest().map(TimestampDifference)
    }

    /// The TSD of a packet that left at `clock_micros` and arrived at `now`, without taking it into account. `None` if no queue
    /// explains it.
    pub fn difference(&self, now: Time, clock_micros: u64) -> Option<TimestampDifference> {
        if self.minimum.smallest().is_none() {
            return Some(TimestampDifference(0));
        }
        let step = self.step(now, wire_difference(now, clock_micros));
        self.is_explained(now, step).then_some(TimestampDifference(self.last + step))
    }

    /// Microseconds from the moment at which the packet that left at `clock_micros` would have arrived over the empty path, to
    /// `time`; negative if `time` is before it. The packet arrived around `now`, within half of the 71 minutes after which
    /// clocks repeat; `time` may be any. `None` before the first packet.
    pub fn micros_past_empty_path(&self, now: Time, clock_micros: u64, time: Time) -> Option<i64> {
        let least = self.minimum.smallest()?;
        let waited = self.last + self.step(now, wire_difference(now, clock_micros)) - least;
        Some(waited - (now.as_micros() as i64 - time.as_micros() as i64))
    }

    /// Until the next packet of its channel has come, a packet that lowered the minimum by much does not count.
    fn settled_minimum(&self) -> Option<i64> {
        if self.lowered.is_some() { Some(self.doubt.least_before) } else { self.minimum.smallest() }
    }

    fn above_minimum(&self, average: Option<f64>) -> Duration {
        match (average, self.settled_minimum()) {
            (Some(average), Some(minimum)) => {
                Duration::from_nanos(((average - minimum as f64).max(0.0) * 1_000.0) as u64)
            }
            _ => Duration::ZERO,
        }
    }
}

/// The difference of the two clocks on the wire's circle.
fn wire_difference(now: Time, clock_micros: u64) -> u32 {
    (now.as_micros() as u32).wrapping_sub(clock_micros as u32)
}

/// A queue that built up while nothing came is no longer than this.
const LONGEST_UNSEEN_MICROS: i64 = 1_000_000;
/// By so much packets of one session may wait for longer in one queue than in another.
const DIFFERENT_QUEUES_MICROS: i64 = 500_000;
/// A packet that comes so much earlier than all before is not believed by itself: while packets come, a queue falls by no more
/// than they are sent apart.
const UNSEEN_FALL_MICROS: i64 = 50_000;
/// What lowers the minimum by more counts only when the next packet of its channel has come; networks that reorder packets move them by less.
const NOTABLE_FALL_MICROS: i64 = 10_000;
/// Nothing comes for so long while a sender starts again.
const SHORTEST_NEW_START: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
