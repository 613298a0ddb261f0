//! A built-in congestion controller as a Python object, so that a Python controller can use or wrap it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_control::catalogue::Choice;
use narrows_control::congestion::{Controller, Recovery};
use narrows_control::parameter::{Value, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use super::events::{PyAck, PyCongestion, PyConnection, PyLost, PyMoment, PyRestart};
use super::window::PyWindow;
use crate::extension::catalogue;

/// A built-in congestion controller. `narrows.custom.BuiltIn` is its public form.
#[pyclass(frozen)]
pub(crate) struct BuiltIn {
    controller: Mutex<Box<dyn Controller>>,
}

impl BuiltIn {
    fn controller(&self) -> MutexGuard<'_, Box<dyn Controller>> {
        // After a panic, the state of the controller may be wrong, but the controller is still safe to use.
        self.controller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl BuiltIn {
    #[new]
    fn new(name: &str, params: &Bound<'_, PyDict>) -> PyResult<Self> {
        let choice = Choice { name: name.to_owned(), params: values(params)? };
        let catalogue = catalogue();
        catalogue.check(&choice).map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        let controller = catalogue
            .build(&choice)
            .filter(|c| c.header_bytes() == 0 && !c.is_fed_by_messages())
            .ok_or_else(|| {
                PyValueError::new_err(format!(
                    "found {name}, expected a controller without congestion headers and messages of its own"
                ))
            })?;
        Ok(BuiltIn { controller: Mutex::new(controller) })
    }

    fn on_established(&self, connection: &PyConnection, window: &mut PyWindow) {
        self.controller().on_established(&connection.event, &mut window.0);
    }

    fn on_lost(&self, lost: &PyLost, window: &PyWindow) {
        self.controller().on_lost(&lost.0, &window.0);
    }

    fn on_sample(&self, ack: &PyAck) {
        self.controller().on_sample(&ack.0);
    }

    fn on_ack(&self, ack: &PyAck, window: &mut PyWindow) {
        self.controller().on_ack(&ack.0, &mut window.0);
    }

    fn on_congestion(&self, event: &PyCongestion, window: &mut PyWindow) {
        self.controller().on_congestion(&event.0, &mut window.0);
    }

    fn on_recovered(&self, event: &PyMoment, window: &mut PyWindow) {
        self.controller().on_recovered(event.0, &mut window.0);
    }

    fn on_undo(&self, event: &PyMoment, window: &mut PyWindow) {
        self.controller().on_undo(event.0, &mut window.0);
    }

    fn on_restart(&self, event: &PyRestart, window: &mut PyWindow) {
        self.controller().on_restart(event.at, event.idle_time, event.limited, &mut window.0);
    }

    #[getter]
    fn owns_recovery(&self) -> bool {
        self.controller().recovery() == Recovery::Controller
    }

    #[getter]
    fn exact_ce_echo(&self) -> bool {
        self.controller().needs_exact_ce_echo()
    }

    #[getter]
    fn wants_feedback(&self) -> bool {
        self.controller().wants_feedback()
    }

    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = PyDict::new(py);
        let mut result = Ok(());
        self.controller().trace(&mut |name, value| {
            if let Err(error) = state.set_item(name, value) {
                result = Err(error);
            }
        });
        result.map(|()| state)
    }
}

/// Reads parameters in base units.
fn values(params: &Bound<'_, PyDict>) -> PyResult<Values> {
    let mut values = Values::new();
    for (name, value) in params {
        let given = if value.is_instance_of::<PyBool>() {
            Value::Flag(value.extract()?)
        } else if let Ok(number) = value.extract::<f64>() {
            Value::Number(number)
        } else {
            Value::Word(value.extract::<String>()?.into())
        };
        values.insert(name.extract()?, given);
    }
    Ok(values)
}
