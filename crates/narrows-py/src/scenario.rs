//! The way from a scenario to plans in Rust (`narrows-scenario`). Messages are JSON in both directions.

use narrows_scenario::{Disk, message};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::extension::catalogue;

/// Reads a scenario, and makes the plans of its runs. `networks` is the folder with the networks of topohub, if topohub is
/// installed.
#[pyfunction]
#[pyo3(signature = (request, networks=None))]
pub(crate) fn scenario_runs(request: &str, networks: Option<String>) -> PyResult<String> {
    let disk = networks.map_or_else(Disk::default, Disk::with_networks);
    message::answer(request, catalogue(), &disk).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns a plan with all its keys.
#[pyfunction]
pub(crate) fn plan_as_written(plan_json: &str) -> PyResult<String> {
    serde_json::to_string(&crate::parse(plan_json)?).map_err(|e| PyValueError::new_err(e.to_string()))
}
