//! What TCPs do: the throughput that one would achieve under measured conditions, and how CUBIC's window grows.
//!
//! Functions of floating-point numbers whose units are in their names. The schemes turn the answers into rates and windows, and
//! so do the TCPs of the simulator.

pub mod aimd;
pub mod cubic;
pub mod reno;
pub mod vegas;
