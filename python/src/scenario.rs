//! A scenario: read, run as a whole or one run at a time, judged, drawn, traced.

#![expect(clippy::needless_pass_by_value, reason = "Python's arguments come by value")]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyKeyError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use weir_lab::cache::{Cache, Key, Outcome};
use weir_lab::dossier::Dossier;
use weir_lab::library::Library;
use weir_lab::recording::{Recording, RecordingError, TraceFile};
use weir_lab::results::{Row, Value};
use weir_lab::scenario::{Override, Point};
use weir_lab::sweep::{Options, Progress, SweepError, sweep};
use weir_lab::trace::Filter;

use crate::results::Results;

/// The ids of all scenarios: of `folder`, or of `scenarios` here, or of those that came with weir.
#[pyfunction]
#[pyo3(signature = (folder=None))]
pub(crate) fn scenario_ids(folder: Option<PathBuf>) -> PyResult<Vec<String>> {
    Ok(library(folder.as_deref())?.ids().map(str::to_owned).collect())
}

/// Where the command line keeps results; `None` if there is no such place.
#[pyfunction]
pub(crate) fn cache_folder() -> Option<PathBuf> {
    Cache::user_folder()
}

/// A mapping, given as JSON, as the text of a scenario file.
#[pyfunction]
pub(crate) fn to_toml(json: &str) -> PyResult<String> {
    let table: toml::Table = serde_json::from_str(json).map_err(refused)?;
    toml::to_string(&table).map_err(refused)
}

/// A scenario's file with assignments from outside, and its points.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct ScenarioFile {
    name: String,
    set: Vec<(String, String)>,
    dossier: Dossier,
    points: Vec<Point>,
}

#[pymethods]
impl ScenarioFile {
    /// Reads `text`, which errors call `name`.
    #[new]
    fn new(name: &str, text: &str, set: Vec<(String, String)>) -> PyResult<ScenarioFile> {
        let dossier = Dossier::parse(name, text, &overrides(&set)).map_err(refused)?;
        ScenarioFile::of(name, set, dossier)
    }

    /// The scenario of this id.
    #[staticmethod]
    #[pyo3(signature = (id, set, folder=None))]
    fn open(id: &str, set: Vec<(String, String)>, folder: Option<PathBuf>) -> PyResult<ScenarioFile> {
        let library = library(folder.as_deref())?;
        library.ids_of(id).map_err(|error| PyKeyError::new_err(error.to_string()))?;
        let dossier = library.open(id, &overrides(&set)).map_err(refused)?;
        ScenarioFile::of(id, set, dossier)
    }

    /// What makes it again in another process.
    fn __getnewargs__(&self) -> (String, String, Vec<(String, String)>) {
        (self.name.clone(), self.dossier.text.clone(), self.set.clone())
    }

    #[getter]
    fn id(&self) -> &str {
        self.dossier.id()
    }

    #[getter]
    fn title(&self) -> &str {
        &self.dossier.scenario.head.title
    }

    #[getter]
    fn paper(&self) -> &str {
        &self.dossier.scenario.head.paper
    }

    /// What of the paper it reproduces.
    #[getter]
    fn reproduces(&self) -> &str {
        &self.dossier.scenario.head.reproduces
    }

    #[getter]
    fn text(&self) -> &str {
        &self.dossier.text
    }

    #[getter]
    fn claims(&self) -> usize {
        self.dossier.claims.len()
    }

