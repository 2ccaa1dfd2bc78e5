//! How much may wait. Which packet goes when it is too much is up to the discipline.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use weir_units::{Bytes, Rate, parse_span};

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

/// What the link does while a packet comes to its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// What it sends at; `None` is without limit.
    pub rate: Option<Rate>,
    /// How long the packet that is being sent, which is not in the queue, still takes; `None` if the link is free, and the
    /// packet that comes need not wait.
    pub sending_for: Option<Duration>,
}

impl Buffer {
    /// Whether a packet of `size` may join `packets` of `bytes` in all.
    pub fn has_room(&self, packets: usize, bytes: Bytes, size: Bytes, link: LinkState) -> bool {
        let Some(sending_for) = link.sending_for else { return true };
        match *self {
            Buffer::Packets(limit) => packets < limit,
            Buffer::Bytes(limit) => bytes + size <= limit,
            Buffer::Span(limit) => sending_for + link.rate.map_or(Duration::ZERO, |rate| bytes / rate) <= limit,
        }
    }
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
    /// The text that reads back as this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Buffer::Packets(packets) => write!(f, "{packets}p"),
            Buffer::Bytes(bytes) => write!(f, "{}B", bytes.count()),
            Buffer::Span(span) => write!(f, "{}ns", span.as_nanos()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_a_span_bytes_or_packets() {
        for (text, buffer) in [
            ("80p", Buffer::Packets(80)),
            ("80packets", Buffer::Packets(80)),
            ("64kB", Buffer::Bytes(Bytes::new(64_000))),
            ("64KiB", Buffer::Bytes(Bytes::new(65_536))),
            ("2.5s", Buffer::Span(Duration::from_millis(2500))),
            ("0ms", Buffer::Span(Duration::ZERO)),
        ] {
            assert_eq!(text.parse(), Ok(buffer), "{text}");
        }
        for text in ["80", "", "p", "-1p", "1.5p", "full", "ms"] {
            assert_eq!(text.parse::<Buffer>(), Err(()), "{text}");
        }
    }
}
