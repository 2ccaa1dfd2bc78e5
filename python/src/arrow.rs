//! Tables by the Arrow PyCapsule interface: pyarrow, polars, pandas and DuckDB take them as they are.
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use weir_lab::export::{Table, Values};

/// A table that Arrow's users read without a copy.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct ArrowTable(RecordBatch);

impl ArrowTable {
    pub(crate) fn new(table: Table) -> Result<ArrowTable, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for column in table.columns {
            let (kind, array): (DataType, ArrayRef) = match column.values {
                Values::Integers(values) => (DataType::Int64, Arc::new(Int64Array::from(values))),
                Values::Numbers(values) => (DataType::Float64, Arc::new(Float64Array::from(values))),
                Values::Words(values) => (DataType::Utf8, Arc::new(StringArray::from(values))),
            };
            fields.push(Field::new(column.name, kind, true));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(ArrowTable)
    }
}

#[pymethods]
impl ArrowTable {
    /// The table as a stream of one batch. There is one schema, whatever is asked for, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }
}

/// An Arrow error as Python's.
pub(crate) fn wrong(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
