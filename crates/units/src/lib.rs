//! Quantities with their units: instants, rates, byte counts, sequence numbers; seeded random streams; bytes as text.
//!
//! Not here: clocks. Nothing in this crate can tell what time it is, only how far apart two instants are.

#![no_std]

mod ecn;
pub mod math;
mod quantity;
mod random;
mod seq;
mod span;
mod text;
mod time;

pub use ecn::Ecn;
pub use quantity::{Bytes, ParseQuantityError, Rate};
pub use random::Random;
pub use seq::Seq;
pub use span::{ParseSpanError, parse_span, show_span};
pub use text::{Hex, is_unprintable, parse_hex};
pub use time::Time;
