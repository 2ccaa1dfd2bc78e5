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

/// A link's rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    bps: NonZeroU64,
    /// Nanoseconds that a byte takes, where that is a whole number: nothing needs to be divided then, or carried over.
    whole_nanos_per_byte: Option<NonZeroU64>,
}

impl Pace {
    /// A link with a rate of zero would never send.
    pub(crate) fn new(rate: Rate) -> Pace {
        let bps = NonZeroU64::new(rate.bps()).expect("a link with a rate of zero would never send");
        let is_whole = NANOBITS_PER_BYTE.is_multiple_of(bps.get());
        Pace { bps, whole_nanos_per_byte: NonZeroU64::new(NANOBITS_PER_BYTE / bps).filter(|_| is_whole) }
    }

    pub(crate) fn rate(self) -> Rate {
        Rate::from_bps(self.bps.get())
    }
}

impl Serialiser {
    /// A busy period begins: there is nothing to carry over.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.remainder = 0;
    }

    /// Nanoseconds that the next packet of the busy period takes at `pace`, that of the whole period; `size` is below 2^31
    /// bytes.
    #[inline]
    pub(crate) fn next(&mut self, pace: &Pace, size: u32) -> u64 {
        // Both products are below 2^31 · 2^33.
        if let Some(nanos) = pace.whole_nanos_per_byte {
            return u64::from(size) * nanos.get();
        }
        let (bps, work) = (pace.bps, u64::from(size) * NANOBITS_PER_BYTE);
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
            bps in prop_oneof![1u64..1_000_000_000_000, Just(50_000_000), Just(1_000_000_000), Just(u64::MAX)],
            sizes in proptest::collection::vec(prop_oneof![Just(40u32), Just(1500), 0u32..65_536], 1..100),
        ) {
            let pace = Pace::new(Rate::from_bps(bps));
            let mut serialiser = Serialiser::default();
            let mut bytes = 0u128;
            let mut nanos = 0u128;
            for size in sizes {
                bytes += u128::from(size);
                nanos += u128::from(serialiser.next(&pace, size));
                prop_assert_eq!(nanos, bytes * 8_000_000_000 / u128::from(bps));
            }
        }
    }
}
