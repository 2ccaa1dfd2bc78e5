//! placeholder

pub mod netns;
