//! A Python class as a congestion controller, to try out an idea. Such a controller is two orders of
//! magnitude slower than a built-in one.
//!
//! The class has the same hooks as the Rust trait, and each flow has its own instance. `on_ack(ack, window)` and
//! `on_congestion(event, window)` are required, the other hooks optional. Hooks change `window` in place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use narrows_control::congestion::{
    Ack, Congestion, Connection, Controller, INFINITE_SSTHRESH, Recovery, Signal, State, Window,
};
use narrows_control::parameter::{Value as Given, Values};
use narrows_control::units::{Rate, Span, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The window as a Python object.
#[pyclass(name = "Window")]
pub(crate) struct PyWindow {
    /// Segments.
    #[pyo3(get)]
    cwnd: u32,
    /// Segments.
    #[pyo3(get)]
    ssthresh: u32,
    /// L3 bytes/s; None: not paced by the controller.
    #[pyo3(get)]
    pacing_rate: Option<f64>,
}

#[pymethods]
impl PyWindow {
    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.cwnd = segments("cwnd", value)?;
        Ok(())
    }

    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.ssthresh = segments("ssthresh", value)?;
        Ok(())
    }

    #[setter]
    fn set_pacing_rate(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let rate: Option<f64> =
            value.extract().map_err(|_| refuse("pacing_rate", value, "a number or None"))?;
        // With a rate of zero, the flow would never send again.
        if rate.is_some_and(|r| !(1.0..=1e15).contains(&r)) {
            return Err(refuse("pacing_rate", value, "1 to 1e15 bytes/s, or None"));
        }
        self.pacing_rate = rate;
        Ok(())
    }
}

fn segments(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let expected = "a whole number of segments, 1 to 2147483647";
    let n: i64 = value.extract().map_err(|_| refuse(name, value, expected))?;
    u32::try_from(n)
        .ok()
        .filter(|n| (1..=INFINITE_SSTHRESH).contains(n))
        .ok_or_else(|| refuse(name, value, expected))
}

fn refuse(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let found = value.repr().map_or_else(|_| "something".into(), |r| r.to_string());
    PyValueError::new_err(format!("window.{name}: found {found}, expected {expected}"))
}

/// The first exception that a controller raised, and the flag that then ends the run.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) error: Arc<Mutex<Option<PyErr>>>,
    pub(crate) cancel: Arc<AtomicBool>,
}

impl Failure {
    fn record(&self, error: PyErr) {
        if let Ok(mut slot) = self.error.lock() {
            slot.get_or_insert(error);
        }
        self.cancel.store(true, Ordering::Relaxed);
    }
}

/// An instance of a user's class.
pub(crate) struct PyController {
    object: Py<PyAny>,
    failure: Failure,
}

impl PyController {
    /// Instantiates the class with the given parameters as keyword arguments. If this raises an exception, records
    /// the exception and returns `None`.
    pub(crate) fn new(class: &Py<PyAny>, params: &Values, failure: &Failure) -> Option<Self> {
        Python::attach(|py| match instantiate(class.bind(py), params) {
            Ok(object) => Some(PyController { object: object.unbind(), failure: failure.clone() }),
            Err(error) => {
                failure.record(error);
                None
            }
        })
    }

    /// Calls a hook with an event and the window, if the class has it.
    fn call<'a>(&self, hook: &str, window: &mut Window, event: impl IntoIterator<Item = (&'a str, Value)>) {
        let result = Python::attach(|py| -> PyResult<()> {
            let object = self.object.bind(py);
            let Some(method) = object.getattr_opt(hook)? else { return Ok(()) };
            let fields = PyDict::new(py);
            for (name, value) in event {
                value.set(&fields, name)?;
            }
            let namespace = py.import("types")?.getattr("SimpleNamespace")?;
            let event = namespace.call(PyTuple::empty(py), Some(&fields))?;
            let pacing_rate = window.pacing_rate.map(Rate::as_f64);
            let decision =
                Bound::new(py, PyWindow { cwnd: window.cwnd, ssthresh: window.ssthresh, pacing_rate })?;
            method.call1((event, &decision))?;
            let decision = decision.borrow();
            window.cwnd = decision.cwnd;
            window.ssthresh = decision.ssthresh;
            window.pacing_rate = decision.pacing_rate.map(Rate::from_f64);
            Ok(())
        });
        if let Err(error) = result {
            self.failure.record(error);
        }
    }
}

/// Creates an instance, and checks that it has the required hooks.
fn instantiate<'py>(class: &Bound<'py, PyAny>, params: &Values) -> PyResult<Bound<'py, PyAny>> {
    let given = PyDict::new(class.py());
    for (name, value) in params {
        match value {
            Given::Flag(flag) => given.set_item(name, flag)?,
            Given::Number(n) => given.set_item(name, n)?,
            Given::Word(word) => given.set_item(name, word.as_ref())?,
        }
    }
    let object = class.call(PyTuple::empty(class.py()), Some(&given))?;
    for hook in ["on_ack", "on_congestion"] {
        if !object.hasattr(hook)? {
            return Err(PyTypeError::new_err(format!(
                "controller {class} has no method {hook}(event, window)"
            )));
        }
    }
    Ok(object)
}