    /// By point: the swept parameters' values, and how many seeds it has.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyDict>, usize)>> {
        let point = |point: &Point| {
            let at = PyDict::new(py);
            for (name, value) in &point.at {
                match value {
                    Value::Number(number) => at.set_item(name, number)?,
                    Value::Word(word) => at.set_item(name, word)?,
                }
            }
            Ok((at, point.seeds))
        };
        self.points.iter().map(point).collect()
    }

    /// Names of the metrics, in the order of their columns.
    #[getter]
    fn metrics(&self) -> Vec<&str> {
        self.points
            .iter()
            .flat_map(|point| point.setup.metrics.keys().map(String::as_str))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Whether its runs record anything over time.
    #[getter]
    fn has_series(&self) -> bool {
        self.points.iter().any(|point| !point.setup.series.is_empty())
    }

    /// All runs, in the order of the rows: the point's number, the seed, and the name that its result has in a cache.
    fn runs(&self) -> Vec<(usize, u64, String)> {
        let seeds = |(i, point): (usize, &Point)| -> Vec<(usize, u64, String)> {
            (1..=point.seeds as u64).map(|seed| (i, seed, Key::new(&point.canonical, seed).to_string())).collect()
        };
        self.points.iter().enumerate().flat_map(seeds).collect()
    }

    /// Makes one run, and gives what a cache keeps of it.
    fn run_one<'py>(&self, py: Python<'py>, point: usize, seed: u64) -> PyResult<Bound<'py, PyBytes>> {
        let setup = &self.point(point)?.setup;
        let outcome = py.detach(|| weir_lab::run::run(setup, seed)).map_err(refused)?;
        Ok(PyBytes::new(py, &serde_json::to_vec(&outcome).map_err(refused)?))
    }

    /// Makes all runs on this machine. `progress` is told how many are done, how many of these were known before, and how many
    /// there are; an exception in it, or a signal, stops the sweep after the runs that are under way.
    #[pyo3(signature = (cache, jobs, progress))]
    fn sweep(
        &self,
        py: Python<'_>,
        cache: Option<PathBuf>,
        jobs: Option<NonZeroUsize>,
        progress: &Bound<'_, PyAny>,
    ) -> PyResult<Results> {
        let stop = AtomicBool::new(false);
        let options = Options { cache: cache.map(Cache::new), jobs, stop: Some(&stop) };
        let (tell, told) = mpsc::channel();
        let (results, interrupted) = thread::scope(|scope| {
            let runs = scope.spawn(|| {
                let tell = tell;
                sweep(&self.dossier.scenario, &options, &move |at| {
                    // Nobody listens any more once it is stopped.
                    let _ = tell.send(at);
                })
            });
            let interrupted = watch(py, &Mutex::new(told), progress);
            stop.store(interrupted.is_err(), Ordering::Relaxed);
            let results = py.detach(|| runs.join());
            (results, interrupted)
        });
        interrupted?;
        let results = results.map_err(|_| PyRuntimeError::new_err("a run panicked; please report it"))?;
        results.map(Results).map_err(|error| match error {
            SweepError::Cache(error) => PyOSError::new_err(format!("a result cannot be kept: {error}")),
            error => refused(error),
        })
    }

    /// The table of runs that were made one at a time: point, seed and what `run_one` gave, in the order of `runs`.
    fn collect(&self, runs: Vec<(usize, u64, Vec<u8>)>) -> PyResult<Results> {
        let row = |(point, seed, outcome): (usize, u64, Vec<u8>)| {
            let Outcome { metrics, series } = serde_json::from_slice(&outcome).map_err(refused)?;
            Ok(Row { point: self.point(point)?.at.clone(), seed, metrics, series })
        };
        let rows = runs.into_iter().map(row).collect::<PyResult<_>>()?;
        Ok(Results(weir_lab::results::Results { scenario: self.id().to_owned(), rows }))
    }

    /// The verdicts on its claims, as JSON.
    fn judge(&self, py: Python<'_>, results: &Results) -> PyResult<String> {
        let verdicts = py.detach(|| self.dossier.judge(&results.0));
        serde_json::to_string(&verdicts).map_err(refused)
    }

    /// Its figure as SVG, and as PNG; `None` if it has none.
    fn figure(&self, py: Python<'_>, results: &Results) -> Option<(String, Vec<u8>)> {
        let title = self.title();
        let figure = self.dossier.figure.as_ref()?;
        Some(py.detach(|| (figure.svg(&results.0, title), figure.png(&results.0, title))))
    }

    /// Makes a run and writes its events down in `path`, as Parquet if it ends so, and its packets at the bottleneck as pcapng.
    #[pyo3(signature = (point, seed, path, *, flows, links, kinds, between, pcap))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn trace(
        &self,
        py: Python<'_>,
        point: usize,
        seed: u64,
        path: Option<PathBuf>,
        flows: Vec<String>,
        links: Vec<String>,
        kinds: Vec<String>,
        between: (Option<Duration>, Option<Duration>),
        pcap: Option<PathBuf>,
    ) -> PyResult<()> {
        let kinds = kinds.iter().map(|kind| kind.parse().map_err(refused)).collect::<PyResult<_>>()?;
        let filter = Filter { flows, links, kinds, from: between.0, to: between.1 };
        let trace = path.map(|path| TraceFile { filter, ..TraceFile::new(path) });
        let setup = &self.point(point)?.setup;
        py.detach(|| Recording { trace, pcap }.write(setup, seed)).map_err(|error| match error {
            error @ (RecordingError::Run(_) | RecordingError::Filter(_)) => refused(error),
            error => PyOSError::new_err(error.to_string()),
        })
    }
}

impl ScenarioFile {
    fn of(name: &str, set: Vec<(String, String)>, dossier: Dossier) -> PyResult<ScenarioFile> {
        let points = dossier.scenario.points().map_err(refused)?;
        Ok(ScenarioFile { name: name.to_owned(), set, dossier, points })
    }

    fn point(&self, number: usize) -> PyResult<&Point> {
        let none = || PyValueError::new_err(format!("{} has no point {number}", self.id()));
        self.points.get(number).ok_or_else(none)
    }
}

/// Passes on how far a sweep is until it ends, as often as people look, and listens for signals meanwhile.
fn watch(py: Python<'_>, told: &Mutex<mpsc::Receiver<Progress>>, progress: &Bound<'_, PyAny>) -> PyResult<()> {
    let latest = || {
        let told = told.lock().expect("only this thread reads");
        told.recv_timeout(LOOK).map(|first| told.try_iter().last().unwrap_or(first))
    };
    loop {
        match py.detach(latest) {
            Ok(Progress { done, from_cache, total }) => drop(progress.call1((done, from_cache, total))?),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
        py.check_signals()?;
    }
}

fn library(folder: Option<&Path>) -> PyResult<Library> {
    Library::find(folder).map_err(|error| PyOSError::new_err(error.to_string()))
}

fn overrides(set: &[(String, String)]) -> Vec<Override> {
    set.iter().map(|(key, value)| Override { key: key.clone(), value: value.clone() }).collect()
}

fn refused(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

const LOOK: Duration = Duration::from_millis(50);
