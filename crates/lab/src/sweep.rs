//! All runs of a scenario, on all cores: what has been run before comes from the cache, and what is stopped goes on from
//! there the next time. Not here: what happens in a run.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::cache::{Cache, Key, Outcome};
use crate::results::{Results, Row};
use crate::run::{RunError, run};
use crate::scenario::{Point, Scenario, ScenarioError};

/// How a sweep is run.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// Where results are kept and looked for; `None`: nowhere.
    pub cache: Option<Cache>,
    /// Runs at the same time; `None`: as many as there are cores.
    pub jobs: Option<NonZeroUsize>,
    /// Set to make it stop after the runs that are under way.
    pub stop: Option<&'a AtomicBool>,
}

/// How far a sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Runs that are done, those from the cache included.
    pub done: usize,
    /// Of these, how many came from the cache.
    pub from_cache: usize,
    /// All runs.
    pub total: usize,
}

impl Progress {
    /// How long the rest will take if it goes on as in the `elapsed` time; `None` before the first run.
    pub fn time_to_go(&self, elapsed: Duration) -> Option<Duration> {
        let made = self.done - self.from_cache;
        let left = self.total - self.done;
        (made > 0 || left == 0).then(|| elapsed.mul_f64(left as f64 / made.max(1) as f64))
    }
}

/// Why a sweep has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The scenario cannot be read.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run cannot be made.
    #[error("{id}, seed {seed}: {error}")]
    Run {
        /// The scenario.
        id: String,
        /// The seed.
        seed: u64,
        /// What is wrong.
        error: RunError,
    },
    /// It was stopped.
    #[error("stopped after {done} of {total} runs; what was done is kept where there is a cache")]
    Stopped {
        /// Runs that are done.
        done: usize,
        /// All runs.
        total: usize,
    },
    /// A result could not be kept.
    #[error("a result cannot be kept: {0}")]
    Cache(#[from] std::io::Error),
}

/// Runs all points of `scenario` with all its seeds. `progress` is told after each run, from any thread.
///
/// Results do not depend on how many run at the same time: each run has its own network and its own random streams.
pub fn sweep(
    scenario: &Scenario,
    options: &Options<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Results, SweepError> {
    let points = scenario.points()?;
    let rows: Vec<(&Point, u64)> =
        points.iter().flat_map(|point| (1..=point.seeds as u64).map(move |seed| (point, seed))).collect();
    let (tasks, places) = different(&rows);
    let work = Work::new(&tasks, options, progress);
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.unwrap_or(cores).get().min(tasks.len()) {
            scope.spawn(|| work.take_all());
        }
    });
    let outcomes = work.outcomes(&scenario.head.id)?;
    let row = |((point, seed), place): (&(&Point, u64), &usize)| {
        let Outcome { metrics, series } = outcomes[*place].clone();
        Row { point: point.at.clone(), seed: *seed, metrics, series }
    };
    Ok(Results { scenario: scenario.head.id.clone(), rows: rows.iter().zip(&places).map(row).collect() })
}

/// The runs that differ, and for each of all which of these it is.
fn different<'a>(rows: &[(&'a Point, u64)]) -> (Vec<(&'a Point, u64)>, Vec<usize>) {
    let mut known: HashMap<(&str, u64), usize> = HashMap::new();
    let mut tasks = Vec::new();
    let place = |(point, seed): &(&'a Point, u64)| {
        *known.entry((point.canonical.as_str(), *seed)).or_insert_with(|| {
            tasks.push((*point, *seed));
            tasks.len() - 1
        })
    };
    let places = rows.iter().map(place).collect();
    (tasks, places)
}

/// What the threads share.
struct Work<'a> {
    tasks: &'a [(&'a Point, u64)],
    options: &'a Options<'a>,
    progress: &'a (dyn Fn(Progress) + Sync),
    next: AtomicUsize,
    failed: AtomicBool,
    state: Mutex<State>,
}

struct State {
    outcomes: Vec<Option<Result<Outcome, Failure>>>,
    done: usize,
    from_cache: usize,
}

enum Failure {
    Run(RunError),
    Cache(std::io::Error),
}

impl<'a> Work<'a> {
    fn new(
        tasks: &'a [(&'a Point, u64)],
        options: &'a Options<'a>,
        progress: &'a (dyn Fn(Progress) + Sync),
    ) -> Work<'a> {
        let outcomes = tasks.iter().map(|_| None).collect();
        let state = Mutex::new(State { outcomes, done: 0, from_cache: 0 });
        Work { tasks, options, progress, next: AtomicUsize::new(0), failed: AtomicBool::new(false), state }
    }

    /// Takes runs until none is left. The last points of a sweep tend to be the largest: they come first, so that no core
    /// idles at the end.
    fn take_all(&self) {
        while !self.is_over() {
            let taken = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(index) = self.tasks.len().checked_sub(taken + 1) else { return };
            let (point, seed) = self.tasks[index];
            let key = Key::new(&point.canonical, seed);
            let known = self.options.cache.as_ref().and_then(|cache| cache.get(&key));
            let from_cache = known.is_some();
            let outcome = match known {
                Some(outcome) => Ok(outcome),
                None => self.make(point, seed, &key),
            };
            self.failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            let mut state = self.state.lock().expect("a thread that panics ends the sweep");
            state.outcomes[index] = Some(outcome);
            state.done += 1;
            state.from_cache += usize::from(from_cache);
            (self.progress)(Progress { done: state.done, from_cache: state.from_cache, total: self.tasks.len() });
        }
    }

    fn make(&self, point: &Point, seed: u64, key: &Key) -> Result<Outcome, Failure> {
        let outcome = run(&point.setup, seed).map_err(Failure::Run)?;
        if let Some(cache) = &self.options.cache {
            cache.put(key, &outcome).map_err(Failure::Cache)?;
        }
        Ok(outcome)
    }

    fn is_over(&self) -> bool {
        let stopped = self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        stopped || self.failed.load(Ordering::Relaxed)
    }

    /// What came of each task.
    fn outcomes(self, id: &str) -> Result<Vec<Outcome>, SweepError> {
        let State { outcomes, done, .. } = self.state.into_inner().expect("a thread that panics ends the sweep");
        let mut made = Vec::with_capacity(outcomes.len());
        for (outcome, (_, seed)) in outcomes.into_iter().zip(self.tasks) {
            match outcome {
                Some(Ok(outcome)) => made.push(outcome),
                Some(Err(Failure::Run(error))) => {
                    return Err(SweepError::Run { id: id.to_owned(), seed: *seed, error });
                }
                Some(Err(Failure::Cache(error))) => return Err(SweepError::Cache(error)),
                None => {}
            }
        }
        if made.len() < self.tasks.len() {
            return Err(SweepError::Stopped { done, total: self.tasks.len() });
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_go_counts_only_runs_that_were_made() {
        let progress = Progress { done: 30, from_cache: 20, total: 50 };
        assert_eq!(progress.time_to_go(Duration::from_secs(10)), Some(Duration::from_secs(20)));
        let cached = Progress { done: 20, from_cache: 20, total: 50 };
        assert_eq!(cached.time_to_go(Duration::from_secs(10)), None);
        let finished = Progress { done: 50, from_cache: 50, total: 50 };
        assert_eq!(finished.time_to_go(Duration::from_secs(10)), Some(Duration::ZERO));
    }
}