/// A field of an event.
enum Value {
    Int(u64),
    Float(f64),
    Bool(bool),
    Word(&'static str),
    None,
}

impl Value {
    fn set(self, fields: &Bound<'_, PyDict>, name: &str) -> PyResult<()> {
        match self {
            Value::Int(v) => fields.set_item(name, v),
            Value::Float(v) => fields.set_item(name, v),
            Value::Bool(v) => fields.set_item(name, v),
            Value::Word(v) => fields.set_item(name, v),
            Value::None => fields.set_item(name, fields.py().None()),
        }
    }

    fn span(span: Option<Span>) -> Self {
        span.map_or(Value::None, |s| Value::Float(s.as_secs_f64()))
    }

    fn rate(rate: Option<Rate>) -> Self {
        rate.map_or(Value::None, |r| Value::Float(r.as_f64()))
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Disorder => "disorder",
        State::Cwr => "cwr",
        State::Recovery => "recovery",
        State::Loss => "loss",
    }
}

impl Controller for PyController {
    fn name(&self) -> &'static str {
        "python"
    }

    fn on_established(&mut self, c: &Connection, window: &mut Window) {
        self.call(
            "on_established",
            window,
            [
                ("now", Value::Float(c.now.as_secs_f64())),
                ("packet_bytes", Value::Int(c.packet_bytes.into())),
                ("rtt", Value::span(c.rtt)),
                ("feedback", Value::rate(c.feedback)),
                ("seed", Value::Int(c.seed)),
            ],
        );
    }

    fn on_ack(&mut self, a: &Ack, window: &mut Window) {
        let valid = a.rate.interval > Span::ZERO;
        let min_rtt = (a.min_rtt != Span::MAX).then_some(a.min_rtt);
        self.call(
            "on_ack",
            window,
            [
                ("now", Value::Float(a.now.as_secs_f64())),
                ("acked", Value::Int(a.acked.into())),
                ("lost", Value::Int(a.lost.into())),
                ("delivered", Value::Int(a.delivered)),
                ("in_flight", Value::Int(a.in_flight.into())),
                ("prior_in_flight", Value::Int(a.prior_in_flight.into())),
                ("rtt", Value::span(a.rtt)),
                ("srtt", Value::span((a.srtt > Span::ZERO).then_some(a.srtt))),
                ("min_rtt", Value::span(min_rtt)),
                ("rate_delivered", Value::Int(a.rate.delivered.into())),
                ("rate_interval", Value::span(valid.then_some(a.rate.interval))),
                ("rate_prior_delivered", Value::Int(a.rate.prior_delivered)),
                ("app_limited", Value::Bool(a.rate.app_limited)),
                ("state", Value::Word(word(a.state))),
                ("cwnd_limited", Value::Bool(a.cwnd_limited)),
                ("ece", Value::Bool(a.ece)),
                ("feedback", Value::rate(a.feedback)),
            ],
        );
    }

    fn on_congestion(&mut self, e: &Congestion, window: &mut Window) {
        let signal = match e.signal {
            Signal::Loss | Signal::Probe => "loss",
            Signal::Ecn => "ecn",
            Signal::Timeout => "timeout",
        };
        self.call(
            "on_congestion",
            window,
            [
                ("now", Value::Float(e.now.as_secs_f64())),
                ("signal", Value::Word(signal)),
                ("in_flight", Value::Int(e.in_flight.into())),
                ("srtt", Value::Float(e.srtt.as_secs_f64())),
            ],
        );
    }

    fn on_recovered(&mut self, now: Time, window: &mut Window) {
        self.call("on_recovered", window, [("now", Value::Float(now.as_secs_f64()))]);
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        self.call("on_undo", window, [("now", Value::Float(now.as_secs_f64()))]);
    }

    fn on_restart(&mut self, now: Time, idle: Span, app_limited: bool, window: &mut Window) {
        self.call(
            "on_restart",
            window,
            [
                ("now", Value::Float(now.as_secs_f64())),
                ("idle", Value::Float(idle.as_secs_f64())),
                ("app_limited", Value::Bool(app_limited)),
            ],
        );
    }

    /// Reads a class attribute: `owns_recovery = True` means that the controller sets the window during recovery.
    fn recovery(&self) -> Recovery {
        let owns = Python::attach(|py| {
            let flag = self.object.bind(py).getattr_opt("owns_recovery").ok().flatten();
            flag.is_some_and(|f| f.is_truthy().unwrap_or(false))
        });
        if owns { Recovery::Controller } else { Recovery::Transport }
    }
}
