//! What a sender offers: channels and their rates.

mod cumulative;

pub use cumulative::Ladder;
