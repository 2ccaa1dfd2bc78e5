//! One run: a set-up and a seed in, its metrics and series out.

mod build;
mod in_order;
mod links;
mod names;
mod recorded;
mod recorder;
mod site;
mod watched;

use std::collections::BTreeMap;

use weir_core::registry::ConfigError;
use weir_sim::{Monitor, NetworkError};
use weir_units::Time;

use crate::cache::Outcome;
use crate::metric::{FlowRecord, Measure, Record, Trace};
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
    let samples = setup.metrics.values().any(Measure::needs_samples) || setup.series.values().any(Trace::needs_samples);
    if samples {
        while network.now() + FlowRecord::SAMPLING < end {
            network.run_until(network.now() + FlowRecord::SAMPLING, &mut recorder);
            recorder.sample(&network);
        }
    }
    network.run_until(end, &mut recorder);
    let record = recorder.finish(end);
    let metrics = setup.metrics.iter().map(|(name, measure)| (name, measure.passes_by(&record), &measure.link));
    let series = setup.series.iter().map(|(name, trace)| (name, trace.passes_by(&record), &trace.link));
    match metrics.chain(series).find_map(|(name, who, link)| Some((name, who?, link))) {
        Some((name, who, link)) => Err(RunError::Setup(format!(
            "{name}: nothing of {who:?} comes to {}: name a link of its way with link = [from, to]",
            link.as_ref().map_or("the bottleneck".to_owned(), |[from, to]| format!("the link from {from} to {to}"))
        ))),
        None => Ok(record),
    }
}
