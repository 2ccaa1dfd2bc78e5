//! How long packets take at a rate, to the nanosecond and without drift. Not when they are sent.

use core::num::NonZeroU64;

use weir_units::Rate;

/// Gives the time that each packet of a busy period occupies the link.
///
/// Times are rounded down and the remainder is carried to the next packet, so that a busy link sends exactly at its rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Serialiser {
    /// What the last packet was rounded down by, in nanoseconds times bit/s; less than the rate in bit/s.
    remainder: u64,
}

/// A link's rate in bit/s.
pub(crate) fn per_second(rate: Rate) -> NonZeroU64 {
    NonZeroU64::new(rate.bps()).expect("a link with a rate of zero would never send")
}

impl Serialiser {
    /// A busy period begins: there is nothing to carry over.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.remainder = 0;
    }

    /// Nanoseconds that the next packet of the busy period takes at a rate of `bps`, that of the whole period; `size` is
    /// below 2^31 bytes.
    #[inline]
    pub(crate) fn next(&mut self, bps: NonZeroU64, size: u32) -> u64 {
        // Below 2^31 · 2^33.
        let work = u64::from(size) * NANOBITS_PER_BYTE;
        let (nanos, remainder) = (work / bps, work % bps);
        // Both remainders are below `bps`; compared so that their sum cannot overflow.
        let room = bps.get() - remainder;
        if self.remainder >= room {
            self.remainder -= room;
            nanos + 1
        } else {
            self.remainder += remainder;
            nanos
        }
    }
}

/// Bits of a byte times nanoseconds of a second.
const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn times_add_up_to_the_work_divided_by_the_rate(
            bps in prop_oneof![1u64..1_000_000_000_000, Just(u64::MAX)],
            sizes in proptest::collection::vec(prop_oneof![Just(40u32), Just(1500), 0u32..65_536], 1..100),
        ) {
            let rate = per_second(Rate::from_bps(bps));
            let mut serialiser = Serialiser::default();
            let mut bytes = 0u128;
            let mut nanos = 0u128;
            for size in sizes {
                bytes += u128::from(size);
                nanos += u128::from(serialiser.next(rate, size));
                prop_assert_eq!(nanos, bytes * 8_000_000_000 / u128::from(bps));
            }
        }
    }
}
