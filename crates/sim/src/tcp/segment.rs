//! What a sender and its sink say to each other.

use weir_units::Time;

/// A TCP segment. Its payload is its number only, its size on the wire is in the [`Config`](super::Config).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Data: this segment's number, from 0. Acknowledgement: the lowest number that has not arrived.
    pub seq: u64,
    /// When the data was sent; an acknowledgement echoes it (RFC 7323 §4.3).
    pub sent: Time,
    /// What arrived beyond `seq`, the latest news first (RFC 2018 §4). Unused places are empty.
    sack: [SackBlock; 3],
    /// Data or acknowledgement.
    pub kind: Kind,
    /// The network may mark this segment instead of dropping it (RFC 3168 §5).
    pub ecn_capable: bool,
    /// A mark has been seen and not answered yet (ECE, RFC 3168 §6.1).
    pub ecn_echo: bool,
    /// The sender has answered the mark (CWR, RFC 3168 §6.1).
    pub window_reduced: bool,
}

/// Which way a segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From the sender to the sink.
    Data,
    /// From the sink to the sender.
    Ack,
}

/// Segments that have arrived, beyond the cumulative acknowledgement: `start..end`, counted from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlock {
    start: u32,
    end: u32,
}

impl Segment {
    /// Segment `seq`, sent at `now`.
    pub(super) fn data(seq: u64, now: Time) -> Segment {
        Segment {
            seq,
            sent: now,
            sack: [SackBlock::default(); 3],
            kind: Kind::Data,
            ecn_capable: false,
            ecn_echo: false,
            window_reduced: false,
        }
    }

    /// All segments below `seq` have arrived.
    pub(super) fn ack(seq: u64, echo: Time) -> Segment {
        Segment { kind: Kind::Ack, ..Segment::data(seq, echo) }
    }

    /// Reports `start..end` as the block of this place, 0 to 2. A block too far ahead to be written is left out.
    pub(super) fn set_sack(&mut self, place: usize, start: u64, end: u64) {
        let offset = |at: u64| u32::try_from(at - self.seq);
        if let (Ok(start), Ok(end)) = (offset(start), offset(end)) {
            self.sack[place] = SackBlock { start, end };
        }
    }

    /// The blocks beyond the cumulative acknowledgement, as `start..end`.
    pub fn sack_blocks(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let seq = self.seq;
        self.sack
            .into_iter()
            .take_while(|block| block.end > block.start)
            .map(move |block| (seq + u64::from(block.start), seq + u64::from(block.end)))
    }

    /// Whether there is any block.
    pub fn has_sack(&self) -> bool {
        self.sack[0].end > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_small_enough_to_be_copied_about() {
        assert!(size_of::<Segment>() <= 48, "{} bytes", size_of::<Segment>());
    }

    #[test]
    fn blocks_read_back_as_they_were_set() {
        let mut ack = Segment::ack(1 << 40, Time::ZERO);
        assert!(!ack.has_sack());
        ack.set_sack(0, (1 << 40) + 5, (1 << 40) + 9);
        ack.set_sack(1, (1 << 40) + 1, (1 << 40) + 2);
        let blocks: Vec<_> = ack.sack_blocks().map(|(start, end)| (start - (1 << 40), end - (1 << 40))).collect();
        assert_eq!(blocks, [(5, 9), (1, 2)]);
    }
}
