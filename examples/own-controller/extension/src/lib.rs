//! Narrows' Python module `_native`, with the controller of this example added.

use pyo3::prelude::*;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    narrows_py::module(m, &[own_controller::CONSTANT])
}
