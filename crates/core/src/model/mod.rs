//! Throughput equations: what a TCP would achieve under measured conditions.
//!
//! Pure functions of floating-point numbers whose units are in their names; the schemes turn the answers into rates.

pub mod aimd;
pub mod reno;
pub mod vegas;
