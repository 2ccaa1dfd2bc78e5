//! What a sender offers: channels and their rates, and what receivers of them cost a link.

mod credit;
mod cumulative;
pub mod dilation;
mod fibonacci;
mod hybrid;
mod set;
mod stair;

pub(crate) use credit::{Credit, Due};
pub use cumulative::Ladder;
pub use fibonacci::Fibonacci;
pub use hybrid::Hybrid;
pub use set::LayerSet;
pub use stair::{Stair, StairPacket};
