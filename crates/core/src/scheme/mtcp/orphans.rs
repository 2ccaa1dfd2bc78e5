//! What is kept for members that have lost the node between this one and them (decision 19).

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Seq, Time};

/// Members that have lost the node between this one and them. What they lack is kept until they are back, or for a while: they
/// turn to this node, or to another that keeps it.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    lost: Vec<Lost>,
    back: Vec<Back>,
}

/// Receivers that came back of late.
#[derive(Debug, Clone, Copy)]
struct Back {
    at: Time,
    node: u16,
    receivers: u32,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    /// Its check sum.
    node: u16,
    low_mark: Seq,
    receivers: u32,
    until: Time,
}

impl Orphans {
    /// A child is gone that had this many receivers below it.
    pub(super) fn lose(&mut self, now: Time, node: u16, low_mark: Seq, receivers: u32) {
        self.lost.push(Lost { node, low_mark, receivers, until: now + ORPHAN_GRACE });
        self.settle(now);
    }

    /// Receivers have come here that have lost this node, if they have lost one.
    pub(super) fn come_back(&mut self, now: Time, node: u16, receivers: u32) {
        if node != 0 {
            self.back.push(Back { at: now, node, receivers });
            self.settle(now);
        }
    }

    /// Waits no longer than it has to.
    pub(super) fn settle(&mut self, now: Time) {
        self.back.retain(|back| now.since(back.at) < ORPHAN_GRACE);
        let of = |node| self.back.iter().filter(move |back| back.node == node).map(|back| u64::from(back.receivers));
        self.lost.retain(|lost| lost.until > now && u64::from(lost.receivers) > of(lost.node).sum());
    }

    /// All of them have lower numbers.
    pub(super) fn low_mark(&self) -> Option<Seq> {
        self.lost.iter().map(|lost| lost.low_mark).min()
    }

    /// When it has waited long enough for some.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.lost.iter().map(|lost| lost.until).min()
    }
}

/// Members look for another node after seven seconds of silence, or ten, and find one in a few more.
const ORPHAN_GRACE: Duration = Duration::from_secs(30);
