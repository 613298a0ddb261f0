//! Narrows' Python module `_native`, with the controllers of this example added.

use own_controller::CONSTANT;
use own_controller::hpcc::{HPCC, TELEMETRY};
use pyo3::prelude::*;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    narrows_py::module(m, &[CONSTANT, HPCC], &[TELEMETRY])
}
