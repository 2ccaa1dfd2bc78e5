//! What a receiver knows of one channel.

use weir_units::{Bytes, Rate, Time};
use weir_wire::Layered;

use super::reordering::Reordering;
use super::silence::Silence;
use super::was_sent_since;
use crate::estimate::{Arrival, QueuingDelay, SequenceTracker};

/// Whether a receiver is a member of a channel, since when, and what came of it.
///
/// A packet touches one line of the cache here, from the tracker's end to the silence's beginning; the tracker's window only
/// if it is late or begins another word of it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Membership {
    tracker: SequenceTracker,
    /// When the channel was last joined, the first time or again.
    joined: Time,
    state: State,
    silence: Silence,
    reordering: Reordering,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The receiver is no member.
    Left,
    /// No packet that was sent since the join has come. `again` if the channel was silent and joined once more.
    Joined { again: bool },
    /// One has. The sender's clock on the first of them, in microseconds modulo 2^32, as delays are.
    Heard { first_clock: u32 },
}

/// What a new packet is to the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// It is of a channel that the receiver is no member of.
    Stray,
    /// It was sent before the channel was joined, so that gaps around it are no losses.
    SentBefore,
    /// It was sent since.
    Measured {
        /// Packets of the channel that count as missing now.
        missing: u64,
        /// When the channel was joined, if this is the first packet since, and the channel was not silent and joined again:
        /// then the time in between tells nothing of how long joins take.
        answers_join: Option<Time>,
    },
}

impl Membership {
    /// Before the first join of a channel of this rate, whose sequence numbers have `sequence_bits` on the wire.
    pub(super) fn new(rate: Rate, packet_size: Bytes, sequence_bits: u32, reordering: Reordering) -> Membership {
        Membership {
            tracker: SequenceTracker::new(sequence_bits, reordering.at_first()),
            joined: Time::ZERO,
            state: State::Left,
            silence: Silence::new(rate, packet_size),
            reordering,
        }
    }

    /// Whether the receiver is a member.
    #[inline]
    pub(crate) fn is_member(&self) -> bool {
        self.state != State::Left
    }

    /// Whether a packet has come that was sent since the channel was joined.
    pub(crate) fn is_heard(&self) -> bool {
        self.first_clock().is_some()
    }

    /// The sender's clock on the first packet that was sent since the join, in microseconds modulo 2^32, as delays are.
    pub(crate) fn first_clock(&self) -> Option<u32> {
        match self.state {
            State::Heard { first_clock } => Some(first_clock),
            State::Left | State::Joined { .. } => None,
        }
    }

    /// The sender's clock has another origin: a channel that was heard counts as heard since now.
    pub(super) fn on_clock_restart(&mut self, clock_micros: u64) {
        if self.is_heard() {
            self.state = State::Heard { first_clock: clock_micros as u32 };
        }
    }

    /// When the channel was last joined, the first time or again.
    pub(crate) fn joined(&self) -> Time {
        self.joined
    }

    /// How many later packets of the channel give a missing one up.
    #[inline]
    pub(crate) fn tolerated(&self) -> u8 {
        self.tracker.tolerated()
    }

    /// Whether packets of the channel have numbers like this.
    #[inline]
    pub(super) fn is_number(&self, sequence: u32) -> bool {
        self.tracker.is_number(sequence)
    }

    pub(super) fn join(&mut self, now: Time) {
        self.silence.on_join(now);
        self.begin(now, State::Joined { again: false });
    }

    pub(super) fn leave(&mut self) {
        self.state = State::Left;
    }

    /// Whether nothing has come for so long that something must be wrong.
    pub(super) fn is_silent(&self, now: Time) -> bool {
        self.silence.is_silent(now)
    }

    /// Joins the channel again if it is time to. Returns whether it did.
    pub(super) fn rejoin_if_silent(&mut self, now: Time) -> bool {
        let wants = self.silence.wants_rejoin(now);
        if wants {
            self.begin(now, State::Joined { again: true });
        }
        wants
    }

    /// What was missed before a join is no loss.
    fn begin(&mut self, now: Time, state: State) {
        self.tracker.begin();
        self.joined = now;
        self.state = state;
    }

    /// A packet of the channel came. `None` if it came before, or its number is far from what the channel was at.
    #[inline]
    pub(super) fn on_packet(&mut self, now: Time, header: &Layered, delay: &mut QueuingDelay) -> Option<Received> {
        let is_member = self.is_member();
        if delay.was_silent(now) && self.tracker.is_elsewhere(header.sequence) {
            delay.on_new_sender();
        }
        let measured = is_member && was_sent_since(delay, self.joined, now, header.clock_micros);
        let missing = match self.tracker.on_packet(header.sequence, measured) {
            Arrival::New { lost } => lost,
            Arrival::Late { behind } => {
                self.tracker.tolerate(self.reordering.after_late(now, self.tolerated(), behind));
                0
            }
            Arrival::Duplicate | Arrival::OutOfPlace => {
                delay.on_repeated(now, header.channel, header.clock_micros);
                return None;
            }
        };
        if missing > 0 {
            self.tracker.tolerate(self.reordering.after_loss(now, self.tolerated()));
        }
        if !is_member {
            return Some(Received::Stray);
        }
        self.silence.on_heard(now);
        if !measured {
            return Some(Received::SentBefore);
        }
        let answers_join = (self.state == State::Joined { again: false }).then_some(self.joined);
        if !self.is_heard() {
            self.state = State::Heard { first_clock: header.clock_micros as u32 };
        }
        Some(Received::Measured { missing, answers_join })
    }
}

#[cfg(test)]
mod tests {
    use core::mem::{offset_of, size_of};

    use super::*;

    /// The tracker's window.
    const SEEN_BYTES: usize = 128;

    #[test]
    fn what_a_packet_needs_of_its_channel_lies_in_one_line_of_the_cache() {
        assert_eq!(offset_of!(Membership, silence) + size_of::<Time>() - SEEN_BYTES, 64);
        assert_eq!(size_of::<Membership>(), 256);
    }
}
