//! Runs congestion controllers that are written in Python. A user's class has the hooks of [`Controller`], and each
//! flow has its own instance of the class. `narrows.custom` documents the hooks.
//!
//! | module | idea |
//! | --- | --- |
//! | `events` | the events that hooks receive |
//! | `window` | the window that hooks change |
//! | `built_in` | a built-in controller as a Python object |

mod built_in;
mod events;
mod window;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use narrows_control::catalogue::FlowNumber;
use narrows_control::congestion::{Ack, Congestion, Connection, Controller, Lost, Recovery, Window};
use narrows_control::parameter::{Value as Given, Values};
use narrows_control::units::{Span, Time};
use narrows_sim::Monitor;
use narrows_sim::plan::Plan;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{PyClass, PyClassInitializer, intern};

use self::events::{PyAck, PyCongestion, PyConnection, PyLost, PyMoment, PyRestart};
use self::window::{PyWindow, refuse};

/// Maximum number of different names that the `trace` methods of all classes together may use. The process never frees
/// a name.
const MAX_TRACED: usize = 1000;

/// An `f64` represents every whole number up to this one exactly.
const EXACT: f64 = (1u64 << 53) as f64;

/// The first exception that a controller of a run raised. This exception ends the run.
#[derive(Clone)]
pub(crate) struct Failure {
    error: Arc<Mutex<Option<PyErr>>>,
    has_failed: Arc<AtomicBool>,
    monitor: Arc<Monitor>,
}

impl Failure {
    /// Returns a value without a failure. A failure stops the run that `monitor` belongs to.
    pub(crate) fn new(monitor: Arc<Monitor>) -> Self {
        Failure { error: Arc::default(), has_failed: Arc::default(), monitor }
    }

    fn record(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.has_failed.store(true, Ordering::Relaxed);
        self.monitor.stop();
    }

    /// Returns the exception and removes it from this value.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// State that all controllers of a run share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) failure: Failure,
    pub(crate) plan: Arc<Plan>,
}

impl Shared {
    pub(crate) fn new(plan: Plan, failure: Failure) -> Self {
        Shared { failure, plan: Arc::new(plan) }
    }

    /// Returns the name of a flow in the results.
    fn name_of(&self, flow: FlowNumber) -> String {
        let entry = self.plan.flows.get(flow.entry as usize);
        entry.map_or_else(String::new, |entry| entry.flow_name(flow.member))
    }
}

/// Whether a user's class has each optional member. The members are looked up only once, because a lookup of a missing
/// name is slow.
#[derive(Copy, Clone)]
struct Members {
    on_established: bool,
    on_sample: bool,
    on_lost: bool,
    on_recovered: bool,
    on_undo: bool,
    on_restart: bool,
    on_timer: bool,
    trace: bool,
    owns_recovery: bool,
}

impl Members {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Members {
            on_established: object.hasattr("on_established")?,
            on_sample: object.hasattr("on_sample")?,
            on_lost: object.hasattr("on_lost")?,
            on_recovered: object.hasattr("on_recovered")?,
            on_undo: object.hasattr("on_undo")?,
            on_restart: object.hasattr("on_restart")?,
            on_timer: object.hasattr("on_timer")?,
            trace: object.hasattr("trace")?,
            owns_recovery: object.hasattr("owns_recovery")?,
        })
    }
}

/// An instance of a user's class.
pub(crate) struct PyController {
    object: Py<PyAny>,
    /// The window that all hooks of the instance receive.
    window: Py<PyWindow>,
    members: Members,
    shared: Shared,
    exact_ce_echo: bool,
    wants_feedback: bool,
    /// The attributes `owns_recovery` and `timer`, as they were after the last hook.
    recovery: Recovery,
    timer: Time,
    /// The time of the timer that ran last. Each timer runs only once.
    timer_ran: Time,
    flow: FlowNumber,
}

