//! The schemes, a folder each. [`crate::registry::SCHEMES`] lists them.

pub mod avmrc;
pub mod rap;
pub mod stair;
