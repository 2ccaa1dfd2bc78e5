//! What runs gave.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weir_lab::export;

use crate::arrow::{ArrowTable, wrong};

/// The rows of a scenario's runs.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct Results(pub(crate) weir_lab::results::Results);

#[pymethods]
impl Results {
    /// From what `json` gave.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Results> {
        serde_json::from_str(text).map(Results).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The scenario's id.
    #[getter]
    fn scenario(&self) -> &str {
        &self.0.scenario
    }

    /// One row a run.
    fn runs(&self) -> PyResult<ArrowTable> {
        ArrowTable::new(export::runs(&self.0)).map_err(|error| wrong(&error))
    }

    /// One row a value over time.
    fn series(&self) -> PyResult<ArrowTable> {
        ArrowTable::new(export::series(&self.0)).map_err(|error| wrong(&error))
    }

    /// Everything, one line.
    fn json(&self) -> String {
        export::json(&self.0)
    }

    fn __len__(&self) -> usize {
        self.0.rows.len()
    }
}
