//! The laboratory: scenario files, sweeps, metrics, figures, and the papers' claims with their verdicts.

pub mod cache;
pub mod capture;
pub mod claim;
pub mod dossier;
pub mod export;
pub mod figure;
pub mod interval;
pub mod library;
pub mod metric;
pub mod recording;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod sweep;
pub mod trace;
