//! The part of the Python package that is in Rust: scenarios, their runs, and results as Arrow streams.
//!
//! It is small on purpose. What a user calls is in `python/weir`, which has the documentation; here is what only Rust can do. Runs
//! are made without the interpreter's lock. Sending and receiving need Linux.

mod arrow;
mod results;
mod scenario;
#[cfg(target_os = "linux")]
mod transfer;

use pyo3::prelude::*;

#[pymodule]
mod _weir {
    #[pymodule_export]
    use super::arrow::ArrowTable;
    #[pymodule_export]
    use super::results::Results;
    #[pymodule_export]
    use super::scenario::{ScenarioFile, cache_folder, scenario_ids, to_toml};

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::transfer::{Failed, Transfer};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("CODE_VERSION", weir_lab::cache::CODE_VERSION)
    }
}
