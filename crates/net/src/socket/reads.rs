//! Estimates how many packets were in the reads that the kernel dropped: it counts reads, not packets.

/// How many packets come in one read, as a packet sees it: the mean over packets, not over reads.
///
/// The kernel drops reads, and the large ones first. Example: after reads of 1, 1 and 40 packets a packet came in a read of
/// (1 + 1 + 1600) / 42 = 38 packets on average, so ten drops were 381 packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadSizes {
    packets: u64,
    squares: u64,
}

impl ReadSizes {
    pub(super) fn note(&mut self, packets: u64) {
        self.packets += packets;
        self.squares += packets * packets;
        if self.packets > FORGET_AFTER_PACKETS {
            self.packets /= 2;
            self.squares /= 2;
        }
    }

    /// Estimates how many packets this many dropped reads had.
    pub(super) fn packets_in(&self, reads: u32) -> u64 {
        match self.packets {
            0 => u64::from(reads),
            packets => (u64::from(reads) * self.squares + packets / 2) / packets,
        }
    }
}

/// The sums are halved after this many packets, so that old reads count less and less.
const FORGET_AFTER_PACKETS: u64 = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_reads_are_counted_in_packets() {
        let mut reads = ReadSizes::default();
        assert_eq!(reads.packets_in(3), 3);
        [1, 1, 40].into_iter().for_each(|packets| reads.note(packets));
        assert_eq!(reads.packets_in(10), 381);
        (0..100_000).for_each(|_| reads.note(1));
        assert_eq!(reads.packets_in(10), 10, "old reads are forgotten");
    }
}
