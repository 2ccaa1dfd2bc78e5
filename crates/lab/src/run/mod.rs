//! One run: a set-up and a seed in, its metrics and series out.

mod build;
mod names;
mod recorder;
mod site;

use std::collections::BTreeMap;

use weir_core::registry::ConfigError;
use weir_sim::{Monitor, NetworkError};
use weir_units::Time;

use crate::cache::Outcome;
use crate::metric::{FlowRecord, Measure, Record};
use crate::scenario::Setup;
pub use names::Names;

/// A run that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A scheme refuses its settings.
    #[error(transparent)]
    Scheme(#[from] ConfigError),
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A part of the set-up contradicts another.
    #[error("{0}")]
    Setup(String),
}

/// Runs `setup` with `seed`. The same two give the same outcome, bit for bit, on every machine.
pub fn run(setup: &Setup, seed: u64) -> Result<Outcome, RunError> {
    let record = record(setup, seed)?;
    let metrics = setup.metrics.iter().filter_map(|(name, measure)| Some((name.clone(), measure.value(&record)?)));
    let series = setup.series.iter().map(|(name, trace)| (name.clone(), trace.values(&record)));
    Ok(Outcome { metrics: metrics.collect(), series: series.collect::<BTreeMap<_, _>>() })
}

/// Runs `setup` with `seed` while a monitor of the caller's watches, made by `monitor`, which is told what everything is called.
pub fn watch<P: Monitor, E: From<RunError>>(
    setup: &Setup,
    seed: u64,
    monitor: impl FnOnce(&Names) -> Result<P, E>,
) -> Result<P, E> {
    let build::Built { mut network, nodes, labels, bottleneck, .. } = build::build(setup, seed)?;
    let mut monitor = monitor(&labels.names(&network, &nodes, bottleneck))?;
    network.run_until(Time::ZERO + setup.duration.0, &mut monitor);
    Ok(monitor)
}

/// Runs `setup` with `seed`, and gives what was recorded.
pub fn record(setup: &Setup, seed: u64) -> Result<Record, RunError> {
    let build::Built { mut network, mut recorder, .. } = build::build(setup, seed)?;
    let end = Time::ZERO + setup.duration.0;
    if setup.metrics.values().any(Measure::needs_samples) {
        while network.now() + FlowRecord::SAMPLING < end {
            network.run_until(network.now() + FlowRecord::SAMPLING, &mut recorder);
            recorder.sample(&network);
        }
    }
    network.run_until(end, &mut recorder);
    Ok(recorder.finish(end))
}
