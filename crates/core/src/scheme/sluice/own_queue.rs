//! Whose queue it is that stands: that of others, who make room for each other, or the receiver's own, which is more than the path carries.
//!
//! A queue says nothing of who fills it. Where buffers hold seconds, nothing is lost either for a long time. But a queue grows as fast as more is sent than the path
//! delivers, and TCPs send less within a few round trips of what somebody else sends more.
//!
//! Not here: what a queue of its own costs a receiver ([`super::rules`]).

use core::time::Duration;

use weir_units::{Rate, Time};

use super::cycle::{CYCLE, SLOT};
use super::rules::{LONGEST_EMPTY, Seen};

/// A long queue of the receiver's own, which takes long to fall.
#[derive(Debug, Default)]
pub(super) struct OwnQueue {
    /// How long it was at the shortest, and when.
    long: Option<(Duration, Time)>,
}

impl OwnQueue {
    /// A slot has ended at a level of this `rate`.
    pub(super) fn on_slot(&mut self, seen: &Seen, rate: Rate) {
        if seen.queue >= LONG && grows(seen, rate) {
            self.long = Some((seen.queue, seen.now));
        }
        let Some((shortest, at)) = &mut self.long else { return };
        if seen.queue < *shortest {
            (*shortest, *at) = (seen.queue, seen.now);
        }
        if seen.is_empty || seen.now.since(*at) >= LONGEST_EMPTY {
            self.long = None;
        }
    }

    /// Whether the queue that stands is the receiver's own.
    pub(super) fn stands(&self, seen: &Seen, rate: Rate) -> bool {
        self.is_long() || grows(seen, rate)
    }

    /// Whether it is a long one, or what is left of it.
    pub(super) const fn is_long(&self) -> bool {
        self.long.is_some()
    }
}

/// Whether the path delivers notably less than this rate, and the queue has grown accordingly.
fn grows(seen: &Seen, rate: Rate) -> bool {
    seen.delivered < rate.scale(DELIVERED) && seen.queue >= (SLOT * CYCLE as u32).mul_f64(1.0 - DELIVERED)
}

/// Next to others a path delivers at least so much of what a receiver has. Where nobody makes room when a start goes up by half, it is two thirds.
const DELIVERED: f64 = 0.8;
/// Four round trips of 160 ms are less, and hardly a buffer is longer.
const LONG: Duration = Duration::from_secs(1);
