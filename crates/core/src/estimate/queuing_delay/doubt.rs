//! Packets whose clock no queue explains, until others of their channel decide.

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
    /// The packet that lowered the minimum by much: the sender's clock on it, and how it was before.
    pub(super) low_clock: u32,
    pub(super) least_before: i64,
    pub(super) before: Before,
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
/// Longer than packets of the slowest channels are apart.
const STALE: Duration = Duration::from_secs(2);
