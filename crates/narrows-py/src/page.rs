//! Checks scenarios for the playground, the web page that runs the simulator.

use narrows_scenario::{Scenario, points};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Checks that the playground accepts a scenario, with all points of its sweep up to `most`.
#[pyfunction]
pub(crate) fn check_for_page(text: &str, source: &str, most: usize) -> PyResult<()> {
    let check = || -> Result<(), String> {
        let line = |error: narrows_scenario::Error| error.to_string();
        let scenario = Scenario::parse(text, source, &[]).map_err(line)?;
        for point in points(&scenario, None).map_err(line)?.iter().take(most) {
            let survey = point.survey_closed().map_err(line)?;
            narrows_sim::plan::check(&survey.plan).map_err(|problem| format!("{source}: {problem}"))?;
        }
        Ok(())
    };
    check().map_err(PyValueError::new_err)
}