impl PyController {
    /// Instantiates the class with the given parameters as keyword arguments. If this raises an exception, records
    /// the exception and returns `None`.
    pub(crate) fn new(class: &Py<PyAny>, params: &Values, flow: FlowNumber, shared: &Shared) -> Option<Self> {
        Python::attach(|py| match instantiate(class.bind(py), params, flow, shared) {
            Ok(controller) => Some(controller),
            Err(error) => {
                shared.failure.record(error);
                None
            }
        })
    }

    /// Calls a hook with the instance and the window, and then copies the hook's changes into `window`.
    #[inline]
    fn call(
        &mut self,
        window: &mut Window,
        hook: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, PyWindow>) -> PyResult<()>,
    ) {
        self.attempt(|object, decision| {
            decision.borrow_mut().0.clone_from(window);
            hook(object, decision)?;
            window.clone_from(&decision.borrow().0);
            Ok(())
        });
    }

    /// Calls a function with the instance and its window, and then reads the instance's attributes. If the run has
    /// already failed, does nothing.
    #[inline]
    fn attempt(
        &mut self,
        act: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, PyWindow>) -> PyResult<()>,
    ) {
        if self.shared.failure.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let result = Python::attach(|py| -> PyResult<()> {
            let object = self.object.bind(py).clone();
            act(&object, self.window.bind(py))?;
            self.read_attributes(&object)
        });
        if let Err(error) = result {
            self.shared.failure.record(error);
        }
    }

    /// Reads the attributes that a hook may have changed.
    fn read_attributes(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        if self.members.owns_recovery {
            let owns = object.getattr(intern!(py, "owns_recovery"))?.is_truthy()?;
            self.recovery = if owns { Recovery::Controller } else { Recovery::Transport };
        }
        if self.members.on_timer {
            let at = object.getattr_opt(intern!(py, "timer"))?;
            self.timer = at.map_or(Ok(Time::NEVER), |at| time("timer", &at))?;
        }
        Ok(())
    }
}

/// Reads a time in seconds. The value `None` means "never".
fn time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Time> {
    let expected = "a time in seconds, or None";
    let at: Option<f64> = value.extract().map_err(|_| refuse(name, value, expected))?;
    match at {
        None => Ok(Time::NEVER),
        Some(at) if at >= 0.0 => Ok(Time::from_secs_f64(at)),
        Some(_) => Err(refuse(name, value, expected)),
    }
}

/// Creates an instance, and checks that it has the required hooks.
fn instantiate(
    class: &Bound<'_, PyAny>,
    params: &Values,
    flow: FlowNumber,
    shared: &Shared,
) -> PyResult<PyController> {
    let py = class.py();
    let given = PyDict::new(py);
    for (name, value) in params {
        match value {
            Given::Flag(flag) => given.set_item(name, flag)?,
            // Plans do not distinguish 4 from 4.0. A whole number is passed as an int, because Python accepts an int
            // for a float, but not a float for an int.
            Given::Number(n) if n.fract() == 0.0 && n.abs() <= EXACT => given.set_item(name, *n as i64)?,
            Given::Number(n) => given.set_item(name, n)?,
            Given::Word(word) => given.set_item(name, word.as_ref())?,
        }
    }
    let object = class.call(PyTuple::empty(py), Some(&given))?;
    for hook in ["on_ack", "on_congestion"] {
        if !object.hasattr(hook)? {
            return Err(PyTypeError::new_err(format!(
                "controller {class} has no method {hook}(event, window)"
            )));
        }
    }
    let flag =
        |name: &str| -> PyResult<bool> { object.getattr_opt(name)?.map_or(Ok(false), |f| f.is_truthy()) };
    let mut controller = PyController {
        members: Members::of(&object)?,
        exact_ce_echo: flag("exact_ce_echo")?,
        wants_feedback: flag("wants_feedback")?,
        object: object.clone().unbind(),
        window: Bound::new(py, PyWindow(Window::new(1)))?.unbind(),
        shared: shared.clone(),
        recovery: Recovery::Transport,
        timer: Time::NEVER,
        timer_ran: Time::NEVER,
        flow,
    };
    controller.read_attributes(&object)?;
    Ok(controller)
}

