//! Sequence numbers that do not wrap, rebuilt from the few bits that the wire carries.

/// A sequence number as the protocols hold it: 64 bits, in total order, never wrapping in practice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(u64);

impl Seq {
    /// The sequence number `n`.
    pub const fn new(n: u64) -> Seq {
        Seq(n)
    }

    /// The number itself.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The lowest `bits` bits, as the wire carries them. `bits` is 1 to 32.
    pub const fn truncate(self, bits: u32) -> u32 {
        debug_assert!(bits >= 1 && bits <= 32, "a wire sequence number has 1 to 32 bits");
        (self.0 & mask(bits)) as u32
    }

    /// The sequence number whose lowest `bits` bits are `wire` and which lies nearest to `self`.
    ///
    /// `self` is the highest number seen, so a packet up to half the number space before or behind it is placed
    /// rightly, whatever wrapped in between. Numbers below zero do not exist: there the next higher one is taken.
    ///
    /// Example, 16 bits: after 65 530 comes wire 3, which is 65 539; then wire 65 535 is 65 535, a late packet.
    #[must_use]
    pub const fn extend(self, wire: u32, bits: u32) -> Seq {
        debug_assert!(bits >= 1 && bits <= 32, "a wire sequence number has 1 to 32 bits");
        let mask = mask(bits);
        let wire = wire as u64 & mask;
        let half = (mask >> 1) + 1;
        let ahead = wire.wrapping_sub(self.0) & mask;
        if ahead < half {
            return Seq(self.0.saturating_add(ahead));
        }
        let behind = mask - ahead + 1;
        if behind <= self.0 { Seq(self.0 - behind) } else { Seq(self.0.saturating_add(ahead)) }
    }

    /// The next number.
    #[must_use]
    pub const fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }

    /// How many numbers lie between `earlier` and this one; zero if `earlier` is not earlier.
    pub const fn since(self, earlier: Seq) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

const fn mask(bits: u32) -> u64 {
    (1u64 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wire_numbers_are_placed_across_a_wrap() {
        assert_eq!(Seq::new(65_530).extend(3, 16), Seq::new(65_539));
        assert_eq!(Seq::new(65_539).extend(65_535, 16), Seq::new(65_535));
    }

    #[test]
    fn the_first_packet_may_be_preceded_by_an_earlier_one_without_going_below_zero() {
        assert_eq!(Seq::new(5).extend(4, 16), Seq::new(4));
        assert_eq!(Seq::new(0).extend(0xffff, 16), Seq::new(0xffff));
    }

    proptest! {
        #[test]
        fn extension_recovers_any_number_within_half_the_space(
            highest in 0u64..1 << 48, bits in 7u32..=32, offset in any::<i32>(),
        ) {
            let half = 1i64 << (bits - 1);
            let offset = i64::from(offset) % half;
            let actual = highest as i64 + offset;
            prop_assume!(actual >= 0);
            let actual = Seq::new(actual as u64);
            prop_assert_eq!(Seq::new(highest).extend(actual.truncate(bits), bits), actual);
        }
    }
}
