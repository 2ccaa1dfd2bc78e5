//! The lists. Every scenario has a claim that fails if what is done to its links does not take place.
//!
//! A claim is one of two kinds. Those of the scenario hold for every scheme that can carry its traffic, a new one included; they
//! are about rates and shares. Those of a few schemes are about their own arithmetic, such as levels.
//!
//! The arithmetic of the first kind: a scheme may answer congestion by halving its rate, and takes up what is free again. The
//! links hold 400 ms, which may be several round trips, so that one overload may be answered twice: [`at_least_a_quarter`] of
//! the link is left. A scheme that answers an overload once has [`at_least_half`].

pub(super) mod layered;
pub(super) mod paced;

/// From a quarter of a link's rate to all of it, kbit/s.
const fn at_least_a_quarter(kbps: u64) -> (u64, u64) {
    (kbps / 4, all(kbps))
}

/// From half of a link's rate to all of it, kbit/s.
const fn at_least_half(kbps: u64) -> (u64, u64) {
    (kbps / 2, all(kbps))
}

/// The most that comes over a link: a packet more or less at the edges of a span is up to a hundredth.
const fn all(kbps: u64) -> u64 {
    kbps + kbps / 100
}
