//! Builds the Python module with congestion controllers of another crate.

use std::sync::OnceLock;

use narrows_control::catalogue::{Catalogue, Entry};
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::prelude::*;

static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();

/// Returns the congestion controllers of this module: the built-in controllers and the controllers that were given to
/// [`module`].
pub(crate) fn catalogue() -> &'static Catalogue {
    CATALOGUE.get_or_init(|| Catalogue::built_in().clone())
}

/// Adds the simulator and your own congestion controllers to the Python module `_native`. Every command of
/// `narrows` then accepts their names.
///
/// # Errors
/// If [`Catalogue::add`] refuses a controller, or if this process has already loaded the module.
pub fn module(m: &Bound<'_, PyModule>, own: &[Entry]) -> PyResult<()> {
    let mut catalogue = Catalogue::built_in().clone();
    for entry in own {
        catalogue.add(*entry).map_err(|problem| PyValueError::new_err(problem.to_string()))?;
    }
    CATALOGUE.set(catalogue).map_err(|_| PyImportError::new_err("found a second load of the module"))?;
    crate::fill(m)
}
