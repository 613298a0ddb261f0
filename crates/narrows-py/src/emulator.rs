//! The Python interface of the emulator. Its input is a spec as JSON, and its output is tables and a verdict.

use narrows_emulator::{Error, Spec};
use narrows_sim::Results;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{Cancel, PlanError, tables};

create_exception!(
    _native,
    EmulationError,
    PyOSError,
    "The kernel refuses an operation that a run on real stacks needs."
);

#[pyfunction]
#[pyo3(signature = (spec_json, cancel=None))]
fn emulate<'py>(py: Python<'py>, spec_json: &str, cancel: Option<&Cancel>) -> PyResult<Bound<'py, PyDict>> {
    let flag = cancel.map(|c| c.flag.clone()).unwrap_or_default();
    let spec: Spec = serde_json::from_str(spec_json).map_err(|e| PlanError::new_err(format!("spec: {e}")))?;
    let outcome = py.detach(move || narrows_emulator::emulate(&spec, &flag)).map_err(|e| match e {
        Error::Cancelled => PyKeyboardInterrupt::new_err("the run was cancelled"),
        Error::System { .. } => EmulationError::new_err(e.to_string()),
        Error::Invalid { .. } | Error::Plan(_) => PlanError::new_err(e.to_string()),
    })?;
    let verdict =
        serde_json::to_string(&outcome.soundness).map_err(|e| EmulationError::new_err(e.to_string()))?;
    let out = tables(py, Results { tables: outcome.tables, counts: outcome.counts, stopped: None })?;
    out.set_item("soundness", py.import("json")?.call_method1("loads", (verdict,))?)?;
    Ok(out)
}

/// Adds this file's functions to the module.
pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("EmulationError", m.py().get_type::<EmulationError>())?;
    m.add_function(wrap_pyfunction!(emulate, m)?)
}
