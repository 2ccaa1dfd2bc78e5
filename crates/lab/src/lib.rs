//! The laboratory: scenario files, sweeps, metrics, figures, and the papers' claims with their verdicts.

pub mod results;
