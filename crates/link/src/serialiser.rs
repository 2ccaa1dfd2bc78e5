//! How long packets take at a rate, to the nanosecond and without drift. Not when they are sent.

use weir_units::Rate;

/// Gives the time that each packet of a busy period occupies the link.
///
/// Times are rounded down and the remainder is carried to the next packet, so that a busy link sends exactly at its rate.
/// The times of the last two sizes are remembered: data and acknowledgements cost no division.
#[derive(Debug, Clone)]
pub(crate) struct Serialiser {
    bps: u64,
    /// What the last packet was rounded down by, in nanoseconds times bit/s; less than `bps`.
    remainder: u64,
    known: [Cost; 2],
}

/// `size` · 8 · 10^9 = `nanos` · `bps` + `remainder`.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    size: u32,
    nanos: u64,
    remainder: u64,
}

impl Serialiser {
    /// `rate` above zero.
    pub(crate) fn new(rate: Rate) -> Serialiser {
        debug_assert!(rate > Rate::ZERO, "a link with a rate of zero would never send");
        // Nothing takes no time: the empty memory is right about packets of no bytes.
        Serialiser { bps: rate.bps(), remainder: 0, known: [Cost::default(); 2] }
    }

    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bps(self.bps)
    }

    /// A busy period begins: there is nothing to carry over.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.remainder = 0;
    }

    /// Nanoseconds that the next packet of the busy period takes.
    #[inline]
    pub(crate) fn next(&mut self, size: u32) -> u64 {
        if self.known[0].size != size {
            self.known.swap(0, 1);
            if self.known[0].size != size {
                self.known[0] = self.cost(size);
            }
        }
        let Cost { nanos, remainder, .. } = self.known[0];
        // Both remainders are below `bps`; compared so that their sum cannot overflow.
        let room = self.bps - remainder;
        if self.remainder >= room {
            self.remainder -= room;
            nanos + 1
        } else {
            self.remainder += remainder;
            nanos
        }
    }

    #[cold]
    fn cost(&self, size: u32) -> Cost {
        // Below 2^32 · 2^33.
        let work = u128::from(size) * 8_000_000_000;
        let bps = u128::from(self.bps);
        Cost { size, nanos: (work / bps) as u64, remainder: (work % bps) as u64 }
    }
}

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
            let mut serialiser = Serialiser::new(Rate::from_bps(bps));
            let mut bytes = 0u128;
            let mut nanos = 0u128;
            for size in sizes {
                bytes += u128::from(size);
                nanos += u128::from(serialiser.next(size));
                prop_assert_eq!(nanos, bytes * 8_000_000_000 / u128::from(bps));
            }
        }
    }
}
