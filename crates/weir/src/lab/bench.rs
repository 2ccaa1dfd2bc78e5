//! Finds scenarios and runs them: on all cores, with a cache, until done or interrupted.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::path::Path;

use weir_lab::cache::Cache;
use weir_lab::dossier::Dossier;
use weir_lab::library::Library;
use weir_lab::results::Results;
use weir_lab::scenario::Override;
use weir_lab::sweep::{Options, SweepError, sweep};

use super::watch::Watch;
use crate::args::{Runs, Scenarios};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;

/// The scenarios that were asked for, and how to run them.
pub(super) struct Bench {
    dossiers: Vec<Dossier>,
    cache: Option<Cache>,
    jobs: Option<NonZeroUsize>,
    quiet: bool,
    interrupt: Interrupt,
    /// Runs of the scenarios that are done.
    done: Cell<usize>,
}

impl Bench {
    /// Reads all scenarios before any is run: a fault in the last one is not told after an hour. `names` are ids,
    /// beginnings of ids, or files; none means all that reproduce a paper, or all if none does.
    pub(super) fn new(runs: &Runs, names: &[String]) -> Result<Bench, Failure> {
        let interrupt = Interrupt::install(|| eprintln!("{STOPPING}"))
            .map_err(Failure::of(Exit::Internal, "cannot wait for signals"))?;
        let seeds = runs.seeds.map(|seeds| Override { key: "seeds".to_owned(), value: seeds.to_string() });
        let overrides: Vec<Override> = runs.set.iter().cloned().chain(seeds).collect();
        let library = library(&runs.scenarios)?;
        let usage = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, error.to_string());
        let mut dossiers: Vec<Dossier> = Vec::new();
        let all = library.ids().map(str::to_owned).collect::<Vec<_>>();
        for name in if names.is_empty() { &all[..] } else { names } {
            if is_file(name) {
                dossiers.push(Dossier::load(Path::new(name), &overrides).map_err(|error| usage(&error))?);
                continue;
            }
            let hint = |error| usage(&format!("{error}; \"weir lab list\" lists them"));
            for id in library.ids_of(name).map_err(hint)? {
                dossiers.push(library.open(id, &overrides).map_err(|error| usage(&error))?);
            }
        }
        let is_of_paper = |dossier: &Dossier| !dossier.scenario.head.paper.is_empty();
        if names.is_empty() && dossiers.iter().any(is_of_paper) {
            dossiers.retain(is_of_paper);
        }
        let cache = if runs.no_cache { None } else { runs.cache.clone().or_else(Cache::user_folder).map(Cache::new) };
        Ok(Bench { dossiers, cache, jobs: runs.jobs, quiet: runs.quiet, interrupt, done: Cell::new(0) })
    }

    /// The scenarios, in the order in which they were asked for.
    pub(super) fn dossiers(&self) -> &[Dossier] {
        &self.dossiers
    }

    /// Runs one of them, the `index`-th.
    pub(super) fn run(&self, dossier: &Dossier, index: usize) -> Result<Results, Failure> {
        let label = match self.dossiers.len() {
            1 => dossier.id().to_owned(),
            all => format!("{} ({} of {all})", dossier.id(), index + 1),
        };
        let watch = Watch::new(label, self.quiet);
        let options = Options { cache: self.cache.clone(), jobs: self.jobs, stop: Some(self.interrupt.mark()) };
        let results = sweep(&dossier.scenario, &options, &|progress| watch.show(progress));
        watch.finish();
        if let Ok(results) = &results {
            self.done.set(self.done.get() + results.rows.len());
        }
        results.map_err(|error| match error {
            SweepError::Stopped { done, total } => {
                Failure::new(Exit::Interrupted, self.interrupted(dossier.id(), done, total))
            }
            SweepError::Cache(error) => {
                Failure::new(Exit::Files, format!("a result cannot be kept: {error}; --no-cache does without"))
            }
            error @ SweepError::Run { .. } => Failure::new(Exit::Usage, error.to_string()),
            error => Failure::new(Exit::Internal, error.to_string()),
        })
    }
}

impl Bench {
    /// How far it came, and what the next call finds.
    fn interrupted(&self, id: &str, done: usize, total: usize) -> String {
        let runs = |dossier: &Dossier| {
            dossier.scenario.points().map_or(0, |points| points.iter().map(|point| point.seeds).sum())
        };
        let all: usize = self.dossiers.iter().map(runs).sum();
        let of_all = match self.dossiers.len() {
            1 => String::new(),
            several => format!(", {} of {all} of all {several} scenarios", self.done.get() + done),
        };
        let next = match &self.cache {
            Some(_) => "they are kept, and the same command goes on from there",
            None => "nothing is kept without a cache, and the same command begins again",
        };
        format!("interrupted: {done} of {total} runs of {id} are done{of_all}; {next}")
    }
}

/// The scenarios at hand.
pub(super) fn library(scenarios: &Scenarios) -> Result<Library, Failure> {
    Library::find(scenarios.scenarios.as_deref()).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

/// A name that ends like a scenario file is one; ids do not.
fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// What the first signal is answered with.
const STOPPING: &str = "weir: stopping when the runs under way are done; a second signal stops at once";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_ids_by_their_ending() {
        assert!(is_file("fig02.toml") && is_file("./a/b.toml") && !is_file("avmrc/fig02") && !is_file("avmrc"));
    }
}
