//! placeholder

pub mod dumbbell;
pub mod netns;
