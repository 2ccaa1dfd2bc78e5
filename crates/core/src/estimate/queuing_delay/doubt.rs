//! Packets whose clock no queue explains, or that lowered the minimum, until others decide.

use core::time::Duration;

use weir_units::Time;

use super::minimum::Before;

/// What is remembered of them. Packets that a queue explains do not look at it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Doubt {
    /// The newest packet of the jump: the difference of the clocks, on the wire's circle.
    wire: u32,
    /// When its first and its newest packet came, and how many have.
    since: Time,
    latest: Time,
    packets: u32,
    /// What the minimum was before a packet lowered it by much.
    pub(super) least_before: i64,
    pub(super) fall: Fall,
    /// The estimator has started again, and this is to be told of the first packet.
    pub(super) begins_again: bool,
}

/// Packets that lowered the minimum.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fall {
    /// When the first of them came, and how the minimum was before.
    since: Option<Time>,
    before: Before,
    least_before: i64,
    /// The newest: the sender's clock on it, and its difference.
    clock: u32,
    tsd: i64,
    /// A packet that was sent earlier came later, and they have been taken back.
    is_taken_back: bool,
    /// Packets of the channel that were as early after that.
    agreeing: u32,
}

impl Fall {
    /// A packet lowers the minimum from `least` to `tsd`. Those that came shortly before it stand and fall with it.
    pub(super) fn on_lower(&mut self, now: Time, clock: u32, [least, tsd]: [i64; 2], before: impl FnOnce() -> Before) {
        if self.is_taken_back || self.since.is_none_or(|since| now.since(since) >= TOGETHER) {
            *self = Fall { since: Some(now), before: before(), least_before: least, ..*self };
        }
        *self = Fall { clock, tsd, is_taken_back: false, ..*self };
    }

    /// Another channel's packet lowers the minimum, or the last one has been decided.
    pub(super) fn forget_agreeing(&mut self) {
        self.agreeing = 0;
    }

    /// A packet with this clock comes later. If it was sent earlier: how the minimum was.
    pub(super) fn on_later(&mut self, clock: u32) -> Option<Before> {
        let was_sent_earlier = (clock.wrapping_sub(self.clock) as i32) < 0;
        if self.is_taken_back || !was_sent_earlier {
            return None;
        }
        self.is_taken_back = true;
        Some(self.before)
    }

    /// Whether a packet with this difference is closer to what the minimum was than to what it fell to.
    pub(super) fn is_denied_by(&self, tsd: i64) -> bool {
        tsd - self.tsd > (self.least_before - self.tsd) / 2
    }

    /// The next packet of the channel comes.
    pub(super) fn on_next(&mut self, now: Time, tsd: i64) -> Verdict {
        if !self.is_taken_back {
            let is_old = self.since.is_none_or(|since| now.since(since) >= TOGETHER);
            return if is_old { Verdict::Over } else { Verdict::Open };
        }
        if self.is_denied_by(tsd) {
            return Verdict::Over;
        }
        self.agreeing += 1;
        if self.agreeing >= AGREEING { Verdict::Confirmed } else { Verdict::Open }
    }
}

/// What the next packet of the channel says of one that lowered the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Open,
    /// It stays as it is: nothing spoke against it, or it has been taken back.
    Over,
    /// It had been taken back, and enough packets of the channel are about as early.
    Confirmed,
}

impl Doubt {
    /// A jump begins with this packet.
    pub(super) fn begin(&mut self, now: Time, wire: u32) {
        *self = Doubt { wire, since: now, latest: now, packets: 1, ..*self };
    }

    /// Whether this packet goes on from where the jump went.
    pub(super) fn goes_on(&self, wire: u32) -> bool {
        i64::from(wire.wrapping_sub(self.wire) as i32).abs() <= NEAR_MICROS
    }

    /// A packet of the same channel goes on from there, with none between them that does not. Whether the jump counts now: one
    /// backwards at once, as no queue is shorter than none; one forwards if it lasts, as a queue may have built up unseen.
    pub(super) fn counts(&mut self, now: Time, wire: u32, is_later: bool) -> bool {
        (self.wire, self.latest) = (wire, now);
        self.packets = self.packets.saturating_add(1);
        self.packets >= AGREEING && (!is_later || now.since(self.since) >= LASTING)
    }

    /// Whether nothing has come of the jump's channel for so long that another one may decide.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        now.since(self.latest) >= STALE
    }
}

/// Packets in a row that agree.
const AGREEING: u32 = 3;
/// For so long a jump to longer delays must last.
const LASTING: Duration = Duration::from_secs(1);
/// A queue changes by less between two packets of a channel.
const NEAR_MICROS: i64 = 1_000_000;
/// A queue that empties lowers the minimum with packet after packet; so long after the first of them the earlier ones are believed.
const TOGETHER: Duration = Duration::from_millis(100);
/// Longer than packets of the slowest channels are apart.
const STALE: Duration = Duration::from_secs(2);
