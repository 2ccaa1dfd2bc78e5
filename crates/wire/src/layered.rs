//! The congestion control information of a layered multicast packet, in the form that a session announces.

use crate::DecodeError;

/// What every packet of every channel tells a receiver's congestion control.
///
/// It travels in LCT's congestion control information field (CCI) and, except in [`CciForm::Clocked`], the sender's clock
/// in EXT_TIME. The values are those that the wire carries: `slot` and `sequence` wrap at the width of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layered {
    /// The scheme's signal: for AVMRC "channels may be added in this slot"; a pair's first packet for PLM; the recycling
    /// of a stair for STAIR.
    pub signal: bool,
    /// Number of the time slot in which the packet was sent; what else schemes say there is in `docs/wire.md`.
    pub slot: u16,
    /// Channel within the session, 0 the base layer.
    pub channel: u16,
    /// Number of the packet within its channel.
    pub sequence: u32,
    /// The sender's clock when it sent the packet, in microseconds. Only differences modulo 2^32 mean anything.
    pub clock_micros: u64,
}

impl Layered {
    /// Microseconds from `earlier`'s clock to this one's, between −2^31 and 2^31.
    pub const fn clock_since(self, earlier: Layered) -> i32 {
        (self.clock_micros as u32).wrapping_sub(earlier.clock_micros as u32) as i32
    }
}

/// How wide the congestion control information is. One form a session, announced in its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CciForm {
    /// 32 bits: signal 1, slot 7, channel 8, sequence 16. What other FLUTE receivers and Wireshark take.
    #[default]
    Short,
    /// 64 bits: signal 1, slot 15, channel 16, sequence 32. For high rates.
    Long,
    /// 96 bits: as [`CciForm::Long`], then the sender's clock, 32 bits of microseconds, instead of EXT_TIME.
    Clocked,
}

impl CciForm {
    /// Bytes on the wire.
    pub const fn len(self) -> usize {
        match self {
            CciForm::Short => 4,
            CciForm::Long => 8,
            CciForm::Clocked => 12,
        }
    }

    /// The form for a channel as fast as this: [`CciForm::Short`], unless the channel would go through half of its sequence numbers
    /// in 3 s, as long as a receiver may wait for a channel that it has joined. Then [`CciForm::Clocked`].
    pub fn for_packets_per_sec(fastest: f64) -> CciForm {
        const LONGEST_GAP_SECS: f64 = 3.0;
        if fastest * LONGEST_GAP_SECS > f64::from(1 << 15) { CciForm::Clocked } else { CciForm::Short }
    }

    /// A form is never empty; here for symmetry with [`CciForm::len`].
    pub const fn is_empty(self) -> bool {
        false
    }

    /// Bits of [`Layered::sequence`].
    pub const fn sequence_bits(self) -> u32 {
        match self {
            CciForm::Short => 16,
            CciForm::Long | CciForm::Clocked => 32,
        }
    }

    /// Bits of [`Layered::slot`].
    pub const fn slot_bits(self) -> u32 {
        match self {
            CciForm::Short => 7,
            CciForm::Long | CciForm::Clocked => 15,
        }
    }

    /// How many channels the form can tell apart.
    pub const fn channels(self) -> usize {
        match self {
            CciForm::Short => 1 << 8,
            CciForm::Long | CciForm::Clocked => 1 << 16,
        }
    }

    /// Whether the sender's clock is part of the form, so that no EXT_TIME is needed.
    pub const fn has_clock(self) -> bool {
        matches!(self, CciForm::Clocked)
    }

    /// Writes the field into `out`, which is [`CciForm::len`] bytes long.
    pub(crate) fn encode(self, layered: &Layered, out: &mut [u8]) {
        let signal = u16::from(layered.signal);
        match self {
            CciForm::Short => {
                out[0] = ((signal as u8) << 7) | (layered.slot as u8 & 0x7f);
                out[1] = layered.channel as u8;
                out[2..4].copy_from_slice(&(layered.sequence as u16).to_be_bytes());
            }
            CciForm::Long | CciForm::Clocked => {
                out[0..2].copy_from_slice(&((signal << 15) | (layered.slot & 0x7fff)).to_be_bytes());
                out[2..4].copy_from_slice(&layered.channel.to_be_bytes());
                out[4..8].copy_from_slice(&layered.sequence.to_be_bytes());
                if self.has_clock() {
                    out[8..12].copy_from_slice(&(layered.clock_micros as u32).to_be_bytes());
                }
            }
        }
    }

    /// Reads a CCI of this form. `clock_micros` is what EXT_TIME said; it is ignored where the form has a clock.
    pub fn decode(self, cci: &[u8], clock_micros: u64) -> Result<Layered, DecodeError> {
        if cci.len() != self.len() {
            return Err(DecodeError::Value { field: "CCI length", value: cci.len() as u64 });
        }
        let be16 = |at: usize| u16::from_be_bytes([cci[at], cci[at + 1]]);
        let be32 = |at: usize| u32::from_be_bytes([cci[at], cci[at + 1], cci[at + 2], cci[at + 3]]);
        Ok(match self {
            CciForm::Short => Layered {
                signal: cci[0] & 0x80 != 0,
                slot: u16::from(cci[0] & 0x7f),
                channel: u16::from(cci[1]),
                sequence: u32::from(be16(2)),
                clock_micros,
            },
            CciForm::Long | CciForm::Clocked => Layered {
                signal: cci[0] & 0x80 != 0,
                slot: be16(0) & 0x7fff,
                channel: be16(2),
                sequence: be32(4),
                clock_micros: if self.has_clock() { u64::from(be32(8)) } else { clock_micros },
            },
        })
    }
}
