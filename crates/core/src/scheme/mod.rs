//! The schemes, a folder each. [`crate::registry::SCHEMES`] lists them.

pub mod avmrc;
pub mod rap;
mod silence;
pub mod stair;
