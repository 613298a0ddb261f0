//! Builds the Python module for a crate that adds controllers.

use std::sync::OnceLock;

use narrows_control::catalogue::{Catalogue, Entry, RateEntry};
use narrows_control::parameter::Problem;
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::prelude::*;

static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();

/// Returns the controllers of this module: the built-in controllers and the controllers that were given to [`module`].
pub(crate) fn catalogue() -> &'static Catalogue {
    CATALOGUE.get_or_init(|| Catalogue::built_in().clone())
}

/// Adds the simulator, your own congestion controllers and your own rate controllers to the Python module `_native`.
/// Every command of `narrows` accepts the names of these controllers.
///
/// # Errors
/// If the [`Catalogue`] refuses a controller, or if this process has already loaded the module.
pub fn module(m: &Bound<'_, PyModule>, own: &[Entry], rate_controllers: &[RateEntry]) -> PyResult<()> {
    let refused = |problem: Problem| PyValueError::new_err(problem.to_string());
    let mut catalogue = Catalogue::built_in().clone();
    own.iter().try_for_each(|entry| catalogue.add(*entry)).map_err(refused)?;
    rate_controllers.iter().try_for_each(|entry| catalogue.add_rate_controller(*entry)).map_err(refused)?;
    CATALOGUE.set(catalogue).map_err(|_| PyImportError::new_err("found a second load of the module"))?;
    crate::fill(m)
}