/// Calls a hook with an event and the window.
fn notify<'py, E: Into<PyClassInitializer<E>> + PyClass>(
    object: &Bound<'py, PyAny>,
    hook: &Bound<'py, PyString>,
    event: E,
    window: &Bound<'py, PyWindow>,
) -> PyResult<()> {
    object.call_method1(hook, (Bound::new(object.py(), event)?, window)).map(drop)
}

impl Controller for PyController {
    fn name(&self) -> &'static str {
        "python"
    }

    fn on_established(&mut self, c: &Connection, window: &mut Window) {
        if self.members.on_established {
            let event =
                PyConnection { event: c.clone(), flow: self.shared.name_of(self.flow), id: self.flow.id };
            self.call(window, |object, window| {
                notify(object, intern!(object.py(), "on_established"), event, window)
            });
        }
    }

    fn on_lost(&mut self, lost: &Lost, window: &Window) {
        if self.members.on_lost {
            // The hook can read the window, but changes of the window have no effect.
            let mut unchanged = window.clone();
            self.call(&mut unchanged, |object, window| {
                notify(object, intern!(object.py(), "on_lost"), PyLost(lost.clone()), window)
            });
        }
    }

    fn on_sample(&mut self, ack: &Ack) {
        if self.members.on_sample {
            self.attempt(|object, _| {
                let event = Bound::new(object.py(), PyAck(ack.clone()))?;
                object.call_method1(intern!(object.py(), "on_sample"), (event,)).map(drop)
            });
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.call(window, |object, window| {
            notify(object, intern!(object.py(), "on_ack"), PyAck(ack.clone()), window)
        });
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.call(window, |object, window| {
            notify(object, intern!(object.py(), "on_congestion"), PyCongestion(event.clone()), window)
        });
    }

    fn on_recovered(&mut self, now: Time, window: &mut Window) {
        if self.members.on_recovered {
            self.call(window, |object, window| {
                notify(object, intern!(object.py(), "on_recovered"), PyMoment(now), window)
            });
        }
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        if self.members.on_undo {
            self.call(window, |object, window| {
                notify(object, intern!(object.py(), "on_undo"), PyMoment(now), window)
            });
        }
    }

    fn on_restart(&mut self, now: Time, idle: Span, app_limited: bool, window: &mut Window) {
        if self.members.on_restart {
            let event = PyRestart { at: now, idle_time: idle, limited: app_limited };
            self.call(window, |object, window| {
                notify(object, intern!(object.py(), "on_restart"), event, window)
            });
        }
    }

    fn uses_timer(&self) -> bool {
        self.members.on_timer
    }

    fn next_timer(&self) -> Time {
        if self.timer == self.timer_ran { Time::NEVER } else { self.timer }
    }

    fn on_timer(&mut self, now: Time, window: &mut Window) {
        self.timer_ran = self.timer;
        self.call(window, |object, window| {
            notify(object, intern!(object.py(), "on_timer"), PyMoment(now), window)
        });
    }

    fn recovery(&self) -> Recovery {
        self.recovery
    }

    fn needs_exact_ce_echo(&self) -> bool {
        self.exact_ce_echo
    }

    fn wants_feedback(&self) -> bool {
        self.wants_feedback
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        if !self.members.trace || self.shared.failure.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let result = Python::attach(|py| -> PyResult<()> {
            let state = self.object.bind(py).call_method0(intern!(py, "trace"))?;
            for item in state.call_method0(intern!(py, "items"))?.try_iter()? {
                let (name, value): (String, f64) = item?.extract()?;
                trace(kept(&name)?, value);
            }
            Ok(())
        });
        if let Err(error) = result {
            self.shared.failure.record(error);
        }
    }
}

/// Returns a copy of a trace's name. The copy exists until the process ends, because names of traces are static.
fn kept(name: &str) -> PyResult<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if names.len() == MAX_TRACED {
        return Err(PyValueError::new_err(format!(
            "trace: found the new name {name}, expected at most {MAX_TRACED} names in a process"
        )));
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    Ok(name)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyWindow>()?;
    m.add_class::<built_in::BuiltIn>()?;
    events::register(m)
}
