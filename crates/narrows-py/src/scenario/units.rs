//! Quantities with units, for options of commands, configurations and expectations.

use narrows_scenario::units::{self, BitRate, Bytes, Expected, Span};
use pyo3::prelude::*;

use super::value;

/// Returns an error about the form of a value as `narrows.errors.Expected`.
fn unexpected(py: Python<'_>, expected: Expected) -> PyErr {
    let make = || py.import("narrows.errors")?.getattr("Expected")?.call1((expected,));
    make().map_or_else(|failure| failure, PyErr::from_value)
}

/// Declares functions that parse a Python object.
macro_rules! parsers {
    ($($name:ident -> $made:ty = |$parsed:ident| $convert:expr;)+) => {
        $(
            #[pyfunction]
            fn $name(given: &Bound<'_, PyAny>) -> PyResult<$made> {
                let parsed = units::$name(&value::value(given)?);
                parsed.map(|$parsed| $convert).map_err(|expected| unexpected(given.py(), expected))
            }
        )+

        /// Adds the functions to the module.
        pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $( m.add_function(wrap_pyfunction!($name, m)?)?; )+
            m.add_function(wrap_pyfunction!(format_duration, m)?)?;
            m.add_function(wrap_pyfunction!(format_rate, m)?)?;
            m.add_function(wrap_pyfunction!(format_size, m)?)
        }
    };
}

parsers! {
    parse_duration -> u64 = |span| span.as_nanos();
    parse_rate -> u64 = |rate| rate.0;
    parse_size -> u64 = |size| size.get();
    parse_probability -> f64 = |part| part;
    parse_share -> f64 = |part| part;
    parse_loss -> f64 = |part| part;
    parse_limit -> String = |limit| limit.to_string();
    parse_finite_limit -> String = |limit| limit.to_string();
}

#[pyfunction]
fn format_duration(nanos: u64) -> String {
    units::format_duration(Span::from_nanos(nanos))
}

#[pyfunction]
fn format_rate(bits_per_sec: u64) -> String {
    units::format_rate(BitRate(bits_per_sec))
}

#[pyfunction]
fn format_size(size: u64) -> String {
    units::format_size(Bytes::new(size))
}
