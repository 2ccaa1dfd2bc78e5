//! Harnesses for tests: a dumbbell in virtual time, and hosts of their own in network namespaces.
//!
//! Not here: the simulator, and anything that a program would run outside of its tests.

pub mod dumbbell;
pub mod netns;
