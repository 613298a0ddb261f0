//! Values of scenarios as Python objects, in both directions.

use narrows_scenario::{Error, Table, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDate, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTime, PyTuple};

use super::raised;

/// Maximum depth of tables and lists.
const DEEPEST: usize = 128;

/// Returns the table with the content of a mapping.
///
/// # Errors
/// Returns a `ScenarioError` if a key is not a string, or if tables are nested too deep.
pub(super) fn table(given: &Bound<'_, PyAny>) -> PyResult<Table> {
    match value(given)? {
        Value::Table(table) => Ok(table),
        _ => Err(raised(given.py(), Error::new("found no table, expected one", ""))),
    }
}

/// Returns a Python object as a value of a scenario.
pub(super) fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    at_depth(given, 0)
}

fn at_depth(given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(raised(given.py(), Error::new("found tables nested too deep", "")));
    }
    if given.is_none() {
        Ok(Value::Null)
    } else if let Ok(flag) = given.cast::<PyBool>() {
        Ok(Value::Bool(flag.is_true()))
    } else if let Ok(text) = given.cast::<PyString>() {
        Ok(Value::Text(text.to_string_lossy().into_owned()))
    } else if let Ok(number) = given.cast::<PyInt>() {
        Ok(whole(number))
    } else if let Ok(number) = given.cast::<PyFloat>() {
        Ok(Value::Float(number.value()))
    } else if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let items = given.try_iter()?.map(|item| at_depth(&item?, depth + 1));
        Ok(Value::List(items.collect::<PyResult<_>>()?))
    } else if let Ok(mapping) = given.cast::<PyMapping>() {
        let mut table = Table::new();
        for pair in mapping.items()?.iter() {
            let (key, inner): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            let Ok(key) = key.cast::<PyString>() else {
                let found = key.repr()?;
                let message = format!("found {}, expected keys that are strings", found.to_string_lossy());
                return Err(raised(given.py(), Error::new(message, "")));
            };
            table.insert(key.to_string_lossy().into_owned(), at_depth(&inner, depth + 1)?);
        }
        Ok(Value::Table(table))
    } else if given.is_instance_of::<PyDate>() || given.is_instance_of::<PyTime>() {
        Ok(Value::Date(given.call_method0("isoformat")?.extract()?))
    } else {
        // No key accepts a date or an object of another type. The object therefore becomes a date. Errors show the
        // object's `repr`.
        Ok(Value::Date(given.repr()?.to_string_lossy().into_owned()))
    }
}

fn whole(number: &Bound<'_, PyInt>) -> Value {
    if let Ok(number) = number.extract::<i64>() {
        return Value::Int(number);
    }
    // Python refuses to print numbers of thousands of digits.
    let text = number.str().map(|digits| digits.to_string_lossy().into_owned());
    Value::Big(
        text.unwrap_or_else(
            |_| {
                if number.lt(0).unwrap_or_default() { "-".to_owned() } else { String::new() }
            },
        ),
    )
}

/// Returns a value of a scenario as a Python object.
pub(super) fn object<'py>(py: Python<'py>, given: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match given {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Big(digits) => py.get_type::<PyInt>().call1((digits,))?,
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Text(text) | Value::Date(text) => PyString::new(py, text).into_any(),
        Value::List(list) => {
            let items: Vec<_> = list.iter().map(|item| object(py, item)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Table(table) => dict(py, table)?.into_any(),
    })
}

/// Returns a table as a dict.
pub(super) fn dict<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, inner) in table {
        dict.set_item(key, object(py, inner)?)?;
    }
    Ok(dict)
}
