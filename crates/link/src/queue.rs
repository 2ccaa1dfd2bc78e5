//! What waits for its turn on a link, and what has to go.

use alloc::collections::VecDeque;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use weir_units::{Bytes, Rate, Time, parse_span};

/// A packet in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued<P> {
    /// Its bytes on the link.
    pub size: Bytes,
    /// When it came.
    pub arrived: Time,
    /// The packet.
    pub packet: P,
}

/// The rest of the packet that is being sent, which is not in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// How long until it is sent.
    pub sending_for: Duration,
    /// What the link sends at.
    pub rate: Rate,
}

/// A queueing discipline: decides who waits, who goes first, and who is dropped.
pub trait Queue<P> {
    /// A packet comes while the link is busy with another. Gives back the packet that has to go instead, which may be the
    /// one that came.
    fn enqueue(&mut self, packet: Queued<P>, backlog: Backlog) -> Result<(), P>;

    /// The link is free at `now`: the packet whose turn it is.
    fn dequeue(&mut self, now: Time) -> Option<Queued<P>>;

    /// Packets that wait.
    fn len(&self) -> usize;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How much may wait, not counting the packet that is being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// So many packets.
    Packets(usize),
    /// So many bytes.
    Bytes(Bytes),
    /// What the link sends in so long: a packet may come that will wait no longer than this.
    Span(Duration),
}

impl FromStr for Buffer {
    type Err = ();
    /// `100ms`, `64kB`, `80p`.
    fn from_str(text: &str) -> Result<Buffer, ()> {
        if let Some(packets) = text.strip_suffix("packets").or_else(|| text.strip_suffix('p')) {
            return packets.trim_end().parse().map(Buffer::Packets).map_err(|_| ());
        }
        if let Ok(span) = parse_span(text)
            && text.ends_with('s')
        {
            return Ok(Buffer::Span(span));
        }
        // A bare number would not say of what.
        let ends_in_unit = text.ends_with(['b', 'B']);
        text.parse().ok().filter(|_| ends_in_unit).map(Buffer::Bytes).ok_or(())
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Buffer::Packets(packets) => write!(f, "{packets}p"),
            Buffer::Bytes(bytes) => write!(f, "{}B", bytes.count()),
            Buffer::Span(span) => write!(f, "{span:?}"),
        }
    }
}

/// First come, first served; who finds the buffer full is dropped.
#[derive(Debug, Clone)]
pub struct DropTail<P> {
    limit: Buffer,
    waiting: VecDeque<Queued<P>>,
    bytes: Bytes,
}

impl<P> DropTail<P> {
    /// An empty queue that holds up to `limit`.
    pub fn new(limit: Buffer) -> DropTail<P> {
        DropTail { limit, waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}

impl<P> Queue<P> for DropTail<P> {
    fn enqueue(&mut self, packet: Queued<P>, backlog: Backlog) -> Result<(), P> {
        let fits = match self.limit {
            Buffer::Packets(packets) => self.waiting.len() < packets,
            Buffer::Bytes(bytes) => self.bytes + packet.size <= bytes,
            Buffer::Span(span) => backlog.sending_for + self.bytes / backlog.rate <= span,
        };
        if !fits {
            return Err(packet.packet);
        }
        self.bytes += packet.size;
        self.waiting.push_back(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: Time) -> Option<Queued<P>> {
        let first = self.waiting.pop_front()?;
        self.bytes = self.bytes - first.size;
        Some(first)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
