//! Which packet of which start of a sender it is.

/// One start of a sender: nothing is ever sealed under the same key by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// It grows with each start of a sender; 48 bits of it count.
    pub epoch: u64,
    /// Random, for the case that an epoch comes twice.
    pub salt: u32,
}

/// A packet's number within its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) start: Start,
    /// 48 bits.
    pub(super) number: u64,
}

impl Stamp {
    /// Bytes of a stamp.
    pub(super) const LEN: usize = 16;

    pub(super) fn encode(&self) -> [u8; Stamp::LEN] {
        let mut out = [0; Stamp::LEN];
        out[..6].copy_from_slice(&self.start.epoch.to_be_bytes()[2..]);
        out[6..10].copy_from_slice(&self.start.salt.to_be_bytes());
        out[10..].copy_from_slice(&self.number.to_be_bytes()[2..]);
        out
    }

    pub(super) fn decode(bytes: &[u8; Stamp::LEN]) -> Stamp {
        let wide = |range: &[u8]| range.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Stamp {
            start: Start { epoch: wide(&bytes[..6]), salt: wide(&bytes[6..10]) as u32 },
            number: wide(&bytes[10..]),
        }
    }
}

/// Numbers of packets, and epochs, are below this.
pub(super) const END: u64 = 1 << 48;
