//! What the two ends of a paced unicast stream tell each other: the number of a data packet, and which packets came.

use core::time::Duration;

/// A data packet. On the network it is an RTP packet (RFC 3550 §5.1), and this is its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paced {
    /// Number of the packet; wraps.
    pub sequence: u16,
    /// Number of its payload, where payloads may be sent again in further packets; wraps. On the network it is in a header extension.
    pub payload: Option<u16>,
}

/// Which of the newest packets came. On the network it is a report block of RTP congestion control feedback (RFC 8888 §3.1).
///
/// RAP's acknowledgement (RAP §III) names the packet that it answers and the last hole before it. Here both are read from
/// the reports: a hole is what lies between two packets that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Feedback {
    /// The packet with the highest number that came.
    pub newest: u16,
    /// How many packets are reported, `newest` and those before it: 1 to [`Feedback::MAX_REPORTS`].
    pub reports: u8,
    /// Bit i tells whether packet `newest` − i came; bit 0 is set. Bits from `reports` on are 0.
    pub arrived: u32,
    /// Bit i tells whether packet `newest` − i came with a congestion mark (RFC 3168); a subset of `arrived`.
    pub marked: u32,
    /// How long before this feedback `newest` came, in 1/1024 s, at most [`Feedback::MAX_HELD`].
    pub held: u16,
}

impl Feedback {
    /// The most packets that one feedback reports.
    pub const MAX_REPORTS: u8 = 32;

    /// The longest [`Feedback::held`] that has a value on the wire: just below 8 s. More is said as this.
    pub const MAX_HELD: u16 = 0x1ffd;

    /// How long before this feedback the newest packet came.
    pub const fn held_for(&self) -> Duration {
        Duration::from_nanos(self.held as u64 * 1_000_000_000 / 1024)
    }
}
