//! The window that hooks of Python controllers change.

use narrows_control::congestion::{INFINITE_SSTHRESH, Window};
use narrows_control::units::Rate;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The window as a Python object.
#[pyclass(name = "Window")]
pub(crate) struct PyWindow(pub(crate) Window);

#[pymethods]
impl PyWindow {
    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.cwnd = segments("cwnd", value)?;
        Ok(())
    }

    #[getter]
    fn ssthresh(&self) -> u32 {
        self.0.ssthresh
    }

    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.ssthresh = segments("ssthresh", value)?;
        Ok(())
    }

    #[getter]
    fn pacing_rate(&self) -> Option<f64> {
        self.0.pacing_rate.map(Rate::as_f64)
    }

    #[setter]
    fn set_pacing_rate(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let rate: Option<f64> =
            value.extract().map_err(|_| refuse("window.pacing_rate", value, "a number or None"))?;
        // With a rate of zero, the flow would never send again.
        if rate.is_some_and(|r| !(1.0..=1e15).contains(&r)) {
            return Err(refuse("window.pacing_rate", value, "1 to 1e15 bytes/s, or None"));
        }
        self.0.pacing_rate = rate.map(Rate::from_f64);
        Ok(())
    }

    fn __repr__(&self) -> String {
        let rate = self.pacing_rate().map_or("None".into(), |rate| rate.to_string());
        format!("Window(cwnd={}, ssthresh={}, pacing_rate={rate})", self.0.cwnd, self.0.ssthresh)
    }
}

fn segments(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let expected = "a whole number of segments, 1 to 2147483647";
    let refused = || refuse(&format!("window.{name}"), value, expected);
    let n: i64 = value.extract().map_err(|_| refused())?;
    u32::try_from(n).ok().filter(|n| (1..=INFINITE_SSTHRESH).contains(n)).ok_or_else(refused)
}

/// Returns the error for a value that a controller must not set.
pub(super) fn refuse(what: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let found = value.repr().map_or_else(|_| "something".into(), |r| r.to_string());
    PyValueError::new_err(format!("{what}: found {found}, expected {expected}"))
}
