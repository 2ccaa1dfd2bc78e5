//! What a sender offers: channels and their rates, and what receivers of them cost a link.

mod cumulative;
pub mod dilation;
mod fibonacci;
mod hybrid;
mod set;
mod stair;

pub use cumulative::Ladder;
pub use fibonacci::Fibonacci;
pub use hybrid::Hybrid;
pub use set::LayerSet;
pub use stair::{Stair, StairPacket};
