//! The laboratory: scenario files, sweeps, metrics, figures, and the papers' claims with their verdicts.

pub mod metric;
pub mod results;
pub mod scenario;
