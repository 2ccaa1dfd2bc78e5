//! Tells a queue that the receiver's own rate has made from one that other flows keep.
//!
//! The delay alone does not show who fills a queue, and a buffer of several seconds loses nothing for a long time. But the receiver's own excess makes the queue grow
//! for as long as it lasts: the path delivers less than is sent. Where a TCP shares the queue, it makes room within a few round trips.
//!
//! Not here: what the receiver does about it ([`super::rules`]).

use core::time::Duration;

use weir_units::{Rate, Time};

use super::cycle::{CYCLE, SLOT};
use super::rules::{LONGEST_EMPTY, Seen};

/// Remembers a long queue of the receiver's own until it has drained.
#[derive(Debug, Default)]
pub(super) struct OwnQueue {
    /// Its least delay so far, and when that was.
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

    /// Whether it is a long one that has not drained yet.
    pub(super) const fn is_long(&self) -> bool {
        self.long.is_some()
    }
}

/// Whether the path delivers clearly less than this rate, and the queue is as long as a cycle of that makes it.
fn grows(seen: &Seen, rate: Rate) -> bool {
    seen.delivered < rate.scale(DELIVERED) && seen.queue >= (SLOT * CYCLE as u32).mul_f64(1.0 - DELIVERED)
}

/// Next to other flows, a path delivers at least this part of the receiver's rate. When a start goes up by half and nobody makes room, it delivers two thirds.
const DELIVERED: f64 = 0.8;
/// Longer than four round trips of 160 ms, and than nearly all buffers.
const LONG: Duration = Duration::from_secs(1);
