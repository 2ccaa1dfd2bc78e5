//! Harnesses for tests: a dumbbell in the simulator, hosts of their own in network namespaces, and scenarios that run on
//! both.
//!
//! Not here: the simulator itself, and anything that a program would run outside of its tests.

pub mod av1;
pub mod conformance;
pub mod dumbbell;
pub mod h264;
pub mod netns;
mod real_time;
mod record;
pub mod seam;
pub mod toy;
