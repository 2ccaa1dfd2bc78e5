//! The schemes, a folder each. [`crate::registry::SCHEMES`] lists them.

pub mod avmrc;
#[cfg(test)]
mod example;
pub mod mtcp;
pub mod plm;
pub mod rap;
pub mod sluice;
pub mod stair;
