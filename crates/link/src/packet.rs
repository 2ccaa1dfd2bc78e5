//! What a link knows of a packet: its label on the way in, and what became of it.

use weir_units::{Bytes, Ecn, Time};

/// What a queue may look at, next to the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Label {
    /// The flow that the packet belongs to, numbered by the owner. Fair queues keep flows apart by it.
    pub flow: u64,
    /// Whether it can be marked.
    pub ecn: Ecn,
}

/// A packet that came out of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered<P> {
    /// The packet.
    pub packet: P,
    /// When it came out; before the owner's `now` where the owner came late.
    pub at: Time,
    /// Whether the link's queue marked it: it carries [`Ecn::Ce`] from here on.
    pub marked: bool,
}

/// A packet that will not come out of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// Its bytes on the link.
    pub size: Bytes,
    /// When it was dropped by the queue, or would have come out had it not been lost.
    pub at: Time,
    /// Why.
    pub reason: DropReason,
}

/// Why a packet does not come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The buffer was full.
    Overflow,
    /// Active queue management dropped it before the buffer was full.
    Early,
    /// Lost on the way, by the link's loss model.
    Lost,
}
